"""Checkpoints: hints while the commits are there, named in the error when they are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tablekit import log, thrift

from .damage import damages, footer, group, put
from .generate import Expect, anything, case, either, error, rows

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

FIVE = range(50)
NAME = "00000000000000000002.checkpoint"


def _broken(folder: pathlib.Path, damage: Callable[[bytes], bytes], *, drop: bool = False) -> None:
    """Write a table of five commits whose checkpoint at version 2 is damaged."""
    table = log.basic(folder, 5)
    (file,) = table.checkpoint(2)
    table.last_checkpoint(2)
    file.write_bytes(damage(file.read_bytes()))
    if drop:
        table.drop_commits(0, 1)


_DAMAGES = damages(3)
for _name, _damage in _DAMAGES.items():

    @case(f"checkpoint_{_name}", rows(FIVE))
    def _(folder: pathlib.Path, damage: Callable[[bytes], bytes] = _damage) -> None:
        """The commits are there: replay them."""
        _broken(folder, damage)


for _name in [
    "empty",
    "half",
    "text",
    "footer_length_huge",
    "footer_garbage",
    "pages_zeroed",
    "no_columns",
]:

    @case(f"checkpoint_{_name}_and_no_commits", error("CorruptLogError", NAME))
    def _(folder: pathlib.Path, damage: Callable[[bytes], bytes] = _DAMAGES[_name]) -> None:
        """Without the commits the error names the checkpoint."""
        _broken(folder, damage, drop=True)


for _seed in range(16):

    @case(f"checkpoint_bits_flipped_{_seed}", anything())
    def _(folder: pathlib.Path, seed: int = _seed) -> None:
        """A few bits flipped at places that the case's number decides."""

        def flip(data: bytes) -> bytes:
            out = bytearray(data)
            for i in range(4):
                at = (seed * 7919 + i * 104729 + seed * seed * 31) % len(out)
                out[at] ^= 1 << ((seed + i) % 8)
            return bytes(out)

        _broken(folder, flip, drop=seed % 2 == 1)


