"""Tables of Delta Sharing: opened, read at versions, their changes, with URLs that expire."""

from __future__ import annotations

import datetime as dt
import json
import os
import pickle
import re
import subprocess
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import deltafast.polars
from deltafast import DeltaTable, write_deltalake
from deltafast._catalog.rest_client import CatalogError
from deltafast.catalog import SharingClient
from deltafast.exceptions import (
    DeltaError,
    DeltaProtocolError,
    InvalidArgumentError,
    StorageError,
    TableNotFoundError,
    VersionNotFoundError,
)
from servers import DROPPED, Answer
from sharing import TOKEN, SharingServer
from support import same_rows

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = FEED | {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
#: The first version's timestamp, milliseconds; each later one is a minute after.
BEGIN, MINUTE = 1_760_000_000_000, 60_000


@pytest.fixture(params=["delta", "parquet"])
def server(request):
    with SharingServer(form=request.param).running() as running:
        yield running
        assert running.violations == []


def opened(**options):
    """Return a server that gives the format `delta`."""
    return SharingServer(**options).running()


class KeepingServer(SharingServer):
    """A server that keeps connections open."""

    keeps_connections = True


def made(folder, configuration=FEED):
    """A partitioned table with rows that were added, changed and deleted, in five versions."""
    rows = {"id": list(range(10)), "p": ["a", None] * 5, "v": [0.5] * 10}
    write_deltalake(folder, rows, partition_by="p", configuration=configuration)
    table = DeltaTable(folder)
    write_deltalake(table, {"id": [10, 11], "p": ["b", "b"], "v": [1.5, 2.5]}, mode="append")
    table.update({"v": "v + 10"}, predicate="id in (1, 10)")
    table.delete("id in (2, 3)")
    merger = table.merge({"id": [4, 12], "p": ["a", "c"], "v": [7.0, 8.0]}, "t.id = s.id", "s", "t")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()
    dated(folder)
    return folder


def dated(folder):
    for version, file in enumerate(sorted((folder / "_delta_log").glob("*.json"))):
        seconds = (BEGIN + version * MINUTE) / 1000
        os.utime(file, (seconds, seconds))


@pytest.fixture
def shared(server, tmp_path):
    """The name of a shared table."""
    server.share(made(tmp_path / "t"))
    return f"{server.profile(tmp_path / 'config.share')}#retail.sales.orders"


def test_a_table_is_read(shared, tmp_path):
    own, table = DeltaTable(tmp_path / "t"), DeltaTable(shared)
    assert table.version() == own.version() == 4
    assert table.schema() == own.schema()
    same_rows(table.to_pyarrow_table(), own.to_pyarrow_table())
    same_rows(
        table.to_pyarrow_table(filters="p is null and id > 4"), own.to_pyarrow_table(filters="p is null and id > 4")
    )
    assert table.metadata().partition_columns == ["p"]
    assert table.count() == own.count()
    assert sorted(table.to_pandas()["id"]) == sorted(table.to_polars()["id"]) == sorted(own.to_pandas()["id"])
    assert deltafast.polars.scan_delta(shared).select("id").collect().height == own.count()
    assert DeltaTable.is_deltatable(shared)
    assert not DeltaTable.is_deltatable(f"{shared}s")
    assert shared.partition("#")[0] not in table.table_uri
    assert "retail.sales.orders" in repr(table)


def test_files_that_a_filter_excludes_are_not_read(server, shared):
    table = DeltaTable(shared)
    server.forget()
    assert table.to_pyarrow_table(filters="p = 'c'")["id"].to_pylist() == [12]
    assert len({request for request in server.requests if "/files/" in request}) == 1


def test_versions_are_read(shared, tmp_path):
    table = DeltaTable(shared, version=1)
    for version in (1, 0, 3):
        table.load_as_version(version)
        own = DeltaTable(tmp_path / "t", version=version)
        assert table.version() == version
        same_rows(table.to_pyarrow_table(), own.to_pyarrow_table())
    # The version that was current half a minute after the third.
    between = dt.datetime.fromtimestamp((BEGIN + 2.5 * MINUTE) / 1000, dt.UTC)
    assert DeltaTable(shared, timestamp=between).version() == 2
    table.load_as_version(between)
    assert table.version() == 2
    assert pickle.loads(pickle.dumps(table)).version() == 2
    write_deltalake(tmp_path / "t", {"id": [20], "p": ["z"], "v": [0.0]}, mode="append")
    table.update_incremental()
    assert (table.version(), table.count()) == (5, DeltaTable(tmp_path / "t").count())
    with pytest.raises(CatalogError, match="status 400: INVALID_PARAMETER_VALUE the newest version is 5"):
        DeltaTable(shared, version=9)


@pytest.mark.parametrize("bounds", [(0, None), (1, 3), (2, 2), (4, None)], ids=str)
def test_changes_are_read(shared, tmp_path, bounds):
    found = DeltaTable(shared).load_cdf(*bounds).read_all()
    assert found.num_rows > 0
    same_rows(found, DeltaTable(tmp_path / "t").load_cdf(*bounds).read_all())


def test_changes_of_a_time_are_read(shared, tmp_path):
    start, end = (dt.datetime.fromtimestamp((BEGIN + n * MINUTE) / 1000, dt.UTC).isoformat() for n in (0.5, 3.5))
    given = {"starting_timestamp": start, "ending_timestamp": end, "columns": ["id", "_change_type", "_commit_version"]}
    found = DeltaTable(shared).load_cdf(**given).read_all()
    assert set(found["_commit_version"].to_pylist()) == {1, 2, 3}
    same_rows(found, DeltaTable(tmp_path / "t").load_cdf(**given).read_all())
    frame = deltafast.polars.scan_cdf(shared, starting_version=1, ending_version=3).collect()
    assert frame.height == found.num_rows


def test_changes_after_the_newest_version(shared):
    table = DeltaTable(shared)
    assert table.load_cdf(5, allow_out_of_range=True).read_all().num_rows == 0
    with pytest.raises(VersionNotFoundError):
        table.load_cdf(5)


def test_changes_before_and_after_a_new_column(server, tmp_path):
    folder = made(tmp_path / "t")
    table = DeltaTable(folder)
    write_deltalake(table, {"id": [30], "p": ["a"], "v": [1.0], "w": ["x"]}, mode="append", schema_mode="merge")
    table.delete("id = 0")
    dated(folder)
    server.share(folder)
    shared = f"{server.profile(tmp_path / 'config.share')}#retail.sales.orders"
    for bounds in ((3, None), (5, 6), (0, 6)):
        same_rows(DeltaTable(shared).load_cdf(*bounds).read_all(), table.load_cdf(*bounds).read_all())


def test_deletion_vectors_and_mapped_columns(tmp_path):
    folder = made(tmp_path / "t", VECTORS)
    own = DeltaTable(folder)
    with opened(form="parquet") as server:
        server.share(folder)
        shared = f"{server.profile(tmp_path / 'config.share')}#retail.sales.orders"
        table = DeltaTable(shared)
        assert table.protocol().reader_features == own.protocol().reader_features
        same_rows(table.to_pyarrow_table(), own.to_pyarrow_table())
        same_rows(table.load_cdf(0).read_all(), own.load_cdf(0).read_all())
        same_rows(DeltaTable(shared, version=3).to_pyarrow_table(), DeltaTable(folder, version=3).to_pyarrow_table())
        assert server.violations == []


def test_changes_of_deletion_vectors_without_change_files(tmp_path):
    """Without change files the rows that a new vector deletes are the changes."""
    folder = tmp_path / "t"
    write_deltalake(folder, {"id": list(range(100))}, configuration=VECTORS)
    table = DeltaTable(folder)
    table.delete("id < 5")
    table.delete("id < 8")
    dated(folder)
    with opened() as server:
        server.share(folder)
        shared = f"{server.profile(tmp_path / 'config.share')}#retail.sales.orders"
        same_rows(DeltaTable(shared).load_cdf(1).read_all(), table.load_cdf(1).read_all())
        assert DeltaTable(shared).count() == 92


@pytest.mark.parametrize("has_history", [True, False])
def test_urls_are_renewed(tmp_path, has_history):
    folder = made(tmp_path / "t")
    with opened(life=0.5, has_history=has_history) as server:
        server.share(folder)
        table = DeltaTable(f"{server.profile(tmp_path / 'config.share')}#retail.sales.orders")
        expected = sorted(DeltaTable(folder, version=4).to_pyarrow_table()["id"].to_pylist())
        DeltaTable(folder).delete("id = 0")
        for _ in range(3):
            time.sleep(0.6)
            server.forget()
            with ThreadPoolExecutor(8) as pool:
                found = list(pool.map(lambda _: sorted(table.to_pyarrow_table()["id"].to_pylist()), range(8)))
            # The table is read at the version that was opened, and one thread renews the URLs for all.
            assert found == [expected] * 8
            assert sum(request.endswith("/query") for request in server.requests) <= 2
        assert server.violations == []


def test_urls_that_are_refused_are_renewed(tmp_path):
    folder = made(tmp_path / "t")
    with opened() as server:
        server.share(folder)
        table = DeltaTable(f"{server.profile(tmp_path / 'config.share')}#retail.sales.orders")
        server.signatures.clear()
        assert table.count() == table.to_pyarrow_table().num_rows == DeltaTable(folder).count()
        server.disturb = lambda request: Answer(403, {}, b"") if "/files/" in request else None
        with pytest.raises(StorageError, match="status 403 to a URL that the sharing server has just signed"):
            table.to_pyarrow_table()


def test_a_table_that_moved_on_is_named(tmp_path):
    folder = made(tmp_path / "t")
    with opened(has_history=False, has_refresh_tokens=False) as server:
        server.share(folder)
        table = DeltaTable(f"{server.profile(tmp_path / 'config.share')}#retail.sales.orders")
        write_deltalake(folder, {"id": [1], "p": ["a"], "v": [0.0]}, mode="overwrite")
        server.signatures.clear()
        with pytest.raises(DeltaError, match="the table has changed, open it again"):
            table.to_pyarrow_table()


def test_an_answer_of_several_pages_is_read(tmp_path):
    folder = made(tmp_path / "t")
    with opened(page=2) as server:
        server.share(folder)
        table = DeltaTable(f"{server.profile(tmp_path / 'config.share')}#retail.sales.orders")
        same_rows(table.to_pyarrow_table(), DeltaTable(folder).to_pyarrow_table())
        same_rows(table.load_cdf(0).read_all(), DeltaTable(folder).load_cdf(0).read_all())
        assert sum(request.endswith("/query") for request in server.requests) > 1


def test_answers_that_fail_in_the_middle(tmp_path):
    folder = made(tmp_path / "t")
    with opened() as server:
        server.share(folder)
        shared = f"{server.profile(tmp_path / 'config.share')}#retail.sales.orders"
        server.cuts = True
        with pytest.raises(StorageError, match="is cut off: its last line is missing"):
            DeltaTable(shared)
        server.cuts = False
        # Of each request, throttling, a broken connection and a failure before the answer.
        seen = Counter()
        replies = [Answer(429, {"Retry-After": "0"}, b""), DROPPED, Answer(503, {}, b"")]

        def disturb(request):
            seen[request] += 1
            return replies[seen[request] - 1] if seen[request] <= len(replies) else None

        server.disturb = disturb
        table = DeltaTable(shared)
        assert table.to_pyarrow_table().num_rows == DeltaTable(folder).count()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 3 of the sharing server's answer cannot be read: it is not a JSON object"),
        ("[]", "line 3 of the sharing server's answer cannot be read: it is not a JSON object"),
        (
            '{"file": {"url": "https://h/x"}}',
            "line 3 of the sharing server's answer cannot be read: it comes without file.id",
        ),
        ('{"file": {"url": "file:///etc/passwd", "id": "x", "size": 1}}', "a URL that is not one of HTTP: file:..."),
        ('{"endStreamAction": {"errorMessage": "the table is gone\\nat line 1"}}', "reports: the table is gone$"),
        ('{"protocol": {"minReaderVersion": 2}}', "the share needs version 2 of the protocol"),
    ],
)
def test_bad_answers_are_one_line(tmp_path, line, message):
    head = [
        {"protocol": {"minReaderVersion": 1}},
        {"metaData": {"id": "x", "format": {"provider": "parquet"}, "schemaString": "{}", "partitionColumns": []}},
    ]
    text = "\n".join([*map(json.dumps, head), line])
    with opened() as server:
        server.share(made(tmp_path / "t"))
        shared = f"{server.profile(tmp_path / 'config.share')}#retail.sales.orders"
        server.disturb = lambda _: Answer(200, {"Delta-Table-Version": "3"}, text.encode())
        with pytest.raises((DeltaProtocolError, CatalogError), match=re.escape(message).replace(r"\$", "$")) as failure:
            DeltaTable(shared)
        assert "\n" not in str(failure.value)
        server.disturb = lambda _: Answer(200, {}, text.encode())
        with pytest.raises(CatalogError, match="no usable header Delta-Table-Version"):
            DeltaTable(shared)


