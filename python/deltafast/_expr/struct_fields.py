"""The fields of an assigned struct, found by their names: UPDATE does not match them by position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltafast._expr import types
from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._expr.tree import Call, Lit
from deltafast._expr.types import Field, Struct
from deltafast.exceptions import ErrorCode, InvalidArgumentError

if TYPE_CHECKING:
    from deltafast._expr.tree import Node
    from deltafast._expr.types import DataType

__all__ = ["by_field_names"]


def by_field_names(node: Node, column: DataType) -> Node:
    """Return a value with the fields of its structs in the order and the spelling of a column's.

    Raises:
        InvalidArgumentError: A struct has other fields than the column's.
        UnsupportedExpressionError: The fields of structs in a list or map are in another order.
    """
    if not isinstance(node.type, Struct) or not isinstance(column, Struct):
        _check_order(node.type, column)
        return node
    if _in_order(node.type, column):
        return node
    named = _named_fields(node, node.type)
    wanted = {field.name.lower() for field in column.fields}
    if named.keys() != wanted or len(node.type.fields) != len(column.fields):
        raise _other_fields(node.type, column)
    values = [by_field_names(named[field.name.lower()], field.type) for field in column.fields]
    fields = tuple(Field(field.name, value.type) for field, value in zip(column.fields, values, strict=True))
    struct = Struct(fields)
    parts: list[Node] = []
    for field, value in zip(fields, values, strict=True):
        parts += (Lit(field.name, types.STRING), value)
    made = Call("named_struct", tuple(parts), struct)
    if isinstance(node, Call) and node.f == "named_struct":
        return made
    return Call("if", (Call("isnull", (node,), types.BOOLEAN), Lit(None, struct), made), struct)


def _named_fields(node: Node, struct: Struct) -> dict[str, Node]:
    """Return the value of each field, by its name in lower case."""
    names = _lower_names(struct)
    if isinstance(node, Call) and node.f == "named_struct":
        return dict(zip(names, node.args[1::2], strict=True))
    values = [Call("getfield", (node, Lit(field.name, types.STRING)), field.type) for field in struct.fields]
    return dict(zip(names, values, strict=True))


def _lower_names(struct: Struct) -> list[str]:
    return [field.name.lower() for field in struct.fields]


def _in_order(given: DataType, wanted: DataType) -> bool:
    """Whether the structs of two types have the same names in the same order, at each depth."""
    if isinstance(given, Struct) and isinstance(wanted, Struct) and _lower_names(given) != _lower_names(wanted):
        return False
    return all(_in_order(x, y) for x, y in types.paired_types(given, wanted) or ())


def _check_order(given: DataType, wanted: DataType) -> None:
    """Refuse structs in a list or map whose fields are not those of the column in their order."""
    match given, wanted:
        case Struct() as struct, Struct() as other:
            if sorted(_lower_names(struct)) != sorted(_lower_names(other)):
                raise _other_fields(struct, other)
            if not _in_order(struct, other):
                message = (
                    f"the fields of {types.sql_name(struct)} are in another order than those of the column, "
                    f"{types.sql_name(other)}, and within a list or map they are not sorted; name them in its order"
                )
                raise UnsupportedExpressionError(message)
        case _:
            for x, y in types.paired_types(given, wanted) or ():
                _check_order(x, y)


def _other_fields(given: Struct, wanted: Struct) -> InvalidArgumentError:
    names = [", ".join(field.name for field in struct.fields) for struct in (given, wanted)]
    message = (
        f"the value is a struct with the fields {names[0]}, the column has {names[1]}: an update finds fields by their "
        f"names; write named_struct('{wanted.fields[0].name if wanted.fields else ''}', ..)"
    )
    return InvalidArgumentError(
        message, code=ErrorCode.STRUCT_FIELD_MISMATCH, parameters={"expected": names[1], "found": names[0]}
    )
