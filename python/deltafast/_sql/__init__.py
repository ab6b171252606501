"""Delta's SQL statements.

The stages, one module each: `reading` (text -> `tree`, by `reader` and the `read_*` modules; queries within are only
looked through, by `query_text`), then `run` (one statement -> calls of `DeltaTable` and its like, by the `run_*`
modules; `tables` gives names a meaning, `queries` runs queries, `rows` and `values` make the rows of an INSERT).
Reading knows no table and no engine.
"""

from __future__ import annotations

__all__: list[str] = []
