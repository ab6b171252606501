"""The actions of a made-up but real-looking Delta log, as columns and as JSON lines.

A range of file numbers -> one batch of files (`make_files`) -> the text of their adds
and removes. The log is that of a partitioned Spark table: realistic paths, one
partition column, statistics over six columns of mixed types, a few values that
need escapes, a few files without bounds. Every batch has a seed of its own, so a
table is the same on each machine, and a JSON log and a checkpoint of one size hold
the same files.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from textcols import constant, dates, fixed, hundredths, join, numbers, text_of, timestamps, uuids

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

DAYS = 365
DAY_ONE = 19723  # 2024-01-01
IDS_PER_FILE = 1000

SEED = 20240101
_BATCH = 50_000
_DAY_MS = 86_400_000
WRITTEN = 1_735_689_600_000  # 2025-01-01, when the newest files were written
COLUMNS = ("id", "score", "city", "event_time", "ship_date", "amount")
_CITY_NAMES = """
Aarhus Accra Athens Bergen Bilbao Bogotá Boston Brno Busan Cairo Calgary Cork Dakar Delhi Dresden
Dubai Durban Exeter Florence Geneva Ghent Glasgow Graz Hanoi Helsinki Izmir Jaipur Kraków Kyoto
Lagos Leipzig Lima Lisbon Lyon Malmö Manila Medellín Milan Mumbai Nairobi Nantes Osaka Oslo Perth
Porto Prague Quito Reims Riga Rotterdam Seoul Split São-Paulo Tallinn Tampere Toledo Tunis Utrecht
Valencia Vienna Warsaw Zagreb
"""
_CITIES = sorted(
    [
        '"The Loop" Chicago',
        *_CITY_NAMES.split(),
    ],
    key=lambda name: name.encode(),
)


@dataclass(frozen=True)
class Bounds:
    """Smallest and largest value of one column: as text and as typed arrays."""

    low_text: pa.Array
    high_text: pa.Array
    low: pa.Array
    high: pa.Array


@dataclass(frozen=True)
class Files:
    """One batch of data files, as columns."""

    rows: int
    path: pa.Array
    date: pa.Array
    days: Any
    size: Any
    modified: Any
    records: Any
    nulls: dict[str, Any]
    bounds: dict[str, Bounds]
    unbounded: Any  # files where every ship_date is null


def make_decimals(cents: Any) -> pa.Array:
    """Make decimals with two places from non-negative hundredths."""
    words = np.zeros((len(cents), 2), dtype=np.int64)
    words[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(cents), [None, pa.py_buffer(words)])


def _instants(milliseconds: Any) -> pa.Array:
    return pa.array(milliseconds * 1000).cast(pa.timestamp("us", tz="UTC"))


def make_days(days: Any, missing: Any = None) -> pa.Array:
    """Make dates from days since 1970, null where `missing`."""
    return pa.array(days.astype(np.int32), mask=missing).cast(pa.date32())


def _cities(names: Any, house: Any) -> tuple[pa.Array, pa.Array]:
    suffix = fixed(constant(" ", len(house)), _five(house))
    raw = pa.array(_CITIES).take(pa.array(names))
    return join(raw, suffix), pc.replace_substring(join(raw, suffix), '"', '\\"')


def _five(values: Any) -> Any:
    return np.frombuffer(text_of(_padded(values, 5)), dtype=np.uint8).reshape(len(values), 5)


def _padded(values: Any, width: int) -> pa.StringArray:
    return pc.utf8_lpad(numbers(values), width, padding="0")


def make_files(start: int, stop: int, total: int) -> Files:
    """Make up the files numbered `start` to `stop`, of `total` in the table."""
    rng = np.random.default_rng([SEED, start, stop])
    rows = stop - start
    index = np.arange(start, stop, dtype=np.int64)
    days = DAY_ONE + index * DAYS // total
    date = dates(days)
    name = fixed(
        constant("part-", rows),
        _five(index % 200),
        constant("-", rows),
        uuids(rng, rows),
        constant(".c000.snappy.parquet", rows),
    )
    records = rng.integers(50_000, 500_000, rows)
    unbounded = rng.random(rows) < 0.005  # noqa: PLR2004

    low_id = index * IDS_PER_FILE + rng.integers(0, 200, rows)
    high_id = low_id + rng.integers(IDS_PER_FILE, IDS_PER_FILE * 2, rows)
    low_score, high_score = rng.random(rows) * 10, 90 + rng.random(rows) * 910
    low_city = rng.integers(1, len(_CITIES) // 2, rows)
    low_city[rng.random(rows) < 0.001] = 0  # noqa: PLR2004  the name that needs escapes
    high_city = rng.integers(len(_CITIES) // 2, len(_CITIES), rows)
    low_house, high_house = rng.integers(0, 100_000, (2, rows))
    low_time = days * _DAY_MS + rng.integers(0, _DAY_MS // 2, rows)
    high_time = days * _DAY_MS + rng.integers(_DAY_MS // 2, _DAY_MS, rows)
    low_ship, high_ship = days + rng.integers(0, 5, rows), days + rng.integers(5, 60, rows)
    low_amount, high_amount = rng.integers(0, 10_000, rows), rng.integers(10_000, 10**9, rows)

    low_city_raw, low_city_text = _cities(low_city, low_house)
    high_city_raw, high_city_text = _cities(high_city, high_house)
    nulls = {column: rng.integers(0, 50, rows) for column in COLUMNS}
    nulls["id"] = np.zeros(rows, dtype=np.int64)
    nulls["ship_date"] = np.where(unbounded, records, nulls["ship_date"])
    return Files(
        rows=rows,
        path=join("date=", date, "/", name),
        date=date,
        days=days,
        size=rng.lognormal(17.5, 0.7, rows).astype(np.int64) + 10_000,
        modified=WRITTEN - (total - index) * 37,
        records=records,
        nulls=nulls,
        bounds={
            "id": Bounds(numbers(low_id), numbers(high_id), pa.array(low_id), pa.array(high_id)),
            "score": Bounds(numbers(low_score), numbers(high_score), pa.array(low_score), pa.array(high_score)),
            "city": Bounds(low_city_text, high_city_text, low_city_raw, high_city_raw),
            "event_time": Bounds(
                timestamps(low_time),
                timestamps(high_time),
                _instants(low_time),
                _instants(high_time),
            ),
            "ship_date": Bounds(
                dates(low_ship),
                dates(high_ship),
                make_days(low_ship, unbounded),
                make_days(high_ship, unbounded),
            ),
            "amount": Bounds(
                hundredths(low_amount),
                hundredths(high_amount),
                make_decimals(low_amount),
                make_decimals(high_amount),
            ),
        },
        unbounded=unbounded,
    )


def batches(total: int, segments: int = 10) -> Iterator[tuple[int, int, int]]:
    """Cut the files into segments (commits) and those into batches.

    Args:
        total: The number of files.
        segments: The number of segments.

    Yields:
        The segment, the first file and the end of each batch.
    """
    for segment in range(segments):
        start, end = total * segment // segments, total * (segment + 1) // segments
        while start < end:
            stop = min(start + _BATCH, end)
            yield segment, start, stop
            start = stop


# --- as text ----------------------------------------------------------------------------


def statistics(files: Files, quote: str) -> pa.Array:
    """Write the statistics of each file as JSON.

    Args:
        files: The files.
        quote: How a quotation mark is written, escaped or not.

    Returns:
        A column of JSON texts.
    """

    def bounds(side: str) -> list[pa.Array | str]:
        out: list[pa.Array | str] = []
        for position, column in enumerate(COLUMNS):
            value = getattr(files.bounds[column], side)
            if quote != '"' and column == "city":
                value = pc.replace_substring(pc.replace_substring(value, "\\", "\\\\"), '"', '\\"')
            comma = "," if position else ""
            start = f"{comma}{quote}{column}{quote}:"
            if column in {"city", "event_time"}:
                out += [f"{start}{quote}", value, quote]
            elif column == "ship_date":
                whole = join(f"{start}{quote}", value, quote)
                out.append(pc.if_else(pa.array(files.unbounded), "", whole))
            else:
                out += [start, value]
        return out

    counts: list[pa.Array | str] = []
    for position, column in enumerate(COLUMNS):
        counts += [f"{',' if position else ''}{quote}{column}{quote}:", numbers(files.nulls[column])]
    return join(
        f"{{{quote}numRecords{quote}:",
        numbers(files.records),
        f",{quote}minValues{quote}:{{",
        *bounds("low_text"),
        f"}},{quote}maxValues{quote}:{{",
        *bounds("high_text"),
        f"}},{quote}nullCount{quote}:{{",
        *counts,
        "}}",
    )


def add_lines(files: Files) -> pa.Array:
    """Write the add action of each file as a line of a commit."""
    return join(
        '{"add":{"path":"',
        files.path,
        '","partitionValues":{"date":"',
        files.date,
        '"},"size":',
        numbers(files.size),
        ',"modificationTime":',
        numbers(files.modified),
        ',"dataChange":true,"stats":"',
        statistics(files, '\\"'),
        '"}}\n',
    )


def remove_lines(files: Files, deleted: int) -> pa.Array:
    """Write the remove action of each file, deleted at a time in milliseconds."""
    return join(
        '{"remove":{"path":"',
        files.path,
        f'","deletionTimestamp":{deleted},"dataChange":true,"extendedFileMetadata":true,"partitionValues":{{"date":"',
        files.date,
        '"},"size":',
        numbers(files.size),
        "}}\n",
    )


def to_line(action: dict[str, Any]) -> str:
    """Write one action as a line of a commit."""
    return json.dumps(action, separators=(",", ":")) + "\n"


def commit_info(version: int, operation: str, metrics: dict[str, int]) -> str:
    """Write a commit's first line, as Spark does."""
    info: dict[str, Any] = {
        "timestamp": WRITTEN + version * 1000,
        "operation": operation,
        "operationParameters": {"mode": "Append", "partitionBy": '["date"]'},
    }
    if version:
        info["readVersion"] = version - 1
    info |= {
        "isolationLevel": "Serializable",
        "isBlindAppend": operation == "WRITE",
        "operationMetrics": {name: str(value) for name, value in metrics.items()},
        "engineInfo": "Apache-Spark/4.0.0 Delta-Lake/4.0.0",
        "txnId": str(make_uuid("txn", version)),
    }
    return to_line({"commitInfo": info})


