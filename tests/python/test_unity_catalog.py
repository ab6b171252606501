"""Tables by their names in Unity Catalog: opened, read, committed to, with credentials of the catalog."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import servers
from deltafast import DeltaTable, Field, convert_to_deltalake, write_deltalake
from deltafast.catalog import FolderCommitter, UnityCatalog
from deltafast.catalog.unity import CatalogError, OAuthClient
from deltafast.doctor import examine
from deltafast.exceptions import (
    DeltaError,
    DeltaProtocolError,
    DeltaWarning,
    InvalidArgumentError,
    StorageError,
    TableNotFoundError,
)
from expiring_keys import LIFE, KeyServer, options
from support import same_rows
from unity import UnityServer

NAME = "uc://main.sales.orders"
MANAGED = {"delta.feature.catalogManaged": "supported", "delta.enableInCommitTimestamps": "true"}


@pytest.fixture
def server():
    with UnityServer().running() as running:
        yield running
        assert running.violations == []


@pytest.fixture
def catalog(server):
    return UnityCatalog(server.url, server.token)


def schema_of(table):
    return json.loads(table.schema().to_json())


def external(server, folder, name="main.sales.orders"):
    write_deltalake(folder, {"id": [1, 2, 3]})
    server.register(name, folder.as_uri(), {}, schema_of(DeltaTable(folder)), managed=False)


def managed(server, folder, name="main.sales.orders"):
    """A managed table with one version, which is published."""
    write_deltalake(folder, {"id": [1, 2, 3]}, committer=FolderCommitter(folder.with_name(f"{folder.name}-versions")))
    table = DeltaTable(folder, max_table_version=0)
    server.register(name, folder.as_uri(), table.metadata().configuration | MANAGED, schema_of(table), managed=True)


def ids(table):
    return sorted(table.to_pyarrow_table()["id"].to_pylist())


def test_an_external_table_is_read_and_written(server, catalog, tmp_path):
    external(server, tmp_path / "t")
    table = DeltaTable(NAME, catalog=catalog)
    write_deltalake(table, {"id": [4]}, mode="append")
    table.delete("id = 1")
    assert ids(table) == ids(DeltaTable(tmp_path / "t")) == [2, 3, 4]
    assert DeltaTable(NAME, version=0, catalog=catalog).count() == 3
    assert ids(pickle.loads(pickle.dumps(table))) == [2, 3, 4]


def test_a_managed_table_commits_through_the_catalog(server, catalog, tmp_path):
    managed(server, tmp_path / "t")
    table = DeltaTable(NAME, catalog=catalog)
    for number in range(4, 7):
        write_deltalake(table, {"id": [number]}, mode="append")
    table.update({"id": "id + 100"}, predicate="id < 3")
    assert ids(table) == [3, 4, 5, 6, 101, 102]
    (state,) = server.tables.values()
    assert state["latest"] == table.version() == 4
    again = DeltaTable(NAME, catalog=catalog)
    assert (again.version(), ids(again)) == (4, ids(table))
    assert ids(DeltaTable(NAME, version=1, catalog=catalog)) == [1, 2, 3, 4]
    table.alter.set_table_properties({"delta.appendOnly": "true"})
    assert state["properties"]["delta.appendOnly"] == "true"
    assert table.history(1)[0]["operation"] == "SET TBLPROPERTIES"
    table.alter.unset_table_properties(["delta.appendOnly"])
    assert "delta.appendOnly" not in state["properties"]


def test_a_change_of_the_definition_is_one_against_the_catalogs_newest(server, catalog, tmp_path):
    managed(server, tmp_path / "t")
    table = DeltaTable(NAME, catalog=catalog)
    (state,) = server.tables.values()
    # Somebody changes the table in the catalog alone.
    state["properties"]["theirs"] = "1"
    state["etag"] += 1
    requests = []
    server.disturb = requests.append
    table.alter.set_table_properties({"mine": "1"})
    assert table.version() == state["latest"] == 1
    assert state["properties"]["mine"] == "1"
    # A property that the log does not have is removed, as of the state that was loaded again.
    assert "theirs" not in state["properties"]
    # The refused request, the commit, and the report of its publication.
    assert sum(bool(re.search(r"POST \S+/tables/orders$", request)) for request in requests) == 3
    # Rows are added whatever the catalog has.
    state["etag"] += 1
    requests.clear()
    write_deltalake(table, {"id": [4]}, mode="append")
    assert ids(table) == [1, 2, 3, 4]
    assert sum(bool(re.search(r"POST \S+/tables/orders$", request)) for request in requests) == 2
    # The answer to a change of the definition is lost, and the repeated request has an old entity tag.
    lost = []
    server.loses = lambda request: not lost and "POST" in request and not lost.append(request)
    table.alter.set_table_properties({"mine": "2"})
    assert len(lost) == 1
    assert (table.version(), state["properties"]["mine"]) == (3, "2")

    # A definition that changes with each request is refused in the end.
    def change(_request):
        state["etag"] += 1

    server.disturb = change
    with pytest.raises(StorageError, match="UpdateRequirementConflictException"):
        table.alter.set_table_properties({"mine": "3"})
    server.disturb = None
    assert DeltaTable(NAME, catalog=catalog).metadata().configuration["mine"] == "2"


@pytest.mark.parametrize("by", ["write", "create"])
def test_a_new_table_becomes_a_managed_one(server, catalog, tmp_path, by):
    server.warehouse = tmp_path.as_uri()
    if by == "write":
        write_deltalake(NAME, {"id": [1, 2], "p": ["a", "b"]}, partition_by="p", catalog=catalog)
        table = DeltaTable(NAME, catalog=catalog)
    else:
        table = DeltaTable.create(NAME, {"id": "long", "p": "string"}, catalog=catalog, configuration={"mine": "1"})
        write_deltalake(table, {"id": [1, 2], "p": ["a", "b"]}, mode="append")
    features = set(table.protocol().writer_features)
    assert features > {"catalogManaged", "inCommitTimestamp", "v2Checkpoint", "vacuumProtocolCheck", "rowTracking"}
    (state,) = server.tables.values()
    assert state["id"] == table.metadata().configuration["io.unitycatalog.tableId"]
    assert [field["name"] for field in state["columns"]["fields"]] == ["id", "p"]
    write_deltalake(NAME, {"id": [3], "p": ["c"]}, mode="append", catalog=catalog)
    table.update_incremental()
    merger = table.merge({"id": [3, 4], "p": ["d", "e"]}, "target.id = source.id", "source", "target")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()
    assert sorted(table.to_pyarrow_table()["p"].to_pylist()) == ["a", "b", "d", "e"]
    table.optimize.compact()
    assert state["latest"] == table.version()
    with pytest.raises(InvalidArgumentError, match="there is a table"):
        DeltaTable.create(NAME, {"id": "long"}, catalog=catalog)
    with pytest.raises(TableNotFoundError, match="the schema sale does not exist; did you mean sales"):
        write_deltalake("uc://main.sale.orders", {"id": [1]}, catalog=catalog)


def test_a_table_whose_name_is_refused_is_not_there(server, catalog, tmp_path):
    server.warehouse = tmp_path.as_uri()
    answer = {"error": {"message": "not yours", "type": "PermissionDeniedException", "code": 403}}

    def refuse(request):
        is_name = request.startswith("POST") and request.endswith("schemas/sales/tables")
        return servers.Answer(403, {}, json.dumps(answer).encode()) if is_name else None

    server.disturb = refuse
    with pytest.raises(CatalogError, match="status 403: PermissionDeniedException not yours"):
        write_deltalake(NAME, {"id": [1]}, catalog=catalog)
    assert server.tables == {}


def test_settings_come_from_options_or_the_environment(server, tmp_path, monkeypatch):
    external(server, tmp_path / "t")
    given = {"unity_workspace_url": server.url, "unity_access_token": server.token}
    assert DeltaTable(NAME, storage_options=given).count() == 3
    write_deltalake(NAME, {"id": [4]}, mode="append", storage_options=given)
    monkeypatch.setenv("DATABRICKS_HOST", server.url)
    monkeypatch.setenv("DATABRICKS_TOKEN", server.token)
    assert DeltaTable(NAME).count() == 4


def test_writers_commit_each_version_once(server, catalog, tmp_path):
    managed(server, tmp_path / "t")

    def write(number):
        table = DeltaTable(NAME, catalog=catalog)
        for each in range(3):
            write_deltalake(table, {"id": [10 * number + each]}, mode="append")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(1, 5)))
    expected = sorted([1, 2, 3, *(10 * number + each for number in range(1, 5) for each in range(3))])
    assert ids(DeltaTable(NAME, catalog=catalog)) == expected
    assert DeltaTable(NAME, catalog=catalog).version() == 12


@pytest.mark.parametrize("every", [1, 2])
def test_lost_answers_commit_once(server, catalog, tmp_path, every):
    managed(server, tmp_path / "t")
    table = DeltaTable(NAME, catalog=catalog)
    seen = []

    def loses(request):
        if request.startswith("POST"):
            seen.append(request)
        return request.startswith("POST") and len(seen) % (every + 1) == 0

    server.loses = loses
    for number in range(4, 8):
        write_deltalake(table, {"id": [number]}, mode="append")
    server.loses = None
    assert ids(DeltaTable(NAME, catalog=catalog)) == list(range(1, 8))
    assert DeltaTable(NAME, catalog=catalog).version() == 4


@pytest.mark.parametrize("status", [429, 500, 503])
def test_answers_of_a_busy_server_are_asked_for_again(server, catalog, tmp_path, status):
    external(server, tmp_path / "t")
    left = [2]

    def busy(request):
        if left[0] and "tables/orders" in request:
            left[0] -= 1
            return servers.Answer(status, {"Retry-After": "0.1"}, b"")
        return None

    server.disturb = busy
    begin = time.monotonic()
    assert DeltaTable(NAME, catalog=catalog).count() == 3
    assert time.monotonic() - begin >= 0.2


def test_tokens_of_oauth_are_renewed(server, tmp_path):
    external(server, tmp_path / "t")
    issued = []

    class Issuer(servers.Server):
        def answer(self, method, target, headers, body):
            issued.append(target)
            server.token = f"T{len(issued)}"
            answer = {"access_token": server.token, "expires_in": 3600, "token_type": "Bearer"}
            return servers.Answer(200, {}, json.dumps(answer).encode())

    with Issuer().running() as issuer:
        client = OAuthClient("client", "secret", f"{issuer.url}/oidc/v1/token")
        catalog = UnityCatalog(server.url, oauth=client)
        assert DeltaTable(NAME, catalog=catalog).count() == 3
        # The server no longer accepts the token.
        server.token = "other"
        assert DeltaTable(NAME, catalog=catalog).count() == 3
    assert len(issued) == 2
    assert "secret" not in repr(client)


def test_databricks_own_library_finds_the_server(server, tmp_path, monkeypatch):
    external(server, tmp_path / "t")
    for name in [name for name in os.environ if name.startswith(("DATABRICKS_", "UNITY_"))]:
        monkeypatch.delenv(name)
    profiles = tmp_path / "profiles"
    profiles.write_text(f"[DEFAULT]\nhost = {server.url}\ntoken = {server.token}\n")
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(profiles))
    found = UnityCatalog()
    assert found.catalogs() == ["main"]
    assert pickle.loads(pickle.dumps(found)).schemas("main") == ["sales"]
    assert DeltaTable(NAME).count() == 3
    profiles.write_text("")
    with pytest.raises(InvalidArgumentError, match="databricks-sdk finds none: default auth: cannot configure"):
        UnityCatalog()
    monkeypatch.setitem(sys.modules, "databricks.sdk", None)
    with pytest.raises(InvalidArgumentError, match="set DATABRICKS_HOST, or give"):
        UnityCatalog()


def test_names_are_listed_and_changed(server, catalog, tmp_path):
    for number in range(5):
        external(server, tmp_path / str(number), f"main.sales.t{number}")
    assert catalog.catalogs() == ["main"]
    assert catalog.schemas("main") == ["sales"]
    assert catalog.tables("main", "sales") == [f"t{number}" for number in range(5)]
    catalog.rename("main.sales.t0", "zero")
    catalog.drop("uc://main.sales.t1")
    assert catalog.tables("main", "sales") == ["t2", "t3", "t4", "zero"]
    assert DeltaTable("uc://main.sales.zero", catalog=catalog).count() == 3


def test_a_server_without_the_delta_api_opens_external_tables(tmp_path):
    with UnityServer(has_delta_api=False).running() as server:
        external(server, tmp_path / "t")
        catalog = UnityCatalog(server.url, server.token)
        assert DeltaTable(NAME, catalog=catalog).count() == 3
        managed(server, tmp_path / "m", "main.sales.managed")
        with pytest.raises(DeltaProtocolError, match=r"managed table, and http://.* has no Delta API to commit to it"):
            DeltaTable("uc://main.sales.managed", catalog=catalog)
        assert server.violations == []


@pytest.mark.parametrize("has_delta_api", [True, False])
def test_a_table_that_exists_gets_a_name(tmp_path, has_delta_api):
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "amount": pa.array([None, None], pa.decimal128(10, 2)),
            "tags": pa.array([None, [{"name": "a"}]], pa.list_(pa.struct([("name", pa.string())]))),
            "day": pa.array([0, 1], pa.date32()),
        }
    )
    write_deltalake(
        tmp_path / "t", rows, partition_by="day", description="Sold", configuration={"delta.appendOnly": "true"}
    )
    table = DeltaTable(tmp_path / "t")
    with UnityServer(has_delta_api=has_delta_api).running() as server:
        catalog = UnityCatalog(server.url, server.token)
        lost = []
        # The answer is lost once: the repeated request finds the table, which is this one.
        server.loses = lambda request: request.startswith("POST") and not lost and not lost.append(request)
        catalog.register("main.sales.orders", table)
        assert len(lost) == 1
        same_rows(DeltaTable(NAME, catalog=catalog).to_pyarrow_table(), rows)
        (state,) = server.tables.values()
        assert (state["kind"], state["properties"]) == ("EXTERNAL", {"delta.appendOnly": "true"})
        assert [field["name"] for field in state["columns"]["fields"]] == rows.column_names
        write_deltalake(tmp_path / "u", {"id": [1]})
        with pytest.raises(InvalidArgumentError, match=r"there is a table main\.sales\.orders already"):
            catalog.register(NAME, DeltaTable(tmp_path / "u"))
        with pytest.raises(TableNotFoundError, match="the schema sale does not exist; did you mean sales"):
            catalog.register("main.sale.items", DeltaTable(tmp_path / "u"))
        assert server.violations == []


@pytest.mark.parametrize("has_delta_api", [True, False])
def test_credentials_of_a_location(has_delta_api):
    def credentials(location, operation):
        keys = {"s3.access-key-id": location, "s3.secret-access-key": operation, "s3.session-token": "T"}
        return keys, time.time() + 60

    with UnityServer(credentials, has_delta_api=has_delta_api).running() as server:
        found = UnityCatalog(server.url, server.token).path_credentials("s3://bucket/new")()
        assert (found["access_key_id"], found["token"]) == ("s3://bucket/new", "T")
        server.forbidden = {"READ_WRITE", "PATH_CREATE_TABLE"}
        with pytest.raises(PermissionError, match="needs the privileges"):
            UnityCatalog(server.url, server.token).path_credentials("s3://bucket/new")()
        assert server.violations == []


def test_metrics_of_commits_are_sent_to_a_server_that_takes_them(server, tmp_path):
    server.takes_metrics = True
    managed(server, tmp_path / "t")
    table = DeltaTable(NAME, catalog=UnityCatalog(server.url, server.token))
    write_deltalake(table, {"id": [4, 5]}, mode="append")
    table.delete("id = 1")
    appended, deleted = server.metrics
    assert (appended["num-files-added"], appended["num-rows-inserted"]) == (1, 2)
    assert appended["num-bytes-added"] > 0
    assert (appended["num-files-removed"], deleted["num-rows-removed"]) == (0, 1)
    server.disturb = lambda request: servers.Answer(500, {}, b"") if request.endswith("/metrics") else None
    write_deltalake(table, {"id": [6]}, mode="append")
    assert table.count() == 5


def bad(server, tmp_path):
    external(server, tmp_path / "t")
    good = UnityCatalog(server.url, server.token)
    parquet = {**server.tables["main", "sales", "orders"], "format": "PARQUET"}
    server.tables["main", "sales", "files"] = parquet
    closed = UnityCatalog(f"http://{servers.HOST}:{servers.closed_port()}", "SECRET")
    return {
        "catalog": (
            "uc://mian.sales.orders",
            good,
            TableNotFoundError,
            "the catalog mian does not exist; did you mean main?",
        ),
        "schema": (
            "uc://main.sale.orders",
            good,
            TableNotFoundError,
            "the schema sale does not exist; did you mean sales?",
        ),
        "table": (
            "uc://main.sales.order",
            good,
            TableNotFoundError,
            "the table order does not exist; did you mean orders?",
        ),
        "name": ("uc://main.orders", good, InvalidArgumentError, "named uc://catalog.schema.table"),
        "format": (
            "uc://main.sales.files",
            good,
            DeltaProtocolError,
            "is not a table of Delta Lake: it has the format PARQUET",
        ),
        "token": (NAME, UnityCatalog(server.url, "SECRET"), CatalogError, "status 401: NotAuthorizedException"),
        "server": (NAME, closed, CatalogError, "does not answer GET"),
    }


@pytest.mark.parametrize("what", ["catalog", "schema", "table", "name", "format", "token", "server"])
def test_what_is_wrong_is_one_line(server, tmp_path, what):
    name, catalog, kind, text = bad(server, tmp_path)[what]
    with pytest.raises(kind, match=text.replace("?", r"\?")) as caught:
        DeltaTable(name, catalog=catalog)
    error = caught.value
    shown = [str(error), repr(error), repr(error.__dict__), *traceback.format_exception_only(error)]
    assert not [text for text in shown if "SECRET" in text]
    assert "\n" not in str(error)


@pytest.mark.parametrize("name", [NAME, "glue://sales.orders"])
def test_some_commands_take_locations_only(tmp_path, name):
    write_deltalake(tmp_path / "t", {"id": [1]})
    calls = (lambda: DeltaTable(tmp_path / "t").clone(name), lambda: convert_to_deltalake(name), lambda: examine(name))
    for call in calls:
        with pytest.raises(InvalidArgumentError, match=f"takes the location of a table, not {name}"):
            call()


class TestCredentials:
    """Credentials of the catalog that expire, for S3 that takes no others."""

    @pytest.fixture
    def store(self):
        with servers.s3() as s3, KeyServer(s3.port).running() as keys:
            yield keys

    @pytest.fixture
    def running(self, store):
        def credentials(location, operation):
            key = store.issue()
            config = {"s3.access-key-id": key["access_key_id"], "s3.secret-access-key": "SECRET"}
            return config | {"s3.session-token": key["token"]}, key["expires_at"].timestamp()

        with UnityServer(credentials).running() as server:
            yield server
            assert server.violations == []

    @pytest.mark.proof
    def test_a_table_lives_longer_than_its_credentials(self, store, running):
        place = "s3://bucket/orders"
        write_deltalake(place, {"id": [0]}, storage_options=options(store), credential_provider=lambda: store.issue(60))
        running.register("main.sales.orders", place, {}, {"type": "struct", "fields": []}, managed=False)
        catalog = UnityCatalog(running.url, running.token)
        table = DeltaTable(NAME, storage_options=options(store), catalog=catalog)
        end, number = time.monotonic() + 2 * LIFE, 0
        while time.monotonic() < end:
            number += 1
            write_deltalake(table, {"id": [number]}, mode="append")
        assert ids(DeltaTable(NAME, storage_options=options(store), catalog=catalog)) == list(range(number + 1))
        assert store.refused == []

    def test_requests_of_an_open_and_a_commit(self, store, running):
        """Of a managed table in S3, to the catalog and to the store."""
        running.warehouse = "s3://bucket/counted"
        catalog = UnityCatalog(running.url, running.token)
        write_deltalake(NAME, {"id": [0]}, storage_options=options(store), catalog=catalog)

        def counted():
            counts = len(running.requests), len(store.requests)
            running.forget()
            store.forget()
            return counts

        counted()
        table = DeltaTable(NAME, storage_options=options(store), catalog=UnityCatalog(running.url, running.token))
        # Configuration, table, its policies, credentials; hint, listing, checksum and commit.
        assert counted() == (4, 4)
        write_deltalake(table, {"id": [1]}, mode="append")
        # Update, load, publication; rows, the staged commit written and read, its publication, checksums.
        assert counted() == (3, 6)

    def test_a_reader_gets_credentials_to_read(self, store, running):
        place = "s3://bucket/reader"
        write_deltalake(place, {"id": [0]}, storage_options=options(store), credential_provider=lambda: store.issue(60))
        running.register("main.sales.orders", place, {}, {"type": "struct", "fields": []}, managed=False)
        running.forbidden = {"READ_WRITE"}
        catalog = UnityCatalog(running.url, running.token)
        assert DeltaTable(NAME, storage_options=options(store), catalog=catalog).count() == 1
        running.forbidden = {"READ_WRITE", "READ"}
        with pytest.raises(StorageError, match="reading needs the privileges SELECT"):
            DeltaTable(NAME, storage_options=options(store), catalog=UnityCatalog(running.url, running.token))


def test_opening_costs_four_requests_and_a_commit_two(server, catalog, tmp_path):
    managed(server, tmp_path / "t")
    table = DeltaTable(NAME, catalog=catalog)
    # Local files need no credentials.
    assert [request.split("?")[0] for request in server.requests] == [
        "GET /delta/v1/config",
        "GET /delta/v1/catalogs/main/schemas/sales/tables/orders",
        # Row filters and column masks, which the Delta API does not know.
        "GET /tables/main.sales.orders",
    ]
    server.forget()
    write_deltalake(table, {"id": [4]}, mode="append")
    assert len([request for request in server.requests if request.startswith("POST")]) == 2


UNIFORM = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.enableIcebergCompatV2": "true",
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "name",
}


def uniform_changes(catalog, name):
    """Each kind of commit, by the handle of a table and by its name."""
    table = DeltaTable(name, catalog=catalog)
    rows = {"id": [3, 9]}

    def merge():
        merger = table.merge(rows, "t.id = s.id", "s", "t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    return {
        "append": lambda: write_deltalake(table, rows, mode="append"),
        "append by name": lambda: write_deltalake(name, rows, mode="append", catalog=catalog),
        "overwrite": lambda: write_deltalake(name, rows, mode="overwrite", catalog=catalog),
        "delete": lambda: table.delete("id = 1"),
        "update": lambda: table.update({"id": "id + 1"}),
        "merge": merge,
        "optimize": lambda: table.optimize.z_order(["id"]),
        "properties": lambda: table.alter.set_table_properties({"a": "b"}),
        "columns": lambda: table.alter.add_columns([Field("more", "string")]),
        "restore": lambda: table.restore(0),
        "repair": table.repair,
        "description": lambda: table.alter.set_table_description("x"),
    }


def files(folder):
    return sorted(str(file) for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("said_by", ["log", "catalog", "both"])
def test_a_table_with_iceberg_metadata_is_read_and_not_written(server, catalog, tmp_path, said_by):
    folder, configuration = tmp_path / "t", {} if said_by == "catalog" else UNIFORM
    versions = FolderCommitter(tmp_path / "versions")
    with pytest.warns(DeltaWarning) if configuration else contextlib.nullcontext():
        write_deltalake(folder, {"id": [1, 2, 3]}, committer=versions, configuration=configuration)
    table = DeltaTable(folder, max_table_version=0)
    server.register(
        "main.sales.orders", folder.as_uri(), table.metadata().configuration | MANAGED, schema_of(table), managed=True
    )
    if said_by != "log":
        loaded = server._loaded
        uniform = {"iceberg": {"metadata-location": "file:///m.json", "converted-delta-version": 0}}
        server._loaded = lambda state: loaded(state) | {"uniform": uniform}
    before = files(tmp_path)
    changes = uniform_changes(catalog, NAME)
    assert ids(DeltaTable(NAME, catalog=catalog)) == [1, 2, 3]
    for kind, change in changes.items():
        if kind == "repair":
            # There is nothing to repair, and so no commit.
            change()
            continue
        with pytest.raises(DeltaProtocolError, match=r"main\.sales\.orders has Iceberg metadata \(UniForm"):
            change()
        assert files(tmp_path) == before, kind


def test_iceberg_metadata_is_not_turned_on_in_the_catalog(server, catalog, tmp_path):
    managed(server, tmp_path / "t")
    before = files(tmp_path)
    table = DeltaTable(NAME, catalog=catalog)
    with pytest.raises(DeltaProtocolError, match="has Iceberg metadata"):
        table.alter.set_table_properties(UNIFORM)
    server.warehouse = (tmp_path / "new").as_uri()
    for create in (
        lambda: write_deltalake("uc://main.sales.new", {"id": [1]}, configuration=UNIFORM, catalog=catalog),
        lambda: DeltaTable.create("uc://main.sales.new", {"id": "long"}, configuration=UNIFORM, catalog=catalog),
    ):
        with pytest.raises(DeltaProtocolError, match=r"main\.sales\.new has Iceberg metadata"):
            create()
    assert files(tmp_path) == before


def test_error_classes_are_those_of_stores():
    assert issubclass(CatalogError, StorageError)
    assert issubclass(CatalogError, DeltaError)
