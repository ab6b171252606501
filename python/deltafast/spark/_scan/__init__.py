"""Reading: the files of a version, and the modes in which Spark reads them."""
