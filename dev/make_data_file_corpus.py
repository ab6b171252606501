"""Write the fuzz corpus of data files, and their columns to `fuzz/data_file_schema.json`.

Small files by pyarrow in every encoding, codec and page version, with and without page checksums, and by deltafast.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import pathlib
import shutil
import tempfile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import deltafast

HERE = pathlib.Path(__file__).parents[1] / "fuzz"
TARGET = HERE / "corpus" / "data_file"


def rows(count: int = 40) -> pa.Table:
    """Return rows with nulls, empty lists and values that repeat."""

    def some(values: list[Any], step: int) -> list[Any]:
        return [None if n % step == 0 else value for n, value in enumerate(values)]

    numbers = range(count)
    at = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    days = [dt.date(2024, 1, 1) + dt.timedelta(n // 9) for n in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": pa.array(some([f"name {n % 4}" for n in numbers], 7), pa.string()),
            "text": pa.array(some([f"some longer text {n * n}" for n in numbers], 11), pa.string()),
            "d": pa.array(some([n / 3 for n in numbers], 5), pa.float64()),
            "f": pa.array([float(n) for n in numbers], pa.float32()),
            "flag": pa.array(some([n % 3 == 0 for n in numbers], 6), pa.bool_()),
            "day": pa.array(some(days, 13), pa.date32()),
            "at": pa.array(some([at + dt.timedelta(seconds=n) for n in numbers], 8), pa.timestamp("us", "UTC")),
            "price": pa.array(some([decimal.Decimal(n) / 4 for n in numbers], 9), pa.decimal128(10, 2)),
            "raw": pa.array(some([bytes([n, 0, 255]) for n in numbers], 10), pa.binary()),
            "list": pa.array(some([list(range(n % 4)) for n in numbers], 12), pa.list_(pa.int32())),
            "part": pa.array(
                some([{"a": n if n % 3 else None, "b": f"b{n % 2}"} for n in numbers], 9),
                pa.struct([("a", pa.int64()), ("b", pa.string())]),
            ),
            "map": pa.array(some([[(f"k{n % 3}", n)] for n in numbers], 7), pa.map_(pa.string(), pa.int64())),
        }
    )


DELTA = {
    **dict.fromkeys(["id", "day", "at", "list.list.element", "part.a"], "DELTA_BINARY_PACKED"),
    **dict.fromkeys(["name", "text", "part.b"], "DELTA_BYTE_ARRAY"),
    "raw": "DELTA_LENGTH_BYTE_ARRAY",
    **dict.fromkeys(["d", "f", "price"], "BYTE_STREAM_SPLIT"),
}
ENCODED = {"use_dictionary": False, "column_encoding": DELTA}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"use_dictionary": False, "compression": "none"},
    "dictionary": {"use_dictionary": True, "compression": "none"},
    "snappy": {"compression": "snappy"},
    "zstd-v2": {"compression": "zstd", "data_page_version": "2.0"},
    "encoded": {"compression": "none", **ENCODED},
    "encoded-v2-gzip": {"compression": "gzip", "data_page_version": "2.0", **ENCODED},
    "lz4": {"compression": "lz4"},
    "brotli": {"compression": "brotli"},
    "small-pages": {"compression": "none", "data_page_size": 32, "write_batch_size": 4, "write_page_index": True},
    "groups": {"compression": "snappy", "row_group_size": 15},
    "int96": {"use_deprecated_int96_timestamps": True, "store_decimal_as_integer": True, "compression": "none"},
    "checksum-plain": {"use_dictionary": False, "compression": "none", "write_page_checksum": True},
    "checksum-zstd": {"compression": "zstd", "write_page_checksum": True},
    "checksum-v2-snappy": {"compression": "snappy", "data_page_version": "2.0", "write_page_checksum": True},
    "checksum-encoded-lz4": {"compression": "lz4", "write_page_checksum": True, **ENCODED},
}


def main() -> None:
    """Write all files."""
    TARGET.mkdir(parents=True, exist_ok=True)
    table = rows()
    for name, options in VARIANTS.items():
        pq.write_table(table, TARGET / name, **{"version": "2.6", "store_schema": False, **options})
    for codec in ("NONE", "SNAPPY", "ZSTD"):
        with tempfile.TemporaryDirectory() as folder:
            made = deltafast.DeltaTable.create(
                folder, schema=table.schema, configuration={"delta.parquet.compression.codec": codec}
            )
            deltafast.write_deltalake(made, table, mode="append")
            (file,) = pathlib.Path(folder).glob("*.parquet")
            shutil.copyfile(file, TARGET / f"checksum-deltafast-{codec.lower()}")
            schema = json.loads(made.schema().to_json())
    fields = [[field["name"], field["type"]] for field in schema["fields"]]
    (HERE / "data_file_schema.json").write_text(json.dumps(fields, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
