"""The changes that `deltafast.spark.enable` makes to PySpark's own classes."""
