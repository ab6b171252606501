"""Resolution of names in a statement: handles and data given by the caller, or locations."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, cast

from deltafast._expr.literals import time_zone
from deltafast._handle import handle_of
from deltafast._util.arrow import as_stream, is_dataset
from deltafast._util.dialect import Dialect
from deltafast._util.locations import address
from deltafast.exceptions import InvalidArgumentError, TableNotFoundError
from deltafast.table import DeltaTable, pinned

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from deltafast._ops.optimize import TableOptimizer
    from deltafast._sql.tree import Query, TableName, TimeTravel
    from deltafast.transaction import CommitProperties, PostCommitHookProperties

__all__ = ["Tables"]


@dataclass(frozen=True)
class Tables:
    """The tables, data and options of one statement."""

    given: Mapping[str, object]
    storage_options: Mapping[str, str] | None = None
    commit_properties: CommitProperties | None = None
    zone: str = "UTC"
    #: Whether a shorter retention of VACUUM than the table's is an error.
    enforce_retention: bool = True
    #: Whether queries may use files, the network and extensions.
    external_access: bool = False
    #: The meaning of double quotes in the statement.
    dialect: Dialect = Dialect.STATEMENT
    #: Maintenance after the commit of an INSERT.
    post_commithook_properties: PostCommitHookProperties | None = None
    #: Tables that were opened by location or name.
    _opened: dict[tuple[str, bool], DeltaTable] = field(default_factory=dict[tuple[str, bool], DeltaTable])
    #: Handles of the caller with another dialect, and those that take their place.
    _twins: list[tuple[DeltaTable, DeltaTable]] = field(default_factory=list[tuple[DeltaTable, DeltaTable]])

    def find(self, name: str) -> object | None:
        """Return the caller's argument for a name, ignoring case."""
        exact = self.given.get(name)
        if exact is not None:
            return exact
        return next((value for key, value in self.given.items() if key.lower() == name.lower()), None)

    def table(self, ref: TableName) -> DeltaTable:
        """Return the table that a statement reads or changes.

        Raises:
            InvalidArgumentError: The name is unknown, or does not refer to a Delta table.
        """
        if ref.at is not None:
            return self._travelled(ref, ref.at)
        given = None if ref.by_path else self.find(ref.name)
        if isinstance(given, DeltaTable):
            return self._spoken(given)
        key = (ref.name, ref.by_path)
        if key not in self._opened:
            self._opened[key] = self._open(self.place(ref))
        return self._opened[key]

    def _spoken(self, table: DeltaTable) -> DeltaTable:
        """Return a handle whose methods read the statement's expressions, which are Spark's."""
        if handle_of(table).dialect is not Dialect.DELTALAKE:
            return table
        for original, twin in self._twins:
            if original is table:
                return twin
        twin = pinned(table)
        handle_of(twin).dialect = Dialect.DELTAFAST
        self._twins.append((table, twin))
        return twin

    def finish(self) -> None:
        """Move the caller's handles to the versions that the statement committed."""
        for original, twin in self._twins:
            handle_of(original).move(handle_of(twin).snapshot)

    def place(self, ref: TableName, location: str | None = None) -> str:
        """Return the location of an existing or new table.

        Args:
            ref: The table.
            location: The value of `LOCATION`.
        """
        if ref.by_path:
            if location is not None and location != ref.name:
                message = f"the table is at {ref.name!r}, so LOCATION {location!r} cannot be"
                raise InvalidArgumentError(message)
            return ref.name
        given = self.find(ref.name)
        if isinstance(given, DeltaTable):
            return handle_of(given).given_uri
        if isinstance(given, (str, os.PathLike)):
            return address(cast("str", given))
        if location is not None:
            return location
        if given is not None:
            message = f"`{ref.name}` is a {type(given).__name__}: to be changed it must be a DeltaTable or a place"
            raise InvalidArgumentError(message)
        raise InvalidArgumentError(self.unknown(ref.name))

    def unknown(self, name: str) -> str:
        """Return the message for a name without a table."""
        known = ", ".join(self.given) or "none"
        argument = name if name.isidentifier() else "name"
        return (
            f"there is no table `{name}` (given: {known}); give it as an argument, sql(text, {argument}=table), or "
            "write delta.`place`"
        )

    def catalog_entry(self, ref: TableName) -> dict[str, str]:  # noqa: ARG002 - for those who have a catalog
        """Return what a catalog says of a table, by the names of DESCRIBE EXTENDED; empty for other tables."""
        return {}

    def rows(self, query: Query) -> pa.RecordBatchReader:
        """Return the rows of a query, by the engine that runs the statement."""
        raise NotImplementedError

    def optimizer(self, table: DeltaTable) -> TableOptimizer:
        """Return the optimizer of a table."""
        return table.optimize

    def existing(self, place: str) -> DeltaTable | None:
        """Return the table at a location, or None."""
        try:
            return self._open(place)
        except TableNotFoundError:
            return None

    def moved(self, ref: TableName) -> None:
        """Update a handle of the caller after a change that was not made through it."""
        given = None if ref.by_path else self.find(ref.name)
        if isinstance(given, DeltaTable):
            given.update_incremental()

    def readable(self, ref: TableName) -> object:
        """Return the source of a query: a table, or data of the caller."""
        if ref.by_path:
            return self.table(ref)
        given = self.find(ref.name)
        if given is None or isinstance(given, (str, os.PathLike, DeltaTable)):
            return self.table(ref)
        if ref.at is not None:
            message = f"`{ref.name}` is a {type(given).__name__}: only Delta tables have versions"
            raise InvalidArgumentError(message)
        if hasattr(given, "__arrow_c_stream__") or is_dataset(given):
            return given
        try:
            return as_stream(given)
        except InvalidArgumentError as error:
            message = f"`{ref.name}` is a {type(given).__name__}, neither a DeltaTable nor a place: {error}"
            raise InvalidArgumentError(message) from None

    def allows_protocol_downgrade(self) -> bool:
        """Return whether RESTORE restores the older version's protocol also if it is lower."""
        return False

    def optimized_file_size(self) -> int | None:
        """Return the size of the files that OPTIMIZE writes, in bytes; the table's property, else 1 GiB, if None."""
        return None

    def replaces_partitions(self) -> bool:
        """Return whether INSERT OVERWRITE replaces only the partitions of the new rows, and not the whole table."""
        return False

    def check_timestamp(self, table: DeltaTable, at: int | datetime) -> None:
        """Refuse a timestamp that the engine does not accept; versions are not checked."""

    def at(self, when: TimeTravel) -> int | datetime:
        """Return the version or the timestamp."""
        from deltafast._sql.values import timestamp_value

        if when.version is not None:
            return when.version
        if when.timestamp is not None:
            return timestamp_value(when.timestamp, self.zone)
        digits = cast("str", when.digits)
        try:
            # Milliseconds as the microseconds that strptime knows.
            parsed = datetime.strptime(f"{digits}000", "%Y%m%d%H%M%S%f")  # noqa: DTZ007 - the zone comes next
        except ValueError:
            message = f"@{digits} is not a timestamp: write @yyyyMMddHHmmssSSS"
            raise InvalidArgumentError(message) from None
        return parsed.replace(tzinfo=time_zone(self.zone))

    def _travelled(self, ref: TableName, when: TimeTravel) -> DeltaTable:
        there = pinned(self.table(replace(ref, at=None)))
        # Through the class: a subclass may return results as in `deltalake`.
        DeltaTable.load_as_version(there, self.at(when))
        return there

    def _open(self, place: str) -> DeltaTable:
        return DeltaTable(place, storage_options=self.storage_options, time_zone=self.zone)
