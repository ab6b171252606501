"""`check_store`: is a store safe to commit to?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from deltafast import _core
from deltafast._util.locations import address
from deltafast._util.options import text_options

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

__all__ = ["Finding", "StoreCheck", "check_store"]

Verdict = Literal["passed", "unsafe", "failed"]


@dataclass(frozen=True)
class Finding:
    """What one trial of `check_store` found."""

    #: What was tried: `put-if-absent`, `mutual exclusion`, `atomic visibility`, `read after write`, `list after write`,
    #: `ordered listing`, `folder listing`, `keys`, `range reads`, `multipart upload`, `replacing` or `delete`.
    name: str
    #: `passed`; `unsafe` where commits may be lost or made twice, or wrong bytes be read; `failed` where only upkeep
    #: (vacuum, checkpoints, cleanup) cannot work.
    verdict: Verdict
    #: What was seen, one line.
    detail: str


@dataclass(frozen=True, repr=False)
class StoreCheck:
    """What `check_store` found; true where the store is safe."""

    #: The place that was tried, without credentials.
    url: str
    #: Whether nothing was found to be unsafe.
    safe: bool
    #: The trials, in their order. A store that refuses commits has only the first.
    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return self.safe

    def __getitem__(self, name: str) -> Finding:
        """The finding of this name."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(name)

    def __repr__(self) -> str:
        width = max((len(finding.name) for finding in self.findings), default=0)
        lines = [f"  {f.name:{width}}  {f.verdict:6}  {f.detail}" for f in self.findings]
        verdict = "safe to commit to" if self.safe else "NOT SAFE to commit to"
        return "\n".join([f"<StoreCheck {self.url}: {verdict}>", *lines])


def check_store(
    url: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    *,
    store: object | None = None,
    rounds: int = 50,
    writers: int = 20,
    objects: int = 1_050,
) -> StoreCheck:
    """Try whether tables can safely be written at a location.

    Some gateways and emulators ignore the condition of a request, or meet it only while there is one writer; on them
    commits get lost. This writes about 1,200 small objects, and six of 2 to 20 MiB, below a folder
    `_deltafast_check_<uuid>/` and deletes them again. What is left is at most that folder, if the process is killed.
    It sees what one process sees: a file system shared by several machines may still differ between them.

    Protocol: what the storage of a table must do is mutual exclusion of commits, atomic visibility of files and
    consistent listing.

    Args:
        url: Where: a path, or a URL of S3, Azure, GCS, memory or HTTP. There need not be a table.
        storage_options: As for `DeltaTable`.
        store: A Python store, see `DeltaTable`.
        rounds: Races for one object; a store that lets two writers win now and then needs many to be seen.
        writers: Writers in each race, at least 2.
        objects: Small objects in a folder that is listed, at least 2; the default is more than a page of most services.

    Returns:
        What was found. A store that refuses commits (a plain HTTP server, a lock that deltafast has not) is not safe.

    Raises:
        StorageError: The store cannot be reached or written, so nothing was found out.
        InvalidArgumentError: The location or an option cannot be used.
    """
    uri = address(url)
    if store is not None:
        from deltafast.stores import adapt_store

        store = adapt_store(store, uri)
    options = json.dumps({"rounds": rounds, "writers": writers, "objects": objects})
    found: dict[str, Any] = json.loads(_core.check_store(uri, options, text_options(storage_options), store))
    findings = tuple(Finding(**finding) for finding in found["findings"])
    return StoreCheck(found["url"], found["safe"], findings)
