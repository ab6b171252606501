"""A table's whole life in S3, Azure and GCS: that of a local table, as deltafast and `deltalake` read it back."""

from __future__ import annotations

import json
import os
import re
import time
import urllib.parse
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast
import servers
from deltafast import DeltaTable, convert_to_deltalake, write_deltalake
from support import same_rows
from tablekit import dv, log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def cloud(cloud) -> servers.Cloud:
    """Of which nothing was asked yet."""
    cloud.proxy.forget()
    return cloud


SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.float64())])


def rows(start: int, end: int) -> pa.Table:
    ids = range(start, end)
    columns = {"id": ids, "p": [["a b/ü", "x=1", None][n % 3] for n in ids], "x": [n / 4 for n in ids]}
    return pa.table(columns, schema=SCHEMA)


def life(place: str, options: dict[str, str] | None, sibling: str) -> Iterator[tuple[str, DeltaTable]]:
    """One operation after the other, and the table after each."""
    properties = {"delta.checkpointInterval": "100", "delta.logRetentionDuration": "interval 0 hours"}
    yield (
        "create",
        DeltaTable.create(place, SCHEMA, partition_by=["p"], configuration=properties, storage_options=options),
    )
    table = DeltaTable(place, storage_options=options)

    def write(data: pa.Table, **how: Any) -> None:
        write_deltalake(table, data, **how)

    write(rows(0, 60), mode="append")
    yield "append", table
    write(rows(10, 20), mode="overwrite", predicate="id >= 10 and id < 20")
    yield "replaceWhere", table
    write(rows(1, 2), mode="overwrite", partition_overwrite_mode="dynamic")
    yield "dynamic overwrite", table
    assert table.delete("id % 7 = 3")["num_deleted_rows"] > 0
    yield "delete", table
    assert table.update({"x": "x + 1"}, predicate="id > 40")["num_updated_rows"] > 0
    yield "update", table
    table.alter.add_columns([deltafast.Field("more", "string")])
    yield "add columns", table
    write(pa.table({"id": [900], "more": ["m"], "later": [True]}), mode="append", schema_mode="merge")
    yield "merge schema", table
    table.alter.set_table_properties({"delta.appendOnly": "false"})
    table.alter.add_constraint({"positive": "id >= 0"})
    yield "alter", table
    table.create_checkpoint()
    yield "checkpoint", table
    write(pa.table({"id": [901]}), mode="overwrite")
    yield "overwrite", table
    table.restore(2)
    yield "restore", table
    table.compact_logs(table.version() - 2, table.version())
    yield "compact logs", table
    clone = table.clone(sibling)
    yield "clone", clone
    write_deltalake(clone, pa.table({"id": [5000]}), mode="append")
    yield "append to the clone", clone
    # Times of objects are whole seconds in some stores.
    time.sleep(1.1)
    gone = table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True, keep_versions=[0])
    assert len(gone) >= 3
    yield "vacuum", table
    table.create_checkpoint()
    assert table.cleanup_metadata(retention=timedelta(0), dry_run=True) == []
    yield "cleanup", table


def facts(table: DeltaTable) -> dict[str, Any]:
    return {
        "version": table.version(),
        "schema": table.schema().to_json(),
        "properties": table.metadata().configuration,
        "protocol": table.protocol(),
        "operations": [commit["operation"] for commit in table.history()],
        "files": len(table.files()),
    }


