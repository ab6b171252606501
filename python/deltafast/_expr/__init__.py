"""Predicates and expressions: SQL, tuples and expression objects -> the closed typed tree that the core evaluates.

`bind_predicate` takes Spark SQL text, DNF tuples, pyarrow or Polars expressions and returns the tree; nothing of
pyarrow or Polars is imported unless such an expression comes in. `bind_expression` does it for SQL of any type.

The stages, one module each: `lexer`, `cursor`, `parser` with `type_parser` and `interval_parser` (text -> `syntax`), or
`dnf`, `arrow_expression`, `polars_expression` (the other inputs -> `syntax`), `binder` (+ schema -> typed `tree`, by
`coercion` and the one table in `functions`), `simplify` (equal tree, literals in the columns' types), `render` (tree ->
Spark SQL), `syntax_sql` (syntax -> Spark SQL), `generated` (more conjuncts for generated partition columns).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from deltafast._expr import literals, types
from deltafast._expr.binder import Binder
from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._expr.parser import parse
from deltafast._expr.simplify import simplify
from deltafast._expr.syntax import Syntax
from deltafast._expr.syntax_sql import sql_text
from deltafast._expr.tree import Bound, columns_of
from deltafast._util.dialect import Dialect
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._core_types import BoundTree
    from deltafast._expr.context import ExpressionContext

__all__ = [
    "UnsupportedExpressionError",
    "bind_expression",
    "bind_predicate",
    "columns_of",
]


def bind_predicate(
    predicate: object,
    schema: str | Mapping[str, Any] | types.Struct,
    context: ExpressionContext,
) -> BoundTree:
    """Bind a filter to a table.

    Args:
        predicate: Spark SQL text, syntax, DNF tuples (`[("a", "=", 1)]`, `[[...], [...]]`), a
            `pyarrow.compute.Expression` or a `polars.Expr`. The last three keep their own library's meaning of NaN and
            of nulls in lists.
        schema: The table's schema, as in the log's `schemaString`.
        context: How the predicate is read and evaluated.

    Returns:
        The bound tree, for the core.

    Raises:
        InvalidArgumentError: The predicate is invalid: syntax, an unknown column, incompatible types.
        UnsupportedExpressionError: The predicate cannot be evaluated with exactly Spark's semantics.
    """
    struct = read_schema(schema)
    literals.time_zone(context.zone)
    text = sql_text(predicate) if isinstance(predicate, str | Syntax) else ""
    # Only SQL has two readings.
    spoken = context if isinstance(predicate, str) else context._replace(dialect=Dialect.DELTAFAST)
    binder = Binder(struct, text, spoken)
    try:
        node = binder.predicate(_syntax(predicate, binder))
        return Bound(simplify(node, context.zone), context.ansi, context.zone).to_tree()
    except RecursionError:
        msg = "the predicate nests too deep; write long lists with IN"
        raise InvalidArgumentError(msg) from None


def bind_expression(text: str, schema: str | Mapping[str, Any] | types.Struct, context: ExpressionContext) -> BoundTree:
    """Bind Spark SQL of any type to a table; see `bind_predicate`."""
    struct = read_schema(schema)
    dialect, zone, ansi, *_ = context
    literals.time_zone(zone)
    binder = Binder(struct, text, context)
    try:
        return Bound(simplify(binder.bind(parse(text, dialect=dialect, zone=zone)), zone), ansi, zone).to_tree()
    except RecursionError:
        msg = "the expression nests too deep; write long lists with IN"
        raise InvalidArgumentError(msg) from None


def read_schema(schema: str | Mapping[str, Any] | types.Struct) -> types.Struct:
    """Return the schema of a table from its JSON."""
    if isinstance(schema, types.Struct):
        return schema
    if isinstance(schema, str):
        try:
            raw: object = json.loads(schema)
        except (ValueError, RecursionError) as error:
            msg = f"the schema is not JSON: {error}"
            raise InvalidArgumentError(msg) from error
    else:
        raw = dict(schema)
    kind = types.type_from_json(raw)
    if not isinstance(kind, types.Struct):
        msg = "the schema of a table must be a struct"
        raise InvalidArgumentError(msg)
    return kind


def _syntax(predicate: object, binder: Binder) -> Syntax:
    """Choose the front end by the module of an object's class, without importing the others."""
    if isinstance(predicate, str | Syntax):
        return parse(predicate, dialect=binder.dialect, zone=binder.zone)
    if isinstance(predicate, (list, tuple)):
        from deltafast._expr.dnf import from_dnf

        return from_dnf(list(cast("Any", predicate)), binder)
    module = type(predicate).__module__.partition(".")[0]
    if module == "pyarrow":
        from deltafast._expr.arrow_expression import from_arrow

        return from_arrow(predicate, binder)
    if module == "polars":
        from deltafast._expr.polars_expression import from_polars

        return from_polars(predicate, binder)
    msg = (
        f"a predicate cannot be a {type(predicate).__name__}; pass SQL text, a list of (column, op, value) tuples, "
        "a pyarrow expression or a Polars expression"
    )
    raise InvalidArgumentError(msg)
