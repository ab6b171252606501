"""Read mode `paths`: Spark's public reader over explicit paths; works in Spark Connect and on any Spark.

Values that the files do not hold (partition columns, row ids) and deleted rows come from a broadcast join on the file's
path, as Spark encodes it. A row whose file the join does not find is an error, never a row with wrong values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from deltafast._types import array_of
from deltafast.exceptions import DataFileNotFoundError, DeltaError
from deltafast.spark._scan.file_index import kept
from deltafast.spark._scan.physical_columns import field_of, spark_schema
from deltafast.spark._scan.snapshot import VECTOR
from deltafast.spark._session.file_options import file_options

if TYPE_CHECKING:
    from deltafast.spark._scan.snapshot import Listing, Version

__all__ = ["PathsUnavailableError", "file_paths", "scan", "spark_uri"]

_KEY, _ROW, _FILE, _KNOWN = "__deltafast_path", "__deltafast_row", "__deltafast_file", "__deltafast_known"

#: Paths whose encoded and decoded forms are identical, and identical to Java's.
_PLAIN = r"^[A-Za-z0-9/._=:@&$,;~!*'()-]*$"
#: Characters that Java does not encode in the path of a URI, in addition to non-ASCII characters.
_LEGAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-!.~'()*,;:$&+=@/")
#: An absolute path or URL in the log, which is not relative to the table's root.
_ABSOLUTE = r"^(?:/|[A-Za-z][A-Za-z0-9+.-]*:/)"
_HIDDEN = r"(?i)(?:^|/)(?:[._]|%5f|%2e)[^/]*$"


class PathsUnavailableError(DeltaError):
    """Spark's public reader would not read these files.

    Args:
        reason: Why not.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; read with read_mode='arrow'")
        self.reason = reason


def scan(version: Version, listing: Listing, data: list[dict[str, Any]]) -> Any:
    """Return a frame of physical columns and constants, without deleted rows.

    Args:
        version: The version.
        listing: Its files.
        data: The columns of its files, in Delta's JSON.

    Raises:
        PathsUnavailableError: A file has a name that Spark silently skips.
        DataFileNotFoundError: A file does not exist.
    """
    import pyarrow.compute as pc
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions

    compute: Any = pc
    session = version.session
    paths = listing.files.column("path").combine_chunks()
    hidden = compute.match_substring_regex(paths, _HIDDEN)
    if compute.any(hidden).as_py():
        name = paths.filter(hidden)[0].as_py()
        reason = f"the data file {name!r} has a name that Spark silently skips"
        raise PathsUnavailableError(reason)
    empty = [*data, *listing.constants]
    if not len(paths):
        return session.spark.createDataFrame([], spark_schema(empty))
    places = file_paths(version.place.hadoop, paths)
    # If Spark checks paths one by one, the driver does that for local files.
    settings = (
        {"spark.sql.sources.parallelPartitionDiscovery.threshold": "100000000"}
        if version.place.hadoop.startswith("file:")
        else {}
    )
    with session.set(settings):
        # File names are not interpreted, and folders called `column=value` are no partitions: if only some files are
        # in such folders, Spark 4.2 reads the others twice.
        reader = session.spark.read.schema(spark_schema(data)).options(
            __globPaths__="false", recursiveFileLookup="true", **file_options(session, version.place, "READ")
        )
        try:
            frame = _parquet(version, reader, places)
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            missing = (error.getMessageParameters() or {}).get("path", "of it")
            message = (
                f"version {version.number} of the Delta table at {version.place.hadoop} cannot be read any more: its "
            )
            message += f"data file {missing} is gone, as a vacuum has it; read a newer version"
            raise DataFileNotFoundError(message, path=missing) from None
    needs_words = listing.vectors is not None
    if not listing.constants:
        return frame
    keys = listing.files.select([field["name"] for field in listing.constants])
    keys = keys.append_column(_FILE, _keys(places))
    if needs_words:
        words = cast("Any", listing.vectors).column("words").combine_chunks()
        taken = compute.take(words, keys.column(VECTOR).combine_chunks())
        keys = keys.append_column("words", taken)
    keys = keys.append_column(_KNOWN, compute.is_valid(paths))
    fields = [*listing.constants, field_of(_FILE, "string")]
    if needs_words:
        fields.append(field_of("words", array_of("long")))
    fields.append(field_of(_KNOWN, "boolean"))
    files = session.frame(keys, spark_schema(fields))
    frame = frame.withColumn(_KEY, functions.col("_metadata.file_path"))
    if needs_words:
        frame = frame.withColumn(_ROW, functions.col("_metadata.row_index"))
    joined = frame.join(functions.broadcast(files), functions.col(_KEY) == functions.col(_FILE), "left")
    known = functions.when(
        functions.col(_KNOWN).isNull(),
        functions.raise_error(
            functions.concat(functions.lit("deltafast does not know the file "), functions.col(_KEY))
        ).cast("boolean"),
    ).otherwise(functions.lit(True))
    joined = joined.where(known)
    return joined.where(kept(_ROW, "words")) if needs_words else joined


def _parquet(version: Version, reader: Any, places: list[str]) -> Any:
    session = version.session
    if session.is_connect:
        return reader.parquet(*places)
    from pyspark.sql import DataFrame

    # One string instead of a call to Java for each path. No path contains a line break: it would be encoded.
    split = session.jvm.java.util.regex.Pattern.compile("\n").split("\n".join(places))
    return DataFrame(reader._jreader.parquet(split), session.spark)


def file_paths(root: str, paths: Any) -> list[str]:
    """Return the locations of files from their paths in the log, as Hadoop takes them: decoded."""
    import pyarrow.compute as pc

    compute: Any = pc
    if compute.all(compute.match_substring_regex(paths, _PLAIN)).as_py():
        absolute = compute.match_substring_regex(paths, _ABSOLUTE)
        return compute.if_else(absolute, paths, compute.binary_join_element_wise(root, paths, "/")).to_pylist()
    return [_place(root, path) for path in paths.to_pylist()]


def _place(root: str, path: str) -> str:
    decoded = unquote(path)
    return decoded if re.match(_ABSOLUTE, path) else f"{root}/{decoded}"


def _keys(places: list[str]) -> Any:
    """Return the paths as in `_metadata.file_path`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    array = pa.array(places, pa.string())
    if compute.all(
        compute.match_substring_regex(array, r"^(?:file:/|[a-z0-9]+://)[A-Za-z0-9/._=:@&$,;~!*'()-]*$")
    ).as_py():
        return array
    return pa.array([spark_uri(place) for place in places], pa.string())


def spark_uri(place: str) -> str:
    """Return a path as in Spark's `_metadata.file_path`: encoded as Java's URIs, except for non-ASCII characters."""
    scheme, colon, rest = place.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        scheme, rest = "file", place
    authority = ""
    if rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        authority, rest = f"//{authority}", slash + rest
    if scheme == "file":
        authority = ""
    return f"{scheme}:{authority}{''.join(_encoded(character) for character in rest)}"


def _encoded(character: str) -> str:
    if character in _LEGAL or (ord(character) > 127 and not character.isspace() and character.isprintable()):  # noqa: PLR2004
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode())
