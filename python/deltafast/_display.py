"""HTML for notebooks: tables, schemas, histories and details show themselves (`_repr_html_`)."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any, cast

from deltafast._types import fields_within, is_struct, type_text
from deltafast.exceptions import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["DetailDict", "HistoryList", "pairs_html", "schema_html", "size_text", "summary_html", "table_html"]

#: Rows of a history, and fields of a schema, that are shown.
_ROWS = 50


class HistoryList(list[dict[str, Any]]):
    """The commits of a table, newest first; a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return history_html(self)


class DetailDict(dict[str, Any]):
    """The details of a table; a dict that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return pairs_html("", self)


def summary_html(
    name: str, facts: Mapping[str, object], schema: Mapping[str, Any], commits: Sequence[dict[str, Any]]
) -> str:
    """Return the HTML of a table: its facts, its schema and its last commits."""
    return pairs_html(name, facts) + schema_html(schema) + history_html(commits)


def schema_html(schema: Mapping[str, Any]) -> str:
    """Return the HTML of a schema's fields, with those of structs below them."""
    rows = [
        (".".join(path), _type_text(field["type"]), field["nullable"], field["metadata"].get("comment", ""))
        for path, field in fields_within(schema, in_parts=False)
    ]
    return table_html("Schema", ("column", "type", "nullable", "comment"), rows)


def history_html(commits: Sequence[dict[str, Any]]) -> str:
    """Return the HTML of commits."""
    rows = [
        (
            commit.get("version"),
            _time(commit.get("timestamp")),
            commit.get("operation"),
            _pairs(commit.get("operationParameters")),
            _pairs(commit.get("operationMetrics")),
        )
        for commit in commits[: _ROWS + 1]
    ]
    return table_html("History", ("version", "time", "operation", "parameters", "metrics"), rows, len(commits))


def pairs_html(title: str, facts: Mapping[str, object]) -> str:
    """Return the HTML of names and values."""
    return table_html(title, (), [(name, _value(value)) for name, value in facts.items()])


def size_text(count: float) -> str:
    """Return a number of bytes with a unit: `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:  # noqa: PLR2004
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"  # noqa: PLR2004
        count /= 1024
    return f"{count:.1f} TiB"


def _type_text(of: Any) -> str:
    """Return a type in the notation of SQL; the fields of a struct have rows of their own."""
    if is_struct(of):
        return "struct"
    return type_text(of, str, lambda field, text: f"{field['name']}: {text}")


def _value(value: object) -> object:
    match value:
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S %Z}"
        case dict():
            return _pairs(cast("dict[str, object]", value))
        case list():
            return ", ".join(map(str, cast("list[object]", value)))
        case None:
            return ""
        case _:
            return value


def _pairs(values: Mapping[str, object] | None) -> str:
    return ", ".join(f"{name}: {value}" for name, value in (values or {}).items())


def _time(timestamp: object) -> str:
    if not isinstance(timestamp, int):
        return ""
    return f"{datetime.fromtimestamp(timestamp / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def table_html(title: str, head: Sequence[str], rows: Sequence[Sequence[object]], count: int | None = None) -> str:
    """Return an HTML table of at most `_ROWS` rows; `count` is the number of all rows."""
    parts = ["<table>"]
    if title:
        parts.append(f"<caption style='text-align:left;caption-side:top'><b>{escape(printable(title))}</b></caption>")
    if head:
        parts.append(_row("th", head))
    parts += [_row("td", row) for row in rows[:_ROWS]]
    more = (len(rows) if count is None else count) - _ROWS
    if more > 0:
        parts.append(f"<tr><td colspan='{max(len(head), 2)}'>and {more:,} more</td></tr>")
    return "".join([*parts, "</table>"])


def _row(tag: str, values: Sequence[object]) -> str:
    cells = (f"<{tag} style='text-align:left'>{_cell(value)}</{tag}>" for value in values)
    return f"<tr>{''.join(cells)}</tr>"


def _cell(value: object) -> str:
    return escape(printable(str(value), keep="\n\t"))
