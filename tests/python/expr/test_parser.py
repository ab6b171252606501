"""Spark SQL text: precedence, literals, names, what is refused and how it is said."""

import pytest

from deltafast._expr import UnsupportedExpressionError
from deltafast._expr.context import ExpressionContext
from deltafast.exceptions import InvalidArgumentError


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        # each grouping is Spark 4.2's own parser's
        ("i | j & id", "i | (j & id)"),
        ("i ^ j & id", "i ^ (j & id)"),
        ("i | j ^ id", "i | (j ^ id)"),
        ("i & 1 << 2", "i & (1 << 2)"),
        ("i << 1 + 1", "i << (1 + 1)"),
        ("i + j * id - 1", "(i + (j * id)) - 1"),
        ("i % j div 2", "(i % j) div 2"),
        ("- i * j", "(- i) * j"),
        ("~i + 1", "(~i) + 1"),
        ("-i::long", "-(i::long)"),
        ("i + j || s", "(i + j) || s"),
        ("1 = 1 = b", "(1 = 1) = b"),
        ("i = j is null", "(i = j) is null"),
        ("not b = b", "not (b = b)"),
        ("! b = b", "not (b = b)"),
        ("not b and b", "(not b) and b"),
        ("b or b and b", "b or (b and b)"),
        ("i between 1 and 2 and b", "(i between 1 and 2) and b"),
        ("not i is null", "not (i is null)"),
        ("not not b", "b"),
        ("i in (1) or b", "(i in (1)) or b"),
    ],
)
def test_operators_bind_as_tightly_as_in_spark(bind, text, grouped):
    assert bind.expression(text) == bind.expression(grouped)


def test_a_comparison_is_read_from_the_left_even_where_that_is_odd(bind):
    # Spark groups (true = 1) < 2 and refuses it; reading true = (1 < 2) would be another predicate.
    with pytest.raises(InvalidArgumentError, match="BOOLEAN and INT"):
        bind("true = 1 < 2")


@pytest.mark.parametrize("text", ["i is null is null", "i is null = b", "i in (1) in (b)", "s like 'a' like 'b'"])
def test_predicates_do_not_chain(bind, text):
    with pytest.raises(InvalidArgumentError, match="expected the end"):
        bind(text)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1", "integer", 1),
        ("-2147483648", "integer", -2147483648),
        ("2147483648", "long", 2147483648),
        ("-9223372036854775808", "long", -9223372036854775808),
        ("9223372036854775808", "decimal(19,0)", "9223372036854775808"),
        ("3L", "long", 3),
        ("7S", "short", 7),
        ("7Y", "byte", 7),
        ("-128Y", "byte", -128),
        ("1.50", "decimal(3,2)", "1.50"),
        (".5", "decimal(1,1)", "0.5"),
        ("5.", "decimal(1,0)", "5"),
        ("0.001", "decimal(3,3)", "0.001"),
        ("00.50", "decimal(2,2)", "0.50"),
        ("1.5BD", "decimal(2,1)", "1.5"),
        ("1e3BD", "decimal(4,0)", "1000"),
        ("1e3", "double", 1000.0),
        ("1.e2", "double", 100.0),
        ("1D", "double", 1.0),
        ("1.5F", "float", 1.5),
        ("0.1F", "float", 0.10000000149011612),
        ("true", "boolean", True),
        ("NULL", "void", None),
        ("X'1F'", "binary", "1f"),
        ('x"abc"', "binary", "0abc"),
        ("date '2024-02-29'", "date", 19782),
        ("DATE'2024'", "date", 19723),
        ("timestamp '2024-01-01 00:00:00+02:00'", "timestamp", 1704060000000000),
        ("timestamp_ltz '2024-01-01 00:00:00+02:00'", "timestamp", 1704060000000000),
        ("timestamp_ntz '2024-01-01 00:00:00+02:00'", "timestamp_ntz", 1704067200000000),
    ],
)
def test_a_literal_has_sparks_type_and_value(bind, text, kind, value):
    assert bind.tree(text) == {"literal": {"value": value, "data_type": kind}}


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [("int'10'", "integer", 10), ("Double '1.5'", "double", 1.5), ("s || string '1'", "string", None)],
)
def test_a_type_before_a_text_casts_it_as_in_other_dialects(bind, text, kind, value):
    content = bind.content(text)
    assert (content["data_type"], content.get("value")) == (kind, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"'a\'b'", "a'b"),
        ("'it''s'", "it's"),
        ('"dou""ble"', 'dou"ble'),
        (r"'a\tb\n\\'", "a\tb\n\\"),
        (r"'\u0041\101\U0001F600'", "AA\U0001f600"),
        (r"'\%\_\q'", r"\%\_q"),
        (r"r'a\tb'", r"a\tb"),
        ("'a' 'b'", "ab"),
        ("''", ""),
    ],
)
def test_a_text_is_unescaped_as_spark_does(bind, text, value):
    assert bind.content(text)["value"] == value


