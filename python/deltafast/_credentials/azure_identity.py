"""Credentials of Microsoft Entra ID, by azure-identity where it is installed."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from deltafast._credentials.fabric_notebook import FabricNotebook, is_fabric_notebook
from deltafast._libraries import is_installed
from deltafast.exceptions import MissingLibraryError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AzureIdentity", "default_identity"]

_SCOPE = "https://storage.azure.com/.default"
#: Parts of the names of options and variables with which the core has credentials of its own.
_OWN_PARTS = (
    "key",
    "sas",
    "token",
    "client_id",
    "client_secret",
    "azure_cli",
    "skip_signature",
    "emulator",
    "fabric",
    "msi",
    "identity",
    "credential_type",
)


class AzureIdentity(NamedTuple):
    """A credential provider: a credential of azure-identity, which must be installed.

    Examples:
        >>> DeltaTable("az://container/events", credential_provider=AzureIdentity())           # doctest: +SKIP
    """

    #: An object of `azure.identity`, or any other with `get_token`; `DefaultAzureCredential`, which tries the
    #: environment, a workload identity, a managed identity and the logins of developers' tools, if None.
    credential: Any = None

    def __call__(self) -> dict[str, Any]:
        """Return a token for storage accounts.

        Raises:
            MissingLibraryError: azure-identity is not installed.
            PermissionError: There are no default credentials; the message names the kinds that were tried.
        """
        found = _default_token() if self.credential is None else self.credential.get_token(_SCOPE)
        return {"token": found.token, "expires_at": found.expires_on}


def _default_token() -> Any:
    credential = _default_credential()
    from azure.core.exceptions import ClientAuthenticationError

    try:
        return credential.get_token(_SCOPE)
    except ClientAuthenticationError:
        # One that could not be made is replaced by an object with its name.
        tried = ", ".join(getattr(one, "_credential_name", type(one).__name__) for one in credential.credentials)
        message = f"azure-identity finds no credentials; it tried {tried}"
        raise PermissionError(message) from None


@lru_cache(maxsize=1)
def _default_credential() -> Any:
    if not is_installed("azure.identity"):
        message = "AzureIdentity needs azure-identity, which is not installed: pip install azure-identity"
        raise MissingLibraryError(message)
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()


def default_identity(options: Mapping[str, str]) -> AzureIdentity | FabricNotebook | None:
    """Return the provider for a container for which neither options nor the environment give credentials.

    None if there are credentials, or nothing gives them: the core then asks for a managed identity itself.
    """
    names = [key.strip().lower() for key, value in options.items() if value]
    names += [name.lower() for name, value in os.environ.items() if value and name.startswith("AZURE_")]
    if any(part in name for name in names for part in _OWN_PARTS):
        return None
    if is_fabric_notebook():
        return FabricNotebook()
    return AzureIdentity() if is_installed("azure.identity") else None
