"""The lines that Python's logging gets."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys

import pytest

import deltafast
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import DeltaWarning


def test_each_commit_is_a_line(tmp_path, caplog):
    caplog.set_level(logging.INFO, "deltafast")
    write_deltalake(tmp_path, {"id": [1, 2, 3]})
    table = DeltaTable(tmp_path)
    table.delete("id = 1")
    table.optimize.compact()
    table.alter.set_table_properties({"delta.appendOnly": "true"})
    said = [(record.operation, record.version, record.attempts) for record in caplog.records]
    assert said == [("WRITE", 0, 1), ("DELETE", 1, 1), ("SET TBLPROPERTIES", 2, 1)]
    (first, *_) = caplog.records
    assert (first.name, first.levelname, first.metrics["numOutputRows"]) == ("deltafast", "INFO", "3")
    pattern = r"WRITE committed version 0 of file://\S+ in \d+ ms, 1 attempt: .*numOutputRows=3"
    assert re.match(pattern, first.getMessage())
    # The facts can be sent as JSON.
    json.dumps({key: value for key, value in vars(first).items() if key in ("table", "metrics", "commit_ms")})


def test_each_version_of_a_command_is_a_line(tmp_path, caplog):
    write_deltalake(tmp_path, {"id": [1]}, configuration={"delta.enableDeletionVectors": "true"})
    write_deltalake(tmp_path, {"id": [2]}, mode="overwrite")
    table = DeltaTable(tmp_path)
    caplog.set_level(logging.INFO, "deltafast")
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    table.alter.drop_feature("deletionVectors")
    said = [(record.operation, record.version) for record in caplog.records]
    assert said == [(commit["operation"], commit["version"]) for commit in reversed(table.history()[:-2])]
    assert [operation for operation, _ in said[:2]] == ["VACUUM START", "VACUUM END"]
    assert len(said) > 3


def test_the_number_of_attempts_is_logged(tmp_path, caplog):
    write_deltalake(tmp_path, {"id": [1]})
    behind = DeltaTable(tmp_path)
    write_deltalake(tmp_path, {"id": [2]}, mode="append")
    caplog.set_level(logging.INFO, "deltafast")
    behind.delete("id = 1")
    (record,) = caplog.records
    assert (record.operation, record.version) == ("DELETE", 2)
    assert f"{record.attempts} attempt" in record.getMessage()


def test_opening_and_scans_are_debug_lines(tmp_path, caplog):
    for n in range(4):
        write_deltalake(tmp_path, {"id": [n], "p": [n % 2]}, mode="append", partition_by="p")
    caplog.set_level(logging.DEBUG, "deltafast")
    list(DeltaTable(tmp_path).scan(predicate="p = 0 AND id > 1"))
    opened, scanned = caplog.messages
    assert re.fullmatch(r"opened version 3 of file://\S+ in \d+\.\d ms from 4 commits", opened)
    assert scanned.endswith("reads 1 of 4 files: partition values exclude 2, statistics 1")


def test_the_files_of_the_log_that_were_read_are_logged(tmp_path, caplog):
    for n in range(4):
        write_deltalake(tmp_path, {"id": [n]}, mode="append")
    DeltaTable(tmp_path, version=1).create_checkpoint()
    caplog.set_level(logging.DEBUG, "deltafast")
    DeltaTable(tmp_path)
    assert caplog.messages[0].endswith("ms from the checkpoint of version 1 (1 file) and 2 commits")
    assert caplog.records[0].segment == {
        "checkpoint_version": 1,
        "checkpoint_files": 1,
        "commits": 2,
        "commit_files": 2,
    }


def test_the_reason_why_a_checkpoint_is_ignored_is_logged(tmp_path, caplog):
    for n in range(3):
        write_deltalake(tmp_path, {"id": [n]}, mode="append")
    DeltaTable(tmp_path, version=1).create_checkpoint()
    name = "00000000000000000001.checkpoint.parquet"
    (tmp_path / "_delta_log" / name).write_bytes(b"no Parquet")
    caplog.set_level(logging.DEBUG, "deltafast")
    with pytest.warns(DeltaWarning, match="the table was read without this file"):
        DeltaTable(tmp_path)
    warned, opened = caplog.messages
    assert warned.startswith("warning: ")
    assert name in warned
    assert opened.endswith("from 3 commits")


def test_no_credentials_are_logged(tmp_path, caplog):
    caplog.set_level(logging.DEBUG, "deltafast")
    write_deltalake("memory://user:word@bucket/t", {"id": [1]}, storage_options={"aws_secret_access_key": "hidden"})
    DeltaTable("memory://user:word@bucket/t")
    assert len(caplog.records) >= 1
    assert not any(secret in text for text in caplog.messages for secret in ("word", "hidden"))


def test_a_program_without_logging_does_not_import_it(tmp_path):
    write_deltalake(tmp_path, {"id": [1]})
    program = f"""
import sys
from deltafast import DeltaTable
DeltaTable({str(tmp_path)!r}).delete("id = 1")
print("logging" in sys.modules)
"""
    assert deltafast.__file__ is not None
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
