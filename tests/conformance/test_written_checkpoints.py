"""What deltafast writes into the log is read as the commits that it stands for, by itself and by `deltalake`.

Every readable table of the corpus is copied, a checkpoint of its newest version is written in each form that it may
have, and the commits up to it are deleted: rows, schema, files, transactions and domains must be those of before.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import tempfile
import time
import warnings
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast
from deltafast.exceptions import DeltaError, DeltaProtocolError
from support import one_in
from tablekit import log

from . import compare, corpus, helpers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

READER = corpus.Reader()
# Writer features of the corpus' tables that have no stable form: previews of what became another feature.
UNWRITABLE = {"liquid"}

V2_FORMS = {
    "v2-json": {"form": "v2"},
    "v2-json-inline": {"form": "v2", "sidecars": False},
    "v2-parquet": {"form": "v2", "manifest": "parquet"},
    "v2-parquet-inline": {"form": "v2", "manifest": "parquet", "sidecars": False},
    "v2-classic-name": {"form": "v2", "classic_name": True},
}
V1_FORMS = {"v1": {"form": "v1"}, "v1-parts": {"form": "v1", "parts": 3}}

#: Tables with which a case takes seconds.
_LARGE = re.compile("kernelrs-300k-add-files|deltars-COVID-19_NYT|golden-parquet-decimal-dictionaries/")


def latest() -> list[corpus.Case]:
    """Return the newest version of each table of the corpus."""
    cases = corpus.cases("read", "snapshot")
    return [case for case in cases if case.case["requested_version"] is None]


def _marked(cases: list[corpus.Case]) -> list[Any]:
    """Return cases as parameters; those with the largest tables, and most of the others, belong to the proof tier."""
    large = [pytest.param(case, marks=pytest.mark.proof) for case in cases if _LARGE.match(str(case))]
    return [*one_in(4, [case for case in cases if not _LARGE.match(str(case))]), *large]


def copy_table(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """Copy the log of a table; its data files and folders are links."""
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name == "_delta_log":
            shutil.copytree(entry, target / entry.name)
        else:
            (target / entry.name).symlink_to(entry.resolve(), target_is_directory=entry.is_dir())
    return target


def _drop_log_before(table: pathlib.Path, keep: set[str]) -> None:
    """Delete everything of the log but the files in `keep` and what they name."""
    for path in (table / "_delta_log").iterdir():
        if path.is_file() and path.name not in keep:
            path.unlink()


def _log_files(table: pathlib.Path) -> set[str]:
    return {path.name for path in (table / "_delta_log").iterdir() if path.is_file()}


def checkpoint_alone(table: pathlib.Path, options: dict[str, Any], *, commit: bool = False) -> None:
    """Write a checkpoint of the newest version and delete all the rest of the log, but for its `commit` if asked."""
    log_folder = table / "_delta_log"
    before = {path.name: path.stat().st_mtime_ns for path in log_folder.iterdir() if path.is_file()}
    sidecars = list(log_folder.glob("_sidecars/*"))
    opened = deltafast.DeltaTable(str(table))
    opened.create_checkpoint(**options)
    written = {p.name for p in log_folder.iterdir() if p.is_file() and before.get(p.name) != p.stat().st_mtime_ns}
    assert any("checkpoint" in name for name in written - {"_last_checkpoint"})
    _drop_log_before(table, written | ({f"{opened.version():020}.json"} if commit else set()))
    for sidecar in sidecars:
        sidecar.unlink()


def allowed(table: pathlib.Path, options: dict[str, Any], *, commit: bool = False) -> bool:
    """Do `checkpoint_alone`, unless the table has a feature that is not written: that is refused by name."""
    features = set(deltafast.DeltaTable(str(table)).protocol().writer_features or [])
    if features & UNWRITABLE:
        with pytest.raises(DeltaProtocolError, match="writer feature"):
            checkpoint_alone(table, options)
        return False
    checkpoint_alone(table, options, commit=commit)
    return True


@pytest.fixture
def scratch() -> Iterator[Callable[[pathlib.Path, str], pathlib.Path]]:
    """Give a function that copies a table under a name, until the end of the test."""
    with tempfile.TemporaryDirectory(prefix="written-") as base:
        yield lambda source, name: copy_table(source, pathlib.Path(base) / name)


def _forms(table: pathlib.Path) -> dict[str, dict[str, Any]]:
    protocol = deltafast.DeltaTable(str(table)).protocol()
    v2 = "v2Checkpoint" in (protocol.writer_features or [])
    return {"v1": V1_FORMS["v1"]} | (V2_FORMS if v2 else V1_FORMS)


@pytest.mark.parametrize("case", _marked(latest()), ids=str)
def test_a_checkpoint_stands_for_all_commits_of_a_real_table(case: corpus.Case, scratch: Any) -> None:
    """Each form of checkpoint, alone, gives the snapshot and the rows of the manifest."""
    with corpus.folder(case.table) as source:
        try:
            forms = _forms(source)
        except DeltaError:
            pytest.skip("the table cannot be opened without its catalog")
        for name, options in forms.items():
            table = scratch(source, name)
            if not allowed(table, options):
                return
            facts = READER.facts(table, None)
            corpus.check_snapshot(facts, case.case)
            if "rows" in case.case:
                corpus.check_rows(READER.rows(table, None), case.case["rows"])
                assert READER.count(table, None) == case.case["rows"]["row_count"]
            _check_columns(table, facts)


def _check_columns(table: pathlib.Path, facts: corpus.Facts) -> None:
    """Check what a checkpoint's Parquet files must and must not hold."""
    files = [*(table / "_delta_log").glob("*.checkpoint*.parquet"), *(table / "_delta_log/_sidecars").glob("*.parquet")]
    configuration = facts.metadata.get("configuration") or {}
    for file in map(pq.ParquetFile, files):
        # The first column of an action says in which rows it is; the statistics would take seconds to read.
        whole = {"protocol", "domainMetadata"}
        fields = {field.name: {inner.name for inner in field.type} for field in file.schema_arrow}
        leaves = [
            field.name if field.name in whole else f"{field.name}.{field.type[0].name}" for field in file.schema_arrow
        ]
        actions = file.read(leaves)
        assert set(actions.column_names) == set(fields)
        present = {name: column.drop_null() for name, column in zip(actions.column_names, actions.columns, strict=True)}
        present = {name: column for name, column in present.items() if len(column)}
        names = {name: fields[name] for name in present}
        assert {"commitInfo", "cdc"}.isdisjoint(fields)
        for protocol in present["protocol"].to_pylist() if "protocol" in present else ():
            assert (protocol["readerFeatures"] is None) == (protocol["minReaderVersion"] < 3)
            assert (protocol["writerFeatures"] is None) == (protocol["minWriterVersion"] < 7)
        assert {"stats", "tags"}.isdisjoint(names.get("remove", ()))
        for domain in present["domainMetadata"].to_pylist() if "domainMetadata" in present else ():
            assert domain["removed"] is False
        if "add" in present:
            for form, key in (("stats", "writeStatsAsJson"), ("stats_parsed", "writeStatsAsStruct")):
                wanted = configuration.get(f"delta.checkpoint.{key}", "true") == "true"
                assert (form in names["add"]) == wanted


