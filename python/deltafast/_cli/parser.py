"""The arguments of the command line."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, cast

from deltafast import _core
from deltafast._cli import commands, row_commands, table_commands
from deltafast._cli.opening import CommonArguments, UsageError
from deltafast.exceptions import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["parse"]

#: Arguments that only Python's own file functions use, which take names of any bytes.
_FILES = {"output"}


class _Parser(argparse.ArgumentParser):
    """A parser, also of each command, whose errors repeat no character that a terminal obeys."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


class _Setting(argparse.Action):
    """Collects `KEY=VALUE` arguments in a dict."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        del parser, option_string
        key, equals, value = str(values).partition("=")
        if not equals or not key:
            message = f"{values!r} must be KEY=VALUE"
            raise argparse.ArgumentError(self, message)
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), key: value})


def _at_least(least: int) -> Callable[[str], int]:
    """Return the parser of a whole number that is not smaller."""

    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            message = f"{text!r} is not a whole number"
            raise argparse.ArgumentTypeError(message) from None
        if value < least:
            message = f"{value} is less than {least}"
            raise argparse.ArgumentTypeError(message)
        return value

    return number


def _percent(text: str) -> float:
    """Parse a number from 0 to 100."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:  # noqa: PLR2004
        message = f"{text!r} is not a number from 0 to 100"
        raise argparse.ArgumentTypeError(message)
    return value


