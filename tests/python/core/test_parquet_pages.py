"""Pages and footers that no writer makes: what pyarrow refuses is refused, and what it ignores prunes no rows."""

from __future__ import annotations

import dataclasses
import io
import json
import pathlib
import random
import struct
import warnings
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast
from deltafast.exceptions import CorruptDataError, DeltaError
from tablekit import log, pages, thrift

if TYPE_CHECKING:
    from collections.abc import Callable

CORPUS = pathlib.Path(__file__).parents[3] / "fuzz" / "corpus" / "data_file"
LONGS = struct.pack("<8q", *range(8))


def table_of(folder: pathlib.Path, data: bytes, columns: list[tuple[Any, ...]], **add: Any) -> deltafast.DeltaTable:
    """Return a table of one file."""
    table = log.Table(folder)
    (folder / "part.parquet").write_bytes(data)
    table.commit(0, log.protocol(), log.metadata(columns), log.add("part.parquet", len(data), **add))
    return deltafast.DeltaTable(str(folder))


def streams(size: int) -> bytes:
    page = pages.data_page(bytes(range(1, size + 1)), 3, pages.BYTE_STREAM_SPLIT)
    return pages.write(pages.DOUBLE, [page], 3, encodings=(pages.BYTE_STREAM_SPLIT, pages.RLE))


def prefixed(prefixes: list[int], suffixes: list[int], text: bytes) -> bytes:
    body = pages.delta_packed(prefixes) + pages.delta_packed(suffixes) + text
    page = pages.data_page(body, len(prefixes), pages.DELTA_BYTE_ARRAY)
    return pages.write(pages.BYTE_ARRAY, [page], len(prefixes), encodings=(pages.DELTA_BYTE_ARRAY, pages.RLE))


def levelled(runs: bytes, **shape: Any) -> bytes:
    return pages.write(pages.INT64, [pages.data_page(pages.levels(runs) + LONGS, 8)], 8, **shape)


def levelled_v2(runs: bytes, **shape: Any) -> bytes:
    page = pages.data_page_v2(runs + LONGS, 8, definition=len(runs))
    return pages.write(pages.INT64, [page], 8, **shape)


def with_dictionaries(*parts: bytes, rows: int) -> bytes:
    encodings = (pages.PLAIN, pages.RLE, pages.RLE_DICTIONARY)
    return pages.write(pages.INT64, parts, rows, encodings=encodings)


STRUCT = {"type": "struct", "fields": [{"name": "v", "type": "long", "nullable": True, "metadata": {}}]}
ENTRIES = pages.dictionary_page(struct.pack("<2q", 5, 6), 2)
CODES = pages.data_page(bytes([1, 3, 0b10101010]), 8, pages.RLE_DICTIONARY)

# Byte n of value v is v + 1 + 3 n.
INTERLEAVED = [struct.unpack("<d", bytes(range(first, first + 24, 3)))[0] for first in (1, 2, 3)]

FINE: dict[str, tuple[bytes, Any, list[Any]]] = {
    "streams": (streams(24), "double", INTERLEAVED),
    "prefixes": (prefixed([0, 3, 2], [3, 0, 1], b"abcd"), "string", ["abc", "abc", "abd"]),
    "levels": (levelled(b"\x10\x01", optional=True), "long", list(range(8))),
    "levels_of_a_struct": (levelled(b"\x10\x02", struct_of=True), STRUCT, [{"v": n} for n in range(8)]),
    "one_dictionary": (with_dictionaries(ENTRIES, CODES, rows=8), "long", [5, 6] * 4),
}

REFUSED: dict[str, tuple[bytes, Any]] = {
    **{f"streams_of_{size}_bytes": (streams(size), "double") for size in (16, 23, 25, 32)},
    "a_prefix_longer_than_the_value": (prefixed([0, 9, 2], [3, 0, 1], b"abcd"), "string"),
    "a_prefix_of_the_first_value": (prefixed([1, 3, 2], [3, 0, 1], b"abcd"), "string"),
    "a_negative_prefix": (prefixed([0, -1, 2], [3, 0, 1], b"abcd"), "string"),
    **{f"level_{n}_of_one": (levelled(bytes([16, n]), optional=True), "long") for n in (2, 3, 7)},
    **{f"level_{n}_of_one_v2": (levelled_v2(bytes([16, n]), optional=True), "long") for n in (2, 3)},
    "level_three_of_two": (levelled(b"\x10\x03", struct_of=True), STRUCT),
    "level_three_of_two_packed": (levelled(bytes([3, 0b11101010, 0b10101010]), struct_of=True), STRUCT),
    "level_three_of_two_v2": (levelled_v2(b"\x10\x03", struct_of=True), STRUCT),
    "a_second_dictionary": (with_dictionaries(ENTRIES, CODES, ENTRIES, CODES, rows=16), "long"),
    "two_dictionaries_at_once": (with_dictionaries(ENTRIES, ENTRIES, CODES, rows=8), "long"),
}