def test_a_timestamp_literal_without_zone_is_one_of_the_session_zone(bind):
    text = "timestamp '2024-07-01 00:00:00'"
    elsewhere = bind.content(text, zone="America/New_York")["value"]
    assert elsewhere - bind.content(text)["value"] == 4 * 3_600_000_000


def test_comments_are_skipped_and_may_nest(bind):
    assert bind("i /* one /* two */ */ > -- three\n 1") == bind("i > 1")


def test_a_digit_after_a_dot_is_no_number(bind):
    with pytest.raises(InvalidArgumentError, match=r"expected a field name after '\.', found '5'"):
        bind("i.5 = 1")


@pytest.mark.parametrize("name", ["date", "timestamp", "interval", "year", "cast", "left", "position"])
def test_words_of_the_grammar_may_be_column_names(name):
    from deltafast._expr import bind_predicate, columns_of
    from python.expr.conftest import field, table

    assert columns_of(bind_predicate(f"{name} = 1", table(field(name, "integer")), ExpressionContext())) == [(name,)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i >", r"expected a value, found the end at character 4 of \"i >\""),
        ("i > 1 j", r"expected the end of the expression, found 'j' at character 7"),
        ("(i > 1", r"expected '\)', found the end"),
        ("i = and j", r"expected a value, found 'and' at character 5"),
        ("s = 'abc", r"a ' is never closed at character 5"),
        ("i /* x", r"a /\* comment is never closed at character 3"),
        ("é = 1", r"unexpected character 'é' at character 1"),
        ("i in ()", r"expected a value, found '\)'"),
        ("i in 1", r"expected '\(', found '1'"),
        ("case i end", r"expected WHEN"),
        ("300Y = by", r"the number 300Y does not fit its type"),
        ("1e400 = d", r"does not fit its type"),
        ("date '2024-13-01' = dt", r"'2024-13-01' is not a valid DATE literal"),
        ("timestamp 'noon' = ts", r"'noon' is not a valid TIMESTAMP literal"),
        ("X'zz' = bin", r"is not hexadecimal"),
        ("s like 'a' escape 'ab'", r"ESCAPE takes one character"),
        ("cast(i as decimal(40,2))", r"DECIMAL\(40,2\) is not a type"),
        ("", r"expected a value, found the end"),
    ],
)
def test_a_syntax_error_says_what_and_where(bind, text, message):
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        bind.expression(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("i in (select 1)", "subqueries"),
        ("exists (select 1)", "subqueries"),
        ("(i, j) = (1, 2)", r"row values"),
        ("exists(arr, x -> x > 1)", "lambda"),
        ("sum(i) over ()", "window"),
        ("count(distinct i)", "aggregate"),
        ("count(*)", "stars"),
        ("i = ?", "parameters"),
        ("system.builtin.abs(i)", "catalog or schema"),
        ("s collate UTF8_LCASE = 'a'", "collations"),
        ("cast(i as interval day)", "INTERVAL"),
        ("timestampadd(day, 1, ts)", "TIMESTAMPADD with a unit"),
        ("m:a = 1", "variant"),
        ("i >>> 1", "operator >>>"),
    ],
)
def test_other_sql_is_refused_by_name(bind, text, named):
    with pytest.raises(UnsupportedExpressionError, match=named):
        bind.expression(text)


def test_a_long_message_shows_the_place_not_the_whole_text(bind):
    text = "i = 1 and " * 200 + "foo(i)"
    with pytest.raises(UnsupportedExpressionError, match=r"foo\(\) is not supported at character 2001") as caught:
        bind(text)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "i" + ")" * 5000,
        "not " * 5000 + "b",
        "-" + "(-" * 5000 + "i" + ")" * 5000,
        "i" + " + i" * 5000,
        "abs(" * 5000 + "i" + ")" * 5000,
        "cast(i as " + "array<" * 5000 + "int" + ">" * 5000 + ")",
        "arr" + "[0]" * 5000,
    ],
    ids=["parentheses", "not", "minus", "sums", "calls", "types", "indexes"],
)
def test_deep_nesting_is_a_clear_error_and_no_recursion_error(bind, text):
    with pytest.raises(InvalidArgumentError, match=r"deep|nests|expected a type"):
        bind.expression(text)


def test_two_hundred_levels_less_a_few_are_fine(bind):
    assert bind("(" * 150 + "b" + ")" * 150) == "`b`"


def test_long_chains_and_lists_are_not_deep(bind):
    chain = " or ".join(f"i = {n}" for n in range(10_000))
    assert bind(chain).count("=") == 10_000
    values = ", ".join(map(str, range(10_000)))
    assert bind.content(f"i in ({values})")["values"] == list(range(10_000))


def test_a_text_of_megabytes_is_refused_before_it_is_read(bind):
    with pytest.raises(InvalidArgumentError, match="longer than 4 MiB"):
        bind("i = 1 or " * 1_000_000 + "b")
