"""Polars' functions for Delta tables: `deltafast.polars`."""

import datetime as dt
import inspect
import subprocess
import sys
import time

import deltalake
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import servers
from conformance import corpus
from deltafast import DeltaTable, write_deltalake
from deltafast import polars as functions
from deltafast._handle import handle_of
from deltafast._interop.polars_arguments import with_credentials
from deltafast.exceptions import (
    ChangeDataNotRecordedError,
    InvalidArgumentError,
    TableNotFoundError,
    VersionNotFoundError,
)
from deltafast.polars import read_delta, scan_cdf, scan_delta, sink_delta, write_delta

C = pl.col
BOTH = pytest.mark.parametrize("engine", ["in-memory", "streaming"])
FEED = {"delta.enableChangeDataFeed": "true"}


def same(found, expected):
    assert_frame_equal(found, expected, check_row_order=False)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("scan_delta", pl.scan_delta),
        ("read_delta", pl.read_delta),
        ("write_delta", pl.DataFrame.write_delta),
        ("sink_delta", pl.LazyFrame.sink_delta),
    ],
)
def test_parameters_are_those_of_polars(name, method):
    def parameters(function):
        found = inspect.signature(function).parameters.values()
        named = [one for one in found if one.name not in {"self", "frame", "lazy_frame", "optimizations"}]
        return [(one.name, one.kind, one.default) for one in named]

    assert parameters(getattr(functions, name)) == parameters(method)


# --- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, lambda path: path, DeltaTable], ids=["str", "path", "table"])
@pytest.mark.parametrize("version", [None, 0, 1])
def test_rows_are_those_of_polars(events_path, kind, version):
    expected = pl.read_delta(str(events_path), version=version)
    assert expected.height == (90 if version is None else 30 * (version + 1))
    same(scan_delta(kind(events_path), version=version).collect(), expected)
    same(read_delta(kind(events_path), version=version), expected)
    found = read_delta(kind(events_path), version=version, columns=["name", "id"])
    same(found, expected.select("name", "id"))


def test_timestamps_choose_a_version(tmp_path):
    for number in range(2):
        write_deltalake(tmp_path, pl.DataFrame({"id": [number]}), mode="append")
        time.sleep(0.01)
    first = DeltaTable(tmp_path, 0).timestamp()
    for when in (first, first.isoformat(), first.replace(tzinfo=None)):
        assert scan_delta(tmp_path, version=when).collect().rows() == [(0,)]
        assert read_delta(DeltaTable(tmp_path), version=when).rows() == [(0,)]
    assert read_delta(tmp_path, version=dt.datetime.now(dt.UTC)).height == 2
    with pytest.raises(VersionNotFoundError, match="2000-01-01"):
        scan_delta(tmp_path, version="2000-01-01")
    with pytest.raises(InvalidArgumentError, match="ISO 8601"):
        scan_delta(tmp_path, version="yesterday")


def test_a_lazy_frame_and_a_given_table_keep_their_versions(tmp_path):
    write_deltalake(tmp_path, pl.DataFrame({"id": [1]}))
    table = DeltaTable(tmp_path)
    lazy = scan_delta(tmp_path)
    of_table = scan_delta(table)
    write_deltalake(table, pl.DataFrame({"id": [2]}), mode="append")
    assert lazy.collect().height == of_table.collect().height == 1
    assert scan_delta(table, version=0).collect().height == 1
    assert table.version() == 1


#: Tables with features that Polars' own functions refuse, and their features.
REFUSED_BY_POLARS = {
    "kerneljava-column-mapping-id": "column mapping",
    "kerneljava-data-reader-primitives-column-mapping-name": "column mapping",
    "deltars-table_with_partitioning_mapping": "columnMapping",
    "kernelrs-stats-writing-all-types": "columnMapping",
    "golden-type-widening-nested": "typeWidening",
    "golden-v2-checkpoint-json": "v2Checkpoint",
    "kernelrs-v2-json-sidecars-struct-stats-only": "v2Checkpoint",
}
#: Tables that Polars' own functions read.
READ_BY_POLARS = ["dat-deletion_vectors", "golden-dv-partitioned-with-checkpoint", "dat-timestamp_ntz"]


