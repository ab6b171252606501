"""The top-level file of a V2 checkpoint."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ManifestFormat"]


class ManifestFormat(StrEnum):
    """The format of the file."""

    JSON = "json"
    PARQUET = "parquet"
