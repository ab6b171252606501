"""Credentials of a notebook in Microsoft Fabric, by its library `notebookutils`."""

from __future__ import annotations

import base64
import json
from typing import Any, NamedTuple

from deltafast._libraries import is_installed
from deltafast.exceptions import MissingLibraryError

__all__ = ["FabricNotebook", "is_fabric_notebook"]


class FabricNotebook(NamedTuple):
    """A credential provider: the identity with which a notebook in Microsoft Fabric runs.

    Examples:
        >>> DeltaTable("abfss://workspace@onelake.dfs.fabric.microsoft.com/lake.Lakehouse/Tables/events",
        ...            credential_provider=FabricNotebook())                              # doctest: +SKIP
    """

    #: The audience of the token, as `notebookutils.credentials.getToken` takes it.
    audience: str = "storage"

    def __call__(self) -> dict[str, Any]:
        """Return a token for OneLake and storage accounts.

        Raises:
            MissingLibraryError: This is not a notebook in Fabric.
        """
        if not is_fabric_notebook():
            message = "FabricNotebook needs a notebook in Microsoft Fabric: there is no notebookutils here"
            raise MissingLibraryError(message)
        import notebookutils  # pyright: ignore[reportMissingImports] - only Fabric has it

        utilities: Any = notebookutils
        token = str(utilities.credentials.getToken(self.audience))
        return {"token": token, "expires_at": _expiry(token)}


def is_fabric_notebook() -> bool:
    """Return whether this process is a notebook in Microsoft Fabric."""
    return is_installed("notebookutils")


def _expiry(token: str) -> int | None:
    """Return when a JSON web token expires, seconds since the epoch; None if it does not say so (RFC 7519, 4.1.4)."""
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004 - header, claims, signature
        return None
    claims = parts[1]
    try:
        return int(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])
    except (ValueError, KeyError, TypeError):
        return None
