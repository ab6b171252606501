"""Credentials that Unity Catalog gives for a table or a path, as a credential provider."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from deltafast._catalog.catalog_error import CatalogError

if TYPE_CHECKING:
    from deltafast._catalog.json_answer import JsonObject
    from deltafast._catalog.rest_client import RestClient

__all__ = ["SERVERS_WITHOUT", "PathCredentials", "VendedCredentials", "plain_credentials"]

#: Keys of the Delta API, and the names that `deltafast.credentials` has.
_DELTA_KEYS = {
    "s3.access-key-id": "access_key_id",
    "s3.secret-access-key": "secret_access_key",
    "s3.session-token": "token",
    "azure.sas-token": "sas_token",
    "gcs.oauth-token": "token",
}


#: Names of operations in the API of servers without the Delta API.
_PATH_OPERATIONS = {"READ": "PATH_READ", "READ_WRITE": "PATH_CREATE_TABLE"}
#: Answers of servers without the Delta API.
SERVERS_WITHOUT = (400, 404, 405, 501)


class VendedCredentials(NamedTuple):
    """A credential provider for one table.

    Args:
        client: The server.
        path: The path of the credentials below the API, for a GET with `operation`; else the id of the table, for the
            tables API.
        location: The location of the table.
        is_delta_api: Whether `path` is one of the Delta API.
    """

    client: RestClient
    path: str
    location: str
    is_delta_api: bool
    #: Whether it is one of a new table, of which the credentials are always for writing.
    is_staging: bool = False

    def __call__(self) -> dict[str, Any]:
        """Return credentials to read and write, or those to read where writing is not permitted.

        Raises:
            PermissionError: The catalog refuses both; the message names the permission that is missing.
            CatalogError: The request failed.
        """
        try:
            return self._of("READ_WRITE")
        except CatalogError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
        try:
            return self._of("READ")
        except CatalogError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            message = f"{error}; reading needs the privileges SELECT, EXTERNAL USE SCHEMA and USE of catalog and schema"
            raise PermissionError(message) from None

    def _of(self, operation: str) -> dict[str, Any]:
        if self.is_delta_api:
            query = None if self.is_staging else {"operation": operation}
            return plain_credentials(self.client.call("GET", self.path, query, is_secret=True), self.location)
        body = {"table_id": self.path, "operation": operation}
        return _of_tables_api(self.client.call("POST", "temporary-table-credentials", body=body, is_secret=True))


class PathCredentials(NamedTuple):
    """A credential provider for a location of which no table has a name.

    Args:
        client: The server.
        location: The URL.
        operation: `READ` or `READ_WRITE`.
    """

    client: RestClient
    location: str
    operation: str

    def __call__(self) -> dict[str, Any]:
        """Return credentials.

        Raises:
            PermissionError: The catalog refuses them.
            CatalogError: The request failed.
        """
        try:
            return self._of_delta_api()
        except CatalogError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            message = f"{error}; the location needs the privileges CREATE EXTERNAL TABLE or EXTERNAL USE LOCATION"
            raise PermissionError(message) from None

    def _of_delta_api(self) -> dict[str, Any]:
        query = {"location": self.location, "operation": self.operation}
        try:
            answer = self.client.call("GET", "delta/v1/temporary-path-credentials", query, is_secret=True)
        except CatalogError as error:
            if error.status not in SERVERS_WITHOUT:
                raise
            body = {"url": self.location, "operation": _PATH_OPERATIONS[self.operation]}
            return _of_tables_api(self.client.call("POST", "temporary-path-credentials", body=body, is_secret=True))
        return plain_credentials(answer, self.location)


def plain_credentials(answer: JsonObject, location: str) -> dict[str, Any]:
    """Return those credentials of the Delta API that are for the longest prefix of a location.

    Raises:
        PermissionError: The catalog gives no credentials for the location.
        CatalogError: The answer is not one of the API.
    """
    folder = location.rstrip("/") + "/"
    prefixes = [(found.text("prefix"), found) for found in answer.required_objects("storage-credentials")]
    fitting = [(prefix, found) for prefix, found in prefixes if folder.startswith(prefix.rstrip("/") + "/")]
    if not fitting:
        message = f"the credentials of the catalog do not cover {location}"
        raise PermissionError(message)
    _, best = max(fitting, key=lambda pair: len(pair[0]))
    config = best.object("config")
    values: dict[str, Any] = {name: value for key, name in _DELTA_KEYS.items() if (value := config.optional_text(key))}
    return {**values, "expires_at": best.integer("expiration-time-ms") / 1000}


def _of_tables_api(answer: JsonObject) -> dict[str, Any]:
    expiry = answer.optional_integer("expiration_time")
    values: dict[str, Any] = {"expires_at": None if expiry is None else expiry / 1000}
    if aws := answer.optional_object("aws_temp_credentials"):
        values |= {name: aws.text(name) for name in ("access_key_id", "secret_access_key")}
        values["token"] = aws.optional_text("session_token")
    elif azure := answer.optional_object("azure_user_delegation_sas"):
        values["sas_token"] = azure.text("sas_token")
    elif google := answer.optional_object("gcp_oauth_token"):
        values["token"] = google.text("oauth_token")
    return values