def _seconds(text: str) -> float:
    """Parse a number of seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        message = f"{text!r} is not a number of seconds"
        raise argparse.ArgumentTypeError(message)
    return value


def parse(arguments: Sequence[str] | None) -> tuple[Callable[..., int | None], dict[str, Any]]:
    """Return the function of a command, and its arguments.

    Args:
        arguments: Command-line arguments; those of the process if None.

    Raises:
        SystemExit: The help was printed, or the arguments are invalid, which was reported; its code is the exit code.
        UsageError: An argument is not text.
    """
    parser = _parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for the completions of a line
        import argcomplete

        argcomplete.autocomplete(parser)
    given = vars(parser.parse_args(arguments))
    run = given.pop("run")
    for name, value in given.items():
        if name not in _FILES:
            _check_text(value)
    if "table" in given:
        common = {name: given.pop(name) for name in CommonArguments._fields if name in given}
        given["common"] = CommonArguments(**common)
    return run, given


def _check_text(value: Any) -> None:
    """Refuse arguments whose bytes are not text in the encoding of the locale; Python decodes them as surrogates.

    Raises:
        UsageError: Such an argument; of `KEY=VALUE` only the key is shown, since the value may be a secret.
    """
    if isinstance(value, list):
        for part in cast("list[Any]", value):
            _check_text(part)
    elif isinstance(value, dict):
        for key, part in cast("dict[str, str]", value).items():
            _check_text(key)
            if not _is_text(part):
                raise _not_text(f"the value of {key}")
    elif isinstance(value, str) and not _is_text(value):
        raise _not_text(f"the argument {value!r}")


def _is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _not_text(what: str) -> UsageError:
    encoding = sys.getfilesystemencoding()
    advice = "" if encoding == "utf-8" else "; to pass UTF-8, set PYTHONUTF8=1"
    return UsageError(f"{what} is not text in the encoding {encoding}{advice}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "deltafast",
        description="Inspect, query and maintain Delta Lake tables.",
        allow_abbrev=False,
        formatter_class=partial(argparse.HelpFormatter, max_help_position=30),
    )
    parser.add_argument("--version", action="version", version=f"deltafast {_core.version()}")
    group = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(run: Callable[..., int | None], *, about_table: bool = True, old_version: bool = False) -> Any:
        text = (run.__doc__ or "").strip()
        found = group.add_parser(
            run.__name__.replace("_", "-"),
            help=text.splitlines()[0],
            description=text.partition("\n\n")[0],
            allow_abbrev=False,
        )
        found.set_defaults(run=run)
        if about_table:
            found.add_argument("table", metavar="TABLE", help="Path or URL of the table.")
        option = found.add_argument
        option(
            "-o", "--storage-option", dest="storage", metavar="KEY=VALUE", action=_Setting, help="Option of the store."
        )
        option("--json", dest="as_json", action="store_true", help="Print one JSON document.")
        if old_version:
            option("-v", "--version", type=_at_least(0), help="Version of the table; the newest if not given.")
        return option

    for add in (_add_inspecting, _add_layout_commands, _add_row_commands, _add_table_commands, _add_maintenance):
        add(command)
    return parser


def _add_inspecting(command: Callable[..., Any]) -> None:
    command(commands.info, old_version=True)
    option = command(commands.history)
    option("-n", "--limit", type=_at_least(1), help="Largest number of commits.")
    option = command(commands.files, old_version=True)
    option("-w", "--where", help="Only files that may contain such rows (Spark SQL).")
    option("-n", "--limit", type=_at_least(1), default=100, help="Largest number of files (100).")
    option = command(commands.head, old_version=True)
    option("-n", "--rows", type=_at_least(1), default=10, help="Number of rows (10).")
    option("-c", "--columns", help="Column names, separated by commas.")
    option("-w", "--where", help="Only such rows (Spark SQL).")
    option = command(commands.sql, about_table=False)
    option("text", metavar="TEXT", help="The statement.")
    option("-t", "--table", dest="named", metavar="NAME=PLACE", action=_Setting, help="Path or URL of a name.")
    option("-n", "--limit", type=_at_least(1), default=100, help="Largest number of rows to show (100).")
    option("--external-access", action="store_true", help="Allow queries to access files, the network and extensions.")


def _add_maintenance(command: Callable[..., Any]) -> None:
    option = command(commands.optimize)
    option("-w", "--where", help="Only partitions for which it is true (Spark SQL).")
    option("--z-order", dest="columns", metavar="COLUMNS", help="Z-order by these columns, separated by commas.")
    option("--full", action="store_true", help="Include files that were clustered by other columns or writers.")
    option("--purge", action="store_true", help="Only rewrite files that contain deleted rows or dropped columns.")
    option("--target-size", type=_at_least(1), help="Bytes of a file; the table's property, else 100 MiB.")
    option = command(commands.vacuum)
    option("--dry-run", action="store_true", default=True, help="Only list the files to delete (the default).")
    option("--delete", dest="dry_run", action="store_false", help="Delete them.")
    option("--retain", dest="hours", type=float, help="Retention in hours; the table's (7 days) if not given.")
    option("--force", action="store_true", help="Allow a shorter retention than the table's.")
    option("--lite", action="store_true", help="Only consider files that the log lists as removed.")
    command(commands.checkpoint)
    option = command(commands.doctor)
    option("--deep", action="store_true", help="Read all files, to find damaged files and lost changes.")


def _add_layout_commands(command: Callable[..., Any]) -> None:
    option = command(commands.explain, old_version=True)
    option("-w", "--where", help="The condition (Spark SQL).")
    option("-c", "--columns", help="Columns that the query reads, separated by commas; all if not given.")
    option("--files-only", dest="footers", action="store_false", help="Do not read footers of data files.")
    option(
        "--min-pruning", type=_percent, metavar="PERCENT", help="Exit with 1 if less of the table's bytes is excluded."
    )
    option = command(commands.layout, old_version=True)
    option("-O", "--output", help="Draw a picture: a file .svg, .png, .pdf or .html.")
    option("--versions", type=_at_least(0), default=20, help="Number of versions to compare (20).")


def _add_row_commands(command: Callable[..., Any]) -> None:
    option = command(row_commands.diff)
    option("older", metavar="OLDER", type=_at_least(0), help="A version.")
    option("newer", metavar="NEWER", type=_at_least(0), help="Another version.")
    option = command(row_commands.tail)
    option("-f", "--follow", action="store_true", help="Go on with new commits until Ctrl-C.")
    option(
        "--from", dest="starting_version", type=_at_least(0), help="Begin with this version; the newest if not given."
    )
    option("--interval", type=_seconds, default=1.0, help="Seconds between two looks for new commits (1).")
    option("-w", "--where", help="Only such rows (Spark SQL).")
    option = command(row_commands.export, old_version=True)
    option("output", metavar="FILE", help="The file; - is CSV on standard output.")
    option("-c", "--columns", help="Column names, separated by commas.")
    option("-w", "--where", help="Only such rows (Spark SQL).")
    option("--force", action="store_true", help="Replace the file.")
    for run in (row_commands.append, row_commands.merge):
        option = command(run)
        option("files", metavar="FILE", nargs="+", help="Files .parquet, .csv, .jsonl, .arrow or .feather.")
        option("--merge-schema", action="store_true", help="Add new columns to the table.")
        if run is row_commands.append:
            option("--create", action="store_true", help="Create the table if there is none.")
        else:
            option("--on", dest="keys", metavar="KEYS", required=True, help="Key columns, separated by commas.")


def _add_table_commands(command: Callable[..., Any]) -> None:
    option = command(table_commands.schema, old_version=True)
    option("--ddl", action="store_true", help="Print a CREATE TABLE statement.")
    option = command(table_commands.create)
    option("columns", metavar="COLUMNS", nargs="?", help='As in CREATE TABLE: "id BIGINT NOT NULL, day DATE".')
    option("--like", metavar="OTHER", help="A table with the columns, layout, properties and constraints to take.")
    option("--partition-by", metavar="COLUMNS", help="Partition columns, separated by commas.")
    option("--cluster-by", metavar="COLUMNS", help="Clustering columns, separated by commas.")
    option("--set", dest="properties", metavar="KEY=VALUE", action=_Setting, help="Property of the table.")
    option("--comment", help="Description of the table.")
    option = command(table_commands.convert)
    option("--partition-by", metavar="COLUMNS", help='Columns of the folder names, with types: "year INT, day DATE".')
    option = command(table_commands.clone, old_version=True)
    option("target", metavar="TARGET", help="Path or URL of the new table, in the same store.")
    option = command(table_commands.restore)
    option(
        "-v", "--version", dest="older_version", metavar="VERSION", type=_at_least(0), help="The version to return to."
    )
    option("--timestamp", help="The newest version of this time: 2026-01-31T12:00:00Z.")
    option = command(table_commands.alter)
    option("--add-column", metavar="COLUMN", action="append", help='A column as in CREATE TABLE: "name STRING".')
    option("--drop-column", metavar="NAME", action="append", help="A column; needs column mapping.")
    option("--rename-column", metavar="OLD=NEW", action=_Setting, help="A column; needs column mapping.")
    option("--set", dest="properties", metavar="KEY=VALUE", action=_Setting, help="Set a property.")
    option("--unset", metavar="KEY", action="append", help="Remove a property.")
    option("--add-constraint", metavar="NAME=CONDITION", action=_Setting, help="Add a CHECK constraint.")
    option("--drop-constraint", metavar="NAME", action="append", help="Drop a CHECK constraint.")
    option("--cluster-by", metavar="COLUMNS", help="Clustering columns, separated by commas; none if empty.")
    command(table_commands.check_store)
