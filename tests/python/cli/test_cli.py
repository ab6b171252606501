"""The command line: what it says, its exit codes, what a doctor finds, how a layout is measured and drawn."""

import contextlib
import datetime as dt
import importlib.util
import json
import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from deltafast import DataFileNotFoundError, DeltaTable, InvalidArgumentError, TableNotFoundError, write_deltalake
from deltafast._cli.show import plain
from deltafast._display import size_text
from deltafast.cli import main
from deltafast.doctor import examine
from deltafast.layout import measure
from deltafast.layout.picture import draw

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def place(tmp_path):
    """A table of two partitions and three versions."""
    path = tmp_path / "t"
    data = pa.table({"id": [1, 2, 3, 4], "p": ["x", "x", "y", "y"], "s": ["a", "b", None, "[red]"]})
    write_deltalake(path, data, partition_by=["p"], configuration=VECTORS, description="some rows")
    write_deltalake(path, pa.table({"id": [5], "p": ["x"], "s": ["e"]}), mode="append")
    DeltaTable(path).delete("id = 1")
    return path


@pytest.fixture
def run(capsys):
    """Run a command: its code, what it wrote."""

    def one(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return one


def answer(run, *arguments):
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


class TestCommands:
    def test_info(self, run, place):
        code, out, _ = run("info", place)
        assert code == 0
        for part in ("some rows", "partitioned by", "deletionVectors", "BIGINT", "2 of 20"):
            assert part in out
        answered = answer(run, "info", place)
        assert (answered["version"], answered["numFiles"], answered["partitionColumns"]) == (2, 3, ["p"])
        assert [column["name"] for column in answered["schema"]] == ["id", "p", "s"]
        assert answer(run, "info", place, "--version", 0)["numFiles"] == 2

    def test_history(self, run, place):
        code, out, _ = run("history", place)
        assert code == 0
        assert re.findall(r"WRITE|DELETE", out) == ["DELETE", "WRITE", "WRITE"]
        assert [entry["version"] for entry in answer(run, "history", place, "-n", 2)] == [2, 1]

    def test_files(self, run, place):
        code, out, _ = run("files", place)
        assert code == 0
        assert out.count(".parquet") == 3
        files = answer(run, "files", place, "--where", "p = 'x'")
        assert sorted((file["p"], file["rows"], file["deleted"]) for file in files) == [("x", 1, None), ("x", 2, 1)]
        assert "more" in run("files", place, "--limit", 1)[1]

    def test_head(self, run, place):
        code, out, _ = run("head", place, "-n", 2)
        assert code == 0
        assert [len(line.split("\t")) for line in out.splitlines()] == [3, 3, 3]
        assert answer(run, "head", place, "-c", "s, id", "-w", "id = 4") == [{"s": "[red]", "id": 4}]
        assert "[red]" in run("head", place, "-w", "id = 4")[1]

    def test_sql(self, run, place):
        code, out, _ = run("sql", "SELECT count(*) AS n FROM t", "--table", f"t={place}")
        assert code == 0
        assert out == "n\n4\n"
        assert answer(run, "sql", f"SELECT id FROM delta.`{place}@v0` ORDER BY id LIMIT 1") == [{"id": 1}]
        assert run("sql", "UPDATE t SET s = 'z'", "-t", f"t={place}")[0] == 0
        assert run("sql", "ALTER TABLE t SET TBLPROPERTIES (a = 'b')", "-t", f"t={place}")[1] == "done\n"
        assert DeltaTable(place).metadata().configuration["a"] == "b"
        assert "more" in run("sql", "SELECT * FROM range(500)", "-n", 10)[1]
        (place / "f.csv").write_text("a\n1\n")
        read = f"SELECT * FROM read_csv('{place}/f.csv')"
        assert run("sql", read)[0] == 2
        assert answer(run, "sql", read, "--external-access") == [{"a": 1}]
        assert len(answer(run, "sql", "SELECT * FROM range(500)")) == 500

    def test_optimize(self, run, place):
        assert run("optimize", place, "-w", "p = 'x'")[1] == "2 files became 1, in version 3\n"
        assert run("optimize", place, "-w", "p = 'x'")[1] == "nothing to pack\n"
        assert answer(run, "optimize", place)["numFilesAdded"] == 0
        assert answer(run, "optimize", place, "--z-order", "id, s")["numFilesAdded"] == 2
        DeltaTable(place).delete("id = 3")
        assert answer(run, "optimize", place, "--purge")["numFilesRemoved"] == 1
        code, _, err = run("optimize", place, "--full")
        assert code == 2
        assert "alter.cluster_by" in err
        code, _, err = run("optimize", place, "--full", "--purge")
        assert code == 2
        assert "exclude each other" in err

    def test_optimize_clusters(self, run, tmp_path):
        write_deltalake(tmp_path, pa.table({"id": [3, 1], "n": [1, 2]}), cluster_by=["id"])
        assert answer(run, "optimize", tmp_path)["clusteringStats"]["numOutputZCubes"] == 1
        DeltaTable(tmp_path).alter.cluster_by(["n"])
        assert answer(run, "optimize", tmp_path)["numFilesRemoved"] == 0
        assert answer(run, "optimize", tmp_path, "--full")["numFilesRemoved"] == 1

    def test_vacuum(self, run, place):
        run("optimize", place)
        code, out, err = run("vacuum", place, "--retain", 0, "--force")
        assert (code, out.count("\n")) == (0, 3)
        assert "would be deleted" in err
        assert len(list(place.glob("*/*.parquet"))) == 4
        assert answer(run, "vacuum", place, "--retain", 0, "--force", "--delete")["dry_run"] is False
        assert len(list(place.glob("*/*.parquet"))) == 2
        code, _, err = run("vacuum", place, "--retain", 1)
        assert (code, err.count("\n")) == (2, 1)
        assert err.endswith("; set `--force` if there are none\n")
        code, _, err = run("sql", f"VACUUM '{place}' RETAIN 1 HOURS")
        assert (code, err.count("\n")) == (2, 1)
        assert "set `enforce_retention_duration=False` of `DeltaTable.vacuum` if there are none" in err

    def test_checkpoint(self, run, place):
        assert run("checkpoint", place)[1] == "checkpoint of version 2 written\n"
        assert (place / "_delta_log" / f"{2:020}.checkpoint.parquet").exists()
        assert answer(run, "checkpoint", place) == {"version": 2}

    @pytest.mark.slow
    def test_layout(self, run, place, tmp_path):
        code, out, _ = run("layout", place)
        assert code == 0
        for part in ("p=x", "files by size", "DELETE", "█"):
            assert part in out
        assert answer(run, "layout", place)["files_with_vectors"] == 1
        for suffix, begins in (
            (".svg", b"<?xml"),
            (".png", b"\x89PNG"),
            (".pdf", b"%PDF"),
            (".html", b"<!doctype html>"),
        ):
            target = tmp_path / f"picture{suffix}"
            assert run("layout", place, "-O", target)[:2] == (0, f"{target} written\n")
            assert target.read_bytes().startswith(begins)

    def test_a_picture_that_cannot_be_written_is_one_line(self, run, place, tmp_path, monkeypatch):
        code, out, err = run("layout", place, "-O", tmp_path / "nope" / "x.png")
        assert (code, out) == (2, "")
        assert f"x.png cannot be written: there is no folder {tmp_path}/nope" in err
        assert "Traceback" not in err
        (tmp_path / "full.png").symlink_to("/dev/full")
        (tmp_path / "full.html").symlink_to("/dev/full")
        for name in ("full.png", "full.html"):
            code, out, err = run("layout", place, "-O", tmp_path / name)
            assert (code, out) == (2, "")
            assert f"{name} cannot be written: No space left on device" in " ".join(err.split())

    def test_storage_options(self, run, place):
        assert run("info", place, "-o", "allow_unsafe_rename=false")[0] == 0
        code, _, err = run("info", place, "-o", "nothing")
        assert code == 2
        assert "must be KEY=VALUE" in err


class TestWrongUse:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("nope",), "invalid choice: 'nope'"),
            ((), "arguments are required: COMMAND"),
            (("info",), "arguments are required: TABLE"),
            (("info", "/nowhere/at/all"), "no Delta table"),
            (("sql", "SELEC 1"), "begins no statement"),
            (("sql", "SELECT * FROM t", "-t", "time_zone=x"), "cannot be called time_zone"),
            (("sql", "SELECT * FROM t", "-t", "progress=x"), "cannot be called progress"),
            (("head", "/x", "-n", "0"), "0 is less than 1"),
            (("head", "/x", "-n", "few"), "'few' is not a whole number"),
            (("head", "/x", "--row", "1"), "unrecognized arguments: --row 1"),
        ],
    )
    def test_it_is_said_and_the_code_is_2(self, run, arguments, message):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert "Traceback" not in err

    def test_errors_are_one_line(self, run, place):
        for arguments in (
            ("info", place, "-v", 99),
            ("head", place, "-w", "nope = 1"),
            ("layout", place, "-O", "x.txt"),
        ):
            code, _, err = run(*arguments)
            assert code == 2
            assert len(err.strip().splitlines()) == 1
            assert err.startswith("error: ")

    def test_help(self, run):
        code, out, _ = run("--help")
        assert code == 0
        for name in ("info", "history", "files", "head", "sql", "optimize", "vacuum", "checkpoint", "doctor", "layout"):
            assert re.search(rf"^ +{name}\b", out, re.MULTILINE)
            assert run(name, "--help")[0] == 0

    @pytest.mark.parametrize("library", ["rich", None])
    def test_a_terminal_gets_aligned_columns(self, run, place, monkeypatch, library):
        there = importlib.util.find_spec
        monkeypatch.delitem(sys.modules, "rich", raising=False)
        monkeypatch.setattr("deltafast._libraries.find_spec", lambda name: None if name == library else there(name))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        code, out, _ = run("head", place, "-w", "id >= 4", "-c", "id,s")
        assert code == 0
        lines = [line.rstrip() for line in out.splitlines() if line.strip()]
        if library is None:
            assert len(lines) == 4
            assert "─" in lines[1]
        else:
            assert sorted(lines) == ["4   [red]", "5   e", "id  s"]

    def test_pictures_without_the_extra(self, run, place, monkeypatch):
        there = importlib.util.find_spec
        monkeypatch.delitem(sys.modules, "matplotlib", raising=False)
        monkeypatch.setattr(
            "deltafast._libraries.find_spec", lambda name: None if name == "matplotlib" else there(name)
        )
        code, _, err = run("layout", place, "-O", "x.svg")
        assert code == 2
        assert "pip install 'deltafast[layout]'" in err
        assert run("layout", place)[0] == 0

    def test_as_a_program(self, place):
        command = [sys.executable, "-m", "deltafast", "doctor", str(place / "nowhere")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("error: no Delta table")

    @pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
    @pytest.mark.parametrize("arguments", [["optimize"], ["optimize", "--z-order", "id"], ["checkpoint"]])
    def test_a_bar_is_drawn_where_somebody_sees_it(self, place, arguments):
        import pty

        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "deltafast", *arguments, str(place)]
        subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, check=True)
        done = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, stderr=theirs, check=True)
        json.loads(done.stdout)
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 1 << 16):
                seen += piece
        os.close(ours)
        # Programs that take JSON see none.
        assert seen.endswith(b" s\r\n")
        assert seen.count(b"\n") == 1


