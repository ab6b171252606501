"""Untyped syntax + a table's schema -> the closed typed tree.

Stage: the middle of `text -> syntax -> tree -> core`. Resolves names without case, decides every type by Spark's rules,
writes every implicit cast down, and refuses by name whatever is not in the table of functions. It folds nothing; that
is `simplify`'s work, so that a literal's type is decided before anything moves.

Rejected: deciding types in Rust. The same decision would then exist twice, for the renderers need it too.
"""

from __future__ import annotations

import difflib
import math
import time
from typing import Final, NoReturn, TYPE_CHECKING

from deltafast.exceptions import InvalidArgumentError
from deltafast.expr import coercion, literals, types
from deltafast.expr.errors import invalid, unsupported
from deltafast.expr.functions import CAST_FUNCTIONS, FUNCTIONS, MAX_INT, Function
from deltafast.expr.parser import MAX_DEPTH
from deltafast.expr.syntax import (
    Between,
    Binary,
    Case,
    CastTo,
    Constant,
    FieldOf,
    Func,
    InList,
    IntervalLit,
    Item,
    Like,
    Logical,
    Name,
    Syntax,
    Test,
    Unary,
)
from deltafast.expr.tree import Call, Cast, Col, Lit, Node, call, joined
from deltafast.expr.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Array,
    DataType,
    Decimal,
    Map,
    Struct,
    is_datetime,
    is_integral,
    is_numeric,
    is_string,
    sql_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Binder"]