@pytest.mark.parametrize("name", [*REFUSED_BY_POLARS, *READ_BY_POLARS])
def test_tables_of_the_corpus_have_the_rows_of_spark(name):
    cases = [case for case in corpus.cases("read") if case.table["name"] == name]
    (case,) = cases
    expected = pl.read_parquet(corpus.root() / case.case["rows"]["parquet"])
    with corpus.folder(case.table) as path:
        found = read_delta(path)
        # The expected files have nanoseconds where the tables have microseconds.
        same(found, expected.cast(dict(found.schema)))
        same(scan_delta(path).collect(engine="streaming"), found)
        column = found.columns[0]
        same(
            scan_delta(path).filter(C(column).is_not_null()).select(column).collect(), found.select(column).drop_nulls()
        )
        if name in READ_BY_POLARS:
            same(found, pl.read_delta(str(path)))
        else:
            with pytest.raises(deltalake.exceptions.DeltaProtocolError, match=REFUSED_BY_POLARS[name]):
                pl.scan_delta(str(path)).collect()


def test_a_table_with_vacuum_protocol_check(tmp_path):
    write_deltalake(
        tmp_path, pl.DataFrame({"id": [1]}), configuration={"delta.feature.vacuumProtocolCheck": "supported"}
    )
    assert scan_delta(tmp_path).collect().rows() == [(1,)]
    with pytest.raises(deltalake.exceptions.DeltaProtocolError, match="vacuumProtocolCheck"):
        pl.scan_delta(str(tmp_path)).collect()


def asked_of_the_core(monkeypatch, table, method="scan"):
    """What scans are asked for, as (columns, has predicate, limit)."""
    asked = []
    inner = handle_of(table).snapshot

    class Spy:
        def __getattr__(self, name):
            if name != method:
                return getattr(inner, name)

            def call(*bounds, **options):
                asked.append((options["columns"], options["predicate"] is not None, options.get("limit")))
                return getattr(inner, method)(*bounds, **options)

            return call

    monkeypatch.setattr(handle_of(table), "snapshot", Spy())
    return asked


@BOTH
def test_the_part_of_a_predicate_that_the_core_can_evaluate_is_pushed(monkeypatch, events, event_table, engine):
    everything = pl.DataFrame(event_table)
    asked = asked_of_the_core(monkeypatch, events)
    evaluable = C("id") > 80
    other = C("tags").list.len() == 2
    for predicate, is_pushed, columns in [
        (evaluable & other, True, {"name", "tags"}),
        (other & evaluable & C("day").is_not_null(), True, {"name", "tags"}),
        (other, False, {"name", "tags"}),
        (evaluable | other, False, {"name", "id", "tags"}),
        (~(evaluable & other), False, {"name", "id", "tags"}),
    ]:
        asked.clear()
        found = scan_delta(events).filter(predicate).select("name").collect(engine=engine)
        same(found, everything.filter(predicate).select("name"))
        ((read, has_predicate, _),) = asked
        assert has_predicate == is_pushed, predicate
        assert set(read) >= columns
    asked.clear()
    found = scan_delta(events).filter(other).filter(evaluable).collect(engine=engine)
    same(found, everything.filter(other & evaluable))
    assert asked == [(None, True, None)]


