"""An empty condition selects no rows to change: it is an error in each operation that changes rows."""

import pyarrow as pa
import pytest

import deltafast._deltalake.table as dropin
from deltafast import DeltaTable, write_deltalake
from deltafast.cli import main
from deltafast.exceptions import InvalidArgumentError

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", None], "day": ["mon", "mon", "tue"]})

EMPTY = [
    [],
    (),
    [[]],
    [()],
    ([],),
    [[], []],
    [[("id", "=", 1)], []],
    [[], [("id", "=", 1)]],
    [("id", "not in", [])],
    [("id", "NOT  IN", ()), ("day", "not in", [])],
    [[("id", "=", 1)], [("day", "not in", frozenset())]],
    "",
    " \n\t",
    "-- id = 1",
    "/* id = 1 */",
    "()",
    {},
    set(),
    0,
    False,
    b"",
]

CHANGES = {
    "delete": lambda t, empty: t.delete(empty),
    "update": lambda t, empty: t.update({"name": "'x'"}, predicate=empty),
    "update new_values": lambda t, empty: t.update(new_values={"name": "x"}, predicate=empty),
    "overwrite by handle": lambda t, empty: write_deltalake(t, ROWS, mode="overwrite", predicate=empty),
    "overwrite by path": lambda t, empty: write_deltalake(t.table_uri, ROWS, mode="overwrite", predicate=empty),
    "transaction": lambda t, empty: t.create_write_transaction([], "overwrite", t.schema(), partition_filters=empty),
}
CLAUSES = {
    "when_matched_update": ({"name": "'x'"},),
    "when_matched_update_all": (),
    "when_matched_delete": (),
    "when_not_matched_insert": ({"id": "source.id"},),
    "when_not_matched_insert_all": (),
    "when_not_matched_by_source_update": ({"name": "'x'"},),
    "when_not_matched_by_source_delete": (),
}


@pytest.fixture(params=["deltafast", "deltalake"])
def handle(request, tmp_path):
    write_deltalake(tmp_path, ROWS, partition_by=["day"])
    return (DeltaTable if request.param == "deltafast" else dropin.DeltaTable)(tmp_path)


def check_unchanged(handle):
    again = DeltaTable(handle.table_uri)
    assert (again.version(), again.count()) == (0, 3)


@pytest.mark.parametrize("operation", CHANGES)
def test_an_empty_condition_changes_no_rows(handle, operation):
    for empty in EMPTY:
        with pytest.raises((InvalidArgumentError, TypeError)):
            CHANGES[operation](handle, empty)
        check_unchanged(handle)


@pytest.mark.parametrize("clause", CLAUSES)
def test_an_empty_condition_of_a_merge_changes_no_rows(handle, clause):
    source = {"id": [1, 9], "name": ["s", "n"], "day": ["mon", "sun"]}
    aliases = {"source_alias": "source", "target_alias": "target"}
    for empty in EMPTY:
        merger = handle.merge(source, "target.id = source.id", **aliases)
        with pytest.raises(InvalidArgumentError):
            getattr(merger, clause)(*CLAUSES[clause], predicate=empty).execute()
        with pytest.raises((InvalidArgumentError, TypeError)):
            getattr(handle.merge(source, empty, **aliases), clause)(*CLAUSES[clause]).execute()
    check_unchanged(handle)


def test_an_empty_condition_of_the_command_deletes_no_rows(tmp_path, capsys):
    write_deltalake(tmp_path, ROWS)
    assert main(["delete", str(tmp_path), "--where", ""]) != 0
    capsys.readouterr()
    check_unchanged(DeltaTable(tmp_path))


def test_none_selects_all_rows_and_empty_filters_read_all_rows(handle):
    assert handle.to_pyarrow_table(filters=[]).num_rows == 3
    # A tuple that excludes nothing is no empty condition if others exclude rows.
    handle.delete([("id", "not in", []), ("day", "=", "tue")])
    assert handle.to_pyarrow_table().num_rows == 2
    assert handle.update({"name": "'x'"}, predicate=None)["num_updated_rows"] == 2
    handle.delete(None)
    assert handle.to_pyarrow_table().num_rows == 0
