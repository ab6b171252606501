"""Nothing of a table reaches a terminal as a control character: each command and option, reprs, HTML and errors."""

from __future__ import annotations

import io
import json
import logging
import os
import pickle
import re
import subprocess
import sys
import traceback
import unicodedata
import warnings
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

import deltafast
from deltafast import DeltaTable, Field, QueryBuilder, Schema, sql, write_deltalake
from deltafast._catalog.rest_client import CatalogError
from deltafast._cli import parser, show
from deltafast._deltalake.table import write_deltalake as write_as_deltalake
from deltafast._doctor.finding import FindingLevel, FindingList
from deltafast._interop.duckdb_query import ViewQueryBuilder
from deltafast._util.locations import local_path
from deltafast.check import Finding as StoreFinding
from deltafast.check import StoreCheck
from deltafast.cli import main
from deltafast.doctor import Finding, examine
from deltafast.exceptions import DeltaError, DeltaWarning, printable
from deltafast.layout import measure
from deltafast.transaction import AddAction, CommitProperties, RemoveAction

#: Title and clipboard of a terminal, clearing, C1, a carriage return, marks of direction, hidden characters.
NASTY = (
    "a\x1b]52;c;aGk=\x07b\x1b[2Jc\rd\x9be\u202ef\u200bg\u2066h\x7fi\u2028j\xadk\u061cl\ufeffm\U000e0041n\nlast\tcell"
)
NAME = f"name {NASTY}"
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
#: What the command itself writes: colors, and the separators of cells and lines.
OWN = re.compile(r"\x1b\[[0-9;]*m|[\n\t]")


