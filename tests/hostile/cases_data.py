"""Data files that are broken, or hold something else than the log says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tablekit import log, thrift

from .damage import damages, footer, group, put
from .generate import Expect, anything, case, either, error, rows

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

ALL = range(30)
BAD = "CorruptDataError"
FILE = "part-1.parquet"


def _damaged(folder: pathlib.Path, damage: Callable[[bytes], bytes], *, keep_size: bool = False) -> None:
    """Write the basic table and damage its second file; the log's size follows unless `keep_size`."""
    table = log.basic(folder)
    file = folder / FILE
    file.write_bytes(damage(file.read_bytes()))
    if not keep_size:
        add = table.actions(1, 1)[0]
        add["add"]["size"] = file.stat().st_size
        table.commit(1, add)


# What is not simply an error that names the file.
_OTHERWISE = {
    "encrypted": error(f"{BAD}|DeltaProtocolError", FILE),
    "rows_of_billions": either(ALL, BAD, FILE),
    "values_of_billions": either(ALL, BAD, FILE),
    "data_pages_outside": either(ALL, BAD, FILE),
}
for _name, _damage in damages(0).items():

    @case(f"data_{_name}", _OTHERWISE.get(_name, error(BAD, FILE)))
    def _(folder: pathlib.Path, damage: Callable[[bytes], bytes] = _damage) -> None:
        """A data file that is damaged: an error that names it."""
        _damaged(folder, damage)


@case("data_rows_too_few", anything())
def _(folder: pathlib.Path) -> None:
    """A row group that says it has fewer rows than its columns."""
    _damaged(folder, footer(lambda f: put(group(f), 3, 3)))


