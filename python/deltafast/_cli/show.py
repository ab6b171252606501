"""Output formats: tables and lines for people, JSON for machines.

On a terminal, rich draws the tables; without rich, their columns are aligned. Elsewhere, for other programs, values are
separated by tabs and not padded.

Text comes from tables, paths and servers, which may hold characters that a terminal obeys. Everything that is printed
passes `_print`, and before it `printable` or, for JSON, `json_text`, which writes such characters as JSON's escapes.
Characters that the encoding of the output lacks are escapes, too: `escaping_output` sets this for all commands.
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import io
import json
import math
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from deltafast._display import size_text
from deltafast._doctor.finding import FindingLevel
from deltafast._libraries import is_installed
from deltafast.exceptions import printable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from rich.console import Console

    from deltafast.doctor import Finding
    from deltafast.layout import Layout

__all__ = ["bars", "cells", "escaping_output", "facts", "findings", "json_text", "layout", "line", "lines", "machine"]
__all__ += ["plain", "problem", "rows", "text"]

_WIDE = 100
_BAR = 30
#: Escape sequences of terminals.
_COLORS = {"green": 32, "red": 31, "yellow": 33}


@contextlib.contextmanager
def escaping_output() -> Generator[None]:
    r"""Write characters that the encoding of an output lacks as escapes, as `\u4e2d`, instead of raising an error.

    Such encodings are those of old consoles (cp1252), of `LC_ALL=C` and of `PYTHONIOENCODING`. On return the streams
    handle errors as before, since a program may call the command line, too.
    """
    streams: list[Any] = [stream for stream in (sys.stdout, sys.stderr) if isinstance(stream, io.TextIOWrapper)]
    handlers = [stream.errors for stream in streams]
    for stream in streams:
        stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        for stream, errors in zip(streams, handlers, strict=True):
            # Setting it flushes, which fails if the reader of a pipe is gone or the stream is closed.
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors=errors)


def _is_encodable(shown: str) -> bool:
    """Return whether the encoding of standard output has all characters."""
    try:
        shown.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _symbol(drawn: str, plain_text: str) -> str:
    """Return a symbol of our own, or its substitute where an escape would stand for it."""
    return drawn if _is_encodable(drawn) else plain_text


def line(message: str, *, err: bool = False) -> None:
    """Print a line, on standard error if asked for."""
    _print(printable(message), err=err)


def lines(block: str) -> None:
    """Print text of several lines."""
    _print(printable(block, keep="\n"))


def cells(values: Iterable[str]) -> None:
    """Print a line of cells, separated by tabs."""
    _print("\t".join(map(_cell, values)))


def _cell(value: str) -> str:
    """Return a value for a cell of a line."""
    return printable(value.replace("\t", " ").replace("\n", " "))


def problem(kind: str, color: str, message: str) -> None:
    """Print a line on standard error that begins with a colored word."""
    _print(f"{_colored(kind, color, sys.stderr)} {printable(' '.join(message.split()))}", err=True)


def _print(shown: str, *, err: bool = False) -> None:
    """Print what was made printable; only our own colors are control characters in it."""
    print(shown, file=sys.stderr if err else sys.stdout)


def _colored(words: str, color: str, stream: Any) -> str:
    return f"\033[{_COLORS[color]}m{words}\033[0m" if stream.isatty() else words


def _console() -> Console | None:
    """Return a console of rich on a terminal; None if the output is no terminal, or if rich is not installed."""
    if not sys.stdout.isatty() or not is_installed("rich"):
        return None
    from rich.console import Console

    return Console(highlight=False)


def _plain(rows_of_cells: Iterable[Sequence[str]], title: str | None = None) -> None:
    """Print lines of cells: aligned on a terminal, else separated by tabs."""
    table = [list(map(_cell, row)) for row in rows_of_cells]
    if title:
        lines(title)
    if not sys.stdout.isatty():
        for row in table:
            _print("\t".join(row))
        return
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        _print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _drawn(value: str) -> str:
    """Return a value for a cell that rich draws, which may have several lines."""
    from rich.markup import escape

    return escape(printable(value, keep="\t\n"))


def machine(value: Any) -> None:
    """Print one JSON document."""
    document = json_text(value)
    # `escaping_output` would write escapes of Python, which JSON does not have.
    _print(document if _is_encodable(document) else json_text(value, only_ascii=True))


def json_text(value: Any, *, only_ascii: bool = False) -> str:
    """Return JSON in one line; characters that a terminal obeys or hides are escapes, which keep them.

    Args:
        value: The value.
        only_ascii: Whether all characters outside ASCII are escapes.
    """
    document = json.dumps(plain(value), ensure_ascii=only_ascii, allow_nan=False)
    if document.isprintable():
        return document
    # Such characters stand only in strings, where JSON takes an escape for each.
    return "".join(
        character if printable(character) == character else json.dumps(character)[1:-1] for character in document
    )


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
    console = _console()
    if console is None:
        _plain([list(names), *([text(value) for value in row] for row in kept)], title)
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", header_style="bold cyan")
    for place, name in enumerate(names):
        column = [row[place] for row in kept if row[place] is not None]
        number = bool(column) and all(isinstance(value, (int, float, Decimal)) for value in column)
        table.add_column(_drawn(name), justify="right" if number else "left", overflow="fold", max_width=_WIDE)
    for row in kept:
        table.add_row(*(_drawn(text(value)) for value in row))
    console.print(table)


def facts(values: Mapping[str, Any], *, title: str | None = None) -> None:
    """Print names and values, one pair per line."""
    console = _console()
    if console is None:
        _plain([(name, text(value)) for name, value in values.items()], title)
        return
    from rich.table import Table

    table = Table(box=None, show_header=False, title=title, title_justify="left", title_style="bold")
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(_drawn(name), _drawn(text(value)))
    console.print(table)


def findings(found: Sequence[Finding], uri: str) -> None:
    """Print findings with their remedies."""
    out = sys.stdout
    if not found:
        _print(f"{_colored(_symbol('✓', 'ok:'), 'green', out)} {printable(uri)} is well")
    for finding in found:
        problem_mark = f"{_symbol('✗', '!!')} problem"
        mark, color = (problem_mark, "red") if finding.level is FindingLevel.PROBLEM else ("! advice", "yellow")
        _print(f"{_colored(mark, color, out)} {printable(f'{finding.what}: {finding.message}')}")
        line(f"    {_symbol('→', '->')} {finding.remedy}")


def bars(title: str, values: Sequence[tuple[str, float, str]], *, most: float | None = None) -> None:
    """Print a bar chart of (name, value, note); `most` is the value of a full bar."""
    longest = most or max((value for _, value, _ in values), default=0) or 1
    block = _symbol("█", "#")
    drawn = [(name, block * max(1, round(_BAR * value / longest)), note) for name, value, note in values]
    console = _console()
    if console is None:
        _plain(drawn, title)
        return
    from rich.table import Table

    table = Table(box=None, show_header=False, title=title, title_justify="left", title_style="bold", padding=(0, 1))
    for name, bar, note in drawn:
        table.add_row(_drawn(name), f"[blue]{bar}[/blue]", _drawn(note))
    console.print(table)


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