@pytest.mark.parametrize("case", _marked([c for c in latest() if c.case["kind"] == "read"]), ids=str)
def test_deltalake_reads_the_checkpoint_as_it_reads_the_commits(case: corpus.Case, scratch: Any) -> None:
    """What `deltalake` reads of a table it reads of our checkpoint alone."""
    deltalake = pytest.importorskip("deltalake")
    with corpus.folder(case.table) as source:
        try:
            theirs = deltalake.DeltaTable(str(source))
            rows = _their_rows(theirs)
            forms = _forms(source)
        except Exception:  # noqa: BLE001 - whatever it cannot read is none of ours
            pytest.skip("deltalake does not read this table")
        for name, options in forms.items():
            table = scratch(source, name)
            if not allowed(table, options):
                return
            again = deltalake.DeltaTable(str(table))
            assert again.version() == theirs.version()
            assert json.loads(again.schema().to_json()) == json.loads(theirs.schema().to_json())
            assert again.metadata().configuration == theirs.metadata().configuration
            assert again.protocol() == theirs.protocol()
            found = _their_rows(again)
            assert compare.alike(found, rows) or _strings(found) == _strings(rows), name
            configuration = theirs.metadata().configuration
            forms_of_stats = ("delta.checkpoint.writeStatsAsJson", "delta.checkpoint.writeStatsAsStruct")
            kept = any(configuration.get(form) != "false" for form in forms_of_stats)
            ours, wanted = (sorted(map(repr, _their_files(t, stats=kept))) for t in (again, theirs))
            assert ours == wanted, name
            for app in _applications(source):
                assert again.transaction_version(app) == theirs.transaction_version(app)


