"""Rows that are replaced by keys: `replace_using` and `replace_on`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import deltafast
from deltafast import DeltaTable, write_deltalake
from deltafast._expr import UnsupportedExpressionError
from deltafast.exceptions import ConcurrentAppendError, ConstraintViolatedError, InvalidArgumentError

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

deltalake = pytest.importorskip("deltalake")

FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
Pair = tuple[Any, Any]


def rows(*pairs: Pair, kind: pa.DataType | None = None) -> pa.Table:
    """Return rows of `id` and `s`."""
    ids, strings = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.table({"id": pa.array(ids, kind or pa.int64()), "s": pa.array(strings, pa.string())})


def of(table: DeltaTable | str) -> list[Pair]:
    """Return the rows as a fresh handle reads them, which must be those that `deltalake` reads."""
    uri = table if isinstance(table, str) else table.table_uri
    order = {"key": lambda row: (row[0] is None, row[0] or 0, row[1] or "")}
    read = sorted(((r["id"], r["s"]) for r in DeltaTable(uri).to_pyarrow_table().to_pylist()), **order)
    theirs = pa.table(deltalake.DeltaTable(uri).scan()) if "deletionVectors" not in features(uri) else None
    if theirs is not None:
        assert read == sorted(((r["id"], r["s"]) for r in theirs.select(["id", "s"]).to_pylist()), **order)
    return read


def features(uri: str) -> list[str]:
    """Return the features that a writer must know."""
    return DeltaTable(uri).protocol().writer_features or []


@pytest.fixture
def made(tmp_path: pathlib.Path) -> Callable[..., DeltaTable]:
    """Return a table of three files: ids 0 to 9, 10 to 19, and one without an id."""

    def of_properties(configuration: dict[str, str] | None = None) -> DeltaTable:
        uri = str(tmp_path / "t")
        write_deltalake(uri, rows(*((n, "old") for n in range(10))), configuration=configuration)
        write_deltalake(uri, rows(*((n, "old") for n in range(10, 20))), mode="append")
        write_deltalake(uri, rows((None, "old")), mode="append")
        return DeltaTable(uri)

    return of_properties


OLD: list[Pair] = [*((n, "old") for n in range(20)), (None, "old")]


@pytest.mark.parametrize("configuration", [{}, FEED, TRACKED, VECTORS], ids=["plain", "feed", "row ids", "vectors"])
def test_rows_of_the_same_keys_are_replaced(made, configuration):
    table = made(configuration)
    untouched = set(table.file_uris())
    new = rows((3, "new"), (3, "newer"), (50, "new"), (None, "new"), kind=pa.int32())
    write_deltalake(table, new, mode="overwrite", replace_using="ID")
    expected = [pair for pair in OLD if pair[0] != 3] + [(3, "new"), (3, "newer"), (50, "new"), (None, "new")]
    assert sorted(of(table), key=repr) == sorted(expected, key=repr)
    assert len(untouched & set(table.file_uris())) == 2, "files without a match stay"
    info = table.history(1)[0]
    assert info["operationParameters"]["replaceOn"] == "target.`ID` = source.`ID`"
    assert (int(info["operationMetrics"]["numDeletedRows"]), int(info["operationMetrics"]["numCopiedRows"])) == (1, 9)
    if configuration == FEED:
        changes = table.load_cdf(starting_version=3).read_all().to_pylist()
        reported = sorted((c["_change_type"], c["id"], c["s"]) for c in changes if c["id"] is not None)
        assert reported == [("delete", 3, "old"), ("insert", 3, "new"), ("insert", 3, "newer"), ("insert", 50, "new")]
        assert len(changes) == 5
    if configuration == TRACKED:
        before = DeltaTable(table.table_uri, version=2).scan(metadata_columns=["row_id"]).read_all().to_pylist()
        after = table.scan(metadata_columns=["row_id"]).read_all().to_pylist()
        ids = {r["row_id"]: r["id"] for r in before}
        kept = [r for r in after if r["s"] == "old"]
        assert all(ids[r["row_id"]] == r["id"] for r in kept)
        assert len({r["row_id"] for r in after}) == len(after)


def test_nulls_equal_each_other_where_that_is_asked(made):
    table = made()
    new = pa.table({"id": pa.array([None, 4], pa.int64()), "s": ["new", "new"]})
    write_deltalake(table, new, mode="overwrite", replace_on="t.id <=> s.id")
    assert of(table) == [*((n, "new" if n == 4 else "old") for n in range(20)), (None, "new")]


def test_a_column_may_equal_one_of_another_name(tmp_path):
    uri = str(tmp_path)
    write_deltalake(uri, pa.table({"id": [1, 2], "s": ["1", "2"]}))
    write_deltalake(uri, pa.table({"id": [5], "s": ["2"]}), mode="overwrite", replace_on="target.s = source.s")
    assert of(uri) == [(1, "1"), (5, "2")]
    write_deltalake(
        uri, pa.table({"id": [1], "s": ["x"]}), mode="overwrite", replace_on="source.id = target.id AND t.s <=> s.s"
    )
    assert of(uri) == [(1, "1"), (1, "x"), (5, "2")]


def test_files_of_which_no_row_stays_end_without_a_copy(made):
    table = made(FEED)
    write_deltalake(table, rows(*((n, "new") for n in range(10, 20))), mode="overwrite", replace_using=["id"])
    metrics = table.history(1)[0]["operationMetrics"]
    assert (int(metrics["numRemovedFiles"]), int(metrics["numCopiedRows"]), int(metrics["numFiles"])) == (1, 0, 1)
    assert of(table) == [(n, "new" if n > 9 else "old") for n in range(20)] + [(None, "old")]
    changes = table.load_cdf(starting_version=3).read_all().to_pylist()
    assert sorted({(c["_change_type"], c["s"]) for c in changes}) == [("delete", "old"), ("insert", "new")]
    assert len(changes) == 20


def test_more_keys_than_a_predicate_names(tmp_path):
    uri, many = str(tmp_path), 5000
    write_deltalake(uri, rows(*((n, "old") for n in range(many * 2))))
    write_deltalake(uri, rows(*((n, "far") for n in range(100_000, 100_010))), mode="append")
    before = set(DeltaTable(uri).file_uris())
    write_deltalake(uri, rows(*((n * 2, "new") for n in range(many))), mode="overwrite", replace_using="id")
    read = dict(of(uri))
    assert len(read) == many * 2 + 10
    assert all(read[n] == ("old" if n % 2 else "new") for n in range(many * 2))
    assert len(before & set(DeltaTable(uri).file_uris())) == 1, "what lies beyond all keys is not read"


def test_partitions_are_keys_too(tmp_path):
    uri = str(tmp_path)
    data = pa.table({"id": [1, 2, 3], "s": ["a", "b", None]})
    write_deltalake(uri, data, partition_by="s")
    write_deltalake(uri, pa.table({"id": [9], "s": ["a"]}), mode="overwrite", replace_using="s")
    assert of(uri) == [(2, "b"), (3, None), (9, "a")]
    write_deltalake(
        uri, pa.table({"id": [8], "s": pa.array([None], pa.string())}), mode="overwrite", replace_on="t.s <=> s.s"
    )
    assert of(uri) == [(2, "b"), (8, None), (9, "a")]


def test_no_rows_replace_nothing(made):
    table = made()
    write_deltalake(table, rows(), mode="overwrite", replace_using="id")
    assert sorted(of(table), key=repr) == sorted(OLD, key=repr)


def test_a_row_that_breaks_a_constraint_leaves_the_table_as_it_was(made, tmp_path):
    table = made()
    table.alter.add_constraint({"small": "id < 100 OR id IS NULL"})
    files = sorted(path.name for path in (tmp_path / "t").glob("*.parquet"))
    with pytest.raises(ConstraintViolatedError):
        write_deltalake(table, rows((1, "new"), (100, "new")), mode="overwrite", replace_using="id")
    assert sorted(of(table), key=repr) == sorted(OLD, key=repr)
    assert sorted(path.name for path in (tmp_path / "t").glob("*.parquet")) == files


def test_a_concurrent_append_of_the_same_key_conflicts_and_others_do_not(made):
    table = made()
    stale = DeltaTable(table.table_uri)
    write_deltalake(table, rows((500, "other")), mode="append")
    write_deltalake(stale, rows((1, "new")), mode="overwrite", replace_using="id")
    stale = DeltaTable(table.table_uri)
    write_deltalake(DeltaTable(table.table_uri), rows((2, "other")), mode="append")
    with pytest.raises(ConcurrentAppendError):
        write_deltalake(stale, rows((2, "new")), mode="overwrite", replace_using="id")


def test_arguments_that_make_no_sense_are_refused(made, tmp_path):
    table = made()
    new = rows((1, "new"))
    for options, expected in (
        ({"replace_using": "id"}, 'needs mode="overwrite"'),
        ({"mode": "overwrite", "replace_using": "id", "predicate": "id = 1"}, "each says which rows"),
        ({"mode": "overwrite", "replace_using": "id", "replace_on": "t.id = s.id"}, "not both"),
        ({"mode": "overwrite", "replace_using": []}, "names no column"),
        ({"mode": "overwrite", "replace_using": "nope"}, "`nope`, which is not a column of the table"),
        ({"mode": "overwrite", "replace_on": "t.id = s.nope"}, "`nope`, which the data does not have"),
    ):
        with pytest.raises(InvalidArgumentError, match=expected):
            write_deltalake(table, new, **{"mode": "append", **options})
    for condition in ("id = 1", "t.id = t.s", "t.id > s.id", "t.id = s.id OR t.s = s.s"):
        with pytest.raises(UnsupportedExpressionError, match="equalities"):
            write_deltalake(table, new, mode="overwrite", replace_on=condition)
    write_deltalake(str(tmp_path / "new"), new, mode="overwrite", replace_using="id")
    assert deltafast.DeltaTable(str(tmp_path / "new")).count() == 1, "a table that is not there is made"