_COMPARISONS: Final = frozenset(("=", "<=>", "<", "<=", ">", ">=", "!="))
_ARITHMETIC: Final = frozenset(("+", "-", "*", "/", "%", "div"))
_BITS: Final = {"&": "bitand", "|": "bitor", "^": "bitxor"}
_SHIFTS: Final = {"<<": "shiftleft", ">>": "shiftright"}
_MIRROR: Final = {"=": "=", "<=>": "<=>", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PARTS: Final = {
    **dict.fromkeys(("year", "y", "years", "yr", "yrs"), "year"),
    **dict.fromkeys(("quarter", "qtr"), "quarter"),
    **dict.fromkeys(("month", "mon", "mons", "months"), "month"),
    **dict.fromkeys(("week", "w", "weeks"), "weekofyear"),
    **dict.fromkeys(("day", "d", "days"), "day"),
    **dict.fromkeys(("dayofweek", "dow"), "dayofweek"),
    **dict.fromkeys(("dayofweek_iso", "dow_iso"), "isodow"),
    "doy": "dayofyear",
    **dict.fromkeys(("hour", "h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("minute", "m", "min", "mins", "minutes"), "minute"),
}
_COLLATED_OK: Final = frozenset(("isnull", "isnotnull"))
_SHOWN_NAMES: Final = 8


class Binder:
    """Binds one expression; holds the schema, the settings and the text for messages."""

    def __init__(
        self, schema: Struct, text: str, *, zone: str = "UTC", ansi: bool = True, now: int | None = None
    ) -> None:
        self.schema = schema
        self.text = text
        self.zone = zone
        self.ansi = ansi
        self.mode = "ansi" if ansi else "legacy"
        self._now = now
        self._depth = 0
        self._chars: dict[tuple[str, ...], int] = {}

    # --- entry

    def bind(self, node: Syntax) -> Node:
        """The typed node of a syntax node."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            hint = "split it, or write long lists with IN"
            raise invalid(f"the expression nests more than {MAX_DEPTH} levels deep", self.text, None, hint)
        try:
            return self._bind(node)
        finally:
            self._depth -= 1

    def predicate(self, node: Syntax) -> Node:
        """A typed node that is boolean, as a filter must be."""
        bound = self.bind(node)
        if bound.type == VOID:
            return Lit(None, BOOLEAN)
        if bound.type != BOOLEAN:
            hint = "compare it with something, for a filter must be true or false"
            raise invalid(f"the predicate is of type {sql_name(bound.type)}, not BOOLEAN", self.text, None, hint)
        return bound

    def _bind(self, node: Syntax) -> Node:  # noqa: C901, PLR0911, PLR0912 - one line a kind of node
        match node:
            case Name():
                return self.column(node.parts, node.pos)
            case Constant(lit=lit):
                return lit
            case Logical(op=op, args=args):
                return self._logical(op, args, node.pos)
            case Unary(op="not", arg=arg):
                return call("not", self._condition(self.bind(arg), "NOT", node.pos))
            case Unary(op=op, arg=arg):
                return self._unary(op, self.bind(arg), node.pos)
            case Binary(op=op):
                return self._binary(node, op)
            case Between(arg=arg, low=low, high=high):
                value = self.bind(arg)
                least = self.compare(">=", value, self.bind(low), node.pos)
                return call("and", least, self.compare("<=", value, self.bind(high), node.pos))
            case InList(arg=arg, items=items):
                return self.membership(self.bind(arg), [self.bind(i) for i in items], node.pos)
            case Like():
                return self._like(node)
            case Test(kind=kind, arg=arg):
                return self._test(kind, self.bind(arg), node.pos)
            case Case():
                return self._case(node)
            case CastTo(arg=arg, type=to, safe=safe):
                return self._explicit_cast(self.bind(arg), to, safe=safe, pos=node.pos)
            case Func():
                return self._function(node)
            case FieldOf(arg=arg, name=name):
                return self._field(self.bind(arg), name, node.pos)
            case Item(arg=arg, index=index):
                return self._item(self.bind(arg), self.bind(index), node.pos)
            case IntervalLit():
                self.refuse("an INTERVAL as a value is not supported", node.pos, "add it to a date or a timestamp")

    # --- messages

    def wrong(self, what: str, pos: int | None, hint: str) -> NoReturn:
        """Refuse what is an error in Spark too."""
        raise invalid(what, self.text, pos, hint)

    def refuse(self, what: str, pos: int | None, hint: str) -> NoReturn:
        """Refuse what Spark could evaluate."""
        raise unsupported(what, self.text, pos, hint)

    def mismatch(self, what: str, kinds: Sequence[DataType], pos: int | None) -> NoReturn:
        """Refuse argument types that Spark refuses as well."""
        names = " and ".join(sql_name(k) for k in kinds)
        self.wrong(f"{what} does not take {names}", pos, "cast one side to the type that is meant")

    # --- names

    def column(self, parts: Sequence[str], pos: int | None = None) -> Node:
        """Resolve a dotted name: a column, then fields of structs and keys of maps."""
        level: DataType = self.schema
        path: list[str] = []
        for index, part in enumerate(parts):
            if not isinstance(level, Struct):
                node: Node = Col(tuple(path), level)
                for rest in parts[index:]:
                    node = self._field(node, rest, pos)
                return node
            field = self._lookup(level, part, ".".join([*path, part]), pos)
            path.append(field.name)
            level = field.type
            if field.char is not None:
                self._chars[tuple(path)] = field.char
        return Col(tuple(path), level)

    def _lookup(self, level: Struct, name: str, shown: str, pos: int | None) -> types.Field:
        found = [f for f in level.fields if f.name == name]
        if not found:
            lower = name.lower()
            found = [f for f in level.fields if f.name.lower() == lower]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(f"`{f.name}`" for f in found)
            self.wrong(f"the name {shown!r} is ambiguous: {names}", pos, "write it in the exact case of one of them")
        names = [f.name for f in level.fields]
        near = difflib.get_close_matches(name, names, n=1)
        if near:
            hint = f"did you mean {near[0]!r}?"
        else:
            more = ", ..." if len(names) > _SHOWN_NAMES else ""
            hint = f"there are: {', '.join(names[:_SHOWN_NAMES])}{more}" if names else "the table has no columns"
        raise InvalidArgumentError(f"no column {shown!r}{self._where(pos)}; {hint}", column=shown)

    def _where(self, pos: int | None) -> str:
        return str(invalid("", self.text, pos, "")).rpartition(";")[0]

    def _field(self, node: Node, name: str, pos: int | None) -> Node:
        kind = node.type
        if isinstance(kind, Struct):
            field = self._lookup(kind, name, name, pos)
            if isinstance(node, Col):
                path = (*node.path, field.name)
                if field.char is not None:
                    self._chars[path] = field.char
                return Col(path, field.type)
            return Call("getfield", (node, Lit(field.name, STRING)), field.type)
        if isinstance(kind, Map) and is_string(kind.key):
            return self._item(node, Lit(name, STRING), pos)
        if isinstance(kind, Array) and isinstance(kind.element, Struct):
            hint = "take one element first: arr[0].field"
            self.refuse(f"the field {name!r} of every element of an array is not supported", pos, hint)
        self.wrong(f"{name!r} is asked of a value of type {sql_name(kind)}", pos, "only structs and maps have fields")

    def _item(self, node: Node, index: Node, pos: int | None) -> Node:
        kind = node.type
        if isinstance(kind, Array):
            if not is_integral(index.type) and index.type != VOID:
                self.mismatch("an array index", [index.type], pos)
            return self._at(node, self.cast(index, INTEGER, pos), kind.element)
        if isinstance(kind, Map):
            return self.emit("element_at", [node, self.coerce_to(index, kind.key, pos)], kind.value)
        if isinstance(kind, Struct) and isinstance(index, Lit) and isinstance(index.value, str):
            return self._field(node, index.value, pos)
        self.mismatch("[]", [kind], pos)

    def _at(self, array: Node, index: Node, kind: DataType) -> Node:
        """`array[index]` from 0: null outside, and in ANSI mode an error, which `element_at` raises for it."""
        if not self.ansi:
            return self.emit("get", [array, index], kind)
        if isinstance(index, Lit) and isinstance(index.value, int) and index.value < MAX_INT:
            return self.emit("element_at", [array, Lit(max(0, index.value + 1), INTEGER)], kind)
        zero = Lit(0, INTEGER)
        inside = self.emit("element_at", [array, call("+", index, Lit(1, INTEGER), type=INTEGER)], kind)
        return call("if", call("<", index, zero), self.emit("element_at", [array, zero], kind), inside, type=kind)

    # --- casts

    def cast(self, node: Node, to: DataType, pos: int | None = None) -> Node:
        """Insert an implicit cast, unless the type is right already."""
        source = node.type
        if source == to:
            return node
        if _collated(source):
            self._no_collation(pos)
        if isinstance(node, Lit) and node.value is None:
            return Lit(None, to)
        if not coercion.can_cast(source, to, self.mode):
            self.mismatch(f"a cast to {sql_name(to)}", [source], pos)
        return Cast(node, to, self.mode)

    def coerce_to(self, node: Node, to: DataType, pos: int | None) -> Node:
        """Cast an argument to a fixed type where Spark would do so on its own."""
        if node.type != VOID and not _implicit(node.type, to):
            self.mismatch(f"an argument of type {sql_name(to)}", [node.type], pos)
        return self.cast(node, to, pos)

    def _explicit_cast(self, node: Node, to: DataType, *, safe: bool, pos: int | None) -> Node:
        mode = "try" if safe else self.mode
        if node.type == to:
            return node
        if not coercion.can_cast(node.type, to, mode):
            what = f"{sql_name(node.type)} cannot be cast to {sql_name(to)}"
            self.wrong(what, pos, "cast by way of another type, or switch ANSI mode off if Spark wrote it so")
        if to == VOID:
            self.refuse("a cast to VOID is not supported", pos, "write NULL")
        return Cast(node, to, mode)

    def coerce(self, node: Node, kind: str, name: str, pos: int | None) -> Node:  # noqa: PLR0911 - one line a kind
        """Cast an argument to what a parameter of the function table takes."""
        source = node.type
        if kind == "any":
            return node
        fixed = _FIXED.get(kind)
        if fixed is not None:
            if source != VOID and not _implicit(source, fixed):
                self.mismatch(f"{name}()", [source], pos)
            return self.cast(node, fixed, pos)
        if kind == "text":
            return node if source == BINARY else self.coerce(node, "string", name, pos)
        if kind == "datetime":
            return node if source == TIMESTAMP_NTZ else self.coerce(node, "timestamp", name, pos)
        if kind == "days" and (source in (BYTE, SHORT, INTEGER, VOID) or is_string(source)):
            return self.cast(node, INTEGER, pos)
        if kind == "integral" and (is_integral(source) or source == VOID):
            return self.cast(node, LONG, pos)
        if kind == "exact_timestamp" and source in (TIMESTAMP, VOID):
            return self.cast(node, TIMESTAMP, pos)
        if kind == "number":
            return node if is_numeric(source) else self.coerce(node, "double", name, pos)
        self.mismatch(f"{name}()", [source], pos)

    def emit(self, f: str, args: Sequence[Node], kind: DataType, pos: int | None = None) -> Call:
        """A call; strings of other collations than byte order are refused where they would be read."""
        if f not in _COLLATED_OK and any(_collated(a.type) for a in args):
            self._no_collation(pos)
        return Call(f, tuple(args), kind)

    def _no_collation(self, pos: int | None) -> NoReturn:
        hint = "cast the column to STRING to compare it by bytes"
        self.refuse("a column with a collation cannot be used in expressions yet", pos, hint)

    # --- logic

    def _condition(self, node: Node, what: str, pos: int | None) -> Node:
        if node.type == BOOLEAN:
            return node
        if node.type == VOID or (is_string(node.type) and self.ansi):
            return self.cast(node, BOOLEAN, pos)
        self.wrong(f"{what} does not take {sql_name(node.type)}", pos, "compare it with something")

    def _logical(self, op: str, args: Sequence[Syntax], pos: int | None) -> Node:
        bound = [self.bind(a) for a in args]
        first = [bound[0].type, bound[1].type]
        # Spark reads a text as a boolean only beside one; from the third operand on the left side always is one.
        if BOOLEAN not in first and any(is_string(t) for t in first):
            self.mismatch(op.upper(), first, pos)
        return joined(op, [self._condition(a, op.upper(), pos) for a in bound])

    def _test(self, kind: str, node: Node, pos: int | None) -> Node:
        if kind == "null":
            return self.emit("isnull", [node], BOOLEAN)
        if kind != "unknown":
            return self.compare("<=>", node, Lit(kind == "true", BOOLEAN), pos)
        if node.type != BOOLEAN and node.type != VOID and not is_string(node.type):
            self.mismatch("IS UNKNOWN", [node.type], pos)
        return call("isnull", self.cast(node, BOOLEAN, pos))

    def compare(self, op: str, left: Node, right: Node, pos: int | None) -> Node:
        """A comparison in the type where both sides meet."""
        if op == "!=":
            return call("not", self.compare("=", left, right, pos))
        kind = self._comparison_type(left, right)
        if kind is None:
            self.mismatch(f"the comparison {op}", [left.type, right.type], pos)
        if kind == VOID:
            return Lit(value=True, type=BOOLEAN) if op == "<=>" else Lit(None, BOOLEAN)
        self._comparable(kind, pos)
        if kind == STRING:
            left, right = self._pad_char(left, right), self._pad_char(right, left)
        if BOOLEAN in (left.type, right.type) and is_numeric(kind) and op not in ("=", "<=>"):
            self.mismatch(f"the comparison {op}", [left.type, right.type], pos)
        return self.emit(op, [self.cast(left, kind, pos), self.cast(right, kind, pos)], BOOLEAN, pos)

    def _comparable(self, kind: DataType, pos: int | None) -> None:
        if not coercion.is_ordered(kind):
            self.refuse(f"comparing values of type {sql_name(kind)} is not supported", pos, "compare their parts")

    def _comparison_type(self, left: Node, right: Node) -> DataType | None:
        a, b = left.type, right.type
        if isinstance(a, Decimal) and is_integral(b):
            return coercion.wider_decimal(a, _decimal_of(right))
        if isinstance(b, Decimal) and is_integral(a):
            return coercion.wider_decimal(_decimal_of(left), b)
        return coercion.comparison_type(a, b, ansi=self.ansi)

    def _pad_char(self, node: Node, other: Node) -> Node:
        """CHAR(n) is stored padded with blanks, and Spark pads what it is compared with."""
        length = self._chars.get(other.path) if isinstance(other, Col) else None
        if length is None:
            return node
        if isinstance(node, Lit) and isinstance(node.value, str):
            return Lit(node.value.ljust(length), STRING)
        own = self._chars.get(node.path) if isinstance(node, Col) else None
        if own is not None and own < length:
            return Call("rpad", (node, Lit(length, INTEGER), Lit(" ", STRING)), STRING)
        return node

    def membership(self, value: Node, items: Sequence[Node], pos: int | None) -> Node:
        """`IN`: an internal call that `simplify` turns into an `In` node or a chain of comparisons."""
        kind = coercion.common([value.type, *(i.type for i in items)], ansi=self.ansi)
        if kind is None:
            self.mismatch("IN", list(dict.fromkeys([value.type, *(i.type for i in items)])), pos)
        if kind == VOID:
            return Lit(None, BOOLEAN)
        if not isinstance(kind, (types.Atomic, Decimal)) or kind == types.VARIANT:
            self.refuse(f"IN over values of type {sql_name(kind)} is not supported", pos, "compare their parts")
        if kind == STRING:
            items = [self._pad_char(i, value) for i in items]
        return self.emit("in", [self.cast(n, kind, pos) for n in (value, *items)], BOOLEAN, pos)

    def _like(self, node: Like) -> Node:
        value = self.coerce(self.bind(node.arg), "string", node.kind, node.pos)
        tests: list[Node] = []
        for pattern in node.patterns:
            text = self.coerce(self.bind(pattern), "string", node.kind, node.pos)
            tests.append(self._like_call(node.kind, value, text, Lit(node.escape, STRING)))
        return joined("and" if node.every else "or", tests)

    def _like_call(self, kind: str, value: Node, pattern: Node, escape: Lit) -> Node:
        if kind == "rlike":
            return self.emit("rlike", [value, pattern], BOOLEAN)
        if kind == "ilike":
            value, pattern = self.emit("lower", [value], STRING), self.emit("lower", [pattern], STRING)
        return self.emit("like", [value, pattern, escape], BOOLEAN)

    def _case(self, node: Case) -> Node:
        operand = None if node.operand is None else self.bind(node.operand)
        tests: list[Node] = []
        values: list[Node] = []
        for condition, value in node.whens:
            test = self.bind(condition)
            if operand is not None:
                test = self.compare("=", operand, test, node.pos)
            elif test.type != BOOLEAN:
                self.mismatch("a WHEN condition", [test.type], node.pos)
            tests.append(test)
            values.append(self.bind(value))
        values.append(Lit(None, VOID) if node.otherwise is None else self.bind(node.otherwise))
        branches, kind = self.same(values, "CASE", node.pos)
        pairs = [part for pair in zip(tests, branches, strict=False) for part in pair]
        return self.emit("case", [*pairs, branches[-1]], kind)

    def same(
        self, nodes: Sequence[Node], what: str, pos: int | None, *, strings: bool = True
    ) -> tuple[list[Node], DataType]:
        """Cast all to the type where they meet."""
        kind = coercion.common([n.type for n in nodes], ansi=self.ansi, strings=strings)
        if kind is None:
            self.mismatch(what, list(dict.fromkeys(n.type for n in nodes)), pos)
        return [self.cast(n, kind, pos) for n in nodes], kind

    # --- arithmetic

    def _unary(self, op: str, node: Node, pos: int | None) -> Node:
        if op == "~":
            kind = INTEGER if node.type == VOID else node.type
            if not is_integral(kind):
                self.mismatch("~", [kind], pos)
            return self.emit("bitnot", [self.cast(node, kind, pos)], kind)
        number = self.coerce(node, "number", f"unary {op}", pos)
        return number if op == "+" else self.emit("negative", [number], number.type)

    def _binary(self, node: Binary, op: str) -> Node:
        if op in ("+", "-") and (shifted := self._with_interval(node)) is not None:
            return shifted
        if op in _COMPARISONS and (compared := self._compare_interval(node)) is not None:
            return compared
        left, right = self.bind(node.left), self.bind(node.right)
        if op in _COMPARISONS:
            return self.compare(op, left, right, node.pos)
        if op == "||":
            return self._concat([left, right], node.pos)
        if op in _BITS:
            return self._bits(op, left, right, node.pos)
        if op in _SHIFTS:
            return self._shift(_SHIFTS[op], left, right, node.pos)
        if op in _ARITHMETIC:
            return self.arithmetic(op, left, right, node.pos)
        self.refuse(f"the operator {op} is not supported", node.pos, "use >> where the sign does not matter")

    def arithmetic(self, op: str, left: Node, right: Node, pos: int | None) -> Node:
        """`+ - * / % div pmod` after Spark's promotions."""
        if op in ("+", "-") and (is_datetime(left.type) or is_datetime(right.type)):
            return self._date_arithmetic(op, left, right, pos)
        left, right = self._numbers(op, left, right, pos)
        a, b = left.type, right.type
        if isinstance(a, Decimal) and isinstance(b, Decimal):
            kind = LONG if op == "div" else coercion.arithmetic_decimal(op, a, b)
            return self.emit(op, [left, right], kind)
        if op == "div":
            if not (is_integral(a) and is_integral(b)):
                self.mismatch("DIV", [a, b], pos)
            return self.emit("div", [self.cast(left, LONG), self.cast(right, LONG)], LONG)
        if op == "/":
            return self.emit("/", [self.cast(left, DOUBLE), self.cast(right, DOUBLE)], DOUBLE)
        kind = coercion.tightest(a, b, ansi=self.ansi)
        if kind is None or not is_numeric(kind):
            self.mismatch(op, [a, b], pos)
        return self.emit(op, [self.cast(left, kind), self.cast(right, kind)], kind)

    def _numbers(self, op: str, left: Node, right: Node, pos: int | None) -> tuple[Node, Node]:
        """Bring strings, nulls and decimals to numbers; what is left are two numeric types or two decimals."""
        a, b = left.type, right.type
        if a == VOID and b == VOID:
            kind = LONG if op == "div" else DOUBLE
            return self.cast(left, kind), self.cast(right, kind)
        if is_string(a) or is_string(b):
            left, right = self._strings_as_numbers(op, left, right, pos)
            a, b = left.type, right.type
        if VOID in (a, b):
            kind = b if a == VOID else a
            if op == "/" and a == VOID and isinstance(kind, Decimal):
                kind = DOUBLE  # Spark casts a null dividend to DOUBLE before it looks at the divisor
            left, right = self.cast(left, kind), self.cast(right, kind)
            a, b = left.type, right.type
        if not (is_numeric(a) and is_numeric(b)):
            self.mismatch(op, [a, b], pos)
        if isinstance(a, Decimal) or isinstance(b, Decimal):
            if FLOAT in (a, b) or DOUBLE in (a, b):
                return self.cast(left, DOUBLE), self.cast(right, DOUBLE)
            return self.cast(left, _decimal_of(left)), self.cast(right, _decimal_of(right))
        return left, right

    def _strings_as_numbers(self, op: str, left: Node, right: Node, pos: int | None) -> tuple[Node, Node]:
        a, b = left.type, right.type
        other = b if is_string(a) else a
        both = is_string(a) and is_string(b)
        if self.ansi:
            if both or not is_numeric(other):
                self.mismatch(op, [a, b], pos)
            kind = LONG if is_integral(other) else DOUBLE
        else:
            if op == "div" or not (both or is_numeric(other) or other == VOID):
                self.mismatch(op, [a, b], pos)
            kind = DOUBLE
        return self.cast(left, kind), self.cast(right, kind)

    def _date_arithmetic(self, op: str, left: Node, right: Node, pos: int | None) -> Node:
        if op == "+" and right.type == DATE and left.type != DATE:
            left, right = right, left
        if left.type == DATE and right.type in (BYTE, SHORT, INTEGER):
            return self.emit("date_add" if op == "+" else "date_sub", [left, self.cast(right, INTEGER)], DATE)
        others = [t for t in (left.type, right.type) if not is_datetime(t)]
        if all(t == VOID or (is_string(t) and self.ansi) for t in others) and (op == "-" or VOID in others):
            hint = "use datediff(end, start), or compare the difference with an INTERVAL"
            self.refuse("an interval as a result is not supported", pos, hint)
        self.mismatch(op, [left.type, right.type], pos)

    def _with_interval(self, node: Binary) -> Node | None:
        """`date +- INTERVAL`, `timestamp +- INTERVAL` and `INTERVAL + either`."""
        right, left = _interval(node.right), _interval(node.left)
        if right is None and (left is None or node.op == "-"):
            return None
        if right is None and left is not None:
            base, interval, sign = self.bind(node.right), left, 1
        elif right is not None and left is None:
            base, interval, sign = self.bind(node.left), right, -1 if node.op == "-" else 1
        else:
            self.refuse("adding two intervals is not supported", node.pos, "add them to the date one after another")
        if base.type == DATE and interval.day_only:
            days = Lit(sign * interval.micros // literals.MICROS_PER_DAY, INTEGER)
            return self.emit("date_add", [base, days], DATE)
        if base.type == DATE and interval.months is not None:
            return self.emit("add_months", [base, self._whole(sign * interval.months, INTEGER, node.pos)], DATE)
        if base.type == DATE:
            base = self.cast(base, TIMESTAMP)
        if base.type not in (TIMESTAMP, TIMESTAMP_NTZ):
            self.mismatch(f"INTERVAL {node.op}", [base.type], node.pos)
        if interval.months is not None:
            months = self._whole(sign * interval.months, INTEGER, node.pos)
            return self.emit("timestamp_add_months", [base, months], base.type)
        micros = self._whole(sign * interval.micros, LONG, node.pos)
        return self.emit("timestamp_add_micros", [base, micros], base.type)

    def _whole(self, value: int, kind: DataType, pos: int | None) -> Lit:
        low, high = types.integral_range(kind)
        if not low <= value <= high:
            self.wrong("the INTERVAL is too long", pos, "use a shorter one")
        return Lit(value, kind)

    def _compare_interval(self, node: Binary) -> Node | None:
        """`date - date < INTERVAL n DAY`, the one use of differences that needs no interval type."""
        right, left = _interval(node.right), _interval(node.left)
        if (right is None) == (left is None):
            return None
        interval = right or left
        difference, op = (node.left, node.op) if right is not None else (node.right, _MIRROR[node.op])
        if interval is None or not interval.day_only or not isinstance(difference, Binary) or difference.op != "-":
            return None
        end, start = self.bind(difference.left), self.bind(difference.right)
        if end.type != DATE or start.type != DATE:
            return None
        days = Lit(interval.micros // literals.MICROS_PER_DAY, INTEGER)
        return self.compare(op, self.emit("datediff", [end, start], INTEGER), days, node.pos)

    def _bits(self, op: str, left: Node, right: Node, pos: int | None) -> Node:
        a, b = left.type, right.type
        if a == VOID and b == VOID:
            return Lit(None, INTEGER)
        if self.ansi and is_string(a) != is_string(b) and (is_integral(a) or is_integral(b)):
            left, right = self.cast(left, LONG), self.cast(right, LONG)
            a = b = LONG
        kind = coercion.tightest(a, b, ansi=self.ansi)
        if kind is None or not is_integral(kind):
            self.mismatch(op, [a, b], pos)
        return self.emit(_BITS[op], [self.cast(left, kind), self.cast(right, kind)], kind)

    def _shift(self, f: str, left: Node, right: Node, pos: int | None) -> Node:
        kind = LONG if left.type == LONG else INTEGER
        if left.type != LONG:
            left = self.coerce(left, "int", f, pos)
        return self.emit(f, [left, self.coerce(right, "int", f, pos)], kind)

    def _concat(self, nodes: Sequence[Node], pos: int | None) -> Node:
        if nodes and all(n.type == BINARY for n in nodes):
            return self.emit("concat", nodes, BINARY)
        if any(isinstance(n.type, Array) for n in nodes):
            arrays, kind = self.same(nodes, "concat", pos, strings=False)
            return self.emit("concat", arrays, kind)
        return self.emit("concat", [self.coerce(n, "string", "concat", pos) for n in nodes], STRING)

    # --- functions

    def _function(self, node: Func) -> Node:
        name = node.name
        cast_to = CAST_FUNCTIONS.get(name)
        if cast_to is not None and len(node.args) == 1:
            return self._explicit_cast(self.bind(node.args[0]), cast_to, safe=False, pos=node.pos)
        spec = FUNCTIONS.get(name)
        if spec is None:
            near = difflib.get_close_matches(name, FUNCTIONS, n=1, cutoff=0.75)
            hint = f"did you mean {near[0]}()?" if near else "deltafast.expr.functions lists those that are"
            self.refuse(f"the function {name}() is not supported", node.pos, hint)
        args = [self.bind(a) for a in node.args]
        if spec.rule:
            return self._by_rule(spec, name, args, node.pos)
        least = sum(p.default is None for p in spec.params)
        if not least <= len(args) <= len(spec.params):
            self.count(name, args, node.pos, least, len(spec.params))
        nodes: list[Node] = []
        for i, param in enumerate(spec.params):
            arg = args[i] if i < len(args) else param.default
            if arg is not None:
                nodes.append(self.coerce(arg, param.kind, name, node.pos))
        return self.emit(spec.emit, nodes, spec.result or BOOLEAN, node.pos)

    def count(self, name: str, args: Sequence[Node], pos: int | None, least: int, most: int | None) -> None:
        """Refuse a wrong number of arguments."""
        if len(args) >= least and (most is None or len(args) <= most):
            return
        wanted = f"{least}" if most == least else f"at least {least}" if most is None else f"{least} to {most}"
        hint = "see Spark's documentation of the function"
        self.wrong(f"{name}() takes {wanted} arguments, not {len(args)}", pos, hint)

    def _by_rule(self, spec: Function, name: str, args: list[Node], pos: int | None) -> Node:
        rule = _RULES[spec.rule]
        self.count(name, args, pos, rule.least, rule.most)
        return rule.build(self, spec.emit, name, args, pos)

    def now(self) -> int:
        """The query's time, taken once."""
        if self._now is None:
            self._now = time.time_ns() // 1000
        return self._now


class _Rule:
    """One function whose types the table cannot say: how many arguments, and what is built."""

    def __init__(
        self,
        least: int,
        most: int | None,
        build: Callable[[Binder, str, str, list[Node], int | None], Node],
    ) -> None:
        self.least, self.most, self.build = least, most, build


def _interval(node: Syntax) -> IntervalLit | None:
    if isinstance(node, IntervalLit):
        return node
    if isinstance(node, Unary) and node.op in ("-", "+"):
        inner = _interval(node.arg)
        if inner is not None and node.op == "-":
            months = None if inner.months is None else -inner.months
            return IntervalLit(months, -inner.micros, inner.day_only, inner.pos)
        return inner
    return None


def _decimal_of(node: Node) -> Decimal:
    """The decimal of an integer operand; a literal counts with the digits it has."""
    if isinstance(node, Lit) and node.type in (SHORT, INTEGER, LONG) and isinstance(node.value, int):
        return Decimal(len(str(abs(node.value))), 0)
    return coercion.decimal_for(node.type)


def _collated(t: DataType) -> bool:
    match t:
        case types.Atomic(collation=c):
            return c is not None
        case Array(element=e):
            return _collated(e)
        case Map(key=k, value=v):
            return _collated(k) or _collated(v)
        case _:
            return False


_FIXED: Final[dict[str, DataType]] = {
    "string": STRING,
    "binary": BINARY,
    "int": INTEGER,
    "long": LONG,
    "double": DOUBLE,
    "boolean": BOOLEAN,
    "date": DATE,
    "timestamp": TIMESTAMP,
}


def _implicit(source: DataType, to: DataType) -> bool:
    """Whether Spark casts a function's argument on its own."""
    if source == to:
        return True
    if to == STRING:
        return isinstance(source, (types.Atomic, Decimal)) and source != types.VARIANT
    if is_numeric(to):
        return is_numeric(source) or is_string(source)
    if is_datetime(to):
        return is_datetime(source) or is_string(source)
    return to in (BOOLEAN, BINARY) and is_string(source)


# --- the rules, one small function each


def _isnan(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    arg = args[0] if args[0].type == FLOAT else b.coerce(args[0], "double", name, pos)
    return b.emit("isnan", [arg], BOOLEAN)


def _equal_null(b: Binder, _emit: str, _name: str, args: list[Node], pos: int | None) -> Node:
    return b.compare("<=>", args[0], args[1], pos)


def _coalesce(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    nodes, kind = b.same(args, f"{name}()", pos)
    return b.emit("coalesce", nodes, kind)


def _nvl2(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    nodes, kind = b.same(args[1:], f"{name}()", pos)
    return b.emit("if", [b.emit("isnotnull", [args[0]], BOOLEAN), *nodes], kind)


def _nullif(b: Binder, _emit: str, _name: str, args: list[Node], pos: int | None) -> Node:
    kind = args[0].type
    return b.emit("if", [b.compare("=", args[0], args[1], pos), Lit(None, kind), args[0]], kind)


def _nullifzero(b: Binder, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    return _nullif(b, emit, name, [args[0], Lit(0, INTEGER)], pos)


def _zeroifnull(b: Binder, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    return _coalesce(b, emit, name, [args[0], Lit(0, INTEGER)], pos)


def _if(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    if args[0].type not in (BOOLEAN, VOID):
        b.mismatch(f"the condition of {name}()", [args[0].type], pos)
    nodes, kind = b.same(args[1:], f"{name}()", pos)
    return b.emit("if", [b.cast(args[0], BOOLEAN, pos), *nodes], kind)


def _extreme(b: Binder, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    nodes, kind = b.same(args, f"{name}()", pos, strings=False)
    if not coercion.is_ordered(kind):
        b.refuse(f"{name}() of {sql_name(kind)} is not supported", pos, "compare their parts")
    return b.emit(emit, nodes, kind)


def _arithmetic(b: Binder, emit: str, _name: str, args: list[Node], pos: int | None) -> Node:
    return b.arithmetic(emit, args[0], args[1], pos)


def _negative(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    arg = b.coerce(args[0], "number", name, pos)
    return b.emit("negative", [arg], arg.type)


def _positive(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    return b.coerce(args[0], "number", name, pos)


def _abs(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    arg = b.coerce(args[0], "number", name, pos)
    return b.emit("abs", [arg], arg.type)


def _rounding(b: Binder, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    arg = b.coerce(args[0], "number", name, pos)
    scale = args[1] if len(args) > 1 else Lit(0, INTEGER)
    if not isinstance(scale, Lit) or not is_integral(scale.type) or not isinstance(scale.value, int):
        b.refuse(f"{name}() takes its scale as a whole number, written out", pos, "write round(x, 2)")
    kind = arg.type
    if isinstance(kind, Decimal):
        kind = _rounded_decimal(kind, scale.value)
    return b.emit(emit, [arg, b.cast(scale, INTEGER, pos)], kind)


def _rounded_decimal(kind: Decimal, scale: int) -> Decimal:
    """Spark's `RoundBase.dataType`: one more digit before the point, for 9.9 rounds to 10."""
    whole = kind.precision - kind.scale + 1
    if scale < 0:
        return Decimal(min(38, max(whole, -scale + 1)), 0)
    kept = min(kind.scale, scale)
    return Decimal(min(38, whole + kept), kept)


def _floor(b: Binder, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    arg = args[0]
    if isinstance(arg.type, Decimal):
        p, s = arg.type.precision, arg.type.scale
        return b.emit(emit, [arg], arg.type if s == 0 else Decimal(p - s + 1, 0))
    if arg.type != LONG:
        arg = b.coerce(arg, "double", name, pos)
    return b.emit(emit, [arg], LONG)


def _log(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    nodes = [b.coerce(a, "double", name, pos) for a in args]
    if len(nodes) == 1:
        return b.emit("ln", nodes, DOUBLE)
    base = literals.fold_cast(args[0], DOUBLE, b.zone) if isinstance(args[0], Lit) else None
    if base is None or not isinstance(base.value, float) or base.value <= 0 or base.value == 1:
        b.refuse(f"{name}() takes its base as a number above 0 and not 1, written out", pos, "write ln(x) / ln(base)")
    return _log_of(b, base.value, nodes[1])


def _log_of(b: Binder, base: float, node: Node) -> Node:
    """Spark divides two natural logarithms as well."""
    return b.emit("/", [b.emit("ln", [node], DOUBLE), Lit(math.log(base), DOUBLE)], DOUBLE)


def _log2(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    return _log_of(b, 2.0, b.coerce(args[0], "double", name, pos))


def _shift(b: Binder, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    left = args[0] if args[0].type == LONG else b.coerce(args[0], "int", name, pos)
    return b.emit(emit, [left, b.coerce(args[1], "int", name, pos)], left.type)


def _like(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    escape = args[2] if len(args) > 2 else Lit("\\", STRING)  # noqa: PLR2004 - the third argument
    if not isinstance(escape, Lit) or not isinstance(escape.value, str) or len(escape.value) != 1:
        b.wrong(f"{name}() takes its escape as one character, written out", pos, "write like(s, 'a!%', '!')")
    nodes = [b.coerce(a, "string", name, pos) for a in args[:2]]
    if name == "ilike":
        nodes = [b.emit("lower", [n], STRING) for n in nodes]
    return b.emit("like", [*nodes, escape], BOOLEAN)


def _trim(b: Binder, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    # Spark's call form names the characters first.
    nodes = [b.coerce(a, "string", name, pos) for a in reversed(args)]
    return b.emit(emit, nodes, STRING)


def _btrim(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    return b.emit("trim", [b.coerce(a, "string", name, pos) for a in args], STRING)


def _substring(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    text = b.coerce(args[0], "text", name, pos)
    start = b.coerce(args[1], "int", name, pos)
    length = b.coerce(args[2], "int", name, pos) if len(args) > 2 else Lit(MAX_INT, INTEGER)  # noqa: PLR2004
    return b.emit("substring", [text, start, length], text.type)


def _left(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    text = b.coerce(args[0], "text", name, pos)
    length = b.coerce(args[1], "int", name, pos)
    if text.type == BINARY:
        return b.emit("substring", [text, Lit(1, INTEGER), length], BINARY)
    return b.emit("left", [text, length], STRING)


def _concat(b: Binder, _emit: str, _name: str, args: list[Node], pos: int | None) -> Node:
    return b._concat(args, pos) if args else Lit("", STRING)


def _concat_ws(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    nodes = [b.coerce(args[0], "string", name, pos)]
    for arg in args[1:]:
        if isinstance(arg.type, Array):
            nodes.append(b.cast(arg, Array(STRING, arg.type.contains_null), pos))
        else:
            nodes.append(b.coerce(arg, "string", name, pos))
    return b.emit("concat_ws", nodes, STRING)


def _pad(b: Binder, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    if args[0].type == BINARY:
        b.refuse(f"{name}() of BINARY is not supported", pos, "pad a text")
    pad = b.coerce(args[2], "string", name, pos) if len(args) > 2 else Lit(" ", STRING)  # noqa: PLR2004
    return b.emit(emit, [b.coerce(args[0], "string", name, pos), b.coerce(args[1], "int", name, pos), pad], STRING)


def _space(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    return b.emit("repeat", [Lit(" ", STRING), b.coerce(args[0], "int", name, pos)], STRING)


def _reverse(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    if isinstance(args[0].type, Array):
        return b.emit("reverse", args, args[0].type)
    return b.emit("reverse", [b.coerce(args[0], "string", name, pos)], STRING)


def _hex(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    arg = args[0]
    if is_numeric(arg.type):
        arg = b.coerce(arg, "long", name, pos)
    elif arg.type != BINARY:
        arg = b.coerce(arg, "string", name, pos)
    return b.emit("hex", [arg], STRING)


def _extract(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    field = args[0].value if isinstance(args[0], Lit) else None
    part = _PARTS.get(field.lower()) if isinstance(field, str) else None
    if part is None:
        hint = "use YEAR, QUARTER, MONTH, WEEK, DAY, DOW, DOY, HOUR or MINUTE"
        b.refuse(f"{name}() of {field!r} is not supported", pos, hint)
    if part in ("hour", "minute"):
        return b.emit(part, [b.coerce(args[1], "datetime", name, pos)], INTEGER)
    date = b.coerce(args[1], "date", name, pos)
    if part == "isodow":
        return b.emit("+", [b.emit("weekday", [date], INTEGER), Lit(1, INTEGER)], INTEGER)
    return b.emit(part, [date], INTEGER)


def _to(kind: DataType) -> Callable[[Binder, str, str, list[Node], int | None], Node]:
    def build(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
        if len(args) > 1:
            b.refuse(f"{name}() with a pattern is not supported", pos, "cast a text in ISO form, yyyy-MM-dd HH:mm:ss")
        node = args[0]
        if not (is_datetime(node.type) or is_string(node.type) or node.type == VOID):
            b.refuse(f"{name}() of {sql_name(node.type)} is not supported", pos, "use CAST")
        return b.cast(node, kind, pos)

    return build


def _unix_date(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    if args[0].type not in (DATE, VOID):
        b.mismatch(f"{name}()", [args[0].type], pos)
    return b.emit("datediff", [b.cast(args[0], DATE, pos), Lit(0, DATE)], INTEGER)


def _date_from_unix_date(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    return b.emit("date_add", [Lit(0, DATE), b.coerce(args[0], "int", name, pos)], DATE)


def _timestamp_seconds(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    kind = args[0].type
    if is_integral(kind) or kind == VOID:
        node = b.cast(args[0], LONG, pos)
    elif kind == FLOAT:
        node = b.cast(args[0], DOUBLE, pos)
    elif is_numeric(kind):
        node = args[0]
    else:
        b.mismatch(f"{name}()", [kind], pos)
    return b.emit("timestamp_seconds", [node], TIMESTAMP)


def _unix_timestamp(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    if args[0].type not in (TIMESTAMP, DATE):
        hint = "cast it to TIMESTAMP first"
        b.refuse(f"{name}() of {sql_name(args[0].type)} is not supported", pos, hint)
    return b.emit("unix_timestamp", [b.cast(args[0], TIMESTAMP, pos)], LONG)


def _current_timestamp(b: Binder, _emit: str, _name: str, _args: list[Node], _pos: int | None) -> Node:
    return Lit(b.now(), TIMESTAMP)


def _current_date(b: Binder, _emit: str, _name: str, _args: list[Node], _pos: int | None) -> Node:
    return Cast(Lit(b.now(), TIMESTAMP), DATE, b.mode)


def _localtimestamp(b: Binder, _emit: str, _name: str, _args: list[Node], _pos: int | None) -> Node:
    return Cast(Lit(b.now(), TIMESTAMP), TIMESTAMP_NTZ, b.mode)


def _size(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    if not isinstance(args[0].type, (Array, Map)):
        b.mismatch(f"{name}()", [args[0].type], pos)
    node = b.emit("size", args, INTEGER)
    # Without ANSI Spark keeps Hive's answer for a missing collection.
    return node if b.ansi else b.emit("coalesce", [node, Lit(-1, INTEGER)], INTEGER)


def _array_contains(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    array, value = args
    kind = array.type
    if not isinstance(kind, Array) or value.type == VOID:
        b.mismatch(f"{name}()", [kind, value.type], pos)
    element = coercion.wider(kind.element, value.type, ansi=b.ansi, strings=False)
    if element is None:
        b.mismatch(f"{name}()", [kind, value.type], pos)
    if not isinstance(element, (types.Atomic, Decimal)):
        b.refuse(f"{name}() of {sql_name(kind)} is not supported", pos, "search for a scalar")
    return b.emit(
        "array_contains", [b.cast(array, Array(element, kind.contains_null), pos), b.cast(value, element)], BOOLEAN
    )


def _element_at(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    base, index = args
    kind = base.type
    if isinstance(kind, Array) and index.type in (BYTE, SHORT, INTEGER, VOID):
        return b.emit("element_at", [base, b.cast(index, INTEGER, pos)], kind.element)
    if isinstance(kind, Map) and coercion.tightest(kind.key, index.type, ansi=b.ansi) == kind.key:
        return b.emit("element_at", [base, b.cast(index, kind.key, pos)], kind.value)
    b.mismatch(f"{name}()", [kind, index.type], pos)


def _get(b: Binder, _emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    kind = args[0].type
    if not isinstance(kind, Array):
        b.mismatch(f"{name}()", [kind, args[1].type], pos)
    return b.emit("get", [args[0], b.coerce(args[1], "int", name, pos)], kind.element)


def _map_part(b: Binder, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    kind = args[0].type
    if not isinstance(kind, Map):
        b.mismatch(f"{name}()", [kind], pos)
    result = Array(kind.key, contains_null=False) if emit == "map_keys" else Array(kind.value, kind.value_contains_null)
    return b.emit(emit, args, result)


def _map_contains_key(b: Binder, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
    keys = _map_part(b, "map_keys", name, args[:1], pos)
    return _array_contains(b, emit, name, [keys, args[1]], pos)


_RULES: Final[dict[str, _Rule]] = {
    "isnan": _Rule(1, 1, _isnan),
    "equal_null": _Rule(2, 2, _equal_null),
    "coalesce": _Rule(1, None, _coalesce),
    "nvl": _Rule(2, 2, _coalesce),
    "nvl2": _Rule(3, 3, _nvl2),
    "nullif": _Rule(2, 2, _nullif),
    "nullifzero": _Rule(1, 1, _nullifzero),
    "zeroifnull": _Rule(1, 1, _zeroifnull),
    "if": _Rule(3, 3, _if),
    "extreme": _Rule(2, None, _extreme),
    "arithmetic": _Rule(2, 2, _arithmetic),
    "negative": _Rule(1, 1, _negative),
    "positive": _Rule(1, 1, _positive),
    "abs": _Rule(1, 1, _abs),
    "rounding": _Rule(1, 2, _rounding),
    "floor": _Rule(1, 1, _floor),
    "log": _Rule(1, 2, _log),
    "log2": _Rule(1, 1, _log2),
    "shift": _Rule(2, 2, _shift),
    "like": _Rule(2, 3, _like),
    "ilike": _Rule(2, 3, _like),
    "trim": _Rule(1, 2, _trim),
    "btrim": _Rule(1, 2, _btrim),
    "substring": _Rule(2, 3, _substring),
    "left": _Rule(2, 2, _left),
    "concat": _Rule(0, None, _concat),
    "concat_ws": _Rule(1, None, _concat_ws),
    "pad": _Rule(2, 3, _pad),
    "space": _Rule(1, 1, _space),
    "reverse": _Rule(1, 1, _reverse),
    "hex": _Rule(1, 1, _hex),
    "extract": _Rule(2, 2, _extract),
    "to_date": _Rule(1, 2, _to(DATE)),
    "to_timestamp": _Rule(1, 2, _to(TIMESTAMP)),
    "to_timestamp_ntz": _Rule(1, 2, _to(TIMESTAMP_NTZ)),
    "unix_date": _Rule(1, 1, _unix_date),
    "date_from_unix_date": _Rule(1, 1, _date_from_unix_date),
    "timestamp_seconds": _Rule(1, 1, _timestamp_seconds),
    "unix_timestamp": _Rule(1, 1, _unix_timestamp),
    "current_timestamp": _Rule(0, 0, _current_timestamp),
    "current_date": _Rule(0, 0, _current_date),
    "localtimestamp": _Rule(0, 0, _localtimestamp),
    "size": _Rule(1, 1, _size),
    "array_contains": _Rule(2, 2, _array_contains),
    "element_at": _Rule(2, 2, _element_at),
    "get": _Rule(2, 2, _get),
    "map_part": _Rule(1, 1, _map_part),
    "map_contains_key": _Rule(2, 2, _map_contains_key),
}