def test_names_are_listed(server, tmp_path):
    for name in ("a", "b", "c", "d", "e"):
        server.share(tmp_path, f"retail.sales.{name}")
    client = SharingClient(server.profile(tmp_path / "config.share"))
    assert (client.shares(), client.schemas("retail")) == (["retail"], ["sales"])
    assert client.tables("retail", "sales") == ["a", "b", "c", "d", "e"]
    assert pickle.loads(pickle.dumps(client)).shares() == ["retail"]
    assert TOKEN not in repr(client)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("retail.sales.order", "the table order does not exist; did you mean orders?"),
        ("retail.sale.orders", "the schema sale does not exist; did you mean sales?"),
        ("retale.sales.orders", "the share retale does not exist; did you mean retail?"),
    ],
)
def test_a_missing_table_is_named(server, tmp_path, name, message):
    server.share(made(tmp_path / "t"))
    with pytest.raises(TableNotFoundError, match=re.escape(message)):
        DeltaTable(f"{server.profile(tmp_path / 'config.share')}#{name}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"expirationTime": "2020-01-01T00:00:00.0Z"}, "expired at 2020-01-01T00:00:00.0Z: ask the owner"),
        ({"shareCredentialsVersion": 3}, "has version 3 of the profile format"),
        ({"shareCredentialsVersion": 2, "type": "basic"}, "asks for authorization by basic"),
        ({"bearerToken": "another"}, "status 401: UNAUTHENTICATED the token is missing or incorrect"),
    ],
)
def test_a_profile_that_cannot_be_used(server, tmp_path, content, message):
    server.share(made(tmp_path / "t"))
    with pytest.raises(DeltaError, match=re.escape(message)) as failure:
        DeltaTable(f"{server.profile(tmp_path / 'config.share', **content)}#retail.sales.orders")
    assert "another" not in str(failure.value)


