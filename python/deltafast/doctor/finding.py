"""Findings of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["SHOWN", "Finding", "some"]

#: Largest number of names in a message.
SHOWN = 3


@dataclass(frozen=True)
class Finding:
    """One defect (`problem`) or possible improvement (`advice`)."""

    level: Literal["problem", "advice"]
    #: A short name: broken-log, missing-files, orphan-files, small-files ...
    what: str
    message: str
    #: The command to run, or another remedy.
    remedy: str


def some(names: list[str]) -> str:
    """Return the first few names."""
    return ", ".join(names[:SHOWN]) + (" ..." if len(names) > SHOWN else "")
