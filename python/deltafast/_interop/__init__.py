"""Tables for other libraries: pyarrow, DuckDB, whatever takes an Arrow stream."""
