"""Findings of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from deltafast._display import table_html

__all__ = ["BROKEN_LOG", "SHOWN", "Finding", "FindingLevel", "FindingList", "some"]

#: The name of findings after which the others of the log are unreliable.
BROKEN_LOG = "broken-log"
#: Largest number of names in a message.
SHOWN = 3


class FindingLevel(StrEnum):
    """The importance of a finding."""

    #: A defect.
    PROBLEM = "problem"
    #: A possible improvement.
    ADVICE = "advice"

    __repr__ = str.__repr__


@dataclass(frozen=True)
class Finding:
    """One defect (`problem`) or possible improvement (`advice`)."""

    level: FindingLevel
    #: A short name: broken-log, missing-files, orphan-files, small-files ...
    what: str
    message: str
    #: The command to run, or another remedy.
    remedy: str


class FindingList(list[Finding]):
    """Findings, problems first; a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        rows = [(finding.level, finding.what, finding.message, finding.remedy) for finding in self]
        return table_html("Findings", ("level", "finding", "message", "remedy"), rows)


def some(names: list[str]) -> str:
    """Return the first few names."""
    return ", ".join(names[:SHOWN]) + (" ..." if len(names) > SHOWN else "")
