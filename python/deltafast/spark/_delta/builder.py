"""delta-spark's function that configures a session builder."""

from __future__ import annotations

import re
from typing import Any

from deltafast.spark._delta.start import ENABLED, PACKAGE, PACKAGES, install

__all__ = ["configure_spark_with_delta_pip", "maven_version"]


def configure_spark_with_delta_pip(spark_session_builder: Any, extra_packages: list[str] | None = None) -> Any:
    """Configure a session builder so that its session reads and writes Delta tables.

    Args:
        spark_session_builder: The builder.
        extra_packages: Maven coordinates of other packages.

    Returns:
        The builder. It names delta-spark's package, as with delta-spark, which is not downloaded.

    Raises:
        TypeError: It is not a session builder.
    """
    if not callable(getattr(spark_session_builder, "getOrCreate", None)):
        message = (
            "configure_spark_with_delta_pip takes a SparkSession builder, not a value of type "
            f"{type(spark_session_builder).__name__}"
        )
        raise TypeError(message)
    # Where Python reads no `.pth` files, as in folders of the variable PYTHONPATH, this is the first call.
    install()
    builder = spark_session_builder.config(ENABLED, "true")
    packages = [*_delta_package(), *(extra_packages or [])]
    return builder.config(PACKAGES, ",".join(packages)) if packages else builder


def _delta_package() -> list[str]:
    """Return the Maven coordinates of delta-spark's jar; nothing without the distribution `delta-spark`."""
    import pyspark

    try:
        import importlib_metadata  # of delta-spark's requirements

        version = maven_version(importlib_metadata.version("delta_spark"))
    except ImportError:
        return []
    spark = ".".join(pyspark.__version__.split(".")[:2])
    return [f"{PACKAGE}spark_{spark}_2.13:{version}"]


def maven_version(version: str) -> str:
    """Return the version of Delta's Maven artifacts for a version of the Python package.

    Examples:
        >>> from deltafast.spark._delta.builder import maven_version
        >>> maven_version("4.4.0rc1.dev0")
        '4.4.0-rc1-SNAPSHOT'
    """
    return re.sub(r"\.dev\d+$", "-SNAPSHOT", re.sub(r"(?<=\d)(rc\d+)", r"-\1", version))
