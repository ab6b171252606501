"""Clients of catalogs: of managed tables, a folder, Unity Catalog, AWS Glue and Delta Sharing."""
