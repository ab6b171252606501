"""Names, types and casts: what text means on a given table."""

import pickle

import pytest

from deltafast._expr import UnsupportedExpressionError, bind_expression, bind_predicate, columns_of
from deltafast._expr.context import ExpressionContext
from deltafast._expr.render import to_spark_sql
from deltafast.exceptions import InvalidArgumentError
from python.expr.conftest import field, table


def test_names_are_found_without_case_and_given_in_the_tables_case(bind):
    assert bind("ST.x = 1") == "(`st`.`X` = 1)"
    assert bind("`mixed case` = 'a'") == "(`Mixed Case` = 'a')"
    assert bind("st.`IN NER`.Z = 1") == "(`st`.`in ner`.`z` = 1L)"


def test_an_exact_name_wins_and_an_ambiguous_one_is_refused():
    schema = table(field("a", "integer"), field("A", "string"))
    call = bind_predicate("A = 'x'", schema, ExpressionContext())["expr"]["call"]
    assert call["arguments"][0]["column"]["data_type"] == "string"
    both = table(field("aB", "integer"), field("Ab", "integer"))
    with pytest.raises(InvalidArgumentError, match="ambiguous: `aB`, `Ab`"):
        bind_predicate("ab = 1", both, ExpressionContext())


def test_a_missing_column_is_named_with_a_hint(bind):
    with pytest.raises(
        InvalidArgumentError, match=r"no column 'mixed_case' at character 7 .*did you mean 'Mixed Case'"
    ) as e:
        bind("b and mixed_case = 'x'")
    assert e.value.column == "mixed_case"
    with pytest.raises(InvalidArgumentError, match=r"no column 'st.nope'.*there are: X, in ner"):
        bind("st.nope = 1")
    with pytest.raises(InvalidArgumentError, match="the table has no columns"):
        bind_predicate("a = 1", table(), ExpressionContext())


def test_columns_of_gives_each_path_once_in_order(bind):
    tree = bind_predicate("st.x > i and (I in (1, 2) or s = 'a') and m['k'] = 1", bind.schema, ExpressionContext())
    assert columns_of(tree) == [("st", "X"), ("i",), ("s",), ("m",)]


def test_fields_of_structs_maps_and_items_of_arrays_are_reached(bind):
    assert bind.tree("st['x']") == {"column": {"path": ["st", "X"], "data_type": "integer"}}
    assert bind("m.k = 1") == bind("m['k'] = 1") == "(element_at(`m`, 'k') = 1)"
    assert bind("m[1] = 1") == "(element_at(`m`, '1') = 1)"
    assert bind("arr[0] = 1") == "(`arr`[0] = 1)"
    assert bind("arr[l] = 1") == "(`arr`[CAST(`l` AS INT)] = 1)"
    assert bind("arr[0] = 1", ansi=False) == "(get(`arr`, 0) = 1)"


def test_a_field_of_a_struct_in_a_collection_is_taken_by_a_call():
    struct = {"type": "struct", "fields": [field("A b", "integer")]}
    schema = table(field("xs", {"type": "array", "elementType": struct, "containsNull": True}))
    assert to_spark_sql(bind_predicate("xs[0].`a B` = 1", schema, ExpressionContext())) == "(`xs`[0].`A b` = 1)"
    with pytest.raises(UnsupportedExpressionError, match="every element of an array"):
        bind_predicate("xs.`A b` = 1", schema, ExpressionContext())


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        # a literal moves to the column's type where that is exact
        ("i = 5L", "(`i` = 5)"),
        ("by = 7", "(`by` = 7Y)"),
        ("l = 7", "(`l` = 7L)"),
        ("i > '5'", "(`i` > 5)"),
        ("5L > i", "(`i` < 5)"),
        ("d = 1", "(`d` = 1.0D)"),
        ("f = 1.5", "(`f` = 1.5F)"),
        ("dec = 2.5", "(`dec` = CAST(2.50BD AS DECIMAL(10,2)))"),
        ("dec > 1", "(`dec` > CAST(1.00BD AS DECIMAL(10,2)))"),
        ("i = 2.0", "(`i` = 2)"),
        ("i = 1e0", "(`i` = 1)"),
        ("i <=> 5L", "(`i` <=> 5)"),
        ("i in (1L, 2L)", "(`i` IN (1, 2))"),
        ("dt = '2024-01-31'", "(`dt` = DATE '2024-01-31')"),
        ("ts = date'2024-01-31'", "(`ts` = TIMESTAMP '2024-01-31 00:00:00+00:00')"),
        ("dt = timestamp'2024-01-31 00:00:00'", "(`dt` = DATE '2024-01-31')"),
        ("bin = 'ab'", "(`bin` = X'6162')"),
        # between two values of the column, the order decides
        ("i > 1.5", "(`i` > 1)"),
        ("i >= 1.5", "(`i` > 1)"),
        ("i < 1.5", "(`i` <= 1)"),
        ("i <= -1.5", "(`i` <= -2)"),
        ("1.5 > i", "(`i` <= 1)"),
        ("i > 0.5e0", "(`i` > 0)"),
        ("dec > 1.555", "(`dec` > CAST(1.55BD AS DECIMAL(10,2)))"),
        ("dt >= timestamp'2024-01-31 12:00:00'", "(`dt` > DATE '2024-01-31')"),
        # where it is not exact, the column is cast, as in Spark
        ("i = 1.5", "(CAST(`i` AS DECIMAL(11,1)) = CAST(1.5BD AS DECIMAL(11,1)))"),
        ("i = 2147483648", "(CAST(`i` AS BIGINT) = 2147483648L)"),
        ("l = 1e0", "(CAST(`l` AS DOUBLE) = 1.0D)"),
        ("f = 0.1", "(CAST(`f` AS DOUBLE) = 0.1D)"),
        ("s = 1", "(CAST(`s` AS BIGINT) = 1L)"),
        (
            "i in (1, 2.5)",
            "(CAST(`i` AS DECIMAL(11,1)) IN (CAST(1.0BD AS DECIMAL(11,1)), CAST(2.5BD AS DECIMAL(11,1))))",
        ),
        ("dec = '2.5'", "(CAST(`dec` AS DOUBLE) = 2.5D)"),
        ("ntz = timestamp'2024-01-31 00:00:00'", "(CAST(`ntz` AS TIMESTAMP) = TIMESTAMP '2024-01-31 00:00:00+00:00')"),
    ],
)
def test_the_literal_is_cast_and_not_the_column_where_that_is_exact(bind, text, bound):
    assert bind(text) == bound


