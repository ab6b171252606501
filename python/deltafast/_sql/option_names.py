"""The options of messages as clauses of SQL."""

from __future__ import annotations

from typing import Final

from deltafast._call_options import spelling_of

__all__ = ["as_clause"]

_CLAUSES: Final[dict[tuple[str, str | None], str]] = {
    ("enforce_retention_duration", "false"): "`enforce_retention_duration=False` of `DeltaTable.vacuum`",
    ("schema_mode", "merge"): "WITH SCHEMA EVOLUTION",
    ("merge_schema", "true"): "WITH SCHEMA EVOLUTION",
    ("schema_mode", "overwrite"): "REPLACE TABLE",
    ("mode", "append"): "INSERT INTO",
    ("mode", "ignore"): "IF NOT EXISTS",
    ("mode", "overwrite"): "INSERT OVERWRITE",
    ("partition_by", None): "PARTITIONED BY",
    ("cluster_by", None): "CLUSTER BY",
    ("predicate", None): "REPLACE WHERE",
    ("replace_using", None): "REPLACE USING",
    ("replace_on", None): "REPLACE ON",
    ("truncate_history", None): "TRUNCATE HISTORY",
    ("truncate_history", "true"): "TRUNCATE HISTORY",
    ("truncate_history", "false"): "no TRUNCATE HISTORY",
}

#: Spells an option of a call, given by its name in Python.
as_clause: Final = spelling_of(_CLAUSES)
