"""Names of columns and fields that are easy to get wrong."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

#: Names that code adds to rows of users, reserves in its own tables, or uses for the sides of a MERGE.
INTERNAL_NAMES = (
    "row_id",
    "row_commit_version",
    "row_index",
    "_row_index",
    "__row_index",
    "base_row_id",
    "file_path",
    "file_number",
    "_metadata",
    "__index",
    "__deltafast_part",
    "_change_type",
    "_commit_version",
    "_commit_timestamp",
    "partition",
    "partition_values",
    "partitionValues",
    "partitionValues_parsed",
    "stats",
    "stats_parsed",
    "path",
    "add",
    "remove",
    "data",
    "excluded",
    "deletionVector",
    "numRecords",
    "minValues",
    "key",
    "value",
    "key_value",
    "element",
    "list",
    "item",
    "metadata",
    "typed_value",
    "file",
    "row",
    "source_row",
    "source",
    "target",
    "t",
    "s",
    "index",
    "rowid",
    "count",
    "version",
    "__hive_default_partition__",
)

#: Names that Parquet, SQL, folders or Unicode give a second meaning; without column mapping Delta permits all of them.
ODD_NAMES = (
    "a.b",
    ".",
    "..",
    "x.y.z",
    "a`b",
    "``",
    '"',
    'a"b',
    "'",
    "it's",
    "a/b",
    "/",
    "a\\b",
    "%",
    "a%20b",
    "%2F",
    "#",
    "?",
    "*",
    "a:b",
    "[0]",
    "a-b",
    "-",
    "_",
    "__",
    "$",
    "@",
    "1",
    "1e5",
    "0x1f",
    "null",
    "None",
    "NaN",
    "true",
    "select",
    "from",
    "where",
    "order",
    "group",
    "not",
    "in",
    "is",
    "case",
    "cast",
    "default",
    "user",
    "current_date",
    "Größe",
    unicodedata.normalize("NFC", "é"),
    unicodedata.normalize("NFD", "é"),
    unicodedata.normalize("NFC", "Å"),
    unicodedata.normalize("NFD", "Å"),
    "ß",
    "İ",
    "\N{LATIN SMALL LETTER DOTLESS I}",
    "名前",
    "شارع",
    "\N{GRINNING FACE}",
    "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}",
    "\N{NO-BREAK SPACE}",
    "\N{ZERO WIDTH SPACE}",
    "\N{BYTE ORDER MARK}x",
    "\N{RIGHT-TO-LEFT OVERRIDE}abc",
    "n" * 200,
)

#: Names that need column mapping.
MAPPED_NAMES = ("a b", " ", " a", "a ", "a,b", "a;b", "{a}", "(a)", "a=b", "=", "a\tb", "a\nb", "p=1/q=2")


#: Names that a table with a change feed refuses.
CHANGE_FEED_NAMES = ("_change_type", "_commit_version", "_commit_timestamp")


def draw_names(chance: random.Random, count: int, configuration: Mapping[str, str]) -> list[str]:
    """Return as many names that a table with these properties permits, none twice even where case is ignored."""
    mapped = "delta.columnMapping.mode" in configuration
    refused = CHANGE_FEED_NAMES if "delta.enableChangeDataFeed" in configuration else ()
    pools = [INTERNAL_NAMES, ODD_NAMES, *([MAPPED_NAMES] if mapped else [])]
    names: dict[str, str] = {}
    number = 0
    while len(names) < count:
        candidate = chance.choice(chance.choice(pools))
        # Plain names, so that not every table is odd throughout, and because the pools end.
        if candidate.lower() in (*names, *refused) or chance.randrange(4) == 0:
            number += 1
            candidate = f"column_{number}"
        names.setdefault(candidate.lower(), candidate)
    return list(names.values())
