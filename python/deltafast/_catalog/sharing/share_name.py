"""Names of shared tables: `profile#share.schema.table`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["ShareName", "share_name"]

_TABLE = re.compile(r"(?P<share>[^#./\\]+)\.(?P<schema>[^#./\\]+)\.(?P<table>[^#./\\]+)")
#: The suffix of profile files; a file with another one is a profile if it exists.
_SUFFIX = ".share"


class ShareName(NamedTuple):
    """The name of a shared table."""

    #: Path or URL of the profile file.
    profile: str
    share: str
    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.share}.{self.schema}.{self.table}"


def share_name(table_uri: object) -> ShareName | None:
    """Return the parts of `profile#share.schema.table`; None for other locations.

    What is before the last `#` is a profile if its name ends in `.share`, or if it is a file.
    """
    if not isinstance(table_uri, str) or "#" not in table_uri:
        return None
    profile, _, name = table_uri.rpartition("#")
    found = _TABLE.fullmatch(name)
    if found is None or not (profile.endswith(_SUFFIX) or Path(profile).expanduser().is_file()):
        return None
    return ShareName(profile, **found.groupdict())
