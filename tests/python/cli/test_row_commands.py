"""`deltafast diff`, `tail`, `export`, `append` and `merge`."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from deltafast import DeltaTable, write_deltalake
from deltafast.cli import main


@pytest.fixture
def run(capfdbinary):
    """Run a command: its code, what it wrote."""

    def one(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return one


@pytest.fixture
def place(tmp_path):
    """A table with a change feed, of which version 2 updates a row and version 3 deletes one."""
    path = tmp_path / "t"
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(path, pa.table({"id": [1, 2, 3], "s": ["a", None, "c\td"]}), configuration=feed)
    write_deltalake(path, pa.table({"id": [4], "s": ["d"], "n": [0.5]}), mode="append", schema_mode="merge")
    table = DeltaTable(path)
    table.update({"s": "'A'"}, predicate="id = 1")
    table.delete("id = 2")
    return path


def ids(path):
    return sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist())


class TestDiff:
    def test_columns_files_and_rows(self, run, place):
        code, out, err = run("diff", place, 0, 3, "--json")
        found = json.loads(out)
        assert (code, err) == (0, "")
        assert found["changed"]["column n"] == [None, "DOUBLE"]
        assert found["changed"]["files"][0] == 1
        assert found["rows"] == {"insert": 1, "update_preimage": 1, "update_postimage": 1, "delete": 1}
        code, out, _ = run("diff", place, 0, 3)
        assert "column n\t\tDOUBLE\n" in out
        assert "delete\t1\n" in out

    def test_the_order_of_the_versions_may_be_any(self, run, place):
        found = json.loads(run("diff", place, 3, 0, "--json")[1])
        assert found["changed"]["column n"] == ["DOUBLE", None]
        assert found["rows"] == {}

    def test_without_a_change_feed_rows_are_not_compared(self, run, tmp_path):
        write_deltalake(tmp_path, pa.table({"id": [1]}))
        write_deltalake(tmp_path, pa.table({"id": [2]}), mode="append")
        DeltaTable(tmp_path).delete("id = 1")
        code, _, err = run("diff", tmp_path, 0, 2)
        assert (code, "rows cannot be compared" in err) == (0, True)
        assert json.loads(run("diff", tmp_path, 0, 2, "--json")[1])["rows"] is None

    def test_versions_that_there_are_not(self, run, place):
        assert run("diff", place, 0, 9)[0] == 2


class TestTail:
    def test_changes_of_the_newest_version(self, run, place):
        code, out, err = run("tail", place)
        assert (code, err) == (0, "")
        head, row = out.splitlines()
        assert head.split("\t")[:4] == ["id", "s", "n", "_change_type"]
        assert row.split("\t")[:5] == ["2", "", "", "delete", "3"]

    def test_from_a_version_on(self, run, place):
        found = [json.loads(line) for line in run("tail", place, "--from", 0, "--json")[1].splitlines()]
        assert [(row["id"], row["_change_type"]) for row in found] == [
            (1, "insert"),
            (2, "insert"),
            (3, "insert"),
            (4, "insert"),
            (1, "update_preimage"),
            (1, "update_postimage"),
            (2, "delete"),
        ]
        # A tab within a value does not add a column.
        lines = run("tail", place, "--from", 0)[1].splitlines()
        assert {line.count("\t") for line in lines} <= {4, 5}

    def test_without_a_change_feed_rows_that_are_appended(self, run, tmp_path):
        write_deltalake(tmp_path, pa.table({"id": [1]}))
        write_deltalake(tmp_path, pa.table({"id": [2]}), mode="append")
        assert run("tail", tmp_path)[1] == "id\n2\n"
        assert run("tail", tmp_path, "--from", 0, "-w", "id < 2")[1] == "id\n1\n"

    def test_it_follows_until_it_is_interrupted(self, place):
        command = [sys.executable, "-m", "deltafast", "tail", str(place), "-f", "--interval", "0.05", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["_commit_version"] == 3
            write_deltalake(place, pa.table({"id": [9], "s": ["z"], "n": [1.0]}), mode="append")
            assert json.loads(process.stdout.readline())["id"] == 9
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            rest, err = process.communicate(timeout=30)
        assert (process.returncode, rest, err) == (130, "", "error: interrupted\n")


class TestExport:
    @pytest.mark.parametrize(
        ("name", "read"),
        [
            ("rows.parquet", pq.read_table),
            ("rows.csv", pyarrow.csv.read_csv),
            ("rows.arrow", pyarrow.feather.read_table),
            ("rows.feather", pyarrow.feather.read_table),
            (
                "rows.jsonl",
                lambda file: pa.Table.from_pylist([json.loads(line) for line in file.read_text().splitlines()]),
            ),
        ],
    )
    def test_what_is_written_reads_back(self, run, place, tmp_path, name, read):
        code, out, err = run("export", place, tmp_path / name, "-w", "id >= 3", "-c", "id,n")
        assert (code, err) == (0, "")
        assert out == f"2 rows of version 3 written to {tmp_path / name}\n"
        assert sorted(read(tmp_path / name).to_pylist(), key=lambda row: row["id"]) == [
            {"id": 3, "n": None},
            {"id": 4, "n": 0.5},
        ]
        assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []

    def test_standard_output_is_csv(self, run, place):
        code, out, _ = run("export", place, "-", "-v", 0, "-c", "id")
        assert code == 0
        assert pyarrow.csv.read_csv(io.BytesIO(out.encode())).to_pydict() == {"id": [1, 2, 3]}

    def test_a_file_is_replaced_only_if_asked(self, run, place, tmp_path):
        file = tmp_path / "rows.csv"
        file.write_text("kept")
        assert run("export", place, file)[::2] == (2, f"error: {file} exists; --force replaces it\n")
        assert file.read_text() == "kept"
        assert run("export", place, file, "--force")[0] == 0
        assert file.read_text() != "kept"

    def test_what_a_format_cannot_hold_leaves_nothing(self, run, tmp_path):
        write_deltalake(tmp_path / "t", pa.table({"s": [{"x": 1}]}))
        code, _, err = run("export", tmp_path / "t", tmp_path / "rows.csv")
        assert code == 2
        assert "cannot be written as csv" in err
        assert run("export", tmp_path / "t", tmp_path / "rows.txt")[0] == 2
        assert [file.name for file in tmp_path.iterdir()] == ["t"]


class TestAppendAndMerge:
    @pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.jsonl", "a.arrow"])
    def test_files_of_every_format(self, run, tmp_path, name):
        place = tmp_path / "t"
        file, rows = tmp_path / name, pa.table({"id": [5, 6], "s": ["x", None]})
        if name.endswith("parquet"):
            pq.write_table(rows, file)
        elif name.endswith("csv"):
            file.write_text("id,s\n5,x\n6,\n")
        elif name.endswith("jsonl"):
            file.write_text('{"id": 5, "s": "x"}\n{"id": 6, "s": null}\n')
        else:
            pyarrow.feather.write_feather(rows, str(file))
        assert run("append", place, file)[0] == 2
        assert run("append", place, file, "--create")[0] == 0
        code, out, err = run("append", place, file, file, "--json")
        assert (code, err) == (0, "")
        assert (json.loads(out)["num_added_rows"], json.loads(out)["version"]) == (4, 1)
        assert ids(place) == [5, 5, 5, 6, 6, 6]

    def test_rows_are_updated_and_inserted_by_key(self, run, place, tmp_path):
        file = tmp_path / "m.csv"
        file.write_text("id,s,n\n3,C,1.5\n7,e,\n")
        code, out, _ = run("merge", place, file, "--on", "id", "--json")
        found = json.loads(out)
        assert (code, found["num_target_rows_updated"], found["num_target_rows_inserted"]) == (0, 1, 1)
        assert ids(place) == [1, 3, 4, 7]

    def test_new_columns_need_their_option(self, run, place, tmp_path):
        file = tmp_path / "m.csv"
        file.write_text("id,new\n8,1\n")
        assert run("append", place, file)[0] != 0
        assert run("append", place, file, "--merge-schema")[0] == 0
        assert "new" in [field.name for field in DeltaTable(place).schema().fields]

    def test_files_that_cannot_be_read(self, run, place, tmp_path):
        wrong = tmp_path / "wrong.parquet"
        wrong.write_text("PAR1")
        for file, words in ((wrong, "wrong.parquet"), (tmp_path / "no.csv", "there is no file"), ("x.txt", ".parquet")):
            code, _, err = run("append", place, file)
            assert code in (1, 2)
            assert words in err
            assert "Traceback" not in err
        broken = tmp_path / "broken.csv"
        broken.write_text("id,s\n1,a\n2,b,c\n")
        code, _, err = run("append", place, broken)
        assert (code != 0, "Traceback" in err) == (True, False)
        assert DeltaTable(place).version() == 3
