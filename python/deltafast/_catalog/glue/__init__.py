"""The AWS Glue Data Catalog: locations of tables, and their registration."""
