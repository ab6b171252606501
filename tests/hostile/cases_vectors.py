"""Deletion vectors: every field of the descriptor and every byte of the file may lie."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tablekit import dv, log

from .generate import Expect, case, either, error, rows

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

GONE = [2, 5, 7]
LEFT = [i for i in range(30) if i not in {2, 5, 7}]
DATA = dv.treemap(GONE)
BAD = "CorruptDataError|CorruptLogError"
SECRET = "root:x:0"


def _with(folder: pathlib.Path, make: Callable[[log.Table], dict[str, Any]], **changes: Any) -> None:
    """Write the basic table whose first file has the deletion vector that `make` returns."""
    table = log.basic(folder)
    add = table.actions(0, 0)[-1]["add"]
    add["deletionVector"] = make(table) | changes
    add["deletionVector"] = {k: v for k, v in add["deletionVector"].items() if v is not None}
    table.commit(0, log.protocol(features=["deletionVectors"]), log.metadata(), {"add": add})


def _frame(data: bytes = DATA, **lies: Any) -> Callable[[log.Table], dict[str, Any]]:
    return lambda t: t.vector(GONE, data=data, framed=dv.frame(data, **lies))


_RIGHT: list[tuple[str, Callable[[log.Table], dict[str, Any]], list[int]]] = [
    ("in_a_file", lambda t: t.vector(GONE), LEFT),
    ("in_a_folder", lambda t: t.vector(GONE, prefix="ab"), LEFT),
    ("by_url", lambda t: t.vector(GONE, storage="p"), LEFT),
    ("inline", lambda _: dv.inline(GONE), LEFT),
    ("of_runs", lambda t: t.vector([0, 1, 2, 3, 8, 9], run=True), [4, 5, 6, 7, *range(10, 30)]),
    ("of_everything", lambda t: t.vector(range(10)), list(range(10, 30))),
    ("of_nothing", lambda t: t.vector([]), list(range(30))),
]
for _name, _make, _ids in _RIGHT:

    @case(f"dv_{_name}", rows(_ids))
    def _(folder: pathlib.Path, make: Callable[[log.Table], dict[str, Any]] = _make) -> None:
        """A good deletion vector: the control of the cases below."""
        _with(folder, make)


_EMPTY_BUCKETS = struct.pack("<IQ", dv.MAGIC, 1)
_WRONG: list[tuple[str, Callable[[log.Table], dict[str, Any]], Expect]] = [
    ("bad_magic", _frame(struct.pack("<I", 12345) + DATA[4:]), error(BAD)),
    ("bad_magic_of_the_old_format", _frame(struct.pack("<I", 1681511376) + DATA[4:]), error(BAD)),
    ("bad_crc", _frame(crc=0), error(BAD)),
    ("bad_size", _frame(size=len(DATA) + 1), error(BAD)),
    ("size_huge_in_file", _frame(size=0x7FFFFFFF), error(BAD)),
    ("size_negative_in_file", _frame(size=-1), error(BAD)),
    ("bad_version_byte", lambda t: t.vector(GONE, version=9), error(BAD)),
    ("file_empty", lambda t: _emptied(t, b""), error(BAD)),
    ("file_of_one_byte", lambda t: _emptied(t, b"\x01"), error(BAD)),
    ("file_truncated", lambda t: _emptied(t, b"\x01" + dv.frame(DATA)[:-10]), error(BAD)),
    ("file_without_crc", lambda t: _emptied(t, b"\x01" + dv.frame(DATA)[:-4]), error(BAD)),
    ("byte_flipped", lambda t: _emptied(t, _flipped(b"\x01" + dv.frame(DATA), 40)), error(BAD)),
    ("cardinality_too_low", lambda t: t.vector(GONE, cardinality=2), error(BAD)),
    ("cardinality_too_high", lambda t: t.vector(GONE, cardinality=4), error(BAD)),
    ("cardinality_zero", lambda t: t.vector(GONE, cardinality=0), error(BAD)),
    ("cardinality_negative", lambda t: t.vector(GONE, cardinality=-3), error(BAD)),
    ("cardinality_huge", lambda t: t.vector(GONE, cardinality=1 << 62), error(BAD)),
    ("cardinality_missing", lambda t: t.vector(GONE, cardinality=None), either(LEFT, BAD)),
    ("inline_cardinality_lies", lambda _: dv.inline(GONE, 2), error(BAD)),
    ("offset_beyond_the_end", lambda t: t.vector(GONE, offset=100_000), error(BAD)),
    ("offset_negative", lambda t: t.vector(GONE, offset=-1), error(BAD)),
    ("offset_largest", lambda t: t.vector(GONE, offset=0x7FFFFFFF), error(BAD)),
    ("offset_one_off", lambda t: t.vector(GONE, offset=2), error(BAD)),
    ("size_in_log_wrong", lambda t: t.vector(GONE, sizeInBytes=len(DATA) - 4), error(BAD)),
    ("size_in_log_negative", lambda t: t.vector(GONE, sizeInBytes=-1), error(BAD)),
    ("size_in_log_huge", lambda t: t.vector(GONE, sizeInBytes=0x7FFFFFF0), error(BAD)),
    ("size_in_log_overflows", lambda t: t.vector(GONE, sizeInBytes=1 << 60), error(BAD)),
    ("storage_unknown", lambda t: t.vector(GONE, storageType="x"), error(f"{BAD}|DeltaProtocolError")),
    ("storage_empty", lambda t: t.vector(GONE, storageType=""), error(f"{BAD}|DeltaProtocolError")),
    ("storage_missing", lambda t: t.vector(GONE, storageType=None), error(BAD)),
    ("path_missing", lambda t: t.vector(GONE, pathOrInlineDv=None), error(BAD)),
    ("path_short", lambda t: t.vector(GONE, pathOrInlineDv="ab"), error(BAD)),
    ("path_no_z85", lambda t: t.vector(GONE, pathOrInlineDv="~" * 20), error(BAD)),
    ("path_not_ascii", lambda t: t.vector(GONE, pathOrInlineDv="\N{SNOWMAN}" * 20), error(BAD)),
    ("path_overflows_z85", lambda t: t.vector(GONE, pathOrInlineDv="#" * 20), error(f"{BAD}|DataFileNotFoundError")),
    (
        "file_missing",
        lambda t: t.vector(GONE, pathOrInlineDv=dv.z85(bytes(16))),
        error("DataFileNotFoundError", "00000000-0000-0000-0000-000000000000"),
    ),
    ("prefix_climbs_out", lambda t: t.vector(GONE, pathOrInlineDv="../../" + dv.z85(bytes(16))), error("DeltaError")),
    (
        "prefix_climbs_out_encoded",
        lambda t: t.vector(GONE, pathOrInlineDv="%2e%2e/" + dv.z85(bytes(16))),
        error("DeltaError"),
    ),
    (
        "url_of_the_system",
        lambda t: t.vector(GONE, storageType="p", pathOrInlineDv="file:///etc/passwd"),
        error("DeltaError"),
    ),
    (
        "url_elsewhere",
        lambda t: t.vector(GONE, storageType="p", pathOrInlineDv="https://example.com/dv.bin"),
        error("DeltaError"),
    ),
    ("url_relative", lambda t: t.vector(GONE, storageType="p", pathOrInlineDv="../dv.bin"), error("DeltaError")),
    ("url_endless", lambda t: t.vector(GONE, storageType="p", pathOrInlineDv="file:///dev/zero"), error("DeltaError")),
    ("inline_garbage", lambda _: dv.inline(GONE) | {"pathOrInlineDv": "0" * 55}, error(BAD)),
    ("inline_no_z85", lambda _: dv.inline(GONE) | {"pathOrInlineDv": "~`~`~" * 10}, error(BAD)),
    (
        "inline_truncated",
        lambda _: dv.inline(GONE) | {"pathOrInlineDv": dv.inline(GONE)["pathOrInlineDv"][:25]},
        error(BAD),
    ),  # type: ignore[index]
    (
        "inline_odd_length",
        lambda _: dv.inline(GONE) | {"pathOrInlineDv": dv.inline(GONE)["pathOrInlineDv"][:-1]},
        error(BAD),
    ),  # type: ignore[index]
    ("inline_empty", lambda _: dv.inline(GONE) | {"pathOrInlineDv": ""}, error(BAD)),
    ("inline_size_lies", lambda _: dv.inline(GONE) | {"sizeInBytes": 400}, error(BAD)),
    ("is_a_list", lambda _: {"a": [1]}, error(BAD)),
    ("row_outside_the_file", lambda t: t.vector([2, 5, 7, 5000]), error(BAD)),
    ("row_behind_the_last", lambda t: t.vector([2, 5, 7, 10]), error(BAD)),
    ("row_far_outside", lambda t: t.vector([2, 5, 7, 1 << 40]), error(BAD)),
    ("buckets_of_billions", _frame(struct.pack("<IQ", dv.MAGIC, 1 << 60) + bytes(8)), error(BAD)),
    ("containers_of_billions", _frame(_EMPTY_BUCKETS + struct.pack("<III", 0, 12346, 0xFFFFFFFF)), error(BAD)),
    ("containers_cut_off", _frame(_EMPTY_BUCKETS + struct.pack("<III", 0, 12346, 3)), error(BAD)),
    ("cookie_unknown", _frame(_EMPTY_BUCKETS + struct.pack("<III", 0, 99, 1)), error(BAD)),
    (
        "container_too_short",
        _frame(_EMPTY_BUCKETS + struct.pack("<IIIHHI", 0, 12346, 1, 0, 9, 16) + b"\x01\x00"),
        error(BAD),
    ),
    (
        "offsets_wild",
        _frame(_EMPTY_BUCKETS + struct.pack("<IIIHHIH", 0, 12346, 1, 0, 0, 0xFFFFFFFF, 2)),
        either([i for i in range(30) if i != 2], BAD),
    ),
    (
        "values_unsorted",
        _frame(_EMPTY_BUCKETS + struct.pack("<IIIHHIHHH", 0, 12346, 1, 0, 2, 16, 7, 5, 2)),
        either(LEFT, BAD),
    ),
    (
        "values_twice",
        _frame(_EMPTY_BUCKETS + struct.pack("<IIIHHIHHH", 0, 12346, 1, 0, 2, 16, 2, 2, 2)),
        either([i for i in range(30) if i != 2], BAD),
    ),
    ("trailing_bytes", _frame(DATA + bytes(16)), either(LEFT, BAD)),
]


def _emptied(table: log.Table, content: bytes) -> dict[str, Any]:
    """Write a deletion vector, then replace its file's content."""
    vector = table.vector(GONE)
    next(table.folder.glob("deletion_vector_*.bin")).write_bytes(content)
    return vector


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


