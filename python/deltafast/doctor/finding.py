"""What a doctor says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["SHOWN", "Finding", "some"]

#: Names that a message gives.
SHOWN = 3


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong (`problem`) or could be better (`advice`)."""

    level: Literal["problem", "advice"]
    #: A short name: broken-log, missing-files, orphan-files, small-files ...
    what: str
    message: str
    #: What to run or do.
    remedy: str


def some(names: list[str]) -> str:
    """The first few names."""
    return ", ".join(names[:SHOWN]) + (" ..." if len(names) > SHOWN else "")
