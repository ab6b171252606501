"""`delta.pip_utils`."""

from deltafast.spark._delta.builder import configure_spark_with_delta_pip, maven_version

__all__ = ["configure_spark_with_delta_pip"]
#: As in delta-spark, whose tests call it.
_python_to_maven_version = maven_version
