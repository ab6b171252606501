"""The examples of docstrings print what they show, and each public name that people call has one."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pathlib
from typing import Any

import pytest

import docstrings
from deltafast._ops.alter import TableAlterer
from deltafast._ops.merge import TableMerger
from deltafast._ops.optimize import TableOptimizer
from deltafast.table import DeltaTable

ROOT = pathlib.Path(__file__).parents[3]
#: Modules whose examples need a server or an account.
WITH_SERVERS = {
    "deltafast._catalog.sharing.client",
    "deltafast._catalog.unity.client",
    "deltafast.credentials",
    "deltafast._credentials.aws_profile",
    "deltafast._credentials.azure_identity",
    "deltafast._credentials.fabric_notebook",
    "deltafast._credentials.google_auth",
}
#: Classes that calls return and that people do not create, and interfaces.
RETURNED = {
    "CatalogTable",
    "Committer",
    "ConditionPruning",
    "Finding",
    "LayoutData",
    "LogTail",
    "NewFile",
    "OAuthClient",
    "Overlap",
    "Part",
    "Ranges",
    "RowGroupPruning",
    "Size",
    "StagedCommit",
    "State",
    "Store",
    "StoreCheck",
    "Watch",
    "WritableStore",
}
#: What only the package itself calls.
INTERNAL = {"adapt_store", "add_clause", "bind", "check", "counted", "explain_scan", "svg", "watch"}
COMPLETE = (DeltaTable, TableAlterer, TableMerger, TableOptimizer)


@pytest.mark.parametrize("module", docstrings.modules(spark=False))
def test_examples_print_what_they_show(module: str, tmp_path: pathlib.Path) -> None:
    ran, skipped = docstrings.run(module, tmp_path)
    assert (skipped > 0) == (module in WITH_SERVERS)
    assert ran + skipped > 0


def described() -> dict[str, Any]:
    """Return the classes and functions of the reference by their names."""
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "dev/site_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    found: dict[str, Any] = {}
    for name in (name for _, names in hooks.REFERENCE.values() for name in names):
        parent, _, last = name.rpartition(".")
        owner = importlib.import_module(parent)
        if hasattr(owner, last) and not inspect.ismodule(getattr(owner, last)):
            found[name] = getattr(owner, last)
        else:
            module = importlib.import_module(name)
            found |= {f"{name}.{each}": getattr(module, each) for each in module.__all__}
    return {name: each for name, each in found.items() if inspect.isclass(each) or inspect.isfunction(each)}


def members(kind: type) -> dict[str, Any]:
    """Return what a class has for its users, by its names."""
    kinds = (property, staticmethod, classmethod)
    found = {name: member for name, member in vars(kind).items() if callable(member) or isinstance(member, kinds)}
    return {f"{kind.__name__}.{name}": member for name, member in found.items() if not name.startswith("_")}


def is_error(name: str, each: object) -> bool:
    """Whether a name is that of an exception, or of a function that makes one."""
    is_class = inspect.isclass(each) and issubclass(each, Exception)
    return is_class or name.startswith("deltafast.spark.exceptions.")


def test_what_people_call_has_an_example() -> None:
    called = {name: each for name, each in described().items() if not is_error(name, each)}
    for kind in COMPLETE:
        called |= members(kind)
    without = {name for name, each in called.items() if not docstrings.has_example(each)}
    assert {name for name in without if name.rpartition(".")[2] not in RETURNED | INTERNAL} == set()
    # No name is excepted that need not be.
    assert {name.rpartition(".")[2] for name in without} == RETURNED | INTERNAL
