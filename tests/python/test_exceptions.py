"""Exceptions derive from the fitting builtin, carry their place and survive pickling."""

import copy
import errno
import pickle

import pytest

from deltafast import exceptions
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


@pytest.mark.parametrize("name", sorted({*exceptions.__all__} - {"DeltaWarning"}))
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