def hidden(shown: str) -> str:
    """The characters of printed text that a terminal obeys or hides, without our own."""
    return "".join(c for c in OWN.sub("", shown) if unicodedata.category(c) in HIDDEN)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A table in which names, values, properties, comments and commits have all of these characters."""
    folder = tmp_path_factory.mktemp("tables") / f"t {NASTY}".replace("\n", "")
    nested = deltafast.StructType([Field(f"field {NASTY}", "string", metadata={"comment": NASTY})])
    fields = [
        Field("id", "long"),
        Field(NAME, "string", metadata={"comment": NASTY}),
        Field(f"p {NASTY}", "string"),
        Field("st", nested),
        Field("bytes", "binary"),
    ]
    properties = {
        "delta.columnMapping.mode": "name",
        "delta.enableChangeDataFeed": "true",
        "delta.enableDeletionVectors": "true",
        "version": "666",
        "table": NASTY,
        "size": "1 B",
        f"property {NASTY}": NASTY,
    }
    DeltaTable.create(
        folder,
        Schema(fields),
        name=NASTY,
        description=NASTY,
        partition_by=[f"p {NASTY}"],
        configuration=properties,
        commit_properties=CommitProperties(custom_metadata={f"key {NASTY}": NASTY}),
    )
    rows = {
        "id": pa.array([1, 2, 3], pa.int64()),
        NAME: [NASTY, None, "z"],
        f"p {NASTY}": [NASTY, NASTY, "q"],
        "st": pa.array([{f"field {NASTY}": NASTY}, None, None]),
        "bytes": pa.array([b"\x1b[2J", None, None], pa.binary()),
    }
    write_deltalake(folder, pa.table(rows), mode="append")
    DeltaTable(folder).delete([(NAME, "=", "z")])
    DeltaTable(folder).update({NAME: f"concat(`{NAME}`, '{NASTY}')"}, predicate=[(f"p {NASTY}", "=", NASTY)])
    return folder


#: Arguments of each command; `{t}` is the table, `{new}` a path without one.
COMMANDS: dict[str, list[list[str]]] = {
    "info": [["{t}"], ["{t}", "-v", "0"], ["{t}", "-v", "99"]],
    "history": [["{t}"], ["{t}", "-n", "2"]],
    "files": [["{t}"], ["{t}", "-n", "1"], ["{t}", "-w", "`{name}` = '{nasty}'"], ["{t}", "-w", "{nasty}"]],
    "head": [["{t}"], ["{t}", "-c", "{name}"], ["{t}", "-w", "`{name}` <> ''"], ["{t}", "-c", "no {nasty}"]],
    "sql": [
        ["SELECT * FROM t", "-t", "t={t}"],
        ["SELECT 'x' || chr(27) || chr(155) || chr(8238) AS \"n\x1b[2J\" FROM t", "-t", "t={t}"],
        ["DESCRIBE DETAIL t", "-t", "t={t}"],
        ["DESCRIBE HISTORY t", "-t", "t={t}"],
        ["SELECT {nasty} FROM t", "-t", "t={t}"],
        ["SELECT error(chr(27) || '[2J') FROM t", "-t", "t={t}"],
        ["DROP {nasty}", "-t", "t={t}"],
    ],
    "schema": [["{t}"], ["{t}", "--ddl"], ["{t}", "-v", "0"]],
    "diff": [["{t}", "0", "3"], ["{t}", "1", "2"]],
    "tail": [["{t}"], ["{t}", "--from", "1"], ["{t}", "-w", "`{nasty}` = 1"]],
    "export": [["{t}", "{new}.jsonl"], ["{t}", "{new}.parquet", "-c", "{name}"], ["{t}", "{new}.{nasty}"]],
    "explain": [["{t}"], ["{t}", "-w", "`{name}` = '{nasty}'"], ["{t}", "-w", "{nasty} = 1"]],
    "layout": [["{t}"], ["{t}", "--versions", "2"], ["{t}", "-O", "{new}/{nasty}.svg"]],
    "append": [["{t}", "{new}.csv"], ["{new}", "{csv}"], ["{copy}", "{csv}"]],
    "merge": [["{copy}", "{csv}", "--on", "{nasty}"], ["{copy}", "{csv}", "--on", "id"]],
    "create": [["{new}", "id {nasty}"], ["{new}1", "--like", "{t}"], ["{t}", "id INT"]],
    "convert": [["{new}"], ["{t}"]],
    "clone": [["{t}", "{new}2"], ["{t}", "{t}"]],
    "restore": [["{copy}", "-v", "99"], ["{copy}", "--timestamp", "{nasty}"], ["{copy}", "-v", "1"]],
    "alter": [["{copy}", "--set", "x{nasty}={nasty}"], ["{copy}", "--drop-column", "{nasty}"]],
    "optimize": [["{copy}"], ["{copy}", "--z-order", "{nasty}"], ["{copy}", "--z-order", "id"]],
    "vacuum": [["{copy}"], ["{copy}", "--retain", "0", "--force"]],
    "checkpoint": [["{copy}"], ["{new}"]],
    "doctor": [["{t}"], ["{damaged}", "--deep"], ["{new}"]],
    "check-store": [["{new}3"]],
}


def test_each_command_has_cases():
    actions: Any = parser._parser()._subparsers
    assert set(COMMANDS) == set(actions._group_actions[0].choices)
    assert sum(map(len, COMMANDS.values())) >= 60


@pytest.fixture
def words(place, tmp_path) -> dict[str, str]:
    """The places that arguments name."""
    copy, damaged = tmp_path / "copy", tmp_path / "damaged"
    for target in (copy, damaged):
        for file in place.rglob("*"):
            if file.is_file():
                moved = target / file.relative_to(place)
                moved.parent.mkdir(parents=True, exist_ok=True)
                moved.write_bytes(file.read_bytes())
    for file in damaged.rglob("*.parquet"):
        file.unlink()
    (damaged / f"extra{NASTY}.parquet").write_bytes(b"x")
    csv = tmp_path / f"rows{NASTY}.csv"
    csv.write_text(f'id,"wrong {NASTY}"\n7,"{NASTY}"\n')
    new = f"{tmp_path}/new{NASTY}"
    paths = {"t": str(place), "copy": str(copy), "damaged": str(damaged), "csv": str(csv), "new": new}
    return {**paths, "name": NAME, "nasty": NASTY}


CASES = [(command, index) for command, cases in COMMANDS.items() for index in range(len(cases))]


@pytest.mark.parametrize("output", ["pipe", "terminal with rich", "terminal", "json"])
@pytest.mark.parametrize(("command", "index"), CASES)
def test_a_command_prints_no_control_character(command, index, output, words, capsys, monkeypatch):
    if command == "check-store" and output != "pipe":
        return  # a minute each; its report is a case below
    if output.startswith("terminal"):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("TERM", "xterm-256color")
    if output == "terminal":
        monkeypatch.setattr(show, "is_installed", lambda _: False)
    arguments = [part.format(**words) for part in COMMANDS[command][index]]
    if command == "check-store":
        monkeypatch.setattr("deltafast.check.check_store", lambda *_: STORE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = main([command, *arguments, *(["--json"] if output == "json" else [])])
    printed = capsys.readouterr()
    assert code in (0, 1, 2)
    assert hidden(printed.out) == ""
    assert hidden(printed.err) == ""
    assert printed.out + printed.err
    assert "Traceback" not in printed.err
    if output == "json" and code == 0 and not printed.err:
        for document in printed.out.splitlines():
            json.loads(document)


def test_json_keeps_every_character(words, capsys):
    assert main(["head", words["t"], "-c", NAME, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row[NAME] for row in rows} == {NASTY + NASTY, None}
    assert main(["info", words["t"], "--json"]) == 0
    detail = json.loads(capsys.readouterr().out)
    assert (detail["name"], detail["description"]) == (NASTY, NASTY)
    assert detail["properties"][f"property {NASTY}"] == NASTY
    assert detail["schema"][1] == {"name": NAME, "type": "STRING", "nullable": True, "comment": NASTY}


@given(value=st.text(st.characters(exclude_categories=["Cs"])) | st.text(st.characters(categories=["Cc", "Cf", "Zl"])))
def test_json_is_printable_and_lossless_for_any_text(value):
    document = show.json_text({value: [value]})
    assert hidden(document) == ""
    assert json.loads(document) == {value: [value]}


#: Text that most encodings lack: other scripts, a symbol, a character beyond the basic plane; and our own symbols.
FOREIGN = "日本 é € 😀"


@pytest.fixture
def run_in(monkeypatch):
    """Run a command whose output streams have an encoding; returns the exit code and the text of both."""

    def run(encoding: str, *arguments: str) -> tuple[int, str, str]:
        streams = [io.TextIOWrapper(io.BytesIO(), encoding, newline="") for _ in range(2)]
        monkeypatch.setattr(sys, "stdout", streams[0])
        monkeypatch.setattr(sys, "stderr", streams[1])
        code = main(arguments)
        monkeypatch.undo()
        assert [stream.errors for stream in streams] == ["strict", "strict"]
        out, err = (stream.buffer.getvalue() for stream in streams)  # pyright: ignore[reportAttributeAccessIssue]
        return code, out.decode(encoding), err.decode(encoding)

    return run


@pytest.fixture(scope="module")
def foreign(tmp_path_factory) -> str:
    """A table whose names, values, properties and comments need Unicode."""
    path = tmp_path_factory.mktemp("foreign") / "t日"
    fields = [Field("id", "long"), Field(f"n {FOREIGN}", "string", metadata={"comment": FOREIGN})]
    properties = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true", f"k {FOREIGN}": FOREIGN}
    DeltaTable.create(path, Schema(fields), description=FOREIGN, configuration=properties)
    write_deltalake(path, {"id": [1], f"n {FOREIGN}": [FOREIGN]}, mode="append")
    return str(path)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "shift_jis", "utf-8"])
@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        ["info", "{t}"],
        ["history", "{t}"],
        ["files", "{t}"],
        ["head", "{t}"],
        ["sql", "SELECT '日本 é' AS \"x €\""],
        ["schema", "{t}"],
        ["schema", "{t}", "--ddl"],
        ["diff", "{t}", "0", "1"],
        ["tail", "{t}"],
        ["explain", "{t}", "-w", "`n {foreign}` = '{foreign}'"],
        ["layout", "{t}"],
        ["doctor", "{t}"],
    ],
)
def test_characters_that_the_encoding_of_the_output_lacks_are_escapes(arguments, as_json, encoding, foreign, run_in):
    words = [part.format(t=foreign, foreign=FOREIGN) for part in arguments]
    code, out, err = run_in(encoding, *words, *(["--json"] if as_json else []))
    assert (code, err) == (0, "")
    reference = run_in("utf-8", *words, *(["--json"] if as_json else []))[1]
    if as_json:
        # The same values: JSON's escapes lose nothing.
        assert [json.loads(line) for line in out.splitlines()] == [json.loads(line) for line in reference.splitlines()]
    elif arguments[0] not in ("layout", "doctor"):  # our own symbols have substitutes, not escapes
        assert out == reference.encode(encoding, "backslashreplace").decode(encoding)


def test_symbols_of_ours_have_substitutes_in_other_encodings(foreign, run_in):
    assert "█" in run_in("utf-8", "layout", foreign)[1]
    assert "###" in run_in("ascii", "layout", foreign)[1]
    assert "\\u2588" not in run_in("ascii", "layout", foreign)[1]
    assert run_in("ascii", "doctor", foreign)[1].startswith("ok: ")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_errors_and_help_are_printed_in_any_encoding(encoding, foreign, run_in):
    code, out, err = run_in(encoding, "head", foreign, "-c", FOREIGN)
    assert (code, out) == (2, "")
    assert err.startswith("error: the table has no column")
    assert "\\u65e5" in err
    assert run_in(encoding, "head", "--help")[0] == 0
    assert run_in(encoding, "head", foreign, "-n", FOREIGN)[0] == 2


@given(value=st.text(st.characters(exclude_categories=["Cs"])), encoding=st.sampled_from(["ascii", "cp1252", "koi8-r"]))
def test_json_is_lossless_in_any_encoding(value, encoding):
    stream = io.TextIOWrapper(io.BytesIO(), encoding, newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        with show.escaping_output():
            show.machine({value: [value]})
    document = stream.buffer.getvalue().decode(encoding)  # pyright: ignore[reportAttributeAccessIssue]
    assert json.loads(document) == {value: [value]}


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are Unicode there")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["info", "/nowhere/x\udcff"], r"x\udcff"),
        (["head", "{t}", "-c", "n\udcff"], r"n\udcff"),
        (["head", "{t}", "-w", "id = '\udcff'"], r"\udcff"),
        (["sql", "SELECT '\udcff'"], r"\udcff"),
        (["append", "{t}", "rows.csv", "no\udcff.csv"], r"no\udcff.csv"),
        (["alter", "{t}", "--set", "user.key=\udcff"], "the value of user.key"),
        (["alter", "{t}", "--set", "user.\udcff=1"], r"user.\udcff"),
        (["alter", "{t}", "--drop-column", "\udcff"], r"\udcff"),
        (["create", "/nowhere/\udcff", "id INT"], r"\udcff"),
        (["info", "{t}", "-o", "secret=hidden\udcff"], "the value of secret"),
    ],
)
def test_an_argument_that_is_not_text_is_named_in_one_line(arguments, named, foreign, capsys):
    assert main([part.format(t=foreign) for part in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"error: .* is not text in the encoding utf-8\n", err)
    assert named in err
    assert "hidden" not in err


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are Unicode")
def test_a_program_takes_bytes_that_are_not_text_for_files_only(foreign, tmp_path):
    command = [sys.executable, "-m", "deltafast"]
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHONIO", "LC_"))}
    target = os.fsencode(tmp_path) + b"/rows\xff.csv"
    subprocess.run([*command, "export", foreign, target], check=True, capture_output=True, env=plain)
    assert Path(os.fsdecode(target)).exists()
    # Without UTF-8 in the locale.
    bare = plain | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([*command, "head", "x", "-c", "日"], capture_output=True, text=True, check=False, env=bare)
    assert done.returncode == 2
    assert done.stderr.startswith("error: the argument ")
    assert "PYTHONUTF8=1" in done.stderr
    done = subprocess.run([*command, "sql", "SELECT chr(26085) AS x"], capture_output=True, check=True, env=bare)
    assert done.stdout.split() == [b"x", rb"\u65e5"]


@given(value=st.text() | st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp"])))
def test_printable_text_has_no_control_character_and_stays_as_it_is(value):
    shown = printable(value)
    assert not any(unicodedata.category(c) in HIDDEN for c in shown)
    assert printable(shown) == shown
    # Letters, marks and symbols of every script stay.
    assert [c for c in value if unicodedata.category(c) not in HIDDEN] == [c for c in value if printable(c) == c]


def test_an_export_of_csv_and_json_lines_keeps_every_character(words, tmp_path, capsysbinary):
    assert main(["export", words["t"], "-", "-c", f"id,{NAME}"]) == 0
    table = csv.read_csv(
        io.BytesIO(capsysbinary.readouterr().out), parse_options=csv.ParseOptions(newlines_in_values=True)
    )
    assert table.column_names == ["id", NAME]
    assert table.column(1).to_pylist() == [NASTY + NASTY, ""]
    assert main(["export", words["t"], str(tmp_path / "rows.jsonl"), "-c", NAME]) == 0
    capsysbinary.readouterr()
    lines = (tmp_path / "rows.jsonl").read_text().strip("\n").split("\n")
    assert {json.loads(line)[NAME] for line in lines} == {NASTY + NASTY, None}


def test_properties_of_any_name_leave_the_facts_of_info(words, capsys):
    main(["info", words["t"]])
    facts = dict(line.split("\t", 1) for line in capsys.readouterr().out.splitlines() if "\t" in line)
    assert facts["version"].startswith("3 of ")
    assert facts["table"].startswith("file://")
    assert facts["size"] != "1 B"
    assert facts["property version"] == "666"
    assert facts["property size"] == "1 B"


def test_the_statement_of_a_schema_makes_the_same_comments_and_properties(words, capsys, tmp_path):
    assert main(["schema", words["t"], "--ddl", "--json"]) == 0
    statement = json.loads(capsys.readouterr().out)["statement"]
    other = tmp_path / "other"
    sql(re.sub(r"delta\.`[^`]*`", lambda _: f"delta.`{other}`", statement, count=1))
    made, given_table = DeltaTable(other), DeltaTable(words["t"])
    assert made.metadata().description == NASTY
    assert made.metadata().configuration[f"property {NASTY}"] == NASTY
    names = [[field.name for field in table.schema().fields] for table in (made, given_table)]
    assert names[0] == names[1]
    assert made.schema().fields[1].metadata["comment"] == NASTY


@pytest.mark.parametrize(
    "arguments", [["tail"], ["tail", "--json"], ["head"], ["export", "-"], ["explain"], ["optimize"], ["sql"]]
)
def test_a_missing_data_file_is_one_line(arguments, tmp_path, capsys):
    table = tmp_path / "t"
    for start in (0, 3):
        write_deltalake(table, {"id": [start]}, mode="append", configuration={"delta.enableChangeDataFeed": "true"})
    for file in table.glob("*.parquet"):
        file.unlink()
    command, *others = arguments
    place = f"SELECT * FROM delta.`{table}`" if command == "sql" else str(table)
    assert main([command, place, *others]) in (1, 2)
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert "no such file" in error


STORE = StoreCheck(NASTY, safe=False, findings=(StoreFinding("keys", "failed", NASTY),))


def error_of(function) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of any class
        function()
    assert not isinstance(caught.value, (AssertionError, KeyError))
    return "".join(traceback.format_exception_only(caught.value))


def traceback_of(function) -> str:
    """The whole traceback of an error as Python prints it, with the errors that caused it."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of any class
        function()
    return "".join(traceback.format_exception(caught.value))


