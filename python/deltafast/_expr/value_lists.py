"""Long lists of constants, as `IN` has them: typed, read and cast as a whole instead of one node for each constant.

A literal costs about 35 microseconds on its way through syntax, types, casts and simplification, which is seconds for
the 100,000 keys that programs pass. Each function here handles only lists of one kind of constant whose results are
certain, and returns None for any other list; the caller then takes the way of single constants, which also makes the
error messages. Short lists always take that way.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from typing import TYPE_CHECKING, Any, Final, cast

from deltafast._expr import coercion, literals, types
from deltafast._expr.python_values import constant
from deltafast._expr.tree import Lit, TypedValues, Value
from deltafast._util.values import partition_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._expr.types import DataType

__all__ = [
    "LONG_LIST",
    "arrow_values",
    "column_values",
    "constants_of",
    "fold_values",
    "list_items",
    "literal_values",
    "python_values",
    "sql_values",
]

#: Number of constants from which a list is handled as a whole.
LONG_LIST: Final = 32
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO: Final = dt.timedelta(microseconds=1)
_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_INT_RANGE: Final = types.integral_range(types.INTEGER)
_LONG_RANGE: Final = types.integral_range(types.LONG)
#: Lists in SQL, from the parenthesis on: strings without escapes, whole numbers, decimals.
_STRINGS: Final = re.compile(r"\(\s*'[^'\\]*'(?:\s*,\s*'[^'\\]*')*\s*\)")
_NUMBERS: Final = re.compile(r"\(\s*-?[0-9]{1,18}(?:\s*,\s*-?[0-9]{1,18})*\s*\)")
_DECIMALS: Final = re.compile(r"\(\s*-?[0-9]{1,18}\.[0-9]{1,18}(?:\s*,\s*-?[0-9]{1,18}\.[0-9]{1,18})*\s*\)")
_STRING: Final = re.compile(r"'([^']*)'")
_TICKS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}


def constants_of(listed: TypedValues) -> list[Lit]:
    """Return each constant as a literal."""
    if len(listed.types) == 1:
        return [Lit(value, listed.types[0]) for value in listed.values]
    return [constant(value).lit for value in listed.values]


# --- reading -------------------------------------------------------------------------------------


def list_items(values: Any, column: DataType) -> list[Any]:
    """Return the items of an iterable; those of a NumPy array as Python values where they mean the same."""
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind and getattr(values, "ndim", 0) == 1 and hasattr(values, "tolist"):
        if kind in "US":
            return cast("list[Any]", values.tolist())
        if types.is_string(column):  # Python's numbers become strings there, NumPy's scalars stay numbers
            return list(values)
        if kind in "iub" or (kind == "f" and values.dtype.itemsize <= 8):  # noqa: PLR2004 - bytes of a double
            return cast("list[Any]", values.tolist())
        if kind == "M" and type(values).__module__ == "numpy":
            items = cast("list[Any]", values.astype("datetime64[us]").tolist())
            return list(values) if None in items else items
    return list(values)


def python_values(items: Sequence[Any]) -> TypedValues | None:  # noqa: PLR0911 - one line a type
    """Return Python values of one type, with the types that `constant` gives them."""
    kinds = set(map(type, items))
    if len(items) < LONG_LIST or len(kinds) != 1:
        return None
    kind: type = kinds.pop()
    if kind is int:
        return _integers(items)
    if kind is str:
        return TypedValues(tuple(items), (types.STRING,))
    if kind is bool:
        return TypedValues(tuple(items), (types.BOOLEAN,))
    if kind is bytes:
        return TypedValues(tuple(items), (types.BINARY,))
    if kind is float:
        return None if any(map(math.isnan, items)) else TypedValues(tuple(items), (types.DOUBLE,))
    if kind is dt.date:
        return TypedValues(tuple(day.toordinal() - _EPOCH_DAY for day in items), (types.DATE,))
    if kind is decimal.Decimal:
        found = [literals.decimal_literal(value) for value in items]
        present = [lit for lit in found if lit is not None]
        return _of_literals(present) if len(present) == len(found) else None
    if kind is dt.datetime:
        return _timestamps(items)
    return None


def _integers(items: Sequence[int]) -> TypedValues | None:
    low, high = min(items), max(items)
    if _INT_RANGE[0] <= low and high <= _INT_RANGE[1]:
        return TypedValues(tuple(items), (types.INTEGER,))
    if low < _LONG_RANGE[0] or high > _LONG_RANGE[1]:
        return None
    kinds = (types.INTEGER if _INT_RANGE[0] <= value <= _INT_RANGE[1] else types.LONG for value in items)
    return TypedValues(tuple(items), tuple(dict.fromkeys(kinds)))


def _timestamps(items: Sequence[dt.datetime]) -> TypedValues | None:
    has_zone = {timestamp.tzinfo is not None for timestamp in items}
    if len(has_zone) != 1:
        return None
    is_zoned = has_zone.pop()
    epoch = _EPOCH if is_zoned else _EPOCH.replace(tzinfo=None)
    try:
        micros = tuple((timestamp - epoch) // _MICRO for timestamp in items)
    except TypeError:  # a zone without an offset
        return None
    return TypedValues(micros, (types.timestamp_type(is_zoned),))


def _of_literals(found: Sequence[Lit]) -> TypedValues:
    return TypedValues(tuple(lit.value for lit in found), tuple(dict.fromkeys(lit.type for lit in found)))


def column_values(items: Sequence[Any], column: DataType) -> TypedValues | None:
    """Return Python values that are compared with a column, read as tuple filters read them.

    Strings are parsed as the column's type; other values become strings if the column has strings.
    """
    if (
        types.is_string(column)
        and items
        and type(items[0]) in (bool, int, float, decimal.Decimal, dt.date, dt.datetime)
    ):
        if len(items) < LONG_LIST or len(set(map(type, items))) != 1:
            return None
        return TypedValues(tuple(partition_text(value) for value in items), (types.STRING,))
    listed = python_values(items)
    if listed is None or listed.types != (types.STRING,) or types.is_string(column):
        return listed
    read = fold_values(listed, column, "UTC", exact=True)
    # A timestamp without a zone is in the session's zone: the binder parses the string again, in that zone.
    return None if read is None else listed if column == types.TIMESTAMP else TypedValues(read, (column,))


def literal_values(found: Sequence[Lit]) -> TypedValues | None:
    """Return literals of one kind."""
    kinds = {lit.type for lit in found}
    if len(found) < LONG_LIST or (len(kinds) > 1 and kinds != {types.INTEGER, types.LONG}):
        return None
    # NaN is the only value that differs from itself.
    return None if any(lit.value is None or lit.value != lit.value for lit in found) else _of_literals(found)


def sql_values(text: str, pos: int) -> tuple[TypedValues, int] | None:
    """Return the constants of the list whose parenthesis is at a position in SQL, and the position after the list."""
    match = _STRINGS.match(text, pos) or _NUMBERS.match(text, pos) or _DECIMALS.match(text, pos)
    if match is None:
        return None
    inside = match[0][1:-1]
    if match.re is _STRINGS:
        listed = python_values(_STRING.findall(inside))
    elif match.re is _NUMBERS:
        listed = python_values(list(map(int, inside.split(","))))
    else:
        listed = python_values([decimal.Decimal(number.strip()) for number in inside.split(",")])
    return None if listed is None else (listed, match.end())


def arrow_values(array: Any) -> TypedValues | None:
    """Return the values of a pyarrow array without nulls, with the types that single scalars have."""
    import pyarrow as pa

    kind = array.type
    if len(array) < LONG_LIST:
        return None
    if pa.types.is_timestamp(kind):
        ticks = cast("list[int]", array.cast(pa.int64()).to_pylist())
        if kind.unit == "ns":
            if any(tick % 1000 for tick in ticks):
                return None
            micros = [tick // 1000 for tick in ticks]
        else:
            times = _TICKS[kind.unit]
            micros = [tick * times for tick in ticks]
        return TypedValues(tuple(micros), (types.timestamp_type(kind.tz),))
    if pa.types.is_date32(kind):
        return TypedValues(tuple(array.cast(pa.int32()).to_pylist()), (types.DATE,))
    plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return python_values(array.to_pylist()) if any(test(kind) for test in (*plain, *text)) else None


# --- casts ---------------------------------------------------------------------------------------


def fold_values(listed: TypedValues, to: DataType, zone: str, *, exact: bool = False) -> tuple[Value, ...] | None:
    """Return the constants in another type, as `literals.fold_cast` does; None unless each can be cast."""
    if listed.types == (to,):
        return listed.values
    source = _exact_common_type(listed.types)
    if source is None:
        return None
    folded = literals.cast_values(listed.values, source, to, zone, exact=exact)
    return None if any(value is None for value in folded) else folded


def _exact_common_type(kinds: Sequence[DataType]) -> DataType | None:
    """Return the type that has all values of the types of a list; None if it would have to round some."""
    common = coercion.common(list(kinds), ansi=True)
    if isinstance(common, types.Decimal) and any(
        isinstance(t, types.Decimal) and t.scale > common.scale for t in kinds
    ):
        return None
    return common
