"""The options of messages as flags of the command line."""

from __future__ import annotations

from typing import Final

from deltafast._call_options import as_argument

__all__ = ["as_flag"]

_FLAGS: Final[dict[tuple[str, str | None], str]] = {
    ("enforce_retention_duration", "false"): "`--force`",
    ("schema_mode", "merge"): "`--merge-schema`",
    ("partition_by", None): "`--partition-by`",
    ("cluster_by", None): "`--cluster-by`",
}


def as_flag(name: str, value: str | None) -> str:
    """Return an option of a call, given by its name in Python, as a flag; as an argument if there is no flag for it."""
    return _FLAGS.get((name, value)) or as_argument(name, value)
