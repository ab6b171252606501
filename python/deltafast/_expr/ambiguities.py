"""Refusal of SQL that means one thing in DataFusion, for which programs for `deltalake` are written, and another here.

Under the name `deltalake`, a statement that ran there must not change other rows here. So an expression whose results
differ is refused, with both readings and an expression that has one reading in both. Each rule was found by a
comparison of both libraries on the same rows (`tests/python/deltalake/test_two_readings.py`).
"""

# Exceptions are made by functions that add the place; methods that never return raise.

from __future__ import annotations

import decimal
import struct
from typing import TYPE_CHECKING, Final, NoReturn

from deltafast._expr import token_kind, types
from deltafast._expr.decimals import rescale, to_whole
from deltafast._expr.errors import unsupported
from deltafast._expr.syntax import Func, Logical
from deltafast._expr.tree import Cast, CastMode, Col, Lit
from deltafast._expr.types import DOUBLE, FLOAT, LONG, STRING, Array, Decimal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltafast._expr.lexer import Token
    from deltafast._expr.syntax import Syntax
    from deltafast._expr.tree import Node
    from deltafast._expr.types import DataType

__all__ = ["SAME_FUNCTIONS", "Ambiguities", "check_strings", "two_readings"]

#: Functions of DataFusion that Spark has under another name.
SAME_FUNCTIONS: Final = {"starts_with": "startswith", "ends_with": "endswith", "strpos": "instr"}

_FLOATS: Final = (FLOAT, DOUBLE)
#: Functions that are null here for an element or number for which they are false in DataFusion, or the reverse.
_THREE_VALUED: Final = frozenset(["isnan", "array_contains"])
#: Functions that DataFusion evaluates with 32 bits if their argument has so many.
_NARROW: Final = frozenset(["sqrt", "exp", "pow", "power"])
_EXACT_POWERS: Final = (0, 1, 2)


def two_readings(what: str, there: str, here: str) -> str:
    """Return the message about an expression with two readings."""
    return f"{what} means two things: {there} in deltalake, whose SQL is DataFusion's, and {here} in Spark SQL"


def check_strings(tokens: Sequence[Token], text: str) -> None:
    """Refuse strings that are written in another way in DataFusion: with a backslash, or next to another string.

    Raises:
        UnsupportedExpressionError: There is one.
    """
    for n, token in enumerate(tokens):
        if token.kind is not token_kind.STRING:
            continue
        source = text[token.pos : token.end]
        before = tokens[n - 1] if n else None
        if "\\" in source and source[0] == "'":
            # There, these two are the only escapes of a pattern, too.
            is_pattern = before is not None and before.upper in ("LIKE", "ILIKE")
            rest = source.replace("\\%", "").replace("\\_", "") if is_pattern else source
            if "\\" in rest:
                what = two_readings("a backslash in a string", "the character itself", "the begin of an escape")
                raise unsupported(what, text, token.pos, "write r'..' for a string in which it is the character itself")
        if before is not None and before.kind is token_kind.STRING:
            what = two_readings("a string after a string", "an alias", "the continuation of the string")
            raise unsupported(what, text, token.pos, "write one string, or || between them")


