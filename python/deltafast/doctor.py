"""Defects of a table and their remedies: broken logs, missing and orphaned files, inefficient layouts.

Only public functions of the package are used, and nothing is changed. The modules `log`, `files` and `layout` have the
checks.
"""

from __future__ import annotations

import shlex
import warnings
from typing import TYPE_CHECKING

from deltafast._catalog_tables.table_handle import refuse_name
from deltafast._doctor.files import change_findings, file_findings
from deltafast._doctor.finding import BROKEN_LOG, Finding, FindingLevel, FindingList
from deltafast._doctor.log import log_findings, look, opened
from deltafast._libraries import names_missing, require
from deltafast._util.locations import address
from deltafast.exceptions import DeltaWarning

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

__all__ = ["Finding", "examine"]


@names_missing
def examine(
    table_uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    *,
    deep: bool = False,
) -> list[Finding]:
    """Find defects of the newest version of a table.

    Args:
        table_uri: Path or URL.
        storage_options: As for `DeltaTable`.
        deep: Also read all rows, deletion vectors and commits of the change data feed, to find damaged files and lost
            changes.

    Returns:
        Problems first, then advice; empty if nothing was found.

    Raises:
        InvalidArgumentError: The location is a name in a catalog.
        TableNotFoundError: There is no table at the location.
        StorageError: A request to the store failed.
        MissingLibraryError: DuckDB or pyarrow is not installed.

    Examples:
        >>> from deltafast import write_deltalake
        >>> from deltafast.doctor import examine
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> examine("cities")
        []
    """
    require("duckdb")
    require("pyarrow")
    refuse_name(table_uri, "doctor")
    uri = address(table_uri)
    shown = shlex.quote(uri)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        log = look(uri, storage_options)
        found = log_findings(log, shown)
        table = opened(uri, storage_options, log, found)
        is_broken = any(finding.what == BROKEN_LOG for finding in found)
        if table is not None:
            found += file_findings(table, uri, shown, deep=deep, repair_first=is_broken)
            if deep:
                found += change_findings(table, log)
            if not is_broken:
                from deltafast._doctor.layout import layout_findings

                found += layout_findings(table, shown)
    messages = dict.fromkeys(str(warning.message) for warning in said if issubclass(warning.category, DeltaWarning))
    if not is_broken:  # A file that contradicts an incomplete log may be the correct one.
        remedy = f"deltafast checkpoint {shown}  (rewrites the newest state)"
        found += [Finding(FindingLevel.PROBLEM, "contradicting-log", text, remedy) for text in messages]
    return FindingList(sorted(found, key=lambda finding: finding.level is not FindingLevel.PROBLEM))