def test_lazy_frames_can_be_sent_to_other_processes(changes_path):
    code = """
import io, sys, warnings
import polars as pl
warnings.simplefilter("ignore")
data = sys.stdin.buffer.read()
print(pl.LazyFrame.deserialize(io.BytesIO(data)).filter(pl.col("id") > 3).select(pl.len()).collect().item())
"""
    for lazy, height in (
        (scan_delta(changes_path, version=0), 0),
        (scan_delta(changes_path), 3),
        (scan_cdf(changes_path), 5),
    ):
        data = lazy.serialize()
        done = subprocess.run([sys.executable, "-c", code], input=data, check=True, capture_output=True)
        assert int(done.stdout) == height


def test_files_are_skipped(events_path):
    table = DeltaTable(events_path)
    tree = handle_of(table).bind(C("id") > 80)
    assert handle_of(table).snapshot.plan(tree)["files"] < len(table.files())


def test_explain_shows_what_is_pushed(events):
    lazy = scan_delta(events)
    plan = lazy.filter(C("id") > 80).select("name").explain()
    assert "PYTHON[deltafast] SCAN" in plan
    assert 'SELECTION: col("id") > 80' in plan
    assert "PROJECT 2/6 COLUMNS" in plan or "PROJECT 1/6 COLUMNS" in plan
    assert f"{events.table_uri}, version 2" in plan
    assert "FILTER" not in plan
    assert "SLICE: Positive { offset: 0, len: 5 }" in lazy.head(5).explain()
    assert "PROJECT 1/6 COLUMNS" in lazy.select("id").explain()


@BOTH
def test_slices(monkeypatch, events, engine):
    asked = asked_of_the_core(monkeypatch, events)
    assert scan_delta(events).head(3).collect(engine=engine).height == 3
    assert [limit for _, _, limit in asked] == [3]
    assert scan_delta(events).slice(88, 5).collect(engine=engine).height == 2
    assert scan_delta(events).select([]).collect(engine=engine).width == 0
    assert scan_delta(events).select(pl.len()).collect(engine=engine).item() == 90


def test_arguments_without_effect_are_accepted(events_path, events, event_table):
    expected = pl.DataFrame(event_table)
    same(scan_delta(events_path, use_pyarrow=True, pyarrow_options={}).collect(), expected)
    same(scan_delta(events_path, credential_provider=None).collect(), expected)
    same(scan_delta(events_path, storage_options={"file_cache_ttl": 30}).collect(), expected)
    same(scan_delta(events, storage_options={"file_cache_ttl": 30}, delta_table_options={}).collect(), expected)
    same(scan_delta(events_path, delta_table_options={"without_files": True}).collect(), expected)
    table = DeltaTable(events_path, storage_options={"timeout": "30s"})
    same(read_delta(table, storage_options={"timeout": "30s"}), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pyarrow_options": {"partitions": [("day", "=", "2026-01-01")]}}, "pyarrow_options .*`partitions`.*filter"),
        ({"storage_options": {"aws_region": "x"}}, "storage_options .*`aws_region`.* differ"),
        ({"credential_provider": lambda: ({}, None)}, "credential_provider .*DeltaTable"),
        ({"delta_table_options": {"time_zone": "UTC"}}, "delta_table_options .*DeltaTable"),
    ],
)
def test_arguments_that_would_change_the_rows_are_refused(events, options, message):
    for read in (scan_delta, read_delta):
        with pytest.raises(InvalidArgumentError, match=message):
            read(events, **options)


def test_other_sources_are_refused(tmp_path, events_path):
    theirs = deltalake.DeltaTable(events_path)
    with pytest.raises(InvalidArgumentError, match=r"not a deltalake\.table\.DeltaTable: give its table_uri"):
        scan_delta(theirs)
    with pytest.raises(InvalidArgumentError, match="give its table_uri"):
        write_delta(pl.DataFrame({"id": [1]}), theirs)
    with pytest.raises(TableNotFoundError):
        scan_delta(tmp_path)
    with pytest.raises(InvalidArgumentError, match="no column `x`"):
        read_delta(events_path, columns=["x"])


