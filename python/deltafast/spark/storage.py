"""Where tables are and how stores are opened: Hadoop's schemes and settings -> those of the core.

Spark reads and writes the data with its own settings; the core reads and commits the log with what is made
of them here.
Options that the caller gives win.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from deltafast.exceptions import InvalidArgumentError, TableNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HadoopSettings", "Place", "is_done", "place_of"]

_S3 = ("s3", "s3a", "s3n")
_AZURE = ("abfs", "abfss", "wasb", "wasbs")

#: Hadoop's keys, below `fs.s3a.` or `fs.s3a.bucket.NAME.`, and the core's.
_S3_KEYS = {
    "access.key": "AWS_ACCESS_KEY_ID",
    "secret.key": "AWS_SECRET_ACCESS_KEY",
    "session.token": "AWS_SESSION_TOKEN",
    "endpoint": "AWS_ENDPOINT_URL",
    "endpoint.region": "AWS_REGION",
}


class HadoopSettings(Protocol):
    """A session, or what is left of one where there is none."""

    def hadoop(self, prefix: str) -> dict[str, str]:
        """The settings of Hadoop's file systems that begin with `prefix`."""
        ...


class Place(NamedTuple):
    """A table's location, as Spark and as the core name it."""

    #: For Spark: a URL, or `file:` and an absolute path; without a slash at the end.
    hadoop: str
    #: For the core.
    uri: str
    #: How the core opens it.
    options: dict[str, str]


def is_done(place: Place, app_id: str, version: int) -> bool:
    """Whether the table there has that version of an application, or a later one."""
    from deltafast.table import DeltaTable

    try:
        known = DeltaTable(place.uri, storage_options=place.options or None).transaction_version(app_id)
    except TableNotFoundError:
        return False
    return known is not None and known >= version


def place_of(
    session: HadoopSettings, path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None
) -> Place:
    """Where a table is.

    Args:
        session: The session, whose Hadoop settings hold the credentials.
        path: A path, or a URL with a scheme of Hadoop or of the core.
        storage_options: Options for the core, which win over those of the session.

    Raises:
        InvalidArgumentError: There is no path, or the core has no store for its scheme.
    """
    text = os.fspath(path)
    if not text:
        message = "the path of the table is empty"
        raise InvalidArgumentError(message)
    given = dict(storage_options or {})
    parts = urlsplit(text)
    scheme = parts.scheme.lower() if ":/" in text else ""
    if scheme in ("", "file"):
        # Without `//` Hadoop takes the path as it is, with them as a URL.
        plain = text if not scheme else unquote(parts.path) if "://" in text else parts.path
        # Not resolved: a link is where the user says that the table is.
        local = os.path.abspath(plain)  # noqa: PTH100
        return Place(f"file:{Path(local).as_posix()}", local, given)
    text = text.rstrip("/")
    rest = text.partition("://")[2]
    if scheme in _S3:
        return Place(f"s3a://{rest}", f"s3://{rest}", _s3(session, parts.netloc) | given)
    if scheme in _AZURE:
        return Place(text, text, _azure(session, parts.netloc) | given)
    if scheme == "gs":
        return Place(text, text, _gcs(session) | given)
    message = f"the core has no store for {scheme}:// yet; it has local paths, s3a://, abfss:// and gs://"
    raise InvalidArgumentError(message)


def _s3(session: HadoopSettings, bucket: str) -> dict[str, str]:
    """Settings of a bucket, which win over those of all buckets."""
    found: dict[str, str] = {}
    everything = session.hadoop("fs.s3a.")
    for prefix in ("fs.s3a.", f"fs.s3a.bucket.{bucket}."):
        settings = {key[len(prefix) :]: value for key, value in everything.items() if key.startswith(prefix)}
        found |= {ours: settings[theirs] for theirs, ours in _S3_KEYS.items() if settings.get(theirs)}
        encrypted = settings.get("connection.ssl.enabled", "true").lower() != "false"
        if "path.style.access" in settings:
            found["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = str(settings["path.style.access"].lower() != "true").lower()
        endpoint = found.get("AWS_ENDPOINT_URL")
        if endpoint and "://" not in endpoint:
            found["AWS_ENDPOINT_URL"] = endpoint = f"{'https' if encrypted else 'http'}://{endpoint}"
        if endpoint and endpoint.startswith("http://"):
            found["AWS_ALLOW_HTTP"] = "true"
        if "AnonymousAWSCredentialsProvider" in settings.get("aws.credentials.provider", ""):
            found["AWS_SKIP_SIGNATURE"] = "true"
    return found


def _azure(session: HadoopSettings, netloc: str) -> dict[str, str]:
    """Settings of an account: a key, a client with its secret, or a fixed token."""
    host = netloc.rpartition("@")[2]
    account = host.partition(".")[0]
    everything = session.hadoop("fs.azure.")

    def setting(name: str) -> str | None:
        return everything.get(f"fs.azure.{name}.{host}") or everything.get(f"fs.azure.{name}")

    found = {"azure_storage_account_name": account}
    if key := setting("account.key"):
        found["azure_storage_account_key"] = key
    if token := setting("sas.fixed.token"):
        found["azure_storage_sas_token"] = token
    client, secret = setting("account.oauth2.client.id"), setting("account.oauth2.client.secret")
    endpoint = setting("account.oauth2.client.endpoint") or ""
    if client and secret:
        found |= {"azure_storage_client_id": client, "azure_storage_client_secret": secret}
        # https://login.microsoftonline.com/TENANT/oauth2/token
        found["azure_storage_tenant_id"] = urlsplit(endpoint).path.strip("/").partition("/")[0]
    return found


def _gcs(session: HadoopSettings) -> dict[str, str]:
    """The file with the key of a service account."""
    keys = ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile")
    everything = session.hadoop("fs.gs.") | session.hadoop("google.cloud.")
    file = next((everything[key] for key in keys if everything.get(key)), None)
    return {"google_service_account": file} if file else {}
