"""The corpus of real tables with known answers: unpack it, read a table, compare.

`tests/data/corpus/` holds one archive and the manifest that says what must come out (see the README there). The
archive is unpacked once into a cache folder; a test gets the folder of its table. `Reader` is the only place that
knows deltafast: what is compared is what it returns.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import decimal
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import tarfile
import tempfile
import urllib.parse
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from . import compare

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "corpus"
_DONE = ".complete"


@functools.cache
def manifest() -> dict[str, Any]:
    """Return the manifest."""
    return json.loads((DATA / "manifest.json").read_text("utf-8"))


@dataclasses.dataclass(frozen=True)
class Case:
    """One check: a table of the manifest and what to do with it."""

    table: dict[str, Any]
    case: dict[str, Any]

    def __str__(self) -> str:
        """Return the name a test gets."""
        return self.case["case"]


def cases(*kinds: str) -> list[Case]:
    """Return the cases of the given kinds, of all tables."""
    return [Case(t, c) for t in manifest()["tables"] for c in t["cases"] if c["kind"] in kinds]


def _cache_folder(archive: pathlib.Path) -> pathlib.Path:
    """Return the folder to unpack into; its name holds the archive's digest, so a new archive gets a new one."""
    mark = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    base = os.environ.get("DELTAFAST_TEST_CACHE")
    if base:
        return pathlib.Path(base) / f"corpus-{mark}"
    inside = DATA.parent.parent / ".cache"
    with contextlib.suppress(OSError):
        inside.mkdir(exist_ok=True)
        if os.access(inside, os.W_OK):
            return inside / f"corpus-{mark}"
    return pathlib.Path(tempfile.gettempdir()) / f"deltafast-corpus-{os.getuid()}-{mark}"


@functools.cache
def root() -> pathlib.Path:
    """Return the unpacked corpus. Test processes running side by side may all unpack; the first to finish wins."""
    archive = DATA / "corpus.tar.xz"
    folder = _cache_folder(archive)
    if not (folder / _DONE).exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = pathlib.Path(tempfile.mkdtemp(dir=folder.parent, prefix=folder.name))
        with tarfile.open(archive) as tar:
            tar.extractall(scratch, filter="data")
        (scratch / _DONE).touch()
        try:
            scratch.rename(folder)
        except OSError:
            shutil.rmtree(scratch, ignore_errors=True)
            if not (folder / _DONE).exists():
                raise
    return folder


def _unpack_big(packed: pathlib.Path, folder: pathlib.Path) -> None:
    """Unpack a `.tar.zst` table of the corpus once; pyarrow holds the codec, so nothing has to be installed."""
    if folder.exists():
        return
    scratch = pathlib.Path(tempfile.mkdtemp(dir=folder.parent, prefix="unpack-"))
    with pa.input_stream(str(packed), compression="zstd") as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        tar.extractall(scratch, filter="data")
    try:
        next(scratch.iterdir()).rename(folder)
    except OSError:
        if not folder.exists():
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def folder(table: dict[str, Any]) -> Iterator[pathlib.Path]:
    """Give the folder of a table, ready to read; placeholders are replaced in a copy."""
    here = root() / table["path"]
    if archive := table.get("archive"):
        _unpack_big(root() / archive, here)
    template = table.get("template")
    if not template:
        yield here
        return
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch) / here.name
        shutil.copytree(here, copy)
        file = copy / template["file"]
        value = template["replace_with"].replace("<table>", str(copy))
        file.write_text(file.read_text("utf-8").replace(template["placeholder"], value), "utf-8")
        yield copy


@dataclasses.dataclass
class Files:
    """The live files of a snapshot, one entry a file, in one order."""

    path: list[str]
    size: list[int]
    dv_unique_id: list[str | None]
    dv_cardinality: list[int | None]
    partition: list[dict[str, Any]]


@dataclasses.dataclass
class Facts:
    """What a snapshot says without reading rows."""

    version: int
    protocol: dict[str, Any]
    metadata: dict[str, Any]
    transactions: dict[str, dict[str, Any]]
    domains: dict[str, Any]
    files: Files


