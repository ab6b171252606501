"""A picture of a table's layout, by matplotlib: sizes of files, partitions, overlap of bounds, versions."""

from __future__ import annotations

import io
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from deltafast._display import size_text
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    import os

    from deltafast.layout import Layout

__all__ = ["draw"]

_FORMATS = (".svg", ".png", ".pdf", ".html")
_BLUE, _ORANGE, _GREY, _GREEN = "#3b6fb6", "#d9822b", "#8a8f98", "#4f9d69"
_MOST = 20


def draw(layout: Layout, path: str | os.PathLike[str]) -> None:
    """Draw a layout.

    Args:
        layout: Result of `deltafast.layout.measure`.
        path: The file to write; its suffix `.svg`, `.png`, `.pdf` or `.html` selects the format.

    Raises:
        InvalidArgumentError: The suffix is unknown, or the folder does not exist or cannot be written to.
        ModuleNotFoundError: matplotlib is not installed (`pip install 'deltafast[layout]'`).
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in _FORMATS:
        message = f"a picture ends in {', '.join(_FORMATS)}, not in {kind or 'nothing'!r}"
        raise InvalidArgumentError(message)
    figure = _figure(layout)
    try:
        _write(layout, figure, target, kind)
    except OSError as error:
        message = f"the picture {target} cannot be written: {error.strerror or error}"
        raise InvalidArgumentError(message, path=str(target)) from error


def _write(layout: Layout, figure: Any, target: Path, kind: str) -> None:
    if kind != ".html":
        _save(figure, target, kind)
        return
    text = io.StringIO()
    _save(figure, text, ".svg")
    picture = text.getvalue()
    title = escape(f"{layout.uri} at version {layout.version}")
    page = f"<!doctype html><meta charset='utf-8'><title>{title}</title>{picture[picture.index('<svg') :]}\n"
    target.write_text(page, encoding="utf-8")


def _save(figure: Any, target: Any, kind: str) -> None:
    import matplotlib as mpl

    # Equal layouts produce equal files.
    same = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with cast("Any", mpl).rc_context({"svg.hashsalt": "deltafast", "svg.fonttype": "none"}):
        figure.savefig(target, format=kind[1:], metadata=same.get(kind), dpi=120)


def _figure(layout: Layout) -> Any:
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(13, 8.5), layout="constrained")
    axes: Any = figure.subplots(2, 2)
    rows = "unknown" if layout.rows is None else f"{layout.rows - layout.deleted_rows:,}"
    figure.suptitle(
        f"{layout.uri} at version {layout.version}: {layout.files:,} files, {size_text(layout.bytes)}, {rows} rows",
        fontsize=12,
    )
    _draw_sizes(axes[0, 0], layout)
    _draw_partitions(axes[0, 1], layout)
    _draw_overlap(axes[1, 0], layout)
    _draw_versions(axes[1, 1], layout)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.title.set_fontsize(10)
        axis.tick_params(labelsize=8)
    return figure


def _draw_sizes(axis: Any, layout: Layout) -> None:
    labels = [f"< {size_text(size.below)}" for size in layout.sizes]
    axis.bar(labels, [size.files for size in layout.sizes], color=_BLUE)
    axis.set_title("files by size")
    axis.set_ylabel("files", fontsize=8)
    axis.tick_params(axis="x", rotation=45)


def _draw_partitions(axis: Any, layout: Layout) -> None:
    parts = layout.partitions[:_MOST][::-1]
    names = [part.name or "(not partitioned)" for part in parts]
    axis.barh(names, [part.bytes / (1 << 20) for part in parts], color=_GREEN)
    more = len(layout.partitions) - len(parts)
    axis.set_title("partitions by size" + (f" (and {more:,} smaller ones)" if more else ""))
    axis.set_xlabel("MiB", fontsize=8)


def _draw_overlap(axis: Any, layout: Layout) -> None:
    columns = layout.columns[:_MOST][::-1]
    colors = [_ORANGE if column.clustered else _GREY for column in columns]
    axis.barh([column.name for column in columns], [100 * column.share for column in columns], color=colors)
    axis.set_xlim(0, 100)
    axis.set_title("files whose bounds overlap, on average (orange: clustered by it)")
    axis.set_xlabel("% of files; less is better", fontsize=8)


def _draw_versions(axis: Any, layout: Layout) -> None:
    versions = [state.version for state in layout.versions]
    axis.plot(versions, [state.files for state in layout.versions], color=_BLUE, marker="o", markersize=3)
    axis.set_ylim(bottom=0)
    axis.set_title("files (blue) and deleted rows (orange) over versions")
    axis.set_ylabel("files", fontsize=8, color=_BLUE)
    axis.xaxis.get_major_locator().set_params(integer=True)
    other = axis.twinx()
    shares = [100 * state.deleted_rows / state.rows if state.rows else 0.0 for state in layout.versions]
    other.plot(versions, shares, color=_ORANGE, marker="o", markersize=3)
    other.set_ylim(0, max(5.0, *shares) if shares else 5.0)
    other.set_ylabel("% of stored rows", fontsize=8, color=_ORANGE)
    other.tick_params(labelsize=8)
    other.spines[["top"]].set_visible(False)
