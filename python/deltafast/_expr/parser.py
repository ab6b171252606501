"""Spark SQL expression text -> untyped syntax, with Spark 4's precedence.

One function does precedence climbing, so that a level of parentheses takes two frames of Python's stack. Spark's
grammar, lowest precedence first: OR, AND, NOT, one predicate (IS, IN, LIKE, BETWEEN; they don't chain), comparisons,
`|`, `^`, `&`, shifts, `+ - ||`, `* / % DIV`, unary, then `.`, `[]` and `::`.

Nesting is bounded (expressions may come from hostile logs) and a chain of AND or OR of any length is one flat node.
"""

# Exceptions are made by functions that add the place; methods that never return raise.

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NoReturn

from deltafast._expr import literals, token_kind, types
from deltafast._expr.ambiguities import check_strings, two_readings
from deltafast._expr.cursor import TokenCursor
from deltafast._expr.errors import invalid
from deltafast._expr.interval_parser import read_interval
from deltafast._expr.lexer import tokenize
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
from deltafast._expr.tree import Lit
from deltafast._expr.type_parser import SIMPLE_TYPES, read_type
from deltafast._util.dialect import Dialect

if TYPE_CHECKING:
    from deltafast._expr.lexer import Token

__all__ = ["ADDITION", "MAX_DEPTH", "ExpressionParser", "parse"]

MAX_DEPTH: Final = 200

_OR, _AND, _NOT, _PREDICATE, _COMPARE, _BITOR, _XOR, _BITAND, _SHIFT, ADDITION, _MULTIPLY, _UNARY = range(1, 13)

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
    "+": ("+", ADDITION),
    "-": ("-", ADDITION),
    "||": ("||", ADDITION),
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
_LIKES: Final = {
    "LIKE": LikeKind.LIKE,
    "ILIKE": LikeKind.ILIKE,
    "RLIKE": LikeKind.RLIKE,
    "REGEXP": LikeKind.RLIKE,
}
#: Kinds of tokens that are names.
_NAMES: Final = (token_kind.NAME, token_kind.QUOTED, token_kind.EXACT)
_UNIT_FUNCTIONS: Final = frozenset(["TIMESTAMPADD", "TIMESTAMPDIFF", "DATEADD", "DATEDIFF", "DATE_ADD", "DATE_DIFF"])
_TRIMS: Final = frozenset(["TRIM", "LTRIM", "RTRIM"])
_BARE_FUNCTIONS: Final = frozenset({"CURRENT_DATE", "CURRENT_TIMESTAMP"})


def parse(text: str | Syntax, *, dialect: Dialect, zone: str = "UTC") -> Syntax:
    """Parse one expression.

    Args:
        text: Spark SQL; syntax is returned as it is.
        dialect: The meaning of double quotes.
        zone: The session's time zone, for `TIMESTAMP` literals without one.

    Raises:
        InvalidArgumentError: A syntax error, with its position.
        UnsupportedExpressionError: Spark SQL that is not a scalar expression (subqueries, lambdas, windows).
    """
    if not isinstance(text, str):
        return text
    if dialect is Dialect.DELTALAKE and text.rstrip().endswith(";"):
        text = text.rstrip()[:-1]
    try:
        parser = ExpressionParser(TokenCursor(text, dialect=dialect), zone)
        node = parser.expression()
        parser.expect_end()
        if dialect is Dialect.DELTALAKE:
            check_strings(tokenize(text, dialect=dialect), text)
    except RecursionError:
        raise _too_deep(text, None) from None
    return node


def _part(token: Token) -> str:
    """Return a part of a name."""
    return ExactName(token.text) if token.kind is token_kind.EXACT else token.text


def _too_deep(text: str, pos: int | None) -> Exception:
    hint = "split it, or write long lists with IN"
    return invalid(f"the expression nests more than {MAX_DEPTH} levels deep", text, pos, hint)


# Digits of a number that a message repeats.
_SHOWN = 60