def test_delta_table_options_are_those_of_the_table(tmp_path):
    write_deltalake(tmp_path, pl.DataFrame({"id": [1]}))
    assert read_delta(tmp_path, delta_table_options={"time_zone": "Europe/Berlin"}).height == 1
    with pytest.raises(TypeError, match="nonsense"):
        read_delta(tmp_path, delta_table_options={"nonsense": 1})


def test_credentials_come_from_the_provider():
    """The options without which the bucket is not found come from the provider alone."""
    calls = []
    with servers.cloud("gcs") as cloud:

        def provider():
            calls.append(None)
            return cloud.options(), None

        url = f"{cloud.root}/by-provider"
        write_delta(pl.DataFrame({"id": [1, 2]}), url, credential_provider=provider)
        sink_delta(pl.LazyFrame({"id": [3]}), url, mode="append", credential_provider=provider)
        assert sorted(scan_delta(url, credential_provider=provider).collect()["id"]) == [1, 2, 3]
    assert len(calls) == 3


def test_what_a_provider_returns_is_checked():
    assert with_credentials({"a": "1", "b": "2", "rate_read_init": 1}, lambda: ({"b": "3"}, 5)) == {"a": "1", "b": "3"}
    assert with_credentials(None, "auto") is None
    with pytest.raises(InvalidArgumentError, match="must return a tuple") as caught:
        with_credentials(None, lambda: {"aws_secret_access_key": "hidden"})
    assert "hidden" not in str(caught.value)
    with pytest.raises(InvalidArgumentError, match="must be a function"):
        with_credentials(None, "none")


# --- writing -------------------------------------------------------------------------------------


def lazily(frame, *arguments, **options):
    return sink_delta(frame.lazy(), *arguments, **options)


WRITERS = pytest.mark.parametrize("write", [write_delta, lazily], ids=["write_delta", "sink_delta"])


@WRITERS
def test_frames_become_a_table(tmp_path, write):
    path = tmp_path / "t"
    assert write(pl.DataFrame({"id": [1, 2], "s": ["a", None]}), path) is None
    more = pl.DataFrame({"id": [3], "s": ["c"]})
    write(more, str(path), mode="append", delta_write_options={"target_file_size": 1 << 20})
    assert sorted(DeltaTable(path).to_polars().rows()) == [(1, "a"), (2, None), (3, "c")]
    write(pl.DataFrame(schema={"id": pl.Int64, "s": pl.String}), path, mode="append")
    assert DeltaTable(path).count() == 3
    write(more, path, mode="ignore")
    with pytest.raises(InvalidArgumentError, match="already"):
        write(more, path)
    table = DeltaTable(path)
    changed = pl.DataFrame({"k": [1.5]})
    write(changed, table, mode="overwrite", delta_write_options={"schema_mode": "overwrite"})
    same(table.to_polars(), changed)
    assert pl.read_delta(str(path)).rows() == [(1.5,)]


@WRITERS
def test_frames_are_merged(tmp_path, write):
    path = tmp_path / "t"
    write(pl.DataFrame({"id": [1, 2, 3], "s": ["a", None, "c"]}), path)
    merge = {"predicate": "s.id = t.id", "source_alias": "s", "target_alias": "t"}
    for opened, text in ((str, "x"), (DeltaTable, "y")):
        rows = pl.DataFrame({"id": [3, 4], "s": [text, "d"]})
        merger = write(rows, opened(path), mode="merge", delta_merge_options=merge)
        merger.when_matched_update_all().when_not_matched_insert_all().execute()
        assert sorted(DeltaTable(path).to_polars().rows()) == [(1, "a"), (2, None), (3, text), (4, "d")]
    with pytest.raises(TableNotFoundError):
        write(rows, tmp_path / "none", mode="merge", delta_merge_options=merge)