def _applications(table: pathlib.Path) -> list[str]:
    with warnings.catch_warnings():
        # A checksum of the corpus lies about them.
        warnings.simplefilter("ignore", deltafast.DeltaWarning)
        return list(READER.facts(table, None).transactions)


def _their_rows(table: Any) -> pa.Table:
    from deltalake import QueryBuilder

    return pa.table(QueryBuilder().register("t", table).execute("select * from t"))


def _strings(rows: pa.Table) -> list[str]:
    return sorted(repr(row) for row in rows.to_pylist())


def _their_files(table: Any, *, stats: bool) -> list[dict[str, Any]]:
    """Return path, size, partition and number of rows of each file, as deltalake sees them."""
    columns = pa.table(table.get_add_actions(flatten=True))
    wanted = {"path", "size_bytes"} | ({"num_records"} if stats else set())
    names = [name for name in columns.column_names if name in wanted or "partition" in name]
    return columns.select(names).to_pylist()


def _with_v2(table: pathlib.Path) -> None:
    """Give a table the feature of V2 checkpoints, beside what it has."""
    opened = deltafast.DeltaTable(str(table))
    protocol = opened.protocol()
    readers = {*(protocol.reader_features or []), "v2Checkpoint"}
    if protocol.min_reader_version == 2:
        readers.add("columnMapping")
    writers = {*(protocol.writer_features or []), *readers}
    action = {"minReaderVersion": 3, "minWriterVersion": 7}
    action |= {"readerFeatures": sorted(readers), "writerFeatures": sorted(writers)}
    info: dict[str, Any] = {"timestamp": 1, "operation": "UPGRADE PROTOCOL"}
    if opened.metadata().configuration.get("delta.enableInCommitTimestamps") == "true":
        info["inCommitTimestamp"] = int(time.time() * 1000)
    lines = [json.dumps({"commitInfo": info}), json.dumps({"protocol": action})]
    name = f"{opened.version() + 1:020}.json"
    (table / "_delta_log" / name).write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("case", _marked([c for c in latest() if c.case["kind"] == "read"]), ids=str)
def test_v2_checkpoints_stand_for_the_commits_of_any_table(case: corpus.Case, scratch: Any) -> None:
    """A table of any kind that is given the feature keeps its rows through each form of V2 checkpoint."""
    with corpus.folder(case.table) as source:
        try:
            if "v2Checkpoint" in (deltafast.DeltaTable(str(source)).protocol().writer_features or []):
                pytest.skip("the table has the feature itself")
        except DeltaError:
            pytest.skip("the table cannot be opened without its catalog")
        for name, options in V2_FORMS.items():
            table = scratch(source, name)
            _with_v2(table)
            if not allowed(table, options):
                return
            corpus.check_rows(READER.rows(table, None), case.case["rows"])
            facts = READER.facts(table, None)
            assert len(facts.files.path) == case.case["snapshot"]["num_files"]
            assert corpus.files_digest(facts.files) == case.case["snapshot"]["files_digest"]


@pytest.mark.parametrize("case", _marked([c for c in latest() if c.case["kind"] == "read"]), ids=str)
def test_a_compaction_of_all_commits_gives_the_same_rows(case: corpus.Case, scratch: Any) -> None:
    """The commits of a table, compacted into one file, give the snapshot and the rows of the manifest."""
    with corpus.folder(case.table) as source:
        table = scratch(source, "compacted")
        try:
            opened = deltafast.DeltaTable(str(table))
        except DeltaError:
            pytest.skip("the table cannot be opened without its catalog")
        commits = sorted(int(p.stem) for p in (table / "_delta_log").glob("*.json") if p.stem.isdigit())
        if len(commits) < 2 or commits[0] != 0 or commits[-1] != opened.version():
            pytest.skip("the first commits were cleaned up, or there is only one")
        try:
            opened.compact_logs(0, opened.version())
        except DeltaProtocolError:
            return
        for path in (table / "_delta_log").glob("*checkpoint*"):
            path.unlink()
        corpus.check_snapshot(READER.facts(table, None), case.case)
        corpus.check_rows(READER.rows(table, None), case.case["rows"])
        lines = next((table / "_delta_log").glob("*.compacted.json")).read_text().splitlines()
        assert not any("commitInfo" in json.loads(line) or "cdc" in json.loads(line) for line in lines)