def test_a_date_column_meets_the_days_of_the_session_zone(bind):
    text = "dt >= timestamp'2024-01-31 04:00:00Z'"
    assert bind(text, zone="America/New_York") == "(`dt` > DATE '2024-01-30')"
    assert bind("dt = timestamp'2024-01-31 05:00:00Z'", zone="America/New_York") == "(`dt` = DATE '2024-01-31')"


def test_nothing_that_could_raise_is_folded(bind):
    assert bind.expression("1 / 0") == "(1.0D / 0.0D)"
    assert bind.expression("2147483647 + 1") == "(2147483647 + 1)"
    assert bind("i = 'abc'") == "(CAST(`i` AS BIGINT) = CAST('abc' AS BIGINT))"
    assert bind.expression("cast('2023-02-29' as date)") == "CAST('2023-02-29' AS DATE)"
    assert bind.expression("cast(300 as tinyint)") == "CAST(300 AS TINYINT)"
    assert bind.expression("cast(2.5 as int)") == "2"


def test_an_explicit_cast_of_a_literal_keeps_its_declared_type_in_arithmetic(bind):
    # Spark counts the digits of a literal, and 20 for a BIGINT that was cast to.
    assert bind.type("dec + 1") == "decimal(11,2)"
    assert bind.type("dec + cast(1 as bigint)") == "decimal(23,2)"


def test_the_ansi_switch_changes_coercion(bind):
    assert bind("i = s") == "(CAST(`i` AS BIGINT) = CAST(`s` AS BIGINT))"
    assert bind("i = s", ansi=False) == "(`i` = CAST(`s` AS INT))"
    assert bind("i in ('1', s)", ansi=False).startswith("((CAST(`i` AS STRING) = '1')")
    assert bind.type("i + f") == "double"
    assert bind.type("i + f", ansi=False) == "float"
    assert bind.tree("cast(s as int)", ansi=False)["cast"]["mode"] == "legacy"
    assert bind.tree("try_cast(s as int)")["cast"]["mode"] == "try"


def test_an_in_list_of_other_columns_is_a_chain_of_comparisons(bind):
    assert bind("i in (j, 1)") == "((`i` = `j`) OR (`i` = 1))"
    assert bind.content("i in (1, null)")["values"] == [1, None]
    assert bind.content("d in (0.0D, -0.0D, 1e0)")["values"] == [0.0, 1.0]