class Ambiguities:
    """Refuses parts of an expression with two readings.

    Args:
        refuse: Raises the error of a part, from its description, its position and the remedy.
    """

    def __init__(self, refuse: Callable[[str, int | None, str], NoReturn]) -> None:
        self._raise = refuse
        #: Calls for which null and false select the same rows.
        self._selecting: set[int] = set()

    def _refuse(self, what: str, there: str, here: str, remedy: str, pos: int | None) -> NoReturn:
        self._raise(two_readings(what, there, here), pos, remedy)

    def allow_selection(self, node: Syntax) -> None:
        """Note the calls of a condition for which null and false are the same."""
        if isinstance(node, Logical):
            for arg in node.args:
                self.allow_selection(arg)
        elif isinstance(node, Func):
            self._selecting.add(id(node))

    # --- operators

    def check_item(self, node: Node, pos: int | None) -> None:
        """Check an element by its position."""
        if isinstance(node.type, Array):
            remedy = "write element_at(l, 1) for the first element (not in deltalake)"
            self._refuse("the position in l[1]", "the first element", "the second element", remedy, pos)

    def check_shift(self, left: Node, pos: int | None) -> None:
        """Check a shift: integers without a type have 64 bits there, and 32 here."""
        if left.type != LONG or isinstance(left, Lit):
            remedy = "shift a column of type BIGINT, or cast(.. AS bigint) with another one"
            self._refuse("a shift", "one of 64 bits", f"one of the bits of {types.sql_name(left.type)}", remedy, pos)

    def check_arithmetic(self, op: str, left: Node, right: Node, pos: int | None) -> None:
        """Check an arithmetic operation on numbers."""
        kinds = (left.type, right.type)
        if op == "/":
            self._check_division(kinds, pos)
        elif any(_is_fraction(node) for node in (left, right)) and not any(kind in _FLOATS for kind in kinds):
            remedy = "write cast(0.5 AS double) for a number of 64 bits"
            self._refuse("a number such as 0.5", "a double", "a decimal", remedy, pos)

    def _check_division(self, kinds: Sequence[DataType], pos: int | None) -> None:
        if all(types.is_integral(kind) or kind == types.VOID for kind in kinds):
            remedy = "write `a div b` for the integer (not in deltalake), cast(a AS double) / b for the fraction"
            self._refuse("a / b of integers", "the integer quotient", "the fraction", remedy, pos)
        is_wide = DOUBLE in kinds
        if any(isinstance(kind, Decimal) for kind in kinds) and not is_wide:
            remedy = "write cast(a AS double) / b"
            self._refuse("a / b of decimals", "the quotient cut to another scale", "the rounded one", remedy, pos)
        if FLOAT in kinds and not is_wide:
            remedy = "write cast(a AS double) / b"
            self._refuse("a / b of floats", "a quotient of 32 bits", "one of 64 bits", remedy, pos)

    def compared(self, left: Node, right: Node, pos: int | None) -> tuple[Node, Node]:
        """Return the sides of a comparison; a string and an integer are compared as strings, as there."""
        for node, other in ((left, right), (right, left)):
            is_text = types.is_string(node.type) and (not isinstance(node, Lit) or isinstance(other, Lit))
            if is_text and types.is_integral(other.type):
                return _as_string(left), _as_string(right)
        self._check_comparison(left, right, pos)
        return left, right

    def _check_comparison(self, left: Node, right: Node, pos: int | None) -> None:
        for node, other in ((left, right), (right, left)):
            if types.is_string(node.type) and not isinstance(node, Lit) and _is_other_scalar(other.type):
                self._refuse_strings(other.type, pos)
            if types.is_string(node.type) and isinstance(node, Lit) and isinstance(other, Lit):
                if types.is_numeric(other.type):
                    self._refuse_strings(other.type, pos)
            elif isinstance(node, Lit) and isinstance(node.value, (float, decimal.Decimal)):
                self._check_number(decimal.Decimal(str(node.value)), other, pos)

    def _refuse_strings(self, kind: DataType, pos: int | None) -> NoReturn:
        name = types.sql_name(kind)
        remedy = f"cast one side: cast(s AS {name.lower()}), or compare with a string in single quotes"
        self._refuse(f"a string compared with {name}", "a comparison of strings", f"one of {name}", remedy, pos)

    def _check_number(self, number: decimal.Decimal, other: Node, pos: int | None) -> None:
        kind = other.type
        if not number.is_finite() or isinstance(other, Lit):
            return
        if types.is_integral(kind):
            is_exact = to_whole(number) is not None
        elif isinstance(kind, Decimal):
            is_exact = rescale(number, kind.scale) is not None
        elif kind == FLOAT:
            single: float = struct.unpack("f", struct.pack("f", float(number)))[0]
            is_exact = decimal.Decimal.from_float(single) == number  # noqa: FURB164 - the constructor obeys a trap
        else:
            return
        if not is_exact:
            remedy = "compare with a number that the column's type has, or cast(.. AS double) with the number"
            name = types.sql_name(kind)
            self._refuse(f"{number} compared with {name}", f"the number cut to {name}", "the number", remedy, pos)

    # --- casts

    def check_cast(self, node: Node, to: DataType, pos: int | None) -> None:
        """Check a cast, implicit or not."""
        source = node.type
        if to == STRING and (
            source in _FLOATS
            or types.is_timestamp(source)
            or isinstance(source, types.NESTED)
            or (isinstance(source, Decimal) and isinstance(node, Lit))
        ):
            name = types.sql_name(source)
            remedy = "cast to a type with one format, such as decimal(20, 2) or date, first"
            self._refuse(f"{name} as a string", "the format of Arrow", "the format of Spark", remedy, pos)
        if types.is_timestamp(source) and types.is_numeric(to):
            remedy = "compare with a TIMESTAMP '..'"
            self._refuse("a timestamp as a number", "the microseconds", "the seconds since 1970", remedy, pos)
        if types.is_timestamp(to) and (source in _FLOATS or isinstance(source, Decimal)):
            remedy = "write TIMESTAMP '..'"
            self._refuse("a fraction as a timestamp", "whole seconds", "seconds with their fraction", remedy, pos)

    def check_assignment(self, node: Node, column: DataType) -> None:
        """Check a new value of a column."""
        if types.is_timestamp(column) and types.is_numeric(node.type):
            remedy = "write TIMESTAMP '..'"
            self._refuse("a number as a timestamp", "microseconds since 1970", "seconds since 1970", remedy, None)
        if isinstance(column, Decimal) and isinstance(node, Lit) and isinstance(node.value, decimal.Decimal):
            self._check_number(node.value, Col((), column), None)
        self.check_cast(node, column, None)

    # --- functions

    def check_call(self, node: Func, args: Sequence[Node]) -> None:
        """Check a call of a function."""
        name, pos = node.name, node.pos
        if name in _THREE_VALUED and id(node) not in self._selecting:
            remedy = "write x = 'NaN' for isnan(x), or use the call alone as a condition"
            self._refuse(f"{name}() of a null", "null or false", "false or null", remedy, pos)
        if name in _NARROW and any(arg.type == FLOAT for arg in args):
            self._refuse(f"{name}() of a FLOAT", "32 bits", "64 bits", "write cast(x AS double)", pos)
        check = _CALLS.get(name)
        if check is not None and (difference := check(args)) is not None:
            self._refuse(f"{name}()", *difference, pos)


