"""A picture of a table's layout, by matplotlib: sizes of files, partitions, bounds and their overlap, versions."""

from __future__ import annotations

import io
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from deltafast._display import size_text
from deltafast._layout.layout_data import LayoutData, Scale
from deltafast._libraries import names_missing
from deltafast.exceptions import InvalidArgumentError, printable

if TYPE_CHECKING:
    import os

    from deltafast._layout.layout_data import Ranges

__all__ = ["draw", "svg"]

_FORMATS = (".svg", ".png", ".pdf", ".html")
_BLUE, _ORANGE, _GREY, _GREEN = "#3b6fb6", "#d9822b", "#8a8f98", "#4f9d69"
_MOST = 20
#: Bars for which there is room even if there are fewer.
_LEAST_BARS = 4
#: Characters of a value on an axis.
_LONGEST = 18
#: Characters of a name.
_LONGEST_NAME = 60


@names_missing
def draw(layout: LayoutData, path: str | os.PathLike[str]) -> None:
    """Draw a layout.

    Args:
        layout: Result of `deltafast.layout.measure`.
        path: The file to write; its suffix `.svg`, `.png`, `.pdf` or `.html` selects the format.

    Raises:
        TypeError: The layout is not a `Layout`.
        InvalidArgumentError: The suffix is unknown, or the folder does not exist or cannot be written to.
        MissingLibraryError: matplotlib is not installed.

    Examples:
        >>> from deltafast import DeltaTable, write_deltalake
        >>> from deltafast.layout import measure
        >>> from deltafast.layout.picture import draw
        >>> write_deltalake("cities", {"id": [1, 2]})
        >>> draw(measure(DeltaTable("cities")), "cities.svg")
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _FORMATS:
        message = f"a picture ends in {', '.join(_FORMATS)}, not in {suffix or 'nothing'!r}"
        raise InvalidArgumentError(message)
    figure = _figure(layout)
    try:
        _write(layout, figure, target, suffix)
    except OSError as error:
        message = f"the picture {target} cannot be written: {error.strerror or error}"
        raise InvalidArgumentError(message, path=str(target)) from error


@names_missing
def svg(layout: LayoutData) -> str:
    """Return the picture as an SVG element.

    Raises:
        TypeError: The layout is not a `Layout`.
        MissingLibraryError: matplotlib is not installed.
    """
    return _svg_of(_figure(layout))


def _svg_of(figure: Any) -> str:
    text = io.StringIO()
    _save(figure, text, ".svg")
    picture = text.getvalue()
    return picture[picture.index("<svg") :]


def _write(layout: LayoutData, figure: Any, target: Path, suffix: str) -> None:
    if suffix != ".html":
        _save(figure, target, suffix)
        return
    title = escape(printable(f"{layout.name} at version {layout.version}"))
    page = f"<!doctype html><meta charset='utf-8'><title>{title}</title>{_svg_of(figure)}\n"
    target.write_text(page, encoding="utf-8")


def _save(figure: Any, target: Any, suffix: str) -> None:
    import matplotlib as mpl

    # Equal layouts produce equal files.
    same = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with cast("Any", mpl).rc_context({"svg.hashsalt": "deltafast", "svg.fonttype": "none"}):
        figure.savefig(target, format=suffix[1:], metadata=same.get(suffix), dpi=120)


def _figure(layout: LayoutData) -> Any:
    from matplotlib.figure import Figure

    if not isinstance(layout, LayoutData):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"the layout must be a result of deltafast.layout.measure, not a {type(layout).__name__}"
        raise TypeError(message)

    rows = 3 if layout.ranges else 2
    figure: Any = Figure(figsize=(13, 4 * rows + 0.5), layout="constrained")
    grid: Any = figure.add_gridspec(rows, 1)
    # Each row is a grid of its own, so that long labels in one take no room in another.
    sizes, partitions = _axes(grid, 0, 2)
    overlap, versions = _axes(grid, rows - 1, 2)
    ranges = _axes(grid, 1, len(layout.ranges)) if layout.ranges else []
    count = "unknown" if layout.rows is None else f"{layout.rows - layout.deleted_rows:,}"
    about = f"{layout.uri} at version {layout.version}: {layout.files:,} files, {size_text(layout.bytes)}, {count} rows"
    figure.suptitle(f"{_label(layout.name)}\n{printable(about)}", fontsize=12)
    _draw_sizes(sizes, layout)
    _draw_partitions(partitions, layout)
    for axis, of_column in zip(ranges, layout.ranges, strict=True):
        _draw_ranges(axis, of_column)
    _draw_overlap(overlap, layout)
    _draw_versions(versions, layout)
    for axis in (sizes, partitions, *ranges, overlap, versions):
        axis.spines[["top", "right"]].set_visible(False)
        axis.title.set_fontsize(10)
        axis.tick_params(labelsize=8)
    _fix_positions(figure)
    return figure


def _axes(grid: Any, row: int, count: int) -> list[Any]:
    return list(grid[row].subgridspec(1, count).subplots(squeeze=False)[0])


def _fix_positions(figure: Any) -> None:
    """Round the positions of the axes: those that the layout engine finds differ in their last digits each time."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axis in figure.axes:
        axis.set_position([round(part, 4) for part in axis.get_position().bounds])


