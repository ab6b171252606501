"""Constraints, generated columns and defaults of a table: SQL in the log -> trees for the core.

The core selects the expressions that apply; here each is bound against the table's schema. Values of generated columns
and defaults are cast to their column's type by Spark's store assignment: with ANSI rules, where a value that does not
fit is an error.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, cast

from deltafast._expr import UnsupportedExpressionError, bind_predicate, coercion, read_schema, syntax, types
from deltafast._expr.binder import Binder
from deltafast._expr.errors import DOUBLE_QUOTES
from deltafast._expr.parser import parse
from deltafast._expr.render import to_spark_sql
from deltafast._expr.simplify import simplify
from deltafast._expr.stored import constraint_sql, generation_sql, sql_to_store, with_single_quotes
from deltafast._expr.struct_fields import by_field_names
from deltafast._expr.syntax_sql import sql_text
from deltafast._expr.tree import Bound, Cast, CastMode, Col
from deltafast._util.dialect import Dialect
from deltafast.exceptions import ErrorCode, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deltafast._core_types import BoundTree, NamedExpression, ReplaceKey, TableConstraints, ValuePlan
    from deltafast._expr.context import ExpressionContext
    from deltafast._expr.tree import Node

__all__ = [
    "bare_name",
    "bind_constraints",
    "bind_keys",
    "bind_rows",
    "bind_updates",
    "bound_value",
    "expressions",
    "is_cast_by_core",
    "quotes_hint",
]


def bind_constraints(
    constraints: TableConstraints,
    schema_string: str,
    context: ExpressionContext,
    predicate: NamedExpression | None = None,
) -> TableConstraints:
    """Bind all expressions that the core requests.

    Args:
        constraints: The expressions, as in the log.
        schema_string: The schema of the table after the operation.
        context: How expressions are evaluated.
        predicate: The rows that a write replaces, from `bind_rows`.

    Returns:
        The constraints with a tree at each expression, and with the predicate.

    Raises:
        InvalidArgumentError: An expression is wrong; the message names the constraint or column.
        UnsupportedExpressionError: It may be right, but cannot be evaluated here with its exact meaning.
    """
    if not any(constraints.values()) and predicate is None:
        return constraints
    schema, context = read_schema(schema_string), context.for_log()
    bound = copy.deepcopy(constraints)
    for check in bound["checks"]:
        name, sql = check["name"], check["sql"]
        check["tree"] = _named(
            f"the constraint `{name}`",
            lambda sql=sql: _condition(sql, schema, context),
            {ErrorCode.PREDICATE_NOT_BOOLEAN: ErrorCode.CHECK_NOT_BOOLEAN},
            {"constraint": name, "expression": sql},
        )
    # A default does not depend on the row.
    for values, described, columns in (
        (bound["generated"], "generated column", schema),
        (bound["defaults"], "default of", types.Struct(())),
    ):
        for value in values:
            what = f"the {described} `{value['name']}`"
            column = _column(schema, value["name"])
            value["tree"] = _named(
                what,
                lambda sql=value["sql"], k=columns, c=column: _stored_value(sql, k, c, context),
                _OF_GENERATED,
                {"column": value["name"], "expression": value["sql"]},
            )
    if predicate is not None:
        bound["predicate"] = predicate
    return bound


def expressions(
    *,
    checks: Sequence[NamedExpression] = (),
    defaults: Sequence[NamedExpression] = (),
    predicate: NamedExpression | None = None,
) -> TableConstraints:
    """Return expressions that are not those of a table."""
    return {"checks": list(checks), "generated": [], "defaults": list(defaults), "predicate": predicate, "lengths": []}


def bind_rows(predicate: object, schema: str | types.Struct, context: ExpressionContext) -> NamedExpression:
    """Bind the predicate of the rows that an operation changes.

    Raises:
        InvalidArgumentError: The predicate is invalid or empty.
    """
    if isinstance(predicate, (list, tuple)) and not isinstance(predicate, syntax.NODES):
        from deltafast._expr.dnf import check_not_empty

        check_not_empty(list(cast("Any", predicate)))
    elif isinstance(predicate, str) and not predicate.strip():
        message = f"the condition {predicate!r} is empty; pass None if all rows are meant"
        raise InvalidArgumentError(message)
    columns = read_schema(schema)
    tree = bind_predicate(cast("Any", predicate), columns, context)
    # Spark's form, for the history of the table.
    if isinstance(predicate, str | syntax.Syntax):
        sql = sql_to_store(sql_text(predicate), columns, context)
    else:
        sql = to_spark_sql(tree)
    return {"name": "predicate", "sql": sql, "tree": tree}


def bind_updates(
    updates: Mapping[str, str | syntax.Syntax],
    schema_string: str,
    context: ExpressionContext,
    mode: CastMode = CastMode.ANSI,
) -> list[ValuePlan]:
    """Bind the new values of columns and fields.

    Args:
        updates: Spark SQL, or its syntax, by column name, in any case, in quotes or without; fields of structs with
            dots.
        schema_string: The table's schema.
        context: How the values are read and evaluated.
        mode: Mode of casts to the types of columns, whatever the context's is: `ANSI` or `TRY`.

    Raises:
        InvalidArgumentError: A column does not exist, is assigned twice, or its value does not fit.
        UnsupportedExpressionError: It may be right, but cannot be evaluated here with its exact meaning.
    """
    schema = read_schema(schema_string)
    bound: dict[tuple[str, ...], ValuePlan] = {}
    above_bound: set[tuple[str, ...]] = set()
    for given, sql in updates.items():
        path, column = _target(schema, given, context.dialect)
        name = ".".join(path)
        prefixes = [path[:length] for length in range(1, len(path) + 1)]
        if path in above_bound or any(prefix in bound for prefix in prefixes):
            message = f"the column `{name}` is given a value twice"
            raise InvalidArgumentError(message, code=ErrorCode.COLUMN_ASSIGNED_TWICE, parameters={"column": name})
        try:
            tree = _named(
                f"the new value of `{name}`",
                lambda sql=sql, c=column: _value(sql, schema, c, context, mode, is_update=True),
            )
        except InvalidArgumentError as error:
            error.args = (f"{error}{quotes_hint(sql, column)}",)
            raise
        bound[path] = {"path": list(path), "tree": tree}
        above_bound.update(prefixes)
    return list(bound.values())


def quotes_hint(sql: str | syntax.Syntax, column: types.DataType) -> str:
    """Return the hint for the error of a value that is not SQL: the caller may have meant a string."""
    if column != types.STRING or not isinstance(sql, str):
        return ""
    quoted = "'" + sql.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"; values are SQL expressions: for the string itself, write {quoted!r:.120}"


#: Qualifiers of the two sides of a condition.
_SIDES = {"target": "target", "t": "target", "source": "source", "s": "source"}


def bind_keys(condition: str, dialect: Dialect) -> list[ReplaceKey]:
    """Read the condition of a replacement: equalities of a column of the target and one of the source.

    Args:
        condition: Spark SQL, `target.id = source.id AND target.day <=> source.day`.
        dialect: The meaning of double quotes.

    Returns:
        What the core takes: `target`, `source` and `null_safe` of each.

    Raises:
        InvalidArgumentError: The condition is not an expression.
        UnsupportedExpressionError: The condition has other comparisons.
    """
    node = parse(condition, dialect=dialect)
    parts = node.args if isinstance(node, syntax.Logical) and node.op == "and" else (node,)
    return [_key(part) for part in parts]


def _key(node: syntax.Syntax) -> ReplaceKey:
    if isinstance(node, syntax.Binary) and node.op in ("=", "<=>"):
        found: dict[str, str] = {}
        for side in (node.left, node.right):
            match side:
                case syntax.Name((alias, column)):
                    exact = isinstance(alias, syntax.ExactName)
                    found[_SIDES.get(alias if exact else alias.lower(), "")] = column
                case _:
                    pass
        if {"target", "source"} <= found.keys():
            return {
                "target": found["target"],
                "source": found["source"],
                "null_safe": node.op == "<=>",
                "exact_target": isinstance(found["target"], syntax.ExactName),
                "exact_source": isinstance(found["source"], syntax.ExactName),
            }
    message = (
        "`replace_on` takes equalities of a column of the target and one of the source, joined by AND: "
        "`target.id = source.id AND target.day <=> source.day`"
    )
    raise UnsupportedExpressionError(message)


def _target(schema: types.Struct, name: str, dialect: Dialect) -> tuple[tuple[str, ...], types.DataType]:
    """Return the path of the assigned column or field, with its type."""
    bare = bare_name(name, dialect)
    if (field := _field(schema, bare)) is not None:
        return (field.name,), field.type
    try:
        node = parse(name, dialect=dialect)
    except InvalidArgumentError:
        node = None
    path: list[str] = []
    level: types.DataType = schema
    for part in node.parts if isinstance(node, syntax.Name) else (bare,):
        field = _field(level, part) if isinstance(level, types.Struct) else None
        if field is None:
            shown = f"`{'.'.join(path)}`" if path else "the table"
            has = (
                f"it has {', '.join(f.name for f in level.fields)}"
                if isinstance(level, types.Struct)
                else "it is not a struct"
            )
            hint = f" ({DOUBLE_QUOTES})" if isinstance(part, syntax.ExactName) else ""
            message = f"{shown} has no {'field' if path else 'column'} `{part}`; {has}{hint}"
            if path:
                raise InvalidArgumentError(
                    message,
                    code=ErrorCode.FIELD_NOT_FOUND,
                    parameters={"field": part, "parent": ".".join(path)},
                )
            raise InvalidArgumentError(message, code=ErrorCode.COLUMN_NOT_FOUND, parameters={"column": part})
        path.append(field.name)
        level = field.type
    return tuple(path), level


def _field(schema: types.Struct, name: str) -> types.Field | None:
    """Return the field with a name, preferring the exact case; a name in double quotes has no other."""
    field = schema.find(name)
    return None if field and field.name != name and isinstance(name, syntax.ExactName) else field


def bare_name(name: str, dialect: Dialect) -> str:
    """Return a name without its quotes."""
    if len(name) > 1 and name[0] == name[-1] == "`":
        return name[1:-1].replace("``", "`")
    if dialect.quotes_names and len(name) > 1 and name[0] == name[-1] == '"':
        return syntax.ExactName(name[1:-1].replace('""', '"'))
    return name


#: Codes of expressions that a generated column cannot have, and that of the column.
_OF_GENERATED: Final[dict[ErrorCode, ErrorCode]] = {
    ErrorCode.NON_DETERMINISTIC_EXPRESSION: ErrorCode.INVALID_GENERATION_EXPRESSION,
    ErrorCode.UNCASTABLE_TYPE: ErrorCode.INVALID_GENERATION_EXPRESSION,
}


def _named(
    what: str,
    bind: Callable[[], BoundTree],
    codes: Mapping[ErrorCode, ErrorCode] | None = None,
    parameters: Mapping[str, str] | None = None,
) -> BoundTree:
    """Return a bound expression; an error says of what it is.

    Args:
        what: What it is, for messages.
        bind: Binds it.
        codes: The codes that errors get for their own.
        parameters: The parameters of these codes.
    """
    try:
        return bind()
    except InvalidArgumentError as error:
        error.args = (f"{what} cannot be evaluated: {error}",)
        if codes is not None and error.code in codes:
            error.code, error.parameters = codes[error.code], dict(parameters or {})
        raise


def _column(schema: types.Struct, name: str) -> types.DataType:
    return schema.named(name)[0].type


def _condition(sql: str, schema: types.Struct, context: ExpressionContext) -> BoundTree:
    """Return a constraint of the log."""
    return bind_predicate(constraint_sql(sql, schema), schema, context)


def _stored_value(sql: str, schema: types.Struct, column: types.DataType, context: ExpressionContext) -> BoundTree:
    """Return the value of a generated column, or of a default if no column can be used."""
    text = generation_sql(sql, schema) if schema.fields else with_single_quotes(sql)
    return _value(text, schema, column, context)


def _value(
    sql: str | syntax.Syntax,
    schema: types.Struct,
    column: types.DataType,
    context: ExpressionContext,
    mode: CastMode = CastMode.ANSI,
    *,
    is_update: bool = False,
) -> BoundTree:
    """Return a value of exactly the column's type; an update finds the fields of structs by name."""
    text = sql_text(sql)
    binder = Binder(schema, text, context)
    try:
        node = parse(sql, dialect=context.dialect, zone=context.zone)
        return bound_value(binder, node, text, column, mode, is_update=is_update).to_tree()
    except RecursionError:
        msg = "the expression nests too deep"
        raise InvalidArgumentError(msg) from None