def by_deltalake(place: str, options: dict[str, str] | None) -> pa.Table:
    table = deltalake.DeltaTable(place, storage_options=options)
    return pa.table(deltalake.QueryBuilder().register("t", table).execute("select * from t"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "cloud", ["s3", *(pytest.param(name, marks=pytest.mark.proof) for name in ("azure", "gcs"))], indirect=True
)
def test_a_whole_life_is_that_of_a_local_table(cloud, tmp_path):
    url = f"{cloud.root}/some tables/life"
    there = life(url, cloud.options(), f"{cloud.root}/some tables/clone of life")
    here = life(str(tmp_path / "life"), None, str(tmp_path / "clone of life"))
    for (step, found), (_, expected) in zip(there, here, strict=True):
        assert facts(found) == facts(expected), step
        fresh = DeltaTable(found.table_uri, storage_options=cloud.options())
        assert fresh.version() == found.version(), step
        same_rows(fresh.to_pyarrow_table(), expected.to_pyarrow_table())
        # By another implementation, which would complain of a log that is wrong; it opens no clones.
        if "clone" not in step:
            theirs = by_deltalake(found.table_uri, cloud.theirs)
            same_rows(theirs.select(fresh.to_pyarrow_table().column_names), expected.to_pyarrow_table())


def test_what_deltalake_writes_there_is_read_and_written_on(cloud):
    url = f"{cloud.root}/by deltalake"
    deltalake.write_deltalake(url, rows(0, 30), partition_by=["p"], storage_options=cloud.theirs)
    write_deltalake(url, rows(30, 40), mode="append", storage_options=cloud.options())
    first = 0
    if cloud.root == "az://container":
        # deltalake cannot go on with its own tables there: "Invalid table version: 1".
        write_deltalake(url, rows(40, 50), mode="append", storage_options=cloud.options())
    else:
        deltalake.write_deltalake(url, rows(40, 50), mode="append", storage_options=cloud.theirs)
        deltalake.DeltaTable(url, storage_options=cloud.theirs).delete("id < 5")
        first = 5
    write_deltalake(url, rows(50, 60), mode="append", storage_options=cloud.options())
    same_rows(DeltaTable(url, storage_options=cloud.options()).to_pyarrow_table(), rows(first, 60))
    same_rows(by_deltalake(url, cloud.theirs), rows(first, 60))


def test_files_in_a_bucket_become_a_table(cloud, tmp_path):
    for n in range(4):
        folder = tmp_path / "files" / f"part=v {n % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows(n, n + 5), folder / f"{n}.parquet")
    url = cloud.bucket.upload(tmp_path / "files", "to convert")
    schema = deltafast.Schema([deltafast.Field("part", "string")])
    for place, options in ((url, cloud.options()), (str(tmp_path / "files"), None)):
        convert_to_deltalake(place, partition_by=schema, storage_options=options)
    there, here = DeltaTable(url, storage_options=cloud.options()), DeltaTable(tmp_path / "files")
    assert there.schema() == here.schema()
    same_rows(there.to_pyarrow_table(), here.to_pyarrow_table())
    assert len(there.files()) == 4
    same_rows(by_deltalake(url, cloud.theirs), here.to_pyarrow_table())


PARTS = {"s3": r"PUT .*partNumber=(\d+)", "az": r"PUT .*comp=block&blockid=(\S+)", "gs": r"PUT .*partNumber=(\d+)"}


def test_a_large_file_goes_up_in_parts(cloud):
    # Noise, so that it stays as large as it is.
    data = pa.table({"id": range(2_700_000), "noise": pa.array(_noise(2_700_000), pa.int64())})
    url = f"{cloud.root}/large"
    cloud.proxy.forget()
    write_deltalake(url, data, storage_options=cloud.options())
    table = DeltaTable(url, storage_options=cloud.options())
    assert len(table.files()) == 1
    assert pa.table(table.get_add_actions())["size_bytes"][0].as_py() > 17 << 20
    parts = {found[1] for request in cloud.proxy.requests if (found := re.match(PARTS[cloud.root[:2]], request))}
    assert len(parts) >= 3
    noise = table.to_pyarrow_table(columns=["noise"])["noise"]
    assert noise.equals(data["noise"])
    stored = [key for key in cloud.bucket.keys("large") if key.endswith(".parquet")]
    assert stored == [f"large/{file}" for file in table.files()]


def _noise(count: int) -> pa.Buffer:
    import numpy as np

    return np.frombuffer(os.urandom(count * 8), dtype=np.int64)


DELETES = {"s3": r"POST .*\?delete", "az": r"POST .*comp=batch", "gs": r"DELETE "}


def test_files_are_deleted_in_batches(cloud, tmp_path):
    url = f"{cloud.root}/batches"
    write_deltalake(url, pa.table({"id": [1]}), storage_options=cloud.options())
    (tmp_path / "stray").mkdir()
    for n in range(40):
        (tmp_path / "stray" / f"stray {n}.bin").touch()
    cloud.bucket.upload(tmp_path / "stray", "batches/some")
    table = DeltaTable(url, storage_options=cloud.options())
    time.sleep(1.1)
    cloud.proxy.forget()
    deleted = table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert len(deleted) == 40
    asked = [request for request in cloud.proxy.requests if re.match(DELETES[cloud.root[:2]], request)]
    assert len(asked) == (40 if cloud.root == "gs://bucket" else 1)
    assert cloud.bucket.keys("batches/some") == []
    assert table.count() == 1


def test_an_expired_log_is_cleaned_up(cloud, tmp_path):
    table = log.Table(tmp_path / "old")
    begin = [
        log.protocol(writer_only=["inCommitTimestamp"]),
        log.metadata(configuration={"delta.enableInCommitTimestamps": "true"}),
    ]
    # Objects cannot be made older than they are; commits can.
    months_ago = round(time.time() * 1000) - 90 * 86_400_000
    for version in range(5):
        times = {"inCommitTimestamp": months_ago + version, "timestamp": months_ago + version}
        info = {"commitInfo": times | {"operation": "WRITE"}}
        rows_of = table.ids(f"part-{version}.parquet", version * 10, version * 10 + 10)
        table.commit(version, info, *(begin if version == 0 else []), rows_of)
    url = cloud.bucket.upload(table.folder, "old")
    DeltaTable(url, version=3, storage_options=cloud.options()).create_checkpoint()
    handle = DeltaTable(url, storage_options=cloud.options())
    deleted = handle.cleanup_metadata()
    assert deleted == [f"_delta_log/{version:020}.json" for version in range(3)]
    left = {key.rpartition("/")[2] for key in cloud.bucket.keys("old/_delta_log")}
    assert {f"{3:020}.checkpoint.parquet", f"{3:020}.json", f"{4:020}.json"} <= left
    assert not {f"{version:020}.json" for version in range(3)} & left
    for version in (3, 4):
        assert DeltaTable(url, version=version, storage_options=cloud.options()).count() == version * 10 + 10
    with pytest.raises(deltafast.VersionNotFoundError):
        DeltaTable(url, version=2, storage_options=cloud.options())
    assert by_deltalake(url, cloud.theirs).num_rows == 50


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("cloud", ["azure"], indirect=True)
def test_deletions_that_fail_are_reported_or_made_good(cloud, tmp_path, again):
    """A request that deletes 256 objects fails as a whole; the objects of the next one have their own answers."""
    url = f"{cloud.root}/failing{again}"
    write_deltalake(url, pa.table({"id": [1]}), storage_options=cloud.options())
    (tmp_path / "stray").mkdir()
    for n in range(300):
        (tmp_path / "stray" / f"{n}.bin").touch()
    cloud.bucket.upload(tmp_path / "stray", f"failing{again}/some")
    time.sleep(1.1)
    table = DeltaTable(url, storage_options=cloud.options(max_retries="0"))
    asked = []

    def fail(request: str, behind: Callable[[], servers.Answer]) -> servers.Answer:
        if "comp=batch" not in request:
            return behind()
        asked.append(request)
        bad = {1} if again else {1, 3}
        return servers.Answer(500, {}, b"") if len(asked) in bad else behind()

    cloud.proxy.disturb = fail

    def left() -> int:
        return len(cloud.bucket.keys(f"failing{again}/some"))

    if again:
        assert len(table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)) == 300
        assert left() == 0
        return
    with pytest.raises(deltafast.StorageError, match=r"deleted (44|256) of 300 files") as caught:
        table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert left() == 300 - int(re.findall(r"deleted (\d+) of", str(caught.value))[0])


