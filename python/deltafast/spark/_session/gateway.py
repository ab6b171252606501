"""Hadoop's file systems for the core, for stores that it does not support or whose credentials only Java can provide.

The Java class `HadoopGateway` listens on the loopback interface of the driver's machine; the core connects to
it directly, without Python and py4j in between. Kerberos, delegation tokens, mounts and credential provider classes
are those of the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast.exceptions import InvalidArgumentError
from deltafast.spark._session.java_calls import hadoop_gateway
from deltafast.spark._session.java_library import first_line

if TYPE_CHECKING:
    from deltafast.spark._session.java_library import JavaSession

__all__ = ["home", "options"]

#: The gateways, by Java virtual machine.
_RUNNING: dict[Any, Any] = {}


def options(session: JavaSession) -> dict[str, str]:
    """Return the storage options with which the core accesses the file systems of a session.

    Args:
        session: A classic session.

    Raises:
        InvalidArgumentError: This Spark cannot run the gateway.
    """
    used = str(_running(session).register(_configuration(session)))
    address, secret, configuration = used.split("\n")
    return {
        "hadoop_gateway": address,
        "hadoop_gateway_secret": secret,
        "hadoop_gateway_configuration": configuration,
    }


def home(session: JavaSession) -> str:
    """Return the folder to which paths without a scheme are relative, with scheme and authority.

    Raises:
        InvalidArgumentError: Hadoop does not support the file system.
    """
    try:
        return str(_running(session).home(_configuration(session)))
    except InvalidArgumentError:
        raise
    except Exception as error:
        message = f"Hadoop's default file system (fs.defaultFS) cannot be used: {first_line(error)}"
        raise InvalidArgumentError(message) from error


def _configuration(session: JavaSession) -> Any:
    found = session.spark._jsparkSession.sessionState().newHadoopConf()
    for key, value in session.settings("spark.hadoop.").items():
        found.set(key, value)
    return found


def _running(session: JavaSession) -> Any:
    held = session.spark._sc._gateway
    if held not in _RUNNING:
        try:
            _RUNNING[held] = hadoop_gateway(session)
        except InvalidArgumentError:
            raise
        except Exception as error:
            message = f"this Spark cannot run deltafast's gateway to Hadoop's file systems ({first_line(error)})"
            raise InvalidArgumentError(message) from error
    return _RUNNING[held]
