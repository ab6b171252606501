"""A filter on a base column -> more conjuncts on the generated columns made from it.

`date GENERATED ALWAYS AS (CAST(ts AS DATE))` with `ts >= X` allows `date >= ...` as well, and that one prunes
partitions. The conjuncts are implied by the filter, so adding them keeps every row.

A generated column of a `TIMESTAMP` was computed in the *writer's* session zone, which the log does not record. Every
zone is within 16 hours of UTC (historical ones included), so the bounds are widened by 16 hours; the reference
implementation uses the reader's zone and can lose rows. Columns of dates and zone-less timestamps get exact bounds.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltafast._expr import literals, read_schema, types
from deltafast._expr.binder import Binder
from deltafast._expr.context import ExpressionContext
from deltafast._expr.parser import parse
from deltafast._expr.simplify import simplify
from deltafast._expr.stored import generation_sql
from deltafast._expr.tree import Bound, Call, Cast, Col, In, Lit, Node, SessionCall, call, joined
from deltafast._expr.types import DATE, INTEGER, STRING, TIMESTAMP, TIMESTAMP_NTZ
from deltafast._util.dialect import Dialect
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deltafast._core_types import BoundTree

__all__ = ["add_generated_partition_filters"]

_ZONE_SPREAD: Final = 16 * 3_600_000_000
_DAY: Final = literals.MICROS_PER_DAY
_MIRROR: Final = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PARTS: Final = frozenset(("year", "month", "day", "hour"))
_STRICT: Final = _PARTS | {"trunc", "date_trunc", "date_format"}
# Patterns whose formatted strings sort like their timestamps.
_ORDERED: Final = frozenset(("yyyy", "yyyy-MM", "yyyy-MM-dd", "yyyyMM", "yyyyMMdd", "yyyy-MM-dd-HH", "yyyy-MM-dd HH"))
_EPOCH: Final = dt.date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class _Generated:
    column: Col
    expression: Node
    base: Col


@dataclass(frozen=True, slots=True)
class _Range:
    """The condition of the filter on a base column: bounds, inclusive or not, or null."""

    base: Col
    low: Lit | None = None
    high: Lit | None = None
    null: bool = False


def add_generated_partition_filters(
    tree: BoundTree | Bound, schema: str | dict[str, Any] | types.Struct, partition_columns: Iterable[str] | None = None
) -> BoundTree:
    """Add what a filter implies for generated columns.

    Args:
        tree: A bound predicate.
        schema: The table's schema with its `delta.generationExpression` metadata.
        partition_columns: Only these columns get conjuncts; all generated ones by default.

    Returns:
        The tree, with additional conjuncts if the filter implies any.
    """
    bound = Bound.from_tree(tree) if isinstance(tree, dict) else tree
    columns = _generated(read_schema(schema), partition_columns)
    if not columns:
        return bound.to_tree()
    added = list(_implied(bound.expr, columns))
    if not added:
        return bound.to_tree()
    node = joined("and", [bound.expr, *dict.fromkeys(added)])
    return Bound(simplify(node, bound.zone), bound.ansi, bound.zone).to_tree()


def _generated(schema: types.Struct, wanted: Iterable[str] | None) -> list[_Generated]:
    names = None if wanted is None else {n.lower() for n in wanted}
    out: list[_Generated] = []
    for field in schema.fields:
        if field.generation is None or (names is not None and field.name.lower() not in names):
            continue
        try:
            # The zone does not matter: only the structure of the expression is inspected.
            sql = generation_sql(field.generation, schema)
            node = Binder(schema, sql, ExpressionContext()).bind(parse(sql, dialect=Dialect.SPARK))
        except InvalidArgumentError:
            continue  # an expression outside the table of functions gives no filters, and breaks none
        node = _bare(simplify(node, "UTC"), field.type)
        bases = set(_columns(node))
        if len(bases) == 1:
            out.append(_Generated(Col((field.name,), field.type), node, bases.pop()))
    return out


def _bare(node: Node, kind: types.DataType) -> Node:
    """Drop a cast to the column's own type around a call: `CAST(year(ts) AS INT)`."""
    return node.arg if isinstance(node, Cast) and isinstance(node.arg, Call) and node.arg.type == kind else node


