"""Tables on file systems of Hadoop: HDFS beside delta-spark, a mount, a local disk, and one that nobody knows."""

from __future__ import annotations

import contextlib
import pathlib
import pickle
import socket
import struct
import threading
import time

import pyarrow as pa
import pytest

import deltafast.spark
from deltafast import DeltaTable, _core, check_store, write_deltalake
from deltafast.exceptions import DeltaProtocolError, InvalidArgumentError, StorageError, TableNotFoundError
from deltafast.spark import _jobs as jobs
from deltafast.spark._session import gateway
from deltafast.spark._session.session import Session
from deltafast.spark._session.storage import Place, place_of

from . import hdfs
from .helpers import rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


@contextlib.contextmanager
def hadoop(spark, settings: dict[str, str]):
    """Set some of Hadoop's settings for a while."""
    held = spark._jsc.hadoopConfiguration()
    before = {key: held.get(key) for key in settings}
    try:
        for key, value in settings.items():
            held.set(key, value)
        yield
    finally:
        for key, value in before.items():
            held.unset(key) if value is None else held.set(key, value)


@pytest.fixture(scope="module")
def cluster(spark):
    """Give the root of a running HDFS."""
    # Half a second else, whenever a data node is a little later than the client.
    with (
        hdfs.running(spark._jvm) as url,
        hadoop(spark, {"dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10"}),
    ):
        yield url


@pytest.fixture
def root(cluster, request) -> str:
    """Give a folder of the test's own, whose name must not be decoded."""
    return f"{cluster}/{request.node.name.replace('[', '-').rstrip(']')}/a b%25é"


@pytest.fixture
def options(spark) -> dict[str, str]:
    """Give how the core reaches Hadoop."""
    return gateway.options(Session(spark))


def theirs(spark, path: str, **at: int):
    reader = spark.read.format("delta")
    for key, value in at.items():
        reader = reader.option(key, value)
    return reader.load(path)


