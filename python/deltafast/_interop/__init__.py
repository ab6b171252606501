"""Tables for other libraries: pyarrow, DuckDB, Polars, and any consumer of an Arrow stream."""
