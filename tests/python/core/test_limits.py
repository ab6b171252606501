"""Whatever deltafast writes it reads: at each limit of the core and just below it, also in other readers.

The limits are found in the sources by a pattern, so that a new one must be registered here: with the test that writes
at the limit, or with the reason why nothing that is written reaches it.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import deltalake as real
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast
from deltafast.exceptions import DeltaError, DeltaProtocolError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCES: Final = pathlib.Path(__file__).parents[3] / "src"
CONSTANT: Final = re.compile(r"\bconst ([A-Z][A-Z0-9_]*): (?:u8|u16|u32|u64|usize|i32|i64|\(u64, u64\)) =")
REFUSAL: Final = re.compile(r"Err\(|Error::|error\(|ok_or")
MEBIBYTE: Final = 1 << 20

REGISTRY: Final = {
    "checkpoint/write.rs:MOST_PARTS": "test_a_checkpoint_has_up_to_1000_parts",
    "commit/row_id_mark.rs:LEAST_LEFT": "row ids near the end of their range, which no table reaches by its rows",
    "ops/maintain/vacuum.rs:BLANK_BYTES": "the size of a commit without actions, which is not written",
    "commit/state_machine.rs:AGAIN": "attempts, which depend on the store",
    "commit/state_machine.rs:READS": "attempts, which depend on the store",
    "dv/bitmap.rs:WORDS": "the size of a container in the format",
    "exec/decode_reservation.rs:LEAST_DECODED": "test_the_memory_limit_decides_what_a_file_may_expand_to",
    "exec/decode_reservation.rs:RATIO": "test_text_and_bytes_of_any_size_and_ratio_are_read",
    "expr/build.rs:MAX_DEPTH": "expressions, which are not stored as trees; Python's parser refuses deeper ones",
    "expr/eval/value.rs:MUCH": "the size from which an allocation is announced",
    "ops/alter/multi_commit.rs:TRIES": "attempts, which depend on other writers",
    "ops/create.rs:MOST_CLUSTERING": "test_a_table_is_clustered_by_up_to_four_columns",
    "ops/merge/pairs.rs:MOST": "pairs of a MERGE without an equality; nothing is stored",
    "parse/cursor.rs:DEPTH_LIMIT": "a million levels of JSON, where a schema has at most 400",
    "parse/json_lines.rs:LONGEST": "4 GiB of JSON in one file, the range of offsets in Arrow's views",
    "parse/stats.rs:DEPTH": "test_statistics_of_the_deepest_struct_prune",
    "pq/decode/checkpoint_file.rs:ROWS": "256 rows for each byte: a checkpoint has another path in each row",
    "pq/decode/data_file.rs:TEXT": "test_text_and_bytes_of_any_size_and_ratio_are_read",
    "pq/decode/checkpoint_file.rs:TEXT": "beyond the ratio an eighth of the memory limit decides",
    "pq/decode/data_file.rs:ROWS": "a million rows for each byte, where each row group of a million takes 100 bytes",
    "pq/encode/file_encoder.rs:PIECE": "the size of a buffer",
    "pq/encode/row_group_encoder.rs:PIECE": "the size of a buffer",
    "pq/input/column_chunks.rs:HEADER_LIMIT": "256 MiB of a page's header; deltafast writes no statistics there",
    "pq/input/footer.rs:DECODED": "a factor of the memory limit for footers of more than 256 MiB",
    "pq/input/footer.rs:DEPTH_LIMIT": "test_columns_are_nested_as_deep_when_written_as_when_read",
    "pq/input/footer.rs:TAIL": "the size of a part of the format",
    "protocol/commit_line.rs:LONGEST_LINE": "test_an_action_is_as_long_when_written_as_when_read",
    "protocol/features.rs:MAX_READER_VERSION": "versions of the protocol",
    "protocol/features.rs:MAX_WRITER_VERSION": "versions of the protocol",
    "protocol/schema.rs:MOST_ARROW_LEVELS": "test_columns_are_nested_as_deep_when_written_as_when_read",
    "protocol/schema.rs:MOST_LEVELS": "levels of JSON of the deepest schema",
    "protocol/schema.rs:MOST_NESTED_TYPES": "above MOST_ARROW_LEVELS, for schemas of other writers",
    "prune/range.rs:CUT_LENGTH": "the length of a truncated bound; it only prunes",
    "py/values.rs:MAX_DEPTH": "levels of an expression with the types of the deepest column",
    "reconcile/replay.rs:IMPLAUSIBLE": "a terabyte of one commit",
    "scan/actions.rs:ROWS": "the size of a batch",
    "scan/deletion_vectors.rs:MOST_BITS": "4 billion rows of one file",
    "store/credentials.rs:LEAST_LIFE_MS": "how long credentials must be valid",
    "store/check.rs:TRIES": "attempts of a check of a store",
    "store/client.rs:MOST_REDIRECTS": "redirects of a server",
}


def constants_that_refuse() -> set[str]:
    """Return the constants of the core that are compared shortly before an error."""
    found: set[str] = set()
    for path in sorted(SOURCES.rglob("*.rs")):
        if path.name.endswith("tests.rs"):
            continue
        code = path.read_text("utf-8").split("#[cfg(test)]\nmod tests")[0]
        lines = [re.sub(r"//.*", "", line) for line in code.splitlines()]
        # A pair is a limit and how much of it there is for each byte of a file.
        pairs = re.findall(r"\bconst ([A-Z_]+): \(u64, u64\) =", code)
        found.update(f"{path.relative_to(SOURCES).as_posix()}:{name}" for name in pairs)
        for name in set(CONSTANT.findall(code)):
            compared = re.compile(
                rf"(?:[<>]=?|min\(|\.\.=?|add\(|max\()[^;]*\b{name}\b|\b{name}\b[^;]* [<>]=? "  # comparisons and clamps
            )
            uses = (n for n, line in enumerate(lines) if compared.search(line) and "const " not in line)
            if any(REFUSAL.search(" ".join(lines[n : n + 8])) for n in uses):
                found.add(f"{path.relative_to(SOURCES).as_posix()}:{name}")
    return found


def test_every_constant_that_refuses_input_is_registered() -> None:
    assert constants_that_refuse() == set(REGISTRY)
    named = {case for case in REGISTRY.values() if case.startswith("test_")}
    assert named <= set(globals())


def read_everywhere(path: str, expected: pa.Table) -> None:
    """Check that each reader reads the same rows."""
    rows = expected.to_pylist()
    assert deltafast.DeltaTable(path).to_pyarrow_table().to_pylist() == rows
    assert deltafast.DeltaTable(path).scan_polars().collect().to_arrow().to_pylist() == rows
    assert real.DeltaTable(path).to_pyarrow_table().to_pylist() == rows
    files = [uri.removeprefix("file://") for uri in deltafast.DeltaTable(path).file_uris()]
    assert pa.concat_tables([pq.read_table(file) for file in files]).to_pylist() == rows
    assert pl.read_parquet(files).to_arrow().to_pylist() == rows
    with duckdb.connect() as connection:
        assert connection.read_parquet(files).to_arrow_table().to_pylist() == rows


def repeated(text: str, size: int) -> str:
    return (text * (size // len(text) + 1))[:size]


VALUES: Final[dict[str, Callable[[int], pa.Array]]] = {
    "letters": lambda size: pa.array(["x" * size]),
    "blanks": lambda size: pa.array([" " * size]),
    "zeros": lambda size: pa.array([bytes(size)], pa.binary()),
    "json": lambda size: pa.array([repeated('{"a": 1, "b": "text"}, ', size)]),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("size", [pytest.param(16 * MEBIBYTE - 5, marks=pytest.mark.proof), 16 * MEBIBYTE])
def test_text_and_bytes_of_any_size_and_ratio_are_read(tmp_path: pathlib.Path, kind: str, size: int) -> None:
    """A value of 16 MiB that compresses ten thousandfold: in a file, in several, and in one that they became."""
    path = str(tmp_path / "table")
    rows = pa.table({"v": VALUES[kind](size)})
    deltafast.write_deltalake(path, rows)
    read_everywhere(path, rows)
    for _ in range(2):
        deltafast.write_deltalake(path, rows, mode="append")
    table = deltafast.DeltaTable(path)
    table.optimize.compact()
    assert len(table.file_uris()) == 1
    read_everywhere(path, pa.concat_tables([rows] * 3))
    table.update({"v": "v"})
    assert table.to_pyarrow_table().equals(pa.concat_tables([rows] * 3))


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
@pytest.mark.parametrize(
    "dictionary", [True, pytest.param(False, marks=pytest.mark.proof)], ids=["dictionary", "plain"]
)
def test_files_of_pyarrow_that_compress_without_limit_are_read(
    tmp_path: pathlib.Path, codec: str, dictionary: bool
) -> None:
    """Large dictionaries and pages, of each codec."""
    rows = pa.table({"v": pa.array([*["y" * (20 * MEBIBYTE)] * 2, "z"])})
    pq.write_table(
        rows, tmp_path / "a.parquet", compression=codec, use_dictionary=dictionary, dictionary_pagesize_limit=1 << 30
    )
    deltafast.convert_to_deltalake(str(tmp_path))
    assert deltafast.DeltaTable(str(tmp_path)).to_pyarrow_table().equals(rows)


def vectors(rows: int, width: int, *, hot: bool) -> pa.Array:
    """Return lists of zeros, each with a one at another place if `hot`."""
    values = np.zeros(rows * width)
    if hot:
        values[np.arange(rows) * width + np.arange(rows) % width] = 1
    return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32) * width), pa.array(values))


@pytest.mark.parametrize("hot", [True, False], ids=["one_hot", "zeros"])
@pytest.mark.parametrize("width", [8, pytest.param(768, marks=pytest.mark.proof)])
def test_lists_of_any_ratio_are_read(tmp_path: pathlib.Path, width: int, hot: bool) -> None:
    """Lists whose elements take almost no bytes, also where several files became one."""
    path = str(tmp_path / "table")
    rows = pa.table({"v": vectors(100_000, width, hot=hot)})
    for start in range(0, 100_000, 20_000):
        deltafast.write_deltalake(path, rows.slice(start, 20_000), mode="append")
    table = deltafast.DeltaTable(path)
    table.optimize.compact()
    assert len(table.file_uris()) == 1
    assert table.to_pyarrow_table().equals(rows)
    assert real.DeltaTable(path).to_pyarrow_table().num_rows == 100_000
    # Pyarrow writes one page for all of them.
    folder = tmp_path / "converted"
    folder.mkdir()
    pq.write_table(rows, folder / "a.parquet", data_page_size=1 << 30)
    deltafast.convert_to_deltalake(str(folder))
    assert deltafast.DeltaTable(str(folder)).to_pyarrow_table().equals(rows)


READ: Final = """
import sys
import deltafast
try:
    rows = deltafast.DeltaTable(sys.argv[1]).scan(columns=["v"]).read_all()
    print("rows", rows.num_rows)
