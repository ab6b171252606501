"""`UnityCatalog`: what there is in a server."""

from __future__ import annotations

import os
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote

from deltafast._catalog.catalog_error import CatalogError
from deltafast._catalog.missing_table import missing_table
from deltafast._catalog.rest_client import OAuthClient, RestClient
from deltafast._catalog.server_text import checked_location, server_text, server_url
from deltafast._catalog.unity.databricks_login import databricks_login
from deltafast._catalog.unity.external_table import delta_definition, tables_definition
from deltafast._catalog.unity.loaded_table import LoadedTable, loaded_table
from deltafast._catalog.unity.table_name import CATALOG, TableName, parse_name
from deltafast._catalog.unity.table_policies import refuse_policies
from deltafast._catalog.unity.vended_credentials import SERVERS_WITHOUT, PathCredentials
from deltafast._delta_keys import CATALOG_MANAGED_FEATURE
from deltafast.exceptions import DeltaProtocolError, InvalidArgumentError, TableNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltafast._catalog.unity.external_table import DescribedTable

__all__ = ["CatalogTable", "UnityCatalog"]

#: The path of the API, which the given URL may have.
_API = "/api/2.1/unity-catalog"
#: Names of storage options and, in capitals, of variables.
_URL = ("unity_workspace_url", "workspace_url", "databricks_host", "unity_catalog_url")
_TOKEN = ("unity_access_token", "databricks_token", "unity_catalog_token")
_CLIENT = ("unity_client_id", "databricks_client_id")
_SECRET = ("unity_client_secret", "databricks_client_secret")
_OPTIONS = {*_URL, *_TOKEN, *_CLIENT, *_SECRET}
_TOKENS = ("page_token", "next_page_token")
#: Answers of a server that has the Delta API alone.
_WITHOUT_TABLES = (404, 405, 501)
#: Versions of the Delta API that this client speaks.
_VERSIONS = "1.0"
#: The endpoint for the metrics of commits, as servers name it that have it.
_METRICS = "POST /v1/catalogs/{catalog}/schemas/{schema}/tables/{table}/metrics"


class CatalogTable(NamedTuple):
    """A table as the catalog describes it."""

    name: TableName
    #: `MANAGED` or `EXTERNAL`.
    kind: str
    location: str
    #: Its id in the catalog.
    id: str
    #: The answer of the Delta API; None for a server without it.
    loaded: LoadedTable | None

    @property
    def is_managed(self) -> bool:
        """Whether the catalog owns the commits of the table."""
        return self.loaded is not None and self.loaded.properties.get(CATALOG_MANAGED_FEATURE) == "supported"