@pytest.mark.proof
def test_delta_spark_reads_what_was_written_and_the_other_way_round(spark, root):
    frame = spark.range(100).selectExpr("id", "id % 3 p", "concat('é ', id) s")
    deltafast.spark.write(frame, root, partition_by=["p"], configuration=PROPERTIES)
    assert rows(theirs(spark, root)) == rows(frame)
    frame.where("id < 10").write.format("delta").mode("append").save(root)
    spark.sql(f"DELETE FROM delta.`{root}` WHERE id = 50")
    table = deltafast.spark.DeltaTable.forPath(spark, root)
    table.delete("id = 51")
    table.update("id = 52", {"s": "'new'"})
    merge = table.alias("t").merge(spark.range(95, 105).selectExpr("id", "0L p", "'m' s").alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    newest = theirs(spark, root)
    assert newest.count() == 113
    for way in ("index", "paths", "arrow"):
        assert rows(deltafast.spark.read(spark, root, read_mode=way)) == rows(newest)
    assert rows(deltafast.spark.read(spark, root, version=1)) == rows(theirs(spark, root, versionAsOf=1))
    feed = {"readChangeFeed": "true", "startingVersion": "2"}
    columns = ["id", "p", "s", "_change_type", "_commit_version"]
    changes = spark.read.format("delta").options(**feed).load(root).select(*columns)
    assert rows(deltafast.spark.read(spark, root, options=feed).select(*columns)) == rows(changes)
    table.optimize().executeCompaction()
    place = place_of(Session(spark), root)
    DeltaTable(place.uri, storage_options=place.options).create_checkpoint()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert rows(theirs(spark, root)) == rows(newest)
    handle = DeltaTable(place.uri, storage_options=place.options)
    assert jobs.delete(spark, handle, "id >= 100")["num_deleted_rows"] == 5
    assert theirs(spark, root).count() == 108
    handle.update_incremental()
    handle.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert theirs(spark, root).count() == 108
    # Nothing but data is left of what was staged.
    assert not [name for name in hdfs.tree(spark, root) if name.endswith(".tmp")]
    detail = deltafast.spark.sql(spark, f"DESCRIBE DETAIL delta.`{root}`").first()
    assert detail["location"] == spark.sql(f"DESCRIBE DETAIL delta.`{root}`").first()["location"]


@pytest.mark.proof
def test_a_stream_out_of_and_into_tables(spark, root, cluster):
    source, first, second = (f"{root}/{name}" for name in ("source", "first", "second"))
    deltafast.spark.write(spark.range(20), source)
    query = deltafast.spark.stream(
        spark, source, deltafast.spark.sink(first), f"{root}/checkpoint", trigger={"availableNow": True}
    )
    query.awaitTermination()
    deltafast.spark.register(spark)
    rows_of = spark.readStream.format("deltafast").load(first)
    query = rows_of.writeStream.format("deltafast").option("checkpointLocation", f"{root}/checkpoint-2")
    query.trigger(availableNow=True).start(second).awaitTermination()
    assert rows(theirs(spark, first)) == rows(spark.range(20))
    assert rows(theirs(spark, second)) == rows(spark.range(20))


@pytest.mark.proof
def test_of_writers_at_once_each_makes_its_own_version(spark, root, options):
    write_deltalake(root, pa.table({"id": pa.array([], pa.int64())}), storage_options=options)
    failures: list[Exception] = []
    begin = threading.Barrier(6)

    def run(work):
        try:
            begin.wait()
            for _ in range(5):
                work()
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    def ours():
        write_deltalake(root, pa.table({"id": [1]}), mode="append", storage_options=options)

    def of_spark():
        spark.range(1).write.format("delta").mode("append").save(root)

    threads = [threading.Thread(target=run, args=(work,)) for work in (ours, ours, ours, ours, of_spark, of_spark)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    table = DeltaTable(root, storage_options=options)
    assert table.version() == 30
    assert theirs(spark, root).groupBy("id").count().orderBy("id").collect() == [(0, 10), (1, 20)]
    assert [name for name in hdfs.tree(spark, root) if "tmp" in name] == []


@pytest.mark.proof
def test_the_store_is_safe_to_commit_to(root, options):
    report = check_store(root, storage_options=options, writers=8, rounds=10, objects=100)
    assert report, repr(report)


class Client:
    """A connection to the gateway, to be broken off."""

    def __init__(self, options: dict[str, str], secret: str | None = None) -> None:
        host, port = options["hadoop_gateway"].split(":")
        self.configuration = options["hadoop_gateway_configuration"]
        self.socket = socket.create_connection((host, int(port)), timeout=20)
        self.socket.sendall(self.text(secret or options["hadoop_gateway_secret"]))

    @staticmethod
    def text(text: str) -> bytes:
        return struct.pack(">i", len(text.encode())) + text.encode()

    def begin(self, operation: str, url: str) -> None:
        """Send the head of a request to write."""
        scheme, _, rest = url.partition("://")
        authority, _, path = rest.partition("/")
        strings = b"".join(map(self.text, (self.configuration, scheme, authority, f"/{path}")))
        self.socket.sendall(operation.encode() + strings + b"\x00\x01")


def gone(spark, url: str) -> list[str]:
    """What is in a folder, as soon as nothing is, and at last."""
    for _ in range(50):
        if not hdfs.tree(spark, url):
            break
        time.sleep(0.1)
    return hdfs.tree(spark, url)


def test_what_breaks_off_leaves_nothing(spark, root, options):
    client = Client(options)
    client.begin("P", f"{root}/_delta_log/00000000000000000000.json")
    client.socket.sendall(struct.pack(">i", 1000) + b"x" * 500)
    client.socket.close()
    client = Client(options)
    client.begin("U", f"{root}/a.parquet")
    assert client.socket.recv(1) == b"\x00"
    client.socket.sendall(struct.pack(">i", 1 << 20) + b"x" * (1 << 20) + struct.pack(">i", 1000) + b"x" * 500)
    [staged] = hdfs.tree(spark, root)
    assert staged.startswith("a.parquet.")
    client.socket.close()
    assert gone(spark, root) == []
    upload = _core.Files.open(root, options).begin("b.parquet")
    upload.write(b"x" * (3 << 20))
    del upload
    assert gone(spark, root) == []


def test_who_does_not_know_the_secret_gets_no_answer(options, root):
    client = Client(options, "0" * 64)
    with client.socket, contextlib.suppress(ConnectionError):
        client.begin("P", f"{root}/a")
        assert client.socket.recv(1) == b""
    files = _core.Files.open(root, options | {"hadoop_gateway_secret": "not it"})
    with pytest.raises(StorageError, match="broke off") as failed:
        files.head("a")
    assert "not it" not in str(failed.value)
    assert options["hadoop_gateway_secret"] not in str(failed.value)


def test_errors_are_one_line_with_the_path(spark, root, cluster, options):
    with pytest.raises(TableNotFoundError, match=r"hdfs://.*a b%25é"):
        deltafast.spark.read(spark, root)
    with pytest.raises(InvalidArgumentError, match=r"nothing://x/y.*No FileSystem for scheme \"nothing\"") as failed:
        deltafast.spark.read(spark, "nothing://x/y")
    assert "\n" not in str(failed.value)
    with hadoop(spark, {"ipc.client.connect.max.retries": "0"}), pytest.raises(StorageError, match="refused") as failed:
        deltafast.spark.read(spark, "hdfs://localhost:1/t")
    assert "hdfs://localhost:1/t" in str(failed.value)
    assert "\n" not in str(failed.value)
    write_deltalake(root, pa.table({"id": [1]}), storage_options=options)
    before = hdfs.tree(spark, root)
    jvm = spark._jvm
    files = jvm.org.apache.hadoop.fs.Path(root).getFileSystem(spark._jsc.hadoopConfiguration())
    action = jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction
    files.setSafeMode(action.SAFEMODE_ENTER)
    try:
        with pytest.raises(StorageError, match=r"cannot write hdfs://.*SafeModeException") as failed:
            write_deltalake(root, pa.table({"id": [2]}), mode="append", storage_options=options)
    finally:
        files.setSafeMode(action.SAFEMODE_LEAVE)
    assert "\n" not in str(failed.value)
    assert hdfs.tree(spark, root) == before


def test_the_settings_of_a_session_travel(spark, root, options):
    write_deltalake(root, pa.table({"id": [1, 2]}), storage_options=options)
    table = pickle.loads(pickle.dumps(DeltaTable(root, storage_options=options)))
    assert table.to_pyarrow_table().num_rows == 2
    assert deltafast.spark.read(spark, table).count() == 2
    same = gateway.options(Session(spark))
    with hadoop(spark, {"dfs.replication": "2"}):
        other = gateway.options(Session(spark))
    assert same == options
    assert other["hadoop_gateway_configuration"] != options["hadoop_gateway_configuration"]


def test_a_mount_is_where_it_leads(spark, cluster):
    root = f"{cluster}/mounted"
    with hadoop(spark, {"fs.viewfs.mounttable.tests.link./data": root}):
        deltafast.spark.write(spark.range(5), f"{root}/t")
        deltafast.spark.write(spark.range(5, 9), "viewfs://tests/data/t", mode="append")
        assert rows(deltafast.spark.read(spark, "viewfs://tests/data/t")) == rows(spark.range(9))
        report = check_store(
            "viewfs://tests/data/check",
            storage_options=gateway.options(Session(spark)),
            writers=4,
            rounds=3,
            objects=30,
        )
        assert report, repr(report)
    assert rows(theirs(spark, f"{root}/t")) == rows(spark.range(9))


def test_a_local_disk_by_way_of_hadoop_where_that_is_asked_for(spark, tmp_path):
    path = str(tmp_path / "a b%25")
    deltafast.spark.write(spark.range(5), path, storage_options={"via_hadoop": "true"})
    with Session(spark).set({"spark.deltafast.viaHadoop": "true"}):
        place = place_of(Session(spark), path)
        assert "hadoop_gateway" in place.options
        deltafast.spark.write(spark.range(5, 9), path, mode="append")
        deltafast.spark.DeltaTable.forPath(spark, path).delete("id = 3")
        frame = deltafast.spark.read(spark, path)
        assert sorted(row[0] for row in frame.collect()) == [0, 1, 2, 4, 5, 6, 7, 8]
        report = check_store(f"file://{path}2", storage_options=place.options, writers=8, rounds=10, objects=60)
    assert report, repr(report)
    assert rows(theirs(spark, path)) == rows(frame)
    # Hadoop's own checksums are beside Spark's files only.
    assert not [file for file in pathlib.Path(path, "_delta_log").iterdir() if file.name.startswith(".")]


ODD = """
package deltafast.tests;
public class Odd extends org.apache.hadoop.fs.FilterFileSystem {
  public Odd() { super(new org.apache.hadoop.fs.RawLocalFileSystem()); }
  public String getScheme() { return "odd"; }
  public java.net.URI getUri() { return java.net.URI.create("odd:///"); }
  protected void checkPath(org.apache.hadoop.fs.Path path) { }
  private org.apache.hadoop.fs.Path local(org.apache.hadoop.fs.Path path) {
    return new org.apache.hadoop.fs.Path("file", null, path.toUri().getPath());
  }
  private org.apache.hadoop.fs.FileStatus odd(org.apache.hadoop.fs.FileStatus status) {
    status.setPath(new org.apache.hadoop.fs.Path("odd", "", status.getPath().toUri().getPath()));
    return status;
  }
  public org.apache.hadoop.fs.FileStatus getFileStatus(org.apache.hadoop.fs.Path path) throws java.io.IOException {
    return odd(super.getFileStatus(local(path)));
  }
  public org.apache.hadoop.fs.RemoteIterator listStatusIterator(org.apache.hadoop.fs.Path path) throws java.io.IOException {
    final org.apache.hadoop.fs.FileStatus[] found = super.listStatus(local(path));
    return new org.apache.hadoop.fs.RemoteIterator() {
      private int at = 0;
      public boolean hasNext() { return at < found.length; }
      public Object next() { return odd(found[at++]); }
    };
  }
  public boolean hasPathCapability(org.apache.hadoop.fs.Path path, String capability) { return false; }
  public org.apache.hadoop.fs.FSDataInputStream open(org.apache.hadoop.fs.Path path, int size) throws java.io.IOException {
    return super.open(local(path), size);
  }
  public boolean mkdirs(org.apache.hadoop.fs.Path path) throws java.io.IOException { return super.mkdirs(local(path)); }
  public boolean delete(org.apache.hadoop.fs.Path path, boolean all) throws java.io.IOException { return super.delete(local(path), all); }
  public boolean rename(org.apache.hadoop.fs.Path from, org.apache.hadoop.fs.Path to) throws java.io.IOException {
    return super.rename(local(from), local(to));
  }
  public org.apache.hadoop.fs.FSDataOutputStream create(org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission permission,
      boolean overwrite, int size, short copies, long block, org.apache.hadoop.util.Progressable progress) throws java.io.IOException {
    return super.create(local(path), permission, overwrite, size, copies, block, progress);
  }
}
"""


def test_a_file_system_that_may_replace_files_is_only_written_where_somebody_vouches_for_it(spark, tmp_path):
    jvm, configuration = spark._jvm, spark._jsc.hadoopConfiguration()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(configuration.getClassLoader())
    compiler.cook(ODD)
    before, data, url = configuration.getClassLoader(), pa.table({"id": [1]}), f"odd://{tmp_path}/t"
    configuration.setClassLoader(compiler.getClassLoader())
    try:
        with hadoop(spark, {"fs.odd.impl": "deltafast.tests.Odd"}):
            session = Session(spark)
            with pytest.raises(DeltaProtocolError, match=r"spark\.deltafast\.commit\.odd to rename") as refused:
                write_deltalake(url, data, storage_options=gateway.options(session))
            assert "\n" not in str(refused.value)
            assert list(tmp_path.iterdir()) == []
            write_deltalake(url, data, storage_options=gateway.options(session) | {"allow_unsafe_rename": "true"})
            for way in ("rename", "create"):
                with session.set({"spark.deltafast.commit.odd": way}):
                    options = gateway.options(session)
                    write_deltalake(url, data, mode="append", storage_options=options)
            assert DeltaTable(url, storage_options=options).to_pyarrow_table().num_rows == 3
    finally:
        configuration.setClassLoader(before)
    assert theirs(spark, str(tmp_path / "t")).count() == 3


def test_classes_that_only_java_has_are_no_reason_to_fail(spark):
    own = "fs.s3a.bucket.vended.aws.credentials.provider"
    with hadoop(spark, {own: "com.example.Vended", "fs.s3a.access.key": "k", "fs.s3a.secret.key": "s"}):
        session = Session(spark)
        place = place_of(session, "s3a://vended/t")
        assert place.uri == "s3a://vended/t"
        assert place.options == gateway.options(session)
        assert "AWS_ACCESS_KEY_ID" in place_of(session, "s3a://other/t").options
        # Hadoop's classes for S3 are not in this session, which is what a user is told.
        with pytest.raises(InvalidArgumentError, match=r"s3a://vended/t.*S3AFileSystem"):
            deltafast.spark.read(spark, "s3a://vended/t")
    assert isinstance(place, Place)