except deltafast.exceptions.DeltaError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("limit", "size", "expected"),
    [
        ("80MB", 80 * MEBIBYTE - 1024, "rows 1"),
        ("80MB", 80 * MEBIBYTE, "DELTAFAST_MEMORY_LIMIT"),
        # However low the limit is, 64 MiB may be decoded.
        ("1MB", 64 * MEBIBYTE - 1024, "rows 1"),
        ("1MB", 64 * MEBIBYTE, "DELTAFAST_MEMORY_LIMIT"),
    ],
)
def test_the_memory_limit_decides_what_a_file_may_expand_to(
    tmp_path: pathlib.Path, limit: str, size: int, expected: str
) -> None:
    path = str(tmp_path / "table")
    deltafast.write_deltalake(path, pa.table({"id": [1], "v": [bytes(size)]}))
    environment = os.environ | {"DELTAFAST_MEMORY_LIMIT": limit}
    done = subprocess.run(
        [sys.executable, "-c", READ, path], check=False, capture_output=True, text=True, env=environment
    )
    assert expected in done.stdout, done.stdout + done.stderr
    if "rows" not in expected:
        assert done.stdout.startswith("ResourceError")
        assert ".parquet" in done.stdout


def nested(kind: str, depth: int) -> tuple[pa.DataType, Any]:
    """Return a type nested so deep, and a value of it."""
    of: pa.DataType = pa.int64()
    value: Any = 1
    for n in range(depth):
        match ("struct", "list", "map")[n % 3] if kind == "mixed" else kind:
            case "struct":
                of, value = pa.struct([("a", of)]), {"a": value}
            case "list":
                of, value = pa.list_(of), [value]
            case _:
                of, value = pa.map_(pa.string(), of), [("k", value)]
    return of, value