def make_uuid(*parts: object) -> uuid.UUID:
    """Make the UUID that belongs to some names, the same in each run."""
    text = ":".join(str(part) for part in parts)
    return uuid.UUID(bytes=hashlib.md5(text.encode(), usedforsecurity=False).digest(), version=4)


def _field(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def make_metadata(
    fields: Sequence[tuple[str, str]],
    partitions: list[str],
    configuration: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Make a metaData action from names and types of fields."""
    schema = {"type": "struct", "fields": [_field(name, kind) for name, kind in fields]}
    return {
        "id": str(make_uuid("table", *fields)),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema, separators=(",", ":")),
        "partitionColumns": partitions,
        "configuration": configuration or {},
        "createdTime": WRITTEN - 1000,
    }


def make_protocol(*features: str) -> dict[str, Any]:
    """Make the protocol action: the oldest versions, or the table features given."""
    if not features:
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": list(features),
        "writerFeatures": [*features, "appendOnly", "invariants"],
    }


LOG_METADATA = make_metadata(
    [
        ("id", "long"),
        ("score", "double"),
        ("city", "string"),
        ("event_time", "timestamp"),
        ("ship_date", "date"),
        ("amount", "decimal(12,2)"),
        ("date", "date"),
    ],
    ["date"],
)


def log_name(version: int, rest: str = "json") -> str:
    """Name a file of the log."""
    return f"{version:020}.{rest}"


def make_log_folder(table: Path) -> Path:
    """Make a table's folder with its empty log."""
    log = table / "_delta_log"
    log.mkdir(parents=True)
    return log
