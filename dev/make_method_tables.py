"""Writes the tables of methods in `docs/howto/from_deltalake.md` and `docs/howto/from_delta_spark.md`.

Those of `deltalake` compare the signatures of the installed release with deltafast's. Those of delta-spark name, for
each method of `deltafast.spark.tables`, the call that does the same without Spark; the script fails if there is no call
with these parameters. With `--check` the pages are compared instead.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import deltalake.table

import deltafast
from deltafast._ops.merge import TableMerger
from deltafast._ops.optimize import TableOptimizer

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "howto"
SPARK_TABLES = ROOT / "python" / "deltafast" / "spark" / "tables.py"
#: Classes of both, by the name of the section.
CLASSES = {
    "DeltaTable": (deltalake.DeltaTable, deltafast.DeltaTable),
    "DeltaTable.alter": (deltalake.table.TableAlterer, deltafast.TableAlterer),
    "DeltaTable.optimize": (deltalake.table.TableOptimizer, TableOptimizer),
    "DeltaTable.merge(...)": (deltalake.table.TableMerger, TableMerger),
}
FUNCTIONS = ("write_deltalake", "convert_to_deltalake", "QueryBuilder", "PostCommitHookProperties")
#: Parameters of `deltalake` that take its deprecated positional arguments.
POSITIONAL = {"args"}
#: Methods of the merge that other modules of deltafast call.
INTERNAL = {"add_clause", "bind", "check"}

#: By class and method of delta-spark, what does the same in Python without Spark. `table` is a `deltafast.DeltaTable`.
WITHOUT_SPARK: dict[str, dict[str, str]] = {
    "DeltaTable": {
        "forPath": "DeltaTable(path)",
        "forName": "DeltaTable(path)",
        "isDeltaTable": "DeltaTable.is_deltatable(path)",
        "convertToDelta": "convert_to_deltalake(path, partition_by=schema)",
        "create": 'DeltaTable.create(path, schema, mode="error")',
        "createIfNotExists": 'DeltaTable.create(path, schema, mode="ignore")',
        "replace": 'DeltaTable.create(path, schema, mode="overwrite")',
        "createOrReplace": 'DeltaTable.create(path, schema, mode="overwrite")',
        "toDF": "table.to_polars()",
        "alias": 'table.merge(source, predicate, target_alias="t")',
        "delete": "table.delete(predicate)",
        "update": "table.update({column: expression}, predicate=predicate)",
        "merge": 'table.merge(source, predicate, source_alias="s", target_alias="t")',
        "history": "table.history(limit)",
        "detail": "table.detail()",
        "vacuum": "table.vacuum(retention_hours, dry_run=False)",
        "optimize": "table.optimize",
        "generate": "table.generate()",
        "restoreToVersion": "table.restore(version)",
        "restoreToTimestamp": "table.restore(timestamp)",
        "upgradeTableProtocol": 'table.alter.set_table_properties({"delta.minWriterVersion": "7"})',
        "addFeatureSupport": "table.alter.add_feature(name)",
        "dropFeatureSupport": "table.alter.drop_feature(name, truncate_history=True)",
        "clone": "table.clone(target)",
        "cloneAtVersion": "DeltaTable(path, version=3).clone(target)",
        "cloneAtTimestamp": "DeltaTable(path, timestamp=timestamp).clone(target)",
    },
    "DeltaMergeBuilder": {
        "whenMatchedUpdate": "merge.when_matched_update({column: expression}, predicate=predicate)",
        "whenMatchedUpdateAll": "merge.when_matched_update_all(predicate=predicate)",
        "whenMatchedDelete": "merge.when_matched_delete(predicate=predicate)",
        "whenNotMatchedInsert": "merge.when_not_matched_insert({column: expression}, predicate=predicate)",
        "whenNotMatchedInsertAll": "merge.when_not_matched_insert_all(predicate=predicate)",
        "whenNotMatchedBySourceUpdate": "merge.when_not_matched_by_source_update({column: expression})",
        "whenNotMatchedBySourceDelete": "merge.when_not_matched_by_source_delete(predicate=predicate)",
        "withSchemaEvolution": "table.merge(source, predicate, merge_schema=True)",
        "execute": "merge.execute()",
    },
    "DeltaOptimizeBuilder": {
        "where": "table.optimize.compact(partition_filters)",
        "executeCompaction": "table.optimize.compact()",
        "executeZOrderBy": "table.optimize.z_order(columns)",
    },
    "DeltaTableBuilder": {
        "tableName": "DeltaTable.create(path, schema, name=name)",
        "location": "DeltaTable.create(path, schema)",
        "comment": "DeltaTable.create(path, schema, description=description)",
        "addColumn": "Field(name, data_type, nullable=False, metadata=metadata)",
        "addColumns": "Schema(fields)",
        "partitionedBy": "DeltaTable.create(path, schema, partition_by=columns)",
        "clusterBy": "DeltaTable.create(path, schema, cluster_by=columns)",
        "property": "DeltaTable.create(path, schema, configuration=properties)",
        "execute": "DeltaTable.create(path, schema)",
    },
}
#: What the names in these calls are, other than attributes of `deltafast`.
OBJECTS: dict[str, Any] = {"table": deltafast.DeltaTable, "merge": TableMerger}


def _public(owner: type) -> list[str]:
    return sorted(name for name in dir(owner) if not name.startswith("_") and name not in INTERNAL)


def _parameters(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters)


def _names(names: list[str] | set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _sentence(start: str, names: list[str] | set[str]) -> str:
    return textwrap.fill(f"{start}: {_names(names)}.", 120, break_long_words=False, break_on_hyphens=False)


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _added(name: str, theirs: Any, ours: Any) -> set[str]:
    """Return the parameters that deltafast adds; fails where it lacks one."""
    lacking = _parameters(theirs) - _parameters(ours) - POSITIONAL
    if lacking:
        sys.exit(f"{name} lacks the parameters {sorted(lacking)}")
    return _parameters(ours) - _parameters(theirs)


def _class_of_deltalake(name: str, theirs: type, ours: type) -> str:
    lacking = set(_public(theirs)) - set(_public(ours))
    if lacking:
        sys.exit(f"{name} lacks {sorted(lacking)}")
    same, rows = [], []
    for method in _public(theirs):
        function = getattr(theirs, method)
        added = _added(f"{name}.{method}", function, getattr(ours, method)) if inspect.isroutine(function) else set()
        if added:
            rows.append([f"`{method}`", _names(added)])
        else:
            same.append(method)
    constructor = _parameters(ours) - _parameters(theirs) if ours is deltafast.DeltaTable else set()
    rows = [["`DeltaTable`", _names(constructor)], *rows] if constructor else rows
    parts = [f"### {name}"]
    if same:
        parts.append(_sentence("The same parameters", same))
    if rows:
        parts.append(_table(["method", "parameters that only deltafast has"], rows))
    only = set(_public(ours)) - set(_public(theirs))
    if only:
        parts.append(_sentence("Only in deltafast", only))
    return "\n\n".join(parts)


def deltalake_tables() -> str:
    """Return the section on `deltalake`."""
    parts = [f"Compared with `deltalake` {deltalake.__version__}."]
    parts += [_class_of_deltalake(name, theirs, ours) for name, (theirs, ours) in CLASSES.items()]
    rows = []
    for name in FUNCTIONS:
        added = _added(name, getattr(deltalake, name), getattr(deltafast, name))
        rows.append([f"`{name}`", _names(added)])
    parts += ["### Functions and other classes", _table(["name", "parameters that only deltafast has"], rows)]
    return "\n\n".join(parts)


def _methods(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the public classes of a module, which may need Spark, with their public methods."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names = [part.name for part in node.body if isinstance(part, ast.FunctionDef) and part.name[0] != "_"]
            if names:
                yield node.name, names


def _object(node: ast.expr) -> Any:
    """Return what a name, an attribute or a call of the table stands for; fails where there is no such thing."""
    if isinstance(node, ast.Name):
        return OBJECTS.get(node.id) or getattr(deltafast, node.id)
    if isinstance(node, ast.Attribute):
        found = getattr(_object(node.value), node.attr)
        parts = {"optimize": TableOptimizer, "alter": deltafast.TableAlterer}
        return parts.get(node.attr, found)
    if isinstance(node, ast.Call):
        function = _object(node.func)
        lacking = {keyword.arg or "" for keyword in node.keywords} - _parameters(function)
        if lacking:
            sys.exit(f"{ast.unparse(node)}: no parameters {sorted(lacking)}")
        return function
    sys.exit(f"{ast.unparse(node)}: not a call")


def delta_spark_tables() -> str:
    """Return the section on delta-spark."""
    parts = []
    for owner, methods in _methods(SPARK_TABLES):
        calls = WITHOUT_SPARK.get(owner, {})
        if set(calls) != set(methods):
            sys.exit(f"{owner}: the calls without Spark and the methods differ: {sorted(set(calls) ^ set(methods))}")
        rows = []
        for method in methods:
            _object(ast.parse(calls[method], mode="eval").body)
            rows.append([f"`{method}`", f"`{calls[method]}`"])
        parts += [f"### {owner}", _table(["delta-spark", "without Spark"], rows)]
    return "\n\n".join(parts)


SECTIONS = {"from_deltalake.md": deltalake_tables, "from_delta_spark.md": delta_spark_tables}
MARK = "<!-- Written by dev/make_method_tables.py. -->\n"


def main() -> None:
    """Write or compare both pages; their generated section is the last one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the pages instead of writing them")
    check = parser.parse_args().check
    for name, section in SECTIONS.items():
        page = (PAGES / name).read_text(encoding="utf-8")
        written = page.partition(MARK)[0] + MARK + "\n" + section() + "\n"
        if not check:
            (PAGES / name).write_text(written, encoding="utf-8")
        elif written != page:
            sys.exit(f"docs/howto/{name} is not up to date: run dev/make_method_tables.py")


if __name__ == "__main__":
    main()