@WRITERS
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "merge"}, "delta_merge_options"),
        ({"delta_merge_options": {"predicate": "true"}}, "delta_merge_options have no meaning with mode='error'"),
        (
            {"mode": "merge", "delta_merge_options": {"predicate": "true"}, "delta_write_options": {"name": "x"}},
            "delta_write_options have no meaning with mode='merge'",
        ),
        ({"mode": "upsert"}, "mode must be one of"),
        ({"credential_provider": 1}, "must be a function"),
    ],
)
def test_writes_with_wrong_arguments_are_refused(tmp_path, write, options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        write(pl.DataFrame({"id": [1]}), tmp_path / "t", **options)
    assert not (tmp_path / "t").exists()


@WRITERS
def test_options_for_an_open_table_are_refused(tmp_path, write):
    write(pl.DataFrame({"id": [1]}), tmp_path)
    with pytest.raises(InvalidArgumentError, match="`aws_region`"):
        write(pl.DataFrame({"id": [1]}), DeltaTable(tmp_path), mode="append", storage_options={"aws_region": "x"})
    assert DeltaTable(tmp_path).version() == 0


@WRITERS
@pytest.mark.parametrize(
    ("values", "dtype", "named"),
    [
        ([None], pl.Null, "Null"),
        ([[]], pl.List(pl.Null), "Null"),
        ([{"a": dt.time(1)}], pl.Struct({"a": pl.Time}), "Time"),
        ([dt.timedelta(1)], pl.Duration("us"), "Duration"),
        ([1], pl.Int128, "Int128"),
    ],
)
def test_types_that_delta_lacks_are_named(tmp_path, write, values, dtype, named):
    frame = pl.DataFrame({"id": [1], "x": pl.Series(values, dtype=dtype)})
    with pytest.raises(InvalidArgumentError, match=rf"no type for Polars' {named}: .*column `x`") as caught:
        write(frame, tmp_path / "t")
    assert caught.value.column == "x"
    assert not (tmp_path / "t").exists()


def test_python_objects_are_not_written(tmp_path):
    with pytest.raises(InvalidArgumentError, match="Polars' Object"):
        write_delta(pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object)}), tmp_path / "t")


def test_each_function_takes_its_frame(tmp_path):
    with pytest.raises(InvalidArgumentError, match="not a LazyFrame: sink_delta"):
        write_delta(pl.LazyFrame({"id": [1]}), tmp_path / "t")
    with pytest.raises(InvalidArgumentError, match="not a DataFrame: write_delta"):
        sink_delta(pl.DataFrame({"id": [1]}), tmp_path / "t")


@pytest.mark.parametrize("engine", ["auto", "in-memory", "streaming"])
def test_a_query_is_written_in_its_order(tmp_path, engine):
    query = pl.LazyFrame({"n": [0]}).select(pl.int_range(0, 300_000).alias("id")).sort("id", descending=True)
    flags = pl.QueryOptFlags(predicate_pushdown=False)
    sink_delta(query.filter(C("id") % 3 == 0), tmp_path, engine=engine, optimizations=flags)
    assert DeltaTable(tmp_path).to_polars()["id"].equals(pl.Series(range(299_997, -1, -3)))


def test_a_query_that_fails_writes_nothing(tmp_path):
    with pytest.raises(InvalidArgumentError, match="conversion from `str` to `i64` failed"):
        sink_delta(pl.LazyFrame({"id": ["x"]}).select(C("id").cast(pl.Int64)), tmp_path / "t")
    assert not DeltaTable.is_deltatable(tmp_path / "t")


def test_a_table_is_the_source_of_its_own_new_rows(tmp_path):
    write_delta(pl.DataFrame({"id": [1, 2]}), tmp_path)
    sink_delta(scan_delta(tmp_path).with_columns(C("id") + 2), tmp_path, mode="append")
    assert sorted(read_delta(tmp_path)["id"]) == [1, 2, 3, 4]


