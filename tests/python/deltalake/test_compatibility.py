"""What deltalake has for reading, deltafast has under the same names, with the same parameters and answers."""

import datetime as dt
import inspect

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltafast
from deltafast._deltalake import table as dropin_table
from deltafast._ops.merge import TableMerger
from deltafast._ops.optimize import TableOptimizer

deltalake = pytest.importorskip("deltalake")

PAIRS = [
    (deltalake.DeltaTable, deltafast.DeltaTable),
    (deltalake.QueryBuilder, deltafast.QueryBuilder),
    (deltalake.table.TableOptimizer, TableOptimizer),
]


def members(cls):
    return [name for name in vars(cls) if not name.startswith("_") or name == "__init__"]


METHODS = [(a, b, name) for a, b in PAIRS for name in members(a)]
# Its builder is made by `merge`, whatever that takes for it.
BUILDERS = deltalake.table.TableMerger, TableMerger
METHODS += [(*BUILDERS, name) for name in members(BUILDERS[0]) if name != "__init__"]


@pytest.mark.parametrize(("theirs", "ours", "name"), METHODS, ids=lambda value: getattr(value, "__name__", value))
def test_parameters_and_defaults_are_deltalakes(theirs, ours, name):
    expected, found = inspect.getattr_static(theirs, name), inspect.getattr_static(ours, name)
    if isinstance(expected, property):
        assert isinstance(found, property)
        return
    parameters = inspect.signature(getattr(theirs, name)).parameters.values()
    # Some take keyword-only parameters by position, too, and warn; here they are keyword-only.
    wanted = [p for p in parameters if p.kind is not p.VAR_POSITIONAL]
    got = list(inspect.signature(getattr(ours, name)).parameters.values())
    # Of such a parameter the default is an object that only looks like it.
    shape = [(p.name, p.kind, repr(p.default)) for p in got]
    assert shape[: len(wanted)] == [(p.name, p.kind, repr(p.default)) for p in wanted]
    assert all(p.default is not p.empty for p in got[len(wanted) :])


@pytest.fixture
def both(events_path):
    return deltalake.DeltaTable(events_path), deltafast.DeltaTable(events_path)


def test_facts_are_the_same(both):
    theirs, ours = both
    assert ours.version() == theirs.version() == 2
    assert ours.table_uri == theirs.table_uri
    assert repr(ours.schema()) == repr(theirs.schema())
    assert ours.protocol() == theirs.protocol()
    # deltalake shows the writer's clock, deltafast the time by which time travel finds the version, as delta-spark.
    assert dropin_table.DeltaTable(ours.table_uri).history() == theirs.history()
    times = {"timestamp": None}
    assert [commit | times for commit in ours.history()] == [commit | times for commit in theirs.history()]
    found = [deltafast.DeltaTable(ours.table_uri, commit["version"]).timestamp() for commit in ours.history()]
    assert [commit["timestamp"] for commit in ours.history()] == [round(time.timestamp() * 1000) for time in found]
    assert [commit["version"] for commit in ours.history(1)] == [2]
    assert ours.transaction_version("loader") == theirs.transaction_version("loader") == 2
    assert ours.transaction_version("other") is theirs.transaction_version("other") is None
    assert ours.count() == theirs.count() == 90
    for name in ("id", "name", "description", "partition_columns", "created_time", "configuration"):
        assert getattr(ours.metadata(), name) == getattr(theirs.metadata(), name)


def key(row):
    return sorted((name, str(value)) for name, value in row.items())


@pytest.mark.parametrize(
    "pruning",
    [
        None,
        "day = '2026-01-01'",
        "day = '2026-01-01' OR day IS NULL",
        "id > 60",
        "id BETWEEN 3 AND 5 AND day IN ('2026-01-02')",
        [("day", "=", "2026-01-01")],
        [("day", "=", dt.date(2026, 1, 1))],
        [("day", "!=", "2026-01-01")],
        [("day", "in", ["2026-01-01", "2026-01-02"])],
        [("day", "not in", ["2026-01-01"])],
        [("day", "=", "")],
        [("day", "!=", "")],
        [("day", ">", "2026-01-01"), ("id", "<", 50)],
        [[("day", "=", "2026-01-01")], [("id", ">=", 85)]],
        [("id", "=", "17")],
    ],
    ids=str,
)
def test_files_and_partitions_are_the_same(both, pruning):
    theirs, ours = both
    assert sorted(ours.file_uris(file_pruning_predicate=pruning)) == sorted(
        theirs.file_uris(file_pruning_predicate=pruning)
    )
    assert sorted(ours.partitions(file_pruning_predicate=pruning), key=key) == sorted(
        theirs.partitions(file_pruning_predicate=pruning), key=key
    )


def test_old_names_of_filters_are_taken(both):
    theirs, ours = both
    filters = [("day", "=", "2026-01-02")]
    assert sorted(ours.file_uris(filters)) == sorted(theirs.file_uris(file_pruning_predicate=filters))
    assert ours.partitions(filters) == [{"day": "2026-01-02"}]
    with pytest.raises(ValueError, match="only one"):
        ours.file_uris(filters, file_pruning_predicate=filters)


@pytest.mark.parametrize("flatten", [False, True])
def test_add_actions_are_the_same(both, flatten):
    theirs, ours = both
    expected, found = pa.table(theirs.get_add_actions(flatten)), pa.table(ours.get_add_actions(flatten))
    common = expected.column_names
    assert found.column_names[: len(common)] == common
    for name in common:
        assert found.schema.field(name).type == expected.schema.field(name).type, name
    assert found.select(common).sort_by("path").to_pylist() == expected.select(common).sort_by("path").to_pylist()


