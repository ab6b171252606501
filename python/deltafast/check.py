"""`check_store`: tests whether commits to a store are safe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from deltafast import _core
from deltafast._handle import core_storage
from deltafast._util.locations import address
from deltafast.exceptions import printable

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from deltafast._core_types import CheckOptions

__all__ = ["Finding", "StoreCheck", "check_store"]

Verdict = Literal["passed", "unsafe", "failed"]


@dataclass(frozen=True)
class Finding:
    """Result of one test of `check_store`."""

    #: Name of the test: `put-if-absent`, `mutual exclusion`, `atomic visibility`, `read after write`,
    #: `list after write`, `ordered listing`, `folder listing`, `keys`, `range reads`, `multipart upload`, `replacing`
    #: or `delete`.
    name: str
    #: `passed`; `unsafe` if commits may be lost or duplicated, or wrong bytes may be read; `failed` if only maintenance
    #: (vacuum, checkpoints, cleanup) cannot work.
    verdict: Verdict
    #: The observation, in one line.
    detail: str


@dataclass(frozen=True, repr=False)
class StoreCheck:
    """Result of `check_store`; true if the store is safe."""

    #: The tested location, without credentials.
    url: str
    #: Whether no test was `unsafe`.
    safe: bool
    #: The results, in the order of the tests. For a store that refuses commits, only the first test is run.
    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return self.safe

    def __getitem__(self, name: str) -> Finding:
        """Return the result of the test with this name."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(name)

    def __repr__(self) -> str:
        width = max((len(finding.name) for finding in self.findings), default=0)
        lines = [f"  {f.name:{width}}  {f.verdict:6}  {printable(f.detail)}" for f in self.findings]
        verdict = "safe to commit to" if self.safe else "NOT SAFE to commit to"
        return "\n".join([f"<StoreCheck {printable(self.url)}: {verdict}>", *lines])


def check_store(
    url: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    *,
    store: object | None = None,
    rounds: int = 50,
    writers: int = 20,
    objects: int = 1_050,
) -> StoreCheck:
    """Test whether tables can safely be written at a location.

    Some gateways and emulators ignore the condition of a conditional request, or honor it only for a single writer;
    commits to them get lost. The test writes about 1,200 small objects, and six of 2 to 20 MiB, below a folder
    `_deltafast_check_<uuid>/` and deletes them again; the folder is left only if the process is killed.
    The test has the view of one process: a file system shared by several machines may still differ between them.

    Protocol: the storage of a table must provide mutual exclusion of commits, atomic visibility of files and
    consistent listing.

    Args:
        url: The location: a path, or a URL of S3, Azure, GCS, memory or HTTP. A table is not needed there.
        storage_options: As for `DeltaTable`.
        store: A Python store, see `DeltaTable`.
        rounds: Number of races for one object; more races find a store that rarely lets two writers win.
        writers: Number of writers in each race, at least 2.
        objects: Number of small objects in the listed folder, at least 2; the default exceeds a page of most services.

    Returns:
        The results. A store that refuses commits (a plain HTTP server, a lock that deltafast does not support) is not
        safe.

    Raises:
        StorageError: The store cannot be reached or written, so that no test could be run.
        InvalidArgumentError: The location or an option is invalid.

    Examples:
        >>> from deltafast import check_store
        >>> found = check_store("here", rounds=2, writers=4, objects=10)
        >>> found.safe, found.findings[0].verdict
        (True, 'passed')
    """
    uri = address(url)
    storage = core_storage(uri, storage_options, store)
    options: CheckOptions = {"rounds": rounds, "writers": writers, "objects": objects}
    found = _core.check_store(uri, options, storage.options, storage.store)
    findings = tuple(Finding(**finding) for finding in found["findings"])
    return StoreCheck(found["url"], found["safe"], findings)