@pytest.mark.parametrize("name", FINE)
def test_pages_made_by_hand_are_read(tmp_path: pathlib.Path, name: str) -> None:
    data, kind, values = FINE[name]
    assert pq.read_table(io.BytesIO(data)).column("v").to_pylist() == values
    table = table_of(tmp_path, data, [("v", kind)])
    assert table.to_pyarrow_table().column("v").to_pylist() == values


@pytest.mark.parametrize("name", REFUSED)
def test_pages_that_cannot_be_are_refused_as_by_pyarrow(tmp_path: pathlib.Path, name: str) -> None:
    data, kind = REFUSED[name]
    with pytest.raises(OSError, match=r"\w"):
        pq.read_table(io.BytesIO(data))
    table = table_of(tmp_path, data, [("v", kind)])
    with pytest.raises(CorruptDataError, match=r"part\.parquet"):
        table.to_pyarrow_table()


@pytest.mark.parametrize("claimed", [7, 9])
@pytest.mark.parametrize("column", ["required", "optional"])
def test_pages_hold_the_values_that_the_footer_says(tmp_path: pathlib.Path, column: str, claimed: int) -> None:
    plain = pages.write(pages.INT64, [pages.data_page(LONGS, 8)], 8)
    data = levelled(b"\x10\x01", optional=True) if column == "optional" else plain
    footer = thrift.footer(data)
    meta = footer[4][1][1][0][1][1][1][0][3][1]
    meta[5] = (thrift.I64, claimed)
    table = table_of(tmp_path, thrift.with_footer(data, footer), [("v", "long")])
    with pytest.raises(CorruptDataError, match=f"8 values and its footer says {claimed}"):
        table.to_pyarrow_table()


def bounds(low: bytes, high: bytes, nulls: int = 0) -> thrift.Struct:
    return {3: (thrift.I64, nulls), 5: (thrift.BINARY, high), 6: (thrift.BINARY, low)}


def long(value: int) -> bytes:
    return struct.pack("<q", value)


