"""Tables of Unity Catalog in S3, Azure and Google Cloud Storage, with credentials that expire after seconds.

Executors are other processes, without deltafast.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import deltafast.spark
import servers
from deltafast import DeltaTable, write_deltalake
from deltafast.catalog import UnityCatalog
from deltafast.catalog.unity import OAuthClient
from spark import cluster
from spark.child_session import OLDER, OTHER
from spark.helpers import ids, plan
from unity import UnityServer

from . import expiring_stores
from .expiring_stores import LIFE, SECRETS
from .started import Started, builder

pytestmark = [
    pytest.mark.spark,
    pytest.mark.proof,
    pytest.mark.timeout(600),
    pytest.mark.child_session("catalog-in-stores"),
]

HOME = pathlib.Path(os.environ["SPARK_HOME"])
NAME = "main.sales.orders"
EVERY_STORE = pytest.mark.parametrize("store", ["s3", "azure", "google"], indirect=True)
SDK = "2.35.4"


def packages() -> str:
    """Return Hadoop's S3A and ABFS in the release that PySpark has, and what is used of the SDK, 600 MB as a whole."""
    (jar,) = (HOME / "jars").glob("hadoop-client-api-*.jar")
    release = re.fullmatch(r"hadoop-client-api-(.+)\.jar", jar.name)[1]
    hadoop = (f"org.apache.hadoop:hadoop-{name}:{release}" for name in ("aws", "azure"))
    sdk = (f"software.amazon.awssdk:{name}:{SDK}" for name in ("s3-transfer-manager", "sts"))
    return ",".join((*hadoop, *sdk))


@pytest.fixture(scope="session")
def stores():
    """The stores; each takes only credentials of the catalog that have not expired."""
    with expiring_stores.running() as running:
        yield running


@pytest.fixture(scope="session")
def started(stores, tmp_path_factory):
    """The session, which has no credentials."""
    os.environ.pop("PYTHONPATH", None)
    with cluster.running(tmp_path_factory.mktemp("cluster"), HOME) as running:
        os.environ |= {"PYSPARK_PYTHON": running.bare, "SPARK_LOCAL_IP": "127.0.0.1"}

        def build():
            made = builder(running.master).config("spark.executor.memory", "600m").config("spark.log.level", "OFF")
            made = made.config("spark.jars.packages", packages())
            made = made.config("spark.jars.excludes", "software.amazon.awssdk:bundle")
            # `spark.jars` would replace the packages.
            for process in ("driver", "executor"):
                made = made.config(f"spark.{process}.extraClassPath", expiring_stores.connector())
            for store in stores.values():
                for name, value in store.settings().items():
                    made = made.config(name, value)
            made = made.config("spark.task.maxFailures", 1)
            return made.config("spark.sql.shuffle.partitions", 2).getOrCreate()

        started = Started(build)
        yield started
        started.stop()


@pytest.fixture(params=["s3", "azure"])
def store(stores, request):
    """Give each of the stores."""
    found = stores[request.param]
    found.forget()
    yield found
    # No request had credentials that had expired.
    assert found.refused() == []


@contextlib.contextmanager
def issuer(server, tokens):
    """Run a server that gives clients of OAuth the token that the catalog accepts now; gives its URL."""

    class Issuer(servers.Server):
        def answer(self, method, target, headers, body):
            tokens.append(server.token)
            answer = {"access_token": server.token, "expires_in": 3600, "token_type": "Bearer"}
            return servers.Answer(200, {}, json.dumps(answer).encode())

    with Issuer().running() as running:
        yield f"{running.url}/oidc/v1/token"


@pytest.fixture
def server(store):
    """The catalog, which gives new credentials for each request."""
    with UnityServer(store.credentials).running() as running:
        running.warehouse = store.root
        yield running
        assert running.violations == []


@pytest.fixture
def spark(started, server):
    """The session, with the catalog."""
    deltafast.spark.enable(started.session(), catalogs={"main": UnityCatalog(server.url, server.token)})
    yield from started.isolated()
    deltafast.spark.enable(started.session())


@pytest.fixture
def table(store, server):
    """Open the table without Spark."""

    def opened():
        catalog = UnityCatalog(server.url, server.token)
        return DeltaTable(f"uc://{NAME}", storage_options=store.options, catalog=catalog)

    return opened


