"""Properties of Parquet writers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from deltafast import _core_types

__all__ = [
    "LEVELS",
    "BloomFilterProperties",
    "ColumnProperties",
    "Compression",
    "Encoding",
    "WriterProperties",
    "encoding",
    "writer_options",
]

Encoding: TypeAlias = Literal[
    "PLAIN", "RLE", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"
]
Compression: TypeAlias = Literal["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"]

#: Codecs with compression levels: the lowest, the highest and the default one.
LEVELS = {"GZIP": (0, 10, 6), "BROTLI": (0, 11, 1), "ZSTD": (1, 22, 1)}
_LARGEST = 2**63 - 1
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")


@dataclass
class BloomFilterProperties:
    """Bloom filter of a column.

    Raises:
        InvalidArgumentError: `fpp` is not between 0 and 1.

    Examples:
        >>> from deltafast import BloomFilterProperties, ColumnProperties, WriterProperties, write_deltalake
        >>> bloom = BloomFilterProperties(set_bloom_filter_enabled=True, fpp=0.01)
        >>> ids = ColumnProperties(bloom_filter_properties=bloom)
        >>> properties = WriterProperties(column_properties={"id": ids})
        >>> write_deltalake("orders", {"id": ["a-1", "b-2"]}, writer_properties=properties)
    """

    #: Whether to write a bloom filter.
    set_bloom_filter_enabled: bool | None
    #: False positive probability, between 0 and 1.
    fpp: float | None = None
    #: Expected number of distinct values.
    ndv: int | None = None

    def __post_init__(self) -> None:
        if self.fpp is not None and not 0 < self.fpp < 1:
            message = "fpp must be between 0 and 1 exclusive"
            raise InvalidArgumentError(message)


@dataclass
class ColumnProperties:
    """Encoding of a column.

    Raises:
        InvalidArgumentError: Both a dictionary and an encoding are requested.

    Examples:
        >>> from deltafast import ColumnProperties, WriterProperties, write_deltalake
        >>> properties = WriterProperties(column_properties={"text": ColumnProperties(dictionary_enabled=False)})
        >>> write_deltalake("notes", {"text": ["first", "second"]}, writer_properties=properties)
    """

    #: Whether to try dictionary encoding.
    dictionary_enabled: bool | None = None
    #: Statistics in the Parquet file: NONE, CHUNK or PAGE. Statistics in the log do not depend on it.
    statistics_enabled: Literal["NONE", "CHUNK", "PAGE"] | None = None
    #: Bloom filter of the column.
    bloom_filter_properties: BloomFilterProperties | None = None
    #: Encoding of values without a dictionary.
    encoding: Encoding | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None and self.dictionary_enabled:
            message = "Cannot specify dictionary_enabled=True and encoding"
            raise InvalidArgumentError(message)


class WriterProperties:
    """Properties of Parquet files; the writer chooses properties that are None.

    Args:
        data_page_size_limit: Largest size of a data page in bytes.
        dictionary_page_size_limit: Largest size of a dictionary page in bytes.
        data_page_row_count_limit: Largest number of rows of a data page.
        write_batch_size: Number of rows encoded at a time.
        max_row_group_size: Largest number of rows of a row group.
        compression: The codec; the table's `delta.parquet.compression.codec`, else ZSTD, if None.
        compression_level: Level of the codec.
        statistics_truncate_length: Length in bytes to which bounds of strings in the Parquet file are truncated.
        default_column_properties: Properties of all columns.
        column_properties: Properties by column; a nested field is named with dots.

    Raises:
        InvalidArgumentError: The codec or its level does not exist.

    Examples:
        >>> from deltafast import WriterProperties, write_deltalake
        >>> properties = WriterProperties(compression="ZSTD", compression_level=5)
        >>> write_deltalake("notes", {"text": ["first", "second"]}, writer_properties=properties)
    """

    def __init__(
        self,
        data_page_size_limit: int | None = None,
        dictionary_page_size_limit: int | None = None,
        data_page_row_count_limit: int | None = None,
        write_batch_size: int | None = None,
        max_row_group_size: int | None = None,
        compression: Compression | None = None,
        compression_level: int | None = None,
        statistics_truncate_length: int | None = None,
        default_column_properties: ColumnProperties | None = None,
        column_properties: dict[str, ColumnProperties] | None = None,
    ) -> None:
        self.data_page_size_limit = data_page_size_limit
        self.dictionary_page_size_limit = dictionary_page_size_limit
        self.data_page_row_count_limit = data_page_row_count_limit
        self.write_batch_size = write_batch_size
        self.max_row_group_size = max_row_group_size
        #: The codec with its level, `ZSTD(1)` for example.
        self.compression = _codec(compression, compression_level)
        self.statistics_truncate_length = statistics_truncate_length
        self.default_column_properties = default_column_properties
        self.column_properties = column_properties

    def __eq__(self, other: object) -> bool:
        return writer_options(self) == writer_options(other) if isinstance(other, WriterProperties) else NotImplemented

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # it can be changed

    def __repr__(self) -> str:
        given = ", ".join(f"{key}={value!r}" for key, value in vars(self).items() if value is not None)
        return f"WriterProperties({given})"


def writer_options(properties: WriterProperties) -> _core_types.WriterProperties:
    """Return the properties as options of the core."""
    out: dict[str, Any] = {key: value for key, value in vars(properties).items() if value is not None}
    if properties.default_column_properties is not None:
        out["default_column_properties"] = _column_options(properties.default_column_properties)
    if properties.column_properties is not None:
        columns = properties.column_properties.items()
        out["column_properties"] = {column: _column_options(given) for column, given in columns}
    return cast("_core_types.WriterProperties", out)


def _column_options(properties: ColumnProperties) -> dict[str, Any]:
    out = asdict(properties)
    # With a dictionary, a requested encoding would only be used if the dictionary grows too large.
    if properties.encoding is not None and properties.dictionary_enabled is None:
        out["dictionary_enabled"] = False
    return out


def _codec(compression: str | None, level: int | None) -> str | None:
    if compression is None:
        if level is not None:
            message = "a compression level needs a compression, give both"
            raise InvalidArgumentError(message)
        return None
    name = compression.upper()
    if name not in _CODECS:
        message = f"{compression} is not a valid Compression. Valid values are: {', '.join(_CODECS)}"
        raise InvalidArgumentError(message)
    if name not in LEVELS:
        return name
    lowest, highest, usual = LEVELS[name]
    if level is not None and not lowest <= level <= highest:
        message = f"Compression level for {name} should fall between {lowest}-{highest}"
        raise InvalidArgumentError(message)
    return f"{name}({usual if level is None else level})"


def encoding(
    properties: WriterProperties | None, zone: str, target_file_size: int | None = None
) -> _core_types.DataFileOptions:
    """Return the options of data files."""
    if target_file_size is not None and not 1 <= target_file_size <= _LARGEST:
        message = f"target_file_size must be between 1 and {_LARGEST}, not {target_file_size}"
        raise InvalidArgumentError(message)
    written: _core_types.WriterProperties = {} if properties is None else writer_options(properties)
    return {"target_file_size": target_file_size, "writer_properties": written, "time_zone": zone}