IMPOSSIBLE: dict[str, thrift.Struct] = {
    "crossed": bounds(long(7), long(0)),
    "too_long": bounds(long(50) * 112 + b"tail", long(70) * 112 + b"tail"),
    "one_too_long": bounds(long(50) + b"x", long(70)),
    "too_short": bounds(b"ab", b"abc"),
    "more_nulls_than_values": bounds(long(50), long(70), 9),
    "nulls_alone_with_bounds": bounds(long(0), long(7), 8),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
@pytest.mark.parametrize("predicate", ["v = 5", "v is not null"])
def test_statistics_that_cannot_be_prune_nothing(tmp_path: pathlib.Path, name: str, predicate: str) -> None:
    page = pages.data_page(pages.levels(b"\x10\x01") + LONGS, 8)
    data = pages.write(pages.INT64, [page], 8, optional=True, statistics=IMPOSSIBLE[name])
    table = table_of(tmp_path, data, [("v", "long")])
    found = pa.table(table.scan(predicate=predicate).read_all()).column("v").to_pylist()
    assert found == ([5] if "=" in predicate else list(range(8)))


def test_statistics_that_can_be_do_prune(tmp_path: pathlib.Path) -> None:
    # The control: these lie, and are believed.
    data = pages.write(pages.INT64, [pages.data_page(LONGS, 8)], 8, statistics=bounds(long(50), long(70)))
    table = table_of(tmp_path, data, [("v", "long")])
    assert pa.table(table.scan(predicate="v = 5").read_all()).num_rows == 0


@pytest.mark.parametrize(
    ("values", "kind", "predicate"),
    [
        (pa.array(["a", "b", "c"]), "string", "v = 'b'"),
        (pa.array([1.0, 2.0, 3.0]), "double", "v = 2"),
        (pa.array([-1, 0, 1], pa.int32()), "integer", "v = 0"),
        (pa.array([-5, 0, 7], pa.int64()).cast(pa.decimal128(25, 0)), "decimal(25,0)", "v = 0"),
    ],
)
@pytest.mark.parametrize("where", ["footer", "column_index"])
def test_crossed_bounds_of_every_order_prune_nothing(
    tmp_path: pathlib.Path, values: pa.Array, kind: str, predicate: str, where: str
) -> None:
    sink = io.BytesIO()
    options: dict[str, Any] = {"use_dictionary": False}
    if where == "column_index":
        # A page for each three rows.
        options |= {"write_page_index": True, "write_batch_size": 3, "data_page_size": 1}
    rows = pa.table({"v": pa.concat_arrays([values] * 4)})
    pq.write_table(rows, sink, **options)
    data = sink.getvalue()
    footer = thrift.footer(data)
    chunk = footer[4][1][1][0][1][1][1][0]
    if where == "footer":
        statistics = chunk[3][1][12][1]
        for low, high in [(6, 5), (2, 1)]:
            if low in statistics:
                statistics[low], statistics[high] = statistics[high], statistics[low]
        data = thrift.with_footer(data, footer)
    else:
        del chunk[3][1][12]
        begin, length = chunk[6][1], chunk[7][1]
        index = thrift.decode(data[begin : begin + length])
        index[2], index[3] = index[3], index[2]
        changed = thrift.encode(index)
        assert len(changed) == length
        data = thrift.with_footer(data[:begin] + changed + data[begin + length :], footer)
    table = table_of(tmp_path, data, [("v", kind)])
    assert pa.table(table.scan(predicate=predicate).read_all()).num_rows == 4


@pytest.mark.parametrize("with_records", [True, False])
def test_a_deletion_vector_beyond_the_files_rows_is_an_error(tmp_path: pathlib.Path, *, with_records: bool) -> None:
    table = log.Table(tmp_path)
    stats = {} if with_records else {"add_stats": None}
    add = table.ids("a.parquet", 0, 10, **stats)
    for rows in ([2, 10], [10], [5000], range(11)):
        add["add"]["deletionVector"] = table.vector(rows)
        table.commit(0, log.protocol(features=["deletionVectors"]), log.metadata(), add)
        found = deltafast.DeltaTable(str(tmp_path))
        with pytest.raises(CorruptDataError, match=r"a\.parquet.*10 rows.*deletes row \d+|deletes row \d+.*a\.parquet"):
            found.to_pyarrow_table()
        if len(rows) > 10:
            with pytest.raises(CorruptDataError, match="deletes row 10"):
                found.count()
    add["add"]["deletionVector"] = table.vector([2, 9])
    table.commit(0, log.protocol(features=["deletionVectors"]), log.metadata(), add)
    found = deltafast.DeltaTable(str(tmp_path))
    assert (found.to_pyarrow_table().num_rows, found.count()) == (8, 8)


# Checksums.


def parquet_files(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.rglob("*.parquet"))


@pytest.mark.parametrize("codec", ["NONE", "SNAPPY", "ZSTD", "GZIP"])
def test_every_page_that_is_written_has_its_checksum(tmp_path: pathlib.Path, codec: str) -> None:
    folder = tmp_path / "table"
    rows = pa.table(
        {"id": range(3000), "name": [f"n{n % 5}" for n in range(3000)], "l": [[n, n + 1] for n in range(3000)]}
    )
    table = deltafast.DeltaTable.create(
        str(folder),
        schema=rows.schema,
        configuration={"delta.checkpointPolicy": "v2", "delta.parquet.compression.codec": codec},
    )
    deltafast.write_deltalake(table, rows, mode="append")
    deltafast.write_deltalake(table, rows, mode="append")
    table.update_incremental()
    table.delete("id < 10")
    table.create_checkpoint()
    kinds = set()
    for file in parquet_files(folder):
        data = file.read_bytes()
        kinds.add(file.parent.name)
        found = list(pages.pages(data))
        assert found
        assert all(page.checksum() == pages.crc(data, page) for page in found), file
        pq.read_table(file, page_checksum_verification=True)
    assert {"table", "_sidecars"} <= kinds or {"table", "_delta_log"} <= kinds


def test_a_flipped_bit_in_a_page_gives_the_same_rows_or_an_error(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "table"
    table = deltafast.DeltaTable.create(str(source), schema=pa.schema([("id", pa.int64()), ("name", pa.string())]))
    for start in (0, 20, 40):
        names = [None if n % 7 == 0 else f"name {n % 3}" for n in range(start, start + 20)]
        deltafast.write_deltalake(table, pa.table({"id": range(start, start + 20), "name": names}), mode="append")
        table.update_incremental()
    table.create_checkpoint()
    expected = sorted(deltafast.DeltaTable(str(source)).to_pyarrow_table().to_pylist(), key=repr)
    files = parquet_files(source)
    assert len(files) == 4
    chosen, answered = random.Random(7), 0
    for file in files:
        data = file.read_bytes()
        within = [(page.start, page.end) for page in pages.pages(data)]
        for begin, end in within:
            for at in chosen.sample(range(begin, end), 12 if len(within) < 10 else 2):
                changed = bytearray(data)
                changed[at] ^= 1 << chosen.randrange(8)
                file.write_bytes(changed)
                try:
                    found = _rows_ignoring_warnings(source)
                except DeltaError:
                    continue
                answered += 1
                assert found == expected, f"{file.name} at {at}"
        file.write_bytes(data)
    assert answered


def _rows_ignoring_warnings(folder: pathlib.Path) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(deltafast.DeltaTable(str(folder)).to_pyarrow_table().to_pylist(), key=repr)


# Mutations of the corpus, read by both.

FIELDS: list[tuple[str, Any]] = json.loads((CORPUS.parents[1] / "data_file_schema.json").read_text("utf-8"))


@dataclasses.dataclass
class Mutations:
    """Makes the same mutations each time."""

    choice: random.Random

    def of(self, data: bytes) -> bytes:
        found = list(pages.pages(data))
        changes: list[Callable[[bytes, list[pages.Page]], bytes]] = [
            self.bits,
            self.bytes,
            self.header,
            self.statistics,
            self.zeros,
        ]
        return self.choice.choice(changes)(data, found)

    def bits(self, data: bytes, found: list[pages.Page]) -> bytes:
        """Flip bits of a page or its header."""
        page, out = self.choice.choice(found), bytearray(data)
        for _ in range(self.choice.randint(1, 3)):
            out[self.choice.randrange(page.start, page.end)] ^= 1 << self.choice.randrange(8)
        return bytes(out)

    def bytes(self, data: bytes, found: list[pages.Page]) -> bytes:
        """Set bytes at the begin of a page, where lengths and levels are."""
        page, out = self.choice.choice(found), bytearray(data)
        at = min(page.body + self.choice.randrange(12), page.end - 1)
        out[at] = self.choice.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF])
        return bytes(out)

    def header(self, data: bytes, found: list[pages.Page]) -> bytes:
        """Change a number of a page's own header."""
        page = self.choice.choice(found)
        changes = {self.choice.randint(1, 6): self.choice.choice([0, 1, 2, 3, 5, 6, 7, 8, 9, 29, 31, 63])}
        return pages.change_header(data, page, changes) or data

    def statistics(self, data: bytes, _: list[pages.Page]) -> bytes:
        """Exchange the bounds of a column, or make one longer."""
        footer = thrift.footer(data)
        group = self.choice.choice(footer[4][1][1])
        meta = self.choice.choice(group[1][1][1])[3][1]
        statistics = meta.get(12, (0, {}))[1]
        if 5 in statistics and 6 in statistics:
            if self.choice.random() < 0.5:
                statistics[5], statistics[6] = statistics[6], statistics[5]
            else:
                statistics[5] = (thrift.BINARY, statistics[5][1] * 9)
        return thrift.with_footer(data, footer)

    def zeros(self, data: bytes, found: list[pages.Page]) -> bytes:
        """Replace a part of a page by zeros."""
        page, out = self.choice.choice(found), bytearray(data)
        at = self.choice.randrange(page.body, page.end) if page.end > page.body else page.start
        out[at : min(at + 8, page.end)] = bytes(min(at + 8, page.end) - at)
        return bytes(out)