class Reader:
    """deltafast, as the cases use it."""

    def facts(self, path: pathlib.Path, version: int | None) -> Facts:
        """Open a snapshot and return all it says."""
        import deltafast
        from deltafast import _core

        table = deltafast.DeltaTable(str(path), version=version)
        core = _core.Snapshot.open(str(path), version=version)
        adds = pa.table(table.get_add_actions(flatten=False))
        return Facts(
            version=table.version(),
            protocol=core.protocol(),
            metadata=core.metadata(),
            transactions=core.transactions(),
            domains=core.domain_metadata(),
            files=_files(adds),
        )

    def rows(self, path: pathlib.Path, version: int | None) -> pa.Table:
        """Return all rows."""
        import deltafast

        return deltafast.DeltaTable(str(path), version=version).to_pyarrow_table()

    def schema_json(self, path: pathlib.Path, version: int | None) -> dict[str, Any]:
        """Return the table schema in Delta's JSON."""
        import deltafast

        return json.loads(deltafast.DeltaTable(str(path), version=version).schema().to_json())

    def count(self, path: pathlib.Path, version: int | None) -> int:
        """Return the number of rows, from statistics where they tell."""
        import deltafast

        return deltafast.DeltaTable(str(path), version=version).count()

    def changes(self, path: pathlib.Path, start: int, end: int) -> pa.Table:
        """Return the change data feed, both ends included."""
        import deltafast

        return deltafast.DeltaTable(str(path)).load_cdf(starting_version=start, ending_version=end).read_all()

    def filtered(self, path: pathlib.Path, version: int | None, sql: str) -> tuple[pa.Table, int]:
        """Return the rows that match and the number of files that were planned for them."""
        import deltafast

        table = deltafast.DeltaTable(str(path), version=version)
        planned = pa.table(table.get_add_actions(predicate=sql)).num_rows
        return table.scan(predicate=sql).read_all(), planned


def _files(adds: pa.Table) -> Files:
    """Take the add actions apart."""
    dvs = adds.column("deletion_vector").to_pylist() if "deletion_vector" in adds.column_names else [None] * len(adds)
    partition = adds.column("partition").to_pylist() if "partition" in adds.column_names else [None] * len(adds)
    return Files(
        path=[_canonical(path) for path in adds.column("path").to_pylist()],
        size=adds.column("size_bytes").to_pylist(),
        dv_unique_id=[dv and _unique_id(dv) for dv in dvs],
        dv_cardinality=[dv and dv["cardinality"] for dv in dvs],
        partition=[p or {} for p in partition],
    )


def _canonical(path: str) -> str:
    """Return the reference's form of a path: absolute local paths are `file:` URLs."""
    absolute = path.removeprefix("file://").removeprefix("file:")
    return f"file://{absolute}" if absolute.startswith("/") else path


def _unique_id(dv: dict[str, Any]) -> str:
    """Return the protocol's unique id of a deletion vector."""
    offset = dv.get("offset")
    return dv["storageType"] + dv["pathOrInlineDv"] + ("" if offset is None else f"@{offset}")


def files_digest(files: Files) -> str:
    """Return the corpus' digest of a file list."""
    keys = sorted((p, d or "") for p, d in zip(files.path, files.dv_unique_id, strict=True))
    return "sha256:" + hashlib.sha256("\n".join(f"{p}\t{d}" for p, d in keys).encode()).hexdigest()


def _present(action: dict[str, Any]) -> dict[str, Any]:
    """Return an action without absent fields (an empty feature list says no more than none), feature lists sorted."""
    out = {k: v for k, v in action.items() if v is not None}
    for key in ("readerFeatures", "writerFeatures"):
        if key in out:
            out[key] = sorted(out[key])
            if not out[key]:
                del out[key]
    return out


def check_snapshot(facts: Facts, case: dict[str, Any]) -> None:
    """Compare everything a snapshot says with the manifest."""
    want = case["snapshot"]
    assert facts.version == case["version"]
    assert _present(facts.protocol) == _present(want["protocol"])
    assert _without_defaults(_present(facts.metadata)) == _without_defaults(_present(want["metadata"]))
    files = facts.files
    if len(files.path) == want["num_files"] and "files" in want:
        _check_files(files, want["files"], facts.metadata)
    assert len(files.path) == want["num_files"]
    assert sum(files.size) == want["total_size"]
    if "files_digest" in want:
        assert files_digest(files) == want["files_digest"]
    wanted = {t["appId"]: {k: v for k, v in t.items() if k != "appId"} for t in want.get("set_transactions", [])}
    got = {app: _present(t) for app, t in facts.transactions.items()}
    assert {app: {k: v for k, v in t.items() if k != "appId"} for app, t in got.items()} == wanted
    domains = {d["domain"]: d["configuration"] for d in want.get("domain_metadata", []) if not d.get("removed")}
    assert {name: _configuration(d) for name, d in facts.domains.items()} == domains
    if "in_commit_timestamp" in want:
        assert facts.metadata["configuration"]["delta.enableInCommitTimestamps"] == "true"


def _configuration(domain: Any) -> str:
    """Return the configuration of a domain, given as text or as the action."""
    return domain["configuration"] if isinstance(domain, dict) else domain