def test_a_profile_that_is_not_one(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"cannot read the profile of Delta Sharing .*No such file"):
        DeltaTable(f"{tmp_path}/missing.share#a.b.c")
    (tmp_path / "empty.share").write_text("{}")
    with pytest.raises(InvalidArgumentError, match="is not a profile of Delta Sharing: it lacks 'shareCredentials"):
        DeltaTable(f"{tmp_path}/empty.share#a.b.c")
    (tmp_path / "list.share").write_text("[")
    with pytest.raises(InvalidArgumentError, match="is not a profile of Delta Sharing: it is not a JSON object"):
        DeltaTable(f"{tmp_path}/list.share#a.b.c")


def test_a_folder_with_a_number_sign_is_a_folder(tmp_path):
    """Only files and names that end in `.share` are profiles."""
    folder = tmp_path / "a#b.c.d"
    write_deltalake(str(folder), {"id": [1]})
    assert DeltaTable(str(folder)).count() == 1


def test_a_client_of_oauth(tmp_path):
    with opened() as server:
        server.share(made(tmp_path / "t"))
        issued = []

        def token(request):
            if request != "POST /token":
                return None
            issued.append(request)
            return Answer(200, {}, json.dumps({"access_token": TOKEN, "expires_in": 3600}).encode())

        server.disturb = token
        profile = server.profile(
            tmp_path / "config.share",
            shareCredentialsVersion=2,
            type="oauth_client_credentials",
            tokenEndpoint=f"{server.url}/token",
            clientId="someone",
            clientSecret="secret",
        )
        for _ in range(2):
            assert DeltaTable(f"{profile}#retail.sales.orders").version() == 4
        assert len(issued) == 1


