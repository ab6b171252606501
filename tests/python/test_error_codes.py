"""Errors have stable codes with named parameters; the surfaces map codes, and spell options, in their own words."""

import ast
import pickle
import re
import string
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from deltafast import DeltaTable, cli, write_deltalake
from deltafast._call_options import as_argument, option, spelled
from deltafast._deltalake.errors import _WORDS
from deltafast._error_codes import ERROR_PARAMETERS
from deltafast.exceptions import (
    ConstraintViolatedError,
    DeltaError,
    ErrorCode,
    InvalidArgumentError,
    SchemaMismatchError,
)

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python/deltafast"
#: The modules that map codes, and raise nothing.
_TABLES = ("_error_codes", "spark/_conditions", "_deltalake/errors")


def fields_of(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def constructors(tree: ast.AST) -> list[ast.Call]:
    """Return the calls that make an error with a code."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and any(
            isinstance(one.value, ast.Attribute) and ast.unparse(one.value).startswith("ErrorCode.")
            for one in node.keywords
            if one.arg == "code"
        )
    ]


def test_every_code_is_raised_somewhere():
    tables = {"src/error/code.rs", *(f"python/deltafast/{name}.py" for name in _TABLES)}
    files = (*ROOT.glob("src/**/*.rs"), *PACKAGE.rglob("*.py"))
    sources = [path for path in files if str(path.relative_to(ROOT)) not in tables]
    used = set(re.findall(r"ErrorCode(?:::|\.)(\w+)", "\n".join(path.read_text() for path in sources)))
    variants = re.findall(r'^    (\w+)\s*=\s*"(\w+)"', (ROOT / "src/error/code.rs").read_text(), re.MULTILINE)
    assert {name for _, name in variants} == set(ErrorCode)
    assert not [name for variant, name in variants if not {variant, name} & used]


def test_errors_of_python_have_the_parameters_of_their_code():
    calls = {path: constructors(ast.parse(path.read_text())) for path in PACKAGE.rglob("*.py")}
    assert sum(map(len, calls.values())) > 40
    for path, found in calls.items():
        for call in found:
            arguments = {one.arg: one.value for one in call.keywords}
            code = ErrorCode(ast.unparse(arguments["code"]).removeprefix("ErrorCode."))
            given = arguments.get("parameters")
            names = tuple(key.value for key in given.keys) if isinstance(given, ast.Dict) else ()
            assert names == ERROR_PARAMETERS[code], f"{path}:{call.lineno}"


@pytest.mark.parametrize("code", sorted(_WORDS))
def test_the_words_of_deltalake_use_parameters_of_the_code(code):
    if isinstance(_WORDS[code].message, str):
        assert fields_of(_WORDS[code].message) <= {"message", *ERROR_PARAMETERS[code]}


def test_an_error_without_a_code_has_that_of_its_class():
    assert InvalidArgumentError("x").code is ErrorCode.INVALID_ARGUMENT
    assert SchemaMismatchError("x", code="TYPE_MISMATCH").code is ErrorCode.TYPE_MISMATCH
    with pytest.raises(ValueError, match="NO_SUCH_CODE"):
        DeltaError("x", code="NO_SUCH_CODE")


def test_code_and_parameters_survive_a_pickle():
    error = InvalidArgumentError("x", code=ErrorCode.COLUMN_NOT_FOUND, parameters={"column": "a"})
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, again.parameters) == (ErrorCode.COLUMN_NOT_FOUND, {"column": "a"})


class TestOptions:
    def test_are_spelled_by_each_surface(self):
        message = (
            f"pass {option('schema_mode', 'merge')}, or {option('truncate_history', 'true')}, or {option('predicate')}"
        )
        assert spelled(message, as_argument) == 'pass schema_mode="merge", or truncate_history=True, or `predicate`'
        assert str(InvalidArgumentError(message)) == spelled(message, as_argument)

    def test_of_a_new_column(self, tmp_path, capsys):
        write_deltalake(tmp_path, pa.table({"a": [1]}))
        with pytest.raises(SchemaMismatchError, match=r'pass schema_mode="merge" to add it') as caught:
            write_deltalake(tmp_path, pa.table({"a": [1], "b": [1]}), mode="append")
        assert caught.value.code is ErrorCode.FIELD_COUNT_MISMATCH
        source = tmp_path / "new.csv"
        source.write_text("a,b\n1,1\n")
        assert cli.main(["append", str(tmp_path), str(source)])
        assert "pass `--merge-schema` to add it" in capsys.readouterr().err

    def test_of_a_short_retention(self, tmp_path, capsys):
        write_deltalake(tmp_path, pa.table({"a": [1]}))
        with pytest.raises(InvalidArgumentError, match="set enforce_retention_duration=False if") as caught:
            DeltaTable(tmp_path).vacuum(retention_hours=1)
        assert caught.value.parameters == {"retention_hours": "1", "table_hours": "168"}
        assert cli.main(["vacuum", str(tmp_path), "--retain", "1"])
        assert "set `--force` if" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["predicate", "replaceWhere", "NOT NULL", "`replace_on`", "schema_mode"])
class TestNamesOfOptions:
    """Columns and constraints with the names of options are reported under their own names."""

    def test_as_a_constraint(self, tmp_path, name):
        write_deltalake(tmp_path, pa.table({"a": [1]}))
        table = DeltaTable(tmp_path)
        table.alter.add_constraint({name: "a > 0"})
        with pytest.raises(
            ConstraintViolatedError, match=rf"the CHECK constraint `{re.escape(name)}` \(a > 0\)"
        ) as caught:
            write_deltalake(tmp_path, pa.table({"a": [-1]}), mode="append")
        assert caught.value.code is ErrorCode.CHECK_VIOLATED
        assert caught.value.parameters == {"constraint": name, "expression": "a > 0"}

    def test_as_a_column(self, tmp_path, name):
        write_deltalake(tmp_path, pa.table({"a": [1]}))
        with pytest.raises(SchemaMismatchError) as caught:
            write_deltalake(tmp_path, pa.table({"a": [1], name: [1]}), mode="append")
        assert caught.value.column == name
        assert f"`{name}`" in str(caught.value)


class TestKinds:
    """Each family that a program may want to tell apart has its code and parameters."""

    def test_missing_tables_and_versions(self, tmp_path):
        with pytest.raises(DeltaError) as missing:
            DeltaTable(tmp_path / "none")
        assert missing.value.code is ErrorCode.TABLE_NOT_FOUND
        assert missing.value.parameters["path"].endswith("/none/")
        write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
        with pytest.raises(DeltaError) as version:
            DeltaTable(tmp_path / "t", version=7)
        assert version.value.code is ErrorCode.VERSION_NOT_FOUND
        assert version.value.parameters == {"version": "7", "oldest": "0", "newest": "0"}
        (tmp_path / "files").mkdir()
        pa.parquet.write_table(pa.table({"a": [1]}), tmp_path / "files/a.parquet")
        with pytest.raises(DeltaError) as other:
            DeltaTable(tmp_path / "files")
        assert other.value.code is ErrorCode.NOT_A_DELTA_TABLE

    @pytest.mark.parametrize(
        ("sql", "code"),
        [
            ("cast(s as int) > 0", ErrorCode.CAST_INVALID_INPUT),
            ("1 / n > 0", ErrorCode.DIVIDE_BY_ZERO),
            ("nope > 0", ErrorCode.COLUMN_NOT_FOUND),
            ("n >", ErrorCode.EXPRESSION_SYNTAX_ERROR),
        ],
    )
    def test_predicates(self, tmp_path, sql, code):
        write_deltalake(tmp_path, pa.table({"s": ["x"], "n": [0]}))
        with pytest.raises(DeltaError) as caught:
            DeltaTable(tmp_path).delete(sql)
        assert caught.value.code is code
        assert tuple(caught.value.parameters) == ERROR_PARAMETERS[code]

    def test_an_append_only_table(self, tmp_path):
        write_deltalake(tmp_path, pa.table({"a": [1]}), configuration={"delta.appendOnly": "true"})
        with pytest.raises(InvalidArgumentError) as caught:
            DeltaTable(tmp_path).delete()
        assert caught.value.code is ErrorCode.APPEND_ONLY_TABLE