def _as_string(node: Node) -> Node:
    if isinstance(node, Lit) and isinstance(node.value, int):
        return Lit(str(node.value), STRING)
    return node if types.is_string(node.type) else Cast(node, STRING, CastMode.ANSI)


def _is_fraction(node: Node) -> bool:
    """Return whether a node is a number such as 0.5, which is no decimal there."""
    if not isinstance(node, Lit) or not isinstance(node.value, decimal.Decimal):
        return False
    return to_whole(node.value) is None


def _is_other_scalar(kind: DataType) -> bool:
    return types.is_numeric(kind) or types.is_datetime(kind) or kind == types.BOOLEAN


def _number(node: Node) -> float | None:
    """Return the value of a number."""
    is_number = isinstance(node, Lit) and isinstance(node.value, (int, float, decimal.Decimal))
    return float(node.value) if is_number and isinstance(node, Lit) and node.value is not None else None


#: The reading there, the reading here, the remedy; None if there is one reading.
_Difference = tuple[str, str, str] | None


def _concat(args: Sequence[Node]) -> _Difference:
    if all(isinstance(arg, Lit) and arg.value is not None for arg in args):
        return None
    return "a null is an empty string", "the result is null", "write a || b for null, concat_ws('', a, b) otherwise"


def _substring(args: Sequence[Node]) -> _Difference:
    start = _number(args[1]) if len(args) > 1 else 1
    if start is not None and start >= 1:
        return None
    return (
        "positions below 1 are before the string",
        "positions from its end",
        "begin at a number from 1, or use right()",
    )


def _part(args: Sequence[Node]) -> _Difference:
    count = _number(args[1]) if len(args) > 1 else 0
    if count is not None and count >= 0:
        return None
    return "a number below 0 leaves out so many", "the result is empty", "give a number from 0, or use substr()"


def _logarithm(args: Sequence[Node]) -> _Difference:
    number = _number(args[-1]) if args else None
    if number is not None and number > 0:
        return None
    return "NaN for a number below 0", "null", "compare x with exp(..), or compute the values in the program"


def _log(args: Sequence[Node]) -> _Difference:
    if len(args) == 1:
        return "the logarithm to base 10", "the natural logarithm", "compare x with exp(..) or power(..)"
    return _logarithm(args)


def _round(args: Sequence[Node]) -> _Difference:
    places = _number(args[1]) if len(args) > 1 else 0
    is_binary = args[0].type in _FLOATS or _is_fraction(args[0]) if args else False
    if places == 0 or not is_binary:
        return None
    return "the rounded binary number", "the rounded decimal one", "write round(cast(x AS decimal(20, 6)), 2)"


def _power(args: Sequence[Node]) -> _Difference:
    exponent = _number(args[-1]) if args else None
    is_exact = exponent in _EXACT_POWERS or all(_number(arg) is not None for arg in args)
    if is_exact or args[0].type == DOUBLE:
        return None
    return "a power of an integer", "a power of a double", "write power(cast(x AS double), y)"


def _extreme(args: Sequence[Node]) -> _Difference:
    if not any(isinstance(arg, Lit) and arg.value is None for arg in args):
        return None
    return "null", "the extreme of the other values", "leave NULL out"


def _date_part(args: Sequence[Node]) -> _Difference:
    unit = args[0].value if args and isinstance(args[0], Lit) else None
    if not isinstance(unit, str) or unit.lower() not in ("dow", "dayofweek", "dayofweek_iso", "dow_iso"):
        return None
    return "Sunday is 0", "Sunday is 1", "write weekday(d) (Monday is 0; not in deltalake), or compare other parts"


def _always(there: str, here: str, remedy: str) -> Callable[[Sequence[Node]], _Difference]:
    return lambda _: (there, here, remedy)


_CALLS: Final[dict[str, Callable[[Sequence[Node]], _Difference]]] = {
    "concat": _concat,
    "substr": _substring,
    "substring": _substring,
    "left": _part,
    "right": _part,
    "ln": _logarithm,
    "log2": _logarithm,
    "log10": _logarithm,
    "log": _log,
    "round": _round,
    "pow": _power,
    "power": _power,
    "greatest": _extreme,
    "least": _extreme,
    "date_part": _date_part,
    "datepart": _date_part,
    "extract": _date_part,
    "initcap": _always("words end at each other character", "words end at spaces", "compare upper(s) or lower(s)"),
    "date_format": _always("a pattern with %Y", "a pattern with yyyy", "compare date_part('year', d) and other parts"),
}
