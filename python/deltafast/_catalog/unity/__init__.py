"""Unity Catalog: tables by name, their credentials, and commits of managed tables."""
