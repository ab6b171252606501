"""Hadoop's file systems for the core, for stores that it does not know or whose credentials only Java can make.

`gateway.java`, compiled by Spark's own Janino, listens on the loopback interface of the driver's machine; the core
speaks to it directly, without Python and py4j between. Kerberos, delegation tokens, mounts and classes that make
credentials are those of the session.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from deltafast.spark.session import Session

__all__ = ["home", "options"]

_CLASS = "deltafast.DeltafastGateway"
#: The gateway, by the Java that it runs in.
_RUNNING: dict[int, Any] = {}


def options(session: Session) -> dict[str, str]:
    """How the core reaches the file systems of a session, as storage options.

    Args:
        session: A classic session.

    Raises:
        InvalidArgumentError: This Spark does not compile the gateway.
    """
    used = str(_running(session).use(_configuration(session)))
    address, secret, configuration = used.split("\n")
    return {
        "hadoop_gateway": address,
        "hadoop_gateway_secret": secret,
        "hadoop_gateway_configuration": configuration,
    }


def home(session: Session) -> str:
    """The folder that paths without a scheme are relative to, with scheme and authority.

    Raises:
        InvalidArgumentError: Hadoop has no such file system.
    """
    try:
        return str(_running(session).home(_configuration(session)))
    except InvalidArgumentError:
        raise
    except Exception as error:
        message = f"Hadoop's default file system (fs.defaultFS) cannot be used: {_line(error)}"
        raise InvalidArgumentError(message) from error


def _configuration(session: Session) -> Any:
    found = session.spark._jsparkSession.sessionState().newHadoopConf()
    for key, value in session.settings("spark.hadoop.").items():
        found.set(key, value)
    return found


def _running(session: Session) -> Any:
    key = id(session.spark._sc._gateway)
    if key not in _RUNNING:
        jvm = session.jvm
        loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
        try:
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(loader)
            compiler.cook(Path(__file__).with_name("gateway.java").read_text(encoding="utf-8"))
            arguments = session.spark._sc._gateway.new_array(jvm.java.lang.Object, 1)
            arguments[0] = loader
            kind = compiler.getClassLoader().loadClass(_CLASS)
            _RUNNING[key] = kind.getConstructors()[0].newInstance(arguments)
        except Exception as error:
            message = f"this Spark cannot run deltafast's gateway to Hadoop's file systems ({_line(error)})"
            raise InvalidArgumentError(message) from error
    return _RUNNING[key]


def _line(error: Exception) -> str:
    """The first line of an error of Java."""
    cause: Any = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    text = str(cause.toString()) if cause is not None else str(error)
    return text.strip().splitlines()[0][:300] if text.strip() else type(error).__name__