def _columns(node: Node) -> Iterator[Col]:
    match node:
        case Col():
            yield node
        case Call(args=args) | SessionCall(args=args):
            for arg in args:
                yield from _columns(arg)
        case Cast(arg=arg) | In(arg=arg):
            yield from _columns(arg)
        case Lit():
            return


def _implied(node: Node, columns: list[_Generated]) -> Iterator[Node]:
    """Return the conjuncts that a filter implies; of an OR only those that both sides imply."""
    match node:
        case Call(f="and", args=args):
            known = [list(_implied(a, columns)) for a in args]
            for found in known:
                yield from found
        case Call(f="or", args=args):
            sides = [list(_implied(a, columns)) for a in args]
            if all(sides):
                yield joined("or", [joined("and", list(dict.fromkeys(s))) for s in sides])
        case _:
            span = _range(node)
            if span is not None:
                for g in columns:
                    if g.base == span.base:
                        yield from _bounds(g, span)
                yield from _parts(span, columns)


def _range(node: Node) -> _Range | None:
    match node:
        case Call(f="isnull", args=(Col() as base,)):
            return _Range(base, null=True)
        case Call(f=f, args=(Col() as base, Lit(value=value) as lit)) if f in _MIRROR and value is not None:
            return _compared(f, base, lit)
        case Call(f=f, args=(Lit(value=value) as lit, Col() as base)) if f in _MIRROR and value is not None:
            return _compared(_MIRROR[f], base, lit)
        case In(arg=Col() as base, values=values):
            present = [v for v in values if isinstance(v, (int, str)) and not isinstance(v, bool)]
            if present and len(present) == sum(v is not None for v in values):
                low, high = min(present, key=_order), max(present, key=_order)
                return _Range(base, Lit(low, base.type), Lit(high, base.type))
            return None
        case _:
            return None


def _order(value: int | str) -> bytes | int:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def _compared(op: str, base: Col, lit: Lit) -> _Range:
    if op in ("=", "<=>"):
        return _Range(base, lit, lit)
    return _Range(base, low=lit) if op in (">", ">=") else _Range(base, high=lit)


def _bounds(g: _Generated, span: _Range) -> Iterator[Node]:
    """Return bounds of a generated column whose expression is monotonically increasing in its base."""
    if span.null:
        if _is_strict(g):
            yield call("isnull", g.column)
        return
    for lit, op in ((span.low, ">="), (span.high, "<=")):
        if lit is None:
            continue
        value = _image(g.expression, g.base, lit, upper=op == "<=")
        if value is None or value.type != g.column.type:
            continue
        if span.low == span.high and not _widened(g.base) and op == ">=":
            yield call("=", g.column, value)
            return
        yield call(op, g.column, value)


def _is_strict(g: _Generated) -> bool:
    """Whether the expression is null when its base is."""
    match g.expression:
        case Col():
            return True
        case Call(f="substring" | "left", args=(Col() as col, *_)):
            return col == g.base
        case Call(f=f) if f in _STRICT:
            return _is_time_of(g.expression, g.base)
        case Cast():
            return _is_time_of(g.expression, g.base)
        case _:
            return False


def _widened(base: Col) -> bool:
    return base.type == TIMESTAMP


def _local(lit: Lit, *, upper: bool) -> int | None:
    """Return a base value as local microseconds; for an instant, those of the outermost zone."""
    if not isinstance(lit.value, int):
        return None
    if lit.type == DATE:
        return lit.value * _DAY
    if lit.type == TIMESTAMP_NTZ:
        return lit.value
    if lit.type == TIMESTAMP:
        return lit.value + (_ZONE_SPREAD if upper else -_ZONE_SPREAD)
    return None


