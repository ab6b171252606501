"""Writing: the preparation of rows and files for a commit."""
