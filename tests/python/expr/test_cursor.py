"""The cursor over tokens: position, keywords, operators, errors, and comments that nest."""

import pytest

from deltafast._expr import token_kind
from deltafast._expr.cursor import TokenCursor
from deltafast.exceptions import InvalidArgumentError


def test_keywords_are_consumed_together_or_not_at_all():
    cursor = TokenCursor("version as OF `as` 5")
    assert not cursor.accept("VERSION", "AS", "AS")
    assert cursor.position == 0
    assert cursor.peek("VERSION", "AS")
    assert cursor.accept("VERSION", "AS", "OF")
    assert not cursor.accept_any("AS", "OF")  # the name in backquotes is not a keyword
    assert cursor.advance().text == "as"


def test_it_does_not_advance_beyond_the_end():
    cursor = TokenCursor("a")
    assert [cursor.advance().kind for _ in range(3)] == [token_kind.NAME, token_kind.END, token_kind.END]
    assert cursor.at_end
    cursor.back()
    assert cursor.token.text == "a"
    assert cursor.ahead(9).kind is token_kind.END


def test_tokens_end_earlier_within_a_context():
    cursor = TokenCursor("a = b (c)")
    with cursor.ending_at(3):
        assert [cursor.advance().text for _ in range(4)] == ["a", "=", "b", ""]
        assert (cursor.at_end, cursor.token.pos) == (True, 6)
    assert cursor.token.text == "("


def test_a_shift_closes_nested_types():
    cursor = TokenCursor(">>> a")
    for _ in range(3):
        cursor.expect_angle()
    assert cursor.token.text == "a"


def test_a_token_knows_its_source():
    text = "'it''s' r'\\' `a``b` 1.5BD /* a /* b */ */ <=> -- c"
    cursor = TokenCursor(text)
    found = []
    while not cursor.at_end:
        token = cursor.advance()
        found.append(text[token.pos : token.end])
    assert found == ["'it''s'", "r'\\'", "`a``b`", "1.5BD", "<=>"]
    assert cursor.token.pos == cursor.token.end == len(text)


def test_errors_have_the_position():
    cursor = TokenCursor("a b")
    cursor.advance()
    with pytest.raises(InvalidArgumentError, match="expected FROM, found 'b' at character 3 "):
        cursor.expect("FROM")
    assert 'wrong at character 1 of "a b"; write c' in str(cursor.error("wrong", 0, "write c"))


def test_an_invalid_token_is_reported_when_a_lenient_cursor_comes_to_it():
    with pytest.raises(InvalidArgumentError, match="never closed"):
        TokenCursor("a 'b")
    assert TokenCursor("a 'b", lenient=True).ahead().kind is token_kind.BROKEN
    assert TokenCursor("a 'b' c", 2).strings() == "b"
