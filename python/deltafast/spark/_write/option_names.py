"""Messages of the core name arguments; Spark's writers set them by delta-spark's options, which are named instead."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from deltafast.exceptions import DeltaError

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["with_option_names"]

_NAMES: Final = (
    ('pass schema_mode="merge" to add it', "set the option mergeSchema to true to add it"),
    ('mode="overwrite" and schema_mode="overwrite"', 'mode="overwrite" and the option overwriteSchema'),
    ('schema_mode="overwrite"', "the option overwriteSchema"),
    ("leave `partition_by` out", "leave the partitioning out"),
    ("`predicate`", "replaceWhere"),
    ('partition_overwrite_mode="dynamic"', "partitionOverwriteMode=dynamic"),
    ("`replace_using`", "replaceUsing"),
    ("`replace_on`", "replaceOn"),
)


@contextmanager
def with_option_names() -> Generator[None]:
    """Name options instead of arguments in the messages of errors: a context manager and a decorator.

    Raises:
        DeltaError: The exception that was raised, with another message.
    """
    try:
        yield
    except DeltaError as error:
        text = str(error)
        for argument, option in _NAMES:
            text = text.replace(argument, option)
        if text != str(error):
            error.args = (text, *error.args[1:])
        raise