def test_shared_tables_are_read_only(shared):
    table = DeltaTable(shared)
    rows = {"id": [1], "p": ["a"], "v": [0.0]}
    with pytest.raises(
        InvalidArgumentError, match=r"retail\.sales\.orders is a table of Delta Sharing, which is read-only"
    ):
        write_deltalake(shared, rows, mode="append")
    with pytest.raises(InvalidArgumentError, match="is read-only"):
        DeltaTable.create(shared, pa.schema([("id", pa.int64())]))
    for change in (
        lambda: write_deltalake(table, rows, mode="append"),
        lambda: table.delete("id = 1"),
        lambda: table.update({"v": "v + 1"}),
        lambda: table.alter.set_table_properties({"delta.appendOnly": "true"}),
    ):
        with pytest.raises(DeltaError, match="read-only"):
            change()


def test_a_share_has_no_log(shared):
    table = DeltaTable(shared)
    with pytest.raises(InvalidArgumentError, match="stream_changes follows the log of a table"):
        table.stream_changes()
    assert table.history() == []
    assert "retail.sales.orders" in table._repr_html_()


@pytest.mark.parametrize("options", [{"storage_options": {"a": "b"}}, {"store": object()}, {"max_table_version": 3}])
def test_options_without_meaning_are_refused(shared, options):
    with pytest.raises(
        InvalidArgumentError, match=f"{next(iter(options))} has no meaning for a table of Delta Sharing"
    ):
        DeltaTable(shared, **options)


