"""A `pyarrow.compute.Expression` -> syntax.

pyarrow does not expose the tree, but an expression pickles to an Arrow file whose schema metadata lists the nodes in
prefix order (`call`, `field_ref`, `literal`, `options`, `end`) and whose columns have the constants. This module reads
that file; the metadata has repeated keys, which pyarrow's dictionary loses, so its flatbuffer is read directly.

Where Arrow's semantics differ from Spark's, they are preserved: NaN is neither greater than nor equal to anything, and
`is_in` is never null.

Rejected: Substrait (`to_substrait`), which cannot express `is_in` or `is_null` with options, and the printed form, in
which strings are ambiguous.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Final, cast

from deltafast._expr import types
from deltafast._expr.dnf import nan_with_value, null_or, without_nan
from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._expr.python_values import constant
from deltafast._expr.syntax import (
    Binary,
    CastTo,
    Constant,
    Func,
    InList,
    InValues,
    Like,
    LikeKind,
    Logical,
    Name,
    Syntax,
    Test,
    TestKind,
    Unary,
)
from deltafast._expr.tree import Lit
from deltafast._expr.value_lists import arrow_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltafast._expr.binder import Binder

__all__ = ["from_arrow"]

MAX_DEPTH: Final = 200
_COMPARE: Final = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_LOGIC: Final = {"and_kleene": "and", "or_kleene": "or"}
_TEXT: Final = {"starts_with": "startswith", "ends_with": "endswith", "match_substring": "contains"}


def from_arrow(expression: object, binder: Binder) -> Syntax:
    """Translate a pyarrow expression.

    Raises:
        UnsupportedExpressionError: The expression calls a function without an exact equivalent here.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(expression, pc.Expression):
        msg = f"a pyarrow {type(expression).__name__} is not a predicate; pass a pyarrow.compute expression"
        raise UnsupportedExpressionError(msg)
    buffer = cast("Any", expression).__reduce__()[1][0]
    reader = pa.ipc.open_file(buffer)
    batch = reader.get_batch(0) if reader.num_record_batches else None
    nodes = _metadata(reader.schema.serialize().to_pybytes())
    return _Translator(nodes, batch, binder).run()


