"""Untyped syntax + a table's schema -> the closed typed tree.

Stage: the middle of `text -> syntax -> tree -> core`. Resolves names without case, decides every type by Spark's rules,
writes every implicit cast down, and refuses by name whatever is not in the table of functions. It folds nothing but the
casts of long lists; that is `simplify`'s work, so that a literal's type is decided before anything moves.

Rejected: deciding types in Rust. The same decision would then exist twice, for the renderers need it too.
"""

# Exceptions are made by functions that add the place; methods that never return raise.

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NoReturn

from deltafast._expr import coercion, literals, types
from deltafast._expr.ambiguities import SAME_FUNCTIONS, Ambiguities
from deltafast._expr.coercion import TypeClass
from deltafast._expr.errors import DOUBLE_QUOTES, UnsupportedExpressionError, invalid, unsupported, where
from deltafast._expr.functions import CAST_FUNCTIONS, FUNCTIONS, Function
from deltafast._expr.parser import MAX_DEPTH
from deltafast._expr.rules import STRUCT, Rule
from deltafast._expr.syntax import (
    Between,
    Binary,
    Case,
    CastTo,
    Constant,
    ExactName,
    FieldOf,
    Func,
    InList,
    IntervalLit,
    InValues,
    Item,
    Like,
    LikeKind,
    Logical,
    Name,
    Syntax,
    Test,
    TestKind,
    Unary,
)
from deltafast._expr.tree import Call, Cast, CastMode, Col, In, Lit, Node, SessionCall, call, joined
from deltafast._expr.types import (
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
    is_timestamp,
    sql_name,
)
from deltafast._expr.value_lists import constants_of, fold_values
from deltafast._util.dialect import Dialect
from deltafast.exceptions import ErrorCode, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._expr.binding import SessionFunctions
    from deltafast._expr.context import ExpressionContext
    from deltafast._expr.tree import TypedValues

__all__ = ["Binder"]

