"""What tables ask of a store, tried on every kind of store; and stores that fall short, which must be found out."""

import os
import pathlib

import fsspec
import obstore.store
import pyarrow.fs
import pytest

import servers
from deltafast import StoreCheck, check_store, exceptions
from deltafast.check import Finding

TRIALS = [
    "put-if-absent",
    "mutual exclusion",
    "atomic visibility",
    "read after write",
    "list after write",
    "ordered listing",
    "folder listing",
    "keys",
    "range reads",
    "multipart upload",
    "replacing",
    "delete",
]


@pytest.fixture(scope="module")
def s3():
    with servers.s3() as bucket:
        yield bucket


@pytest.fixture(scope="module")
def azure():
    with servers.azure(servers.azurite(pathlib.Path(servers.__file__).parent / ".cache")) as container:
        yield container


@pytest.fixture(scope="module")
def gcs():
    with servers.Gcs().running() as bucket:
        yield bucket


def passes_all(checked, rounds, writers=20):
    assert [finding.name for finding in checked.findings] == TRIALS
    assert [finding for finding in checked.findings if finding.verdict != "passed"] == []
    assert checked.safe
    assert checked
    assert f"{rounds} rounds of {writers} writers" in checked["mutual exclusion"].detail


# --- stores that commits are safe in ---------------------------------------------------------------


#: Races of writers, and objects that are listed. A listing of more than a page is in the log of a table in S3 too
#: (`test_object_stores.py`), and here in GCS.
SHORT_CHECK = {"rounds": 10, "objects": 30}


@pytest.mark.slow
def test_s3_keeps_the_contract(s3):
    passes_all(check_store("s3://bucket/of/tables ü", s3.options(), **SHORT_CHECK), 10)
    assert s3.keys() == []


@pytest.mark.slow
def test_azure_keeps_the_contract(azure):
    passes_all(check_store("az://container/of/tables ü", azure.options(), **SHORT_CHECK), 10)
    assert azure.keys() == []


@pytest.mark.proof
def test_gcs_keeps_the_contract(gcs):
    passes_all(check_store("gs://bucket/of/tables ü", gcs.options(), rounds=10), 10)
    assert gcs.keys() == []


@pytest.mark.proof
@pytest.mark.timeout(400)
@pytest.mark.parametrize("cloud", ["s3", "azure", "gcs"])
def test_clouds_keep_the_contract_through_many_races(cloud, request):
    bucket = request.getfixturevalue(cloud)
    root = {"s3": "s3://bucket", "azure": "az://container", "gcs": "gs://bucket"}[cloud]
    passes_all(check_store(f"{root}/of/tables ü", bucket.options(), rounds=200), 200)
    assert bucket.keys() == []


def test_local_disks_keep_the_contract(tmp_path):
    passes_all(check_store(tmp_path, rounds=200), 200)
    assert list(tmp_path.iterdir()) == []


def test_memory_keeps_the_contract():
    passes_all(check_store("memory://contract/t", rounds=200), 200)


def test_what_is_there_is_left_alone(tmp_path):
    for name in ("_delta_log/0.json", "a.parquet", "_deltafast_check_of_mine/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert check_store(tmp_path, rounds=1, writers=2, objects=30)
    found = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert found == ["_delta_log/0.json", "_deltafast_check_of_mine/x", "a.parquet"]


# --- stores made in Python -------------------------------------------------------------------------


def of_memory(_):
    return fsspec.filesystem("memory"), "memory://contract"


def of_local(tmp_path):
    return fsspec.filesystem("file"), str(tmp_path)


def of_pyarrow(tmp_path):
    return pyarrow.fs.SubTreeFileSystem(str(tmp_path.parent), pyarrow.fs.LocalFileSystem()), tmp_path.name


def of_obstore(_):
    return obstore.store.MemoryStore(), "t"


def of_obstore_local(tmp_path):
    return obstore.store.LocalStore(tmp_path), ""


@pytest.mark.parametrize("kind", [of_memory, of_local, of_pyarrow, of_obstore, of_obstore_local])
def test_python_stores_that_can_be_written_keep_the_contract(kind, tmp_path):
    store, uri = kind(tmp_path)
    passes_all(check_store(uri, store=store, rounds=20, objects=30), 20)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.slow
@pytest.mark.proof
def test_obstore_in_s3_keeps_the_contract(s3):
    passes_all(check_store("", store=s3.client("through/obstore"), rounds=5, objects=30), 5)


class Elsewhere(fsspec.AbstractFileSystem):
    """A file system that looks first and writes then, as all do that know nothing better."""

    protocol = "elsewhere"


def test_python_stores_without_exclusive_creation_are_not_safe(tmp_path):
    checked = check_store("elsewhere://t", store=Elsewhere())
    assert not checked
    assert [finding.name for finding in checked.findings] == ["put-if-absent"]
    assert "Elsewhere cannot make a file only if there is none" in checked["put-if-absent"].detail
    handler = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(fsspec.filesystem("file")))
    assert "PyFileSystem" in check_store(str(tmp_path), store=handler)["put-if-absent"].detail


def test_a_file_system_that_ignores_the_condition_is_found_out(tmp_path):
    class Ignoring(type(fsspec.filesystem("memory"))):
        protocol = "ignoring"

        def pipe_file(self, path, value, mode="overwrite", **_):
            super().pipe_file(path, value)

    checked = check_store("memory://ignoring", store=Ignoring(), rounds=2, objects=30)
    assert checked["put-if-absent"].verdict == checked["mutual exclusion"].verdict == "unsafe"


