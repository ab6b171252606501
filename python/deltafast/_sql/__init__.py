"""Delta's SQL statements.

The stages, one module each: `reading` parses a string to a `tree`, with `reader` and the `read_*` modules (`query_text`
only finds the tables in queries); `run` executes one statement by calls of `DeltaTable` and related functions, with the
`run_*` modules (`tables` resolves names, `queries` runs queries, `rows` and `values` make the rows of an INSERT).
Parsing depends on no table and no engine.
"""

from __future__ import annotations

__all__: list[str] = []
