"""A Delta table folder under construction: data files, commits, checkpoints, compactions, checksums, hints."""

from __future__ import annotations

import hashlib
import json
import urllib.parse
import uuid
import zlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from . import dv

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterable, Sequence

Action = dict[str, Any]

ID_NAME = [("id", "long"), ("name", "string")]


def schema_string(columns: Iterable[tuple[Any, ...]]) -> str:
    """Return a schema string for (name, type) or (name, type, metadata) columns."""
    fields = [{"name": c[0], "type": c[1], "nullable": True, "metadata": c[2] if len(c) > 2 else {}} for c in columns]
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))


def protocol(
    reader: Any = 1, writer: Any = 2, features: Sequence[str] | None = None, writer_only: Sequence[str] = ()
) -> Action:
    """Return a protocol action; with `features` it is (3, 7) and lists them on both sides."""
    if features is not None:
        body = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": list(features)}
        return {"protocol": body | {"writerFeatures": [*features, *writer_only]}}
    if writer_only:
        return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": list(writer_only)}}
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}


def metadata(
    columns: Iterable[tuple[Any, ...]] | str = ID_NAME,
    partition_by: Sequence[str] = (),
    configuration: dict[str, str] | None = None,
    **changes: Any,
) -> Action:
    """Return a metaData action; `changes` replace fields, None removes one."""
    body: dict[str, Any] = {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": columns if isinstance(columns, str) else schema_string(columns),
        "partitionColumns": list(partition_by),
        "configuration": configuration or {},
        "createdTime": 1700000000000,
    } | changes
    return {"metaData": {k: v for k, v in body.items() if v is not None}}


def add(path: str, size: int = 0, **changes: Any) -> Action:
    """Return an add action; `changes` replace fields, None removes one."""
    body: dict[str, Any] = {
        "path": path,
        "partitionValues": {},
        "size": size,
        "modificationTime": 1700000000000,
        "dataChange": True,
    } | changes
    return {"add": {k: v for k, v in body.items() if v is not None}}


def remove(path: str, **changes: Any) -> Action:
    """Return a remove action."""
    body: dict[str, Any] = {"path": path, "deletionTimestamp": 1700000000001, "dataChange": True} | changes
    return {"remove": {k: v for k, v in body.items() if v is not None}}


def canonical(value: Any, path: tuple[str, ...] = ()) -> list[tuple[bytes, str]]:
    """Return the (path, text) pairs of the protocol's canonical JSON, unsorted."""
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in canonical(v, (*path, _quoted(k)))]
    if isinstance(value, list):
        return [p for i, v in enumerate(value) for p in canonical(v, (*path, str(i)))]
    text = _quoted(value) if isinstance(value, str) else json.dumps(value)
    where = "+".join(path)
    return [(where.encode(), f"{where}={text}")]


def _quoted(text: str) -> str:
    return '"' + urllib.parse.quote(text, safe="") + '"'


def checksum(hint: dict[str, Any]) -> str:
    """Return the checksum of a `_last_checkpoint` object."""
    pairs = sorted(canonical({k: v for k, v in hint.items() if k != "checksum"}))
    return hashlib.md5(",".join(text for _, text in pairs).encode(), usedforsecurity=False).hexdigest()


_MAP = pa.map_(pa.string(), pa.string())
_DV = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("tags", _MAP),
        ("deletionVector", _DV),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
)
REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", _MAP),
        ("size", pa.int64()),
        ("deletionVector", _DV),
    ]
)
METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", _MAP),
        ("createdTime", pa.int64()),
    ]
)
PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ]
)
TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
DOMAIN = pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])
SIDECAR = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", _MAP)]
)
CHECKPOINT_METADATA = pa.struct([("version", pa.int64()), ("tags", _MAP)])

CHECKPOINT = {
    "txn": TXN,
    "add": ADD,
    "remove": REMOVE,
    "metaData": METADATA,
    "protocol": PROTOCOL,
    "domainMetadata": DOMAIN,
}


def checkpoint_table(actions: Sequence[Action], columns: dict[str, pa.DataType] | None = None) -> pa.Table:
    """Return actions as the rows of a checkpoint; `columns` gives other types for some."""
    types = CHECKPOINT | (columns or {})
    names = [n for n in types if types[n] is not None]
    arrays = [pa.array([_maps(a.get(n)) for a in actions], types[n]) for n in names]
    return pa.Table.from_arrays(arrays, schema=pa.schema([pa.field(n, types[n]) for n in names]))


_MAP_FIELDS = {"partitionValues", "tags", "options", "configuration"}


def _maps(value: Any, key: str = "") -> Any:
    """Return a value with its maps as lists of pairs, as pyarrow wants them."""
    if isinstance(value, dict):
        if key in _MAP_FIELDS:
            return list(value.items())
        return {k: _maps(v, k) for k, v in value.items()}
    return value


