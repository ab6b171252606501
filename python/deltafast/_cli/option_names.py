"""The options of messages as flags of the command line."""

from __future__ import annotations

from typing import Final

from deltafast._call_options import spelling_of

__all__ = ["as_flag"]

_FLAGS: Final[dict[tuple[str, str | None], str]] = {
    ("enforce_retention_duration", "false"): "`--force`",
    ("schema_mode", "merge"): "`--merge-schema`",
    ("partition_by", None): "`--partition-by`",
    ("cluster_by", None): "`--cluster-by`",
}

#: Spells an option of a call, given by its name in Python.
as_flag: Final = spelling_of(_FLAGS)