#: Calls in which another library refuses a value or name of a table.
CHAINED: dict[str, Any] = {
    "a value in sql": lambda t: sql(f'SELECT CAST("{NAME}" AS INT) FROM t', t=t),
    "a name in sql": lambda t: sql(f'SELECT "{NASTY}" FROM t', t=t),
    "a table in sql": lambda t: sql(f'SELECT * FROM "{NASTY}"', t=t),
    "a value of a builder": lambda t: QueryBuilder().register("t", t).execute(f'SELECT CAST("{NAME}" AS INT) FROM t'),
    "a name of a builder": lambda t: QueryBuilder().register("t", t).execute(f'SELECT "{NASTY}" FROM t'),
    "a table of a builder": lambda t: QueryBuilder().register("t", t).execute(f'SELECT * FROM "{NASTY}"'),
    "a value of deltalake's builder": lambda t: (
        ViewQueryBuilder().register("t", t).execute(f'SELECT CAST("{NAME}" AS INT) FROM t')
    ),
    "a string for a number": lambda t: write_number(f"{local_path(t.table_uri)}-numbers", NASTY),
    "a schema that is none": lambda _: DeltaTable.create("/nowhere", cast("Any", UnreadableSchema())),
}


def write_number(path: str, string: str) -> None:
    """Write a string to a column of numbers."""
    write_as_deltalake(path, pa.table({"n": [1]}))
    write_as_deltalake(path, pa.table({"n": [string]}), mode="append")


