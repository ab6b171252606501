"""Spark SQL expression text -> untyped syntax, with Spark 4's precedence.

One function does precedence climbing, so that a level of parentheses takes two frames of Python's stack. Spark's
grammar, lowest precedence first: OR, AND, NOT, one predicate (IS, IN, LIKE, BETWEEN; they don't chain), comparisons,
`|`, `^`, `&`, shifts, `+ - ||`, `* / % DIV`, unary, then `.`, `[]` and `::`.

Nesting is bounded (expressions may come from hostile logs) and a chain of AND or OR of any length is one flat node.
"""

# Exceptions are made by functions that add the place; methods that never return raise.

from __future__ import annotations

import decimal
import re
from typing import TYPE_CHECKING, Final, NoReturn

from deltafast._expr import literals, types
from deltafast._expr.errors import invalid, unsupported
from deltafast._expr.lexer import Token, tokenize
from deltafast._expr.syntax import (
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
from deltafast._expr.tree import Lit

if TYPE_CHECKING:
    from deltafast._expr.types import DataType

__all__ = ["MAX_DEPTH", "parse"]

MAX_DEPTH: Final = 200

_OR, _AND, _NOT, _PREDICATE, _COMPARE, _BITOR, _XOR, _BITAND, _SHIFT, _ADD, _MULTIPLY, _UNARY = range(1, 13)

_INFIX: Final = {
    "=": ("=", _COMPARE),
    "==": ("=", _COMPARE),
    "<=>": ("<=>", _COMPARE),
    "<>": ("!=", _COMPARE),
    "!=": ("!=", _COMPARE),
    "<": ("<", _COMPARE),
    "<=": ("<=", _COMPARE),
    "!>": ("<=", _COMPARE),
    ">": (">", _COMPARE),
    ">=": (">=", _COMPARE),
    "!<": (">=", _COMPARE),
    "|": ("|", _BITOR),
    "^": ("^", _XOR),
    "&": ("&", _BITAND),
    "<<": ("<<", _SHIFT),
    ">>": (">>", _SHIFT),
    ">>>": (">>>", _SHIFT),
    "+": ("+", _ADD),
    "-": ("-", _ADD),
    "||": ("||", _ADD),
    "*": ("*", _MULTIPLY),
    "/": ("/", _MULTIPLY),
    "%": ("%", _MULTIPLY),
    "DIV": ("div", _MULTIPLY),
}
_STOP: Final = frozenset(
    [
        "AND",
        "OR",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "AS",
        "FROM",
        "BETWEEN",
        "IN",
        "IS",
        "LIKE",
        "ILIKE",
        "RLIKE",
        "REGEXP",
        "ESCAPE",
        "DIV",
        "SELECT",
        "WHERE",
    ]
)
_TYPES: Final = {
    "boolean": types.BOOLEAN,
    "tinyint": types.BYTE,
    "byte": types.BYTE,
    "smallint": types.SHORT,
    "short": types.SHORT,
    "int": types.INTEGER,
    "integer": types.INTEGER,
    "bigint": types.LONG,
    "long": types.LONG,
    "float": types.FLOAT,
    "real": types.FLOAT,
    "double": types.DOUBLE,
    "date": types.DATE,
    "timestamp": types.TIMESTAMP,
    "timestamp_ltz": types.TIMESTAMP,
    "timestamp_ntz": types.TIMESTAMP_NTZ,
    "string": types.STRING,
    "binary": types.BINARY,
    "void": types.VOID,
}
_MONTHS: Final = {"YEAR": 12, "MONTH": 1}
_MICROS: Final = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
_UNITS: Final = {u: u for u in (*_MONTHS, *_MICROS)} | {u + "S": u for u in (*_MONTHS, *_MICROS)}
_RANGES: Final = {
    ("YEAR", "MONTH"): r"(?P<YEAR>\d+)-(?P<MONTH>\d+)",
    ("DAY", "HOUR"): r"(?P<DAY>\d+) +(?P<HOUR>\d+)",
    ("DAY", "MINUTE"): r"(?P<DAY>\d+) +(?P<HOUR>\d+):(?P<MINUTE>\d+)",
    ("DAY", "SECOND"): r"(?P<DAY>\d+) +(?P<HOUR>\d+):(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d{1,9})?)",
    ("HOUR", "MINUTE"): r"(?P<HOUR>\d+):(?P<MINUTE>\d+)",
    ("HOUR", "SECOND"): r"(?P<HOUR>\d+):(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d{1,9})?)",
    ("MINUTE", "SECOND"): r"(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d{1,9})?)",
}
_LIMITS: Final = {"MONTH": 11, "HOUR": 23, "MINUTE": 59, "SECOND": 59}
_UNIT_FUNCTIONS: Final = frozenset(["TIMESTAMPADD", "TIMESTAMPDIFF", "DATEADD", "DATEDIFF", "DATE_ADD", "DATE_DIFF"])
_BARE_FUNCTIONS: Final = frozenset({"CURRENT_DATE", "CURRENT_TIMESTAMP"})


def parse(text: str, *, zone: str = "UTC") -> Syntax:
    """Parse one expression.

    Args:
        text: Spark SQL.
        zone: The session's time zone, for `TIMESTAMP` literals without one.

    Raises:
        InvalidArgumentError: A syntax error, with its position.
        UnsupportedExpressionError: Spark SQL that is not a scalar expression (subqueries, lambdas, windows).
    """
    try:
        parser = Parser(text, zone)
        node = parser.expression(0)
        parser.expect_end()
    except RecursionError:
        raise _too_deep(text, None) from None
    return node


def _too_deep(text: str, pos: int | None) -> Exception:
    hint = "split it, or write long lists with IN"
    return invalid(f"the expression nests more than {MAX_DEPTH} levels deep", text, pos, hint)


# Digits of a number that a message repeats.
_SHOWN = 60


class Parser:
    """Parser of the tokens of one SQL string; `deltafast._sql` extends it to statements."""

    def __init__(self, text: str, zone: str) -> None:
        self.text = text
        self.zone = zone
        self.tokens = tokenize(text)
        self.at = 0
        self.depth = 0

    # --- tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def ahead(self, n: int = 1) -> Token:
        return self.tokens[min(self.at + n, len(self.tokens) - 1)]

    def advance(self) -> Token:
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def is_op(self, *ops: str) -> bool:
        return self.token.kind == "op" and self.token.text in ops

    def accept_op(self, op: str) -> bool:
        if self.is_op(op):
            self.advance()
            return True
        return False

    def accept(self, *words: str) -> bool:
        if self.token.upper in words:
            self.advance()
            return True
        return False

    def expect_op(self, op: str) -> None:
        if not self.accept_op(op):
            self.fail(f"expected {op!r}")

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self.fail(f"expected {word}")

    def expect_end(self) -> None:
        if self.token.kind != "end":
            if self.token.upper == "OVER":
                self.refuse("window functions", self.token.pos)
            if self.token.upper == "COLLATE":
                self.refuse("collations", self.token.pos)
            self.fail("expected the end of the expression")

    def fail(self, what: str) -> NoReturn:
        token = self.token
        found = "the end" if token.kind == "end" else repr(token.text)
        hint = "see Spark's expression syntax; names that are keywords need `backticks`"
        raise invalid(f"{what}, found {found}", self.text, token.pos, hint)

    def refuse(self, what: str, pos: int | None) -> NoReturn:
        hint = "only scalar expressions over the table's own columns are"
        raise unsupported(f"{what} are not supported", self.text, pos, hint)

    # --- expressions

    def expression(self, level: int) -> Syntax:
        """Parse everything that binds at least as tightly as `level`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _too_deep(self.text, self.token.pos)
        token = self.token
        ceiling = _UNARY
        if token.upper == "NOT" or self.is_op("!"):
            if level > _NOT:
                self.fail("expected a value")
            self.advance()
            left: Syntax = Unary("not", self.expression(_NOT), token.pos)
            ceiling = _AND
        elif self.is_op("-", "+", "~"):
            self.advance()
            if token.text == "-" and self.token.kind == "number":
                left = self.postfix(self.number(self.advance(), negative=True))
            else:
                left = Unary(token.text, self.expression(_UNARY), token.pos)
        else:
            left = self.postfix(self.primary())
        left = self.infix(left, level, ceiling)
        self.depth -= 1
        return left

    def infix(self, left: Syntax, level: int, ceiling: int) -> Syntax:
        """Fold operators onto `left`; `ceiling` is what may still follow (only AND and OR after a predicate)."""
        while True:
            token = self.token
            word = token.upper
            if word in ("AND", "OR"):
                power = _AND if word == "AND" else _OR
                if power < level:
                    return left
                args = [left]
                while self.accept(word):
                    args.append(self.expression(power + 1))
                left = Logical(word.lower(), tuple(args), token.pos)
                ceiling = power
                continue
            entry = _INFIX.get(token.text if token.kind == "op" else word)
            if entry is not None and ceiling >= entry[1] >= level:
                self.advance()
                left = Binary(entry[0], left, self.expression(entry[1] + 1), token.pos)
                continue
            if level <= _PREDICATE <= ceiling:
                test = self.predicate(left)
                if test is not None:
                    left, ceiling = test, _AND
                    continue
            return left

    def predicate(self, left: Syntax) -> Syntax | None:
        """The one IS / IN / LIKE / BETWEEN that may follow a value."""
        start = self.at
        pos = self.token.pos
        if self.accept("IS"):
            return self.is_test(left, pos)
        negated = self.accept("NOT") or self.accept_op("!")
        word = self.token.upper
        if word == "BETWEEN":
            self.advance()
            low = self.expression(_COMPARE)
            self.expect("AND")
            node: Syntax = Between(left, low, self.expression(_COMPARE), pos)
        elif word == "IN":
            self.advance()
            self.expect_op("(")
            if self.token.upper in ("SELECT", "WITH"):
                self.refuse("subqueries", self.token.pos)
            node = InList(left, self.items(")"), pos)
        elif word in ("LIKE", "ILIKE", "RLIKE", "REGEXP"):
            self.advance()
            return self.like(left, "RLIKE" if word == "REGEXP" else word, pos, negated=negated)
        else:
            self.at = start
            return None
        return Unary("not", node, pos) if negated else node

    def is_test(self, left: Syntax, pos: int) -> Syntax:
        negated = self.accept("NOT")
        if self.accept("NULL"):
            node: Syntax = Test("null", left, pos)
        elif self.accept("UNKNOWN"):
            node = Test("unknown", left, pos)
        elif self.accept("TRUE"):
            node = Test("true", left, pos)
        elif self.accept("FALSE"):
            node = Test("false", left, pos)
        elif self.accept("DISTINCT"):
            self.expect("FROM")
            node = Binary("<=>", left, self.expression(_COMPARE), pos)
            negated = not negated
        else:
            self.fail("expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS")
        return Unary("not", node, pos) if negated else node

    def like(self, left: Syntax, kind: str, pos: int, *, negated: bool) -> Syntax:
        if kind != "RLIKE" and self.token.upper in ("ANY", "SOME", "ALL") and self.ahead().text == "(":
            every = self.advance().upper == "ALL"
            self.expect_op("(")
            return Like(kind.lower(), left, self.items(")"), every=every, negated=negated, pos=pos)
        pattern = self.expression(_COMPARE)
        escape = "\\"
        if kind != "RLIKE" and self.accept("ESCAPE"):
            token = self.advance()
            if token.kind != "string" or len(token.text) != 1:
                hint = "write ESCAPE '!' with one character"
                raise invalid("ESCAPE takes one character as text", self.text, token.pos, hint)
            escape = token.text
        return Like(kind.lower(), left, (pattern,), escape, negated=negated, pos=pos)

    def items(self, close: str) -> tuple[Syntax, ...]:
        out = [self.expression(0)]
        while self.accept_op(","):
            out.append(self.expression(0))
        self.expect_op(close)
        return tuple(out)

    def postfix(self, left: Syntax) -> Syntax:
        levels = 0
        while self.token.kind == "op":
            pos = self.token.pos
            if self.accept_op("."):
                token = self.advance()
                if token.kind not in ("name", "quoted"):
                    self.at -= 1
                    self.fail("expected a field name after '.'")
                left = FieldOf(left, token.text, pos)
            elif self.accept_op("["):
                left = Item(left, self.expression(0), pos)
                self.expect_op("]")
            elif self.accept_op("::"):
                left = CastTo(left, self.type_name(0), safe=False, pos=pos)
            elif self.is_op(":"):
                self.refuse("paths into variant values (a:b)", pos)
            elif self.is_op("->", "=>"):
                self.refuse("lambda functions and named arguments", pos)
            else:
                break
            levels += 1
            if levels > MAX_DEPTH:
                raise _too_deep(self.text, pos)
        return left

    def primary(self) -> Syntax:
        token = self.token
        if token.kind == "op":
            if token.text == "(":
                return self.parenthesis()
            if token.text in ("?", ":", "@"):
                self.refuse("parameters", token.pos)
            if token.text == "*":
                self.refuse("stars", token.pos)
            self.fail("expected a value")
        if token.kind == "number":
            return self.number(self.advance(), negative=False)
        if token.kind == "string":
            return self.string()
        if token.kind == "hex":
            self.advance()
            return Constant(Lit(self.hex_bytes(token), types.BINARY), token.pos)
        if token.kind == "name":
            return self.word()
        if token.kind == "quoted":
            return self.name()
        self.fail("expected a value")

    def parenthesis(self) -> Syntax:
        pos = self.advance().pos
        if self.token.upper in ("SELECT", "WITH", "VALUES"):
            self.refuse("subqueries", pos)
        node = self.expression(0)
        if self.is_op(","):
            self.refuse("row values (a, b)", pos)
        self.expect_op(")")
        return node

    def string(self) -> Constant:
        pos = self.token.pos
        parts: list[str] = []
        while self.token.kind == "string":
            parts.append(self.advance().text)
        return Constant(Lit("".join(parts), types.STRING), pos)

    def word(self) -> Syntax:  # noqa: PLR0911 - one line a construct
        """A keyword's construct, a function call or a column name."""
        token, word = self.token, self.token.upper
        following = self.ahead()
        if following.kind == "string" and word in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"):
            self.advance()
            return self.datetime_literal(word, token.pos)
        if following.kind == "string" and word.lower() in _TYPES:
            # Not Spark's: other dialects of SQL, and with them programs for `deltalake`, have `int '10'` for all types.
            kind = self.type_name(0)
            return CastTo(self.string(), kind, safe=False, pos=token.pos)
        if word == "INTERVAL" and (following.kind in ("string", "number") or following.text in ("-", "+")):
            self.advance()
            return self.interval(token.pos)
        if word == "NULL":
            self.advance()
            return Constant(Lit(None, types.VOID), token.pos)
        if word in ("TRUE", "FALSE"):
            self.advance()
            return Constant(Lit(word == "TRUE", types.BOOLEAN), token.pos)
        if word == "CASE":
            return self.case()
        if following.kind == "op" and following.text == "(":
            return self.function()
        if word in _BARE_FUNCTIONS and following.text != ".":
            self.advance()
            return Func(word.lower(), (), token.pos)
        if word in _STOP:
            self.fail("expected a value")
        return self.name()

    def name(self) -> Syntax:
        pos = self.token.pos
        parts = [self.advance().text]
        while self.is_op(".") and self.ahead().kind in ("name", "quoted"):
            self.advance()
            parts.append(self.advance().text)
        if self.is_op("(") and len(parts) > 1:
            self.refuse("functions with a catalog or schema name", pos)
        return Name(tuple(parts), pos)

    # --- literals

    def number(self, token: Token, *, negative: bool) -> Constant:
        sign = "-" if negative else ""
        lit = literals.number(sign + token.text, token.suffix)
        if lit is None:
            shown = token.text if len(token.text) <= _SHOWN else f"{token.text[:_SHOWN]}..."
            what = f"the number {sign}{shown}{token.suffix} does not fit its type"
            raise invalid(what, self.text, token.pos, "use a wider type")
        return Constant(lit, token.pos)

    def hex_bytes(self, token: Token) -> bytes:
        digits = token.text if len(token.text) % 2 == 0 else "0" + token.text
        if not re.fullmatch(r"[0-9A-Fa-f]*", digits):
            raise invalid(
                f"X'{token.text[:20]}' is not hexadecimal", self.text, token.pos, "use the digits 0-9 and A-F"
            )
        return bytes.fromhex(digits)

    def datetime_literal(self, word: str, pos: int) -> Constant:
        value = self.string().lit.value
        body = value if isinstance(value, str) else ""
        if word == "DATE":
            days = literals.parse_date(body)
            lit = None if days is None else Lit(days, types.DATE)
        elif word == "TIMESTAMP_NTZ":
            micros = literals.parse_timestamp(body, None)
            lit = None if micros is None else Lit(micros, types.TIMESTAMP_NTZ)
        else:
            micros = literals.parse_timestamp(body, self.zone)
            lit = None if micros is None else Lit(micros, types.TIMESTAMP)
        if lit is None:
            hint = "write DATE '2024-01-31' or TIMESTAMP '2024-01-31 12:00:00+01:00'"
            raise invalid(f"{body[:40]!r} is no {word} literal", self.text, pos, hint)
        return Constant(lit, pos)

    def interval(self, pos: int) -> IntervalLit:
        """`INTERVAL 1 DAY`, `INTERVAL '1-2' YEAR TO MONTH`, `INTERVAL 1 DAY 2 HOURS`, `INTERVAL '1 day'`."""
        if self.token.kind == "string" and self.ahead().upper not in _UNITS:
            return self.interval_text(pos)
        months, micros, units = 0, 0, set[str]()
        while True:
            negative = False
            if self.is_op("-", "+") and (self.ahead().kind in ("number", "string")) and self.ahead(2).upper in _UNITS:
                negative = self.advance().text == "-"
            if self.token.kind not in ("number", "string") or self.ahead().upper not in _UNITS:
                break
            body = self.advance().text.strip()
            unit = _UNITS[self.advance().upper]
            if self.token.upper == "TO" and not units:
                self.advance()
                return self.interval_range(body, unit, negative=negative, pos=pos)
            add_months, add_micros = self.interval_part(body, unit, pos)
            months += -add_months if negative else add_months
            micros += -add_micros if negative else add_micros
            units.add(unit)
        return self.interval_of(months, micros, units, pos)

    def interval_of(self, months: int, micros: int, units: set[str], pos: int) -> IntervalLit:
        if not units:
            raise invalid("an INTERVAL without a unit", self.text, pos, "write INTERVAL 1 DAY or INTERVAL '2' MONTH")
        if units <= set(_MONTHS):
            return IntervalLit(months, 0, day_only=False, pos=pos)
        if units & set(_MONTHS):
            raise invalid(
                "an INTERVAL cannot mix months and days", self.text, pos, "add two intervals one after another"
            )
        return IntervalLit(None, micros, day_only=units <= {"DAY", "WEEK"}, pos=pos)

    def interval_part(self, body: str, unit: str, pos: int) -> tuple[int, int]:
        pattern = r"[+-]?\d+(\.\d{1,9})?" if unit == "SECOND" else r"[+-]?\d+"
        if not re.fullmatch(pattern, body):
            raise invalid(f"{body[:20]!r} is no number of {unit}s", self.text, pos, "write a whole number")
        if unit in _MONTHS:
            return int(body) * _MONTHS[unit], 0
        return 0, int(decimal.Decimal(body) * _MICROS[unit])

    def interval_text(self, pos: int) -> IntervalLit:
        """`INTERVAL '1 day 2 hours'`: the same list of numbers and units, inside the quotes."""
        words = self.advance().text.split()
        months, micros, units = 0, 0, set[str]()
        if words and words[0].lower() == "interval":
            words = words[1:]
        if len(words) % 2:
            words = []
        for body, word in zip(words[::2], words[1::2], strict=True):
            unit = _UNITS.get(word.upper())
            if unit is None:
                raise invalid(f"{word[:20]!r} is no unit of an INTERVAL", self.text, pos, "use YEAR to MICROSECOND")
            add_months, add_micros = self.interval_part(body, unit, pos)
            months, micros = months + add_months, micros + add_micros
            units.add(unit)
        return self.interval_of(months, micros, units, pos)

    def interval_range(self, body: str, start: str, *, negative: bool, pos: int) -> IntervalLit:
        end = _UNITS.get(self.advance().upper, "")
        pattern = _RANGES.get((start, end))
        match = re.fullmatch(r"(?P<sign>[+-]?)" + pattern, body) if pattern else None
        if match is None:
            hint = "write INTERVAL '1-2' YEAR TO MONTH or INTERVAL '1 02:03:04' DAY TO SECOND"
            raise invalid(f"{body[:30]!r} is no INTERVAL {start} TO {end}", self.text, pos, hint)
        total = decimal.Decimal(0)
        for unit, value in match.groupdict().items():
            if unit == "sign":
                continue
            number = decimal.Decimal(value)
            if unit != start and int(number) > _LIMITS[unit]:
                raise invalid(f"{value} {unit}s are too many", self.text, pos, f"at most {_LIMITS[unit]} may follow")
            total += number * (_MONTHS if start == "YEAR" else _MICROS)[unit]
        amount = -int(total) if (match["sign"] == "-") != negative else int(total)
        if start == "YEAR":
            return IntervalLit(amount, 0, day_only=False, pos=pos)
        return IntervalLit(None, amount, day_only=False, pos=pos)

    # --- constructs

    def case(self) -> Case:
        pos = self.advance().pos
        operand = None if self.token.upper == "WHEN" else self.expression(0)
        whens: list[tuple[Syntax, Syntax]] = []
        while self.accept("WHEN"):
            condition = self.expression(0)
            self.expect("THEN")
            whens.append((condition, self.expression(0)))
        if not whens:
            self.fail("expected WHEN")
        otherwise = self.expression(0) if self.accept("ELSE") else None
        self.expect("END")
        return Case(operand, tuple(whens), otherwise, pos)

    def function(self) -> Syntax:  # noqa: C901 - one line a form
        token = self.advance()
        word, pos = token.upper, token.pos
        self.expect_op("(")
        if word in ("CAST", "TRY_CAST"):
            arg = self.expression(0)
            self.expect("AS")
            to = self.type_name(0)
            self.expect_op(")")
            return CastTo(arg, to, safe=word == "TRY_CAST", pos=pos)
        if word == "EXISTS" and self.token.upper in ("SELECT", "WITH"):
            self.refuse("subqueries", pos)
        if word == "EXTRACT":
            field = self.advance()
            self.expect("FROM")
            return self.close(
                "extract", Constant(Lit(field.text, types.STRING), field.pos), self.expression(_COMPARE), pos=pos
            )
        if word == "TRIM" and self.token.upper in ("BOTH", "LEADING", "TRAILING"):
            return self.trim(self.advance().upper, pos)
        args: list[Syntax] = []
        if not self.is_op(")"):
            if self.token.upper in ("DISTINCT", "ALL") and self.ahead().text not in (",", ")", "."):
                self.refuse("aggregate functions", pos)
            args.append(self.expression(_COMPARE if word == "POSITION" else 0))
            if self.token.upper == "FROM" and word in ("SUBSTRING", "SUBSTR", "TRIM"):
                return self.from_form(word, args[0], pos)
            if word == "POSITION" and self.accept("IN"):
                return self.close("position", args[0], self.expression(_COMPARE), pos=pos)
            if self.token.upper == "AS":
                self.refuse("aliases inside a call", self.token.pos)
            while self.accept_op(","):
                args.append(self.expression(0))
        if word in _UNIT_FUNCTIONS and len(args) == len(("unit", "amount", "time")):
            self.refuse(f"{word} with a unit", pos)
        return self.close(token.text.lower(), *args, pos=pos)

    def close(self, name: str, *args: Syntax, pos: int) -> Func:
        if self.token.upper == "AS":
            self.refuse("aliases inside a call", self.token.pos)
        self.expect_op(")")
        if self.token.upper in ("OVER", "FILTER", "WITHIN"):
            self.refuse("window and aggregate functions", pos)
        return Func(name, args, pos)

    def from_form(self, word: str, first: Syntax, pos: int) -> Func:
        """`SUBSTRING(s FROM 2 FOR 3)` and `TRIM('x' FROM s)`."""
        self.expect("FROM")
        second = self.expression(0)
        if word == "TRIM":
            return self.close("trim", first, second, pos=pos)
        if self.accept("FOR"):
            return self.close("substring", first, second, self.expression(0), pos=pos)
        return self.close("substring", first, second, pos=pos)

    def trim(self, side: str, pos: int) -> Func:
        name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[side]
        if self.accept("FROM"):
            return self.close(name, self.expression(0), pos=pos)
        chars = self.expression(0)
        self.expect("FROM")
        return self.close(name, chars, self.expression(0), pos=pos)

    def type_name(self, depth: int) -> DataType:
        """Parse a SQL type, as in CAST."""
        token = self.advance()
        name = token.text.lower()
        if token.kind != "name" or depth > types.MAX_TYPE_DEPTH:
            self.at -= 1
            self.fail("expected a type")
        if name in _TYPES:
            return _TYPES[name]
        if name in ("decimal", "dec", "numeric"):
            return self.decimal_type(token)
        if name in ("varchar", "char", "character"):
            # Spark's CAST to a string type with a length is a cast to STRING.
            self.type_numbers()
            return types.STRING
        if name == "array":
            self.expect_op("<")
            element = self.type_name(depth + 1)
            self.close_angle()
            return types.Array(element)
        if name == "map":
            self.expect_op("<")
            key = self.type_name(depth + 1)
            self.expect_op(",")
            value = self.type_name(depth + 1)
            self.close_angle()
            return types.Map(key, value)
        if name == "struct":
            return self.struct_type(depth)
        hint = "use one of Delta's types"
        raise unsupported(f"a cast to {token.text.upper()} is not supported", self.text, token.pos, hint)

    def decimal_type(self, token: Token) -> types.Decimal:
        numbers = self.type_numbers()
        precision = numbers[0] if numbers else 10
        scale = numbers[1] if len(numbers) > 1 else 0
        if not (1 <= precision <= literals.MAX_PRECISION and 0 <= scale <= precision):
            hint = "the precision is 1 to 38 and the scale at most the precision"
            raise invalid(f"DECIMAL({precision},{scale}) is no type", self.text, token.pos, hint)
        return types.Decimal(precision, scale)

    def type_numbers(self) -> list[int]:
        out: list[int] = []
        if self.accept_op("("):
            while True:
                token = self.advance()
                if token.kind != "number" or not token.text.isdigit():
                    self.at -= 1
                    self.fail("expected a number")
                out.append(int(token.text[:9]))
                if not self.accept_op(","):
                    break
            self.expect_op(")")
        return out

    def struct_type(self, depth: int) -> types.Struct:
        fields: list[types.Field] = []
        self.expect_op("<")
        while True:
            token = self.advance()
            if token.kind not in ("name", "quoted"):
                self.at -= 1
                self.fail("expected a field name")
            self.accept_op(":")
            fields.append(types.Field(token.text, self.type_name(depth + 1)))
            if self.accept("NOT"):
                self.expect("NULL")
            if not self.accept_op(","):
                break
        self.close_angle()
        return types.Struct(tuple(fields))

    def close_angle(self) -> None:
        """Consume one `>`, also if several nested types end at once and the lexer found a shift."""
        if self.is_op(">>", ">>>"):
            token = self.token
            self.tokens[self.at] = Token("op", token.text[1:], token.pos + 1)
        else:
            self.expect_op(">")
