"""The samples of a scenario -> one number."""

from __future__ import annotations

import statistics
from typing import Any

__all__ = ["median"]


def median(scenario: dict[str, Any], contender: str, phase: str, measure: str) -> float | None:
    """Return the median of a measure over the samples of a contender; None if it has no sample of the phase.

    Args:
        scenario: The results of a scenario.
        contender: The name of the contender.
        phase: The name of the phase.
        measure: `wall`, `cpu`, `peak_mb`, or a fact of the samples.
    """
    samples = scenario["contenders"].get(contender, {}).get("samples", [])
    values = [sample["phases"].get(phase, {}).get(measure, sample["facts"].get(measure)) for sample in samples]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
