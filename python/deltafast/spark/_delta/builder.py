"""Sessions whose builder or settings name Delta's classes -> enabled sessions."""

from __future__ import annotations

import threading
from typing import Any, Final

from deltafast.exceptions import warn
from deltafast.spark._delta.start import ENABLED, PACKAGES
from deltafast.spark._enable.enable import enable, is_enabled
from deltafast.spark._enable.provider import known_to_delta
from deltafast.spark._session.session import Session

__all__ = ["configure_spark_with_delta_pip", "enable_once"]

#: Held while a session is enabled, which creates sessions itself.
_ENABLING: Final = threading.RLock()
_STATE: Final = {"is enabling": False}


def configure_spark_with_delta_pip(spark_session_builder: Any, extra_packages: list[str] | None = None) -> Any:
    """Configure a session builder so that its session reads and writes Delta tables.

    Args:
        spark_session_builder: The builder.
        extra_packages: Maven coordinates of other packages.

    Returns:
        The builder. No package of Delta's is added to it.

    Raises:
        TypeError: It is not a session builder.
    """
    if not callable(getattr(spark_session_builder, "getOrCreate", None)):
        message = (
            "configure_spark_with_delta_pip takes a SparkSession builder, not a value of type "
            f"{type(spark_session_builder).__name__}"
        )
        raise TypeError(message)
    builder = spark_session_builder.config(ENABLED, "true")
    return builder.config(PACKAGES, ",".join(extra_packages)) if extra_packages else builder


def enable_once(spark: Any) -> None:
    """Call `enable` for a session that is not enabled yet; a warning reports that Delta's own jar is in it."""
    with _ENABLING:
        if _STATE["is enabling"] or is_enabled(spark):
            return
        session = Session(spark)
        if not session.is_connect and known_to_delta(session):
            warn(
                "Delta's own jar is in this session and implements the format `delta`: remove it from spark.jars and "
                "--packages to use deltafast"
            )
            return
        _STATE["is enabling"] = True
        try:
            enable(spark)
        finally:
            _STATE["is enabling"] = False
