"""Output formats: tables and lines for people, JSON for machines."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from deltafast.layout.picture import size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deltafast.doctor import Finding
    from deltafast.layout import Layout

__all__ = ["bars", "console", "facts", "findings", "layout", "machine", "rows", "text"]

_WIDE = 100
#: Width of a line if the output is not a terminal.
_PIPED = 240
_BAR = 30


def console() -> Console:
    """Return a console on the current standard output."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else _PIPED)


def machine(value: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(plain(value), ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:  # noqa: PLR0911 - one line a kind
    """Convert an Arrow value to JSON: timestamps as ISO 8601, decimals as strings, bytes in Base64."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (Decimal, dt.timedelta)):
        return str(value)
    return value


def text(value: Any) -> str:
    """Format a value for a cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(plain(value), ensure_ascii=False)
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(" ", "seconds")
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def rows(names: Sequence[str], values: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
    """Print a table; numbers are right-aligned."""
    kept = [list(row) for row in values]
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", header_style="bold cyan")
    for place, name in enumerate(names):
        column = [row[place] for row in kept if row[place] is not None]
        number = bool(column) and all(isinstance(value, (int, float, Decimal)) for value in column)
        table.add_column(escape(name), justify="right" if number else "left", overflow="fold", max_width=_WIDE)
    for row in kept:
        table.add_row(*(escape(text(value)) for value in row))
    console().print(table)


def facts(values: Mapping[str, Any], *, title: str | None = None) -> None:
    """Print names and values, one pair per line."""
    table = Table(box=None, show_header=False, title=title, title_justify="left", title_style="bold")
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(escape(name), escape(text(value)))
    console().print(table)


def findings(found: Sequence[Finding], uri: str) -> None:
    """Print findings with their remedies."""
    out = console()
    if not found:
        out.print(f"[green]✓[/green] {escape(uri)} is well", soft_wrap=True)
    for finding in found:
        mark = "[red]✗ problem[/red]" if finding.level == "problem" else "[yellow]! advice[/yellow]"
        out.print(f"{mark} [bold]{finding.what}[/bold]: {escape(finding.message)}", soft_wrap=True)
        out.print(f"    [cyan]→[/cyan] {escape(finding.remedy)}", soft_wrap=True)


def bars(title: str, values: Sequence[tuple[str, float, str]], *, most: float | None = None) -> None:
    """Print a bar chart of (name, value, note); `most` is the value of a full bar."""
    longest = most or max((value for _, value, _ in values), default=0) or 1
    table = Table(box=None, show_header=False, title=title, title_justify="left", title_style="bold", padding=(0, 1))
    for name, value, note in values:
        table.add_row(escape(name), f"[blue]{'█' * max(1, round(_BAR * value / longest))}[/blue]", escape(note))
    console().print(table)


def layout(found: Layout) -> None:
    """Print a layout."""
    stored = "unknown" if found.rows is None else f"{found.rows:,}"
    facts(
        {
            "table": found.uri,
            "version": found.version,
            "files": f"{found.files:,}",
            "size": size_text(found.bytes),
            "rows stored": stored,
            "rows deleted by vectors": f"{found.deleted_rows:,}, in {found.files_with_vectors:,} files",
        }
    )
    bars(
        "\nfiles by size",
        [
            (f"< {size_text(size.below)}", size.files, f"{size.files:,}  {size_text(size.bytes)}")
            for size in found.sizes
        ],
    )
    shown = found.partitions[:_SHOWN]
    title = "\npartitions by size" + (
        f" (the first {_SHOWN} of {len(found.partitions):,})" if found.partitions[_SHOWN:] else ""
    )
    bars(
        title,
        [(part.name or "(not partitioned)", part.bytes, f"{part.files:,}  {size_text(part.bytes)}") for part in shown],
    )
    columns = [
        (
            f"{column.name}{' (clustered)' if column.clustered else ''}",
            column.share,
            f"{column.share:.0%}  {column.depth:.1f} of {column.files:,}, at most {column.max_depth:,}",
        )
        for column in found.columns[:_SHOWN]
    ]
    bars("\nfiles whose bounds overlap, on average (less is better)", columns, most=1.0)
    states = [
        (f"{state.version}  {state.operation or ''}", state.files, f"{state.files:,}  {size_text(state.bytes)}")
        for state in found.versions
    ]
    bars("\nfiles over versions", states)


_SHOWN = 20