class _Translator:
    def __init__(self, nodes: list[tuple[str, str]], batch: Any, binder: Binder) -> None:
        self.nodes = nodes
        self.batch = batch
        self.binder = binder
        self.at = 0
        self.depth = 0

    def run(self) -> Syntax:
        node = self.node()
        if self.at != len(self.nodes):
            raise _unreadable()
        return node

    def next(self) -> tuple[str, str]:
        if self.at >= len(self.nodes):
            raise _unreadable()
        self.at += 1
        return self.nodes[self.at - 1]

    def node(self) -> Syntax:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            msg = f"the pyarrow expression nests more than {MAX_DEPTH} levels deep; use isin() for long lists"
            raise UnsupportedExpressionError(msg)
        key, value = self.next()
        if key == "literal":
            found: Syntax = _literal(self.scalar(value))
        elif key == "field_ref":
            found = Name((value,))
        elif key == "nested_field_ref":
            found = Name(tuple(self.nested(int(value))))
        elif key == "call":
            found = self.call(value)
        else:
            raise _unreadable()
        self.depth -= 1
        return found

    def nested(self, count: int) -> list[str]:
        parts: list[str] = []
        for _ in range(count):
            key, value = self.next()
            if key != "field_ref":
                raise _unreadable()
            parts.append(value)
        return parts

    def scalar(self, column: str) -> Any:
        if self.batch is None or not column.isdigit() or int(column) >= self.batch.num_columns:
            raise _unreadable()
        return self.batch.column(int(column))[0]

    def call(self, name: str) -> Syntax:
        args: list[Syntax] = []
        options: dict[str, Any] = {}
        while self.at < len(self.nodes):
            key, value = self.nodes[self.at]
            if key == "end":
                self.at += 1
                return self.function(name, args, options)
            if key == "options":
                self.at += 1
                options = _options(self.scalar(value))
            else:
                args.append(self.node())
        raise _unreadable()

    def function(self, name: str, args: list[Syntax], options: dict[str, Any]) -> Syntax:  # noqa: C901, PLR0911
        if name in _COMPARE:
            return self.compare(_COMPARE[name], args[0], args[1])
        if name in _LOGIC:
            return Logical(_LOGIC[name], tuple(args))
        if name == "invert":
            return Unary("not", args[0])
        if name == "is_valid":
            return Unary("not", Test(TestKind.NULL, args[0]))
        if name == "is_null":
            missing = Test(TestKind.NULL, args[0])
            if options.get("nan_is_null") and self.floating(args[0]):
                return Logical("or", (missing, Func("isnan", (args[0],))))
            return missing
        if name == "is_nan":
            return null_or(args[0], Func("isnan", (args[0],)))
        if name == "is_in":
            return self.membership(args[0], options)
        if name in _TEXT and not options.get("ignore_case"):
            return Func(_TEXT[name], (args[0], _text(options.get("pattern"))))
        if name == "match_like" and not options.get("ignore_case"):
            return Like(LikeKind.LIKE, args[0], (_text(options.get("pattern")),))
        msg = f"the pyarrow function {name}() cannot be evaluated here; filter the result with it, or write SQL text"
        raise UnsupportedExpressionError(msg)

    def compare(self, op: str, left: Syntax, right: Syntax) -> Syntax:
        kinds = [self.binder.bind(side).type for side in (left, right)]
        if types.VOID not in kinds and types.is_string(kinds[0]) != types.is_string(kinds[1]):
            msg = (
                f"pyarrow does not compare {types.sql_name(kinds[0])} with {types.sql_name(kinds[1])}; cast one of them"
            )
            raise UnsupportedExpressionError(msg)
        if op in ("<", "<="):
            # Swapped, so that the side that may be NaN is always the left one.
            op, left, right, kinds = (">" if op == "<" else ">="), right, left, kinds[::-1]
        if op in ("=", "!=") and all(k in (types.FLOAT, types.DOUBLE) for k in kinds):
            equal = Logical("and", (Binary("=", left, right), Unary("not", nan_with_value(left, right))))
            return equal if op == "=" else Unary("not", equal)
        return without_nan(op, left, right, kinds[0])

    def floating(self, node: Syntax) -> bool:
        return self.binder.bind(node).type in (types.FLOAT, types.DOUBLE)

    def membership(self, value: Syntax, options: dict[str, Any]) -> Syntax:
        if options.get("null_matching_behavior") not in (0, None):
            msg = "is_in() with skip_nulls cannot be evaluated here; drop the nulls from the list"
            raise UnsupportedExpressionError(msg)
        array: Any = options.get("value_set")
        missing = 0 if array is None else int(array.null_count)
        present: Any = [] if array is None else array.drop_null()
        tests: list[Syntax] = []
        if len(present) and self.floating(value):
            present, zero = _without_zero(value, present)
            tests += zero
        if len(present):
            listed = arrow_values(present)
            tests.append(InList(value, tuple(map(_literal, present))) if listed is None else InValues(value, listed))
        found: Syntax = Constant(Lit(value=False, type=types.BOOLEAN))
        if tests:
            test = tests[0] if len(tests) == 1 else Logical("or", tuple(tests))
            found = Logical("and", (Unary("not", Test(TestKind.NULL, value)), test))
        if missing:
            found = Logical("or", (Test(TestKind.NULL, value), found))
        return found