def _draw_sizes(axis: Any, layout: LayoutData) -> None:
    labels = [f"{size_text(size.below // 2)} to {size_text(size.below)}" for size in layout.sizes]
    bars = axis.barh(labels, [size.files for size in layout.sizes], color=_BLUE)
    axis.bar_label(bars, [f" {size.files:,}" for size in layout.sizes], fontsize=8)
    axis.set_ylim(-0.6, max(len(labels), _LEAST_BARS) - 0.4)
    axis.set_title("files by size")
    axis.set_xlabel("files", fontsize=8)


def _draw_partitions(axis: Any, layout: LayoutData) -> None:
    parts = layout.partitions[:_MOST][::-1]
    names = [_label(part.name) or "(not partitioned)" for part in parts]
    bars = axis.barh(names, [part.bytes / (1 << 20) for part in parts], color=_GREEN)
    axis.bar_label(bars, [f" {part.files:,} files" for part in parts], fontsize=7, color=_GREY)
    axis.set_ylim(-0.6, max(len(parts), _LEAST_BARS) - 0.4)
    more = len(layout.partitions) - len(parts)
    axis.set_title("partitions by size" + (f" (and {more:,} smaller ones)" if more else ""))
    axis.set_xlabel("MiB", fontsize=8)


def _draw_ranges(axis: Any, ranges: Ranges) -> None:
    # A file of one value is still seen as a dot.
    axis.hlines(range(len(ranges.low)), ranges.low, ranges.high, color=_BLUE, linewidth=1.2)
    axis.scatter(ranges.low, range(len(ranges.low)), color=_BLUE, s=3)
    axis.set_title(f"values of {_label(ranges.name)} in each file")
    axis.set_ylabel("files", fontsize=8)
    axis.set_yticks([])
    if ranges.scale is Scale.TIME:
        axis.xaxis_date()
        axis.tick_params(axis="x", rotation=30)
    elif ranges.scale is Scale.RANK:
        ends = [0.0, max(ranges.high)] if max(ranges.high) else [0.0]
        axis.set_xticks(ends, [_label(text, _LONGEST) for text in (ranges.least, ranges.greatest)][: len(ends)])


def _label(name: str, longest: int = _LONGEST_NAME) -> str:
    """Return a name or value for the picture, shortened, so that it leaves room for the axes."""
    shown = printable(name)
    return shown if len(shown) <= longest else f"{shown[:longest]}…"


def _draw_overlap(axis: Any, layout: LayoutData) -> None:
    columns = layout.columns[:_MOST][::-1]
    for clustered, color, label in ((True, _ORANGE, "clustering column"), (False, _GREY, "other column")):
        shares = [100 * column.share if column.clustered is clustered else 0.0 for column in columns]
        if any(shares):
            axis.barh([_label(column.name) for column in columns], shares, color=color, label=label)
    axis.set_xlim(0, 100)
    axis.set_title("files whose bounds overlap those of a file")
    axis.set_xlabel("% of files, on average; less is better", fontsize=8)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=8, frameon=False)


def _draw_versions(axis: Any, layout: LayoutData) -> None:
    versions = [state.version for state in layout.versions]
    (files,) = axis.plot(versions, [state.files for state in layout.versions], color=_BLUE, marker="o", markersize=3)
    axis.set_ylim(bottom=0)
    axis.set_title("files and deleted rows over versions")
    axis.set_xlabel("version", fontsize=8)
    axis.set_ylabel("files", fontsize=8, color=_BLUE)
    axis.xaxis.get_major_locator().set_params(integer=True)
    other = axis.twinx()
    shares = [100 * state.deleted_rows / state.rows if state.rows else 0.0 for state in layout.versions]
    (deleted,) = other.plot(versions, shares, color=_ORANGE, marker="o", markersize=3)
    other.set_ylim(0, max(5.0, *shares) if shares else 5.0)
    other.set_ylabel("% of stored rows", fontsize=8, color=_ORANGE)
    other.tick_params(labelsize=8)
    other.spines[["top"]].set_visible(False)
    axis.legend([files, deleted], ["files", "rows in deletion vectors"], fontsize=8, frameon=False)
