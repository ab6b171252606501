"""`_last_checkpoint`, version checksums and log compactions: hints, so a wrong one costs time and never rows."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from tablekit import log

from .generate import MEBIBYTE, case, either, error, rows

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

FIVE = range(50)


def _checkpointed(folder: pathlib.Path, *, drop: bool = False) -> log.Table:
    """Return a table of five commits with a checkpoint at version 2."""
    table = log.basic(folder, 5)
    table.checkpoint(2)
    if drop:
        table.drop_commits(0, 1)
    return table


def _hint(folder: pathlib.Path, text: str | bytes, *, drop: bool = False) -> None:
    """Write such a table with a hint of this text."""
    table = _checkpointed(folder, drop=drop)
    (table.log / "_last_checkpoint").write_bytes(text if isinstance(text, bytes) else text.encode())


_RIGHT = '{"version":2,"size":5}'
_STRINGS: list[tuple[str, str | bytes]] = [
    ("right", _RIGHT),
    ("empty", ""),
    ("truncated", _RIGHT[:12]),
    ("garbage", b"\x00\xff\xfe" * 100),
    ("text", "version 2"),
    ("list", "[2]"),
    ("number", "2"),
    ("null", "null"),
    ("empty_object", "{}"),
    ("version_missing", '{"size":5}'),
    ("version_null", '{"version":null,"size":5}'),
    ("version_text", '{"version":"2","size":5}'),
    ("version_negative", '{"version":-2,"size":5}'),
    ("version_fraction", '{"version":2.5,"size":5}'),
    ("version_without_checkpoint", '{"version":1,"size":5}'),
    ("version_of_the_future", '{"version":99,"size":5}'),
    ("version_largest", '{"version":9223372036854775807,"size":5}'),
    ("version_overflow", '{"version":99999999999999999999999,"size":5}'),
    ("version_twice", '{"version":99,"size":5,"version":2}'),
    ("parts_of_a_single_file", '{"version":2,"size":5,"parts":3}'),
    ("parts_zero", '{"version":2,"size":5,"parts":0}'),
    ("parts_negative", '{"version":2,"size":5,"parts":-1}'),
    ("parts_huge", '{"version":2,"size":5,"parts":2147483647}'),
    ("size_lies", '{"version":2,"size":-7,"sizeInBytes":1,"numOfAddFiles":99999}'),
    ("size_text", '{"version":2,"size":"five"}'),
    ("size_missing", '{"version":2}'),
    ("checksum_wrong", '{"version":2,"size":5,"checksum":"00000000000000000000000000000000"}'),
    ("checksum_short", '{"version":2,"size":5,"checksum":"0"}'),
    ("checksum_number", '{"version":2,"size":5,"checksum":5}'),
    (
        "future_with_right_checksum",
        json.dumps({"version": 99, "size": 5, "checksum": log.checksum({"version": 99, "size": 5})}),
    ),
    ("trailing_text", _RIGHT + " and more"),
    ("byte_order_mark", "\N{ZERO WIDTH NO-BREAK SPACE}" + _RIGHT),
    ("deep", '{"version":2,"size":5,"tags":' + "[" * 100_000 + "]" * 100_000 + "}"),
    (
        "schema_lies",
        '{"version":2,"size":5,"checkpointSchema":{"type":"struct","fields":[{"name":"nothing","type":"long"}]}}',
    ),
    (
        "v2_without_file",
        '{"version":2,"size":5,"v2Checkpoint":{"path":"00000000000000000002.checkpoint.x.json","sizeInBytes":1}}',
    ),
    ("v2_path_climbs_out", '{"version":2,"size":5,"v2Checkpoint":{"path":"../../../etc/passwd","sizeInBytes":1}}'),
    (
        "v2_path_elsewhere",
        '{"version":2,"size":5,"v2Checkpoint":{"path":"https://example.com/x.json","sizeInBytes":1}}',
    ),
    ("v2_list", '{"version":2,"size":5,"v2Checkpoint":[1,2]}'),
    (
        "v2_actions_lie",
        (
            '{"version":2,"size":5,"v2Checkpoint":{"path":"a","nonFileActions":[{"protocol":{"minReaderVersion":99}}],'
            '"sidecarFiles":[{"path":"nothing.parquet","sizeInBytes":5,"modificationTime":1}]}}'
        ),
    ),
]
for _name, _text in _STRINGS:

    @case(f"hint_{_name}", rows(FIVE))
    def _(folder: pathlib.Path, text: str | bytes = _text) -> None:
        """Whatever `_last_checkpoint` says: a full listing finds the truth."""
        _hint(folder, text)


for _name in [
    "garbage",
    "version_of_the_future",
    "version_without_checkpoint",
    "parts_huge",
    "checksum_wrong",
    "v2_path_climbs_out",
]:

    @case(f"hint_{_name}_and_no_commits", rows(FIVE))
    def _(folder: pathlib.Path, text: str | bytes = dict(_STRINGS)[_name]) -> None:
        """The same when only the checkpoint holds the first commits."""
        _hint(folder, text, drop=True)


@case("hint_of_64_mebibytes", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """A hint far larger than any real one."""
    _hint(folder, '{"version":2,"size":5,"x":"' + "a" * (64 * MEBIBYTE) + '"}')


@case("hint_is_a_directory", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """A folder."""
    (_checkpointed(folder).log / "_last_checkpoint").mkdir()


@case("hint_is_a_symlink_loop", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """A link to itself."""
    (_checkpointed(folder).log / "_last_checkpoint").symlink_to("_last_checkpoint")


@case("hint_behind_a_newer_checkpoint", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """The hint names an old checkpoint, the commits between it and the newer one are gone."""
    table = log.basic(folder, 5)
    table.checkpoint(1)
    table.checkpoint(4)
    table.last_checkpoint(1)
    table.drop_commits(0, 3)


# Version checksums.


def _crc(folder: pathlib.Path, write: Callable[[log.Table], object]) -> None:
    """Write the basic table with a checksum of its last version."""
    table = log.basic(folder, 5)
    write(table)


_OTHER_SCHEMA = log.metadata([("id", "string"), ("other", "long")])["metaData"]
_LIES: list[tuple[str, dict[str, Any]]] = [
    ("nothing", {}),
    ("files", {"numFiles": 1, "tableSizeBytes": 1}),
    ("negative_files", {"numFiles": -1, "tableSizeBytes": -1}),
    ("no_protocol", {"protocol": None, "metadata": None}),
    ("protocol", {"protocol": log.protocol(99, 99)["protocol"]}),
    ("unknown_feature", {"protocol": log.protocol(features=["quantumRows"])["protocol"]}),
    ("schema", {"metadata": _OTHER_SCHEMA}),
    ("partitioning", {"metadata": log.metadata(partition_by=["name"])["metaData"]}),
    ("types", {"metadata": [1], "protocol": "x", "numFiles": "many"}),
    ("transactions", {"setTransactions": [{"appId": "liar", "version": 7}]}),
    ("domains", {"domainMetadata": [{"domain": "liar", "configuration": "{}", "removed": False}]}),
    (
        "all_files",
        {
            "allFiles": [
                {"path": "nothing.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
            ]
        },
    ),
    ("histogram", {"histogramOpt": {"sortedBinBoundaries": [5, 1], "fileCounts": [], "totalBytes": "x"}}),
    ("timestamp", {"inCommitTimestampOpt": "yesterday"}),
]
for _name, _lies in _LIES:

    @case(f"checksum_lies_about_{_name}", rows(FIVE))
    def _(folder: pathlib.Path, lies: dict[str, Any] = _lies) -> None:
        """A checksum that contradicts the log is ignored; the log is right."""
        _crc(folder, lambda t: t.crc(4, **lies))

    @case(f"checksum_lies_about_{_name}_over_a_checkpoint", rows(FIVE))
    def _(folder: pathlib.Path, lies: dict[str, Any] = _lies) -> None:
        """The same where the first commits are in a checkpoint, which is right too."""
        table = log.basic(folder, 5)
        table.checkpoint(4)
        table.crc(4, **lies)


@case("checksum_of_an_old_version_lies", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """A checksum below the latest version that claims another schema."""
    _crc(folder, lambda t: t.crc(2, metadata=_OTHER_SCHEMA))


@case("checksum_of_the_future", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """A checksum of a version without commit."""
    table = log.basic(folder, 5)
    table.crc(4).rename(table.log / "00000000000000000009.crc")


for _name, _content in [
    ("empty", b""),
    ("garbage", b"\xff\x00" * 500),
    ("truncated", b'{"tableSizeBytes":5,"numFi'),
    ("list", b"[]"),
    ("deep", b'{"metadata":' + b"[" * 100_000),
    ("of_32_mebibytes", b'{"x":"' + b"a" * (32 * MEBIBYTE) + b'"}'),
]:

    @case(f"checksum_{_name}", rows(FIVE))
    def _(folder: pathlib.Path, content: bytes = _content) -> None:
        """An unreadable checksum is not an error."""
        (log.basic(folder, 5).log / "00000000000000000004.crc").write_bytes(content)


@case("checksum_is_a_directory", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """A folder."""
    (log.basic(folder, 5).log / "00000000000000000004.crc").mkdir()


# Log compactions.


def _compacted(folder: pathlib.Path) -> tuple[log.Table, pathlib.Path]:
    """Return a table of five commits, one of them a remove, and a compaction of versions 1 to 3."""
    table = log.basic(folder, 4)
    table.commit(4, log.remove("part-1.parquet"))
    return table, table.compacted(1, 3)


LEFT = [*range(10), *range(20, 40)]


@case("compaction_right", rows(LEFT))
def _(folder: pathlib.Path) -> None:
    """A good compaction."""
    _compacted(folder)


for _name, _content in [
    ("empty", b""),
    ("garbage", b"\xff\x00" * 500),
    ("truncated", b'{"add":{"path":"part-1.pa'),
    ("not_actions", b"[]\n42\n"),
]:

    @case(f"compaction_{_name}", rows(LEFT))
    def _(folder: pathlib.Path, content: bytes = _content) -> None:
        """An unusable compaction: the commits are there."""
        _compacted(folder)[1].write_bytes(content)


@case("compaction_is_a_directory", rows(LEFT))
def _(folder: pathlib.Path) -> None:
    """A folder with the name of a compaction."""
    file = _compacted(folder)[1]
    file.unlink()
    file.mkdir()


for _name, _range in [
    ("backwards", "00000000000000000003.00000000000000000001"),
    ("of_one_version", "00000000000000000002.00000000000000000002"),
    ("beyond_the_end", "00000000000000000003.00000000000000000009"),
    ("overflow", "00000000000000000001.99999999999999999999"),
]:

    @case(f"compaction_{_name}", rows(LEFT))
    def _(folder: pathlib.Path, name: str = _range) -> None:
        """A compaction whose range is impossible or reaches past the table."""
        table, file = _compacted(folder)
        if name.startswith("00000000000000000002"):
            file.write_text("".join(log.dumps(a) + "\n" for a in table.actions(2, 2)), "utf-8")
        file.rename(table.log / f"{name}.compacted.json")


@case("compaction_unreconciled", rows(LEFT))
def _(folder: pathlib.Path) -> None:
    """A compaction that holds the commits one after the other, as some writers make it."""
    table = log.basic(folder, 4)
    table.commit(4, log.remove("part-1.parquet"))
    lines = [line for v in (1, 2, 3, 4) for line in table.commit_file(v).read_text("utf-8").splitlines()]
    table.compacted(1, 4, lines)


@case("compaction_unreconciled_newest_first", rows(LEFT))
def _(folder: pathlib.Path) -> None:
    """The same, the newest commit first."""
    table = log.basic(folder, 4)
    table.commit(4, log.remove("part-1.parquet"))
    lines = [line for v in (4, 3, 2, 1) for line in table.commit_file(v).read_text("utf-8").splitlines()]
    table.compacted(1, 4, lines)


for _do in ["files", "count", "stream"]:

    @case(f"compaction_unreconciled_{_do}", rows(count=3 if _do == "files" else 30), do=_do)
    def _(folder: pathlib.Path) -> None:
        """The add and the remove of a file, the remove first."""
        table = log.basic(folder, 4)
        table.commit(4, log.remove("part-1.parquet"))
        table.compacted(1, 4, [*reversed(table.actions(1, 4)), *table.actions(1, 1)])


@case("compactions_overlap", rows(LEFT))
def _(folder: pathlib.Path) -> None:
    """Two compactions whose ranges overlap."""
    table, _ = _compacted(folder)
    table.compacted(2, 4)
    table.compacted(0, 1)


@case("compaction_replaces_lost_commits", either(LEFT, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """The compacted commits are gone: the compaction can stand for them, or the gap is named."""
    _compacted(folder)[0].drop_commits(2, 2)


@case("compaction_broken_and_commits_lost", error("CorruptLogError", "00000000000000000002"))
def _(folder: pathlib.Path) -> None:
    """Neither can be read."""
    table, file = _compacted(folder)
    file.write_bytes(b"{")
    table.drop_commits(2, 2)


# Files of 20 GiB that take no room: nobody may read them whole, and as hints they are ignored.

SPARSE = 20 << 30


def _sparse(file: pathlib.Path, content: bytes = b"") -> None:
    """Write a file that ends in zeros, 20 GiB long."""
    file.write_bytes(content)
    os.truncate(file, SPARSE)


@case("hint_of_20_gibibytes", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """A hint that begins as it should."""
    _sparse(_checkpointed(folder).log / "_last_checkpoint", _RIGHT.encode())


@case("checksum_of_20_gibibytes", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """A version checksum."""
    _sparse(log.basic(folder, 5).log / "00000000000000000004.crc")


for _length, _content in [("", b""), ("_after_a_line", b'{"commitInfo":{}}\n')]:

    @case(f"compaction_of_20_gibibytes{_length}", rows(LEFT))
    def _(folder: pathlib.Path, content: bytes = _content) -> None:
        """A log compaction."""
        _sparse(_compacted(folder)[1], content)

    @case(f"json_checkpoint_of_20_gibibytes{_length}", rows(FIVE))
    def _(folder: pathlib.Path, content: bytes = _content) -> None:
        """The manifest of a V2 checkpoint."""
        table = log.basic(folder, 5)
        _sparse(table.log / "00000000000000000002.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", content)

    @case(f"json_checkpoint_of_3_gibibytes{_length}", rows(FIVE))
    def _(folder: pathlib.Path, content: bytes = _content) -> None:
        """One short enough to be read."""
        table = log.basic(folder, 5)
        file = table.log / "00000000000000000002.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
        _sparse(file, content)
        os.truncate(file, 3 << 30)


@case("checkpoint_of_20_gibibytes", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """A Parquet checkpoint."""
    table = log.basic(folder, 5)
    _sparse(table.checkpoint_file(2), b"PAR1")


@case("commit_of_20_gibibytes", error("CorruptLogError", "00000000000000000004.json", "zero bytes"))
def _(folder: pathlib.Path) -> None:
    """A commit of zeros."""
    _sparse(log.basic(folder, 5).commit_file(4))


@case("commit_of_20_gibibytes_after_a_line", error("CorruptLogError", "00000000000000000004.json"))
def _(folder: pathlib.Path) -> None:
    """A commit whose lines are followed by zeros."""
    table = log.basic(folder, 5)
    _sparse(table.commit_file(4), table.commit_file(4).read_bytes())


for _do in ["files", "count", "history"]:

    @case(f"commit_of_20_gibibytes_{_do}", error("CorruptLogError", "00000000000000000004.json"), do=_do)
    def _(folder: pathlib.Path) -> None:
        """The same under other steps."""
        _sparse(log.basic(folder, 5).commit_file(4))
