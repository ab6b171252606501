"""Reading: a version's files, and the ways by which Spark reads them."""