@EVERY_STORE
@pytest.mark.parametrize("kind", ["managed", "external"])
def test_a_table_lives(spark, server, store, table, kind):
    feed = "TBLPROPERTIES ('delta.enableChangeDataFeed'='true', 'delta.enableDeletionVectors'='true')"
    where = f"LOCATION '{store.root.replace('warehouse', 'orders')}'" if kind == "external" else ""
    spark.sql(f"CREATE TABLE {NAME} (id BIGINT, state STRING) USING delta {where} {feed}")
    spark.range(1, 1001).repartition(4).selectExpr("id", "'new' state").writeTo(NAME).append()
    spark.sql(f"UPDATE {NAME} SET state = 'paid' WHERE id <= 10")
    source = "(SELECT 2L id, 'sent' state UNION ALL SELECT 1001L, 'new')"
    spark.sql(
        f"MERGE INTO {NAME} t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(f"DELETE FROM {NAME} WHERE id = 3")
    time.sleep(LIFE)
    spark.sql(f"OPTIMIZE {NAME}")
    expected = [1, 2, *range(4, 1002)]
    assert ids(spark.table(NAME)) == expected
    assert sorted(table().to_pyarrow_table()["id"].to_pylist()) == expected
    assert {row.state for row in spark.table(NAME).where("id IN (1, 2)").collect()} == {"paid", "sent"}
    assert ids(spark.sql(f"SELECT * FROM {NAME} VERSION AS OF 1")) == list(range(1, 1001))
    changes = spark.sql(f"SELECT * FROM table_changes('{NAME}', 2)").groupBy("_change_type").count()
    assert {row._change_type: row["count"] for row in changes.collect()} == {
        "update_preimage": 11,
        "update_postimage": 11,
        "insert": 1,
        "delete": 1,
    }
    (state,) = server.tables.values()
    assert state["kind"] == kind.upper()
    if kind == "managed":
        assert table().version() == state["latest"]


def test_eight_writers_lost_answers_and_a_cancelled_writer(spark, server, table):
    spark.sql(f"CREATE TABLE {NAME} (id BIGINT) USING delta")

    def append(number):
        spark.range(10 * number, 10 * number + 10).writeTo(NAME).append()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(8)))
        posts = itertools.count()
        server.loses = lambda request: request.startswith("POST") and next(posts) % 2 == 0
        append(8)
        append(9)
        server.loses = None
        # The executors begin files of rows that wait, and the job is cancelled.
        slow = spark.range(1000, 1004).selectExpr("id", "java_method('java.lang.Thread', 'sleep', 60000L) waited")
        writing = pool.submit(lambda: slow.where("waited <> ''").select("id").writeTo(NAME).append())
        time.sleep(3)
        assert not writing.done()
        spark.sparkContext.cancelAllJobs()
        with pytest.raises(Exception, match=r"(?i)cancel"):
            writing.result(30)
    assert next(posts) >= 4
    assert ids(spark.table(NAME)) == sorted(table().to_pyarrow_table()["id"].to_pylist()) == list(range(100))
    (state,) = server.tables.values()
    assert table().version() == state["latest"] == 10


def test_a_query_takes_longer_than_credentials_are_valid(spark, store):
    spark.sql(f"CREATE TABLE {NAME} (id BIGINT) USING delta")
    for start in range(0, 80, 10):
        spark.range(start, start + 10, 1, 1).writeTo(NAME).append()
    # One row of each file waits; an executor reads some files one after the other.
    wait = f"if(id % 10 = 0, java_method('java.lang.Thread', 'sleep', {round(LIFE * 300)}L), '') waited"
    frame = spark.table(NAME).selectExpr("id", wait)
    begin = time.monotonic()
    issued = store.issued
    assert ids(frame) == list(range(80))
    assert time.monotonic() - begin > LIFE
    # The executors asked for more than the first one.
    assert store.issued >= issued + 4


@EVERY_STORE
def test_no_secret_is_shown(spark, server):
    spark.sql(f"CREATE TABLE {NAME} (id BIGINT) USING delta")
    spark.range(3).writeTo(NAME).append()
    frame = spark.table(NAME)
    for text in (plan(frame), frame._jdf.queryExecution().debug().toString(), repr(frame)):
        assert server.token not in text.split()
        assert not any(secret in text for secret in SECRETS)


def test_other_paths_keep_the_credentials_of_the_session(spark, store):
    """The credentials of the catalog are for the files of its table only."""
    spark.sql(f"CREATE TABLE {NAME} (id BIGINT) USING delta")
    spark.range(3).writeTo(NAME).append()
    assert ids(spark.table(NAME)) == [0, 1, 2]
    with pytest.raises(Exception, match=r"(?i)credential|403|account\.key"):
        spark.read.parquet(re.sub("^s3:", "s3a:", store.root)).collect()
    store.forget()