@case("checkpoint_is_a_directory", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """A folder with the name of a checkpoint."""
    table = log.basic(folder, 5)
    table.checkpoint_file(2).mkdir()
    table.last_checkpoint(2)


@case("checkpoint_is_a_symlink_loop", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """A link to itself."""
    table = log.basic(folder, 5)
    table.checkpoint_file(2).symlink_to(table.checkpoint_file(2).name)


@case("checkpoint_part_missing", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """A multi-part checkpoint without one part, while the commits are there."""
    table = log.basic(folder, 5)
    table.checkpoint(2, parts=3)[1].unlink()
    table.last_checkpoint(2, parts=3)


@case("checkpoint_part_missing_and_no_commits", error("CorruptLogError", "0000000002.0000000003"))
def _(folder: pathlib.Path) -> None:
    """The same without the commits: the error names the missing part."""
    table = log.basic(folder, 5)
    table.checkpoint(2, parts=3)[1].unlink()
    table.drop_commits(0, 1)


@case("checkpoint_part_broken", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """One part is empty."""
    table = log.basic(folder, 5)
    table.checkpoint(2, parts=3)[2].write_bytes(b"")


@case("checkpoint_part_broken_and_no_commits", error("CorruptLogError", "0000000003.0000000003"))
def _(folder: pathlib.Path) -> None:
    """One part is empty and the commits are gone."""
    table = log.basic(folder, 5)
    table.checkpoint(2, parts=3)[2].write_bytes(b"")
    table.drop_commits(0, 1)


@case("checkpoint_parts_of_two_sets", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """Parts of a set of two and of a set of three; only the set of two is whole."""
    table = log.basic(folder, 5)
    table.checkpoint(2, parts=3)[0].unlink()
    table.checkpoint(2, parts=2)
    table.drop_commits(0, 1)


@case("checkpoint_parts_with_impossible_numbers", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """Parts numbered zero, beyond their set and overflowing."""
    table = log.basic(folder, 5)
    for name in ["0000000000.0000000002", "0000000005.0000000002", "9999999999.9999999999", "0000000001.0000000000"]:
        (table.log / f"00000000000000000002.checkpoint.{name}.parquet").write_bytes(b"PAR1")


# One flipped bit in the footer: names and numbers stand there twice.

_NAMES = [("add",), ("add", "path"), ("add", "size"), ("add", "deletionVector"), ("remove",), ("metaData",), ("txn",)]


def _element(content: thrift.Struct, path: tuple[str, ...]) -> thrift.Struct:
    """Return the schema element of a column: the first of its name below its parents."""
    elements = content[2][1][1]
    at = 0
    for name in path:
        at = next(n for n in range(at + 1, len(elements)) if elements[n][4][1] == name.encode())
    return elements[at]


def _renamed(path: tuple[str, ...]) -> Callable[[thrift.Struct], object]:
    """Return a change that flips the lowest bit of the last letter of a column's name."""

    def change(content: thrift.Struct) -> None:
        element = _element(content, path)
        name = element[4][1]
        put(element, 4, name[:-1] + bytes([name[-1] ^ 1]))

    return change


def _renamed_in_group(content: thrift.Struct) -> None:
    """Flip a bit of the name of `add.path` in the row group."""
    for column in group(content)[1][1][1]:
        kind, parts = column[3][1][3][1]
        if parts == [b"add", b"path"]:
            put(column[3][1], 3, (kind, [b"add", b"qath"]))


def _nulls(content: thrift.Struct) -> None:
    """Say that `add.path` and `add.size` are null in every row, so that the row group seems to have no live files."""
    rows_ = group(content)[3][1]
    for column in group(content)[1][1][1]:
        if column[3][1][3][1][1] in ([b"add", b"path"], [b"add", b"size"]):
            statistics = column[3][1][12][1]
            put(statistics, 3, rows_)


_FLIPS = {
    **{f"{'_'.join(path)}_renamed": footer(_renamed(path)) for path in _NAMES},
    "add_path_renamed_in_the_row_group": footer(_renamed_in_group),
    "rows_of_the_group_fewer": footer(lambda f: put(group(f), 3, group(f)[3][1] - 1)),
    "rows_of_the_file_fewer": footer(lambda f: put(f, 3, f[3][1] - 1)),
}
for _name, _damage in _FLIPS.items():

    @case(f"checkpoint_{_name}", rows(FIVE))
    def _(folder: pathlib.Path, damage: Callable[[bytes], bytes] = _damage) -> None:
        """The footer contradicts itself: replay the commits."""
        _broken(folder, damage)

    @case(f"checkpoint_{_name}_and_no_commits", error("CorruptLogError", NAME, "contradicts itself"))
    def _(folder: pathlib.Path, damage: Callable[[bytes], bytes] = _damage) -> None:
        """Without the commits the error names the checkpoint."""
        _broken(folder, damage, drop=True)


@case("checkpoint_null_counts_of_all_rows", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """Null counts that leave rows without any action prove nothing."""
    _broken(folder, footer(_nulls), drop=True)


# Checkpoints that parse and hold other files than their commits: numbers elsewhere say so.


def _lying(folder: pathlib.Path, actions: Callable[[list[Any]], list[Any]], *, crc: bool, hint: bool) -> log.Table:
    """Write a table of five commits with a checkpoint at version 3 of changed actions, and right numbers of files."""
    table = log.basic(folder, 4)
    table.commit(4, {"commitInfo": {}})
    table.checkpoint(3, actions(table.actions(0, 3)))
    if crc:
        table.crc(4)
    if hint:
        table.last_checkpoint(3, 6, numOfAddFiles=4, checksummed=True)
    return table


FOUR = range(40)
_LIES: dict[str, Callable[[list[Any]], list[Any]]] = {
    "lacks_a_file": lambda actions: actions[:-1],
    "lacks_all_files": lambda actions: actions[:2],
    "has_a_file_too_many": lambda actions: [*actions, log.add("gone.parquet", 700)],
    "has_another_size": lambda actions: [*actions[:-1], log.add(actions[-1]["add"]["path"], 3)],
}
for _name, _change in _LIES.items():
    for _do in ["read", "stream", "count", "files"]:
        _expected = rows(FOUR) if _do == "read" else rows(count=4 if _do == "files" else 40)
        for _witness in ["crc", "hint"] if _name != "has_another_size" else ["crc"]:

            @case(f"checkpoint_{_name}_by_the_{_witness}_{_do}", _expected, do=_do)
            def _(folder: pathlib.Path, change: Any = _change, witness: str = _witness) -> None:
                """One file contradicts the checkpoint: the commits decide."""
                _lying(folder, change, crc=witness == "crc", hint=witness == "hint")


@case("checkpoint_lacks_a_file_by_the_number_of_actions", rows(FOUR))
def _(folder: pathlib.Path) -> None:
    """A hint without `numOfAddFiles` still has `size`."""
    table = _lying(folder, lambda actions: actions[:-1], crc=False, hint=False)
    table.last_checkpoint(3, 6)


@case("checkpoint_lacks_a_file_by_both_and_no_commits", error("CorruptLogError", "00000000000000000003.checkpoint"))
def _(folder: pathlib.Path) -> None:
    """Two files contradict the checkpoint and the commits cannot decide."""
    _lying(folder, lambda actions: actions[:-1], crc=True, hint=True).drop_commits(0, 3)


@case("checkpoint_lacks_a_file_and_an_older_one_has_it", rows(FOUR))
def _(folder: pathlib.Path) -> None:
    """An older checkpoint and the commits since then decide."""
    table = _lying(folder, lambda actions: actions[:-1], crc=True, hint=True)
    table.checkpoint(1)
    table.drop_commits(0, 1)


@case("checkpoint_right_and_hint_wrong", rows(FOUR))
def _(folder: pathlib.Path) -> None:
    """The commits confirm the checkpoint."""
    table = _lying(folder, list, crc=True, hint=False)
    table.last_checkpoint(3, 99, numOfAddFiles=99)


@case("checkpoint_right_and_hint_wrong_and_no_commits", rows(FOUR))
def _(folder: pathlib.Path) -> None:
    """The version checksum confirms the checkpoint."""
    table = _lying(folder, list, crc=True, hint=False)
    table.last_checkpoint(3, 99, numOfAddFiles=99)
    table.drop_commits(0, 3)


# Values of protocol and metadata that a flipped bit made.


def _with_values(folder: pathlib.Path, kind: str, **values: Any) -> log.Table:
    """Write a table of five commits whose checkpoint has other values in its protocol or metadata."""
    table = log.basic(folder, 5)
    actions = table.actions(0, 2)
    table.checkpoint(2, [{kind: a[kind] | values} if kind in a else a for a in actions])
    table.last_checkpoint(2, 5)
    return table


_SCHEMA = log.metadata()["metaData"]["schemaString"]
_VALUES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "schema_no_json": ("metaData", {"schemaString": _SCHEMA[1:]}, False),
    "schema_of_an_unknown_type": ("metaData", {"schemaString": _SCHEMA.replace("long", "lonf")}, False),
    "partition_column_unknown": ("metaData", {"partitionColumns": ["ie"]}, False),
    "provider": ("metaData", {"format": {"provider": "parqueu", "options": {}}}, False),
    "reader_version": ("protocol", {"minReaderVersion": 65}, False),
    "feature": (
        "protocol",
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["dfletionVectors"]},
        False,
    ),
    "column_renamed": ("metaData", {"schemaString": _SCHEMA.replace('"id"', '"ie"')}, True),
    "configuration": ("metaData", {"configuration": {"delta.columnMapping.mode": "name"}}, True),
}
for _name, (_kind, _values, _needs_crc) in _VALUES.items():

    @case(f"checkpoint_value_{_name}", rows(FIVE))
    def _(folder: pathlib.Path, kind: str = _kind, values: Any = _values, *, crc: bool = _needs_crc) -> None:
        """An invalid value is damage like any other; a valid one is found by the version checksum."""
        table = _with_values(folder, kind, **values)
        if crc:
            table.crc(4)

    if not _needs_crc:

        @case(f"checkpoint_value_{_name}_and_no_commits", error())
        def _(folder: pathlib.Path, kind: str = _kind, values: dict[str, Any] = _values) -> None:
            """Without the commits it is an error."""
            _with_values(folder, kind, **values).drop_commits(0, 2)


@case("checkpoint_falls_back_to_an_older_one", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """The newest checkpoint is broken; an older one and the commits since then suffice."""
    table = log.basic(folder, 5)
    table.checkpoint(1)
    (file,) = table.checkpoint(3)
    file.write_bytes(b"PAR1")
    table.last_checkpoint(3)
    table.drop_commits(0, 0)


@case("checkpoint_of_the_future", either(FIVE, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """A checkpoint above the newest commit: the commits after it may be gone, or it is a lie."""
    table = log.basic(folder, 5)
    table.checkpoint(4)[0].rename(table.checkpoint_file(9))


@case("checkpoint_alone", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """No commit at all, only a checkpoint."""
    table = log.basic(folder, 5)
    table.checkpoint(4)
    table.drop_commits(0, 4)


@case("checkpoint_then_gap", error("CorruptLogError", "00000000000000000003"))
def _(folder: pathlib.Path) -> None:
    """A gap above the checkpoint is an error."""
    table = log.basic(folder, 5)
    table.checkpoint(2)
    table.drop_commits(3, 3)


@case("checkpoint_after_gap", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """A gap below the checkpoint is harmless."""
    table = log.basic(folder, 5)
    table.checkpoint(3)
    table.drop_commits(1, 1)


@case("version_below_the_checkpoint", error("VersionNotFoundError", "1"), version=1)
def _(folder: pathlib.Path) -> None:
    """A version whose commits were cleaned up."""
    table = log.basic(folder, 5)
    table.checkpoint(3)
    table.drop_commits(0, 2)


# Checkpoints that can be read and say something wrong.


def _content(folder: pathlib.Path, drop: bool, **columns: pa.DataType) -> None:
    """Write a checkpoint with other column types (None leaves one out)."""
    table = log.basic(folder, 5)
    actions = table.actions(0, 2)
    kept = [a for a in actions if columns.get(next(iter(a)), 1) is not None]
    table.checkpoint(2, kept, columns=columns)
    if drop:
        table.drop_commits(0, 1)


_TYPES: list[tuple[str, dict[str, Any], Expect]] = [
    ("without_adds", {"add": None}, either(FIVE, "CorruptLogError")),
    ("without_protocol", {"protocol": None}, error("CorruptLogError", "protocol")),
    ("without_metadata", {"metaData": None}, error("CorruptLogError", "metaData")),
    ("without_optional_columns", {"txn": None, "remove": None, "domainMetadata": None}, rows(FIVE)),
]
for _name, _columns, _expect in _TYPES:
    if _name != "without_adds":

        @case(f"checkpoint_{_name}_and_no_commits", _expect)
        def _(folder: pathlib.Path, columns: dict[str, Any] = _columns) -> None:
            """A column is missing and the commits are gone."""
            _content(folder, drop=True, **columns)

    if _name != "without_adds":

        @case(f"checkpoint_{_name}", rows(FIVE))
        def _(folder: pathlib.Path, columns: dict[str, Any] = _columns) -> None:
            """A column is missing; the commits hold what it lacks."""
            _content(folder, drop=False, **columns)


def _rewritten(folder: pathlib.Path, change: Callable[[pa.Table], pa.Table], *, drop: bool) -> None:
    """Write a checkpoint whose rows are changed after building them."""
    table = log.basic(folder, 5)
    pq.write_table(change(log.checkpoint_table(table.actions(0, 2))), table.checkpoint_file(2))
    if drop:
        table.drop_commits(0, 1)


def _replace_add(table: pa.Table, array: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index("add"), "add", array)


def _add_field(table: pa.Table, name: str, kind: pa.DataType, value: Any) -> pa.Table:
    """Return the rows with another type and value for a field of `add`."""
    adds = [None if a is None else (dict(a) | {name: value}) for a in table.column("add").to_pylist()]
    fields = [pa.field(f.name, kind if f.name == name else f.type) for f in log.ADD]
    return _replace_add(table, pa.array(adds, pa.struct(fields)))


_WRONG: list[tuple[str, Callable[[pa.Table], pa.Table]]] = [
    ("add_is_a_number", lambda t: _replace_add(t, pa.array(range(len(t))))),
    ("add_is_a_list", lambda t: _replace_add(t, pa.array([[1]] * len(t)))),
    ("path_is_a_number", lambda t: _add_field(t, "path", pa.int64(), 7)),
    ("path_is_null", lambda t: _add_field(t, "path", pa.string(), None)),
    ("path_is_no_utf8", lambda t: _add_field(t, "path", pa.binary(), b"\xff\xfe")),
    ("size_is_text", lambda t: _add_field(t, "size", pa.string(), "big")),
    ("size_is_negative", lambda t: _add_field(t, "size", pa.int64(), -1)),
    ("partition_values_are_text", lambda t: _add_field(t, "partitionValues", pa.string(), "x")),
    ("stats_are_a_number", lambda t: _add_field(t, "stats", pa.int64(), 7)),
]
for _name, _change in _WRONG:
    # Nobody needs statistics, nor the partition values of a table without partitions.
    _harmless = _name.startswith(("stats", "partition_values"))

    @case(f"checkpoint_{_name}", rows(FIVE))
    def _(folder: pathlib.Path, change: Callable[[pa.Table], pa.Table] = _change) -> None:
        """A column has a wrong type or value; the commits are there."""
        _rewritten(folder, change, drop=False)

    @case(
        f"checkpoint_{_name}_and_no_commits",
        either(FIVE, "CorruptLogError", NAME) if _harmless else error("CorruptLogError", NAME),
    )
    def _(folder: pathlib.Path, change: Callable[[pa.Table], pa.Table] = _change) -> None:
        """The same without the commits."""
        _rewritten(folder, change, drop=True)


@case("checkpoint_with_unknown_columns", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """Columns and fields of a later protocol are ignored."""
    _rewritten(folder, lambda t: t.append_column("future", pa.array([{"path": "x"}] * len(t))), drop=True)


def _large_path(table: pa.Table) -> pa.Table:
    """Return the rows with paths as large strings."""
    fields = [pa.field(f.name, pa.large_string() if f.name == "path" else f.type) for f in log.ADD]
    return _replace_add(table, pa.array(table.column("add").to_pylist(), pa.struct(fields)))


@case("checkpoint_with_large_strings", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """Paths as large strings, which only changes the Arrow schema stored in the footer."""
    _rewritten(folder, _large_path, drop=True)


@case("checkpoint_names_a_file_twice", either(FIVE, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """Two rows for one file: it must not be read twice."""
    table = log.basic(folder, 5)
    actions = table.actions(0, 2)
    table.checkpoint(2, [*actions, actions[-1]])
    table.drop_commits(0, 1)


@case("checkpoint_adds_and_removes_a_file", either(FIVE, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """An add and a tombstone of one file in a checkpoint."""
    table = log.basic(folder, 5)
    table.checkpoint(2, [*table.actions(0, 2), log.remove("part-0.parquet")])
    table.drop_commits(0, 1)


@case("checkpoint_has_two_protocols", either(FIVE, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """Two protocol rows."""
    table = log.basic(folder, 5)
    table.checkpoint(2, [log.protocol(), *table.actions(0, 2)])
    table.drop_commits(0, 1)


@case("checkpoint_has_no_rows", error("CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """An empty checkpoint and no commits."""
    table = log.basic(folder, 5)
    table.checkpoint(2, [])
    table.drop_commits(0, 1)


@case("checkpoint_needs_an_unknown_feature", error("DeltaProtocolError", "quantumRows"))
def _(folder: pathlib.Path) -> None:
    """The protocol in the checkpoint is above us."""
    table = log.basic(folder, 5)
    actions = [log.protocol(features=["quantumRows"]), *[a for a in table.actions(0, 2) if "protocol" not in a]]
    table.checkpoint(2, actions)
    table.drop_commits(0, 1)


# Parsed statistics that lie about their types.

for _name, _kind, _value in [
    ("text", pa.string(), "broken"),
    ("number", pa.int64(), 7),
    ("struct_of_nothing", pa.struct([("x", pa.int64())]), {"x": 1}),
    (
        "wrong_bounds",
        pa.struct([("numRecords", pa.string()), ("minValues", pa.int64())]),
        {"numRecords": "x", "minValues": 1},
    ),
    ("wrong_columns", pa.struct([("minValues", pa.struct([("id", pa.string())]))]), {"minValues": {"id": "x"}}),
]:

    @case(f"stats_parsed_{_name}", rows(range(25, 50)), do="filter", sql="id >= 25")
    def _(folder: pathlib.Path, kind: pa.DataType = _kind, value: object = _value) -> None:
        """Parsed statistics of a wrong shape do not prune and are no error."""
        table = log.basic(folder, 5)
        rows_ = log.checkpoint_table(table.actions(0, 4))
        adds = [
            None if a is None else (dict(a) | {"stats_parsed": value, "stats": None})
            for a in rows_.column("add").to_pylist()
        ]
        fields = [*log.ADD, pa.field("stats_parsed", kind)]
        pq.write_table(_replace_add(rows_, pa.array(adds, pa.struct(fields))), table.checkpoint_file(4))
        table.drop_commits(0, 4)


# V2 checkpoints and sidecars.


def _v2(folder: pathlib.Path, *, drop: bool = True, **options: Any) -> tuple[log.Table, pathlib.Path]:
    """Return a table of five commits with a V2 checkpoint at version 3."""
    table = log.basic(folder, 5)
    table.commit(0, log.protocol(features=["v2Checkpoint"]), log.metadata(), table.actions(0, 0)[-1])
    file = table.v2_checkpoint(3, **options)
    if drop:
        table.drop_commits(0, 2)
    return table, file


def _sidecars(table: log.Table) -> list[pathlib.Path]:
    return sorted((table.log / "_sidecars").iterdir())


for _kind in ["json", "parquet"]:
    for _count in [0, 3]:

        @case(f"v2_{_kind}_with_{_count}_sidecars", rows(FIVE))
        def _(folder: pathlib.Path, kind: str = _kind, count: int = _count) -> None:
            """A good V2 checkpoint: the control of the cases below."""
            _v2(folder, kind=kind, sidecars=count)

    @case(f"v2_{_kind}_sidecar_missing", rows(FIVE))
    def _(folder: pathlib.Path, kind: str = _kind) -> None:
        """A sidecar is missing, the commits are there."""
        table, _ = _v2(folder, kind=kind, sidecars=3, drop=False)
        _sidecars(table)[1].unlink()

    @case(f"v2_{_kind}_sidecar_missing_and_no_commits", error("CorruptLogError", "_sidecars"))
    def _(folder: pathlib.Path, kind: str = _kind) -> None:
        """A sidecar is missing and the commits are gone: the error names it."""
        table, _ = _v2(folder, kind=kind, sidecars=3)
        _sidecars(table)[1].unlink()

    @case(f"v2_{_kind}_sidecar_truncated", rows(FIVE))
    def _(folder: pathlib.Path, kind: str = _kind) -> None:
        """A sidecar is cut off, the commits are there."""
        table, _ = _v2(folder, kind=kind, sidecars=3, drop=False)
        one = _sidecars(table)[1]
        one.write_bytes(one.read_bytes()[:100])

    @case(f"v2_{_kind}_sidecar_garbage_and_no_commits", error("CorruptLogError", ".parquet"))
    def _(folder: pathlib.Path, kind: str = _kind) -> None:
        """A sidecar is garbage."""
        table, _ = _v2(folder, kind=kind, sidecars=3)
        _sidecars(table)[1].write_bytes(b"garbage" * 100)

    @case(f"v2_{_kind}_garbage", rows(FIVE))
    def _(folder: pathlib.Path, kind: str = _kind) -> None:
        """The checkpoint itself is garbage, the commits are there."""
        _v2(folder, kind=kind, drop=False)[1].write_bytes(b"garbage" * 100)

    @case(f"v2_{_kind}_garbage_and_no_commits", error("CorruptLogError", "80a083e8"))
    def _(folder: pathlib.Path, kind: str = _kind) -> None:
        """The checkpoint itself is garbage and the commits are gone."""
        _v2(folder, kind=kind)[1].write_bytes(b"garbage" * 100)


def _top(folder: pathlib.Path, *actions: log.Action) -> log.Table:
    """Return a table whose V2 checkpoint holds these actions besides protocol, metadata and three inline adds."""
    return _v2(folder, kind="json", head=[{"checkpointMetadata": {"version": 3}}, *actions])[0]


def _side(path: Any, size: Any = 100) -> log.Action:
    return {"sidecar": {"path": path, "sizeInBytes": size, "modificationTime": 1}}


for _name, _path in [
    ("climbs_out", "../../../outside.parquet"),
    ("climbs_out_encoded", "%2e%2e/%2E%2E/outside.parquet"),
    ("of_the_system", "/etc/passwd"),
    ("of_the_system_by_url", "file:///etc/passwd"),
    ("elsewhere", "https://example.com/outside.parquet"),
    ("empty", ""),
    ("folder", "."),
    ("number", 7),
    ("null", None),
]:

    @case(f"v2_sidecar_path_{_name}", error("DeltaError"))
    def _(folder: pathlib.Path, path: object = _path) -> None:
        """A sidecar whose path leads elsewhere."""
        _top(folder, _side(path))


@case("v2_sidecar_path_absolute", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """Sidecar paths may be full URIs."""
    table = log.basic(folder, 5)
    table.commit(0, log.protocol(features=["v2Checkpoint"]), log.metadata(), table.actions(0, 0)[-1])
    adds = [a for a in table.actions(0, 3) if "add" in a]
    side = table.sidecar(adds)
    side["sidecar"]["path"] = (table.log / "_sidecars" / side["sidecar"]["path"]).as_uri()
    rest = [a for a in table.actions(0, 3) if "add" not in a]
    table.v2_checkpoint(3, rest, kind="json", head=[{"checkpointMetadata": {"version": 3}}, side])
    table.drop_commits(0, 3)


for _name, _size in [("zero", 0), ("negative", -5), ("huge", 1 << 60), ("text", "many")]:

    @case(f"v2_sidecar_size_{_name}", either(FIVE, "CorruptLogError"))
    def _(folder: pathlib.Path, size: object = _size) -> None:
        """A sidecar whose size is a lie."""
        table = log.basic(folder, 5)
        table.commit(0, log.protocol(features=["v2Checkpoint"]), log.metadata(), table.actions(0, 0)[-1])
        side = table.sidecar([a for a in table.actions(0, 3) if "add" in a])
        side["sidecar"]["sizeInBytes"] = size
        rest = [a for a in table.actions(0, 3) if "add" not in a]
        table.v2_checkpoint(3, rest, kind="json", head=[{"checkpointMetadata": {"version": 3}}, side])
        table.drop_commits(0, 3)


@case("v2_sidecar_named_twice", either(FIVE, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """One sidecar named twice: its files must not be read twice."""
    table = log.basic(folder, 5)
    table.commit(0, log.protocol(features=["v2Checkpoint"]), log.metadata(), table.actions(0, 0)[-1])
    side = table.sidecar([a for a in table.actions(0, 3) if "add" in a])
    rest = [a for a in table.actions(0, 3) if "add" not in a]
    table.v2_checkpoint(3, rest, kind="json", head=[{"checkpointMetadata": {"version": 3}}, side, side])
    table.drop_commits(0, 3)


@case("v2_sidecar_names_itself", either(FIVE, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """A sidecar that holds a sidecar action: sidecars have none, and a reader that follows runs for ever."""
    table = log.basic(folder, 5)
    table.commit(0, log.protocol(features=["v2Checkpoint"]), log.metadata(), table.actions(0, 0)[-1])
    adds = [a for a in table.actions(0, 3) if "add" in a]
    side = table.sidecar([*adds, _side("loop.parquet")], "loop.parquet", sidecar=log.SIDECAR)
    rest = [a for a in table.actions(0, 3) if "add" not in a]
    table.v2_checkpoint(3, rest, kind="json", head=[{"checkpointMetadata": {"version": 3}}, side])
    table.drop_commits(0, 3)


@case("v2_without_checkpoint_metadata", either(FIVE, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """The mandatory action is missing."""
    _v2(folder, kind="json", head=[])


@case("v2_with_two_checkpoint_metadata", either(FIVE, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """The mandatory action stands there twice."""
    _top(folder, {"checkpointMetadata": {"version": 3}})


@case("v2_of_another_version", either(FIVE, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """The action names another version than the file."""
    _v2(folder, kind="json", head=[{"checkpointMetadata": {"version": 77}}])


@case("v2_without_the_feature", either(FIVE, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """A V2 checkpoint in a table whose protocol does not name it."""
    table = log.basic(folder, 5)
    table.v2_checkpoint(3, kind="json")
    table.drop_commits(0, 2)


@case("v2_json_truncated", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """Cut off in the middle of a line."""
    file = _v2(folder, kind="json", drop=False)[1]
    file.write_bytes(file.read_bytes()[:-40])


@case("v2_json_cut_at_a_line", anything())
def _(folder: pathlib.Path) -> None:
    """Cut off between two lines: nothing in the file shows it, so any answer is as good as another."""
    file = _v2(folder, kind="json", drop=False)[1]
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))


@case("v2_several_of_one_version", rows(FIVE))
def _(folder: pathlib.Path) -> None:
    """Several checkpoints of one version, one broken: any complete one will do."""
    table, _ = _v2(folder, kind="json", drop=False)
    table.v2_checkpoint(3, kind="parquet", name="11111111-7026-4e79-81be-64bd76c43a11")
    table.v2_checkpoint(3, kind="json", name="00000000-7026-4e79-81be-64bd76c43a11").write_bytes(b"broken")
    table.drop_commits(0, 2)
