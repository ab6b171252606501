"""What ails a table, and what to do about it: broken logs, missing and orphaned files, layouts that cost time.

Everything goes through what the package offers to everybody, and nothing is changed. A module each: `log`, `files`,
`layout`.
"""

from __future__ import annotations

import shlex
import warnings
from typing import TYPE_CHECKING

from deltafast._util.locations import address
from deltafast.doctor.files import change_findings, file_findings
from deltafast.doctor.finding import Finding
from deltafast.doctor.log import log_findings, look, opened
from deltafast.exceptions import DeltaWarning

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

__all__ = ["Finding", "examine"]


def examine(
    table_uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    *,
    deep: bool = False,
) -> list[Finding]:
    """Look for what is wrong with the newest version of a table.

    Args:
        table_uri: Path or URL.
        storage_options: As for `DeltaTable`.
        deep: Read every row too, every deletion vector and the commits of the change data feed, so that damaged files
            and lost changes are found.

    Returns:
        Problems first, then advice; empty for a table that is well.

    Raises:
        TableNotFoundError: There is no table.
        StorageError: The store cannot be asked.
    """
    uri = address(table_uri)
    shown = shlex.quote(uri)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        log = look(uri, storage_options)
        found = log_findings(log, shown)
        table = opened(uri, storage_options, log, found)
        is_broken = any(finding.what == "broken-log" for finding in found)
        if table is not None:
            found += file_findings(table, uri, shown, deep=deep, mend_first=is_broken)
            if deep:
                found += change_findings(table, log)
            if not is_broken:
                from deltafast.doctor.layout import layout_findings

                found += layout_findings(table, shown)
    texts = dict.fromkeys(str(warning.message) for warning in said if issubclass(warning.category, DeltaWarning))
    if not is_broken:  # What contradicts a log that lost something may be all that is right.
        remedy = f"deltafast checkpoint {shown}  (writes the newest state anew)"
        found += [Finding("problem", "contradicting-log", text, remedy) for text in texts]
    return sorted(found, key=lambda finding: finding.level != "problem")
