"""Operations: each draws its arguments from a model, and runs on a table and on the model.

The arguments hold all that an operation does, so that a recorded step can run again without those before it.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import deltafast
from deltafast import DeltaTable, Field, write_deltalake

from .model import Model, arrow_table, describe, draw_value
from .names import draw_names
from .predicates import Comparison, Predicate, draw_predicate, sql_literal, sql_name
from .types import FAMILIES, PRIMITIVES, ColumnType, draw_type, widenings

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from .predicates import Row

Arguments = dict[str, Any]


class Operation(NamedTuple):
    """What happens to a table."""

    draw: Callable[[random.Random, Model], Arguments]
    run: Callable[..., None]
    #: Table properties without which it is refused.
    configuration: Mapping[str, str] = MappingProxyType({})
    #: Whether it is refused for tables that are clustered, or for all others.
    clustered: bool | None = None
    partitioned: bool | None = None


class Step(NamedTuple):
    """An operation with its arguments."""

    operation: str
    arguments: Arguments

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={describe(_shown(value))}" for name, value in self.arguments.items())
        return f"{self.operation}({arguments})"

    def run(self, table: DeltaTable, model: Model) -> None:
        """Run it on the table and on the model."""
        OPERATIONS[self.operation].run(table, model, **self.arguments)


def _shown(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"[{', '.join(describe(row) for row in value)}]"
    return value.sql() if hasattr(value, "sql") else repr(value)


def _no_arguments(_chance: random.Random, _model: Model) -> Arguments:
    return {}


def _keys_from(model: Model, key: int) -> Predicate:
    assert model.key is not None
    return Comparison(model.key, model.columns[model.key], ">=", key)


# --- writes


def _draw_rows(chance: random.Random, model: Model) -> Arguments:
    return {"rows": model.draw_rows(chance, chance.randint(1, 4))}


def _draw_many_rows(chance: random.Random, model: Model) -> Arguments:
    return {"rows": model.draw_rows(chance, 2000)}


def _append(table: DeltaTable, model: Model, rows: list[Row]) -> None:
    write_deltalake(table, arrow_table(rows, model.columns), mode="append")
    model.rows = model.rows + [model.stored(row) for row in rows]


def _overwrite(table: DeltaTable, model: Model, rows: list[Row]) -> None:
    write_deltalake(table, arrow_table(rows, model.columns), mode="overwrite")
    model.rows = [model.stored(row) for row in rows]


def _draw_overwrite_where(chance: random.Random, model: Model) -> Arguments:
    first = chance.choice([row[model.key] for row in model.rows] or [0])
    return {"predicate": _keys_from(model, first), "rows": model.draw_rows(chance, chance.randint(0, 3))}


def _overwrite_where(table: DeltaTable, model: Model, predicate: Predicate, rows: list[Row]) -> None:
    data = arrow_table(rows, model.columns)
    write_deltalake(table, data, mode="overwrite", predicate=predicate.sql())
    remaining = [row for row in model.rows if not predicate.holds(row)]
    model.rows = remaining + [model.stored(row) for row in rows]


def _draw_replace_keys(chance: random.Random, model: Model) -> Arguments:
    rows = model.draw_rows(chance, 3)
    for row, old in zip(rows, model.rows, strict=False):
        row[model.key] = old[model.key]
    return {"rows": rows}


def _replace_keys(table: DeltaTable, model: Model, rows: list[Row]) -> None:
    data = arrow_table(rows, model.columns)
    write_deltalake(table, data, mode="overwrite", replace_using=[model.key])
    _replace(model, rows)


def _replace(model: Model, rows: list[Row]) -> None:
    keys = {row[model.key] for row in rows}
    model.rows = [row for row in model.rows if row[model.key] not in keys] + [model.stored(row) for row in rows]


def _draw_new_column(chance: random.Random, model: Model) -> tuple[str, ColumnType]:
    names = draw_names(chance, len(model.columns) + 8, model.configuration)
    taken = {name.lower() for name in model.columns}
    name = next((name for name in names if name.lower() not in taken), f"new_{model.next_key}")
    families = [family for family in FAMILIES if family != "variant" or "variant" in model.families]
    return name, draw_type(chance, chance.choice(families))


def _draw_merge_schema(chance: random.Random, model: Model) -> Arguments:
    name, column_type = _draw_new_column(chance, model)
    rows = model.draw_rows(chance, chance.randint(1, 3), model.columns | {name: column_type})
    return {"column": name, "column_type": column_type, "rows": rows}


def _merge_schema(table: DeltaTable, model: Model, column: str, column_type: ColumnType, rows: list[Row]) -> None:
    columns = model.columns | {column: column_type}
    write_deltalake(table, arrow_table(rows, columns), mode="append", schema_mode="merge")
    _add(model, column, column_type)
    model.rows = model.rows + [model.stored(row) for row in rows]


def _add(model: Model, column: str, column_type: ColumnType) -> None:
    model.rows = [row | {column: None} for row in model.rows]
    model.contents.columns = model.columns | {column: column_type}
    model.require("schemaChanged")


# --- changes of rows


def _draw_condition(chance: random.Random, model: Model) -> Predicate | None:
    if chance.randrange(8) == 0:
        return None
    return draw_predicate(chance, model.columns, model.rows, first=chance.choice(list(model.columns)))


def _draw_delete(chance: random.Random, model: Model) -> Arguments:
    # Few rows, so that the operations after it have some.
    rows = model.rows
    chosen = [row[model.key] for row in chance.sample(rows, min(len(rows), 2))] or [0]
    condition = Comparison(model.key, model.columns[model.key], "=", chosen[0])
    return {"predicate": chance.choice([condition, _draw_condition(chance, model) or condition])}


def _delete(table: DeltaTable, model: Model, predicate: Predicate) -> None:
    deleted = len(model.matches(predicate))
    metrics = table.delete(predicate.sql())
    assert metrics["num_deleted_rows"] in (deleted, None), metrics
    model.rows = [row for row in model.rows if not predicate.holds(row)]


def _draw_update(chance: random.Random, model: Model) -> Arguments:
    column = chance.choice([name for name in model.columns if name != model.key] or [model.key])
    if column == model.key:
        return {"column": column, "value": None, "predicate": _keys_from(model, model.next_key)}
    column_type = model.columns[column]
    value = draw_value(chance, column_type, column in model.partition_by) if column_type.is_ordered else None
    return {"column": column, "value": value, "predicate": _draw_condition(chance, model)}


def _update(table: DeltaTable, model: Model, column: str, value: Any, predicate: Predicate | None) -> None:
    literal = sql_literal(value, model.columns[column])
    table.update({sql_name(column): literal}, predicate=None if predicate is None else predicate.sql())
    model.rows = [
        model.stored(row | {column: value}) if predicate is None or predicate.holds(row) else row for row in model.rows
    ]


def _draw_merge(chance: random.Random, model: Model) -> Arguments:
    return _draw_replace_keys(chance, model) | {
        "deletes": chance.random() < 0.3,
        "inserts": chance.random() < 0.7,
    }


def _merge(table: DeltaTable, model: Model, rows: list[Row], *, deletes: bool, inserts: bool) -> None:
    key = sql_name(str(model.key))
    merger = table.merge(arrow_table(rows, model.columns), f"t.{key} = s.{key}", source_alias="s", target_alias="t")
    merger = merger.when_matched_delete() if deletes else merger.when_matched_update_all()
    if inserts:
        merger = merger.when_not_matched_insert_all()
    merger.execute()
    source = {row[model.key]: model.stored(row) for row in rows}
    keys = {row[model.key] for row in model.rows}
    changed = [source.get(row[model.key], row) for row in model.rows]
    if deletes:
        changed = [row for row in model.rows if row[model.key] not in source]
    model.rows = changed + [row for key, row in source.items() if inserts and key not in keys]


def _upsert(table: DeltaTable, model: Model, rows: list[Row]) -> None:
    table.upsert(arrow_table(rows, model.columns), [model.key])
    _replace(model, rows)


def _sql_update(table: DeltaTable, model: Model, column: str, value: Any, predicate: Predicate | None) -> None:
    literal = sql_literal(value, model.columns[column])
    where = "" if predicate is None else f" WHERE {predicate.sql()}"
    deltafast.sql(f"UPDATE t SET {sql_name(column)} = {literal}{where}", t=table)
    model.rows = [
        model.stored(row | {column: value}) if predicate is None or predicate.holds(row) else row for row in model.rows
    ]


# --- maintenance


def _compact(table: DeltaTable, _model: Model) -> None:
    table.optimize.compact()


def _draw_z_order(chance: random.Random, model: Model) -> Arguments:
    can = [
        name
        for name, column_type in model.columns.items()
        if column_type.family in PRIMITIVES and name not in model.partition_by
    ]
    return {"columns": chance.sample(can, min(len(can), 2))}


def _z_order(table: DeltaTable, _model: Model, columns: list[str]) -> None:
    table.optimize.z_order(columns)


def _cluster(table: DeltaTable, _model: Model) -> None:
    table.optimize.cluster(full=True)


def _purge(table: DeltaTable, _model: Model) -> None:
    table.optimize.purge()


def _vacuum(table: DeltaTable, model: Model) -> None:
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    model.versions.clear()


def _checkpoint(table: DeltaTable, _model: Model) -> None:
    table.create_checkpoint()


def _draw_restore(chance: random.Random, model: Model) -> Arguments:
    return {"version": chance.choice(sorted(model.versions) or [None])}


def _restore(table: DeltaTable, model: Model, version: int | None) -> None:
    # A recorded step that runs without the one that made its version.
    if version is None or version not in model.versions:
        return
    table.restore(version)
    contents = model.versions[version]
    model.contents.columns = dict(contents.columns)
    model.rows = list(contents.rows)


# --- changes of the schema


def _draw_add_column(chance: random.Random, model: Model) -> Arguments:
    name, column_type = _draw_new_column(chance, model)
    return {"column": name, "column_type": column_type}


def _add_column(table: DeltaTable, model: Model, column: str, column_type: ColumnType) -> None:
    field = {"name": column, "type": column_type.delta, "nullable": True, "metadata": {}}
    table.alter.add_columns([Field.from_json(json.dumps(field))])
    _add(model, column, column_type)


def _alterable(model: Model) -> list[str]:
    fixed = {model.key, *model.partition_by, *model.cluster_by}
    return [name for name in model.columns if name not in fixed]


def _dispensable(model: Model, names: list[str]) -> list[str]:
    """Return the columns without which the table still has each of its types; all if there are none."""
    families = [column_type.family for column_type in model.columns.values()]
    return [name for name in names if families.count(model.columns[name].family) > 1] or names


def _draw_rename(chance: random.Random, model: Model) -> Arguments:
    return {"column": chance.choice(_alterable(model)), "name": _draw_new_column(chance, model)[0]}


def _rename_column(table: DeltaTable, model: Model, column: str, name: str) -> None:
    table.alter.rename_column(column, name)

    def renamed(mapping: dict[str, Any]) -> dict[str, Any]:
        return {name if key == column else key: value for key, value in mapping.items()}

    model.rows = [renamed(row) for row in model.rows]
    model.contents.columns = renamed(model.columns)


def _draw_drop(chance: random.Random, model: Model) -> Arguments:
    return {"column": chance.choice(_dispensable(model, _alterable(model)))}


def _drop_column(table: DeltaTable, model: Model, column: str) -> None:
    table.alter.drop_columns([column])
    model.rows = [{name: value for name, value in row.items() if name != column} for row in model.rows]
    model.contents.columns = {name: kind for name, kind in model.columns.items() if name != column}


def _draw_widen(chance: random.Random, model: Model) -> Arguments:
    can = [name for name in _alterable(model) if widenings(model.columns[name])]
    column = chance.choice(_dispensable(model, can))
    widening = chance.choice(widenings(model.columns[column]))
    return {"column": column, "column_type": widening.column_type, "convert": widening.convert}


def _widen(
    table: DeltaTable, model: Model, column: str, column_type: ColumnType, convert: Callable[[Any], Any]
) -> None:
    table.alter.set_column_type(column, str(column_type.delta))
    model.rows = [row | {column: None if row[column] is None else convert(row[column])} for row in model.rows]
    model.contents.columns = model.columns | {column: column_type}


_MAPPED = {"delta.columnMapping.mode": "name"}
OPERATIONS = {
    "append": Operation(_draw_rows, _append),
    "append many": Operation(_draw_many_rows, _append),
    "overwrite": Operation(_draw_rows, _overwrite),
    "overwrite where": Operation(_draw_overwrite_where, _overwrite_where),
    "replace keys": Operation(_draw_replace_keys, _replace_keys),
    "merge schema": Operation(_draw_merge_schema, _merge_schema),
    "delete": Operation(_draw_delete, _delete),
    "update": Operation(_draw_update, _update),
    "sql update": Operation(_draw_update, _sql_update),
    "merge": Operation(_draw_merge, _merge),
    "upsert": Operation(_draw_replace_keys, _upsert),
    "compact": Operation(_no_arguments, _compact),
    "z-order": Operation(_draw_z_order, _z_order, clustered=False),
    "cluster": Operation(_no_arguments, _cluster, clustered=True, partitioned=False),
    "purge": Operation(_no_arguments, _purge),
    "vacuum": Operation(_no_arguments, _vacuum),
    "checkpoint": Operation(_no_arguments, _checkpoint),
    "restore": Operation(_draw_restore, _restore),
    "add column": Operation(_draw_add_column, _add_column),
    "rename column": Operation(_draw_rename, _rename_column, _MAPPED),
    "drop column": Operation(_draw_drop, _drop_column, _MAPPED),
    "widen column": Operation(_draw_widen, _widen, {"delta.enableTypeWidening": "true"}),
}