class TestDoctor:
    def kinds(self, place):
        return [(finding.level, finding.what) for finding in examine(place)]

    def test_a_table_that_is_well(self, run, tmp_path):
        write_deltalake(tmp_path, pa.table({"a": [1, 2]}))
        code, out, _ = run("doctor", tmp_path, "--deep")
        assert (code, out) == (0, f"✓ {tmp_path} is well\n")
        assert answer(run, "doctor", tmp_path) == []

    def test_no_table(self, tmp_path):
        with pytest.raises(TableNotFoundError):
            examine(tmp_path)

    def test_missing_files(self, run, place):
        gone = next(place.glob("p=y/*.parquet"))
        gone.unlink()
        code, out, _ = run("doctor", place)
        assert code == 1
        assert f"1 data files of the log are not in the store: p=y/{gone.name}" in out
        assert "repair()" in out
        DeltaTable(place).repair()
        assert ("problem", "missing-files") not in self.kinds(place)

    def test_a_commit_that_is_gone(self, run, place):
        (place / "_delta_log" / f"{1:020}.json").unlink()
        code, out, _ = run("doctor", place, "--json")
        found = json.loads(out)
        assert code == 1
        assert {finding["what"] for finding in found if finding["level"] == "problem"} == {"broken-log"}
        assert any("lacks the commits of 1 versions: 1" in finding["message"] for finding in found)

    def test_a_commit_that_is_damaged(self, place):
        log = place / "_delta_log"
        for file in log.glob("*.crc"):
            file.unlink()
        (log / f"{2:020}.json").write_text("{nonsense", encoding="utf-8")
        (finding,) = examine(place)
        assert (finding.level, finding.what) == ("problem", "broken-log")
        assert f'version 1 can be read: DeltaTable("{place}", version=1)' in finding.remedy

    def test_the_newest_commits_are_gone(self, place):
        log = place / "_delta_log"
        (log / f"{2:020}.json").unlink()
        (finding,) = examine(place)
        assert (finding.level, finding.what) == ("problem", "broken-log")
        said = "the log lacks the commits of version 2: the newest is that of version 1, but there is"
        assert finding.message == f"{said} _delta_log/{2:020}.crc"
        assert "write nothing" in finding.remedy
        (log / f"{1:020}.json").unlink()
        (log / f"{4:020}.{5:020}.compacted.json").write_bytes(b"")
        (finding,) = examine(place)
        assert "lacks the commits of versions 1 to 5: the newest is that of version 0" in finding.message

    def test_commits_that_their_catalog_has_not_published(self, place):
        log = place / "_delta_log"
        staged = log / "_staged_commits"
        staged.mkdir()
        (log / f"{2:020}.json").rename(staged / f"{2:020}.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json")
        assert not [finding for finding in examine(place) if "lacks the commits" in finding.message]

    def test_a_commit_that_is_empty(self, run, place):
        log = place / "_delta_log"
        write_deltalake(place, pa.table({"id": [6], "p": ["x"], "s": ["f"]}), mode="append")
        (log / f"{2:020}.json").write_bytes(b"")
        code, out, _ = run("doctor", place)
        assert code == 1
        assert f"commits are empty, so what was done in these versions is lost: _delta_log/{2:020}.json" in out
        assert "version 1 is the last that is whole" in out
        assert "deltafast checkpoint" not in out
        assert ".crc" not in out
        # Nor is anything given up or deleted by what such a log says.
        next(place.glob("p=y/*.parquet")).unlink()
        found = {finding.what: finding for finding in examine(place)}
        assert set(found) == {"broken-log", "missing-files"}
        assert found["missing-files"].remedy.startswith("repair the log first")

    def test_the_only_commit_is_empty(self, tmp_path):
        write_deltalake(tmp_path, pa.table({"a": [1]}))
        (tmp_path / "_delta_log" / f"{0:020}.json").write_bytes(b"")
        found = examine(tmp_path)
        assert {(finding.level, finding.what) for finding in found} == {("problem", "broken-log")}
        assert f"_delta_log/{0:020}.json" in found[0].message

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (b"garbage\xff", "names no version"),
            (b"", "names no version"),
            (b"[1]", "names no version"),
            (b'{"version":99,"size":1}', "names a checkpoint of version 99, which is not there"),
        ],
    )
    def test_a_hint_that_is_wrong(self, run, place, text, said):
        run("optimize", place, "--purge")
        run("checkpoint", place)
        assert self.kinds(place) == []
        hint = place / "_delta_log" / "_last_checkpoint"
        hint.write_bytes(text)
        (finding,) = examine(place)
        assert (finding.level, finding.what) == ("advice", "wrong-hint")
        assert finding.message == f"_delta_log/_last_checkpoint {said}, so readers have to list the log"
        run("checkpoint", place)
        assert self.kinds(place) == []

    def test_a_deletion_vector_that_is_gone(self, run, place):
        gone = next(place.glob("*.bin"))
        gone.unlink()
        code, out, _ = run("doctor", place)
        assert code == 1
        assert f"missing-files: 1 files of deletion vectors are not in the store: {gone.name}" in out
        assert "restore(VERSION)" in out
        assert ("problem", "missing-files") in {(finding.level, finding.what) for finding in examine(place, deep=True)}
        DeltaTable(place).restore(1)
        assert ("problem", "missing-files") not in self.kinds(place)

    def test_changes_that_are_gone(self, tmp_path):
        properties = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(tmp_path, pa.table({"a": range(10)}), configuration=properties)
        for number in range(3):
            DeltaTable(tmp_path).update({"a": "a + 100"}, predicate=f"a = {number}")
        commit = (tmp_path / "_delta_log" / f"{2:020}.json").read_text("utf-8")
        (path,) = [line["cdc"]["path"] for line in map(json.loads, commit.splitlines()) if "cdc" in line]
        (tmp_path / path).unlink()
        assert self.kinds(tmp_path) == []
        (finding,) = examine(tmp_path, deep=True)
        assert (finding.level, finding.what) == ("problem", "missing-changes")
        assert finding.message == (
            f"1 files of changes are not in the store, so the feed of version 2 cannot be read: {path}"
        )
        assert "can be read from version 3 on" in finding.remedy
        with pytest.raises(DataFileNotFoundError):
            DeltaTable(tmp_path).load_cdf(2).read_all()
        assert DeltaTable(tmp_path).load_cdf(3).read_all().num_rows == 2

    def test_changes_that_a_vacuum_took(self, tmp_path):
        properties = {"delta.enableChangeDataFeed": "true", "delta.deletedFileRetentionDuration": "interval 2 days"}
        write_deltalake(tmp_path, pa.table({"a": range(10)}), configuration=properties)
        DeltaTable(tmp_path).update({"a": "a + 100"}, predicate="a = 1")
        table = DeltaTable(tmp_path)
        assert table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
        assert not list(tmp_path.glob("_change_data/*"))
        assert examine(tmp_path, deep=True) == []
        # One that did not say so takes what is older than the table keeps it.
        log = tmp_path / "_delta_log"
        for version in (2, 3):
            (log / f"{version:020}.json").unlink()
            (log / f"{version:020}.crc").unlink(missing_ok=True)
        assert [finding.what for finding in examine(tmp_path, deep=True)] == ["missing-changes"]
        commit, old = log / f"{1:020}.json", round(dt.datetime.now(dt.UTC).timestamp()) - 3 * 86_400
        text = re.sub(r'"timestamp":\d+', f'"timestamp":{old}000', commit.read_text("utf-8"))
        commit.write_text(text, encoding="utf-8")
        # A version is never found to be older than the one before it.
        for version in (0, 1):
            os.utime(log / f"{version:020}.json", (old, old))
        assert examine(tmp_path, deep=True) == []

    def test_a_checksum_that_lies(self, place):
        file = place / "_delta_log" / f"{2:020}.crc"
        answered = json.loads(file.read_text("utf-8"))
        answered["numFiles"] += 1
        file.write_text(json.dumps(answered), encoding="utf-8")
        assert ("problem", "contradicting-log") in self.kinds(place)

    def test_orphans(self, run, place):
        orphan = place / "left.parquet"
        orphan.write_bytes(b"x")
        long_ago = dt.datetime(2020, 1, 1, tzinfo=dt.UTC).timestamp()
        os.utime(orphan, (long_ago, long_ago))
        code, out, _ = run("doctor", place)
        assert code == 0
        assert "1 files are needed by no version" in out
        assert f"deltafast vacuum {place} --delete" in out
        assert run("vacuum", place, "--delete")[0] == 0
        assert ("advice", "orphan-files") not in self.kinds(place)

    def test_damaged_data(self, place):
        file = next(place.glob("p=y/*.parquet"))
        file.write_bytes(b"x" * file.stat().st_size)
        assert "broken-file" not in {what for _, what in self.kinds(place)}
        found = [finding for finding in examine(place, deep=True) if finding.what == "broken-file"]
        assert [finding.level for finding in found] == ["problem"]
        assert file.name in found[0].message

    def test_small_files_and_deleted_rows(self, tmp_path, run):
        for number in range(9):
            write_deltalake(tmp_path, pa.table({"a": range(10 * number, 10 * number + 10)}), mode="append")
        assert self.kinds(tmp_path) == [("advice", "small-files")]
        table = DeltaTable(tmp_path)
        table.alter.set_table_properties(VECTORS)
        table.delete("a % 10 = 0")
        assert self.kinds(tmp_path) == [("advice", "small-files"), ("advice", "deleted-rows")]
        run("optimize", tmp_path)
        assert self.kinds(tmp_path) == []

    def test_no_statistics(self, tmp_path):
        properties = {"delta.dataSkippingNumIndexedCols": "0"}
        write_deltalake(tmp_path, pa.table({"a": [1]}), configuration=properties)
        log = tmp_path / "_delta_log"
        commit = log / f"{0:020}.json"
        lines = [json.loads(line) for line in commit.read_text("utf-8").splitlines()]
        for line in lines:
            line.get("add", {}).pop("stats", None)
        commit.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        (log / f"{0:020}.crc").unlink()
        assert self.kinds(tmp_path) == [("advice", "no-statistics")]

    def test_many_commits_without_a_checkpoint(self, tmp_path):
        write_deltalake(tmp_path, pa.table({"a": [1]}), configuration={"delta.checkpointInterval": "1000"})
        table = DeltaTable(tmp_path)
        for number in range(101):
            table.alter.set_table_properties({"n": str(number)})
        assert self.kinds(tmp_path) == [("advice", "old-checkpoint")]
        table.create_checkpoint()
        assert self.kinds(tmp_path) == []

    def test_too_many_partitions(self, tmp_path):
        write_deltalake(tmp_path, pa.table({"a": range(120), "p": range(120)}), partition_by=["p"])
        assert self.kinds(tmp_path) == [("advice", "small-partitions")]

    def test_clustering_that_is_none(self, run, tmp_path):
        values = pa.table({"a": range(0, 1000, 10), "b": range(100)})
        write_deltalake(tmp_path, values, cluster_by=["a"])
        for number in range(1, 8):
            data = pa.table({"a": range(number, 1000, 10), "b": range(100 * number, 100 * number + 100)})
            write_deltalake(tmp_path, data, mode="append")
        (finding,) = [finding for finding in examine(tmp_path) if finding.what == "not-clustered"]
        assert finding.remedy == f"deltafast optimize {tmp_path}"
        run("optimize", tmp_path)
        assert ("advice", "not-clustered") not in self.kinds(tmp_path)
        DeltaTable(tmp_path).alter.cluster_by(["b"])
        assert ("advice", "not-clustered") not in self.kinds(tmp_path)


