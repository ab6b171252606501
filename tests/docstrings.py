"""Runs the examples of docstrings: each in an empty folder, after those of its class where it continues them."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import pathlib
from typing import Any

import deltafast

PACKAGE = pathlib.Path(deltafast.__file__).parent
#: What a class says whose methods continue its example.
CONTINUED = "The examples of the methods continue this one."
_SKIP = doctest.OPTIONFLAGS_BY_NAME["SKIP"]


def modules(*, spark: bool) -> list[str]:
    """Return the names of the modules with examples: those of Spark, or all others."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if ("spark" in parts[:1]) == spark and ">>> " in path.read_text(encoding="utf-8"):
            found.append(".".join(("deltafast", *parts)).removesuffix(".__init__"))
    return found


def run(module: str, folder: pathlib.Path, **names: Any) -> tuple[int, int]:
    """Run the examples of a module; returns the number of those that ran, and of those that were skipped.

    Args:
        module: The name of the module.
        folder: An empty folder.
        **names: What the examples may use without an import.
    """
    tests = doctest.DocTestFinder().find(importlib.import_module(module), module)
    by_name = {test.name: test for test in tests}
    ran = skipped = 0
    for number, test in enumerate(test for test in tests if test.examples):
        first = by_name.get(test.name.rpartition(".")[0])
        is_continued = first is not None and CONTINUED in (first.docstring or "")
        skipped += sum(_SKIP in example.options for example in test.examples)
        test.globs = dict(names)
        if is_continued and first is not None:
            test.examples = [*first.examples, *test.examples]
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        place, said = folder / str(number), io.StringIO()
        place.mkdir()
        with contextlib.chdir(place):
            result = runner.run(test, out=said.write)
        assert result.failed == 0, said.getvalue()
        ran += result.attempted
    return ran, skipped


def has_example(described: object) -> bool:
    """Whether a docstring has an example."""
    return ">>> " in (inspect.getdoc(described) or "")