_COMPARISONS: Final = frozenset(("=", "<=>", "<", "<=", ">", ">=", "!="))
_ARITHMETIC: Final = frozenset(("+", "-", "*", "/", "%", "div"))
_BITS: Final = {"&": "bitand", "|": "bitor", "^": "bitxor"}
_SHIFTS: Final = {"<<": "shiftleft", ">>": "shiftright"}
_MIRROR: Final = {"=": "=", "<=>": "<=>", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COLLATED_OK: Final = frozenset(("isnull", "isnotnull"))
_SHOWN_NAMES: Final = 8
#: Functions of Spark that give another value each time.
_NON_DETERMINISTIC: Final = frozenset(
    ("rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id")
)


class Binder:
    """Binds one expression; it has the schema, the settings and the SQL string for messages."""

    def __init__(self, schema: Struct, text: str, context: ExpressionContext) -> None:
        self.schema = schema
        self.text = text
        self.dialect, self.zone, self.ansi, self.functions, self._now = context
        self.mode = CastMode.ANSI if self.ansi else CastMode.LEGACY
        self._depth = 0
        self._ambiguities = Ambiguities(self.refuse) if self.dialect is Dialect.DELTALAKE else None
        self._chars: dict[tuple[str, ...], int] = {}

    # --- entry

    def bind(self, node: Syntax) -> Node:
        """Return the typed node of a syntax node."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            hint = "split it, or write long lists with IN"
            raise invalid(f"the expression nests more than {MAX_DEPTH} levels deep", self.text, None, hint)
        try:
            return self._bind(node)
        finally:
            self._depth -= 1

    def predicate(self, node: Syntax) -> Node:
        """Return a boolean typed node, as required for a filter."""
        if self._ambiguities is not None:
            self._ambiguities.allow_selection(node)
        bound = self.bind(node)
        if bound.type == VOID:
            return Lit(None, BOOLEAN)
        if bound.type != BOOLEAN:
            hint = "compare it with something, for a filter must be true or false"
            kind = sql_name(bound.type)
            raise invalid(
                f"the predicate is of type {kind}, not BOOLEAN",
                self.text,
                None,
                hint,
                code=ErrorCode.PREDICATE_NOT_BOOLEAN,
                parameters={"expression": self.text, "data_type": kind},
            )
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
            case InValues(arg=arg, listed=listed):
                return self._value_list(self.bind(arg), listed, node.pos)
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
            case Item(arg=arg, at=index):
                return self._item(self.bind(arg), self.bind(index), node.pos)
            case IntervalLit():
                self.refuse("an INTERVAL as a value is not supported", node.pos, "add it to a date or a timestamp")

    # --- messages

    def wrong(self, what: str, pos: int | None, hint: str) -> NoReturn:
        """Raise an error that Spark raises, too."""
        raise invalid(what, self.text, pos, hint)

    def refuse(self, what: str, pos: int | None, hint: str) -> NoReturn:
        """Refuse an expression that Spark could evaluate."""
        raise unsupported(what, self.text, pos, hint)

    def mismatch(self, what: str, kinds: Sequence[DataType], pos: int | None) -> NoReturn:
        """Refuse argument types that Spark refuses as well."""
        for kind in kinds:
            if (collation := _collation(kind)) is not None:
                self._no_collation(None, collation, pos)
        names = " and ".join(sql_name(k) for k in kinds)
        self.wrong(f"{what} does not take {names}", pos, "cast one side to the type that is meant")

    def check_assignment(self, node: Node, column: DataType) -> None:
        """Refuse a new value of a column that means two things."""
        if self._ambiguities is not None:
            self._ambiguities.check_assignment(node, column)

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
        found = level.named(name)
        if isinstance(name, ExactName):
            found = [f for f in found if f.name == name]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(f"`{f.name}`" for f in found)
            raise invalid(
                f"the name {shown!r} is ambiguous: {names}",
                self.text,
                pos,
                "write it in the exact case of one of them",
                code=ErrorCode.AMBIGUOUS_COLUMN,
                parameters={"column": shown},
            )
        hint = _near_names(name, [f.name for f in level.fields])
        if isinstance(name, ExactName):
            hint = f"{hint} ({DOUBLE_QUOTES})"
        message = f"no column {shown!r}{where(self.text, pos)}; {hint}"
        raise InvalidArgumentError(message, column=shown, code=ErrorCode.COLUMN_NOT_FOUND, parameters={"column": shown})

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
        if self._ambiguities is not None:
            self._ambiguities.check_item(node, pos)
        if isinstance(kind, Array):
            if not is_integral(index.type) and index.type != VOID:
                self.mismatch("an array index", [index.type], pos)
            f = "getitem" if self.ansi else "get"
            return self.emit(f, [node, self.cast(index, INTEGER, pos)], kind.element)
        if isinstance(kind, Map):
            return self.emit("element_at", [node, self.coerce_to(index, kind.key, pos)], kind.value)
        if isinstance(kind, Struct) and isinstance(index, Lit) and isinstance(index.value, str):
            return self._field(node, index.value, pos)
        self.mismatch("[]", [kind], pos)

    # --- casts

    def cast(self, node: Node, to: DataType, pos: int | None = None) -> Node:
        """Insert an implicit cast, unless the type is right already."""
        source = node.type
        if source == to:
            return node
        self._refuse_collations([node], pos)
        if isinstance(node, Lit) and node.value is None:
            return Lit(None, to)
        if self._ambiguities is not None:
            self._ambiguities.check_cast(node, to, pos)
        if not coercion.can_cast(source, to, self.mode):
            self.mismatch(f"a cast to {sql_name(to)}", [source], pos)
        return Cast(node, to, self.mode)

    def coerce_to(self, node: Node, to: DataType, pos: int | None) -> Node:
        """Cast an argument to a fixed type where Spark would do so on its own."""
        if node.type != VOID and not _implicit(node.type, to):
            self.mismatch(f"an argument of type {sql_name(to)}", [node.type], pos)
        return self.cast(node, to, pos)

    def _explicit_cast(self, node: Node, to: DataType, *, safe: bool, pos: int | None) -> Node:
        mode = CastMode.TRY if safe else self.mode
        if node.type == to:
            return node
        if self._ambiguities is not None:
            self._ambiguities.check_cast(node, to, pos)
        if not coercion.can_cast(node.type, to, mode):
            what = f"{sql_name(node.type)} cannot be cast to {sql_name(to)}"
            self.wrong(what, pos, "cast through another type, or switch ANSI mode off if Spark wrote it so")
        if to == VOID:
            self.refuse("a cast to VOID is not supported", pos, "write NULL")
        return Cast(node, to, mode)

    def coerce(self, node: Node, to: DataType | TypeClass, name: str, pos: int | None) -> Node:
        """Cast an argument to the type of a parameter in the function table."""
        if isinstance(to, TypeClass):
            return self._coerce_to_class(node, to, name, pos)
        if node.type != VOID and not _implicit(node.type, to):
            self.mismatch(f"{name}()", [node.type], pos)
        return self.cast(node, to, pos)

    def _coerce_to_class(  # noqa: PLR0911 - one line a class
        self, node: Node, to: TypeClass, name: str, pos: int | None
    ) -> Node:
        source = node.type
        match to:
            case TypeClass.ANY:
                return node
            case TypeClass.TEXT:
                return node if source == BINARY else self.coerce(node, STRING, name, pos)
            case TypeClass.DATETIME:
                return node if is_timestamp(source) else self.coerce(node, TIMESTAMP, name, pos)
            case TypeClass.DAYS if source in (BYTE, SHORT, INTEGER, VOID) or is_string(source):
                return self.cast(node, INTEGER, pos)
            case TypeClass.INTEGRAL if is_integral(source) or source == VOID:
                return self.cast(node, LONG, pos)
            case TypeClass.EXACT_TIMESTAMP if source in (TIMESTAMP, VOID):
                return self.cast(node, TIMESTAMP, pos)
            case TypeClass.NUMBER:
                return node if is_numeric(source) else self.coerce(node, DOUBLE, name, pos)
            case _:
                self.mismatch(f"{name}()", [source], pos)

    def emit(self, f: str, args: Sequence[Node], kind: DataType, pos: int | None = None) -> Node:
        """Return a call; strings with a collation other than byte order are refused if the function reads them."""
        if f not in _COLLATED_OK:
            self._refuse_collations(args, pos)
        made = Call(f, tuple(args), kind)
        if self.functions is None or self.functions.core_evaluates(made):
            return made
        return SessionCall(f, made.args, kind)

    def _refuse_collations(self, nodes: Sequence[Node], pos: int | None) -> None:
        for node in nodes:
            if (collation := _collation(node.type)) is not None:
                self._no_collation(node, collation, pos)

    def _no_collation(self, node: Node | None, collation: str, pos: int | None) -> NoReturn:
        column = f"the column `{'.'.join(node.path)}`" if isinstance(node, Col) else "a value"
        what = f"{column} has the collation {collation}, by which deltafast cannot compare strings"
        self.refuse(what, pos, "leave the column out of the expression")

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
        # Spark casts a string to a boolean only next to one; from the third operand on the left side always is one.
        if BOOLEAN not in first and any(is_string(t) for t in first):
            self.mismatch(op.upper(), first, pos)
        return joined(op, [self._condition(a, op.upper(), pos) for a in bound])

    def _test(self, kind: TestKind, node: Node, pos: int | None) -> Node:
        if kind is TestKind.NULL:
            return self.emit("isnull", [node], BOOLEAN)
        if kind is not TestKind.UNKNOWN:
            return self.compare("<=>", node, Lit(kind is TestKind.TRUE, BOOLEAN), pos)
        if node.type not in (BOOLEAN, VOID) and not is_string(node.type):
            self.mismatch("IS UNKNOWN", [node.type], pos)
        return call("isnull", self.cast(node, BOOLEAN, pos))

    def compare(self, op: str, left: Node, right: Node, pos: int | None) -> Node:
        """Return a comparison in the common type of both sides."""
        if op == "!=":
            return call("not", self.compare("=", left, right, pos))
        if self._ambiguities is not None:
            left, right = self._ambiguities.compared(left, right, pos)
        kind = self._comparison_type(left, right)
        if kind is None:
            self._refuse_collations([left, right], pos)
            self.mismatch(f"the comparison {op}", [left.type, right.type], pos)
        if kind == VOID:
            return Lit(value=True, type=BOOLEAN) if op == "<=>" else Lit(None, BOOLEAN)
        self._comparable(kind, pos)
        if kind == STRING:
            left, right = self._pad_chars([left, right])
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

    def _pad_chars(self, nodes: Sequence[Node]) -> list[Node]:
        """Pad compared strings as Spark does if one is a CHAR(n), which only some writers store with its padding."""
        chars = [self._chars.get(node.path, 0) if isinstance(node, Col) else 0 for node in nodes]
        if not any(chars):
            return list(nodes)
        values = [len(node.value) for node in nodes if isinstance(node, Lit) and isinstance(node.value, str)]
        length = max(*chars, *values)
        out: list[Node] = []
        for node, is_char in zip(nodes, chars, strict=True):
            if is_char:
                out.append(Call("rpad", (node, Lit(length, INTEGER), Lit(" ", STRING)), STRING))
            elif isinstance(node, Lit) and isinstance(node.value, str):
                out.append(Lit(node.value.ljust(length), STRING))
            else:
                out.append(node)
        return out

    def membership(self, value: Node, items: Sequence[Node], pos: int | None) -> Node:
        """`IN`: an internal call that `simplify` turns into an `In` node or a chain of comparisons."""
        if self._ambiguities is not None:
            pairs = [self._ambiguities.compared(value, item, pos) for item in items]
            value, items = pairs[0][0] if pairs else value, [item for _, item in pairs]
        kind = coercion.common([value.type, *(i.type for i in items)], ansi=self.ansi)
        if kind is None:
            self._refuse_collations([value, *items], pos)
            self.mismatch("IN", list(dict.fromkeys([value.type, *(i.type for i in items)])), pos)
        if kind == VOID:
            return Lit(None, BOOLEAN)
        if not isinstance(kind, (types.Atomic, Decimal)) or kind == types.VARIANT:
            self.refuse(f"IN over values of type {sql_name(kind)} is not supported", pos, "compare their parts")
        if kind == STRING:
            value, *items = self._pad_chars([value, *items])
        return self.emit("in", [self.cast(n, kind, pos) for n in (value, *items)], BOOLEAN, pos)

    def _value_list(self, value: Node, listed: TypedValues, pos: int | None) -> Node:
        """`IN` with a long list of constants: typed and cast as a whole if each cast of a constant is certain."""
        kind = coercion.common([value.type, *listed.types], ansi=self.ansi)
        is_char = isinstance(value, Col) and value.path in self._chars
        if isinstance(kind, (types.Atomic, Decimal)) and kind not in (VOID, types.VARIANT) and not is_char:
            self._refuse_collations([value], pos)
            castable = all(coercion.can_cast(source, kind, self.mode) for source in listed.types)
            values = fold_values(listed, kind, self.zone) if castable else None
            if values is not None:
                return In(self.cast(value, kind, pos), values)
        return self.membership(value, constants_of(listed), pos)

    def _like(self, node: Like) -> Node:
        value = self.coerce(self.bind(node.arg), STRING, node.kind, node.pos)
        tests: list[Node] = []
        for pattern in node.patterns:
            text = self.coerce(self.bind(pattern), STRING, node.kind, node.pos)
            test = self._like_call(node.kind, value, text, Lit(node.escape, STRING))
            tests.append(call("not", test) if node.negated else test)
        return joined("and" if node.every else "or", tests)

    def _like_call(self, kind: LikeKind, value: Node, pattern: Node, escape: Lit) -> Node:
        if kind is LikeKind.RLIKE:
            return self.emit("rlike", [value, pattern], BOOLEAN)
        if kind is LikeKind.ILIKE:
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
        """Cast all nodes to their common type."""
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
        number = self.coerce(node, TypeClass.NUMBER, f"unary {op}", pos)
        return number if op == "+" else self.emit("negative", [number], number.type)

    def _binary(self, node: Binary, op: str) -> Node:  # noqa: PLR0911 - one line a kind of operator
        if op in ("+", "-") and (shifted := self._with_interval(node)) is not None:
            return shifted
        if op in _COMPARISONS and (compared := self._compare_interval(node)) is not None:
            return compared
        left, right = self.bind(node.left), self.bind(node.right)
        if op in _COMPARISONS:
            return self.compare(op, left, right, node.pos)
        if op == "||":
            return self.concat([left, right], node.pos)
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
        if self._ambiguities is not None:
            self._ambiguities.check_arithmetic(op, left, right, pos)
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
        """Cast strings, nulls and decimals to numbers, so that both are numeric types or both decimals."""
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
        if not types.is_timestamp(base.type):
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
        if self._ambiguities is not None:
            self._ambiguities.check_shift(left, pos)
        kind = LONG if left.type == LONG else INTEGER
        if left.type != LONG:
            left = self.coerce(left, INTEGER, f, pos)
        return self.emit(f, [left, self.coerce(right, INTEGER, f, pos)], kind)

    def concat(self, nodes: Sequence[Node], pos: int | None) -> Node:
        """Return a concatenation of strings, binaries or arrays."""
        if nodes and all(n.type == BINARY for n in nodes):
            return self.emit("concat", nodes, BINARY)
        if any(isinstance(n.type, Array) for n in nodes):
            arrays, kind = self.same(nodes, "concat", pos, strings=False)
            return self.emit("concat", arrays, kind)
        return self.emit("concat", [self.coerce(n, STRING, "concat", pos) for n in nodes], STRING)

    # --- functions

    def _function(self, node: Func) -> Node:
        if self._ambiguities is not None and node.name in SAME_FUNCTIONS:
            node = node._replace(name=SAME_FUNCTIONS[node.name])
        name = node.name
        cast_to = CAST_FUNCTIONS.get(name)
        if cast_to is not None and len(node.args) == 1:
            return self._explicit_cast(self.bind(node.args[0]), cast_to, safe=False, pos=node.pos)
        spec = FUNCTIONS.get(name)
        if spec is None and self.functions is not None:
            return self._session_call(self.functions, name, [self.bind(a) for a in node.args], node.pos)
        if spec is None:
            from difflib import get_close_matches  # only for the message

            near = get_close_matches(name, FUNCTIONS, n=1, cutoff=0.75)
            hint = f"did you mean {near[0]}()?" if near else "docs/sql.md lists those that are"
            code = ErrorCode.NON_DETERMINISTIC_EXPRESSION if name in _NON_DETERMINISTIC else None
            what = f"the function {name}() is not supported"
            raise unsupported(what, self.text, node.pos, hint, code=code, parameters={"expression": f"{name}()"})
        args = [self.bind(a) for a in node.args]
        if self._ambiguities is not None:
            if name == "concat" and all(is_string(arg.type) or is_integral(arg.type) for arg in args):
                # There, a null is an empty string.
                node, args, spec = node._replace(name="concat_ws"), [Lit("", STRING), *args], FUNCTIONS["concat_ws"]
            self._ambiguities.check_call(node, args)
        try:
            return self._call(spec, node, args)
        except UnsupportedExpressionError:
            if self.functions is None:
                raise
            return self._session_call(self.functions, name, args, node.pos)

    def _session_call(
        self, functions: SessionFunctions, name: str, args: Sequence[Node], pos: int | None
    ) -> SessionCall:
        """Return a call that only Spark evaluates."""
        self._refuse_collations(args, pos)
        return SessionCall(name, tuple(args), functions.result_type(name, args))

    def _call(self, spec: Function, node: Func, args: list[Node]) -> Node:
        """Return a call of a function of the core."""
        name = node.name
        if spec.rule is STRUCT:
            if not args:
                self.refuse("a struct without fields is not supported", node.pos, "give it one, or write NULL")
            names = [Lit(_given_name(a, n), STRING) for n, a in enumerate(node.args, 1)]
            args = [part for pair in zip(names, args, strict=True) for part in pair]
        if spec.rule is not None:
            return self._by_rule(spec.rule, spec.emit, name, args, node.pos)
        least = sum(p.default is None for p in spec.params)
        if not least <= len(args) <= len(spec.params):
            self.count(name, args, node.pos, least, len(spec.params))
        nodes: list[Node] = []
        for i, param in enumerate(spec.params):
            arg = args[i] if i < len(args) else param.default
            if arg is not None:
                nodes.append(self.coerce(arg, param.type, name, node.pos))
        return self.emit(spec.emit, nodes, spec.result or BOOLEAN, node.pos)

    def count(self, name: str, args: Sequence[Node], pos: int | None, least: int, most: int | None) -> None:
        """Refuse a wrong number of arguments."""
        if len(args) >= least and (most is None or len(args) <= most):
            return
        wanted = f"{least}" if most == least else f"at least {least}" if most is None else f"{least} to {most}"
        hint = "see Spark's documentation of the function"
        self.wrong(f"{name}() takes {wanted} arguments, not {len(args)}", pos, hint)

    def _by_rule(self, rule: Rule, emit: str, name: str, args: list[Node], pos: int | None) -> Node:
        self.count(name, args, pos, rule.least, rule.most)
        return rule.build(self, emit, name, args, pos)

    def now(self) -> int:
        """Return the time of the query, which is determined once."""
        if self._now is None:
            self._now = time.time_ns() // 1000
        return self._now


def _near_names(name: str, names: Sequence[str]) -> str:
    """Return the hint for a name that does not exist: a similar one, or some of those that do."""
    from difflib import get_close_matches  # only for the message

    alike = [known for known in names if known.lower() == name.lower()] or get_close_matches(name, names, n=1)
    if alike:
        return f"did you mean {alike[0]!r}?"
    more = ", ..." if len(names) > _SHOWN_NAMES else ""
    return f"there are: {', '.join(names[:_SHOWN_NAMES])}{more}" if names else "the table has no columns"


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


def _given_name(node: Syntax, place: int) -> str:
    """Return the name of a value in `struct()`: the last part of a column's name as written, or its position."""
    match node:
        case Name(parts=parts):
            return parts[-1]
        case FieldOf(name=name):
            return name
        case Item(at=Constant(lit=Lit(value=str() as name))):
            return name
        case _:
            return f"col{place}"


def _decimal_of(node: Node) -> Decimal:
    """Return the decimal type of an integer operand; a literal counts with its own digits."""
    if isinstance(node, Lit) and node.type in (SHORT, INTEGER, LONG) and isinstance(node.value, int):
        return Decimal(len(str(abs(node.value))), 0)
    return coercion.decimal_for(node.type)


def _collation(t: DataType) -> str | None:
    """Return the first collation of a type other than byte order."""
    match t:
        case types.Atomic(collation=c):
            return c
        case Array(element=e):
            return _collation(e)
        case Map(key=k, value=v):
            return _collation(k) or _collation(v)
        case Struct(fields=fields):
            return next((c for f in fields if (c := _collation(f.type)) is not None), None)
        case _:
            return None


def _implicit(source: DataType, to: DataType) -> bool:
    """Return whether Spark casts a function's argument implicitly."""
    if source == to:
        return True
    if to == STRING:
        return isinstance(source, (types.Atomic, Decimal)) and source != types.VARIANT
    if is_numeric(to):
        return is_numeric(source) or is_string(source)
    if is_datetime(to):
        return is_datetime(source) or is_string(source)
    return to in (BOOLEAN, BINARY) and is_string(source)
