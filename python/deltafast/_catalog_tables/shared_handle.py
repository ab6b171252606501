"""`SharedHandle`: the handle of a table of Delta Sharing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast import _core
from deltafast._catalog.sharing.share_name import share_name
from deltafast._catalog.sharing.shared_table import SharedTable
from deltafast._handle import OpenOptions, TableHandle
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from deltafast._catalog.sharing.share_name import ShareName
    from deltafast._catalog.sharing.shared_table import SharedSnapshot

__all__ = ["SharedHandle"]

#: Options of `DeltaTable` that a share has no use for.
_OTHER = ("log_tail", "max_table_version", "committer", "store", "catalog", "allow_external_paths", "storage_options")


class SharedHandle(TableHandle):
    """A pointer at one version of a shared table; the server is asked for each other version.

    Of the options only `time_zone` has an effect: the server gives signed URLs.

    Raises:
        InvalidArgumentError: The profile cannot be used, or an option has no meaning for a shared table.
    """

    def _located(self, name: str, options: OpenOptions) -> tuple[str, OpenOptions]:
        given = [option for option in _OTHER if getattr(options, option)]
        if given:
            message = f"{given[0]} has no meaning for a table of Delta Sharing"
            raise InvalidArgumentError(message)
        self._table = SharedTable(_name(name))
        return self._table.location, options._replace(storage_options=None, committer=None)

    def _open(self, version: int | None, timestamp_ms: int | None) -> _core.Snapshot:
        return self._snapshot(self._table.snapshot(version, timestamp_ms))

    def update(self) -> None:
        """Point at the newest version."""
        before = self.snapshot
        if self._table.newest_version() != before.version:
            self._advance(self._open(None, None), before)

    def load(self, version: int | None, timestamp_ms: int | None = None) -> None:
        """Point at another version, or at the one that was current at a timestamp."""
        self.snapshot = self._open(version, timestamp_ms)

    def with_changes(
        self, start: int | None, end: int | None, start_ms: int | None, end_ms: int | None
    ) -> _core.Snapshot:
        """Return a snapshot whose log has the changes of a range."""
        found = self._table.changes(start, end, start_ms, end_ms)
        return self.snapshot if found is None else self._snapshot(found)

    def require_log(self, what: str) -> None:
        """Refuse what follows the table's own log.

        Raises:
            InvalidArgumentError: Always: the log is not shared.
        """
        message = f"{what} follows the log of a table, and that of {self._table.name} is not shared; use load_cdf"
        raise InvalidArgumentError(message)

    def _snapshot(self, found: SharedSnapshot) -> _core.Snapshot:
        return _core.Snapshot.open(
            self._table.location,
            version=found.version,
            store=found.store,
            options=self.options.core_options(),
        )


def _name(table_uri: object) -> ShareName:
    name = share_name(table_uri)
    if name is None:
        message = f"a table of Delta Sharing is named profile#share.schema.table, not {table_uri}"
        raise InvalidArgumentError(message)
    return name
