"""Exceptions derive from the fitting builtin, carry their place and survive pickling."""

import copy
import errno
import pickle
import warnings

import pyarrow as pa
import pytest

from deltafast import DeltaTable, exceptions, sql, write_deltalake
from deltafast.exceptions import DeltaError

BUILTINS = {
    "ChangeDataNotRecordedError": ValueError,
    "CommitFailedError": Exception,
    "CommitUnknownError": OSError,
    "ConcurrentAppendError": exceptions.CommitFailedError,
    "ConcurrentDeleteDeleteError": exceptions.CommitFailedError,
    "ConcurrentDeleteReadError": exceptions.CommitFailedError,
    "ConcurrentTransactionError": exceptions.CommitFailedError,
    "ConcurrentWriteError": exceptions.CommitFailedError,
    "ConstraintViolatedError": ValueError,
    "CorruptDataError": ValueError,
    "CorruptLogError": ValueError,
    "DataFileNotFoundError": FileNotFoundError,
    "DeltaError": Exception,
    "DeltaProtocolError": NotImplementedError,
    "InternalError": RuntimeError,
    "MissingLibraryError": ModuleNotFoundError,
    "InvalidArgumentError": ValueError,
    "MetadataChangedError": exceptions.CommitFailedError,
    "ProtocolChangedError": exceptions.CommitFailedError,
    "ResourceError": OSError,
    "SchemaMismatchError": ValueError,
    "StorageError": OSError,
    "TableNotFoundError": FileNotFoundError,
    "VersionNotFoundError": ValueError,
}
PLACE = {
    "file": "00.json",
    "version": 3,
    "line": 4,
    "column": "a.b",
    "feature": "deletionVectors",
    "path": "/t",
    "constraint": "c",
    "resource": "memory",
}


@pytest.mark.parametrize("name", sorted({*exceptions.__all__} - {"DeltaWarning", "ErrorCode"}))
class TestEach:
    def test_derives_from_delta_error_and_the_builtin(self, name):
        cls = getattr(exceptions, name)
        assert issubclass(cls, DeltaError)
        assert issubclass(cls, BUILTINS[name])

    def test_keeps_its_message_and_place_through_a_pickle(self, name):
        error = getattr(exceptions, name)("it broke", **PLACE)
        error.add_note("seen twice")
        for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert type(twin) is type(error)
            assert str(twin) == twin.message == "it broke"
            assert {key: getattr(twin, key) for key in PLACE} == PLACE
            assert twin.__notes__ == ["seen twice"]

    def test_has_no_place_unless_given(self, name):
        error = getattr(exceptions, name)("it broke")
        assert all(getattr(error, key) is None for key in PLACE)

    def test_is_public_and_documented(self, name):
        cls = getattr(exceptions, name)
        assert cls.__module__ == "deltafast.exceptions"
        assert cls.__doc__


def test_missing_files_have_the_error_number():
    error = exceptions.TableNotFoundError("no table at /t", path="/t")
    assert error.errno == errno.ENOENT
    assert str(error) == "no table at /t"


@pytest.mark.parametrize(
    ("resource", "number"),
    [("memory", errno.ENOMEM), ("threads", errno.EAGAIN), ("file descriptors", errno.EMFILE)],
)
def test_what_ran_out_has_its_error_number(resource, number):
    error = exceptions.ResourceError("nothing left", resource=resource)
    assert (error.errno, error.resource, str(error)) == (number, resource, "nothing left")
    assert pickle.loads(pickle.dumps(error)).errno == number


def test_names_of_deltalake_are_all_there():
    deltalake = pytest.importorskip("deltalake.exceptions")
    assert set(deltalake.__all__) <= set(exceptions.__all__)


WRITES = {
    "append": lambda table: write_deltalake(table, {"id": [1]}, mode="append"),
    "append by path": lambda table: write_deltalake(table.table_uri, {"id": [1]}, mode="append"),
    "update": lambda table: table.update({"id": "id + 1"}),
    "delete": lambda table: table.delete("id = 0"),
    "properties": lambda table: table.alter.set_table_properties({"a": "b"}),
    "merge": lambda table: (
        table.merge(pa.table({"id": [1]}), "t.id = s.id", source_alias="s", target_alias="t")
        .when_not_matched_insert_all()
        .execute()
    ),
    "sql": lambda table: sql(f"INSERT INTO delta.`{table.table_uri}` VALUES (1)"),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("failure", ["checkpoint", "cleanup"])
def test_a_committed_change_returns_although_warnings_are_errors(tmp_path, caplog, failure, write):
    path = tmp_path / "t"
    write_deltalake(path, {"id": [0]}, configuration={"delta.checkpointInterval": "1"})
    if failure == "checkpoint":
        # A folder in the place of the hint, which is written after it.
        (path / "_delta_log" / "_last_checkpoint" / "x").mkdir(parents=True)
    else:
        commit = path / "_delta_log" / f"{0:020}.json"
        property_text = '"delta.checkpointInterval":"1"'
        other = '"delta.logRetentionDuration":"1 month",'
        commit.write_text(commit.read_text().replace(property_text, other + property_text))
        commit.with_suffix(".crc").unlink(missing_ok=True)
    table = DeltaTable(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WRITES[write](table)
    assert DeltaTable(path).version() == 1
    assert "version 1 is committed, but" in caplog.text


def test_a_warning_of_a_commit_is_a_warning_where_warnings_are_not_errors():
    with pytest.warns(exceptions.DeltaWarning, match="version 7"):
        exceptions.warn_of_commit("version 7 is committed, but ..")
