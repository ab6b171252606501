"""The server and tokens that Databricks' library finds: in notebooks and jobs, in profiles, from logins of tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from deltafast._libraries import is_installed
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DatabricksLogin", "databricks_login"]

_BEARER = "Bearer "


class DatabricksLogin(NamedTuple):
    """A workspace, and a function that returns a token for it."""

    url: str
    token: Callable[[], str]


def databricks_login() -> DatabricksLogin | None:
    """Return what databricks-sdk finds; None if it is not installed.

    Raises:
        InvalidArgumentError: It finds nothing; the message says why.
    """
    if not is_installed("databricks.sdk"):
        return None
    from databricks.sdk.core import Config  # pyright: ignore[reportMissingImports] - optional

    sdk: Any = Config
    try:
        config = sdk()
    except ValueError as error:
        reason = " ".join(str(error).split())
        message = f"no server of Unity Catalog is given, and databricks-sdk finds none: {reason[:300]}"
        raise InvalidArgumentError(message) from None

    def token() -> str:
        return str(config.authenticate().get("Authorization", "")).removeprefix(_BEARER)

    return DatabricksLogin(str(config.host), token)