def test_negations_that_say_nothing_are_taken_away(bind):
    assert bind("i is not null") == "(`i` IS NOT NULL)"
    assert bind("not i is not null") == "(`i` IS NULL)"
    assert bind("not (i != 1)") == "(`i` = 1)"


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("dt + interval 1 month", "add_months(`dt`, 1)"),
        ("dt - interval '1-2' year to month", "add_months(`dt`, -14)"),
        ("dt + interval 2 days", "date_add(`dt`, 2)"),
        ("dt - interval 1 week", "date_add(`dt`, -7)"),
        ("interval 1 day + dt", "date_add(`dt`, 1)"),
        ("dt + 1", "date_add(`dt`, 1)"),
        ("1 + dt", "date_add(`dt`, 1)"),
        ("dt - by", "date_sub(`dt`, CAST(`by` AS INT))"),
        ("ts + interval 1 day", "(`ts` + INTERVAL '1 00:00:00.000000' DAY TO SECOND)"),
        ("ts - interval '1 02:03:04.5' day to second", "(`ts` + INTERVAL '-1 02:03:04.500000' DAY TO SECOND)"),
        ("ts - interval -90 minutes", "(`ts` + INTERVAL '0 01:30:00.000000' DAY TO SECOND)"),
        ("ts - (-interval 1 hour)", "(`ts` + INTERVAL '0 01:00:00.000000' DAY TO SECOND)"),
        ("ntz + interval '1 day 2 hours'", "(`ntz` + INTERVAL '1 02:00:00.000000' DAY TO SECOND)"),
        ("ts + interval 1 year", "(`ts` + INTERVAL '12' MONTH)"),
        ("dt + interval 1 hour", "(CAST(`dt` AS TIMESTAMP) + INTERVAL '0 01:00:00.000000' DAY TO SECOND)"),
        ("dt - date'2024-01-01' > interval 3 days", "(datediff(`dt`, DATE '2024-01-01') > 3)"),
        ("interval 3 days < dt - date'2024-01-01'", "(datediff(`dt`, DATE '2024-01-01') > 3)"),
    ],
)
def test_intervals_become_date_functions(bind, text, bound):
    assert bind.expression(text) == bound


@pytest.mark.parametrize(
    "text",
    [
        "interval 1 day",
        "ts - ntz",
        "dt - dt",
        "interval 1 day + interval 1 day",
        "interval 1 month 2 days + dt",
        "interval '1 13' hour to minute + ts",
        "interval 1.5 day + ts",
        "interval 'x' day + ts",
        "i + interval 1 day",
    ],
)
def test_other_intervals_are_refused(bind, text):
    with pytest.raises(InvalidArgumentError):
        bind.expression(text)


def test_the_clock_is_read_once_and_can_be_given(bind):
    now = 1_706_702_400_000_000  # 2024-01-31 12:00:00 UTC
    assert bind("ts < current_timestamp()", now=now) == "(`ts` < TIMESTAMP '2024-01-31 12:00:00+00:00')"
    assert bind("dt = current_date", now=now) == "(`dt` = DATE '2024-01-31')"
    assert bind("dt = current_date", now=now, zone="Pacific/Kiritimati") == "(`dt` = DATE '2024-02-01')"
    assert bind("ntz = localtimestamp()", now=now) == "(`ntz` = TIMESTAMP_NTZ '2024-01-31 12:00:00')"
    tree = bind_predicate("current_timestamp() <= now()", bind.schema, ExpressionContext())["expr"]
    first, second = tree["call"]["arguments"]
    assert first == second