# --- statistics ---------------------------------------------------------------------------------------------


def _stats_table(folder: pathlib.Path, configuration: dict[str, str]) -> log.Table:
    """Return a table with mapped, nested and partition columns whose files have statistics."""
    mapping = lambda n, physical: {"delta.columnMapping.id": n, "delta.columnMapping.physicalName": physical}  # noqa: E731
    inner = {
        "type": "struct",
        "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": mapping(3, "col-x")}],
    }
    columns = [
        ("id", "long", mapping(1, "col-id")),
        ("s", inner, mapping(2, "col-s")),
        ("d", "date", mapping(4, "col-d")),
    ]
    table = log.Table(folder)
    stats = {
        "numRecords": 3,
        "minValues": {"col-id": 1, "col-s": {"col-x": -5}},
        "maxValues": {"col-id": 3, "col-s": {"col-x": 9}},
        "nullCount": {"col-id": 0, "col-s": {"col-x": 1}},
    }
    table.commit(
        0,
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        log.metadata(columns, ["d"], {"delta.columnMapping.mode": "name"} | configuration),
        log.add("a.parquet", 7, partitionValues={"col-d": "2024-02-29"}, stats=json.dumps(stats)),
        log.add("b.parquet", 8, partitionValues={"col-d": None}, tags={"k": "v", "n": ""}),
    )
    return table


def _adds(folder: pathlib.Path) -> dict[str, dict[str, Any]]:
    rows = pq.read_table(folder / "_delta_log/00000000000000000000.checkpoint.parquet").to_pylist()
    return {row["add"]["path"]: row["add"] for row in rows if row["add"]}


def test_statistics_are_there_as_text_and_as_a_struct_of_physical_names(tmp_path: Any) -> None:
    table = _stats_table(tmp_path / "both", {})
    deltafast.DeltaTable(str(table.folder)).create_checkpoint()
    adds = _adds(table.folder)
    first, second = adds["a.parquet"], adds["b.parquet"]
    assert json.loads(first["stats"])["maxValues"] == {"col-id": 3, "col-s": {"col-x": 9}}
    parsed = first["stats_parsed"]
    assert parsed["numRecords"] == 3
    assert parsed["minValues"] == {"col-id": 1, "col-s": {"col-x": -5}}
    assert parsed["nullCount"] == {"col-id": 0, "col-s": {"col-x": 1}}
    assert str(first["partitionValues_parsed"]["col-d"]) == "2024-02-29"
    assert (second["stats"], second["stats_parsed"], second["partitionValues_parsed"]) == (None, None, {"col-d": None})
    assert dict(second["tags"]) == {"k": "v", "n": ""}
    assert dict(second["partitionValues"]) == {"col-d": None}


def test_statistics_survive_a_change_of_form(tmp_path: Any) -> None:
    """Struct alone, then text again: what was known stays known."""
    table = _stats_table(tmp_path / "change", {"delta.checkpoint.writeStatsAsJson": "false"})
    deltafast.DeltaTable(str(table.folder)).create_checkpoint()
    assert "stats" not in _adds(table.folder)["a.parquet"]
    old = json.loads((table.folder / "_delta_log/00000000000000000000.json").read_text().splitlines()[1])
    old["metaData"]["configuration"] |= {
        "delta.checkpoint.writeStatsAsJson": "true",
        "delta.checkpoint.writeStatsAsStruct": "false",
    }
    table.commit(1, old)
    (table.folder / "_delta_log/00000000000000000000.json").unlink()
    deltafast.DeltaTable(str(table.folder)).create_checkpoint()
    rows = pq.read_table(table.folder / "_delta_log/00000000000000000001.checkpoint.parquet").to_pylist()
    add = next(row["add"] for row in rows if row["add"] and row["add"]["path"] == "a.parquet")
    assert json.loads(add["stats"]) == {
        "numRecords": 3,
        "minValues": {"col-id": 1, "col-s": {"col-x": -5}},
        "maxValues": {"col-id": 3, "col-s": {"col-x": 9}},
        "nullCount": {"col-id": 0, "col-s": {"col-x": 1}},
    }
    assert "stats_parsed" not in add


