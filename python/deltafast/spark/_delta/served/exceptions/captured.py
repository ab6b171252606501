"""`delta.exceptions.captured`, whose import makes PySpark raise Java's conflicts as classes of this package."""

from typing import Any

from pyspark.errors.exceptions import captured

from deltafast.spark.exceptions import conflict_from_java

from .base import *  # noqa: F403
from .base import __all__  # noqa: F401


def _patched(before: Any) -> Any:
    """Patch PySpark's conversion of Java's exceptions."""

    def convert_exception(error: Any) -> Any:
        found = conflict_from_java(str(error.toString()))
        return before(error) if found is None else found

    return convert_exception


captured.convert_exception = _patched(captured.convert_exception)
#: As in delta-spark, whose tests look at it.
_delta_exception_patched = True