class UnreadableSchema:
    """An object whose export fails with a text of a table."""

    def __arrow_c_schema__(self) -> object:
        raise ValueError(NASTY)


@pytest.mark.parametrize("what", CHAINED)
def test_a_traceback_has_no_control_character(what, place):
    shown = traceback_of(lambda: CHAINED[what](DeltaTable(place)))
    # The lines of code and the marks below them are our own.
    assert hidden(shown) == ""
    assert "__arrow_c_schema__" not in shown


def test_an_error_of_duckdb_keeps_its_class():
    with pytest.raises(duckdb.ConversionException, match=r"\\x1b\[31m"):
        QueryBuilder().execute("SELECT CAST(chr(27) || '[31m' AS INT)")


SHOWN: dict[str, Any] = {
    "str of the schema": lambda t: str(t.schema()),
    "repr of the schema": lambda t: repr(t.schema()),
    "HTML of the schema": lambda t: t.schema()._repr_html_(),
    "repr of a field": lambda t: repr(t.schema().fields[1]),
    "str of a field": lambda t: str(t.schema().fields[3]),
    "repr of a type": lambda t: repr(t.schema().fields[3].type),
    "repr of the table": repr,
    "str of the table": str,
    "HTML of the table": lambda t: t._repr_html_(),
    "repr of the dataset": lambda t: repr(t.to_pyarrow_dataset()),
    "repr of the metadata": lambda t: repr(t.metadata()),
    "str of the metadata": lambda t: str(t.metadata()),
    "repr of the protocol": lambda t: repr(t.protocol()),
    "repr of the history": lambda t: repr(t.history()),
    "HTML of the history": lambda t: t.history()._repr_html_(),
    "repr of the detail": lambda t: repr(t.detail()),
    "HTML of the detail": lambda t: t.detail()._repr_html_(),
    "str of an explanation": lambda t: str(t.explain([(NAME, "=", NASTY)])),
    "repr of an explanation": lambda t: repr(t.explain([(NAME, "=", NASTY)])),
    "HTML of an explanation": lambda t: t.explain([(NAME, "=", NASTY)])._repr_html_(),
    "repr of a layout": lambda t: repr(measure(t)),
    "picture of a layout": lambda t: measure(t)._repr_mimebundle_()["image/svg+xml"],
    "repr of a query": lambda t: repr(sql("SELECT * FROM t", t=t)),
    "HTML of a query": lambda t: sql("SELECT * FROM t", t=t)._repr_html_(),
    "repr of a reader": lambda t: repr(t.scan()),
    "repr of an add action": lambda _: repr(AddAction(NASTY, 1, {NASTY: NASTY}, 0, data_change=True)),
    "repr of a remove action": lambda _: repr(
        RemoveAction(NASTY, partition_values={NASTY: NASTY}, tags={NASTY: NASTY})
    ),
    "repr of commit properties": lambda _: repr(CommitProperties(custom_metadata={NASTY: NASTY})),
    "repr of a check of a store": lambda _: repr(STORE),
    "repr of a finding": lambda _: repr(Finding(FindingLevel.PROBLEM, NASTY, NASTY, NASTY)),
    "HTML of findings": lambda _: FindingList([Finding(FindingLevel.PROBLEM, NASTY, NASTY, NASTY)])._repr_html_(),
    "repr of findings": lambda t: repr(examine(local_path(t.table_uri))),
    "an unknown column": lambda t: error_of(lambda: t.to_pyarrow_table(columns=[NASTY])),
    "an unknown column of a predicate": lambda t: error_of(lambda: t.count(f"`{NASTY}` = 1")),
    "a syntax error": lambda t: error_of(lambda: t.count(f"id = {NASTY}")),
    "a wrong value": lambda t: error_of(lambda: t.count([("id", "=", NASTY)])),
    "a wrong operator": lambda t: error_of(lambda: t.count([("id", NASTY, 1)])),
    "a wrong query": lambda t: error_of(lambda: sql(f'SELECT "{NASTY}" FROM t', t=t)),
    "an unknown statement": lambda t: error_of(lambda: sql(f"FROB {NASTY}", t=t)),
    "an error of a query": lambda t: error_of(lambda: sql("SELECT error(chr(27)) FROM t", t=t).read_all()),
    "an unknown table": lambda _: error_of(lambda: DeltaTable(f"/nowhere/{NASTY}")),
    "an unknown scheme": lambda _: error_of(lambda: DeltaTable(f"x{NASTY}://b/{NASTY}")),
    "an unknown timestamp": lambda t: error_of(lambda: t.load_as_version(NASTY)),
    "a wrong mode": lambda t: error_of(lambda: write_deltalake(t, {"id": [1]}, mode=NASTY)),
    "rows of another schema": lambda t: error_of(lambda: write_deltalake(t, {NASTY + "x": [1]}, mode="append")),
    "an unknown property": lambda t: error_of(lambda: t.alter.set_table_properties({f"delta.{NASTY}": NASTY})),
    "a catalog's answer": lambda _: error_of(lambda: (_ for _ in ()).throw(CatalogError(NASTY))),
    "an error with attributes": lambda _: error_of(lambda: (_ for _ in ()).throw(DeltaError(NASTY, file=NASTY))),
    "a warning": lambda _: str(DeltaWarning(NASTY)),
}


@pytest.mark.parametrize("what", SHOWN)
def test_text_for_people_has_no_control_character(what, place):
    shown = SHOWN[what](DeltaTable(place))
    assert shown
    assert hidden(shown) == ""


def test_lines_of_the_logger_have_no_control_character(place, caplog):
    with caplog.at_level(logging.DEBUG, "deltafast"):
        DeltaTable(place).to_pyarrow_table()
    assert caplog.messages
    assert hidden("".join(caplog.messages)) == ""


def test_attributes_of_an_error_and_its_pickle_keep_what_they_name():
    error = pickle.loads(pickle.dumps(DeltaError(f"no column {NASTY}", column=NASTY)))
    assert error.column == NASTY
    assert str(error) == f"no column {printable(NASTY, keep=chr(10))}"