class Table:
    """A table folder that a test fills."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Create the folder and its log."""
        self.folder = folder
        self.log = folder / "_delta_log"
        self.log.mkdir(parents=True, exist_ok=True)

    def __str__(self) -> str:
        """Return the path, as `DeltaTable` takes it."""
        return str(self.folder)

    # Data files

    def data(self, path: str, table: pa.Table | dict[str, Any] | None = None, **options: Any) -> Action:
        """Write a Parquet file and return its add action; `options` starting with `add_` change the action."""
        changes = {k[4:]: options.pop(k) for k in list(options) if k.startswith("add_")}
        if not isinstance(table, pa.Table):
            table = pa.table(table or {"id": pa.array([], pa.int64())})
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, file, **options)
        return add(urllib.parse.quote(path, safe="/=-_.~!*'()"), file.stat().st_size, **changes)

    def ids(self, path: str, start: int, stop: int, **options: Any) -> Action:
        """Write a file of the columns `id` (start to stop) and `name`, with statistics in the action."""
        ids = list(range(start, stop))
        names = [f"n{i}" for i in ids]
        if "add_stats" not in options:
            options["add_stats"] = json.dumps(
                {
                    "numRecords": len(ids),
                    "minValues": {"id": start, "name": min(names)},
                    "maxValues": {"id": stop - 1, "name": max(names)},
                    "nullCount": {"id": 0, "name": 0},
                }
            )
        return self.data(path, {"id": pa.array(ids, pa.int64()), "name": pa.array(names)}, **options)

    # The log

    def commit_file(self, version: int) -> pathlib.Path:
        """Return the path of a commit."""
        return self.log / f"{version:020}.json"

    def commit(self, version: int, *actions: Action | str | bytes) -> pathlib.Path:
        """Write a commit; text and bytes are written as they are, as lines of their own."""
        lines = [a if isinstance(a, bytes) else (a if isinstance(a, str) else dumps(a)).encode() for a in actions]
        file = self.commit_file(version)
        file.write_bytes(b"".join(line + b"\n" for line in lines))
        return file

    def actions(self, first: int, last: int) -> list[Action]:
        """Return the actions of commits `first` to `last`, reconciled by path and deletion vector, newest wins."""
        found: dict[Any, Action] = {}
        for version in range(first, last + 1):
            for line in self.commit_file(version).read_text("utf-8").splitlines():
                action = json.loads(line)
                kind, body = next(iter(action.items()))
                if kind in {"add", "remove"}:
                    vector = body.get("deletionVector") or {}
                    found[body["path"], vector.get("pathOrInlineDv"), vector.get("offset")] = action
                elif kind == "txn":
                    found["txn", body["appId"]] = action
                elif kind == "domainMetadata":
                    found["domain", body["domain"]] = action
                elif kind in {"protocol", "metaData"}:
                    found[kind] = action
        return list(found.values())

    def checkpoint_file(self, version: int, part: int | None = None, parts: int = 0, name: str = "") -> pathlib.Path:
        """Return the path of a checkpoint: classic, a part of many, or with a name of its own."""
        if part is not None:
            return self.log / f"{version:020}.checkpoint.{part:010}.{parts:010}.parquet"
        return self.log / f"{version:020}.checkpoint.{name + '.' if name else ''}parquet"

    def checkpoint(
        self,
        version: int,
        actions: Sequence[Action] | None = None,
        *,
        parts: int = 1,
        columns: dict[str, pa.DataType] | None = None,
        **options: Any,
    ) -> list[pathlib.Path]:
        """Write a classic checkpoint, in `parts` files if more than one; without actions from the commits."""
        actions = self.actions(0, version) if actions is None else actions
        if parts == 1:
            file = self.checkpoint_file(version)
            pq.write_table(checkpoint_table(actions, columns), file, **options)
            return [file]
        files = []
        for part in range(parts):
            file = self.checkpoint_file(version, part + 1, parts)
            pq.write_table(checkpoint_table(actions[part::parts], columns), file, **options)
            files.append(file)
        return files

    def sidecar(self, actions: Sequence[Action], name: str | None = None, **columns: pa.DataType) -> Action:
        """Write a sidecar with file actions and return the action that names it."""
        name = name or f"{uuid.uuid4()}.parquet"
        file = self.log / "_sidecars" / name
        file.parent.mkdir(exist_ok=True)
        types = {"txn": None, "metaData": None, "protocol": None, "domainMetadata": None} | columns
        pq.write_table(checkpoint_table(actions, types), file)
        return {"sidecar": {"path": name, "sizeInBytes": file.stat().st_size, "modificationTime": 1700000000000}}

    def v2_checkpoint(
        self,
        version: int,
        actions: Sequence[Action] | None = None,
        *,
        sidecars: int = 0,
        kind: str = "parquet",
        name: str = "80a083e8-7026-4e79-81be-64bd76c43a11",
        head: Sequence[Action] | None = None,
    ) -> pathlib.Path:
        """Write a V2 checkpoint: `kind` json or parquet; the file actions inline or in so many sidecars."""
        actions = self.actions(0, version) if actions is None else actions
        files = [a for a in actions if "add" in a or "remove" in a]
        rest = [a for a in actions if a not in files]
        top = list(head) if head is not None else [{"checkpointMetadata": {"version": version}}]
        rows = top + rest + ([self.sidecar(files[i::sidecars]) for i in range(sidecars)] if sidecars else files)
        file = self.log / f"{version:020}.checkpoint.{name + '.' if name else ''}{kind}"
        if kind == "json":
            file.write_text("".join(dumps(r) + "\n" for r in rows), "utf-8")
        else:
            columns = {"sidecar": SIDECAR, "checkpointMetadata": CHECKPOINT_METADATA}
            pq.write_table(checkpoint_table(rows, columns), file)
        return file

    def last_checkpoint(self, version: Any, size: int = 5, *, checksummed: bool = False, **more: Any) -> pathlib.Path:
        """Write the hint."""
        hint = {"version": version, "size": size} | more
        if checksummed:
            hint["checksum"] = checksum(hint)
        file = self.log / "_last_checkpoint"
        file.write_text(json.dumps(hint), "utf-8")
        return file

    def compacted(self, first: int, last: int, actions: Sequence[Action | str] | None = None) -> pathlib.Path:
        """Write a log compaction file; without actions from the commits."""
        actions = self.actions(first, last) if actions is None else actions
        file = self.log / f"{first:020}.{last:020}.compacted.json"
        file.write_text("".join((a if isinstance(a, str) else dumps(a)) + "\n" for a in actions), "utf-8")
        return file

    def crc(self, version: int, **changes: Any) -> pathlib.Path:
        """Write a version checksum that is right but for `changes`."""
        state = self.actions(0, version)
        adds = [a["add"] for a in state if "add" in a]
        body: dict[str, Any] = {
            "tableSizeBytes": sum(a["size"] for a in adds),
            "numFiles": len(adds),
            "numMetadata": 1,
            "numProtocol": 1,
            "metadata": next((a["metaData"] for a in state if "metaData" in a), None),
            "protocol": next((a["protocol"] for a in state if "protocol" in a), None),
            "setTransactions": [a["txn"] for a in state if "txn" in a],
            "domainMetadata": [a["domainMetadata"] for a in state if "domainMetadata" in a],
        } | changes
        file = self.log / f"{version:020}.crc"
        file.write_text(json.dumps({k: v for k, v in body.items() if v is not None}), "utf-8")
        return file

    def drop_commits(self, first: int, last: int) -> None:
        """Delete commits, as log cleanup does."""
        for version in range(first, last + 1):
            self.commit_file(version).unlink()

    # Deletion vectors

    def vector(
        self,
        rows: Iterable[int],
        *,
        run: bool = False,
        prefix: str = "",
        storage: str = "u",
        data: bytes | None = None,
        framed: bytes | None = None,
        version: int = 1,
        **changes: Any,
    ) -> dict[str, Any]:
        """Write a deletion vector file and return its descriptor; `changes` replace fields of it."""
        rows = list(rows)
        data = dv.treemap(rows, run=run) if data is None else data
        identifier = uuid.uuid4()
        file = self.folder / prefix / dv.file_name(identifier)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes([version]) + (dv.frame(data) if framed is None else framed))
        path = dv.relative(identifier, prefix) if storage == "u" else file.as_uri()
        body = {
            "storageType": storage,
            "pathOrInlineDv": path,
            "offset": 1,
            "sizeInBytes": len(data),
            "cardinality": len(set(rows)),
        } | changes
        return {k: v for k, v in body.items() if v is not None}


def dumps(action: Action) -> str:
    """Return the line of an action."""
    return json.dumps(action, separators=(",", ":"))


def basic(folder: pathlib.Path, versions: int = 3, **meta: Any) -> Table:
    """Return a table of `versions` commits, each adding ten ids: 0 to 9, 10 to 19 and so on."""
    table = Table(folder)
    for version in range(versions):
        first = [protocol(), metadata(**meta)] if version == 0 else []
        table.commit(version, *first, table.ids(f"part-{version}.parquet", 10 * version, 10 * version + 10))
    return table


def crc32(data: bytes) -> int:
    """Return the CRC-32 that deletion vector files hold."""
    return zlib.crc32(data)
