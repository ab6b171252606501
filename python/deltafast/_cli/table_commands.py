"""The commands that create a table, or change its schema, properties and version."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from deltafast._cli import show
from deltafast._cli.opening import UsageError
from deltafast.exceptions import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._cli.opening import CommonArguments
    from deltafast.table import DeltaTable

__all__ = ["alter", "check_store", "clone", "convert", "create", "restore", "schema"]


def schema(common: CommonArguments, ddl: bool) -> None:
    """Show the columns of a table, or with --ddl the statement that creates a table like it."""
    from deltafast._sql.ddl import create_statement, sql_type

    opened = common.open()
    if ddl:
        statement = create_statement(opened)
        if common.as_json:
            show.machine({"statement": statement})
            return
        if printable(statement, keep="\n") != statement:  # strings have escapes of SQL, names have none
            message = "names have control characters, which are shown as escapes; --json has the exact statement"
            show.problem("warning:", "yellow", message)
        show.lines(statement)
        return
    found = json.loads(opened.schema().to_json())
    if common.as_json:
        show.machine(found)
        return
    values = [
        [f["name"], sql_type(f["type"]), "" if f["nullable"] else "NOT NULL", f["metadata"].get("comment")]
        for f in found["fields"]
    ]
    show.rows(["column", "type", "", "comment"], values)


def create(
    common: CommonArguments,
    columns: str | None,
    like: str | None,
    partition_by: str | None,
    cluster_by: str | None,
    properties: dict[str, str] | None,
    comment: str | None,
) -> None:
    """Create a table without rows; columns are those of CREATE TABLE: "id BIGINT NOT NULL, day DATE"."""
    from deltafast._sql.ddl import create_statement, quoted, string

    if (columns is None) == (like is None):
        message = "give either columns or --like"
        raise UsageError(message)
    if like is not None:
        if partition_by or cluster_by or properties or comment:
            message = "--like takes the whole definition of the other table; change the new one with `alter`"
            raise UsageError(message)
        _run(create_statement(common._replace(table=like).open(), common.table), common.storage)
        _report(common.open(), common.as_json)
        return
    parts = [f"CREATE TABLE delta.{quoted(common.table)} ({columns}) USING DELTA"]
    if partition_by:
        parts.append(f"PARTITIONED BY ({partition_by})")
    if cluster_by:
        parts.append(f"CLUSTER BY ({cluster_by})")
    if comment:
        parts.append(f"COMMENT {string(comment)}")
    if properties:
        pairs = ", ".join(f"{string(key)} = {string(value)}" for key, value in properties.items())
        parts.append(f"TBLPROPERTIES ({pairs})")
    _run(" ".join(parts), common.storage)
    _report(common.open(), common.as_json)


def convert(common: CommonArguments, partition_by: str | None) -> None:
    """Make a table of a folder of Parquet files, which are not rewritten."""
    from deltafast._sql.ddl import quoted

    partitions = f" PARTITIONED BY ({partition_by})" if partition_by else ""
    _run(f"CONVERT TO DELTA parquet.{quoted(common.table)}{partitions}", common.storage, progress=common.is_watched)
    _report(common.open(), common.as_json)


def clone(common: CommonArguments, target: str) -> None:
    """Make a shallow clone: a new table that shares the files of a version."""
    opened = common.open()
    _report(opened.clone(target, storage_options=common.storage, progress=common.is_watched), common.as_json)


def restore(common: CommonArguments, older_version: int | None, timestamp: str | None) -> None:
    """Commit a new version with the rows, schema and properties of an older one."""
    target = timestamp if older_version is None else older_version
    if target is None or (older_version is not None and timestamp is not None):
        message = "give either --version or --timestamp"
        raise UsageError(message)
    opened = common.open()
    metrics = opened.restore(target, progress=common.is_watched)
    _report(opened, common.as_json, metrics)


def alter(
    common: CommonArguments,
    add_column: list[str] | None,
    drop_column: list[str] | None,
    rename_column: dict[str, str] | None,
    properties: dict[str, str] | None,
    unset: list[str] | None,
    add_constraint: dict[str, str] | None,
    drop_constraint: list[str] | None,
    cluster_by: str | None,
) -> None:
    """Change columns, properties, constraints or clustering; each change is a commit."""
    from deltafast._sql.ddl import quoted, string

    clauses: list[str] = []
    # Properties come first: other changes may need them (column mapping).
    if unset:
        clauses.append(f"UNSET TBLPROPERTIES ({', '.join(map(string, unset))})")
    if properties:
        pairs = ", ".join(f"{string(key)} = {string(value)}" for key, value in properties.items())
        clauses.append(f"SET TBLPROPERTIES ({pairs})")
    clauses += [f"DROP CONSTRAINT {quoted(name)}" for name in drop_constraint or ()]
    clauses += [f"DROP COLUMN {quoted(name)}" for name in drop_column or ()]
    clauses += [f"RENAME COLUMN {quoted(old)} TO {quoted(new)}" for old, new in (rename_column or {}).items()]
    clauses += [f"ADD COLUMN {column}" for column in add_column or ()]
    for name, condition in (add_constraint or {}).items():
        clauses.append(f"ADD CONSTRAINT {quoted(name)} CHECK ({condition})")
    if cluster_by is not None:
        clauses.append(f"CLUSTER BY ({cluster_by})" if cluster_by else "CLUSTER BY NONE")
    if not clauses:
        message = "there is nothing to change; see deltafast alter --help"
        raise UsageError(message)
    opened = common.open()
    for clause in clauses:
        _run(f"ALTER TABLE t {clause}", common.storage, t=opened)
    _report(opened, common.as_json)


def check_store(common: CommonArguments) -> int:
    """Test whether tables can safely be written at a location. Exits with 1 if not.

    The test writes about 1,200 small objects below the location and deletes them again.
    """
    from deltafast.check import check_store as check

    found = check(common.table, common.storage)
    if common.as_json:
        show.machine(
            {"url": found.url, "safe": found.safe, "findings": [dataclasses.asdict(f) for f in found.findings]}
        )
    else:
        show.lines(repr(found))
    return 0 if found.safe else 1


def _run(statement: str, storage: dict[str, str] | None, **options: Any) -> None:
    from deltafast._sql.run import sql

    sql(statement, storage_options=storage, **options)


def _report(table: DeltaTable, as_json: bool, metrics: Mapping[str, Any] | None = None) -> None:
    facts = {"table": table.table_uri, "version": table.version(), **(metrics or {})}
    if as_json:
        show.machine(facts)
    else:
        show.facts(facts)