def _theirs(data: bytes) -> list[dict[str, Any]] | None:
    """Return what pyarrow reads, None where it refuses."""
    try:
        table = pq.read_table(io.BytesIO(data), page_checksum_verification=True, coerce_int96_timestamp_unit="us")
        table.validate(full=True)
        at = table.schema.get_field_index("at")
        # INT96 says nothing of a zone.
        table = table.set_column(at, "at", table.column(at).cast(pa.timestamp("us", "UTC")))
        return table.select([name for name, _ in FIELDS]).to_pylist(maps_as_pydicts="lossy")
    except (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError, ValueError, KeyError):
        return None


@pytest.mark.parametrize("name", sorted(file.name for file in CORPUS.iterdir()))
def test_mutated_files_read_as_by_pyarrow_where_both_answer(tmp_path: pathlib.Path, name: str) -> None:
    data = (CORPUS / name).read_bytes()
    mutations, both = Mutations(random.Random(name)), 0
    for n in range(40):
        mutated = data if n == 0 else mutations.of(data)
        theirs = _theirs(mutated)
        try:
            ours = table_of(tmp_path / str(n), mutated, FIELDS).to_pyarrow_table()
            ours.validate(full=True)
            rows = ours.to_pylist(maps_as_pydicts="lossy")
        except (DeltaError, OverflowError):
            continue
        except pa.ArrowInvalid:
            # A decimal with more digits than its type has: neither looks at it.
            assert theirs is None, f"mutation {n}"
            continue
        if theirs is not None:
            both += 1
            assert repr(rows) == repr(theirs), f"mutation {n}"
    assert both > 0