@pytest.mark.parametrize("full", [False, True])
def test_a_vacuum_stays_below_the_table(cloud, tmp_path, full):
    """Whatever prefix a vector has, and whatever the log removes."""
    identifier = uuid.uuid4()
    table = log.basic(tmp_path / "t")
    (tmp_path / "t" / "old.parquet").write_bytes(b"PAR1")
    (tmp_path / "victim").mkdir()
    for name in (dv.file_name(identifier), "x.parquet"):
        (tmp_path / "victim" / name).write_bytes(b"precious")
    key = f"inside{full}"
    removes = [
        log.remove(
            "old.parquet",
            deletionTimestamp=1,
            deletionVector={
                "storageType": storage,
                "pathOrInlineDv": dv.relative(identifier, prefix) if storage == "u" else f"{prefix}/x.parquet",
                "offset": 1,
                "sizeInBytes": 40,
                "cardinality": 1,
            },
        )
        for storage, prefix in [
            ("u", "../victim"),
            ("u", f"/{key}/victim"),
            ("u", "a/../../victim"),
            ("p", f"{cloud.root}/{key}/victim"),
            ("p", "../victim"),
        ]
    ]
    removes += [
        log.remove(path, deletionTimestamp=1)
        for path in [
            "../victim/x.parquet",
            "%2e%2e/victim/x.parquet",
            f"{cloud.root}/{key}/victim/x.parquet",
            "a//../../victim/x.parquet",
        ]
    ]
    table.commit(3, *removes)
    cloud.bucket.upload(tmp_path, key)
    time.sleep(1.1)
    before = cloud.bucket.keys(f"{key}/victim")
    assert len(before) == 2
    opened = DeltaTable(f"{cloud.root}/{key}/t", storage_options=cloud.options(), allow_external_paths=True)
    assert opened.vacuum(0, enforce_retention_duration=False, full=full) == ["old.parquet"]
    assert opened.vacuum(0, False, False, full=full) == ["old.parquet"]
    assert cloud.bucket.keys(f"{key}/victim") == before
    assert len([path for path in cloud.bucket.keys(f"{key}/t") if path.endswith(".parquet")]) == 3


