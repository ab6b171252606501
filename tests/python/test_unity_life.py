"""The life of a managed and of an external table of Unity Catalog, with credentials that expire every few seconds.

Each row of a commit that a writer saw succeed is there exactly once, also where answers are lost and writers killed.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import servers
from deltafast import DeltaTable, write_deltalake
from deltafast.catalog import UnityCatalog
from expiring_keys import LIFE, KeyServer, options
from unity import UnityServer

NAME = "uc://main.sales.orders"
FEED = {"delta.enableChangeDataFeed": "true"}
#: Seconds for which a signature is valid; Azure counts whole ones.
SIGNATURE_LIFE = 4.0
#: Appends rows until it is killed, and prints the id of each row that is committed.
WRITER = """
import json, sys
from deltafast import write_deltalake
from deltafast.catalog import UnityCatalog
url, token, first, options = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
catalog = UnityCatalog(url, token)
for number in range(first, first + 10_000):
    rows = {"id": [number], "state": ["killed"]}
    write_deltalake("uc://main.sales.orders", rows, mode="append", storage_options=options, catalog=catalog)
    print(number, flush=True)
"""


class Place:
    """Where a table lives, and the credentials that lead there."""

    def __init__(self, root, options, credentials):
        self.root, self.options, self.credentials = root, options, credentials


@contextlib.contextmanager
def local(tmp_path):
    yield Place(tmp_path.as_uri(), {}, None)


@contextlib.contextmanager
def s3(_tmp_path):
    with servers.s3() as bucket, KeyServer(bucket.port).running() as keys:

        def credentials(_location, _operation):
            key = keys.issue()
            config = {"s3.access-key-id": key["access_key_id"], "s3.secret-access-key": "SECRET"}
            return config | {"s3.session-token": key["token"]}, time.time() + LIFE

        yield Place("s3://bucket/warehouse", options(keys), credentials)
        # No request had a key that had expired.
        assert keys.refused == []


@contextlib.contextmanager
def azure(_tmp_path):
    cache = pathlib.Path(servers.__file__).parent / ".cache"
    with servers.azure(servers.azurite(cache)) as container:
        given = {name: value for name, value in container.options().items() if not name.endswith("account_key")}

        def credentials(_location, _operation):
            return {"azure.sas-token": container.signature(SIGNATURE_LIFE)}, int(time.time() + SIGNATURE_LIFE)

        host = f"{container.container}@{container.account}.dfs.core.windows.net"
        yield Place(f"abfss://{host}/warehouse", given, credentials)


@pytest.fixture
def place(where, tmp_path):
    with where(tmp_path) as found:
        yield found


@pytest.fixture
def server(place):
    with UnityServer(place.credentials).running() as running:
        running.warehouse = place.root
        yield running
        assert running.violations == []


def ids(place, catalog):
    table = DeltaTable(NAME, storage_options=place.options, catalog=catalog)
    return sorted(table.to_pyarrow_table(columns=["id"])["id"].to_pylist())


def create(kind, place, catalog):
    rows = {"id": [1, 2, 3], "state": ["new"] * 3}
    if kind == "managed":
        given = {"storage_options": place.options, "catalog": catalog, "configuration": FEED}
        write_deltalake(NAME, rows, **given)
        return
    location = f"{place.root}/external"
    provider = None if place.credentials is None else catalog.path_credentials(location)
    write_deltalake(location, rows, configuration=FEED, storage_options=place.options, credential_provider=provider)
    table = DeltaTable(location, storage_options=place.options, credential_provider=provider)
    catalog.register(NAME, table)


def lives():
    """The places and kinds; all but a managed table in S3 are in the proof tier."""
    for where in (local, s3, azure):
        for kind in ("managed", "external"):
            is_usual = (where, kind) == (s3, "managed")
            marks = () if is_usual else (pytest.mark.proof,)
            yield pytest.param(where, kind, id=f"{where.__name__}-{kind}", marks=marks)


@pytest.mark.parametrize(("where", "kind"), list(lives()))
def test_a_table_lives(place, server, kind):
    catalog = UnityCatalog(server.url, server.token)
    create(kind, place, catalog)
    (state,) = server.tables.values()
    assert state["kind"] == kind.upper()
    table = DeltaTable(NAME, storage_options=place.options, catalog=catalog)
    commands(place, catalog, table)
    expected = [1, 2, 4, *many_writers(place, catalog), *lost_answers(place, catalog, server)]
    seen, begun = killed_writers(place, server)
    found = ids(place, catalog)
    assert len(found) == len(set(found))
    killed = set(found) - set(expected)
    assert set(found) - killed == set(expected)
    # The last row of a killed writer may be there or not.
    assert seen <= killed <= begun
    if kind == "managed":
        assert state["latest"] == DeltaTable(NAME, storage_options=place.options, catalog=catalog).version()


def commands(place, catalog, table):
    """Append, MERGE, OPTIMIZE, DELETE, time travel, and the change data feed."""
    first = table.version()
    write_deltalake(table, {"id": [4], "state": ["new"]}, mode="append")
    merger = table.merge({"id": [1, 5], "state": ["paid", "paid"]}, "t.id = s.id", "s", "t")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()
    table.delete("id in (3, 5)")
    table.optimize.compact()
    assert ids(place, catalog) == [1, 2, 4]
    old = DeltaTable(NAME, version=first, storage_options=place.options, catalog=catalog)
    assert old.count() == 3
    changes = table.load_cdf(first + 1).read_all()
    kinds = sorted(zip(changes["id"].to_pylist(), changes["_change_type"].to_pylist(), strict=True))
    assert kinds == [
        (1, "update_postimage"),
        (1, "update_preimage"),
        (3, "delete"),
        (4, "insert"),
        (5, "delete"),
        (5, "insert"),
    ]


def many_writers(place, catalog):
    """Eight writers at once, for longer than their credentials are valid."""
    end = time.monotonic() + 1.5 * LIFE

    def write(number):
        table, written = DeltaTable(NAME, storage_options=place.options, catalog=catalog), []
        while time.monotonic() < end or not written:
            written.append(1000 * (number + 1) + len(written))
            write_deltalake(table, {"id": written[-1:], "state": ["many"]}, mode="append")
        return written

    with ThreadPoolExecutor(8) as pool:
        return [row for rows in pool.map(write, range(8)) for row in rows]


def lost_answers(place, catalog, server):
    """Every second answer of the catalog to a change is lost."""
    seen = []

    def loses(request):
        if request.startswith("POST") and "credentials" not in request:
            seen.append(request)
            return len(seen) % 2 == 1
        return False

    server.loses = loses
    rows = list(range(20_000, 20_006))
    for row in rows:
        given = {"storage_options": place.options, "catalog": catalog}
        write_deltalake(NAME, {"id": [row], "state": ["lost"]}, mode="append", **given)
    server.loses = None
    return rows


def killed_writers(place, server):
    """Kill three writers in the middle; returns the rows that they committed, and those that they began."""
    seen, begun = set(), set()
    for number in range(3):
        first = 100_000 * (number + 1)
        arguments = [server.url, server.token, str(first), json.dumps(place.options)]
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            rows = [int(process.stdout.readline()) for _ in range(2)]
            # Somewhere in the commits after these.
            time.sleep(0.03 * (number + 1))
            process.send_signal(signal.SIGKILL)
            rows += [int(line) for line in process.stdout.read().split()]
        seen |= set(rows)
        begun |= {*rows, max(rows) + 1}
    return seen, begun
