"""Small files that stand for large ones: bombs, and honest tables of awkward sizes."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from tablekit import log, parquet

from .generate import MEBIBYTE, case, either, error, rows

if TYPE_CHECKING:
    import pathlib

Column = parquet.Column
BYTES, LONG = parquet.BYTE_ARRAY, parquet.INT64


@functools.cache
def _made(name: str) -> bytes:
    """Return the bytes of a bomb; compressing 600 MiB takes seconds."""
    return _BOMBS[name]()


def _bomb(folder: pathlib.Path, name: str, *, drop: bool) -> None:
    """Write a checkpoint of two parts: a good one and the bomb."""
    table = log.basic(folder, 3)
    first = table.actions(0, 2)
    pq.write_table(log.checkpoint_table(first), table.checkpoint_file(2, 1, 2))
    table.checkpoint_file(2, 2, 2).write_bytes(_made(name))
    if drop:
        table.drop_commits(0, 1)


def _adds(rows_: int, path: Column) -> bytes:
    return parquet.write([path, Column("add.size", LONG, 5), Column("add.modificationTime", LONG, 5)], rows_)


_BOMBS = {
    # 20 GB of paths in less than four kilobytes.
    "dictionary": lambda: _adds(20_000, Column("add.path", BYTES, b"a" * MEBIBYTE)),
    "dictionary_gzip": lambda: _adds(20_000, Column("add.path", BYTES, b"a" * MEBIBYTE, "gzip")),
    "page_of_600_mebibytes": lambda: _adds(1, Column("add.path", BYTES, b"a" * (600 * MEBIBYTE), plain=True)),
    "page_larger_than_it_says": lambda: _adds(
        1, Column("add.path", BYTES, b"a" * (600 * MEBIBYTE), "gzip", plain=True, claimed_size=100)
    ),
    "page_smaller_than_it_says": lambda: _adds(
        1, Column("add.path", BYTES, b"a" * 100, "zstd", plain=True, claimed_size=0x7FFFFFF0)
    ),
    "dictionary_smaller_than_it_says": lambda: _adds(
        1, Column("add.path", BYTES, b"a" * 100, "snappy", claimed_size=0x7FFFFFF0)
    ),
    "size_negative": lambda: _adds(1, Column("add.path", BYTES, b"a" * 100, "zstd", plain=True, claimed_size=-5)),
    "stats": lambda: parquet.write(
        [Column("add.path", BYTES, b"a"), Column("add.size", LONG, 1), Column("add.stats", BYTES, b"{" * MEBIBYTE)],
        20_000,
    ),
    "nulls": lambda: parquet.write([Column("add.path", BYTES, None), Column("add.size", LONG, None)], 100_000_000),
    "rows_in_footer": lambda: parquet.write([Column("add.path", BYTES, None)], 10, num_rows=1 << 60),
    "configuration": lambda: parquet.write(
        [Column("metaData.id", BYTES, b"a"), Column("metaData.schemaString", BYTES, b"[" * MEBIBYTE)], 20_000
    ),
}
for _name in _BOMBS:
    # Without the commits there is nothing to fall back on: `nulls` says nothing, the others lie.
    _harmless = _name in {"nulls", "rows_in_footer"}

    @case(f"bomb_checkpoint_{_name}", either(range(30), "CorruptLogError"))
    def _(folder: pathlib.Path, name: str = _name) -> None:
        """A checkpoint of a few kilobytes that expands to gigabytes; the commits are there."""
        _bomb(folder, name, drop=False)

    @case(f"bomb_checkpoint_{_name}_and_no_commits", either(range(30)) if _harmless else error())
    def _(folder: pathlib.Path, name: str = _name) -> None:
        """The same without the commits."""
        _bomb(folder, name, drop=True)

    @case(f"bomb_checkpoint_{_name}_opened", either(None), do="open")
    def _(folder: pathlib.Path, name: str = _name) -> None:
        """Opening alone, without the files."""
        _bomb(folder, name, drop=True)


def _data_bomb(folder: pathlib.Path, name: Column, count: int) -> None:
    """Write a table of one data file of `count` rows with a text that is the bomb."""
    table = log.Table(folder)
    data = parquet.write([Column("id", LONG, 7), name], count)
    (folder / "bomb.parquet").write_bytes(data)
    table.commit(0, log.protocol(), log.metadata(), log.add("bomb.parquet", len(data)))


@case("bomb_data_dictionary_streamed", either(None, count=20_000), do="stream")
def _(folder: pathlib.Path) -> None:
    """20 GB of text in four kilobytes: streamed, memory stays bounded by the batch."""
    _data_bomb(folder, Column("name", BYTES, b"a" * MEBIBYTE), 20_000)


@case("bomb_data_dictionary_streamed_as_views", either(None, count=20_000), do="stream", views=True)
def _(folder: pathlib.Path) -> None:
    """The same as string views, which share the one value."""
    _data_bomb(folder, Column("name", BYTES, b"a" * MEBIBYTE), 20_000)


@case("bomb_data_dictionary_without_the_column", rows([7] * 20_000), do="columns", columns=["id"])
def _(folder: pathlib.Path) -> None:
    """The column is not asked for, so it is not read."""
    _data_bomb(folder, Column("name", BYTES, b"a" * MEBIBYTE), 20_000)


@case("bomb_data_dictionary_counted", either(None, count=20_000), do="count")
def _(folder: pathlib.Path) -> None:
    """Counting reads no values."""
    _data_bomb(folder, Column("name", BYTES, b"a" * MEBIBYTE), 20_000)


@case("bomb_data_page", error("ResourceError", "bomb.parquet", "DELTAFAST_MEMORY_LIMIT"))
def _(folder: pathlib.Path) -> None:
    """A page of 600 MiB in a small file: the memory limit decides, since an honest text of blanks is alike."""
    _data_bomb(folder, Column("name", BYTES, b"a" * (600 * MEBIBYTE), "zstd", plain=True), 1)


@case("bomb_data_page_larger_than_it_says", error("CorruptDataError", "bomb.parquet"))
def _(folder: pathlib.Path) -> None:
    """A page that says 100 bytes and holds 600 MiB."""
    _data_bomb(folder, Column("name", BYTES, b"a" * (600 * MEBIBYTE), "gzip", plain=True, claimed_size=100), 1)


@case("bomb_data_page_smaller_than_it_says", error("CorruptDataError|ResourceError", "bomb.parquet"))
def _(folder: pathlib.Path) -> None:
    """A page that says 2 GiB and holds 100 bytes."""
    _data_bomb(folder, Column("name", BYTES, b"a" * 100, "zstd", plain=True, claimed_size=0x7FFFFFF0), 1)


@case("bomb_data_rows", either(None, count=50_000_000), do="count")
def _(folder: pathlib.Path) -> None:
    """Fifty million equal rows in a file of a few hundred bytes."""
    _data_bomb(folder, Column("name", BYTES, b"a"), 50_000_000)


# Honest tables of awkward sizes.


@case("many_files_in_a_commit", rows(count=100_000), do="files")
def _(folder: pathlib.Path) -> None:
    """100,000 adds in one commit, with statistics."""
    table = log.Table(folder)
    stats = json.dumps({"numRecords": 1, "minValues": {"id": 1}, "maxValues": {"id": 2}, "nullCount": {"id": 0}})
    table.commit(
        0,
        log.protocol(),
        log.metadata(),
        *[log.dumps(log.add(f"p{i}.parquet", i, stats=stats)) for i in range(100_000)],
    )


@case("many_partitions", rows(count=100_000), do="files")
def _(folder: pathlib.Path) -> None:
    """100,000 partition values of a hundred letters, none twice."""
    table = log.Table(folder)
    adds = [log.dumps(log.add(f"p{i}.parquet", i, partitionValues={"p": f"{i:0100}"})) for i in range(100_000)]
    table.commit(0, log.protocol(), log.metadata([*log.ID_NAME, ("p", "string")], ["p"]), *adds)


@case("many_partitions_filtered", rows(count=1), do="files", sql="p = '" + f"{77_777:0100}" + "'")
def _(folder: pathlib.Path) -> None:
    """The same, one of them asked for."""
    table = log.Table(folder)
    adds = [log.dumps(log.add(f"p{i}.parquet", i, partitionValues={"p": f"{i:0100}"})) for i in range(100_000)]
    table.commit(0, log.protocol(), log.metadata([*log.ID_NAME, ("p", "string")], ["p"]), *adds)


@case("many_partition_columns", rows(count=200), do="files")
def _(folder: pathlib.Path) -> None:
    """Five hundred partition columns."""
    table = log.Table(folder)
    names = [f"p{i}" for i in range(500)]
    adds = [log.dumps(log.add(f"f{i}.parquet", i, partitionValues=dict.fromkeys(names, str(i)))) for i in range(200)]
    table.commit(0, log.protocol(), log.metadata([*log.ID_NAME, *((n, "integer") for n in names)], names), *adds)


@case("many_partition_values_in_one_add", either([], "CorruptLogError", count=1), do="files")
def _(folder: pathlib.Path) -> None:
    """One add with 200,000 partition values, of which the table knows one."""
    table = log.Table(folder)
    add = log.add("f.parquet", 1, partitionValues={f"p{i}": "1" for i in range(200_000)})
    table.commit(0, log.protocol(), log.metadata([*log.ID_NAME, ("p7", "integer")], ["p7"]), add)


@case("many_small_commits", rows(count=2_000), do="files")
def _(folder: pathlib.Path) -> None:
    """2,000 commits and no checkpoint."""
    table = log.Table(folder)
    table.commit(0, log.protocol(), log.metadata(), log.add("p0.parquet", 1))
    for version in range(1, 2_000):
        table.commit(version, log.add(f"p{version}.parquet", 1))


@case("many_tombstones", rows(count=1), do="files")
def _(folder: pathlib.Path) -> None:
    """100,000 adds, all but one removed in the next commit."""
    table = log.Table(folder)
    table.commit(0, log.protocol(), log.metadata(), *[log.dumps(log.add(f"p{i}.parquet", i)) for i in range(100_000)])
    table.commit(1, *[log.dumps(log.remove(f"p{i}.parquet")) for i in range(1, 100_000)])


@case("many_versions_of_metadata", rows(count=1), do="files")
def _(folder: pathlib.Path) -> None:
    """A schema of 300 columns repeated in 500 commits."""
    table = log.Table(folder)
    columns = [*log.ID_NAME, *((f"c{i}", "long") for i in range(300))]
    table.commit(0, log.protocol(), log.metadata(columns), log.add("p.parquet", 1))
    for version in range(1, 500):
        table.commit(version, log.metadata(columns))


@case("many_transactions", rows(range(10)))
def _(folder: pathlib.Path) -> None:
    """100,000 applications."""
    table = log.basic(folder, 1)
    table.commit(1, *[f'{{"txn":{{"appId":"app-{i}","version":{i}}}}}' for i in range(100_000)])


@case("many_sidecars", rows(range(10)))
def _(folder: pathlib.Path) -> None:
    """A V2 checkpoint with 500 sidecars, all but one of them empty."""
    table = log.basic(folder, 1)
    table.commit(0, log.protocol(features=["v2Checkpoint"]), log.metadata(), table.actions(0, 0)[-1])
    adds = [a for a in table.actions(0, 0) if "add" in a]
    sides = [table.sidecar(adds)] + [table.sidecar([]) for _ in range(499)]
    rest = [a for a in table.actions(0, 0) if "add" not in a]
    table.v2_checkpoint(0, rest, kind="json", head=[{"checkpointMetadata": {"version": 0}}, *sides])
    table.commit(1, {"commitInfo": {}})


@case("wide_statistics", rows(count=200), do="files")
def _(folder: pathlib.Path) -> None:
    """Statistics of 2,000 columns on 200 files."""
    table = log.Table(folder)
    names = [f"c{i}" for i in range(2_000)]
    stats = json.dumps(
        {"numRecords": 1, **{k: dict.fromkeys(names, 1) for k in ("minValues", "maxValues", "nullCount")}}
    )
    adds = [log.dumps(log.add(f"p{i}.parquet", i, stats=stats)) for i in range(200)]
    table.commit(0, log.protocol(), log.metadata([(n, "long") for n in names]), *adds)


@case("long_text_in_data", rows(range(10)))
def _(folder: pathlib.Path) -> None:
    """A text of 32 MiB in one row."""
    table = log.Table(folder)
    names = ["x" * (32 * MEBIBYTE), *["y"] * 9]
    table.commit(
        0,
        log.protocol(),
        log.metadata(),
        table.data("a.parquet", {"id": pa.array(range(10), pa.int64()), "name": names}),
    )