class TestLayout:
    def test_the_measures(self, place):
        found = measure(DeltaTable(place))
        assert (found.version, found.files, found.rows, found.deleted_rows) == (2, 3, 5, 1)
        assert found.bytes == sum(size.bytes for size in found.sizes) == sum(part.bytes for part in found.partitions)
        assert sum(size.files for size in found.sizes) == 3
        assert {(part.name, part.files, part.rows) for part in found.partitions} == {("p=x", 2, 3), ("p=y", 1, 2)}
        assert [(state.version, state.files, state.deleted_rows) for state in found.versions] == [
            (0, 2, 0),
            (1, 3, 0),
            (2, 3, 1),
        ]
        assert [state.operation for state in found.versions] == ["WRITE", "WRITE", "DELETE"]

    def test_overlap_is_what_brute_force_says(self, tmp_path):
        ranges = [(0, 9), (5, 14), (9, 9), (20, 30), (31, 40), (0, 40), (40, 41)]
        for low, high in ranges:
            write_deltalake(tmp_path, pa.table({"a": [low, high], "n": pa.nulls(2, pa.int32())}), mode="append")
        (column,) = measure(DeltaTable(tmp_path), versions=0).columns
        depths = [sum(low <= b and a <= high for a, b in ranges) for low, high in ranges]
        assert (column.name, column.files, column.max_depth) == ("a", 7, max(depths))
        assert column.depth == pytest.approx(sum(depths) / 7)
        assert column.share == pytest.approx(sum(depths) / 49)

    def test_types_of_bounds_and_odd_names(self, tmp_path):
        data = pa.table(
            {
                "a \"b\" 'c'": [dt.date(2026, 1, 1)],
                "dec": [Decimal("1.5")],
                "ts": pa.array([1], pa.timestamp("us", "UTC")),
                "st": [{"x": 1.5, "y": "z"}],
                "l": [[1]],
                "p'": ["it's"],
            }
        )
        write_deltalake(tmp_path, data, partition_by=["p'"], configuration={"delta.columnMapping.mode": "name"})
        found = measure(DeltaTable(tmp_path))
        assert {column.name for column in found.columns} == {"a \"b\" 'c'", "dec", "ts", "st.x", "st.y"}
        assert [part.name for part in found.partitions] == ["p'=it's"]

    def test_an_empty_table(self, tmp_path):
        write_deltalake(tmp_path / "e", pa.table({"a": pa.array([], pa.int32())}))
        found = measure(DeltaTable(tmp_path / "e"))
        assert (found.files, found.bytes, found.rows, found.partitions) == (0, 0, 0, [])
        draw(found, tmp_path / "e.svg")

    def test_versions_are_spread(self, tmp_path):
        for number in range(12):
            write_deltalake(tmp_path, pa.table({"a": [number]}), mode="append")
        states = measure(DeltaTable(tmp_path), versions=4).versions
        assert [state.version for state in states] == [2, 5, 8, 11]

    def test_a_picture_is_the_same_each_time(self, place, tmp_path):
        found = measure(DeltaTable(place))
        draw(found, tmp_path / "1.svg")
        draw(found, tmp_path / "2.svg")
        text = (tmp_path / "1.svg").read_text("utf-8")
        assert text == (tmp_path / "2.svg").read_text("utf-8")
        assert "p=x" in text
        assert "files by size" in text

    def test_other_formats_are_refused(self, place, tmp_path):
        with pytest.raises(InvalidArgumentError, match=r"\.svg, \.png, \.pdf, \.html"):
            draw(measure(DeltaTable(place)), tmp_path / "x.bmp")


def test_sizes_as_people_write_them():
    assert [size_text(n) for n in (0, 1023, 1024, 20 << 20, 3 << 30, 5 << 40)] == [
        *("0 B", "1023 B", "1.0 KiB", "20 MiB", "3.0 GiB", "5.0 TiB")
    ]


def test_values_as_json_has_them():
    value = {"a": [dt.date(2026, 1, 1), b"x", float("nan"), Decimal("1.50"), None, 1]}
    assert plain(value) == {"a": ["2026-01-01", "eA==", "nan", "1.50", None, 1]}


def test_the_entry_point_is_declared():
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8")
    assert 'deltafast = "deltafast.cli:main"' in text
