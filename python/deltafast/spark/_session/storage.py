"""Locations of tables and access to stores: Hadoop's schemes and settings -> those of the core.

Spark reads and writes the data with its own settings; the core reads and commits the log with the options that are
derived from them here. Stores and credentials that the core does not support it accesses through Hadoop (`gateway`).
Options that the caller gives take precedence.
"""

from __future__ import annotations

import os
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from deltafast._catalog.unity.table_name import CATALOG, SCHEME
from deltafast._credentials.provider import KEY
from deltafast._util.options import text_options
from deltafast.exceptions import InvalidArgumentError, TableNotFoundError
from deltafast.spark._session import credentials
from deltafast.spark._session.unity_tables import has_catalogs, located, named, named_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast import _core
    from deltafast._catalog.committer import Committer
    from deltafast.spark._session.unity_tables import NamedTable

__all__ = [
    "CoreAccess",
    "HadoopSettings",
    "Place",
    "core_access",
    "is_done",
    "place_of",
    "place_of_external",
    "settings_of",
    "transaction_version",
]

_S3 = ("s3", "s3a", "s3n")
_AZURE = ("abfs", "abfss")
#: An option for all kinds of stores.
_RISK = "allow_unsafe_rename"


class HadoopSettings(Protocol):
    """A session, or a replacement where there is none."""

    def hadoop(self, prefix: str) -> dict[str, str]:
        """Return the settings of Hadoop's file systems that begin with `prefix`."""
        ...

    def home(self) -> str | None:
        """The folder to which paths without a scheme are relative; None for a local one."""
        ...

    def gateway(self, path: str) -> dict[str, str]:
        """Return the options with which the core accesses a path through Hadoop."""
        ...

    @property
    def via_hadoop(self) -> bool:
        """Whether all stores are accessed through Hadoop."""
        ...


class Place(NamedTuple):
    """A table's location, as Spark and as the core name it."""

    #: For Spark: a URL, or `file:` and an absolute path, without a trailing slash.
    hadoop: str
    #: For the core.
    uri: str
    #: The core's storage options.
    options: dict[str, Any]

    @property
    def folder(self) -> Path | None:
        """The folder on this machine, if it is local."""
        return Path(self.hadoop.removeprefix("file:")) if self.hadoop.startswith("file:") else None


class CoreAccess(NamedTuple):
    """How the core reaches a table without a handle."""

    uri: str
    options: dict[str, str] | None
    #: Of a table of a catalog that exists.
    snapshot: _core.Snapshot | None = None
    committer: Committer | None = None


def core_access(place: Place) -> CoreAccess:
    """Return how the core reaches a table; one of Unity Catalog is opened for it."""
    if not place.uri.startswith(SCHEME):
        return CoreAccess(place.uri, place.options or None)
    from deltafast._handle import handle_of
    from deltafast.table import DeltaTable

    handle = handle_of(DeltaTable(place.uri, storage_options=place.options))
    options = text_options(handle.storage_options, handle.given_uri)
    return CoreAccess(handle.given_uri, options, handle.snapshot, handle.options.committer)


def is_done(place: Place, app_id: str, version: int) -> bool:
    """Return whether the table has committed that version of an application, or a later one."""
    known = transaction_version(place, app_id)
    return known is not None and known >= version


def transaction_version(place: Place, app_id: str) -> int | None:
    """Return the last version that an application has recorded in the table; None if there is no such version."""
    from deltafast.table import DeltaTable

    try:
        return DeltaTable(place.uri, storage_options=place.options or None).transaction_version(app_id)
    except TableNotFoundError:
        return None


def place_of(
    session: HadoopSettings, path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None
) -> Place:
    """Return the location of a table.

    Args:
        session: The session, whose Hadoop settings hold the credentials.
        path: A path, or a URL with a scheme of Hadoop or of the core.
        storage_options: Options for the core, which override those of the session.

    Raises:
        InvalidArgumentError: The path is empty, or only Hadoop could access it and is not available.
    """
    text = os.fspath(path)
    if not text:
        message = "the path of the table is empty"
        raise InvalidArgumentError(message)
    given = dict(storage_options or {})
    if text.startswith(SCHEME) and has_catalogs():
        return _place_of_name(session, text, given)
    place = _place_of_location(session, text, given)
    found = named_at(place.hadoop)
    if found is None:
        return place
    return place._replace(uri=found.uri, options=_of_catalog(_server_options(session, place.hadoop) | given, found))


