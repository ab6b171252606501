"""Parsed statements, run by kind; queries by the engine of their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltafast._sql import tree
from deltafast._sql.run_changes import run_delete, run_insert, run_merge, run_update
from deltafast._sql.run_describe import run_describe, run_show
from deltafast._sql.run_maintenance import run_generate, run_optimize, run_reorg, run_restore, run_vacuum
from deltafast._sql.run_tables import run_alter, run_clone, run_convert, run_create

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from deltafast._sql.tables import Tables

__all__ = ["run_statement"]


def run_statement(statement: tree.Statement, tables: Tables) -> pa.RecordBatchReader:
    """Run a parsed statement."""
    return _RUN[type(statement)](statement, tables)


def _select(select: tree.Select, tables: Tables) -> pa.RecordBatchReader:
    return tables.rows(select.query)


_RUN: Final[dict[type, Callable[[Any, Tables], pa.RecordBatchReader]]] = {
    tree.Select: _select,
    tree.Insert: run_insert,
    tree.Delete: run_delete,
    tree.Update: run_update,
    tree.Merge: run_merge,
    tree.CreateTable: run_create,
    tree.Clone: run_clone,
    tree.Alter: run_alter,
    tree.Optimize: run_optimize,
    tree.Reorg: run_reorg,
    tree.Vacuum: run_vacuum,
    tree.Restore: run_restore,
    tree.Describe: run_describe,
    tree.Show: run_show,
    tree.Convert: run_convert,
    tree.Generate: run_generate,
}
