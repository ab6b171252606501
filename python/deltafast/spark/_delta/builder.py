"""delta-spark's function that configures a session builder."""

from __future__ import annotations

from typing import Any

from deltafast.spark._delta.start import ENABLED, PACKAGES

__all__ = ["configure_spark_with_delta_pip"]


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