# --- stores that fall short ------------------------------------------------------------------------


SHORT = {
    "careless": (servers.CarelessGcs, {"put-if-absent", "mutual exclusion"}),
    "racy": (servers.RacyGcs, {"mutual exclusion"}),
    "tearing": (servers.TearingGcs, {"atomic visibility"}),
    "forgetful": (servers.ForgetfulGcs, {"list after write"}),
    "one page": (servers.OnePageGcs, {"ordered listing"}),
    "beginnings": (servers.WholeGcs, {"range reads"}),
    "unescaping": (servers.UnescapingGcs, {"keys"}),
    "jumbling": (servers.JumblingGcs, {"multipart upload"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", SHORT)
def test_a_store_that_is_not_safe_is_called_so(case):
    kind, found = SHORT[case]
    with kind().running() as bucket:
        objects = 1_050 if case == "one page" else 30
        checked = check_store("gs://bucket/t", bucket.options(), rounds=10, objects=objects)
        assert not checked.safe
        assert found <= {finding.name for finding in checked.findings if finding.verdict == "unsafe"}, checked
        # One writer at a time is not a race.
        if case == "racy":
            assert checked["put-if-absent"].verdict == "passed"
        assert bucket.keys() == []


@pytest.mark.slow
def test_an_s3_that_ignores_conditions_is_called_unsafe(s3):
    with servers.Proxy(s3.port).running() as proxy:
        proxy.withheld = {"if-none-match"}
        checked = check_store("s3://bucket/careless", s3.options(aws_endpoint_url=proxy.url), rounds=2, objects=30)
    assert checked["put-if-absent"].verdict == checked["mutual exclusion"].verdict == "unsafe"
    assert "it ignores the condition of the request" in checked["put-if-absent"].detail


def test_a_store_that_deletes_nothing_is_safe_and_says_what_it_cannot_do():
    with servers.KeepingGcs().running() as bucket:
        checked = check_store("gs://bucket/t", bucket.options(), rounds=1, objects=30)
        assert checked.safe
        assert checked["delete"].verdict == "failed"
        assert "AccessDenied" in checked["delete"].detail
        assert "_deltafast_check_" in checked["delete"].detail
        assert "is left behind" in checked["delete"].detail
        assert len(bucket.keys()) > 80


@pytest.mark.slow
@pytest.mark.parametrize("status", [409, 412])
def test_both_answers_to_a_lost_race_are_the_same(s3, status):
    """S3 says 412, and 409 while another writer's request is under way; others have a favourite."""

    def disturb(_, behind):
        answer = behind()
        return answer._replace(status=status) if answer.status in (409, 412) else answer

    with servers.Proxy(s3.port).running() as proxy:
        proxy.disturb = disturb
        checked = check_store("s3://bucket/conflict", s3.options(aws_endpoint_url=proxy.url), rounds=5, objects=30)
    passes_all(checked, 5)


# --- places of which nothing can be said, or that refuse commits -----------------------------------


def test_places_that_only_can_be_read_are_not_safe(s3, tmp_path, monkeypatch):
    with servers.Folder(tmp_path).running() as site:
        checked = check_store(site.url)
        assert site.requests == []
    assert not checked
    assert "can only be read" in checked["put-if-absent"].detail
    locked = check_store("s3://bucket/locked", s3.options(aws_s3_locking_provider="dynamodb"))
    assert not locked
    assert "dynamodb" in locked["put-if-absent"].detail
    disabled = check_store("s3://bucket/disabled", s3.options(aws_conditional_put="disabled"))
    assert not disabled
    assert "no conditional requests" in disabled["put-if-absent"].detail


def test_a_place_that_cannot_be_reached_is_an_error(s3, gcs, tmp_path):
    nowhere = f"http://{servers.HOST}:{servers.closed_port()}"
    with pytest.raises(exceptions.StorageError):
        check_store("s3://bucket/t", s3.options(aws_endpoint_url=nowhere, max_retries="0"))
    with pytest.raises((exceptions.StorageError, FileNotFoundError), match="no-bucket"):
        check_store("gs://no-bucket/t", gcs.options())
    with pytest.raises(exceptions.StorageError, match=r"AuthenticationRequired|access denied"):
        check_store("gs://bucket/t", gcs.options(google_bearer_token="wrong"))
    (tmp_path / "file").touch()
    with pytest.raises(exceptions.StorageError):
        check_store(tmp_path / "file")
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(exceptions.StorageError, match="permission"):
            check_store(tmp_path)


@pytest.mark.parametrize("given", [{"rounds": 0}, {"writers": 1}, {"objects": 1}])
def test_too_little_is_refused(given):
    with pytest.raises(exceptions.InvalidArgumentError, match="at least"):
        check_store("memory://too-little", **given)


def test_the_answer_reads_well():
    findings = (Finding("put-if-absent", "passed", "so"), Finding("keys", "unsafe", "else"))
    checked = StoreCheck("s3://b/", safe=False, findings=findings)
    assert repr(checked).splitlines() == [
        "<StoreCheck s3://b/: NOT SAFE to commit to>",
        "  put-if-absent  passed  so",
        "  keys           unsafe  else",
    ]
    assert "safe to commit to>" in repr(StoreCheck("s3://b/", safe=True, findings=findings[:1]))
    with pytest.raises(KeyError):
        checked["nothing"]
