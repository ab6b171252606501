"""Cursor over the tokens of a SQL string, for the parsers of expressions and of statements."""

# Exceptions are made by functions that add the place; methods that never return raise.

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, NoReturn

from deltafast._expr import token_kind
from deltafast._expr.errors import DOUBLE_QUOTES, invalid, unsupported
from deltafast._expr.lexer import Token, tokenize
from deltafast._util.dialect import Dialect
from deltafast.exceptions import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from deltafast._expr.errors import UnsupportedExpressionError
    from deltafast.exceptions import InvalidArgumentError

__all__ = ["TokenCursor"]


class TokenCursor:
    """A position in the tokens of a SQL string.

    The last token has the kind `END` or, if `lenient`, possibly `BROKEN`; the cursor does not advance beyond it.

    Args:
        text: The SQL string.
        start: The position in the string at which the first token begins.
        lenient: Report an invalid token when a parser fails at it, see `tokenize`.
        dialect: The meaning of double quotes; that of statements by default.

    Raises:
        InvalidArgumentError: As `tokenize`.
    """

    #: Remedy in the messages of `fail`.
    hint: ClassVar[str] = "see Spark's expression syntax; names that are keywords need `backticks`"

    def __init__(self, text: str, start: int = 0, *, lenient: bool = False, dialect: Dialect = Dialect.SPARK) -> None:
        self.text = text
        self._lenient = lenient
        self.dialect = dialect
        self.restart(start)

    # --- position --------------------------------------------------------------------------------

    def restart(self, start: int) -> None:
        """Tokenize the string again from a position in it, and continue there."""
        self._tokens = tokenize(self.text, start, lenient=self._lenient, dialect=self.dialect, lists=True)
        self.move(0)

    @property
    def position(self) -> int:
        """The number of the current token, for `move` and `ending_at`."""
        return self._position

    def move(self, position: int) -> None:
        """Go to a token."""
        self._position = position
        #: The current token.
        self.token = self._tokens[position]

    def advance(self) -> Token:
        """Consume the current token, and return it."""
        token = self.token
        position = self._position + 1
        if position < len(self._tokens):
            self._position = position
            self.token = self._tokens[position]
        return token

    def back(self) -> None:
        """Go to the previous token."""
        self.move(self._position - 1)

    def ahead(self, count: int = 1) -> Token:
        """Return a token after the current one; the last token if there are fewer."""
        return self._tokens[min(self._position + count, len(self._tokens) - 1)]

    @property
    def at_end(self) -> bool:
        """Whether all tokens are consumed."""
        return self.token.kind is token_kind.END

    @contextmanager
    def ending_at(self, position: int) -> Generator[None]:
        """Let the tokens end before a token, as long as the context is open."""
        whole = self._tokens
        pos = whole[position].pos
        self._tokens = [*whole[:position], Token(token_kind.END, "", pos, pos)]
        self.move(self._position)
        try:
            yield
        finally:
            self._tokens = whole
            self.move(self._position)

    # --- keywords --------------------------------------------------------------------------------

    def peek(self, word: str, *more: str) -> bool:
        """Return whether these keywords come next."""
        if self.token.upper != word:
            return False
        return not more or all(self.ahead(n).upper == other for n, other in enumerate(more, 1))

    def accept(self, word: str, *more: str) -> bool:
        """Consume these keywords if all of them come next."""
        if not self.peek(word, *more):
            return False
        self.move(self._position + 1 + len(more))
        return True

    def accept_any(self, *words: str) -> bool:
        """Consume one of these keywords if it comes next."""
        if self.token.upper not in words:
            return False
        self.advance()
        return True

    def expect(self, *words: str) -> None:
        """Consume these keywords, or fail."""
        for word in words:
            if not self.accept(word):
                self.fail(f"expected {word}")

    # --- operators -------------------------------------------------------------------------------

    def is_op(self, *ops: str) -> bool:
        """Return whether one of these operators comes next."""
        return self.token.kind is token_kind.OPERATOR and self.token.text in ops

    def accept_op(self, op: str) -> bool:
        """Consume this operator if it comes next."""
        if self.token.kind is not token_kind.OPERATOR or self.token.text != op:
            return False
        self.advance()
        return True

    def expect_op(self, op: str) -> None:
        """Consume this operator, or fail."""
        if not self.accept_op(op):
            self.fail(f"expected {op!r}")

    def expect_angle(self) -> None:
        """Consume one `>`, also if several nested types end at once and the tokenizer found a shift."""
        token = self.token
        if self.is_op(">>", ">>>"):
            self._tokens[self._position] = Token(token_kind.OPERATOR, token.text[1:], token.pos + 1, token.end)
            self.move(self._position)
        else:
            self.expect_op(">")

    # --- values ----------------------------------------------------------------------------------

    def strings(self) -> str:
        """Consume adjacent strings, which form one; return an empty string if the current token is not a string."""
        parts: list[str] = []
        while self.token.kind is token_kind.STRING:
            parts.append(self.advance().text)
        return "".join(parts)

    # --- errors ----------------------------------------------------------------------------------

    def fail(self, what: str, code: ErrorCode = ErrorCode.EXPRESSION_SYNTAX_ERROR) -> NoReturn:
        """Raise an error with what was expected and the current token."""
        token = self.token
        # A string literal can be as long as the statement.
        found = "the end" if token.kind is token_kind.END else repr(token.text[:40])
        hint = DOUBLE_QUOTES if token.kind is token_kind.EXACT else self.hint
        parameters = {"expression": self.text} if code is ErrorCode.EXPRESSION_SYNTAX_ERROR else {}
        raise self.error(f"{what}, found {found}", token.pos, hint, code=code, parameters=parameters)

    def error(
        self,
        what: str,
        pos: int | None,
        hint: str,
        *,
        code: ErrorCode | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> InvalidArgumentError:
        """Return the error of an invalid string, with the position in it."""
        return invalid(what, self.text, pos, hint, code=code, parameters=parameters)

    def unsupported(self, what: str, pos: int | None, hint: str) -> UnsupportedExpressionError:
        """Return the error of a construct that may be valid but is not supported, with the position in the string."""
        return unsupported(what, self.text, pos, hint)