def test_the_struct_holds_the_indexed_columns(tmp_path: Any) -> None:
    for n, (configuration, columns) in enumerate(
        [
            ({"delta.dataSkippingNumIndexedCols": "1"}, {"col-id"}),
            ({"delta.dataSkippingStatsColumns": "S.x"}, {"col-s"}),
            ({"delta.dataSkippingStatsColumns": "s, id"}, {"col-id", "col-s"}),
            ({"delta.dataSkippingNumIndexedCols": "-1"}, {"col-id", "col-s"}),
        ]
    ):
        table = _stats_table(tmp_path / f"indexed-{n}", configuration)
        deltafast.DeltaTable(str(table.folder)).create_checkpoint()
        assert set(_adds(table.folder)["a.parquet"]["stats_parsed"]["minValues"]) == columns
    table = _stats_table(tmp_path / "indexed-none", {"delta.dataSkippingNumIndexedCols": "0"})
    deltafast.DeltaTable(str(table.folder)).create_checkpoint()
    assert _adds(table.folder)["a.parquet"]["stats_parsed"] == {"numRecords": 3}


# --- the methods --------------------------------------------------------------------------------------------


@pytest.fixture
def ten(tmp_path: Any) -> log.Table:
    return log.basic(tmp_path / "ten", 10)


def test_a_checkpoint_is_of_the_handles_version(ten: log.Table) -> None:
    assert deltafast.DeltaTable(str(ten.folder), version=4).create_checkpoint() is None
    assert json.loads((ten.folder / "_delta_log/_last_checkpoint").read_text())["version"] == 4
    ten.drop_commits(0, 4)
    assert helpers.ids(ten) == list(range(100))


def test_forms_that_do_not_fit_are_refused(ten: log.Table) -> None:
    table = deltafast.DeltaTable(str(ten.folder))
    with pytest.raises(DeltaProtocolError, match="v2Checkpoint"):
        table.create_checkpoint(form="v2")
    with pytest.raises(ValueError, match="parts"):
        table.create_checkpoint(parts=0)
    assert not [name for name in _log_files(ten.folder) if "checkpoint" in name]


def test_unknown_writer_features_stop_all_maintenance(tmp_path: Any) -> None:
    table = log.basic(tmp_path / "future", 3)
    table.commit(0, log.protocol(writer_only=["someFutureFeature"]), log.metadata(), table.actions(0, 0)[-1])
    opened = deltafast.DeltaTable(str(table.folder))
    before = _log_files(table.folder)
    for work in (opened.create_checkpoint, opened.cleanup_metadata, lambda: opened.compact_logs(0, 1)):
        with pytest.raises(DeltaProtocolError, match="someFutureFeature"):
            work()
    assert _log_files(table.folder) == before


def test_cleanup_deletes_what_expired_and_says_so(ten: log.Table) -> None:
    table = deltafast.DeltaTable(str(ten.folder), version=6)
    table.create_checkpoint()
    old = time.time() - 40 * 86400
    for path in (ten.folder / "_delta_log").iterdir():
        os.utime(path, (old, old))
    planned = table.cleanup_metadata(dry_run=True)
    assert planned == [f"_delta_log/{n:020}.json" for n in range(6)]
    assert table.cleanup_metadata() == planned
    assert not any((ten.folder / path).exists() for path in planned)
    assert table.cleanup_metadata() == []
    assert helpers.ids(ten) == list(range(100))


def test_compaction_of_no_range_is_refused(ten: log.Table) -> None:
    table = deltafast.DeltaTable(str(ten.folder))
    for first, last in ((3, 3), (4, 2), (-1, 2), (5, 10)):
        with pytest.raises(ValueError, match="compact"):
            table.compact_logs(first, last)
    table.compact_logs(3, 9)
    with contextlib.suppress(FileNotFoundError):
        (ten.folder / f"_delta_log/{3:020}.checkpoint.parquet").unlink()
    lines = (ten.folder / f"_delta_log/{3:020}.{9:020}.compacted.json").read_text().splitlines()
    assert sum("add" in json.loads(line) for line in lines) == 7
    assert helpers.ids(ten) == list(range(100))


def test_two_rows_of_strings_are_compared(ten: log.Table) -> None:
    """The comparison that these tests rest on tells rows apart."""
    rows = deltafast.DeltaTable(str(ten.folder)).to_pyarrow_table()
    fields = [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]
    assert compare.digest(compare.row_strings(rows, fields)) != compare.digest(
        compare.row_strings(rows.slice(1), fields)
    )
