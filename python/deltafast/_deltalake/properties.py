"""The enumerations of codecs and encodings in `deltalake.writer.properties`."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from deltafast._util.writer_properties import LEVELS
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Compression", "Encoding"]


class _NamedEnum(Enum):
    @classmethod
    def from_str(cls, value: str) -> Self:
        """Return the member with a name, ignoring case.

        Raises:
            ValueError: There is no such member.
        """
        try:
            return cls(value.upper())
        except ValueError:
            known = [item.value for item in cls]
            message = f"{value} is not a valid {cls.__name__}. Valid values are: {known}"
            raise InvalidArgumentError(message) from None


class Compression(_NamedEnum):
    """Codecs of Parquet."""

    UNCOMPRESSED = "UNCOMPRESSED"
    SNAPPY = "SNAPPY"
    GZIP = "GZIP"
    BROTLI = "BROTLI"
    LZ4 = "LZ4"
    ZSTD = "ZSTD"
    LZ4_RAW = "LZ4_RAW"

    def _levels(self) -> tuple[int, int, int]:
        if self.value not in LEVELS:
            message = f"{self.value} does not have a compression level."
            raise KeyError(message)
        return LEVELS[self.value]

    def get_level_range(self) -> tuple[int, int]:
        """Return the lowest and the highest level.

        Raises:
            KeyError: The codec has no levels.
        """
        return self._levels()[:2]

    def get_default_level(self) -> int:
        """Return the default level.

        Raises:
            KeyError: The codec has no levels.
        """
        return self._levels()[2]

    def check_valid_level(self, level: int) -> bool:
        """Return True if the level exists.

        Raises:
            ValueError: There is no such level.
            KeyError: The codec has no levels.
        """
        lowest, highest = self.get_level_range()
        if not lowest <= level <= highest:
            message = f"Compression level for {self.value} should fall between {lowest}-{highest}"
            raise InvalidArgumentError(message)
        return True


class Encoding(_NamedEnum):
    """Encodings of Parquet."""

    PLAIN = "PLAIN"
    RLE = "RLE"
    DELTA_BINARY_PACKED = "DELTA_BINARY_PACKED"
    DELTA_LENGTH_BYTE_ARRAY = "DELTA_LENGTH_BYTE_ARRAY"
    DELTA_BYTE_ARRAY = "DELTA_BYTE_ARRAY"
    BYTE_STREAM_SPLIT = "BYTE_STREAM_SPLIT"