def _image(node: Node, base: Col, lit: Lit, *, upper: bool) -> Lit | None:  # noqa: C901, PLR0911, PLR0912 - one line a form
    """The generated value at one end of the base's range, or None for an expression that does not keep order."""
    match node:
        case Col() if node == base:
            return lit
        case Call(f="substring", args=(Col() as col, Lit(value=1), Lit(value=int() as length))) if col == base:
            return Lit(lit.value[:length], STRING) if isinstance(lit.value, str) and length >= 0 else None
        case Call(f="left", args=(Col() as col, Lit(value=int() as length))) if col == base:
            return Lit(lit.value[:length], STRING) if isinstance(lit.value, str) and length >= 0 else None
        case _:
            pass
    local = _local(lit, upper=upper)
    if local is None or not _is_time_of(node, base):
        return None
    day = local // _DAY
    date = literals.calendar_date(day)
    match node:
        case Cast(type=kind) if kind == DATE:
            return Lit(day, DATE)
        case _ if date is None:
            return None
        case Call(f="year"):
            return Lit(date.year, INTEGER)
        case Call(f="trunc", args=(_, Lit(value=str() as unit))):
            truncated = _truncate(unit, date, day * _DAY)
            return None if truncated is None else Lit(truncated // _DAY, DATE)
        case Call(f="date_trunc", args=(Lit(value=str() as unit), _)):
            # The value is an instant again: truncated in some zone, so it is off by the offset of that zone.
            truncated = _truncate(unit, date, local)
            if truncated is None:
                return None
            return Lit(truncated + (_ZONE_SPREAD if upper else -_ZONE_SPREAD), TIMESTAMP)
        case Call(f="date_format", args=(_, Lit(value=str() as pattern))):
            return Lit(_format(pattern, date, local), STRING) if pattern in _ORDERED else None
        case _:
            return None


def _is_time_of(node: Node, base: Col) -> bool:
    """Whether a call reads the base column directly, or through the casts between dates and timestamps."""
    arg: Node
    match node:
        case Cast(arg=inner):
            arg = inner
        case Call(f="date_trunc", args=(_, inner)):
            arg = inner
        case Call(args=(inner, *_)):
            arg = inner
        case _:
            return False
    while isinstance(arg, Cast) and types.is_datetime(arg.type):
        arg = arg.arg
    return arg == base


def _truncate(unit: str, date: dt.date, local: int) -> int | None:
    month = date.month
    unit = unit.upper()
    if unit in ("YEAR", "YYYY", "YY"):
        month = 1
    elif unit == "QUARTER":
        month -= (month - 1) % 3
    elif unit == "WEEK":
        days = local // _DAY
        return (days - (days + 3) % 7) * _DAY
    elif unit not in ("MONTH", "MM", "MON"):
        size = {"DAY": _DAY, "DD": _DAY, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}.get(unit)
        return None if size is None else local - local % size
    return (dt.date(date.year, month, 1).toordinal() - _EPOCH) * _DAY


def _format(pattern: str, date: dt.date, local: int) -> str:
    text = pattern.replace("yyyy", f"{date.year:04d}").replace("MM", f"{date.month:02d}")
    text = text.replace("dd", f"{date.day:02d}")
    return text.replace("HH", f"{local % _DAY // 3_600_000_000:02d}")


# --- year, month, day and hour as columns of their own


def _parts(span: _Range, columns: list[_Generated]) -> Iterator[Node]:
    """Bounds over (year, month, day, hour) read as one number, most significant first."""
    found: dict[str, Col] = {}
    for g in columns:
        part = g.expression.f if isinstance(g.expression, Call) else ""
        if part in _PARTS and g.base == span.base and _is_time_of(g.expression, g.base):
            found.setdefault(part, g.column)
    order: list[str] = []
    for part in ("year", "month", "day", "hour"):
        if part not in found:
            break
        order.append(part)
    if len(order) < 2 or span.null:  # noqa: PLR2004 - the year alone has bounds of its own already
        return
    for lit, op in ((span.low, ">"), (span.high, "<")):
        if lit is None:
            continue
        local = _local(lit, upper=op == "<")
        if local is None:
            continue
        date = literals.calendar_date(local // _DAY)
        if date is None:
            continue
        values = {"year": date.year, "month": date.month, "day": date.day, "hour": local % _DAY // 3_600_000_000}
        yield _lexicographic([(found[p], values[p]) for p in order], op)


def _lexicographic(parts: list[tuple[Col, int]], op: str) -> Node:
    """`(a, b, c) >= (x, y, z)` as `a > x OR (a = x AND (b > y OR (b = y AND c >= z)))`."""
    column, value = parts[0]
    lit = Lit(value, INTEGER)
    if len(parts) == 1:
        return call(op + "=", column, lit)
    rest = _lexicographic(parts[1:], op)
    return call("or", call(op, column, lit), call("and", call("=", column, lit), rest))