class UnityCatalog:
    """A server of Unity Catalog: Databricks, or the open source server.

    Args:
        url: The workspace or server, such as `https://host`; `DATABRICKS_HOST` of the environment if None.
        token: A token, or a function that returns one; `DATABRICKS_TOKEN` of the environment if None.
        oauth: A client of OAuth, instead of a token; `DATABRICKS_CLIENT_ID` and `DATABRICKS_CLIENT_SECRET` of the
            environment if None.

    Where neither arguments nor the environment name a server, databricks-sdk is asked if it is installed, as it is on
    Databricks: it finds the identity of a notebook or job, profiles of `~/.databrickscfg`, and logins of tools.

    Raises:
        InvalidArgumentError: There is no URL.
        MissingLibraryError: urllib3 is not installed.

    Examples:
        >>> catalog = UnityCatalog("https://host", token)                                   # doctest: +SKIP
        >>> DeltaTable("uc://main.sales.orders", catalog=catalog).to_pandas()               # doctest: +SKIP
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | Callable[[], str] | None = None,
        *,
        oauth: OAuthClient | None = None,
    ) -> None:
        given_url = None if url is None else _server(url)
        #: With neither user nor password: they are not sent.
        self._given = given_url, token, oauth
        url = given_url or _variable(_URL)
        auth: str | Callable[[], str] | OAuthClient | None = oauth or token or _variable(_TOKEN)
        client_id, secret = _variable(_CLIENT), _variable(_SECRET)
        if auth is None and client_id and secret:
            auth = OAuthClient(client_id, secret)
        if not url:
            login = databricks_login()
            if login is None:
                message = "no server of Unity Catalog is given: set DATABRICKS_HOST, or give UnityCatalog(url, token)"
                raise InvalidArgumentError(message)
            url, auth = login.url, auth or login.token
        self._client = RestClient(_server(url), _API, auth, "Unity Catalog")
        #: The endpoints of the Delta API by catalog; None where the server lacks it.
        self._delta_apis: dict[str, frozenset[str] | None] = {}

    def __repr__(self) -> str:
        return f"UnityCatalog({self._client.server!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """The pickle holds the token, if one was given."""
        return _unpickled, self._given

    @property
    def client(self) -> RestClient:
        """The client of the server."""
        return self._client

    def catalogs(self) -> list[str]:
        """Return the names of the catalogs."""
        return self._names("catalogs", {})

    def schemas(self, catalog: str) -> list[str]:
        """Return the names of the schemas of a catalog."""
        return self._names("schemas", {"catalog_name": catalog})

    def tables(self, catalog: str, schema: str) -> list[str]:
        """Return the names of the tables of a schema."""
        return self._names("tables", {"catalog_name": catalog, "schema_name": schema})

    def table(self, name: str) -> CatalogTable:
        """Return what the catalog knows of a table.

        Args:
            name: `catalog.schema.table`, with or without `uc://`.

        Raises:
            TableNotFoundError: There is no such table; the message has the nearest name.
            DeltaProtocolError: The table is not one of Delta Lake, or has a row filter or a column mask.
            CatalogError: The server refused the request, or its answer is not one of its API.
        """
        found = parse_name(name)
        try:
            if self._has_delta_api(found.catalog):
                return self._of_delta_api(found)
        except CatalogError as error:
            if error.is_not_found:
                raise self._not_found(found) from None
            if error.kind != "UnsupportedTableFormatException":
                raise
        return self._of_tables_api(found)

    def register(self, name: str, table: DescribedTable) -> None:
        """Give a name to a table that exists: it becomes an external one.

        Args:
            name: `catalog.schema.table`, with or without `uc://`.
            table: A `DeltaTable` that is opened by its location.

        Raises:
            InvalidArgumentError: There is another table of this name.
            TableNotFoundError: There is no such catalog or schema.
            CatalogError: The server refused the request.

        Examples:
            >>> catalog.register("main.sales.orders", DeltaTable("s3://bucket/orders"))     # doctest: +SKIP
        """
        found = parse_name(name)
        location = table.table_uri.rstrip("/")
        try:
            if self._has_delta_api(found.catalog):
                path = f"delta/v1/{found.path.rpartition('/tables/')[0]}/tables"
                self._client.call("POST", path, body=delta_definition(found, location, table))
            else:
                self._client.call("POST", "tables", body=tables_definition(found, location, table))
        except CatalogError as error:
            if error.is_not_found:
                raise self._not_found(found) from None
            if error.status != HTTPStatus.CONFLICT:
                raise
            # After a lost answer, the table has its name already.
            if self._location_of(found) != location:
                message = f"there is a table {found} already"
                raise InvalidArgumentError(message) from None

    def path_credentials(
        self, location: str, operation: Literal["READ", "READ_WRITE"] = "READ_WRITE"
    ) -> PathCredentials:
        """Return a credential provider for a location that no table of the catalog has.

        Args:
            location: The URL, which one of the catalog's external locations covers.
            operation: What they are for.

        Examples:
            >>> provider = catalog.path_credentials("s3://bucket/orders")                   # doctest: +SKIP
            >>> write_deltalake("s3://bucket/orders", rows, credential_provider=provider)   # doctest: +SKIP
        """
        return PathCredentials(self._client, location, operation)

    def drop(self, name: str) -> None:
        """Drop a table; the server deletes the files of a managed one.

        Args:
            name: `catalog.schema.table`, with or without `uc://`.

        Raises:
            TableNotFoundError: There is no such table.
            CatalogError: The server refused the request.
        """
        found = parse_name(name)
        try:
            self._client.call("DELETE", _table_path(found))
        except CatalogError as error:
            if error.is_not_found:
                raise self._not_found(found) from None
            raise

    def rename(self, name: str, new_name: str) -> None:
        """Rename a table within its schema.

        Args:
            name: `catalog.schema.table`, with or without `uc://`.
            new_name: The new last part of the name.

        Raises:
            TableNotFoundError: There is no such table.
            CatalogError: The server refused the request, or there is a table of the new name.
        """
        found = parse_name(name)
        try:
            self._client.call("POST", f"delta/v1/{found.path}/rename", body={"new-name": new_name})
        except CatalogError as error:
            if error.is_not_found and self._has_delta_api(found.catalog):
                raise self._not_found(found) from None
            raise

    def _has_delta_api(self, catalog: str) -> bool:
        if catalog not in self._delta_apis:
            query = {"catalog": catalog, "protocol-versions": _VERSIONS}
            try:
                found = self._client.call("GET", "delta/v1/config", query)
                self._delta_apis[catalog] = frozenset(found.strings("endpoints"))
            except CatalogError as error:
                if error.kind == "NoSuchCatalogException":
                    raise
                if error.status not in SERVERS_WITHOUT:
                    raise
                # Servers before the Delta API.
                self._delta_apis[catalog] = None
        return self._delta_apis[catalog] is not None

    def takes_metrics(self, catalog: str) -> bool:
        """Return whether the server takes metrics of the commits to the tables of a catalog."""
        return self._has_delta_api(catalog) and _METRICS in (self._delta_apis[catalog] or ())

    def _of_delta_api(self, name: TableName) -> CatalogTable:
        answer = self._client.call("GET", f"delta/v1/{name.path}")
        refuse_policies(name, {**answer.members, **answer.object("metadata").members})
        loaded = loaded_table(answer)
        # The Delta API knows no policies, so that its answer does not say whether there are some.
        try:
            refuse_policies(name, self._client.call("GET", _table_path(name)).members)
        except CatalogError as error:
            if error.status not in _WITHOUT_TABLES:
                raise
        return CatalogTable(name, loaded.kind, loaded.location, loaded.id, loaded)

    def _of_tables_api(self, name: TableName) -> CatalogTable:
        try:
            answer = self._client.call("GET", _table_path(name))
        except CatalogError as error:
            if error.is_not_found:
                raise self._not_found(name) from None
            raise
        form, kind = answer.optional_text("data_source_format"), answer.text("table_type")
        if form != "DELTA" or not answer.optional_text("storage_location"):
            shown = server_text(form or kind, most=60)
            message = f"{name} is not a table of Delta Lake: it has the format {shown}"
            raise DeltaProtocolError(message)
        refuse_policies(name, answer.members)
        if kind == "MANAGED" and CATALOG_MANAGED_FEATURE in answer.text_map("properties"):
            message = f"{name} is a managed table, and {self._client.server} has no Delta API to commit to it"
            raise DeltaProtocolError(message)
        location = checked_location(answer.text("storage_location"))
        return CatalogTable(name, kind, location, answer.text("table_id"), None)

    def _names(self, kind: str, query: Mapping[str, str]) -> list[str]:
        return sorted(entry.text("name") for entry in self._client.pages(kind, query, kind, _TOKENS))

    def _location_of(self, name: TableName) -> str | None:
        try:
            return self.table(str(name)).location.rstrip("/")
        except (CatalogError, TableNotFoundError, DeltaProtocolError):
            return None

    def _not_found(self, name: TableName) -> TableNotFoundError:
        """Return the error for a missing table, with what is nearest to its name."""
        levels = (
            ("catalog", name.catalog, self.catalogs),
            ("schema", name.schema, lambda: self.schemas(name.catalog)),
            ("table", name.table, lambda: self.tables(name.catalog, name.schema)),
        )
        return missing_table(name, self._client.server, levels)


def _unpickled(url: str, token: str | None, oauth: OAuthClient | None) -> UnityCatalog:
    return UnityCatalog(url, token, oauth=oauth)


def _server(url: str) -> str:
    """Return the URL of a server without the path of its API."""
    return server_url(url, "the URL of the server of Unity Catalog").removesuffix(_API)


def _table_path(name: TableName) -> str:
    """Return the path of a table in the tables API."""
    return f"tables/{quote(str(name), safe='')}"


def _variable(names: tuple[str, ...]) -> str | None:
    return next((os.environ[name.upper()] for name in names if os.environ.get(name.upper())), None)


def of_options(options: Mapping[str, Any]) -> tuple[UnityCatalog, dict[str, Any]]:
    """Return the catalog that storage options, else the environment, name; and the other options."""
    given = {key.strip().lower(): value for key, value in options.items()}
    if isinstance(given.get(CATALOG), UnityCatalog):
        return given[CATALOG], {key: value for key, value in options.items() if key.strip().lower() != CATALOG}

    def first(names: tuple[str, ...]) -> str | None:
        return next((given[name] for name in names if given.get(name)), None)

    client_id, secret = first(_CLIENT), first(_SECRET)
    oauth = OAuthClient(client_id, secret) if client_id and secret else None
    others = {key: value for key, value in options.items() if key.strip().lower() not in _OPTIONS}
    return _known_catalog(first(_URL), first(_TOKEN), oauth, _environment()), others


def _environment() -> tuple[str | None, ...]:
    return tuple(_variable(names) for names in (_URL, _TOKEN, _CLIENT, _SECRET))


@lru_cache(maxsize=16)
def _known_catalog(
    url: str | None, token: str | None, oauth: OAuthClient | None, environment: tuple[str | None, ...]
) -> UnityCatalog:
    """Return one catalog for the same settings, which keeps its connections and tokens."""
    del environment
    return UnityCatalog(url, token, oauth=oauth)