def test_a_lazy_frame_is_not_held(tmp_path):
    code = """
import resource, sys
import polars as pl
from deltafast.polars import sink_delta
sink_delta(pl.LazyFrame({"id": [1]}), sys.argv[1] + "/warm")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ids = pl.LazyFrame({"n": [0]}).select(pl.int_range(0, 20_000_000).alias("id"))
rows = ids.with_columns(x=pl.col("id") * 1.5, y=pl.col("id") + 1)
sink_delta(rows, sys.argv[1] + "/t")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    found = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, text=True)
    assert DeltaTable(tmp_path / "t").count() == 20_000_000
    assert int(found.stdout) < 400_000, "480 MB of rows, in kilobytes"


# --- the change data feed ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def changes_path(tmp_path_factory):
    """Versions: 0 inserts 1 to 3, 1 inserts 4 to 6, 2 deletes 2, 3 updates 4."""
    path = tmp_path_factory.mktemp("changes")
    for first in (1, 4):
        rows = pl.DataFrame({"id": range(first, first + 3), "s": ["a", "b", "cc"]})
        write_delta(rows, path, mode="append", delta_write_options={} if first > 1 else {"configuration": FEED})
        time.sleep(0.01)
    table = DeltaTable(path)
    table.delete("id = 2")
    time.sleep(0.01)
    table.update({"s": "'new'"}, predicate="id = 4")
    return path


@pytest.fixture(scope="module")
def changes(changes_path):
    return pl.DataFrame(DeltaTable(changes_path).load_cdf().read_all())


CHANGE_PREDICATES = [
    C("_change_type") == "delete",
    C("_change_type").is_in(["update_preimage", "update_postimage"]),
    (C("_commit_version") > 0) & (C("id") > 4),
    C("_commit_timestamp") > dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    (C("_commit_version") == 1) & (C("s").str.len_chars() == 2),
    C("s").str.len_chars() == 3,
]


@BOTH
class TestChanges:
    def test_all_columns(self, changes_path, changes, engine):
        lazy = scan_cdf(changes_path)
        assert lazy.collect_schema() == changes.schema
        same(lazy.collect(engine=engine), changes)
        assert sorted(changes["_change_type"].unique()) == ["delete", "insert", "update_postimage", "update_preimage"]

    @pytest.mark.parametrize("predicate", CHANGE_PREDICATES, ids=str)
    def test_predicates(self, changes_path, changes, predicate, engine):
        expected = changes.filter(predicate)
        assert not expected.is_empty()
        same(scan_cdf(changes_path).filter(predicate).collect(engine=engine), expected)
        found = scan_cdf(changes_path).filter(predicate).select("_commit_version", "id").collect(engine=engine)
        same(found, expected.select("_commit_version", "id"))

    def test_limits_and_counts(self, changes_path, changes, engine):
        lazy = scan_cdf(changes_path)
        assert lazy.head(4).collect(engine=engine).height == 4
        assert lazy.head(4).filter(C("id") > 0).collect(engine=engine).height == 4
        assert lazy.filter(C("_commit_version") == 1).head(2).collect(engine=engine).height == 2
        assert lazy.slice(2, 3).collect(engine=engine).height == 3
        assert lazy.select(pl.len()).collect(engine=engine).item() == changes.height
        counts = lazy.group_by("_change_type").len().collect(engine=engine)
        assert dict(counts.rows())["insert"] == 6

    def test_columns_and_predicates_reach_the_core(self, monkeypatch, changes_path, engine):
        table = DeltaTable(changes_path)
        asked = asked_of_the_core(monkeypatch, table, "cdf")
        lazy = scan_cdf(table)
        lazy.filter(C("_change_type") == "insert").select("id").collect(engine=engine)
        lazy.filter(C("_commit_version") > 1, C("s").str.len_chars() == 3).select("id").collect(engine=engine)
        (columns, is_pushed, _), (more, is_part_pushed, _) = asked
        assert is_pushed
        assert is_part_pushed
        assert "s" not in columns
        assert "_commit_timestamp" not in [*columns, *more]
        assert {"id", "s"} <= set(more)


def test_ranges_of_changes(changes_path, changes):
    def versions(source=changes_path, **bounds):
        return sorted(scan_cdf(source, **bounds).collect()["_commit_version"].unique())

    assert versions() == [0, 1, 2, 3]
    assert versions(starting_version=1, ending_version=2) == [1, 2]
    assert versions(ending_version=9) == [0, 1, 2, 3]
    assert versions(DeltaTable(changes_path, 1)) == [0, 1]
    times = dict(changes.select("_commit_version", "_commit_timestamp").unique().rows())
    assert versions(starting_timestamp=times[2]) == [2, 3]
    assert versions(ending_timestamp=times[1].isoformat()) == [0, 1]
    assert versions(starting_timestamp=times[1], ending_version=2) == [1, 2]
    assert versions(starting_version=2, ending_timestamp=times[2]) == [2]


def test_explain_of_changes(changes_path):
    plan = scan_cdf(changes_path, starting_version=1).filter(C("_change_type") == "delete").select("id").explain()
    assert 'SELECTION: col("_change_type") == "delete"' in plan
    assert "/5 COLUMNS" in plan
    assert "changes of versions 1 to 3" in plan


def test_a_lazy_frame_of_changes_does_not_see_later_commits(tmp_path):
    write_delta(pl.DataFrame({"id": [1]}), tmp_path, delta_write_options={"configuration": FEED})
    lazy = scan_cdf(tmp_path)
    write_delta(pl.DataFrame({"id": [2]}), tmp_path, mode="append")
    assert lazy.collect()["id"].to_list() == [1]


def test_changes_of_renamed_columns_have_the_names_of_the_last_version(tmp_path):
    rows = pl.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    write_delta(rows, tmp_path, delta_write_options={"configuration": FEED | {"delta.columnMapping.mode": "name"}})
    alter = DeltaTable(tmp_path).alter
    for old, new in (("a", "z"), ("b", "a"), ("z", "b")):
        alter.rename_column(old, new)
    first = scan_cdf(tmp_path, ending_version=0)
    assert first.filter(C("a") == 2).select("a", "b").collect().rows() == [(2, "y")]
    newest = scan_cdf(tmp_path)
    assert newest.filter(C("a") == "y").select("a", "b").collect().rows() == [("y", 2)]
    assert newest.collect_schema().names()[:2] == ["b", "a"]


FEED_CASES = [case for case in corpus.cases("cdf") if case.table["name"] == "kernelrs-cdf-column-mapping-name-mode"]


@pytest.mark.parametrize("case", FEED_CASES, ids=str)
def test_changes_in_the_corpus_are_those_of_spark(case):
    bounds = {"starting_version": case.case["start_version"], "ending_version": case.case["end_version"]}
    expected = pl.read_parquet(corpus.root() / case.case["rows"]["parquet"])
    with corpus.folder(case.table) as path:
        found = scan_cdf(path, **bounds).drop("_commit_timestamp").collect()
    same(found, expected.cast(dict(found.schema)))


def test_feeds_that_do_not_exist_are_refused(tmp_path, changes_path):
    write_delta(pl.DataFrame({"id": [1]}), tmp_path)
    with pytest.raises(ChangeDataNotRecordedError, match="enableChangeDataFeed"):
        scan_cdf(tmp_path)
    with pytest.raises(VersionNotFoundError, match="9"):
        scan_cdf(changes_path, starting_version=9)
    with pytest.raises(InvalidArgumentError, match="after the ending version"):
        scan_cdf(changes_path, starting_version=2, ending_version=1)
    for end in ("starting", "ending"):
        with pytest.raises(InvalidArgumentError, match=f"{end}_version or {end}_timestamp"):
            scan_cdf(changes_path, **{f"{end}_version": 1, f"{end}_timestamp": "2026-01-01"})