@case("data_truncated_since_the_commit", error(f"{BAD}|CorruptLogError", FILE))
def _(folder: pathlib.Path) -> None:
    """The file is shorter than the log says."""
    _damaged(folder, lambda d: d[: len(d) // 2], keep_size=True)


@case("data_grown_since_the_commit", either(ALL, BAD, FILE))
def _(folder: pathlib.Path) -> None:
    """Bytes after the end."""
    _damaged(folder, lambda d: d + bytes(100), keep_size=True)


def _pages(data: bytes) -> list[tuple[int, int, int]]:
    """Return where each page's header starts, its body starts and its body ends."""
    pages = []
    for chunk in group(thrift.footer(data))[1][1][1]:
        column = chunk[3][1]
        at = min(column[k][1] for k in (9, 11) if k in column)
        end = at + column[7][1]
        while at < end:
            header, length = thrift.decode_prefix(data[at:end])
            pages.append((at, at + length, at + length + header[3][1]))
            at = pages[-1][2]
    return pages


def _checked(folder: pathlib.Path, pick: Callable[[list[tuple[int, int, int]]], int], **options: Any) -> None:
    """Write the basic table, its second file with page checksums and a byte flipped at the place that `pick` gives."""
    table = log.basic(folder)
    ids = pa.array(range(10, 20), pa.int64())
    names = pa.array([f"n{i}" for i in range(10, 20)])
    add = table.data(FILE, {"id": ids, "name": names}, write_page_checksum=True, **options)
    table.commit(1, add)
    data = bytearray((folder / FILE).read_bytes())
    data[pick(_pages(bytes(data)))] ^= 0x10
    (folder / FILE).write_bytes(bytes(data))


_WRITERS: dict[str, dict[str, Any]] = {
    "plain": {"use_dictionary": False, "compression": "none"},
    "dictionary": {"use_dictionary": True, "compression": "none"},
    "version_two": {"use_dictionary": False, "data_page_version": "2.0"},
    **{codec: {"compression": codec} for codec in ("snappy", "zstd", "gzip", "lz4", "brotli")},
}
for _name, _options in _WRITERS.items():
    for _place, _fraction in [("start", 0.0), ("middle", 0.5), ("end", 0.999)]:

        @case(f"data_byte_flipped_{_name}_at_the_{_place}_of_a_page", error(BAD, FILE))
        def _(folder: pathlib.Path, options: dict[str, Any] = _options, fraction: float = _fraction) -> None:
            """A flipped byte under a page checksum: never other values."""
            _checked(folder, lambda pages: int(pages[0][1] + fraction * (pages[0][2] - pages[0][1])), **options)

    @case(f"data_byte_flipped_{_name}_in_the_last_page", error(BAD, FILE))
    def _(folder: pathlib.Path, options: dict[str, Any] = _options) -> None:
        """The same in the last page of the last column."""
        _checked(folder, lambda pages: (pages[-1][1] + pages[-1][2]) // 2, **options)

    @case(f"data_byte_flipped_{_name}_in_a_page_header", either(ALL, BAD, FILE))
    def _(folder: pathlib.Path, options: dict[str, Any] = _options) -> None:
        """A flipped byte in a page header, which no checksum covers: it may not matter, or is an error."""
        _checked(folder, lambda pages: (pages[-1][0] + pages[-1][1]) // 2, **options)


for _seed in range(12):

    @case(f"data_bits_flipped_{_seed}", anything())
    def _(folder: pathlib.Path, seed: int = _seed) -> None:
        """A few bits flipped anywhere, the footer included."""

        def flip(data: bytes) -> bytes:
            out = bytearray(data)
            for i in range(3):
                at = (seed * 7919 + i * 104729 + seed * seed * 13) % len(out)
                out[at] ^= 1 << ((seed + i) % 8)
            return bytes(out)

        _damaged(folder, flip)


@case("data_missing", error("DataFileNotFoundError", FILE))
def _(folder: pathlib.Path) -> None:
    """A data file is missing: `FileNotFoundError` with the path."""
    log.basic(folder)
    (folder / FILE).unlink()


@case("data_missing_but_not_needed", rows(range(20, 30)), do="filter", sql="id >= 20")
def _(folder: pathlib.Path) -> None:
    """A missing file that statistics rule out is never opened."""
    log.basic(folder)
    (folder / FILE).unlink()


@case("data_missing_of_a_removed_file", rows([*range(10), *range(20, 30)]))
def _(folder: pathlib.Path) -> None:
    """A removed file may be gone."""
    table = log.basic(folder)
    table.commit(3, log.remove(FILE))
    (folder / FILE).unlink()


@case("data_is_a_directory", error("DataFileNotFoundError|StorageError|CorruptDataError", FILE))
def _(folder: pathlib.Path) -> None:
    """A folder where the file should be."""
    log.basic(folder)
    (folder / FILE).unlink()
    (folder / FILE).mkdir()


@case("data_is_a_symlink_loop", error("DataFileNotFoundError|StorageError", FILE))
def _(folder: pathlib.Path) -> None:
    """A link to itself."""
    log.basic(folder)
    (folder / FILE).unlink()
    (folder / FILE).symlink_to(FILE)


@case("data_is_a_dangling_symlink", error("DataFileNotFoundError", FILE))
def _(folder: pathlib.Path) -> None:
    """A link to nothing."""
    log.basic(folder)
    (folder / FILE).unlink()
    (folder / FILE).symlink_to("nowhere")


@case("data_is_a_pipe", error("DataFileNotFoundError|StorageError|CorruptDataError", FILE))
def _(folder: pathlib.Path) -> None:
    """A named pipe: opening it waits for ever."""
    log.basic(folder)
    (folder / FILE).unlink()
    os.mkfifo(folder / FILE)


# Files of another shape than the schema.


def _shaped(folder: pathlib.Path, columns: dict[str, pa.Array], kinds: list[tuple[Any, ...]] | None = None) -> None:
    """Write the basic table whose second file has other columns."""
    table = log.basic(folder, columns=kinds) if kinds else log.basic(folder)
    table.commit(1, table.data(FILE, columns, add_stats=None))


_IDS = pa.array(range(10, 20), pa.int64())
_NAMES = pa.array([f"n{i}" for i in range(10, 20)])
_NULLS = [*range(10), *[None] * 10, *range(20, 30)]
_MISMATCH = "SchemaMismatchError|CorruptDataError"
_SHAPES: list[tuple[str, dict[str, pa.Array], Expect]] = [
    ("id_is_text", {"id": _NAMES, "name": _NAMES}, error(_MISMATCH, FILE, "id")),
    ("id_is_double", {"id": _IDS.cast(pa.float64()), "name": _NAMES}, error(_MISMATCH, FILE, "id")),
    ("id_is_boolean", {"id": pa.array([True] * 10), "name": _NAMES}, error(_MISMATCH, FILE, "id")),
    ("id_is_a_timestamp", {"id": _IDS.cast(pa.timestamp("us")), "name": _NAMES}, either(ALL, _MISMATCH, FILE)),
    ("id_is_a_decimal", {"id": _IDS.cast(pa.decimal128(20, 0)), "name": _NAMES}, either(ALL, _MISMATCH, FILE)),
    ("id_is_unsigned", {"id": _IDS.cast(pa.uint64()), "name": _NAMES}, either(ALL, _MISMATCH, FILE)),
    ("id_is_narrow", {"id": _IDS.cast(pa.int32()), "name": _NAMES}, either(ALL, _MISMATCH, FILE)),
    ("id_is_a_list", {"id": pa.array([[i] for i in range(10, 20)]), "name": _NAMES}, error(_MISMATCH, FILE, "id")),
    (
        "id_is_a_struct",
        {"id": pa.array([{"id": i} for i in range(10, 20)]), "name": _NAMES},
        error(_MISMATCH, FILE, "id"),
    ),
    ("name_is_a_number", {"id": _IDS, "name": _IDS}, error(_MISMATCH, FILE, "name")),
    (
        "name_is_no_utf8",
        {"id": _IDS, "name": pa.array([b"\xff\xfe"] * 10, pa.binary())},
        either(None, BAD + "|" + _MISMATCH, FILE),
    ),
    ("name_is_binary", {"id": _IDS, "name": _NAMES.cast(pa.binary())}, either(ALL, _MISMATCH, FILE)),
    ("id_is_missing", {"name": _NAMES}, rows(_NULLS)),
    ("all_are_missing", {"other": _NAMES}, rows(_NULLS)),
    ("columns_in_another_order", {"name": _NAMES, "id": _IDS}, rows(ALL)),
    ("columns_of_another_case", {"ID": _IDS, "Name": _NAMES}, rows(ALL)),
    ("a_column_too_many", {"id": _IDS, "name": _NAMES, "x": _IDS}, rows(ALL)),
    ("a_thousand_columns_too_many", {"id": _IDS, "name": _NAMES} | {f"c{i}": _IDS for i in range(1000)}, rows(ALL)),
    ("no_rows", {"id": _IDS[:0], "name": _NAMES[:0]}, rows([*range(10), *range(20, 30)])),
    (
        "columns_of_both_cases",
        {"id": _IDS, "ID": pa.array(range(10), pa.int64()), "name": _NAMES},
        either(ALL, _MISMATCH, FILE),
    ),
]
for _name, _columns, _expect in _SHAPES:

    @case(f"file_{_name}", _expect)
    def _(folder: pathlib.Path, columns: dict[str, pa.Array] = _columns) -> None:
        """A file whose columns are not the table's."""
        _shaped(folder, columns)


@case("file_has_a_column_twice", either(ALL, _MISMATCH, FILE))
def _(folder: pathlib.Path) -> None:
    """Two columns of one name in a file."""
    table = log.basic(folder)
    twice = pa.Table.from_arrays([_IDS, _NAMES, _NAMES], names=["id", "name", "name"])
    table.commit(1, table.data(FILE, twice))


@case("file_has_no_columns", either(None))
def _(folder: pathlib.Path) -> None:
    """A file without columns has no rows, whatever it says."""
    table = log.basic(folder)
    table.commit(1, table.data(FILE, pa.table({})))


@case("file_has_nulls_where_none_may_be", either(_NULLS, "CorruptDataError|SchemaMismatchError|InvalidArgumentError"))
def _(folder: pathlib.Path) -> None:
    """Nulls in a column that the schema calls not nullable."""
    schema = log.schema_string(log.ID_NAME).replace('"nullable":true', '"nullable":false', 1)
    table = log.basic(folder, columns=schema)
    table.commit(1, table.data(FILE, {"id": pa.nulls(10, pa.int64()), "name": _NAMES}))


_POINT = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]}
_LIST = {"type": "array", "elementType": "long", "containsNull": True}
_MAP = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
_NESTED: list[tuple[str, Any, pa.Array, Expect]] = [
    ("struct_is_a_number", _POINT, _IDS, error(_MISMATCH, FILE)),
    ("struct_is_a_list", _POINT, pa.array([[1]] * 10), error(_MISMATCH, FILE)),
    ("struct_has_other_fields", _POINT, pa.array([{"y": 1}] * 10), either(ALL, _MISMATCH, FILE)),
    ("struct_field_is_text", _POINT, pa.array([{"x": "a"}] * 10), error(_MISMATCH, FILE)),
    ("list_is_a_number", _LIST, _IDS, error(_MISMATCH, FILE)),
    ("list_of_text", _LIST, pa.array([["a"]] * 10), error(_MISMATCH, FILE)),
    ("list_of_lists", _LIST, pa.array([[[1]]] * 10), error(_MISMATCH, FILE)),
    ("list_with_nulls", _LIST, pa.array([[1, None], None] * 5), rows(ALL)),
    ("map_is_a_list", _MAP, pa.array([[1]] * 10), error(_MISMATCH, FILE)),
    ("map_of_numbers", _MAP, pa.array([[(1, 1)]] * 10, pa.map_(pa.int64(), pa.int64())), error(_MISMATCH, FILE)),
    ("map_as_list_of_entries", _MAP, pa.array([[{"key": "a", "value": 1}]] * 10), either(ALL, _MISMATCH, FILE)),
    (
        "map_with_double_keys",
        _MAP,
        pa.array([[("a", 1), ("a", 2)]] * 10, pa.map_(pa.string(), pa.int64())),
        either(ALL, _MISMATCH, FILE),
    ),
]
for _name, _kind, _array, _expect in _NESTED:

    @case(f"file_{_name}", _expect)
    def _(folder: pathlib.Path, kind: Any = _kind, array: pa.Array = _array) -> None:
        """A nested column whose file holds another shape."""
        _shaped(folder, {"id": _IDS, "name": _NAMES, "n": array}, [*log.ID_NAME, ("n", kind)])


@case("file_decimal_of_another_scale", either(ALL, _MISMATCH, FILE))
def _(folder: pathlib.Path) -> None:
    """A decimal whose file has another scale: converted exactly or refused."""
    kinds = [*log.ID_NAME, ("d", "decimal(10,2)")]
    _shaped(folder, {"id": _IDS, "name": _NAMES, "d": pa.array([None] * 10, pa.decimal128(20, 7))}, kinds)


@case("file_decimal_that_does_not_fit", error(_MISMATCH, FILE))
def _(folder: pathlib.Path) -> None:
    """A decimal too large for the table's type."""
    kinds = [*log.ID_NAME, ("d", "decimal(4,2)")]
    big = pa.array([123456789] * 10, pa.int64()).cast(pa.decimal128(30, 0))
    _shaped(folder, {"id": _IDS, "name": _NAMES, "d": big}, kinds)


@case("file_timestamp_far_away", either(ALL, f"{BAD}|SchemaMismatchError", FILE))
def _(folder: pathlib.Path) -> None:
    """Milliseconds that overflow as microseconds."""
    kinds = [*log.ID_NAME, ("t", "timestamp")]
    far = pa.array([9223372036854775807] * 10, pa.int64()).cast(pa.timestamp("ms", "UTC"))
    _shaped(folder, {"id": _IDS, "name": _NAMES, "t": far}, kinds)


@case("file_int96_far_away", either(ALL, BAD, FILE))
def _(folder: pathlib.Path) -> None:
    """INT96 beyond the nanosecond range must not overflow."""
    kinds = [*log.ID_NAME, ("t", "timestamp")]
    table = log.basic(folder, columns=kinds)
    far = pa.array([253402300799000000] * 10, pa.int64()).cast(pa.timestamp("us", "UTC"))
    columns = {"id": _IDS, "name": _NAMES, "t": far}
    table.commit(1, table.data(FILE, columns, use_deprecated_int96_timestamps=True))


@case("file_with_foreign_arrow_schema", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """An `ARROW:schema` in the footer that contradicts the columns is ignored."""
    table = log.basic(folder)
    lie = pa.schema([("id", pa.string()), ("name", pa.date32())]).serialize().to_pybytes()
    columns = pa.table({"id": _IDS, "name": _NAMES})
    file = folder / FILE
    with pq.ParquetWriter(file, columns.schema, store_schema=False) as writer:
        writer.write_table(columns)
        writer.add_key_value_metadata({"ARROW:schema": __import__("base64").b64encode(lie).decode()})
    add = table.actions(1, 1)[0]
    add["add"]["size"] = file.stat().st_size
    table.commit(1, add)


@case("file_with_spark_metadata_garbage", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Spark's own footer keys hold garbage."""
    table = log.basic(folder)
    keys = {
        "org.apache.spark.version": "not a version",
        "org.apache.spark.sql.parquet.row.metadata": "{" * 1000,
        "org.apache.spark.legacyDateTime": "perhaps",
        "org.apache.spark.timeZone": "Mars/Olympus",
    }
    columns = pa.table({"id": _IDS, "name": _NAMES}).replace_schema_metadata(keys)
    add = table.data(FILE, columns)
    table.commit(1, add)
