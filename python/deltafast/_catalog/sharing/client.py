"""`SharingClient`: what a server of Delta Sharing has, and its answers about tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

from deltafast._catalog.catalog_error import CatalogError
from deltafast._catalog.http_client import NoAnswerError
from deltafast._catalog.missing_table import missing_table
from deltafast._catalog.rest_client import RestClient
from deltafast._catalog.server_text import server_url
from deltafast._catalog.sharing.profile import ShareProfile

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    from deltafast._catalog.http_client import HttpAnswer
    from deltafast._catalog.sharing.share_name import ShareName
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
#: Bytes of a body that is no answer, of which an error shows the beginning.
_SHOWN = 1 << 10
#: The most digits of a version, which has 63 bits.
_DIGITS = 18
#: The most bytes of a line, which has one file or the schema, and of an answer. What is larger is not one of a share.
_LARGEST_LINE, _LARGEST_ANSWER = 1 << 26, 1 << 31


class TableAnswer(NamedTuple):
    """The answer of a server about a table."""

    #: The version, or the first one of the range.
    version: int
    #: The lines, as bytes of JSON; they are read while they arrive.
    lines: Iterator[bytes]
    #: Whether the last line is `endStreamAction`, so that an answer without it was cut off.
    has_end: bool
    #: What answered which request, for errors.
    source: str
    #: Leaves the lines unread.
    close: Callable[[], None]


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
        url = urlsplit(server_url(self._profile.endpoint, "the endpoint of the profile of Delta Sharing"))
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
        return self._version(name, "GET", "version", self._ask(name, "GET", "version"))

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
        return sorted(entry.text("name") for entry in self._rest.pages(path, {}, "items", _TOKENS))

    def _lines(self, name: ShareName, method: str, what: str, **asked: Any) -> TableAnswer:
        answer = self._ask(name, method, what, is_streamed=True, **asked)
        capabilities = answer.headers.get(_HEADER, "").lower().replace(" ", "")
        version = self._version(name, method, what, answer)
        source = self._rest.source(method, _path(name, what))
        return TableAnswer(
            version, _split(answer, source), "includeendstreamaction=true" in capabilities, source, answer.close
        )

    def _ask(self, name: ShareName, method: str, what: str, *, is_streamed: bool = False, **asked: Any) -> HttpAnswer:
        """Return an answer about a table, to a request with `query` or `body`."""
        headers = {"Accept": "application/x-ndjson, application/json", _HEADER: _CAPABILITIES}
        try:
            return self._rest.answer(method, _path(name, what), headers=headers, is_streamed=is_streamed, **asked)
        except CatalogError as error:
            if not error.is_not_found:
                raise
            refusal = error
        raise self._not_found(name, refusal)

    def _version(self, name: ShareName, method: str, what: str, answer: HttpAnswer) -> int:
        """Return the version in the header of an answer.

        Raises:
            CatalogError: There is none.
        """
        text = answer.headers.get(_VERSION)
        if text is not None and text.isascii() and text.isdigit() and len(text) <= _DIGITS:
            return int(text)
        answer.load_beginning(_SHOWN)
        came = f"{'nothing' if text is None else repr(self._rest.shown(text, 40))}, and the body {answer.kind}"
        source = self._rest.source(method, _path(name, what))
        message = f"{source} with no usable header Delta-Table-Version: {came}: {self._rest.shown(answer.data, 80)}"
        raise CatalogError(message)

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


def _path(name: ShareName, what: str) -> str:
    """Return the path of a request about a table."""
    return f"shares/{_part(name.share)}/schemas/{_part(name.schema)}/tables/{_part(name.table)}/{what}"


def _split(answer: HttpAnswer, source: str) -> Iterator[bytes]:
    """Return the lines of an answer while they arrive.

    Raises:
        CatalogError: The connection broke, or a line or the answer is too large.
    """
    # The pieces of a line are joined once: it may have thousands.
    beginning: list[bytes] = []
    size, failure = 0, ""
    try:
        for piece in answer.pieces(_LARGEST_ANSWER):
            first, *lines = piece.split(b"\n")
            size += len(first)
            beginning.append(first)
            if lines:
                yield b"".join(beginning)
                yield from lines[:-1]
                beginning, size = [lines[-1]], len(lines[-1])
            if size > _LARGEST_LINE:
                failure = f"a line has more than {_LARGEST_LINE} bytes"
                break
    except NoAnswerError as error:
        failure = str(error)
    finally:
        answer.close()
    if failure:
        message = f"{source} with lines that break off: {failure}"
        raise CatalogError(message)
    yield b"".join(beginning)