for _name, _make, _expect in _WRONG:

    @case(f"dv_{_name}", _expect, secrets=(SECRET,))
    def _(folder: pathlib.Path, make: Callable[[log.Table], dict[str, Any]] = _make) -> None:
        """A deletion vector that is wrong: no row may come back, no row may be lost in silence."""
        _with(folder, make)


@case("dv_of_full_runs", either(range(10, 30), BAD))
def _(folder: pathlib.Path) -> None:
    """A vector of half a megabyte that stands for four billion rows: it must not be spread out."""
    count = 65536
    header = struct.pack("<I", 12347 | (count - 1) << 16) + b"\xff" * (count // 8)
    keys = b"".join(struct.pack("<HH", i, 0xFFFF) for i in range(count))
    start = len(header) + len(keys) + 4 * count
    offsets = b"".join(struct.pack("<I", start + 6 * i) for i in range(count))
    runs = struct.pack("<HHH", 1, 0, 0xFFFF) * count
    data = _EMPTY_BUCKETS + struct.pack("<I", 0) + header + keys + offsets + runs
    _with(folder, lambda t: t.vector(GONE, data=data, cardinality=1 << 32))


@case("dv_without_the_feature", either(LEFT, "CorruptLogError|DeltaProtocolError"))
def _(folder: pathlib.Path) -> None:
    """A deletion vector in a table whose protocol has none: applied or refused, never ignored."""
    table = log.basic(folder)
    add = table.actions(0, 0)[-1]["add"] | {"deletionVector": table.vector(GONE)}
    table.commit(0, log.protocol(), log.metadata(), {"add": add})


@case("dv_without_num_records", rows(LEFT))
def _(folder: pathlib.Path) -> None:
    """A file with a deletion vector but no statistics."""
    table = log.basic(folder)
    add = table.actions(0, 0)[-1]["add"] | {"deletionVector": table.vector(GONE)}
    del add["stats"]
    table.commit(0, log.protocol(features=["deletionVectors"]), log.metadata(), {"add": add})


@case("dv_two_of_one_file", either([i for i in range(30) if i not in {2, 5}], "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """Two adds of one path with different vectors, one removed: the other is live."""
    table = log.basic(folder)
    add = table.actions(0, 0)[-1]["add"]
    first, second = table.vector([2]), table.vector([2, 5])
    table.commit(
        0, log.protocol(features=["deletionVectors"]), log.metadata(), {"add": add | {"deletionVector": first}}
    )
    remove = log.remove("part-0.parquet", deletionVector=first)
    table.commit(3, remove, {"add": add | {"deletionVector": second}})


@case("dv_of_a_wide_file", rows(count=100_000 - 50_000))
def _(folder: pathlib.Path) -> None:
    """Every second row of 100,000 gone: a bitmap container."""
    table = log.Table(folder)
    file = table.data("wide.parquet", {"id": pa.array(range(100_000), pa.int64())}, row_group_size=7_000)
    file["add"]["deletionVector"] = table.vector(range(0, 100_000, 2))
    table.commit(0, log.protocol(features=["deletionVectors"]), log.metadata([("id", "long")]), file)


@case("dv_vectors_of_many_files_listed", either(None, f"{BAD}|DeltaProtocolError", count=1), do="vectors")
def _(folder: pathlib.Path) -> None:
    """`deletion_vectors()` of a table whose vector's row lies outside its file."""
    _with(folder, lambda t: t.vector([2, 5, 7, 1 << 33]))