def is_cast_by_core(value: Node, dialect: Dialect, mode: CastMode) -> bool:
    """Return whether a value keeps its type: under the name `deltalake` the core casts columns, as `deltalake` does."""
    return dialect is Dialect.DELTALAKE and mode is CastMode.ANSI and isinstance(value, Col)


def bound_value(
    binder: Binder,
    node: syntax.Syntax,
    sql: str,
    column: types.DataType,
    mode: CastMode = CastMode.ANSI,
    *,
    is_update: bool = False,
) -> Bound:
    """Return a value cast to a column's type by Spark's store assignment.

    Args:
        binder: Binder with the columns that the value may use.
        node: The value.
        sql: The SQL of the value, for messages.
        column: The type.
        mode: Mode of the cast: `ANSI` or `TRY`.
        is_update: Whether the fields of structs are found by name; else they are matched by position.

    Raises:
        InvalidArgumentError: The value is invalid, or Spark has no such cast.
        UnsupportedExpressionError: The value cannot be evaluated with exactly Spark's semantics.
    """
    zone = binder.zone
    found = simplify(binder.bind(node), zone)
    binder.check_assignment(found, column)
    if is_update:
        found = simplify(by_field_names(found, column), zone)
    if found.type not in (column, types.VOID) and not is_cast_by_core(found, binder.dialect, mode):
        if not coercion.can_cast(found.type, column, CastMode.ANSI):
            source, target = types.sql_name(found.type), types.sql_name(column)
            msg = f"{sql!r} is of type {source}, the column of type {target}"
            raise InvalidArgumentError(
                msg,
                code=ErrorCode.UNCASTABLE_TYPE,
                parameters={"value": sql, "source_type": source, "target_type": target},
            )
        found = simplify(Cast(found, column, mode), zone)
    return Bound(found, ansi=binder.ansi, zone=zone)