# --- requests --------------------------------------------------------------------------------------


def listings(proxy: servers.Proxy) -> list[str]:
    return [request for request in proxy.requests if re.search(r"comp=list|list-type=2", request)]


def test_a_small_append_costs_few_requests(cloud):
    url = f"{cloud.root}/small"
    write_deltalake(url, rows(0, 10), storage_options=cloud.options())
    table = DeltaTable(url, storage_options=cloud.options())
    cloud.proxy.forget()
    write_deltalake(table, pa.table({"id": [1]}), mode="append")
    # Anything new (one or two), the file, the commit, the checksum before and the one after.
    assert len(cloud.proxy.requests) <= 6, cloud.proxy.requests
    puts = [request for request in cloud.proxy.requests if request.startswith("PUT")]
    assert len(puts) == 3, puts


def test_folders_of_the_log_are_not_listed(cloud, tmp_path):
    """Sidecars may be thousands, and none of them says what versions there are."""
    url = f"{cloud.root}/sidecars"
    write_deltalake(url, pa.table({"id": [1]}), storage_options=cloud.options())
    (tmp_path / "_sidecars").mkdir()
    for n in range(20):
        (tmp_path / "_sidecars" / f"{n}.parquet").touch()
    cloud.bucket.upload(tmp_path, "sidecars/_delta_log")
    seen: list[str] = []

    def watch(request: str, behind: Callable[[], servers.Answer]) -> servers.Answer:
        answer = behind()
        if re.search(r"comp=list|list-type=2", request):
            # Azure names folders in the same way, with a slash behind.
            found = map(urllib.parse.unquote, re.findall(r"<(?:Key|Name)>([^<]*)</", answer.body.decode()))
            seen.extend(key for key in found if not key.endswith("/"))
        return answer

    cloud.proxy.forget()
    cloud.proxy.disturb = watch
    table = DeltaTable(url, storage_options=cloud.options())
    assert table.version() == 0
    assert [key for key in seen if key.endswith("_delta_log/00000000000000000000.json")]
    assert not [key for key in seen if "_sidecars/" in key]
    assert len(listings(cloud.proxy)) == 1
    # One with an offset, behind a checkpoint.
    table.create_checkpoint()
    seen.clear()
    cloud.proxy.forget()
    cloud.proxy.disturb = watch
    assert DeltaTable(url, storage_options=cloud.options()).version() == 0
    assert seen
    assert not [key for key in seen if "_sidecars/" in key]
    assert len(listings(cloud.proxy)) == 1
    assert len(cloud.proxy.requests) <= 4, cloud.proxy.requests


def test_the_log_says_the_same_to_any_client(cloud):
    url = f"{cloud.root}/plain"
    write_deltalake(url, rows(0, 3), storage_options=cloud.options())
    lines = cloud.bucket.get("plain/_delta_log/00000000000000000000.json").decode().splitlines()
    actions = [json.loads(line) for line in lines]
    adds = [action["add"] for action in actions if "add" in action]
    assert sum(json.loads(add["stats"])["numRecords"] for add in adds) == 3
    for add in adds:
        assert len(cloud.bucket.get(f"plain/{urllib.parse.unquote(add['path'])}")) == add["size"]