def test_an_executor_is_killed_while_it_writes(spark, server, table):
    spark.sql(f"CREATE TABLE {NAME} (id BIGINT) USING delta")
    spark.range(10).writeTo(NAME).append()
    slow = spark.range(1000, 1004).selectExpr("id", "java_method('java.lang.Thread', 'sleep', 60000L) waited")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(lambda: slow.where("waited <> ''").select("id").writeTo(NAME).append())
        time.sleep(3)
        assert not writing.done()
        # Those of this session: other tests have executors, too.
        driver = f"CoarseGrainedScheduler@127.0.0.1:{spark.conf.get('spark.driver.port')}"
        subprocess.run(["pkill", "-KILL", "-f", f"CoarseGrainedExecutorBackend.*{driver}"], check=True)
        with pytest.raises(Exception, match=r"(?i)executor|worker"):
            writing.result(60)
    spark.range(10, 20).writeTo(NAME).append()
    assert ids(spark.table(NAME)) == sorted(table().to_pyarrow_table()["id"].to_pylist()) == list(range(20))
    (state,) = server.tables.values()
    assert table().version() == state["latest"] == 2


def test_a_driver_is_killed_between_commits(spark, server, store, table):
    """Each append that the program saw succeed is there once, and the one that it had begun once or not at all."""
    spark.sql(f"CREATE TABLE {NAME} (id BIGINT) USING delta")
    settings = json.dumps({"spark.jars": spark.conf.get("spark.jars"), **store.settings()})
    program = pathlib.Path(__file__).parents[1] / "killed_writer.py"
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    environment["PYTHONPATH"] = str(pathlib.Path(deltafast.__file__).parents[1])
    command = [sys.executable, str(program), server.url, server.token, NAME, settings]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        assert process.stdout is not None
        seen = [int(process.stdout.readline()) for _ in range(3)]
        time.sleep(0.1)
        # With its Java.
        os.killpg(process.pid, signal.SIGKILL)
        seen += [int(line) for line in process.stdout.read().split()]
    found = sorted(table().to_pyarrow_table()["id"].to_pylist())
    assert found in (seen, [*seen, seen[-1] + 1])
    spark.range(100, 101).writeTo(NAME).append()
    assert ids(spark.table(NAME)) == [*found, 100]


@EVERY_STORE
@pytest.mark.child_session("catalog-in-stores", releases=(*OLDER, OTHER))
def test_other_releases_of_spark_write_and_read(spark, server, table):
    spark.sql(f"CREATE TABLE {NAME} (id BIGINT, state STRING) USING delta")
    spark.range(1, 101).repartition(4).selectExpr("id", "'new' state").writeTo(NAME).append()
    spark.sql(f"UPDATE {NAME} SET state = 'paid' WHERE id <= 10")
    assert ids(spark.table(NAME)) == sorted(table().to_pyarrow_table()["id"].to_pylist()) == list(range(1, 101))
    assert ids(spark.table(NAME).where("state = 'paid'")) == list(range(1, 11))
    (state,) = server.tables.values()
    assert table().version() == state["latest"] == 2


@EVERY_STORE
def test_a_client_of_oauth_and_a_server_without_the_delta_api(started, store):
    given = {"storage_options": store.options, "credential_provider": store.provider}
    location = store.root.replace("warehouse", "external")
    write_deltalake(location, {"id": [1, 2, 3]}, **given)
    tokens = []

    def credentials(location, operation):
        operations.append(operation)
        return store.credentials(location, operation)

    operations = []
    with UnityServer(credentials, has_delta_api=False).running() as server, issuer(server, tokens) as url:
        catalog = UnityCatalog(server.url, oauth=OAuthClient("client", "hidden", url))
        catalog.register(NAME, DeltaTable(location, **given))
        spark = started.session()
        deltafast.spark.enable(spark, catalogs={"main": catalog})
        try:
            assert ids(spark.table(NAME)) == [1, 2, 3]
            assert "READ" in operations
            spark.range(4, 6).writeTo(NAME).append()
            time.sleep(LIFE)
            # The server no longer accepts the token.
            server.token = "other"
            assert ids(spark.table(NAME)) == [1, 2, 3, 4, 5]
        finally:
            deltafast.spark.enable(spark)
        assert server.violations == []
    # The driver and an executor, and each again when it was refused.
    assert len(tokens) >= 4
