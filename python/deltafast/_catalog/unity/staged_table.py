"""Creation of managed tables in Unity Catalog: a place from the server, the first version, then the name."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from deltafast._catalog.catalog_error import CatalogError
from deltafast._catalog.committer import LogTail, StagedCommit
from deltafast._catalog.server_text import checked_location
from deltafast._catalog.unity.committer import actions_of, timestamp_of, uniform_refusal
from deltafast._catalog.unity.loaded_table import has_uniform, loaded_table
from deltafast._catalog.unity.log_actions import definition
from deltafast._catalog.unity.vended_credentials import VendedCredentials
from deltafast._delta_keys import COLUMN_MAPPING_MODE, ENABLE_ROW_TRACKING
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._catalog.rest_client import RestClient
    from deltafast._catalog.unity.table_name import TableName

__all__ = ["StagedTable"]

#: Features that a property turns on; the others are named in the table's configuration.
_BY_PROPERTY = {
    "inCommitTimestamp": "delta.enableInCommitTimestamps",
    "deletionVectors": "delta.enableDeletionVectors",
    "rowTracking": ENABLE_ROW_TRACKING,
    "columnMapping": COLUMN_MAPPING_MODE,
    "v2Checkpoint": "delta.checkpointPolicy",
}


class StagedTable:
    """The committer of the first version of a managed table (see `Committer`).

    The version is written to the place that the server gives, and published; then the table gets its name.

    Args:
        client: The server.
        name: The name of the table.

    Raises:
        InvalidArgumentError: There is a table of this name.
        CatalogError: The server refused a request.
    """

    permits = frozenset[str]()

    def __init__(self, client: RestClient, name: TableName) -> None:
        self._client, self._name = client, name
        self._path = f"delta/v1/{name.path.rpartition('/tables/')[0]}"
        try:
            made = client.call("POST", f"{self._path}/staging-tables", body={"name": name.table}, repeats=False)
        except CatalogError as error:
            if error.kind == "AlreadyExistsException":
                message = f"there is a table {name} already"
                raise InvalidArgumentError(message) from None
            raise
        self.location = checked_location(made.text("location"))
        self._id = made.text("table-id")
        self._made = made
        self._first: StagedCommit | None = None
        self._text = b""
        self._failure: CatalogError | None = None
        self._is_named = False

    @property
    def provider(self) -> VendedCredentials:
        """The provider of credentials to write the first version."""
        path = f"delta/v1/staging-tables/{quote(self._id, safe='')}/credentials"
        return VendedCredentials(self._client, path, self.location, is_delta_api=True, is_staging=True)

    @property
    def properties(self) -> dict[str, str]:
        """The properties that the server requires or suggests, as a table's configuration has them."""
        made = self._made
        given = {**made.text_map("suggested-properties"), **made.text_map("required-properties")}
        features = made.object("required-protocol").strings("writer-features")
        for feature in features:
            # The committer makes the table catalog-managed.
            if feature != "catalogManaged" and _BY_PROPERTY.get(feature) not in given:
                given[f"delta.feature.{feature}"] = "supported"
        return given

    def check_properties(self, properties: Mapping[str, str]) -> None:
        """See `Committer`: a new table with Iceberg metadata has to bring it."""
        if has_uniform(properties):
            raise NotImplementedError(uniform_refusal(self._name))

    def log_tail(self) -> LogTail:
        """See `Committer`."""
        return LogTail(None) if self._first is None else LogTail(0, [self._first])

    def ratify(self, commit: StagedCommit, text: bytes) -> bool:
        """See `Committer`."""
        if commit.version != 0 or self._first is not None:
            return False
        self._first, self._text = commit, text
        return True

    def published(self, version: int) -> None:
        """See `Committer`: the first version is a file of the log now, and the table gets its name."""
        if version != 0 or self._is_named:
            return
        actions = actions_of(self._text)
        body = {
            "name": self._name.table,
            "location": self.location,
            "table-type": "MANAGED",
            "last-commit-timestamp-ms": timestamp_of(actions),
            **definition(actions),
        }
        try:
            self._client.call("POST", f"{self._path}/tables", body=body)
        except CatalogError as error:
            # A lost answer: the table has its name already.
            if error.kind != "AlreadyExistsException" or not self._has_name():
                self._failure = error
                return
        self._is_named = True

    def finish(self) -> None:
        """Check that the table has its name.

        Raises:
            CatalogError: The server refused it: there is no table.
        """
        if self._failure is not None:
            raise self._failure
        if not self._is_named:
            message = f"the first version of {self._name} was not published, so that there is no table"
            raise CatalogError(message)

    def _has_name(self) -> bool:
        return loaded_table(self._client.call("GET", f"delta/v1/{self._name.path}")).id == self._id