def place_of_external(session: HadoopSettings, location: str, table: NamedTable) -> Place:
    """Return the location of a table that is to have a name of Unity Catalog, with credentials of the catalog.

    Args:
        session: The session.
        location: A path or URL; one in a store is covered by an external location of the catalog.
        table: The name.
    """
    place = place_of(session, location)
    scheme, _, rest = place.hadoop.partition("://")
    if scheme not in ("s3a", *_AZURE, "gs"):
        return place
    uri = f"s3://{rest}" if scheme == "s3a" else place.hadoop
    given = _server_options(session, place.hadoop)
    return Place(place.hadoop, uri, {**given, KEY: table.catalog.path_credentials(uri)})


def _server_options(session: HadoopSettings, hadoop: str) -> dict[str, str]:
    """Return the options of a bucket but its credentials; an empty dict for other stores."""
    scheme, _, rest = hadoop.partition("://")
    if scheme == "s3a":
        return credentials.s3_without_credentials(settings_of(session), rest.partition("/")[0])
    return credentials.gcs_without_credentials(settings_of(session)) if scheme == "gs" else {}


def _place_of_name(session: HadoopSettings, name: str, given: dict[str, str]) -> Place:
    """Return the location of a table of Unity Catalog; a new one has none yet."""
    location = located(name)
    if location is not None:
        return place_of(session, location, given)
    found = named(name)
    if found is None:
        message = f"{name} is a table of no catalog: give enable(spark, catalogs=...) its server"
        raise InvalidArgumentError(message)
    return Place(found.uri, found.uri, _of_catalog(_new_options(session) | given, found))


def _new_options(session: HadoopSettings) -> dict[str, str]:
    """Return the options of servers that have the same URL for all buckets: the catalog has yet to say which one."""
    settings = settings_of(session)
    found = credentials.s3_without_credentials(settings, "")
    s3 = found if found.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST") == "false" else {}
    return s3 | credentials.gcs_without_credentials(settings)


def _of_catalog(given: dict[str, str], table: NamedTable) -> dict[str, Any]:
    return {**given, CATALOG: table.catalog}


def _place_of_location(session: HadoopSettings, text: str, given: dict[str, str]) -> Place:
    asked = str(given.pop("via_hadoop", session.via_hadoop)).lower() == "true" or "hadoop_gateway" in given
    scheme = urlsplit(text).scheme.lower() if ":/" in text else ""
    home = session.home()
    if scheme == "file" or (not scheme and home is None):
        # Hadoop takes a path without `//` as it is, and with `//` as a URL.
        parts = urlsplit(text)
        plain = text if not scheme else unquote(parts.path) if "://" in text else parts.path
        # Symbolic links are not resolved: the path is the one that the user gives.
        local = Path(os.path.abspath(plain))  # noqa: PTH100
        hadoop = f"file:{local.as_posix()}"
        if asked:
            return _by_hadoop(session, hadoop, f"file://{local.as_posix()}", given)
        # Where paths without a scheme are Hadoop's, a local path needs its own scheme.
        return Place(hadoop, str(local) if home is None else local.as_uri(), given)
    text = _whole(text, scheme, home)
    scheme, _, rest = text.partition("://")
    if scheme in _S3:
        text = f"s3a://{rest}"
    found = None if asked else _own(session, scheme, rest.partition("/")[0], given)
    if found is None:
        return _by_hadoop(session, text, text, given)
    return Place(text, f"s3://{rest}" if scheme in _S3 else text, found | given)


def settings_of(session: HadoopSettings) -> dict[str, str]:
    """Return all settings from which credentials are derived."""
    return {key: value for prefix in credentials.PREFIXES for key, value in session.hadoop(prefix).items()}


def _own(session: HadoopSettings, scheme: str, netloc: str, given: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of the core's own store; None if it has none, or only Java has the credentials."""
    if scheme not in (*_S3, *_AZURE, "gs"):
        return None
    settings = settings_of(session)
    if scheme in _S3:
        found = credentials.s3(settings, netloc)
    else:
        found = credentials.gcs(settings) if scheme == "gs" else credentials.azure(settings, netloc)
    # Options for the core's own store select that store.
    return {} if found is None and given.keys() - {_RISK} else found


def _by_hadoop(session: HadoopSettings, hadoop: str, uri: str, given: dict[str, str]) -> Place:
    return Place(hadoop, uri, given if "hadoop_gateway" in given else session.gateway(uri) | given)


def _whole(text: str, scheme: str, home: str | None) -> str:
    """Return a path with scheme and authority, as Hadoop completes and normalises it."""
    start, _, rest = (home or "").partition("://")
    authority, slash, folder = rest.partition("/")
    if not scheme:
        scheme, path = start, posixpath.join(slash + folder, text)
    else:
        _, _, path = text.partition(":")
        if path.startswith("//"):
            authority, slash, path = path[2:].partition("/")
            path = slash + path
        if not authority and scheme == start:
            authority = rest.partition("/")[0]
    return f"{scheme}://{authority}{posixpath.normpath(path) if path.strip('/') else ''}"