def test_no_message_has_a_url_or_token(tmp_path, monkeypatch):
    folder = made(tmp_path / "t")
    with opened() as server:
        server.share(folder)
        shared = f"{server.profile(tmp_path / 'config.share')}#retail.sales.orders"
        table = DeltaTable(shared)
        monkeypatch.setattr("deltafast._catalog.sharing.signed_files._WAIT", 0.001)
        for answer in (DROPPED, Answer(500, {}, b""), Answer(404, {}, b""), Answer(403, {}, b"")):
            server.disturb = lambda request, answer=answer: answer if "/files/" in request else None
            with pytest.raises(DeltaError) as failure:
                table.to_pyarrow_table()
            text = "".join(traceback.format_exception(failure.value))
            assert "X-Signature" not in text
            assert TOKEN not in text
        assert "X-Signature" not in repr(table) + table.table_uri + str(table.file_uris()) + str(
            table.get_add_actions()
        )


FORKED = """
import os, sys, threading
from deltafast import DeltaTable

table = DeltaTable(sys.argv[1])
expected = {name: sorted(table.to_pyarrow_table(filters=[("p", "=", name)])["id"].to_pylist()) for name in "abcd"}
children = []
for number in range(4):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for turn in range(10):
                name = "abcd"[(turn + number) % 4]
                found = sorted(table.to_pyarrow_table(filters=[("p", "=", name)])["id"].to_pylist())
                assert found == expected[name], (name, found)
            code = 0
        finally:
            os._exit(code)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_forked_processes_read_their_own_answers(tmp_path):
    """A connection that processes share gives each the other's answers."""
    rows = {"p": [name for name in "abcd" for _ in range(50)], "id": list(range(200))}
    write_deltalake(tmp_path / "t", rows, partition_by="p")
    with KeepingServer().running() as server:
        server.share(tmp_path / "t")
        shared = f"{server.profile(tmp_path / 'config.share')}#retail.sales.orders"
        ran = subprocess.run(
            [sys.executable, "-c", FORKED, shared], capture_output=True, text=True, check=False, timeout=100
        )
        assert ran.returncode == 0, ran.stderr
