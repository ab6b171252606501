"""File systems of fsspec for URLs whose scheme the core does not have: `hf://`, `sftp://`, `webdav://`, ..."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deltafast._libraries import is_installed
from deltafast._util.locations import without_secrets
from deltafast.exceptions import InvalidArgumentError, MissingLibraryError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["file_system_of"]

#: What fsspec needs for a scheme: the module, and the package that has it.
_LIBRARIES = {
    "box": ("boxfs", "boxfs"),
    "dropbox": ("dropboxdrivefs", "dropboxdrivefs"),
    "gdrive": ("gdrive_fsspec", "gdrive-fsspec"),
    "git": ("pygit2", "pygit2"),
    "hdfs": ("pyarrow", "pyarrow"),
    "hf": ("huggingface_hub", "huggingface_hub"),
    "lakefs": ("lakefs_spec", "lakefs-spec"),
    "oci": ("ocifs", "ocifs"),
    "oss": ("ossfs", "ossfs"),
    "sftp": ("paramiko", "paramiko"),
    "smb": ("smbprotocol", "smbprotocol"),
    "ssh": ("paramiko", "paramiko"),
    "tos": ("tosfs", "tosfs"),
    "webdav": ("webdav4", "webdav4"),
    "webhdfs": ("requests", "requests"),
}

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
#: Schemes of services without a file system of fsspec that have an S3 interface.
_S3_INTERFACES = ("bos", "cos", "cosn", "ks3", "obs")
#: fsspec's names of schemes that the core has under another one, which its error states.
_OTHER_NAMES = ("gcs",)


def file_system_of(uri: str, options: Mapping[str, Any] | None) -> Any | None:
    """Return fsspec's file system of a URL; None for those of the core, and where fsspec has none.

    Args:
        uri: The location of a table.
        options: The arguments of the file system, in fsspec's words.

    Raises:
        MissingLibraryError: fsspec, or what it needs for the scheme, is not installed.
        InvalidArgumentError: The file system does not have an argument, or there is a credential provider.
        StorageError: The file system cannot be reached.
    """
    from deltafast import _core

    scheme = uri.partition("://")[0].lower()
    if not _SCHEME.fullmatch(scheme) or "://" not in uri or scheme in (*_core.store_schemes(), *_OTHER_NAMES):
        return None
    given = dict(options or {})
    # Spark's Hadoop reads it.
    if "hadoop_gateway" in given:
        return None
    _require(scheme)
    if not is_installed("fsspec"):
        _advise(scheme)
        return None
    fsspec: Any = import_module("fsspec")
    try:
        fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        message = f"{scheme}:// needs a library that is not installed: {error}"
        raise MissingLibraryError(message) from None
    except ValueError:
        _advise(scheme)
        return None
    _check_port(uri)
    if any(callable(value) for value in given.values()):
        message = f"credential_provider is for S3, Azure and Google Cloud Storage, not for `{scheme}`"
        raise InvalidArgumentError(message)
    try:
        return fsspec.url_to_fs(uri, **given)[0]
    except TypeError as error:
        message = f"storage_options of `{scheme}` are arguments of fsspec's file system: {_redacted(error, uri, given)}"
        raise InvalidArgumentError(message) from None
    except Exception as error:  # noqa: BLE001 - each file system has errors of its own
        reason = f"{type(error).__name__}: {_redacted(error, uri, given)}"
        message = f"cannot open {without_secrets(uri)} by fsspec: {reason}"
        raise StorageError(message) from None


def _check_port(uri: str) -> None:
    """Reject a URL whose port is no number, such as one with a slash in its password."""
    try:
        urlsplit(uri).port  # noqa: B018 - it is parsed here
    except ValueError:
        scheme = uri.partition("://")[0]
        message = f"not a usable URL: {scheme}://...: the port is not a number; write `/` in a password as %2F"
        raise InvalidArgumentError(message) from None


def _require(scheme: str) -> None:
    """Check that the libraries of a scheme are installed."""
    if scheme not in _LIBRARIES:
        return
    needed = [("fsspec", "fsspec"), _LIBRARIES[scheme]]
    missing = [package for module, package in needed if not is_installed(module)]
    if missing:
        message = f"{scheme}:// needs {' and '.join(missing)}: pip install {' '.join(missing)}"
        raise MissingLibraryError(message)


def _advise(scheme: str) -> None:
    """Reject the scheme of a service that is reached by its S3 interface."""
    if scheme in _S3_INTERFACES:
        message = f"there is no store for the scheme `{scheme}`: its service has an S3 interface, so give "
        message += "s3://bucket/path and the storage option aws_endpoint_url"
        raise InvalidArgumentError(message)


def _redacted(error: Exception, uri: str, options: Mapping[str, Any]) -> str:
    """Return the first line of an error's message without the values of options and the password in a URL."""
    text = str(error).partition("\n")[0]
    for value in (*options.values(), urlsplit(uri).password):
        if isinstance(value, str) and value:
            text = text.replace(value, "***")
    return text
