"""The picture of the page of results: for each operation, how many times the wall time of deltafast each peer takes."""

from __future__ import annotations

import hashlib
import io
from typing import Any, NamedTuple

import publishing
from samples import median
from scenarios import BASELINE, SCENARIOS, SPARK, SUBJECT

#: Peers in the picture, with their colors; other contenders are variants and lower bounds.
PEERS = {BASELINE: "#3b6fb6", SPARK: "#d9822b", "DuckDB": "#c9a800", "Polars scan_delta": "#4f9d69"}


class Factor(NamedTuple):
    """One peer in one row."""

    row: int
    peer: str
    factor: float
    is_provisional: bool


def factors(results: dict[str, Any]) -> tuple[list[str], list[Factor]]:
    """Return the rows of the picture and their points.

    Args:
        results: The results that `run.py` collected.
    """
    labels: list[str] = []
    points: list[Factor] = []
    for scenario in SCENARIOS:
        found = results["scenarios"].get(scenario.name)
        for phase, words in scenario.phases.items() if found else ():
            mine = median(found, SUBJECT, phase, "wall")
            theirs = {peer: median(found, peer, phase, "wall") for peer in PEERS}
            if mine and any(theirs.values()):
                for peer, wall in theirs.items():
                    if wall:
                        reasons = publishing.reservations(found, SUBJECT, peer)
                        points.append(Factor(len(labels), peer, wall / mine, bool(reasons)))
                labels.append(scenario.name + (f": {words}" if words else ""))
    return labels, points


def digest(results: dict[str, Any]) -> str:
    """Return a digest of what the picture shows, which it contains: other releases of matplotlib draw other pictures.

    Args:
        results: The results that `run.py` collected.
    """
    return hashlib.sha256(repr(factors(results)).encode()).hexdigest()


def draw(results: dict[str, Any]) -> str:
    """Draw the picture.

    Args:
        results: The results that `run.py` collected.

    Returns:
        SVG.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    labels, points = factors(results)
    figure: Any = Figure(figsize=(11, 1.2 + 0.2 * len(labels)), layout="constrained")
    axis: Any = figure.subplots()
    for peer, color in PEERS.items():
        for is_provisional in (False, True):
            chosen = [point for point in points if (point.peer, point.is_provisional) == (peer, is_provisional)]
            if chosen:
                face = "none" if is_provisional else color
                where = [point.factor for point in chosen], [point.row for point in chosen]
                label = f"{peer}{', provisional' if is_provisional else ''}"
                axis.scatter(*where, s=26, facecolors=face, edgecolors=color, label=label)
    axis.axvline(1, color="black", linewidth=0.8)
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axis.set_yticks(range(len(labels)), labels, fontsize=7)
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.grid(axis="x", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title(
        "wall time of a peer, in multiples of deltafast's; right of the line deltafast is faster", fontsize=9
    )
    if points:
        axis.legend(fontsize=8, loc="lower right")
    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "deltafast", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Description": digest(results)})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"
