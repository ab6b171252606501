"""Delta tables through PySpark, without Delta's jar: the core plans and commits, Spark reads and writes the data.

    >>> import deltafast.spark
    >>> deltafast.spark.write(spark.range(3), "numbers")
    0
    >>> deltafast.spark.read(spark, "numbers").count()
    3

It needs `pip install deltafast[spark]` on the driver, Java 17 and PySpark 4.0 or later, classic or Connect.
`docs/spark.md` lists the features of each read and write mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltafast.spark._scan.reader import read
from deltafast.spark._write.writer import write

if TYPE_CHECKING:
    from deltafast.spark._commands.queries import files, register_view
    from deltafast.spark._commands.statements import sql
    from deltafast.spark._enable.enable import disable, enable
    from deltafast.spark._streaming.source_sink import register, sink, stream
    from deltafast.spark.tables import (
        DeltaMergeBuilder,
        DeltaOptimizeBuilder,
        DeltaTable,
        DeltaTableBuilder,
        IdentityGenerator,
    )

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
    "disable",
    "enable",
    "files",
    "read",
    "register",
    "register_view",
    "sink",
    "sql",
    "stream",
    "write",
]

#: The modules of names that are imported on first use, because they need PySpark and PyArrow.
_LATER: Final = {
    "DeltaMergeBuilder": "tables",
    "DeltaOptimizeBuilder": "tables",
    "DeltaTable": "tables",
    "DeltaTableBuilder": "tables",
    "IdentityGenerator": "tables",
    "disable": "_enable.enable",
    "enable": "_enable.enable",
    "files": "_commands.queries",
    "register": "_streaming.source_sink",
    "register_view": "_commands.queries",
    "sink": "_streaming.source_sink",
    "sql": "_commands.statements",
    "stream": "_streaming.source_sink",
}


def __getattr__(name: str) -> Any:
    """Import the module of a name on first use."""
    from importlib import import_module

    if name not in _LATER:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
