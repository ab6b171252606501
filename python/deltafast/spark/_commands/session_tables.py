"""Resolution of table names in a statement: given tables, registered views, the session's catalog, locations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltafast._sql.tables import Tables
from deltafast._util.dialect import Dialect
from deltafast.exceptions import ErrorCode, TableNotFoundError
from deltafast.spark._commands import dml
from deltafast.spark._commands.catalog import (
    allows_protocol_downgrade,
    commit_of,
    enforces_retention,
    facts_of_name,
    handle,
    place_of_name,
    place_of_view,
    views_of,
)
from deltafast.spark._commands.queries import frame_of
from deltafast.spark._scan.snapshot import check_timestamp
from deltafast.spark._session.commit_settings import optimized_file_size
from deltafast.spark._session.session import quiet
from deltafast.spark._session.storage import place_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    import pyarrow as pa

    from deltafast._ops.optimize import TableOptimizer
    from deltafast._sql.tree import Query, TableName
    from deltafast.spark._session.session import Session
    from deltafast.table import DeltaTable

__all__ = ["SparkTables"]


@dataclass(frozen=True)
class SparkTables(Tables):
    """The tables of a session, for the names of one statement."""

    session: Session = field(kw_only=True)
    dialect: Dialect = Dialect.SPARK

    @classmethod
    def of(cls, session: Session, given: Mapping[str, object] | None = None) -> SparkTables:
        """Return the tables of a session, with its settings."""
        return cls(
            given or {},
            None,
            commit_of(session),
            session.zone,
            enforces_retention(session),
            session=session,
        )

    def find(self, name: str) -> object | None:
        """Return a given table, a registered view or a table of the catalog."""
        given = super().find(name)
        if given is not None:
            return given
        view = views_of(self.session).get(name.lower())
        if view is not None:
            return view.path
        return place_of_name(self.session, name) or place_of_view(self.session, name)

    def check_timestamp(self, table: DeltaTable, at: int | datetime) -> None:
        """Reject a timestamp after that of the newest version, as delta-spark does."""
        if not isinstance(at, int):
            check_timestamp(table, at)

    def allows_protocol_downgrade(self) -> bool:
        """Return whether RESTORE may lower the protocol: the session's setting."""
        return allows_protocol_downgrade(self.session)

    def optimized_file_size(self) -> int | None:
        """Return the size of the files that OPTIMIZE writes: the session's setting; None if it is not set."""
        return optimized_file_size(self.session)

    def replaces_partitions(self) -> bool:
        """Return whether INSERT OVERWRITE replaces only the partitions of the new rows: the session's setting."""
        return self.session.replaces_partitions

    def knows(self, ref: TableName) -> bool:
        """Return whether a name is that of a Delta table."""
        return ref.by_path or self.find(ref.name) is not None

    def place(self, ref: TableName, location: str | None = None) -> str:
        """Return the location of an existing or new table, as the core names it."""
        if location is None and not self.knows(ref):
            message = (
                f"there is no Delta table `{ref.name}` in the session; write delta.`path`, or give the table its name "
                "with deltafast.spark.register_view"
            )
            code = ErrorCode.CATALOG_TABLE_NOT_FOUND
            raise TableNotFoundError(message, path=ref.name, code=code, parameters={"table": ref.name})
        return place_of(self.session, super().place(ref, location), self.storage_options).uri

    def catalog_entry(self, ref: TableName) -> dict[str, str]:
        """Return what the session's catalog says of a table; empty for any other table."""
        if ref.by_path or super().find(ref.name) is not None or ref.name.lower() in views_of(self.session):
            return {}
        facts = facts_of_name(self.session, ref.name)
        managed = {"Is_managed_location": "true"} if facts.get("Type") == "MANAGED" else {}
        return {**facts, "Namespace": facts.get("Database", ""), **managed} if facts else {}

    def rows(self, query: Query) -> pa.RecordBatchReader:
        """Return the rows of a Spark query, collected."""
        with quiet():
            return frame_of(self.session, query, self).toArrow().to_reader()

    def optimizer(self, table: DeltaTable) -> TableOptimizer:
        """Return the object that rewrites a table's files, in the driver or on the executors."""
        return dml.optimizer(self.session, table)

    def _open(self, place: str) -> DeltaTable:
        return handle(self.session, place_of(self.session, place, self.storage_options))
