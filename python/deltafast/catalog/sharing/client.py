"""`SharingClient`: what a server of Delta Sharing has, and its answers about tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

from deltafast.catalog.missing_table import missing_table
from deltafast.catalog.rest_client import CatalogError, RestClient
from deltafast.catalog.sharing.profile import ShareProfile
from deltafast.exceptions import DeltaProtocolError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from deltafast.catalog.sharing.share_name import ShareName
    from deltafast.exceptions import TableNotFoundError

__all__ = ["SharingClient", "TableAnswer", "timestamp_text"]

_TOKENS = ("pageToken", "nextPageToken")
#: The features of tables that the core reads, and the formats of answers that `response_lines` does.
_CAPABILITIES = (
    "responseformat=delta,parquet;readerfeatures=columnmapping,deletionvectors,timestampntz,typewidening,"
    "typewidening-preview,v2checkpoint,vacuumprotocolcheck,varianttype,varianttype-preview,variantshredding-preview,"
    "catalogmanaged;includeendstreamaction=true"
)
_VERSION = "delta-table-version"
_HEADER = "delta-sharing-capabilities"


class TableAnswer(NamedTuple):
    """The answer of a server about a table."""

    #: The version, or the first one of the range.
    version: int
    #: The lines, as bytes of JSON; they are read while they arrive.
    lines: Iterator[bytes]
    #: Whether the last line is `endStreamAction`, so that an answer without it was cut off.
    has_end: bool


class SharingClient:
    """A server of Delta Sharing, as a recipient sees it.

    Args:
        profile: The profile, or the path or URL of its file.

    Raises:
        InvalidArgumentError: The file is not a profile, or its token has expired.
        MissingLibraryError: urllib3 is not installed.

    Examples:
        >>> client = SharingClient("config.share")                                          # doctest: +SKIP
        >>> client.tables("retail", "sales")                                                # doctest: +SKIP
        ['orders']
        >>> DeltaTable("config.share#retail.sales.orders").to_pandas()                      # doctest: +SKIP
    """

    def __init__(self, profile: str | os.PathLike[str] | ShareProfile) -> None:
        self._profile = profile if isinstance(profile, ShareProfile) else ShareProfile.read(str(profile))
        url = urlsplit(self._profile.endpoint)
        self._rest = RestClient(f"{url.scheme}://{url.netloc}", url.path, self._profile.auth, "Delta Sharing")
        self.server = self._rest.server

    def __repr__(self) -> str:
        return f"SharingClient({self.server!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """The pickle holds the token of the profile."""
        return SharingClient, (self._profile,)

    def shares(self) -> list[str]:
        """Return the names of the shares."""
        return self._names("shares")

    def schemas(self, share: str) -> list[str]:
        """Return the names of the schemas of a share."""
        return self._names(f"shares/{_part(share)}/schemas")

    def tables(self, share: str, schema: str) -> list[str]:
        """Return the names of the tables of a schema."""
        return self._names(f"shares/{_part(share)}/schemas/{_part(schema)}/tables")

    def version(self, name: ShareName) -> int:
        """Return the newest version of a table.

        Raises:
            TableNotFoundError: There is no such table.
            CatalogError: The server refused the request.
        """
        return _version(self._ask(name, "GET", "version"), "version")

    def query(self, name: ShareName, body: Mapping[str, Any]) -> TableAnswer:
        """Return the files of a version.

        Args:
            name: The table.
            body: `version`, `timestamp`, `refreshToken`, `includeRefreshToken`, `pageToken`.

        Raises:
            TableNotFoundError: There is no such table.
            CatalogError: The server refused the request, or does not share the version.
        """
        return self._lines(name, "POST", "query", body=body)

    def changes(self, name: ShareName, query: Mapping[str, str | int]) -> TableAnswer:
        """Return the files with the changes of some versions.

        Args:
            name: The table.
            query: `startingVersion` or `startingTimestamp`, `endingVersion` or `endingTimestamp`, `pageToken`.

        Raises:
            TableNotFoundError: There is no such table.
            CatalogError: The server refused the request, or does not share the changes.
        """
        return self._lines(name, "GET", "changes", query={"includeHistoricalMetadata": "true", **query})

    def _names(self, path: str) -> list[str]:
        return sorted(found["name"] for found in self._rest.pages(path, {}, "items", _TOKENS))

    def _lines(self, name: ShareName, method: str, what: str, **asked: Any) -> TableAnswer:
        answer = self._ask(name, method, what, is_streamed=True, **asked)
        given = answer.headers.get(_HEADER, "").lower().replace(" ", "")
        return TableAnswer(_version(answer, what), _split(answer), "includeendstreamaction=true" in given)

    def _ask(self, name: ShareName, method: str, what: str, *, is_streamed: bool = False, **asked: Any) -> Any:
        """Return an answer about a table, to a request with `query` or `body`."""
        path = f"shares/{_part(name.share)}/schemas/{_part(name.schema)}/tables/{_part(name.table)}/{what}"
        headers = {"Accept": "application/x-ndjson, application/json", _HEADER: _CAPABILITIES}
        try:
            return self._rest.answer(method, path, headers=headers, is_streamed=is_streamed, **asked)
        except CatalogError as error:
            if not error.is_not_found:
                raise
            raise self._not_found(name, error) from None

    def _not_found(self, name: ShareName, refusal: CatalogError) -> TableNotFoundError:
        """Return the error for a missing table, with what is nearest to its name."""
        levels = (
            ("share", name.share, self.shares),
            ("schema", name.schema, lambda: self.schemas(name.share)),
            ("table", name.table, lambda: self.tables(name.share, name.schema)),
        )
        return missing_table(name, self.server, levels, ignores_case=True, otherwise=f": {refusal}")


def timestamp_text(timestamp_ms: int) -> str:
    """Return a timestamp as the protocol has it: ISO 8601 in UTC."""
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _part(name: str) -> str:
    return quote(name, safe="")


def _version(answer: Any, what: str) -> int:
    given = answer.headers.get(_VERSION)
    if given is None or not given.isdigit():
        message = f"the answer of the sharing server to {what} has no usable header Delta-Table-Version"
        raise DeltaProtocolError(message)
    return int(given)


def _split(answer: Any) -> Iterator[bytes]:
    """Return the lines of an answer while they arrive.

    Raises:
        CatalogError: The connection broke.
    """
    import urllib3

    rest = b""
    try:
        for piece in answer.stream(1 << 16):
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line for line in lines if line.strip())
    except urllib3.exceptions.HTTPError as error:
        message = f"the answer of the sharing server broke off: {type(error).__name__}"
        raise CatalogError(message) from None
    finally:
        answer.release_conn()
    if rest.strip():
        yield rest
