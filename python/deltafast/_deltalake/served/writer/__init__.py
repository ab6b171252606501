"""`deltalake.writer`."""

from typing import Any

from deltafast._deltalake.install import missing
from deltafast._deltalake.table import convert_to_deltalake, write_deltalake
from deltafast.writer import BloomFilterProperties, ColumnProperties, WriterProperties

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "WriterProperties",
    "convert_to_deltalake",
    "write_deltalake",
]


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
