"""Writing: what rows and files become before a commit."""
