"""The list of hostile tables: how each is built, what must come out, what it may cost.

A case is a function that fills a folder, registered by `@case(name, expectation)`. Tables are built when a test runs,
from nothing but Python and pyarrow; `python -m hostile.generate FOLDER` (from `tests/`) writes all of them to look at
or to hand to another reader. The cases live in `cases_*.py`, a file per layer of the format.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import pathlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MEBIBYTE = 1 << 20
MODULES = [
    "commits",
    "actions",
    "protocol",
    "hints",
    "checkpoints",
    "vectors",
    "data",
    "paths",
    "limits",
    "requests",
    "stores",
]


@dataclasses.dataclass(frozen=True)
class Expect:
    """What must come out."""

    verdict: str
    """`rows`, `error`, `either` (those rows, or a clear error) or `anything` (but no panic, hang or memory)."""
    ids: tuple[int | None, ...] | None = None
    """The ids that rows must hold, in any order; None where only the number counts."""
    count: int | None = None
    classes: tuple[str, ...] = ("DeltaError",)
    """Exception classes; the error must be of one of them."""
    contains: tuple[str, ...] = ()
    """What the message must name: file, version, line, feature."""


def rows(ids: Iterable[int | None] | None = None, *, count: int | None = None) -> Expect:
    """Expect these ids, or that many rows."""
    return Expect("rows", _ids(ids), count)


def error(classes: str = "DeltaError", *contains: str) -> Expect:
    """Expect an error of one of the classes (separated by `|`), whose message names all of `contains`."""
    return Expect("error", classes=tuple(classes.split("|")), contains=contains)


def either(
    ids: Iterable[int | None] | None, classes: str = "DeltaError", *contains: str, count: int | None = None
) -> Expect:
    """Expect these ids or an error: the protocol does not say, but wrong rows are wrong."""
    return Expect("either", _ids(ids), count, tuple(classes.split("|")), contains)


def anything() -> Expect:
    """Expect any answer: nobody can say what is right, but the process must live."""
    return Expect("anything")


def _ids(ids: Iterable[int | None] | None) -> tuple[int | None, ...] | None:
    return None if ids is None else tuple(ids)


@dataclasses.dataclass(frozen=True)
class Case:
    """One hostile table."""

    name: str
    build: Callable[[pathlib.Path], str | None]
    """Fills the folder; may return another address to open."""
    expect: Expect
    do: str
    """What the reader does with it: see `worker.py`."""
    arguments: dict[str, Any]
    """Arguments for the reader's step."""
    seconds: float
    memory: int
    secrets: tuple[str, ...]
    """Texts that must not appear in anything the reader says."""
    why: str

    def __str__(self) -> str:
        """Return the name a test gets."""
        return self.name


REGISTRY: dict[str, Case] = {}


def case(
    name: str,
    expect: Expect,
    *,
    do: str = "read",
    seconds: float = 10.0,
    memory: int = 512 * MEBIBYTE,
    secrets: tuple[str, ...] = (),
    **arguments: Any,
) -> Callable[[Callable[[pathlib.Path], str | None]], Callable[[pathlib.Path], str | None]]:
    """Register a case."""

    def register(build: Callable[[pathlib.Path], str | None]) -> Callable[[pathlib.Path], str | None]:
        if name in REGISTRY:
            message = f"two cases are called {name}"
            raise ValueError(message)
        why = (build.__doc__ or "").strip()
        REGISTRY[name] = Case(name, build, expect, do, arguments, seconds, memory, secrets, why)
        return build

    return register


def load() -> list[Case]:
    """Return all cases."""
    for module in MODULES:
        importlib.import_module(f"hostile.cases_{module}")
    return list(REGISTRY.values())


def _main(folder: pathlib.Path) -> None:
    """Write every table and a manifest into `folder`."""
    listing = []
    for one in load():
        place = folder / one.name / "table"
        place.mkdir(parents=True)
        address = one.build(place)
        listing.append(
            {
                "name": one.name,
                "table": address or str(place),
                "expect": dataclasses.asdict(one.expect),
                "do": one.do,
                "arguments": one.arguments,
                "why": one.why,
            }
        )
    (folder / "manifest.json").write_text(json.dumps(listing, indent=1), "utf-8")
    sys.stdout.write(f"{len(listing)} tables\n")


if __name__ == "__main__":
    # As `python -m hostile.generate` this file is `__main__`, but the cases register with `hostile.generate`.
    importlib.import_module("hostile.generate")._main(pathlib.Path(sys.argv[1]))