def _without_defaults(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata in which an absent map and an empty one are the same."""
    out = dict(metadata)
    out["format"] = {"provider": out["format"]["provider"], "options": out["format"].get("options") or {}}
    out["configuration"] = out.get("configuration") or {}
    return out


def _check_files(files: Files, want: list[dict[str, Any]], metadata: dict[str, Any]) -> None:
    """Compare the live files one by one; partition values are compared as values of their type."""
    schema = json.loads(metadata.get("schemaString") or '{"fields":[]}')
    types = {f["name"]: f["type"] for f in schema["fields"]}
    logical = {
        f.get("metadata", {}).get("delta.columnMapping.physicalName", f["name"]): f["name"] for f in schema["fields"]
    }
    logical |= {name: name for name in types if name not in logical}
    expected = {
        (f["path"], f.get("dv_unique_id")): (
            f["size"],
            f.get("dv_cardinality"),
            {logical[k]: partition_value(v, types[logical[k]]) for k, v in f["partition_values"].items()},
        )
        for f in want
    }
    names = metadata["partitionColumns"]
    got = {
        (path, dv): (size, cardinality, {n: partition[n] for n in names})
        for path, dv, size, cardinality, partition in zip(
            files.path, files.dv_unique_id, files.size, files.dv_cardinality, files.partition, strict=True
        )
    }
    assert got == expected


def partition_value(text: str | None, data_type: str) -> Any:  # noqa: C901, PLR0911 - one line a type
    """Return a partition value's text as the Python value of its type (timestamps without a zone are in UTC)."""
    if text is None or text == "":
        return None
    match compare.type_name(data_type):
        case "string":
            return text
        case "byte" | "short" | "integer" | "long":
            return int(text)
        case "float" | "double":
            return float(text)
        case "boolean":
            return text.lower() == "true"
        case "decimal":
            scale = int(data_type[8:-1].split(",")[1])
            with decimal.localcontext(prec=60):
                return decimal.Decimal(text).quantize(decimal.Decimal(1).scaleb(-scale))
        case "date":
            return dt.date.fromisoformat(text)
        case "timestamp":
            timestamp = dt.datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))
            return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=dt.UTC)
        case "timestamp_ntz":
            return dt.datetime.fromisoformat(text)
        case "binary":
            return text.encode()
        case other:
            message = f"the corpus has no partition column of type {other}"
            raise ValueError(message)


#: The rows that had their digest last.
_LAST: dict[str, tuple[str, pa.Table]] = {}


def check_rows(table: pa.Table, want: dict[str, Any]) -> None:
    """Compare rows, as a multiset, and the Arrow types with the manifest."""
    fields = want["schema"]["fields"] if "schema" in want else None
    if fields is None:
        assert table.num_rows == want["row_count"]
        return
    problems = list(compare.fields_problems(list(table.schema), fields))
    assert not problems, problems
    if encoded := want.get("encoded_columns"):
        _check_encoded(table, want, fields, encoded)
        return
    # Forms of a log are compared one after the other, and most give what the one before gave.
    last, right = _LAST.get("rows", ("", None))
    if right is not None and last == want["content_digest"] and compare.alike(table, right):
        return
    got = compare.row_strings(table, fields)
    if len(got) == want["row_count"] and compare.digest(got) == want["content_digest"]:
        _LAST["rows"] = (want["content_digest"], table)
        return
    stored = want.get("parquet")
    if stored is None:
        message = f"{len(got)} rows for {want['row_count']}; the digest differs"
        raise AssertionError(message)
    raise AssertionError(compare.difference(got, compare.row_strings(pq.read_table(root() / stored), fields)))


def _check_encoded(
    table: pa.Table, want: dict[str, Any], fields: list[dict[str, Any]], encoded: dict[str, str]
) -> None:
    """Compare rows where the corpus stores some columns as JSON text."""
    expected = pq.read_table(root() / want["parquet"])
    got_columns, want_columns = [], []
    for field in fields:
        name, data_type = field["name"], field["type"]
        left, right = table.column(name).combine_chunks(), expected.column(name).combine_chunks()
        if encoded.get(name) == "json":
            got_columns.append(compare.json_strings(left, data_type))
            strings = [None if v is None else json.loads(v) for v in right.to_pylist()]
            want_columns.append([compare.canonical_json(v) for v in strings])
        elif encoded.get(name) == "void_as_null_string":
            got_columns.append(["null" if v is None else "not null" for v in left.to_pylist()])
            want_columns.append(["null"] * expected.num_rows)
        else:
            got_columns.append(compare.strings(left, data_type))
            want_columns.append(compare.strings(right, data_type))
    got, wanted = (["|".join(row) for row in zip(*columns, strict=True)] for columns in (got_columns, want_columns))
    assert sorted(got) == sorted(wanted), compare.difference(got, wanted)


def rows_are(table: pa.Table, want: dict[str, Any]) -> bool:
    """Say whether rows equal an alternative answer."""
    try:
        check_rows(table, want)
    except AssertionError:
        return False
    return True


def missing_path(message: str) -> str | None:
    """Return the path that the reference found missing, relative to the table; None where it names no file of it."""
    found = re.search(r"File (?:<table>/)?(\S+) does not exist", message)
    return urllib.parse.unquote(found.group(1)) if found else None
