"""New values as Spark expressions: assigned and generated values, and the table's constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast._expr import read_schema, types
from deltafast._expr.render import to_spark_sql
from deltafast._expr.stored import constraint_sql, generation_sql
from deltafast._expr.tree import Bound, Cast, CastMode
from deltafast.spark._scan.physical_columns import plain_type, quoted, spark_type
from deltafast.spark._write.physical_schema import cast_column, checked, not_null, required
from deltafast.spark._write.row_errors import RowCheck

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._core_types import BoundTree, TableConstraints, ValuePlan
    from deltafast._expr.tree import Node
    from deltafast.spark._scan.physical_columns import Columns
    from deltafast.spark._session.session import Session

__all__ = ["CHANGED", "Constraints", "assigned", "type_of", "uncast", "with_field"]

#: Whether a row gets new values.
CHANGED = "__deltafast_changed"


def uncast(tree: BoundTree) -> Node:
    """Return a new value without the cast to its column's type, if the session has no ANSI mode.

    The cast of an assignment is checked in both modes. Spark's CAST checks values in ANSI mode only; without it,
    `cast_column` does.
    """
    bound = Bound.from_tree(tree)
    node = bound.expr
    return node.arg if not bound.ansi and isinstance(node, Cast) and node.mode is CastMode.ANSI else node


def type_of(node: Node) -> Any:
    """Return the type of a value, as in the JSON of a schema."""
    return plain_type(types.to_json(node.type))


def assigned(session: Session, columns: Columns, values: Sequence[ValuePlan]) -> dict[str, Any]:
    """Return the columns that change, by name, as Spark expressions over the original row.

    Args:
        session: The session.
        columns: The table's columns.
        values: The assignments; each has exactly the type of its column or field.
    """
    from pyspark.sql import functions

    out: dict[str, Any] = {}
    for value in values:
        name, *rest = value["path"]
        of = next(field["type"] for field in columns.fields if field["name"] == name)
        node, wanted = uncast(value["tree"]), type_of(Bound.from_tree(value["tree"]).expr)
        new = functions.expr(to_spark_sql(node))
        new = cast_column(session, new, type_of(node), wanted, ".".join(value["path"]), functions)
        if rest:
            now = out.get(name, functions.col(quoted(name)))
            out[name] = with_field(now, of, rest, new)
        else:
            out[name] = new.cast(spark_type(plain_type(of)))
    return out


def with_field(column: Any, of: Any, path: Sequence[str], value: Any) -> Any:
    """Return a struct in which one field has another value; a null struct becomes one whose other fields are null."""
    from pyspark.sql import functions

    name, *rest = path
    parts: list[Any] = []
    for field in of["fields"]:
        part = column.getField(field["name"])
        if field["name"] == name:
            part = with_field(part, field["type"], rest, value) if rest else value
            part = part.cast(spark_type(plain_type(field["type"])))
        parts.append(part.alias(field["name"]))
    return functions.struct(*parts)


class Constraints:
    """The constraints, generated columns and defaults of a table.

    Args:
        constraints: The expressions, as the core reports them.
        columns: The table's columns.
    """

    def __init__(self, constraints: TableConstraints, columns: Columns) -> None:
        self._columns = columns
        schema = read_schema({"type": "struct", "fields": columns.fields})
        self.generated = {value["name"]: generation_sql(value["sql"], schema) for value in constraints["generated"]}
        self.defaults = {value["name"]: value["sql"] for value in constraints["defaults"]}
        self._checks = [
            RowCheck.check(check["name"], constraint_sql(check["sql"], schema)) for check in constraints["checks"]
        ]
        self._checks += [RowCheck.length(check["name"], check["sql"]) for check in constraints["lengths"]]

    def computed(self, name: str) -> Any:
        """Return the value of a generated column, over the columns of its expression."""
        from pyspark.sql import functions

        return functions.expr(self.generated[name]).cast(self._type(name))

    def checked(self, rows: Any, given: Sequence[str] = ()) -> Any:
        """Return the rows with checks that raise for a violation; `given` are columns that were not generated."""
        from pyspark.sql import functions

        checks = list(self._checks)
        for name, sql in self.generated.items():
            if name in given:
                value = f"cast(({sql}) as {self._type(name).simpleString()})"
                checks.append(RowCheck.generated(name, f"{quoted(name)} <=> {value}"))
        checks += [RowCheck.not_null(".".join(path), not_null(path)) for path in required(self._columns.fields)]
        return checked(rows, checks, self._columns, functions)

    def _type(self, name: str) -> Any:
        return spark_type(next(plain_type(field["type"]) for field in self._columns.fields if field["name"] == name))
