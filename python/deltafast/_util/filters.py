"""Conversion of the API's filters for the binder.

In deltalake, '' stands for a null partition value in tuple filters; the change data feed has additional
columns that a predicate may use. Both are expanded here, so that the binder needs no special cases.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    import polars as pl
    import pyarrow.dataset as pads

__all__ = ["FilePruningPredicateType", "FilterType", "Predicate", "either", "spell_nulls", "with_change_columns"]

FilterLiteralType: TypeAlias = tuple[str, str, Any]
FilterConjunctionType: TypeAlias = list[FilterLiteralType]
FilterDNFType: TypeAlias = list[FilterConjunctionType]
FilterType: TypeAlias = FilterConjunctionType | FilterDNFType
FilePruningPredicateType: TypeAlias = str | FilterType
#: A SQL string, tuples in disjunctive normal form, a pyarrow expression or a Polars expression.
Predicate: TypeAlias = "str | FilterType | pads.Expression | pl.Expr"


def either(filters: FilterType | None, predicate: Predicate | None) -> Predicate | None:
    """Return the given one of both: tuple filters under their old name, or the newer argument."""
    if filters is not None and predicate is not None:
        message = "give only one of the two: the tuple filters or file_pruning_predicate"
        raise InvalidArgumentError(message)
    return predicate if filters is None else filters


def spell_nulls(filters: FilterType, partition_columns: set[str]) -> FilterDNFType:
    """Replace '' on partition columns in tuple filters, which means null as in deltalake, by None."""
    groups = cast("FilterDNFType", filters if filters and isinstance(filters[0], list) else [filters])
    out: FilterDNFType = []
    for group in groups:
        alternatives: FilterDNFType = [[]]
        for column, op, value in group:
            if column in partition_columns:
                _require_encodable(value)
            choices = _null_choices(column, op, value) if column in partition_columns else [[(column, op, value)]]
            alternatives = [[*left, *right] for left in alternatives for right in choices]
        out.extend(alternatives)
    return out


def _require_encodable(value: Any) -> None:
    """Refuse containers, which are not partition values, except for the list of `in`."""
    items: list[Any] = [*cast("Any", value)] if isinstance(value, (list, tuple, set, frozenset)) else [value]
    for item in items:
        if isinstance(item, (dict, list, tuple, set, frozenset)):
            message = f"Could not encode partition value for type {type(cast('Any', item)).__name__}: {item}"
            raise InvalidArgumentError(message)


def _null_choices(column: str, op: str, value: Any) -> FilterDNFType:
    """Return the alternatives (each a conjunction) that one tuple stands for."""
    operator = op.strip().lower()
    if value == "" and operator in {"=", "==", "!="}:
        return [[(column, "!=" if operator == "!=" else "=", None)]]
    if operator in {"in", "not in"} and not isinstance(value, (str, bytes)):
        values = list(value)
        rest = [item for item in values if item != "" and item is not None]
        inner: FilterConjunctionType = [(column, operator, rest)] if rest else []
        if operator == "not in":
            return [[*inner, (column, "!=", None)]]
        if len(rest) < len(values):
            return [*([inner] if inner else []), [(column, "=", None)]]
    return [[(column, op, value)]]


def with_change_columns(schema_json: str) -> str:
    """Return the schema of the change data feed: the table's, and change type, version and timestamp."""
    schema = json.loads(schema_json)
    kinds = {"_change_type": "string", "_commit_version": "long", "_commit_timestamp": "timestamp"}
    schema["fields"] += [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
    return json.dumps(schema)
