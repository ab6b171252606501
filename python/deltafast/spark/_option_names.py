"""The options of messages as Spark's users set them: options of writers, settings of the session."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from deltafast._call_options import spelling_of
from deltafast.exceptions import DeltaError

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["as_option", "with_option_names"]

_OPTIONS: Final[dict[tuple[str, str | None], str]] = {
    ("enforce_retention_duration", "false"): "`spark.databricks.delta.retentionDurationCheck.enabled` to false",
    ("schema_mode", "merge"): "the option mergeSchema=true",
    ("merge_schema", "true"): "withSchemaEvolution()",
    ("schema_mode", "overwrite"): "the option overwriteSchema=true",
    ("mode", "append"): 'mode("append")',
    ("mode", "ignore"): 'mode("ignore")',
    ("mode", "overwrite"): 'mode("overwrite")',
    ("partition_overwrite_mode", "dynamic"): "partitionOverwriteMode=dynamic",
    ("partition_overwrite_mode", None): "partitionOverwriteMode",
    ("partition_by", None): "partitionBy",
    ("cluster_by", None): "clusterBy",
    ("predicate", None): "replaceWhere",
    ("replace_using", None): "replaceUsing",
    ("replace_on", None): "replaceOn",
    ("data_change", "false"): "dataChange=false",
    ("truncate_history", None): "TRUNCATE HISTORY",
    ("truncate_history", "true"): "TRUNCATE HISTORY",
    ("truncate_history", "false"): "no TRUNCATE HISTORY",
}

#: Spells an option of a call, given by its name in Python.
as_option: Final = spelling_of(_OPTIONS)


@contextmanager
def with_option_names() -> Generator[None]:
    """Name options as Spark's users set them in errors: a context manager and a decorator.

    Raises:
        DeltaError: The exception that was raised, with another message.
    """
    try:
        yield
    except DeltaError as error:
        error.respell(as_option)
        raise
