"""The tables that the benchmarks and the demo read, generated and cached.

Name of a table and a scale -> a Delta table in the cache, written batch by batch, so
memory stays below half a gigabyte however long the log is. A table is made again only when
its parameters or this module's `FORMAT` change; what must come out of it (files,
rows, bytes) is kept beside it, so that every measurement can check its answer.

    python benches/python/generate.py --cache .bench --scale 0.01 log-json data
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import sys
import time
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import returns
from actions import (
    DAY_ONE,
    DAYS,
    LOG_METADATA,
    SEED,
    WRITTEN,
    add_lines,
    batches,
    commit_info,
    log_name,
    make_days,
    make_decimals,
    make_files,
    make_log_folder,
    make_metadata,
    make_protocol,
    make_uuid,
    remove_lines,
    to_line,
)
from bitmaps import VectorFile
from checkpoints import (
    DOMAIN,
    METADATA,
    PROTOCOL,
    REMOVE,
    TXN,
    CheckpointFile,
    add_rows,
    add_type,
    last_checkpoint_text,
    remove_rows,
)
from tables import Table, folder_name, known, record_path
from textcols import constant, fixed, line_offsets, text_of, uuids

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT = 1


# --- the tables -------------------------------------------------------------------------

_CHECKPOINT_VERSION = 10


def _scaled(number: int, scale: float, least: int) -> int:
    return max(least, round(number * scale))


def _log_facts(files: int, size: int, rows: int) -> dict[str, Any]:
    return {"files": files, "size_bytes": size, "rows": rows}


def _write_json_log(table: Path, parameters: dict[str, Any], _cache: Path) -> dict[str, Any]:
    log = make_log_folder(table)
    total, commits = parameters["files"], parameters["commits"]
    size = rows = 0
    for version in range(commits):
        count = total * (version + 1) // commits - total * version // commits
        head = commit_info(version, "WRITE", {"numFiles": count})
        if not version:
            head += to_line({"metaData": LOG_METADATA}) + to_line({"protocol": make_protocol()})
        (log / log_name(version)).write_text(head)
    for version, start, stop in batches(total, commits):
        files = make_files(start, stop, total)
        with (log / log_name(version)).open("ab") as out:
            out.write(text_of(add_lines(files)))
        size += int(files.size.sum())
        rows += int(files.records.sum())
    return _log_facts(total, size, rows)


def _write_checkpoint(table: Path, parameters: dict[str, Any], _cache: Path) -> dict[str, Any]:
    log = make_log_folder(table)
    total, parts, tombstones = (parameters[key] for key in ("files", "parts", "tombstones"))
    add = add_type(parsed=parameters["parsed"])
    columns: dict[str, pa.DataType] = {
        "txn": TXN,
        "add": add,
        "remove": REMOVE,
        "metaData": METADATA,
        "protocol": PROTOCOL,
        "domainMetadata": DOMAIN,
    }
    written = size = rows = 0
    ten = 10 * parts if parts > 1 else 10
    # Spark spreads the actions over the parts by hash, so the two that matter most
    # may be anywhere: here, in the middle part.
    head_part = parts // 2
    for part in range(parts):
        name = f"checkpoint.{part + 1:010}.{parts:010}.parquet" if parts > 1 else "checkpoint.parquet"
        file = CheckpointFile(log / log_name(_CHECKPOINT_VERSION, name), columns)
        if part == head_part:
            file.write_actions(LOG_METADATA, make_protocol())
        if tombstones:
            removed = make_files(
                total + tombstones * part // parts,
                total + tombstones * (part + 1) // parts,
                total + tombstones,
            )
            file.write(remove=remove_rows(removed))
        for segment, start, stop in batches(total, ten):
            if segment * parts // ten == part:
                files = make_files(start, stop, total)
                file.write(add=add_rows(files, add))
                size += int(files.size.sum())
                rows += int(files.records.sum())
        written += file.close()
    hint: dict[str, Any] = {"version": _CHECKPOINT_VERSION, "size": total + tombstones + 3}
    if parts > 1:
        hint["parts"] = parts
    hint |= {"sizeInBytes": written, "numOfAddFiles": total}
    _finish_checkpoint(log, hint, size)
    return _log_facts(total, size, rows) | {"checkpoint_bytes": written}


def _finish_checkpoint(log: Path, hint: dict[str, Any], size: int) -> None:
    (log / "_last_checkpoint").write_text(last_checkpoint_text(hint))
    commit = commit_info(_CHECKPOINT_VERSION, "WRITE", {"numFiles": 0, "numOutputBytes": size})
    (log / log_name(_CHECKPOINT_VERSION)).write_text(commit)


def _write_v2(table: Path, parameters: dict[str, Any], _cache: Path) -> dict[str, Any]:
    log = make_log_folder(table)
    sidecars = log / "_sidecars"
    sidecars.mkdir()
    total, count = parameters["files"], parameters["sidecars"]
    add = add_type(parsed=False)
    references: list[dict[str, Any]] = []
    size = rows = written = 0
    pending = list(batches(total, count))
    for sidecar in range(count):
        numbering = f"{sidecar + 1:010}.{count:010}.{make_uuid('sidecar', sidecar)}"
        name = log_name(_CHECKPOINT_VERSION, f"checkpoint.{numbering}.parquet")
        file = CheckpointFile(sidecars / name, {"add": add, "remove": REMOVE})
        for segment, start, stop in pending:
            if segment == sidecar:
                files = make_files(start, stop, total)
                file.write(add=add_rows(files, add))
                size += int(files.size.sum())
                rows += int(files.records.sum())
        length = file.close()
        written += length
        references.append({"path": name, "sizeInBytes": length, "modificationTime": WRITTEN})
    configuration = {"delta.checkpointPolicy": "v2"}
    metadata = LOG_METADATA | {"configuration": configuration}
    other: list[dict[str, Any]] = [
        {"protocol": make_protocol("v2Checkpoint")},
        {"metaData": metadata},
        {"checkpointMetadata": {"version": _CHECKPOINT_VERSION}},
    ]
    lines = [*other[-1:], *({"sidecar": reference} for reference in references), *other[:2]]
    top = "".join(to_line(action) for action in lines)
    name = log_name(_CHECKPOINT_VERSION, f"checkpoint.{make_uuid('v2')}.json")
    (log / name).write_text(top)
    hint: dict[str, Any] = {
        "version": _CHECKPOINT_VERSION,
        "size": total + len(lines),
        "sizeInBytes": written + len(top),
        "numOfAddFiles": total,
        "v2Checkpoint": {
            "path": name,
            "sizeInBytes": len(top),
            "modificationTime": WRITTEN,
            "nonFileActions": other,
            "sidecarFiles": references,
        },
    }
    _finish_checkpoint(log, hint, size)
    return _log_facts(total, size, rows) | {"checkpoint_bytes": written}


def _write_small_commits(table: Path, parameters: dict[str, Any], _cache: Path) -> dict[str, Any]:
    """Write many commits of two adds and, from the 101st on, one remove.

    Args:
        table: The table's folder.
        parameters: The number of commits.
        _cache: Not used.

    Returns:
        What must come out.
    """
    log = make_log_folder(table)
    commits = parameters["commits"]
    block = parameters["block"]
    total = 2 * commits
    pieces: list[memoryview] = []
    removes: list[memoryview] = []
    removed_of: list[Any] = []
    for _, start, stop in batches(total, 1):
        files = make_files(start, stop, total)
        for lines, out in ((add_lines(files), pieces), (remove_lines(files, WRITTEN), removes)):
            text, offsets = text_of(lines), line_offsets(lines).tolist()
            first = offsets[0]
            out += [text[a - first : b - first] for a, b in itertools.pairwise(offsets)]
        removed_of.append(np.stack([files.size, files.records], axis=1))
    facts = np.concatenate(removed_of)
    live = np.ones(total, dtype=bool)
    for version in range(commits):
        head = commit_info(version, "MERGE", {"numTargetFilesAdded": 2})
        if not version:
            head += to_line({"metaData": LOG_METADATA}) + to_line({"protocol": make_protocol()})
        parts: list[bytes | memoryview] = [head.encode(), *pieces[2 * version : 2 * version + 2]]
        if version >= block:
            # Each commit removes the first file of some commit of the block before its own.
            gone = 2 * ((version // block - 1) * block + version % block * 37 % block)
            live[gone] = False
            parts.append(removes[gone])
        (log / log_name(version)).write_bytes(b"".join(parts))
    return _log_facts(int(live.sum()), int(facts[live, 0].sum()), int(facts[live, 1].sum()))


def _write_checksum_variant(table: Path, parameters: dict[str, Any], cache: Path) -> dict[str, Any]:
    base = ensure(parameters["of"], cache, parameters["scale"])
    _link_tree(base.path, table)
    checksum = {
        "txnId": str(make_uuid("txn", _CHECKPOINT_VERSION)),
        "tableSizeBytes": base.facts["size_bytes"],
        "numFiles": base.facts["files"],
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": [],
        "metadata": LOG_METADATA,
        "protocol": make_protocol(),
    }
    crc = table / "_delta_log" / log_name(_CHECKPOINT_VERSION, "crc")
    crc.write_text(json.dumps(checksum, separators=(",", ":")))
    return base.facts


def _link_tree(source: Path, target: Path) -> None:
    """Make a second table of the same files without a second copy of the bytes.

    Args:
        source: A folder.
        target: The new folder.
    """

    def link(old: str, new: str) -> None:
        try:
            os.link(old, new)
        except OSError:
            shutil.copy2(old, new)

    shutil.copytree(source, target, copy_function=link)


_DATA_FIELDS = (
    ("id", "long"),
    ("quantity", "integer"),
    ("price", "double"),
    ("status", "string"),
    ("reference", "string"),
    ("event_time", "timestamp"),
    ("day", "date"),
    ("amount", "decimal(12,2)"),
)
_STATUSES = ("cancelled", "delivered", "open", "paid", "returned", "shipped")


def _data_rows(start: int, stop: int) -> pa.Table:
    rng = np.random.default_rng([SEED, 7, start])
    rows = stop - start
    seconds = rng.integers(0, DAYS * 86_400, rows)
    days = DAY_ONE + seconds // 86_400
    micros = (DAY_ONE * 86_400 + seconds) * 1_000_000 + rng.integers(0, 1_000_000, rows)
    reference = np.frombuffer(text_of(fixed(uuids(rng, rows))), dtype=np.uint8).reshape(rows, 36)
    return pa.table(
        {
            "id": pa.array(np.arange(start, stop, dtype=np.int64)),
            "quantity": pa.array(rng.integers(1, 1000, rows).astype(np.int32)),
            "price": pa.array(np.round(rng.random(rows) * 1000, 2)),
            "status": pa.array(_STATUSES).take(pa.array(rng.integers(0, len(_STATUSES), rows))),
            "reference": fixed(constant("R-", rows), reference[:, 24:]),
            "event_time": pa.array(micros).cast(pa.timestamp("us", tz="UTC")),
            "day": make_days(days),
            "amount": make_decimals(rng.integers(0, 10_000_000, rows)),
        },
    )


def _data_statistics(rows: pa.Table, *, tight: bool) -> dict[str, Any]:
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    for name, kind in _DATA_FIELDS:
        ends = pc.min_max(rows[name]).as_py()
        for side, value in (("min", ends["min"]), ("max", ends["max"])):
            out = low if side == "min" else high
            if kind == "timestamp":
                out[name] = value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03}Z"
            elif kind == "date":
                out[name] = value.isoformat()
            elif kind.startswith("decimal"):
                out[name] = float(value)
            else:
                out[name] = value
    statistics: dict[str, Any] = {
        "numRecords": len(rows),
        "minValues": low,
        "maxValues": high,
        "nullCount": {name: 0 for name, _ in _DATA_FIELDS},
    }
    return statistics | {"tightBounds": tight}


def _write_data(table: Path, parameters: dict[str, Any], _cache: Path) -> dict[str, Any]:
    log = make_log_folder(table)
    total, count = parameters["rows"], parameters["files"]
    size = 0
    lines: list[str] = []
    for number in range(count):
        rows = _data_rows(total * number // count, total * (number + 1) // count)
        name = f"part-{number:05}-{make_uuid('data', number)}-c000.snappy.parquet"
        pq.write_table(
            rows,
            table / name,
            compression="snappy",
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_index=True,
            row_group_size=len(rows),
        )
        length = (table / name).stat().st_size
        size += length
        add: dict[str, Any] = {
            "path": name,
            "partitionValues": {},
            "size": length,
            "modificationTime": WRITTEN,
            "dataChange": True,
            "stats": json.dumps(_data_statistics(rows, tight=True), separators=(",", ":")),
        }
        lines.append(to_line({"add": add}))
    head = commit_info(0, "WRITE", {"numFiles": count, "numOutputRows": total})
    head += to_line({"metaData": make_metadata(_DATA_FIELDS, [])}) + to_line({"protocol": make_protocol()})
    (log / log_name(0)).write_text(head + "".join(lines))
    return _log_facts(count, size, total)


def _write_returns(table: Path, parameters: dict[str, Any], _cache: Path) -> dict[str, Any]:
    """The target of Delta's merge benchmark, and beside it every source."""
    total = parameters["rows"]
    bounds = [(total * n // returns.FILES, total * (n + 1) // returns.FILES) for n in range(returns.FILES)]
    files = [returns.target_rows(n, start, stop, total) for n, (start, stop) in enumerate(bounds)]
    size = _write_plain(table / "target", files)
    for source in {case.source: case for case in returns.CASES}.values():
        _write_plain(table / source.source, [returns.source_rows(source, files, total)])
    return _log_facts(returns.FILES, size, total)


def _write_plain(table: Path, files: Sequence[pa.Table]) -> int:
    """Write a table of `web_returns`, a file each; the bytes of its files."""
    log = make_log_folder(table)
    lines: list[str] = []
    sizes: list[int] = []
    for number, rows in enumerate(files):
        name = f"part-{number:05}-{make_uuid(table.name, number)}-c000.snappy.parquet"
        pq.write_table(rows, table / name, compression="snappy", store_schema=False, store_decimal_as_integer=True)
        sizes.append((table / name).stat().st_size)
        statistics: dict[str, Any] = {"numRecords": len(rows), "minValues": {}, "maxValues": {}, "nullCount": {}}
        for column in rows.column_names[:14]:
            found = pc.min_max(rows[column]).as_py()
            if found["min"] is not None:
                statistics["minValues"][column], statistics["maxValues"][column] = found["min"], found["max"]
            statistics["nullCount"][column] = rows[column].null_count
        add = {"path": name, "partitionValues": {}, "size": sizes[-1], "modificationTime": WRITTEN, "dataChange": True}
        lines.append(to_line({"add": add | {"stats": json.dumps(statistics, separators=(",", ":"))}}))
    head = commit_info(0, "WRITE", {"numFiles": len(files)})
    head += to_line({"metaData": make_metadata(returns.FIELDS, [])}) + to_line({"protocol": make_protocol()})
    (log / log_name(0)).write_text(head + "".join(lines))
    return sum(sizes)


def _feed_file(table: Path, rows: pa.Table, folder: str, number: int) -> tuple[str, int]:
    """Write a data or change file; its path and bytes."""
    path = f"{folder}part-{number:05}-{make_uuid('feed' + folder, number)}-c000.snappy.parquet"
    (table / path).parent.mkdir(exist_ok=True)
    pq.write_table(rows, table / path, compression="snappy", store_schema=False, store_decimal_as_integer=True)
    return path, (table / path).stat().st_size


def _write_feed(table: Path, parameters: dict[str, Any], _cache: Path) -> dict[str, Any]:
    """A change feed: versions that add a file, in turn with versions that tell of updates in a change file."""
    log = make_log_folder(table)
    each = parameters["rows_per_version"]
    properties = {"delta.enableChangeDataFeed": "true"}
    head = commit_info(0, "CREATE TABLE", {}) + to_line({"metaData": make_metadata(_DATA_FIELDS, [], properties)})
    (log / log_name(0)).write_text(head + to_line({"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}))
    size = 0

    def add(number: int, rows: pa.Table) -> dict[str, Any]:
        path, length = _feed_file(table, rows, "", number)
        text = json.dumps(_data_statistics(rows, tight=True), separators=(",", ":"))
        facts = {"partitionValues": {}, "size": length, "modificationTime": WRITTEN, "dataChange": True, "stats": text}
        return {"path": path, **facts}

    last: dict[str, Any] = {}
    for version in range(1, parameters["versions"] + 1):
        if version % 2:
            last = add(version, _data_rows(version * each, (version + 1) * each))
            lines = [{"add": last}]
            size += last["size"]
        else:
            half = (version - 1) * each, (version - 1) * each + each // 2
            old, new = _data_rows(*half), _data_rows(*half)
            new = new.set_column(1, "quantity", pc.add(new["quantity"], 1).cast(pa.int32()))
            images = [("update_preimage", old), ("update_postimage", new)]
            changes = pa.concat_tables(
                rows.append_column("_change_type", pa.array([kind] * len(rows))) for kind, rows in images
            )
            path, length = _feed_file(table, changes, "_change_data/", version)
            cdc = {"path": path, "partitionValues": {}, "size": length, "dataChange": False}
            gone = {"path": last["path"], "deletionTimestamp": WRITTEN, "dataChange": True}
            lines = [{"cdc": cdc}, {"remove": gone}, {"add": add(version, old)}]
            size += length
        info = commit_info(version, "WRITE" if version % 2 else "UPDATE", {})
        (log / log_name(version)).write_text(info + "".join(map(to_line, lines)))
    return _log_facts(parameters["versions"], size, parameters["versions"] * each)


def _write_parquet(folder: Path, parameters: dict[str, Any], _cache: Path) -> dict[str, Any]:
    """Plain files, of which a table may be made."""
    folder.mkdir()
    count, each = parameters["files"], parameters["rows_per_file"]
    size = 0
    for number in range(count):
        file = folder / f"{number:05}.parquet"
        pq.write_table(_data_rows(number * each, (number + 1) * each), file, compression="snappy")
        size += file.stat().st_size
    return _log_facts(count, size, count * each)


def _write_vacuum(table: Path, parameters: dict[str, Any], _cache: Path) -> dict[str, Any]:
    """A log and its files, empty as they are, and among them old ones that are nobody's."""
    facts = _write_json_log(table, {"files": parameters["files"], "commits": 10}, _cache)
    partitions: list[Path] = []
    for commit in sorted((table / "_delta_log").iterdir()):
        adds = (json.loads(line) for line in commit.read_text().splitlines() if line.startswith('{"add"'))
        for path in (add["add"]["path"] for add in adds):
            file = table / urllib.parse.unquote(path)
            if not file.parent.is_dir():
                file.parent.mkdir(parents=True)
                partitions.append(file.parent)
            file.touch()
    for number in range(parameters["strays"]):
        stray = partitions[number % len(partitions)] / f"part-{number:05}-{make_uuid('stray', number)}.c000.parquet"
        stray.touch()
        os.utime(stray, (WRITTEN / 1000,) * 2)
    return facts | {"deleted": parameters["strays"]}


_VECTORS_ON = {"delta.enableDeletionVectors": "true"}


def _write_data_deleted(table: Path, parameters: dict[str, Any], cache: Path) -> dict[str, Any]:
    base = ensure("data", cache, parameters["scale"])
    _link_tree(base.path, table)
    log = table / "_delta_log"
    first = log / log_name(0)
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    vectors = VectorFile(make_uuid("vectors", parameters["share"]))
    deleted = 0
    for number, add in enumerate(action["add"] for action in actions if "add" in action):
        statistics = json.loads(add["stats"])
        rows = statistics["numRecords"]
        rng = np.random.default_rng([SEED, 11, number])
        gone = np.sort(rng.choice(rows, max(1, int(rows * parameters["share"])), replace=False))
        statistics["tightBounds"] = False
        add["stats"] = json.dumps(statistics, separators=(",", ":"))
        add["deletionVector"] = vectors.add(gone)
        deleted += len(gone)
    (table / vectors.name).write_bytes(vectors.content())
    head = commit_info(0, "WRITE", {"numFiles": base.facts["files"]})
    head += to_line({"metaData": make_metadata(_DATA_FIELDS, [], _VECTORS_ON)})
    head += to_line({"protocol": make_protocol("deletionVectors")})
    first.unlink()  # a hard link to the base table's log
    first.write_text(head + "".join(to_line(action) for action in actions if "add" in action))
    return base.facts | {"rows": base.facts["rows"] - deleted, "deleted": deleted}


def _deleted_rows(rng: np.random.Generator, kind: int, rows: int) -> tuple[Any, int]:
    """Choose the deleted rows of one vector of the decoding benchmark.

    Args:
        rng: The source of randomness.
        kind: 0 and 1: scattered densely (bitmaps), 2: sparsely (arrays), 3: in runs.
        rows: How many rows are deleted.

    Returns:
        The row numbers, and the number of rows of the file.
    """
    if kind == 3:  # noqa: PLR2004
        records = rows * 10
        starts = np.sort(rng.choice(records // 100, rows // 50, replace=False)) * 100
        return (starts[:, None] + np.arange(50)).ravel(), records
    records = rows * (10 if kind < 2 else 20)  # noqa: PLR2004
    return np.sort(rng.choice(records, rows, replace=False)), records


def _write_vectors(table: Path, parameters: dict[str, Any], _cache: Path) -> dict[str, Any]:
    log = make_log_folder(table)
    count, rows, each = (parameters[key] for key in ("vectors", "rows", "per_file"))
    metadata = make_metadata([("id", "long")], [], _VECTORS_ON)
    head = commit_info(0, "DELETE", {"numDeletionVectorsAdded": count})
    head += to_line({"metaData": metadata}) + to_line({"protocol": make_protocol("deletionVectors")})
    lines = [head]
    deleted = records = 0
    for start in range(0, count, each):
        vectors = VectorFile(make_uuid("vector file", start))
        for number in range(start, min(start + each, count)):
            rng = np.random.default_rng([SEED, 13, number])
            gone, length = _deleted_rows(rng, number % 4, rows)
            deleted += len(gone)
            records += length
            add: dict[str, Any] = {
                "path": f"part-{number:05}-{make_uuid('vector', number)}-c000.snappy.parquet",
                "partitionValues": {},
                "size": 1_000_000,
                "modificationTime": WRITTEN,
                "dataChange": True,
                "stats": to_line({"numRecords": length, "tightBounds": False}).strip(),
                "deletionVector": vectors.add(gone),
            }
            lines.append(to_line({"add": add}))
        (table / vectors.name).write_bytes(vectors.content())
    (log / log_name(0)).write_text("".join(lines))
    return _log_facts(count, 0, records - deleted) | {"deleted": deleted, "records": records}


def _write_quarters(table: Path, parameters: dict[str, Any], cache: Path) -> dict[str, Any]:
    """Deal the vectors out to four tables: `deltalake` hangs on one table with more than about 500.

    Returns:
        What must come out of the four together.
    """
    base = ensure("vectors", cache, parameters["scale"])
    lines = (base.path / "_delta_log" / log_name(0)).read_text().splitlines(keepends=True)
    head, adds = lines[:3], lines[3:]
    for quarter in range(4):
        part = table / str(quarter)
        _link_tree(base.path, part)
        first = part / "_delta_log" / log_name(0)
        first.unlink()  # a hard link to the whole table's log
        first.write_text("".join(head + adds[quarter::4]))
    return base.facts


def _checkpoint(files: int, scale: float, parts: int, *, parsed: bool) -> dict[str, Any]:
    count = _scaled(files, scale, 100)
    return {
        "files": count,
        "parts": parts,
        "tombstones": max(parts, count // 1000),
        "parsed": parsed,
    }


def _recipe(name: str, scale: float) -> tuple[Any, dict[str, Any]]:
    million = _scaled(1_000_000, scale, 100)
    if name in {"data-dv1", "data-dv10"}:
        share = 0.01 if name == "data-dv1" else 0.1
        return _write_data_deleted, {"scale": scale, "share": share}
    recipes: dict[str, tuple[Any, dict[str, Any]]] = {
        "log-json": (_write_json_log, {"files": million, "commits": 10}),
        "log-checkpoint": (_write_checkpoint, _checkpoint(1_000_000, scale, 1, parsed=False)),
        "log-checkpoint-parsed": (_write_checkpoint, _checkpoint(1_000_000, scale, 1, parsed=True)),
        "log-checkpoint-crc": (_write_checksum_variant, {"of": "log-checkpoint", "scale": scale}),
        "log-v2": (_write_v2, {"files": million, "sidecars": 10}),
        "log-commits": (
            _write_small_commits,
            {"commits": _scaled(10_000, scale, 200), "block": 100},
        ),
        "log-vacuum": (_write_vacuum, {"files": million, "strays": million // 100}),
        "parquet": (_write_parquet, {"files": _scaled(10_000, scale, 20), "rows_per_file": 100}),
        "log-10m": (_write_checkpoint, _checkpoint(10_000_000, scale, 16, parsed=False)),
        "data": (
            _write_data,
            {
                "rows": _scaled(20_000_000, scale, 1000),
                "files": 50 if scale >= 0.05 else 5,  # noqa: PLR2004
            },
        ),
        "data-small": (
            _write_data,
            {"rows": _scaled(20_000_000, scale, 1000), "files": _scaled(10_000, scale, 20)},
        ),
        "vectors": (
            _write_vectors,
            {
                "vectors": _scaled(1000, scale, 8),
                "rows": 100_000 if scale >= 0.1 else 10_000,  # noqa: PLR2004
                "per_file": 100,
            },
        ),
        "vectors-quarters": (_write_quarters, {"scale": scale}),
        "returns": (_write_returns, {"rows": _scaled(3_000_000, scale, 2000)}),
        "feed": (_write_feed, {"versions": 100, "rows_per_version": _scaled(50_000, scale, 100) // 2 * 2}),
    }
    return recipes[name]


TABLES = (
    "log-json",
    "log-checkpoint",
    "log-checkpoint-parsed",
    "log-checkpoint-crc",
    "log-v2",
    "log-commits",
    "log-vacuum",
    "log-10m",
    "parquet",
    "data",
    "data-small",
    "data-dv1",
    "data-dv10",
    "vectors",
    "vectors-quarters",
    "feed",
    "returns",
)


def ensure(name: str, cache: Path, scale: float = 1.0) -> Table:
    """Give a generated table, made now unless the cache has it.

    Args:
        name: One of `TABLES`.
        cache: The folder of the cache; made if absent.
        scale: 1.0 for the size of the published figures.

    Returns:
        The table.

    Raises:
        ValueError: If there is no such table.
    """
    if name not in TABLES:
        message = f"no table {name!r}; there are: {', '.join(TABLES)}"
        raise ValueError(message)
    write, parameters = _recipe(name, scale)
    wanted = json.loads(json.dumps({"format": FORMAT, **parameters}))
    found = known(name, cache, scale)
    if found and found.parameters == wanted:
        return found
    folder = folder_name(name, scale)
    target = cache / folder
    record = record_path(name, cache, scale)
    cache.mkdir(parents=True, exist_ok=True)
    fresh = cache / f".{folder}.{os.getpid()}"
    shutil.rmtree(fresh, ignore_errors=True)
    started = time.perf_counter()
    try:
        facts = write(fresh, parameters, cache)
        record.unlink(missing_ok=True)
        if target.is_dir():
            shutil.rmtree(target)
        fresh.rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    facts["seconds_to_generate"] = round(time.perf_counter() - started, 1)
    record.write_text(json.dumps({"parameters": wanted, "facts": facts}, indent=1) + "\n")
    return Table(name, target, facts, wanted)


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate tables from the command line.

    Args:
        arguments: The command line; that of the process if not given.
    """
    parser = argparse.ArgumentParser(description="Generate the tables of the benchmarks.")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"default: {' '.join(TABLES)}")
    parser.add_argument("--cache", type=Path, default=Path(".bench"), help="default: .bench")
    parser.add_argument("--scale", type=float, default=1.0, help="shrink every table; default: 1")
    options = parser.parse_args(arguments)
    for name in options.tables or TABLES:
        table = ensure(name, options.cache, options.scale)
        size = sum(file.stat().st_size for file in table.path.rglob("*") if file.is_file())
        seconds = table.facts["seconds_to_generate"]
        sys.stdout.write(
            f"{name:22} {table.facts['files']:>10,} files  {size / 1e6:>8,.1f} MB  made in {seconds} s  {table.path}\n",
        )


if __name__ == "__main__":
    main()