DEEPEST: Final = {"struct": 60, "list": 60, "map": 30, "mixed": 45}


@pytest.mark.parametrize("kind", DEEPEST)
@pytest.mark.parametrize("above", [-1, 0, 1])
def test_columns_are_nested_as_deep_when_written_as_when_read(tmp_path: pathlib.Path, kind: str, above: int) -> None:
    """Each operation works at the limit; beyond it the write is refused, with a reason."""
    path = str(tmp_path / "table")
    of, value = nested(kind, DEEPEST[kind] + above)
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "c": pa.array([value, None], of)})
    if above > 0:
        with pytest.raises(DeltaProtocolError, match=r"nested \d+ deep .*flatten"):
            deltafast.write_deltalake(path, rows)
        assert not pathlib.Path(path, "_delta_log").exists()
        return
    deltafast.write_deltalake(path, rows)
    deltafast.write_deltalake(path, rows.slice(0, 1), mode="append")
    table = deltafast.DeltaTable(path)
    table.update({"id": "id + 10"}, predicate="id = 2")
    table.merge(rows, "t.id = s.id", source_alias="s", target_alias="t").when_matched_update_all().execute()
    table.optimize.compact()
    table.create_checkpoint()
    table.delete("id = 12")
    expected = [{"id": 1, "c": value}] * 2
    assert deltafast.DeltaTable(path).to_pyarrow_table().to_pylist() == expected
    assert deltafast.DeltaTable(path).to_pyarrow_dataset().to_table().to_pylist() == expected
    assert deltafast.DeltaTable(path).scan_polars().collect().height == 2
    assert deltafast.Schema.from_json(table.schema().to_json()) == table.schema()


