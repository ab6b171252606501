"""What `deltafast.spark.enable` puts into PySpark's own classes."""