def _without_zero(value: Syntax, listed: Any) -> tuple[Any, list[Syntax]]:
    """Return a list without its zeros for a floating column, and the test for them: `is_in` distinguishes signs."""
    import pyarrow as pa
    import pyarrow.compute as arrow_compute

    pc: Any = arrow_compute
    if not (pa.types.is_floating(listed.type) or pa.types.is_integer(listed.type)):
        return listed, []
    numbers = listed.cast(pa.float64(), safe=False)
    is_zero = pc.equal(numbers, 0.0)
    signs = {math.copysign(1, zero) for zero in numbers.filter(is_zero).to_pylist()}
    if len(signs) != 1:
        return listed, []
    negative: Syntax = Func("startswith", (CastTo(value, types.STRING, safe=False), Constant(Lit("-", types.STRING))))
    sign = negative if signs == {-1.0} else Unary("not", negative)
    zero = Logical("and", (Binary("=", value, Constant(Lit(0.0, types.DOUBLE))), sign))
    return listed.filter(pc.invert(is_zero)), [zero]


def _literal(scalar: Any) -> Constant:
    import pyarrow as pa

    kind = scalar.type
    if pa.types.is_dictionary(kind):
        return _literal(scalar.value)
    if pa.types.is_timestamp(kind):
        if not scalar.is_valid:
            return Constant(Lit(None, types.timestamp_type(kind.tz)))
        if kind.unit == "ns" and scalar.value % 1000:
            msg = f"{scalar} has nanoseconds, and Delta's timestamps have microseconds; round it first"
            raise UnsupportedExpressionError(msg)
        micros = (
            scalar.value * {"s": 1_000_000, "ms": 1_000, "us": 1}[kind.unit]
            if kind.unit != "ns"
            else scalar.value // 1000
        )
        return Constant(Lit(micros, types.timestamp_type(kind.tz)))
    if pa.types.is_date32(kind) and scalar.is_valid:
        return Constant(Lit(scalar.value, types.DATE))
    value = scalar.as_py()
    if isinstance(value, float) and math.isnan(value):
        msg = "Arrow's comparison with NaN is never true; write isnan(column) as SQL text instead"
        raise UnsupportedExpressionError(msg)
    return constant(value)


def _options(scalar: Any) -> dict[str, Any]:
    """Return the function's options; lists stay Arrow arrays, since the types of their members matter."""
    out: dict[str, Any] = {}
    for name in (f.name for f in scalar.type):
        field = scalar[name]
        out[name] = field.values if hasattr(field, "values") and field.is_valid else field.as_py()
    return out


def _text(pattern: object) -> Constant:
    text = pattern.decode() if isinstance(pattern, bytes) else pattern
    if not isinstance(text, str):
        raise _unreadable()
    return Constant(Lit(text, types.STRING))


def _unreadable() -> UnsupportedExpressionError:
    return UnsupportedExpressionError("this pyarrow expression cannot be read; write the filter as SQL text")


def _metadata(message: bytes) -> list[tuple[str, str]]:
    """Return the key-value metadata of an encapsulated Arrow schema message, in order, with repeated keys."""
    try:
        start = 8 if message[:4] == b"\xff\xff\xff\xff" else 4
        root = _table(message, start)
        schema = _child(message, root, 2)  # Message.header
        pairs = _vector(message, schema, 2)  # Schema.custom_metadata
        return [(_string(message, p, 0), _string(message, p, 1)) for p in pairs]
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise _unreadable() from error


def _u32(data: bytes, at: int) -> int:
    return struct.unpack_from("<I", data, at)[0]


def _table(data: bytes, at: int) -> int:
    return at + _u32(data, at)


def _slot(data: bytes, table: int, field: int) -> int:
    """Return the offset of a field in a flatbuffers table; absent fields are missing in the vtable."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, vtable)[0]
    entry = 4 + 2 * field
    offset = struct.unpack_from("<H", data, vtable + entry)[0] if entry < size else 0
    if not offset:
        raise IndexError(field)
    return table + offset


def _child(data: bytes, table: int, field: int) -> int:
    return _table(data, _slot(data, table, field))


def _vector(data: bytes, table: int, field: int) -> list[int]:
    at = _child(data, table, field)
    return [_table(data, at + 4 + 4 * i) for i in range(_u32(data, at))]


def _string(data: bytes, table: int, field: int) -> str:
    read: Callable[[bytes, int], int] = _u32
    at = _child(data, table, field)
    return data[at + 4 : at + 4 + read(data, at)].decode()
