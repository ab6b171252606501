"""`delta.pip_utils`."""

from deltafast.spark._delta.builder import configure_spark_with_delta_pip

__all__ = ["configure_spark_with_delta_pip"]