def sorted_rows(table):
    return sorted(pa.table(table).to_pylist(), key=lambda row: (row["id"], str(row)))


def test_rows_are_the_same(both):
    theirs, ours = both
    assert sorted_rows(ours.to_pyarrow_table()) == sorted_rows(theirs.to_pyarrow_table())
    assert ours.to_pyarrow_table().schema == theirs.to_pyarrow_table().schema
    wanted = theirs.to_pyarrow_table(columns=["name", "id"], filters=[("day", "=", dt.date(2026, 1, 1))])
    found = ours.to_pyarrow_table(columns=["name", "id"], filters=[("day", "=", dt.date(2026, 1, 1))])
    assert found.schema == wanted.schema
    assert sorted_rows(found) == sorted_rows(wanted)


@pytest.mark.parametrize(
    "pruning",
    [
        [("year", "=", 2020)],
        [("year", "=", 2021.0)],
        [("year", "!=", 2020)],
        [("active", "=", True)],
        [("active", "in", [True, False])],
        [("on", "=", dt.date(2023, 1, 1))],
        [("year", "in", [2020, 2022.0])],
    ],
    ids=str,
)
def test_values_of_any_type_are_compared_with_partitions_of_text(pruning, tmp_path):
    data = pa.table(
        {
            "id": range(4),
            "year": ["2020", "2021.0", "2020", None],
            "active": ["true", "false", None, "true"],
            "on": ["2023-01-01", "2023-01-02", "2023-01-01", "x"],
        }
    )
    deltafast.write_deltalake(tmp_path, data, partition_by=["year", "active", "on"])
    theirs, ours = deltalake.DeltaTable(tmp_path), deltafast.DeltaTable(tmp_path)
    expected = theirs.to_pyarrow_dataset(file_pruning_predicate=pruning).to_table()
    found = ours.to_pyarrow_dataset(file_pruning_predicate=pruning).to_table()
    assert sorted_rows(found) == sorted_rows(expected)
    assert sorted(ours.file_uris(file_pruning_predicate=pruning)) == sorted(
        theirs.file_uris(file_pruning_predicate=pruning)
    )
    with pytest.raises(ValueError, match="dict"):
        ours.file_uris(file_pruning_predicate=[("year", "=", {"a": 1})])


def test_fragments_are_those_of_the_dataset(both):
    _, ours = both
    pruned = ours.to_pyarrow_dataset(file_pruning_predicate=[("day", "=", "2026-01-01")])
    assert sorted(f.path for f in pruned.get_fragments()) == sorted(ours.files([("day", "=", "2026-01-01")]))
    assert sorted(pruned.files) == sorted(ours.file_uris([("day", "=", "2026-01-01")]))
    whole = ours.to_pyarrow_dataset()
    assert len(whole.files) == len(list(whole.get_fragments())) == len(ours.files())
    late = pc.field("id") >= 60
    assert len(list(whole.get_fragments(late))) == len(ours.files(file_pruning_predicate="id >= 60"))
    assert len(list(whole.filter(late).get_fragments())) < len(ours.files())


def test_the_inner_object_answers_like_theirs(both):
    theirs, ours = (table._table for table in both)
    assert ours.version() == theirs.version()
    assert ours.get_latest_version() == theirs.get_latest_version()
    assert ours.table_uri() == theirs.table_uri()
    assert ours.protocol_versions() == theirs.protocol_versions()
    assert repr(ours.schema) == repr(theirs.schema)
    assert sorted(ours.files()) == sorted(theirs.files())
    assert sorted(ours.file_uris()) == sorted(theirs.file_uris())
    assert ours.get_add_file_sizes() == theirs.get_add_file_sizes()
    assert ours.get_active_partitions() == theirs.get_active_partitions()
    assert ours.transaction_version("loader") == theirs.transaction_version("loader")
    assert ours.metadata().id == theirs.metadata().id


def test_a_location_is_reported_without_detours(events_path, monkeypatch):
    monkeypatch.chdir(events_path.parent)
    for place in ("events", "./events/", f"../{events_path.parent.name}/events", events_path / ".." / "events"):
        assert deltafast.DeltaTable(place).table_uri == deltalake.DeltaTable(place).table_uri
        assert sorted(deltafast.DeltaTable(place).file_uris()) == sorted(deltalake.DeltaTable(place).file_uris())


def test_pandas_frames_are_the_same(both):
    pandas = pytest.importorskip("pandas")
    theirs, ours = (
        table.to_pandas(columns=["id", "amount", "name", "at", "day"]).sort_values("id", ignore_index=True)
        for table in both
    )
    pandas.testing.assert_frame_equal(ours, theirs)


def test_changes_are_the_same(both):
    theirs, ours = both
    for options in ({}, {"starting_version": 1}, {"starting_version": 1, "ending_version": 1}):
        expected, found = pa.table(theirs.load_cdf(**options)), ours.load_cdf(**options).read_all()
        assert set(found.column_names) == set(expected.column_names)
        names = ["id", "name", "_change_type", "_commit_version"]
        assert sorted_rows(found.select(names)) == sorted_rows(expected.select(names))


def test_time_travel_goes_to_the_same_versions(both):
    theirs, ours = both
    timestamps = [deltafast.DeltaTable(ours.table_uri, version).timestamp() for version in range(3)]
    for when in (m + dt.timedelta(milliseconds=extra) for m in timestamps for extra in (0, 1)):
        for way in (when, when.isoformat(), when.isoformat().replace("+00:00", "Z"), when.replace(tzinfo=None)):
            theirs.load_as_version(when)
            ours.load_as_version(way)
            assert ours.version() == theirs.version()