def test_statistics_of_the_deepest_struct_prune(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "table")
    of, _ = nested("struct", DEEPEST["struct"])
    name = ".".join(["c", *["a"] * DEEPEST["struct"]])
    for number in range(3):
        value: Any = number
        for _ in range(DEEPEST["struct"]):
            value = {"a": value}
        deltafast.write_deltalake(path, pa.table({"c": pa.array([value], of)}), mode="append")
    table = deltafast.DeltaTable(path)
    for _ in range(2):
        assert table.scan(predicate=f"{name} = 1").read_all().num_rows == 1
        assert table.get_add_actions(predicate=f"{name} = 1").num_rows == 1
        table.create_checkpoint()
        table = deltafast.DeltaTable(path)


def test_maps_in_maps_are_read_in_no_time(tmp_path: pathlib.Path) -> None:
    """Each level once took four times the time of the level in it: this took minutes."""
    path = str(tmp_path / "table")
    of, value = nested("map", 20)
    rows = pa.table({"c": pa.array([value], of)})
    deltafast.write_deltalake(path, rows)
    start = os.times()
    assert deltafast.DeltaTable(path).to_pyarrow_table().to_pylist() == rows.to_pylist()
    end = os.times()
    assert end.user + end.system - start.user - start.system < 2


def test_a_checkpoint_has_up_to_1000_parts(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "table")
    deltafast.write_deltalake(path, pa.table({"id": [1]}))
    table = deltafast.DeltaTable(path)
    with pytest.raises(InvalidArgumentError, match="1 to 1000"):
        table.create_checkpoint(parts=1001)
    table.create_checkpoint(parts=1000)
    assert deltafast.DeltaTable(path).to_pyarrow_table().num_rows == 1


def test_a_table_is_clustered_by_up_to_four_columns(tmp_path: pathlib.Path) -> None:
    rows = pa.table({f"c{n}": [1] for n in range(5)})
    with pytest.raises(DeltaError, match="4"):
        deltafast.write_deltalake(str(tmp_path / "more"), rows, cluster_by=[f"c{n}" for n in range(5)])
    path = str(tmp_path / "table")
    deltafast.write_deltalake(path, rows, cluster_by=[f"c{n}" for n in range(4)])
    assert deltafast.DeltaTable(path).to_pyarrow_table().equals(rows)


@pytest.mark.proof
@pytest.mark.parametrize(("room", "fits"), [(1 << 16, True), (0, False)], ids=["below", "at"])
def test_an_action_is_as_long_when_written_as_when_read(tmp_path: pathlib.Path, room: int, fits: bool) -> None:
    """An action of almost 256 MiB is read; a longer one is refused before it is committed."""
    path = str(tmp_path / "table")
    deltafast.write_deltalake(path, pa.table({"id": [1]}))
    metadata = {"note": "x" * (256 * MEBIBYTE - room)}
    properties = deltafast.CommitProperties(custom_metadata=metadata)
    table = deltafast.DeltaTable(path)
    if fits:
        deltafast.write_deltalake(table, pa.table({"id": [2]}), mode="append", commit_properties=properties)
    else:
        with pytest.raises(InvalidArgumentError, match="longer than the"):
            deltafast.write_deltalake(table, pa.table({"id": [2]}), mode="append", commit_properties=properties)
    table = deltafast.DeltaTable(path)
    assert table.version() == int(fits)
    assert table.to_pyarrow_table().num_rows == 1 + fits
    if fits:
        assert table.history()[0]["note"] == metadata["note"]
