"""Settings of Hadoop for the files of one table of Unity Catalog, with which executors have the catalog's credentials.

They are options of the relations that read and write the table: nothing else that the session reads or writes uses
them. Java's `CatalogFileSystem` explains how they are used; `TableCredentials` asks the server, again before the
credentials expire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from deltafast.exceptions import DeltaError
from deltafast.spark._session.java_library import UnavailableError, load, on_executors
from deltafast.spark._session.unity_tables import named_at

if TYPE_CHECKING:
    from deltafast._catalog.rest_client import RestClient
    from deltafast.spark._session.session import Session
    from deltafast.spark._session.storage import Place

__all__ = ["file_options"]

_PREFIX: Final = "fs.deltafast."
#: The file systems of Hadoop, by schemes.
_FILE_SYSTEMS: Final = {
    "s3a": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "abfs": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    "abfss": "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
    "gs": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
}
#: The default of Hadoop 3.5, which takes no tokens.
_WITHOUT_TOKENS: Final = "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem"


def file_options(session: Session, place: Place, operation: Literal["READ", "READ_WRITE"]) -> dict[str, str]:
    """Return the settings; an empty dict without a catalog, for tables on local disks, and over Connect.

    Args:
        session: The session.
        place: The table.
        operation: What the credentials are for.

    Raises:
        DeltaError: The executors cannot load the classes.
    """
    table = named_at(place.hadoop)
    scheme = place.hadoop.partition(":")[0]
    if table is None or table.provider is None or scheme not in _FILE_SYSTEMS or session.is_connect:
        return {}
    try:
        kind = load(session, "CatalogFileSystem")
        on_executors(session, kind)
    except UnavailableError as error:
        message = f"the credentials of {table.uri} do not reach this Spark's executors ({error})"
        raise DeltaError(message) from error
    original = session.hadoop(f"fs.{scheme}.").get(f"fs.{scheme}.impl")
    if original in (None, "", _WITHOUT_TOKENS):
        original = _FILE_SYSTEMS[scheme]
    provider = table.provider
    own = {
        "server": provider.client.url,
        f"file.system.{scheme}": original,
        "table.location": provider.location,
        "operation": operation,
    }
    if provider.is_delta_api:
        own["credentials.path"] = f"{provider.path}?operation={operation}"
    else:
        own["table.id"] = provider.path
    own |= _authorization(provider.client)
    settings = {f"{_PREFIX}{key}": value for key, value in own.items()}
    return settings | {f"fs.{scheme}.impl": str(kind.getName()), f"fs.{scheme}.impl.disable.cache": "true"}


def _authorization(client: RestClient) -> dict[str, str]:
    """Return the settings with which executors ask the server; a function is called here."""
    from deltafast._catalog.rest_client import OAuthClient

    auth = client.auth
    if auth is None:
        return {}
    if isinstance(auth, OAuthClient):
        return {
            "oauth.client.id": auth.client_id,
            "oauth.client.secret": auth.client_secret,
            "oauth.token.url": auth.token_url_of(client.server),
            "oauth.scope": auth.scope,
        }
    return {"token": auth if isinstance(auth, str) else auth()}