class ExpressionParser:
    """Parser of expressions at a cursor, which it leaves after the expression.

    Args:
        cursor: The tokens.
        zone: The session's time zone, for `TIMESTAMP` literals without one.
    """

    def __init__(self, cursor: TokenCursor, zone: str) -> None:
        self._cursor = cursor
        self._zone = zone
        self._depth = 0

    def expect_end(self) -> None:
        """Fail unless the string ends here."""
        token = self._cursor.token
        if token.kind is not token_kind.END:
            if token.upper == "OVER":
                self._refuse("window functions", token.pos)
            if token.upper == "COLLATE":
                self._refuse("collations", token.pos)
            self._cursor.fail("expected the end of the expression")

    def _refuse(self, what: str, pos: int | None) -> NoReturn:
        hint = "only scalar expressions over the table's own columns are"
        raise self._cursor.unsupported(f"{what} are not supported", pos, hint)

    # --- expressions

    def expression(self, level: int = 0) -> Syntax:
        """Parse everything that binds at least as tightly as `level`, such as `ADDITION`; by default an expression."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _too_deep(self._cursor.text, self._cursor.token.pos)
        token = self._cursor.token
        ceiling = _UNARY
        if token.upper == "NOT" or self._cursor.is_op("!"):
            if level > _NOT:
                self._cursor.fail("expected a value")
            self._cursor.advance()
            left: Syntax = Unary("not", self.expression(_NOT), token.pos)
            ceiling = _AND
        elif self._cursor.is_op("-", "+", "~"):
            self._cursor.advance()
            if token.text == "-" and self._cursor.token.kind is token_kind.NUMBER:
                left = self._postfix(self._number(self._cursor.advance(), negative=True))
            else:
                left = Unary(token.text, self.expression(_UNARY), token.pos)
        else:
            left = self._postfix(self._primary())
        left = self._infix(left, level, ceiling)
        self._depth -= 1
        return left

    def _infix(self, left: Syntax, level: int, ceiling: int) -> Syntax:
        """Fold operators onto `left`; `ceiling` is what may still follow (only AND and OR after a predicate)."""
        while True:
            token = self._cursor.token
            word = token.upper
            if word in ("AND", "OR"):
                power = _AND if word == "AND" else _OR
                if power < level:
                    return left
                args = [left]
                while self._cursor.accept(word):
                    args.append(self.expression(power + 1))
                left = Logical(word.lower(), tuple(args), token.pos)
                ceiling = power
                continue
            entry = _INFIX.get(token.text if token.kind is token_kind.OPERATOR else word)
            if entry is not None and ceiling >= entry[1] >= level:
                self._cursor.advance()
                left = Binary(entry[0], left, self.expression(entry[1] + 1), token.pos)
                continue
            if level <= _PREDICATE <= ceiling:
                test = self._predicate(left)
                if test is not None:
                    left, ceiling = test, _AND
                    continue
            return left

    def _predicate(self, left: Syntax) -> Syntax | None:
        """The one IS / IN / LIKE / BETWEEN that may follow a value."""
        start = self._cursor.position
        pos = self._cursor.token.pos
        if self._cursor.accept("IS"):
            return self._is_test(left, pos)
        negated = self._cursor.accept("NOT") or self._cursor.accept_op("!")
        word = self._cursor.token.upper
        if word == "BETWEEN":
            self._cursor.advance()
            low = self.expression(_COMPARE)
            self._cursor.expect("AND")
            node: Syntax = Between(left, low, self.expression(_COMPARE), pos)
        elif word == "IN":
            self._cursor.advance()
            self._cursor.expect_op("(")
            if self._cursor.token.upper in ("SELECT", "WITH"):
                self._refuse("subqueries", self._cursor.token.pos)
            listed = self._cursor.token.listed
            if listed is not None:
                self._cursor.advance()
                self._cursor.expect_op(")")
                node = InValues(left, listed, pos)
            else:
                node = InList(left, self._items(")"), pos)
        elif word in _LIKES:
            self._cursor.advance()
            return self._like(left, _LIKES[word], pos, negated=negated)
        else:
            self._cursor.move(start)
            return None
        return Unary("not", node, pos) if negated else node

    def _is_test(self, left: Syntax, pos: int) -> Syntax:
        negated = self._cursor.accept("NOT")
        if self._cursor.accept("NULL"):
            node: Syntax = Test(TestKind.NULL, left, pos)
        elif self._cursor.accept("UNKNOWN"):
            node = Test(TestKind.UNKNOWN, left, pos)
        elif self._cursor.accept("TRUE"):
            node = Test(TestKind.TRUE, left, pos)
        elif self._cursor.accept("FALSE"):
            node = Test(TestKind.FALSE, left, pos)
        elif self._cursor.accept("DISTINCT"):
            self._cursor.expect("FROM")
            node = Binary("<=>", left, self.expression(_COMPARE), pos)
            negated = not negated
        else:
            self._cursor.fail("expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS")
        return Unary("not", node, pos) if negated else node

    def _like(self, left: Syntax, kind: LikeKind, pos: int, *, negated: bool) -> Syntax:
        if (
            kind is not LikeKind.RLIKE
            and self._cursor.token.upper in ("ANY", "SOME", "ALL")
            and self._cursor.ahead().text == "("
        ):
            every = self._cursor.advance().upper == "ALL"
            self._cursor.expect_op("(")
            return Like(kind, left, self._items(")"), every=every, negated=negated, pos=pos)
        pattern = self.expression(_COMPARE)
        escape = "\\"
        if kind is not LikeKind.RLIKE and self._cursor.accept("ESCAPE"):
            token = self._cursor.advance()
            if token.kind is not token_kind.STRING or len(token.text) != 1:
                hint = "write ESCAPE '!' with one character"
                raise self._cursor.error("ESCAPE takes one character as text", token.pos, hint)
            escape = token.text
        return Like(kind, left, (pattern,), escape, negated=negated, pos=pos)

    def _items(self, close: str) -> tuple[Syntax, ...]:
        out = [self.expression()]
        while self._cursor.accept_op(","):
            out.append(self.expression())
        self._cursor.expect_op(close)
        return tuple(out)

    def _postfix(self, left: Syntax) -> Syntax:
        levels = 0
        while self._cursor.token.kind is token_kind.OPERATOR:
            pos = self._cursor.token.pos
            if self._cursor.accept_op("."):
                token = self._cursor.advance()
                if token.kind not in _NAMES:
                    self._cursor.back()
                    self._cursor.fail("expected a field name after '.'")
                left = FieldOf(left, _part(token), pos)
            elif self._cursor.accept_op("["):
                left = Item(left, self.expression(), pos)
                self._cursor.expect_op("]")
            elif self._cursor.accept_op("::"):
                left = CastTo(left, read_type(self._cursor), safe=False, pos=pos)
            elif self._cursor.is_op(":"):
                self._refuse("paths into variant values (a:b)", pos)
            elif self._cursor.is_op("->", "=>"):
                self._refuse("lambda functions and named arguments", pos)
            else:
                break
            levels += 1
            if levels > MAX_DEPTH:
                raise _too_deep(self._cursor.text, pos)
        return left

    def _primary(self) -> Syntax:
        token = self._cursor.token
        if token.kind is token_kind.OPERATOR:
            if token.text == "(":
                return self._parenthesis()
            if token.text in ("?", ":", "@"):
                self._refuse("parameters", token.pos)
            if token.text == "*":
                self._refuse("stars", token.pos)
            self._cursor.fail("expected a value")
        if token.kind is token_kind.NUMBER:
            return self._number(self._cursor.advance(), negative=False)
        if token.kind is token_kind.STRING:
            return self._string()
        if token.kind is token_kind.HEX:
            self._cursor.advance()
            return Constant(Lit(self._hex_bytes(token), types.BINARY), token.pos)
        if token.kind is token_kind.NAME:
            return self._word()
        if token.kind in _NAMES:
            return self._name()
        self._cursor.fail("expected a value")

    def _parenthesis(self) -> Syntax:
        pos = self._cursor.advance().pos
        if self._cursor.token.upper in ("SELECT", "WITH", "VALUES"):
            self._refuse("subqueries", pos)
        node = self.expression()
        if self._cursor.is_op(","):
            self._refuse("row values (a, b)", pos)
        self._cursor.expect_op(")")
        return node

    def _string(self) -> Constant:
        pos = self._cursor.token.pos
        return Constant(Lit(self._cursor.strings(), types.STRING), pos)

    def _word(self) -> Syntax:  # noqa: PLR0911 - one line a construct
        """A keyword's construct, a function call or a column name."""
        token, word = self._cursor.token, self._cursor.token.upper
        following = self._cursor.ahead()
        if following.kind is token_kind.STRING and types.is_datetime(SIMPLE_TYPES.get(word.lower(), types.VOID)):
            self._cursor.advance()
            return self._datetime_literal(word, token.pos)
        if following.kind is token_kind.STRING and word.lower() in SIMPLE_TYPES:
            # Not Spark's: other dialects of SQL, and with them programs for `deltalake`, have `int '10'` for all types.
            kind = read_type(self._cursor)
            return CastTo(self._string(), kind, safe=False, pos=token.pos)
        if word == "INTERVAL" and (
            following.kind in (token_kind.STRING, token_kind.NUMBER) or following.text in ("-", "+")
        ):
            self._cursor.advance()
            return read_interval(self._cursor, token.pos)
        if word == "NULL":
            self._cursor.advance()
            return Constant(Lit(None, types.VOID), token.pos)
        if word in ("TRUE", "FALSE"):
            self._cursor.advance()
            return Constant(Lit(word == "TRUE", types.BOOLEAN), token.pos)
        if word == "CASE":
            return self._case()
        if following.kind is token_kind.OPERATOR and following.text == "(":
            return self._function()
        if word in _BARE_FUNCTIONS and following.text != ".":
            self._cursor.advance()
            return Func(word.lower(), (), token.pos)
        if word in _STOP:
            self._cursor.fail("expected a value")
        return self._name()

    def _name(self) -> Syntax:
        pos = self._cursor.token.pos
        parts = [_part(self._cursor.advance())]
        while self._cursor.is_op(".") and self._cursor.ahead().kind in _NAMES:
            self._cursor.advance()
            parts.append(_part(self._cursor.advance()))
        if self._cursor.is_op("(") and len(parts) > 1:
            self._refuse("functions with a catalog or schema name", pos)
        return Name(tuple(parts), pos)

    # --- literals

    def _number(self, token: Token, *, negative: bool) -> Constant:
        sign = "-" if negative else ""
        lit = literals.number(sign + token.text, token.suffix)
        if lit is None:
            shown = token.text if len(token.text) <= _SHOWN else f"{token.text[:_SHOWN]}..."
            what = f"the number {sign}{shown}{token.suffix} does not fit its type"
            raise self._cursor.error(what, token.pos, "use a wider type")
        return Constant(lit, token.pos)

    def _hex_bytes(self, token: Token) -> bytes:
        digits = token.text if len(token.text) % 2 == 0 else "0" + token.text
        if not re.fullmatch(r"[0-9A-Fa-f]*", digits):
            raise self._cursor.error(
                f"X'{token.text[:20]}' is not hexadecimal", token.pos, "use the digits 0-9 and A-F"
            )
        return bytes.fromhex(digits)

    def _datetime_literal(self, word: str, pos: int) -> Constant:
        body = self._cursor.strings()
        lit = literals.fold_cast(Lit(body, types.STRING), SIMPLE_TYPES[word.lower()], self._zone)
        if lit is None:
            hint = "write DATE '2024-01-31' or TIMESTAMP '2024-01-31 12:00:00+01:00'"
            raise self._cursor.error(f"{body[:40]!r} is not a valid {word} literal", pos, hint)
        return Constant(lit, pos)

    # --- constructs

    def _case(self) -> Case:
        pos = self._cursor.advance().pos
        operand = None if self._cursor.token.upper == "WHEN" else self.expression()
        whens: list[tuple[Syntax, Syntax]] = []
        while self._cursor.accept("WHEN"):
            condition = self.expression()
            self._cursor.expect("THEN")
            whens.append((condition, self.expression()))
        if not whens:
            self._cursor.fail("expected WHEN")
        otherwise = self.expression() if self._cursor.accept("ELSE") else None
        self._cursor.expect("END")
        return Case(operand, tuple(whens), otherwise, pos)

    def _function(self) -> Syntax:  # noqa: C901 - one line a form
        token = self._cursor.advance()
        word, pos = token.upper, token.pos
        self._cursor.expect_op("(")
        if word in ("CAST", "TRY_CAST"):
            arg = self.expression()
            self._cursor.expect("AS")
            to = read_type(self._cursor)
            self._cursor.expect_op(")")
            return CastTo(arg, to, safe=word == "TRY_CAST", pos=pos)
        if word == "EXISTS" and self._cursor.token.upper in ("SELECT", "WITH"):
            self._refuse("subqueries", pos)
        if word == "EXTRACT":
            field = self._cursor.advance()
            self._cursor.expect("FROM")
            return self._close(
                "extract", Constant(Lit(field.text, types.STRING), field.pos), self.expression(_COMPARE), pos=pos
            )
        if word == "TRIM" and self._cursor.token.upper in ("BOTH", "LEADING", "TRAILING"):
            return self._trim(self._cursor.advance().upper, pos)
        args: list[Syntax] = []
        if not self._cursor.is_op(")"):
            if self._cursor.token.upper in ("DISTINCT", "ALL") and self._cursor.ahead().text not in (",", ")", "."):
                self._refuse("aggregate functions", pos)
            args.append(self.expression(_COMPARE if word == "POSITION" else 0))
            if self._cursor.token.upper == "FROM" and word in ("SUBSTRING", "SUBSTR", "TRIM"):
                return self._from_form(word, args[0], pos)
            if word == "POSITION" and self._cursor.accept("IN"):
                return self._close("position", args[0], self.expression(_COMPARE), pos=pos)
            if self._cursor.token.upper == "AS":
                self._refuse("aliases inside a call", self._cursor.token.pos)
            while self._cursor.accept_op(","):
                args.append(self.expression())
        if self._cursor.dialect is Dialect.DELTALAKE and word in _TRIMS and len(args) > 1:
            what = two_readings(f"{word.lower()}(a, b)", "a without the characters b", "b without the characters a")
            raise self._cursor.unsupported(what, pos, "write TRIM(BOTH 'x' FROM s), LEADING or TRAILING")
        if word in _UNIT_FUNCTIONS and len(args) == len(("unit", "amount", "time")):
            self._refuse(f"{word} with a unit", pos)
        return self._close(token.text.lower(), *args, pos=pos)

    def _close(self, name: str, *args: Syntax, pos: int) -> Func:
        if self._cursor.token.upper == "AS":
            self._refuse("aliases inside a call", self._cursor.token.pos)
        self._cursor.expect_op(")")
        if self._cursor.token.upper in ("OVER", "FILTER", "WITHIN"):
            self._refuse("window and aggregate functions", pos)
        return Func(name, args, pos)

    def _from_form(self, word: str, first: Syntax, pos: int) -> Func:
        """`SUBSTRING(s FROM 2 FOR 3)` and `TRIM('x' FROM s)`."""
        self._cursor.expect("FROM")
        second = self.expression()
        if word == "TRIM":
            return self._close("trim", first, second, pos=pos)
        if self._cursor.accept("FOR"):
            return self._close("substring", first, second, self.expression(), pos=pos)
        return self._close("substring", first, second, pos=pos)

    def _trim(self, side: str, pos: int) -> Func:
        name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[side]
        if self._cursor.accept("FROM"):
            return self._close(name, self.expression(), pos=pos)
        chars = self.expression()
        self._cursor.expect("FROM")
        return self._close(name, chars, self.expression(), pos=pos)
