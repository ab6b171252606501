"""Decimals keep all of their 38 digits, whatever the program's decimal context is."""

from __future__ import annotations

import contextlib
import decimal
import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deltafast
from deltafast import DeltaTable, sql, write_deltalake
from deltafast._expr import bind_predicate
from deltafast._expr.context import ExpressionContext
from deltafast._expr.decimals import floor_to_scale, from_unscaled, rescale, to_whole
from deltafast._util.dialect import Dialect

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUE = Decimal("12345678901234567890.123456789012345678")
NEAR = Decimal("12345678901234567890.123456789012345679")
DIGITS = st.integers(-(10**38) + 1, 10**38 - 1)
EVERY_SIGNAL = [decimal.Inexact, decimal.Rounded, decimal.FloatOperation, decimal.Subnormal, decimal.Clamped]
CONTEXTS = {
    "default": decimal.Context(prec=28),
    "one digit": decimal.Context(prec=1, rounding=decimal.ROUND_UP),
    "no traps": decimal.Context(prec=5, traps=[]),
    "every trap": decimal.Context(prec=9, traps=EVERY_SIGNAL),
    "small exponents": decimal.Context(prec=4, Emin=-1, Emax=1),
}


@contextlib.contextmanager
def context(name: str) -> Iterator[None]:
    with decimal.localcontext(CONTEXTS[name]):
        yield


def decimal_of(unscaled: int, scale: int) -> Decimal:
    return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))


@pytest.mark.parametrize("name", CONTEXTS)
@given(unscaled=DIGITS, scale=st.integers(0, 38))
def test_shifts_and_changes_of_scale_are_exact_or_refused(name, unscaled, scale):
    expected = decimal_of(unscaled, scale)
    with context(name):
        shifted, wider = from_unscaled(unscaled, scale), rescale(expected, scale + 38)
        narrow, whole, floor = rescale(expected, 0), to_whole(expected), floor_to_scale(expected, 0)
    assert shifted == expected
    assert shifted.as_tuple() == expected.as_tuple()
    assert wider == expected
    is_whole = unscaled % 10**scale == 0
    assert narrow == (expected if is_whole else None)
    assert whole == (unscaled // 10**scale if is_whole else None)
    assert floor == unscaled // 10**scale


@pytest.mark.parametrize("name", CONTEXTS)
@settings(max_examples=20)
@given(unscaled=DIGITS, scale=st.integers(0, 38), shift=st.sampled_from([0, 1, -1]))
def test_a_literal_has_the_same_digits_in_each_form_of_a_predicate(name, unscaled, scale, shift):
    value = decimal_of(max(min(unscaled + shift, 10**38 - 1), 1 - 10**38), scale)
    schema = {"type": "struct", "fields": [{"name": "d", "type": f"decimal(38,{scale})", "nullable": True}]}
    schema["fields"][0]["metadata"] = {}
    kind = pa.decimal128(38, scale)
    forms: list[Any] = [
        [("d", "=", value)],
        f"d = {value:f}BD",
        [("d", "=", f"{value:f}")],
        pc.field("d") == pa.scalar(value, kind),
        pl.col("d") == pl.lit(value, pl.Decimal(38, scale)),
    ]
    lists: list[Any] = [
        [("d", "in", [value])],
        f"d IN ({value:f}BD)",
        pc.field("d").isin(pa.array([value], kind)),
        pl.col("d").is_in(pl.Series([value], dtype=pl.Decimal(38, scale))),
    ]
    with context(name):
        trees = [str(bind_predicate(form, schema, ExpressionContext(Dialect.DELTAFAST))) for form in [*forms, *lists]]
    for tree in trees:
        assert f"'{value:.{scale}f}'" in tree


@pytest.fixture(scope="module")
def location(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "t"
    rows = pa.table({"id": [1, 2, 3], "d": pa.array([VALUE, NEAR, None], pa.decimal128(38, 18))})
    write_deltalake(path, rows)
    write_deltalake(path.with_name("parts"), rows, partition_by="d")
    return path


@pytest.mark.parametrize("name", CONTEXTS)
@pytest.mark.parametrize("folder", ["t", "parts"])
def test_a_filter_finds_exactly_the_decimal_that_it_names(location, folder, name):
    table = DeltaTable(location.with_name(folder))
    kind = pa.decimal128(38, 18)
    with context(name):
        frame = table.scan_polars()
        value = pl.lit(VALUE, pl.Decimal(38, 18))
        assert frame.filter(pl.col("d") == value).collect()["id"].to_list() == [1]
        assert frame.filter(pl.col("d") != value).collect()["id"].to_list() == [2]
        assert frame.filter(pl.col("d") > value).collect()["id"].to_list() == [2]
        assert table.to_pyarrow_dataset().count_rows(pc.field("d") == pa.scalar(VALUE, kind)) == 1
        assert table.to_pyarrow_table(filters=[("d", "<=", VALUE)])["id"].to_pylist() == [1]
        assert table.count(f"d > {VALUE:f}") == 1
        assert table.count([("d", "not in", [VALUE])]) == 2


@pytest.mark.parametrize("name", CONTEXTS)
def test_written_decimals_keep_their_digits(tmp_path, name):
    rows = pa.table({"id": [1, 2], "d": pa.array([VALUE, NEAR], pa.decimal128(38, 18))})
    properties = {"delta.feature.allowColumnDefaults": "supported"}
    with context(name):
        write_deltalake(tmp_path / "t", rows, configuration=properties)
        table = DeltaTable(tmp_path / "t")
        table.update(new_values={"d": VALUE}, predicate="id = 2")
        table.update({"d": f"{NEAR:f}"}, predicate=[("d", "=", VALUE), ("id", "=", 1)])
        sql(f"ALTER TABLE t ALTER COLUMN d SET DEFAULT {VALUE:f}", t=table)
        sql(f"INSERT INTO t VALUES (3, DEFAULT), (4, {NEAR:f}), (5, '{VALUE:f}')", t=table)
    found = table.to_pyarrow_table().sort_by("id")["d"].to_pylist()
    assert found == [NEAR, VALUE, VALUE, NEAR, VALUE]


def test_only_one_module_computes_with_decimals():
    folder = Path(deltafast.__file__).parent
    arithmetic = re.compile(
        r"\.(scaleb|quantize|normalize|to_integral\w*|fma|localcontext|getcontext|remainder_near)\b"
        r"|decimal\.Decimal\([^()]*\) *[-+*/%]"
    )
    computing = {
        str(file.relative_to(folder))
        for file in folder.rglob("*.py")
        if "import decimal" in (text := file.read_text()) or "from decimal" in text
        if arithmetic.search(text)
    }
    assert computing == {"_expr/decimals.py"}