def test_a_char_column_is_compared_with_its_padding():
    schema = table(
        field("c", "string", __CHAR_VARCHAR_TYPE_STRING="char(5)"),
        field("k", "string", __CHAR_VARCHAR_TYPE_STRING="char(3)"),
        field("v", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(5)"),
    )

    def bound(text):
        return to_spark_sql(bind_predicate(text, schema, ExpressionContext()))

    # Values are stored with or without the padding.
    assert bound("c = 'ab'") == "(rpad(`c`, 5, ' ') = 'ab   ')"
    assert bound("'ab' <= c") == "(rpad(`c`, 5, ' ') >= 'ab   ')"
    assert bound("c in ('a', 'b')") == "(rpad(`c`, 5, ' ') IN ('a    ', 'b    '))"
    assert bound("c in ('a', 'abcdef')") == "(rpad(`c`, 6, ' ') IN ('a     ', 'abcdef'))"
    assert bound("c = 'abcdef'") == "(rpad(`c`, 6, ' ') = 'abcdef')"
    assert bound("v = 'ab'") == "(`v` = 'ab')"
    assert bound("c = k") == "(rpad(`c`, 5, ' ') = rpad(`k`, 5, ' '))"
    assert bound("c = v") == "(rpad(`c`, 5, ' ') = `v`)"


def test_a_collated_column_is_refused_where_its_text_would_be_read():
    schema = table(field("c", "string", __COLLATIONS={"c": "icu.UNICODE_CI"}), field("s", "string"))
    for text in (
        "c = 'a'",
        "'a' <=> c",
        "s = c",
        "c in ('a', 'b')",
        "upper(c) = 'A'",
        "c like 'a%'",
        "c || 'a' = 'ba'",
    ):
        with pytest.raises(
            UnsupportedExpressionError, match=r"the column `c` has the collation icu\.UNICODE_CI, by which"
        ):
            bind_predicate(text, schema, ExpressionContext())
    assert to_spark_sql(bind_predicate("c is not null", schema, ExpressionContext())) == "(`c` IS NOT NULL)"
    binary = table(field("c", "string", __COLLATIONS={"c": "spark.UTF8_BINARY"}))
    assert to_spark_sql(bind_predicate("c = 'a'", binary, ExpressionContext())) == "(`c` = 'a')"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i", "the predicate is of type INT, not BOOLEAN"),
        ("s", "the predicate is of type STRING, not BOOLEAN"),
        ("i and b", "AND does not take INT"),
        ("i = b", "does not take INT and BOOLEAN"),
        ("upper() = 'a'", r"upper\(\) takes 1 arguments, not 0"),
        ("isnull(i, j)", r"isnull\(\) takes 1 arguments, not 2"),
        ("greatest(i) = 1", r"greatest\(\) takes at least 2 arguments, not 1"),
        ("date_add(dt, 1L) = dt", r"date_add\(\) does not take BIGINT"),
        ("year(i) = 1", r"year\(\) does not take INT"),
        ("cast(i as date) = dt", "INT cannot be cast to DATE"),
        ("i.x = 1", "only structs and maps have fields"),
        ("arr['a'] = 1", "an array index does not take STRING"),
        ("case when i then 1 end = 1", "a WHEN condition does not take INT"),
    ],
)
def test_a_type_error_says_what_and_where(bind, text, message):
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        bind(text)
    assert not isinstance(caught.value, UnsupportedExpressionError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rand() > 0.5", r"the function rand\(\) is not supported at character 1"),
        ("uppr(s) = 'A'", r"did you mean upper\(\)\?"),
        ("m = m", "comparing values of type MAP"),
        ("round(dec, i) = 1", "takes its scale as a whole number"),
        ("to_date(s, 'yyyy') = dt", r"to_date\(\) with a pattern"),
        ("extract(millennium from ts) = 2", r"extract\(\) of 'millennium'"),
    ],
)
def test_what_spark_could_do_and_this_cannot_is_refused_by_name(bind, text, message):
    with pytest.raises(UnsupportedExpressionError, match=message) as caught:
        bind(text)
    assert isinstance(caught.value, NotImplementedError)


def test_null_alone_is_a_predicate_that_keeps_nothing(bind):
    assert bind("null") == "CAST(NULL AS BOOLEAN)"
    assert bind("i = null") == "(`i` = CAST(NULL AS INT))"
    assert bind("null <=> null") == "true"


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "+99:00"])
def test_an_unknown_zone_is_refused(bind, zone):
    with pytest.raises(InvalidArgumentError, match="unknown time zone"):
        bind("b", zone=zone)


@pytest.mark.parametrize(
    "schema", ["", "[]", "{}", '"string"', '{"type": "struct"}', '{"type":"array","elementType":"x"}']
)
def test_a_schema_that_is_none_is_refused(schema):
    with pytest.raises(InvalidArgumentError):
        bind_predicate("a = 1", schema, ExpressionContext())


def test_a_schema_nested_without_end_is_refused():
    deep = '{"type":"array","containsNull":true,"elementType":' * 3000 + '"integer"' + "}" * 3000
    with pytest.raises(InvalidArgumentError):
        bind_predicate(
            "a = 1", table(field("a", "integer"))[:-2] + ', {"name":"x","type":' + deep + "}]}", ExpressionContext()
        )


@pytest.mark.parametrize("predicate", [None, 1, object(), {"a": 1}, {1}])
def test_another_object_is_no_predicate(bind, predicate):
    with pytest.raises(InvalidArgumentError, match="a predicate cannot be a"):
        bind(predicate)


def test_sql_is_parsed_without_loading_other_libraries():
    import subprocess
    import sys

    code = (
        "import sys\n"
        "from deltafast._expr import bind_predicate\n"
        "from deltafast._expr.context import ExpressionContext\n"
        f"bind_predicate('i > 1', {table(field('i', 'integer'))!r}, ExpressionContext())\n"
        f"bind_predicate([('i', '>', 1)], {table(field('i', 'integer'))!r}, ExpressionContext())\n"
        "print([m for m in ('pyarrow', 'polars', 'duckdb', 'pandas', 'numpy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_refusal_crosses_to_other_processes_whole(bind):
    with pytest.raises(UnsupportedExpressionError) as caught:
        bind("rand() > 0")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (UnsupportedExpressionError, str(caught.value))


def test_expressions_of_any_type_can_be_bound(bind):
    assert bind.type("concat(s, i)") == "string"
    assert bind_expression("i + 1", bind.schema, ExpressionContext(ansi=False))["ansi"] is False
