"""The SQL of constraints, generated columns and defaults in the log -> SQL without double quotes, and the way back.

In the log, double quotes have two meanings: Spark stores what its user wrote, where they enclose a string, and
delta-rs encloses the columns of a constraint in them if their names do not match `[a-z_][a-z0-9_]*`. The readings are
distinguished by what each of them would mean for the table's columns; where both are possible, an error shows both.

Expressions that callers of the API give are stored with backquotes and single quotes, which both read alike.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NoReturn

from deltafast._delta_keys import GENERATION_EXPRESSION
from deltafast._expr import read_schema, token_kind, types
from deltafast._expr.binder import Binder
from deltafast._expr.context import ExpressionContext
from deltafast._expr.errors import UnsupportedExpressionError
from deltafast._expr.lexer import tokenize
from deltafast._expr.parser import parse
from deltafast._expr.render import string_literal
from deltafast._expr.simplify import simplify
from deltafast._expr.syntax import Constant, Logical, Name, Syntax, Unary, parts, with_parts
from deltafast._expr.tree import Cast, CastMode, Lit, Node, walk
from deltafast._util.dialect import Dialect
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, TypeAlias

    from deltafast._expr.lexer import Token

    _Decision: TypeAlias = "Callable[[_Reading, Syntax, Sequence[Constant]], list[Constant]]"

__all__ = [
    "constraint_sql",
    "fields_to_store",
    "generation_sql",
    "has_quoted_constraints",
    "has_quoted_expressions",
    "refuse_quoted_constraints",
    "sql_to_store",
    "table_to_store",
    "with_single_quotes",
]

#: Keys of a field's metadata that are expressions.
_EXPRESSIONS: Final = frozenset([GENERATION_EXPRESSION, "CURRENT_DEFAULT"])
#: Names that delta-rs does not enclose in double quotes.
_PLAIN_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*")


def constraint_sql(sql: str, schema: types.Struct) -> str:
    """Return a constraint of the log as Spark SQL without double quotes.

    A text in double quotes that is exactly a column is the column, unless delta-rs would have written the name without
    quotes, or Spark's reading of the comparison has another column: then either reading may be meant.

    Raises:
        InvalidArgumentError: The constraint means two things.
    """
    return _read(sql, schema, _of_constraint)


def generation_sql(sql: str, schema: types.Struct) -> str:
    """Return the expression of a generated column of the log as Spark SQL without double quotes.

    A text in double quotes that is exactly a column is the column if Spark's reading fails for each row, and the string
    if the other one does.

    Raises:
        InvalidArgumentError: The expression means two things.
    """
    return _read(sql, schema, _of_value)


def with_single_quotes(sql: str) -> str:
    """Return Spark SQL without double quotes, which enclose strings there; the default of a column is always such."""
    return _spelled(sql, _double_quoted(sql), ()) if '"' in sql else sql


def sql_to_store(sql: str, schema: types.Struct, context: ExpressionContext) -> str:
    """Return an expression of a caller as it is stored: with backquotes and single quotes.

    Raises:
        InvalidArgumentError: The expression is invalid, or a text in double quotes is not a column.
    """
    if '"' not in sql:
        return sql
    dialect, zone, *_ = context
    if not dialect.quotes_names:
        return with_single_quotes(sql)
    names = [token for token in tokenize(sql, dialect=dialect) if token.kind is token_kind.EXACT]
    if names:
        # A name in backquotes is found in any case, so that the exact case is checked here.
        Binder(schema, sql, ExpressionContext(zone=zone)).bind(parse(sql, dialect=dialect, zone=zone))
    return _spelled(sql, names, {token.pos for token in names})


def table_to_store(
    schema_string: str, properties: Mapping[str, str | None], context: ExpressionContext
) -> tuple[str, dict[str, str | None]]:
    """Return the schema and the properties of a table with expressions as they are stored.

    Raises:
        InvalidArgumentError: As `sql_to_store`; the message names the column or the property.
    """
    fields: list[Any] = json.loads(schema_string)["fields"]
    if has_quoted_expressions(fields):
        columns = read_schema(schema_string)
        schema_string = json.dumps({"type": "struct", "fields": fields_to_store(fields, columns, context)})
    if has_quoted_constraints(properties):
        columns = read_schema(schema_string)
        return schema_string, {
            key: _stored(f"the constraint `{key}`", value, columns, context)
            if value is not None and _is_constraint(key)
            else value
            for key, value in properties.items()
        }
    return schema_string, dict(properties)


def fields_to_store(fields: Sequence[Any], columns: types.Struct, context: ExpressionContext) -> list[Any]:
    """Return fields of a schema's JSON with expressions over these columns as they are stored.

    Raises:
        InvalidArgumentError: As `sql_to_store`; the message names the column.
    """
    out: list[Any] = []
    for field in fields:
        metadata = dict(field.get("metadata") or {})
        for key in _EXPRESSIONS & metadata.keys():
            # A default does not depend on the row.
            known = types.Struct(()) if key == "CURRENT_DEFAULT" else columns
            metadata[key] = _stored(f"the expression of `{field['name']}`", str(metadata[key]), known, context)
        out.append({**field, "metadata": metadata})
    return out


def has_quoted_expressions(fields: Sequence[Any]) -> bool:
    """Return whether a generated value or default of fields of a schema's JSON has double quotes."""
    metadata: list[dict[str, Any]] = [field.get("metadata") or {} for field in fields]
    return any('"' in str(values[key]) for values in metadata for key in _EXPRESSIONS & values.keys())


def has_quoted_constraints(properties: Mapping[str, str | None]) -> bool:
    """Return whether a constraint among the properties has double quotes."""
    return any(_is_constraint(key) and '"' in (value or "") for key, value in properties.items())


def refuse_quoted_constraints(properties: Mapping[str, str | None]) -> None:
    """Refuse double quotes in constraints that are set before the table's columns are known.

    Raises:
        InvalidArgumentError: A constraint has double quotes.
    """
    if has_quoted_constraints(properties):
        message = "a constraint has double quotes: write names in backquotes and strings in single quotes"
        raise InvalidArgumentError(message)


def _is_constraint(key: str) -> bool:
    return key.lower().startswith("delta.constraints.")


def _stored(what: str, sql: str, schema: types.Struct, context: ExpressionContext) -> str:
    try:
        return sql_to_store(sql, schema, context)
    except InvalidArgumentError as error:
        error.args = (f"{what} cannot be evaluated: {error}",)
        raise


def _double_quoted(sql: str) -> list[Token]:
    return [token for token in tokenize(sql) if token.kind is token_kind.STRING and sql[token.pos] == '"']


def _spelled(sql: str, quoted: Collection[Token], names: Collection[int | None]) -> str:
    """Return the SQL with tokens in double quotes as columns, at these positions, or else as strings."""
    out: list[str] = []
    done = 0
    for token in quoted:
        name = "`" + token.text.replace("`", "``") + "`"
        out += [sql[done : token.pos], name if token.pos in names else string_literal(token.text)]
        done = token.end
    return "".join([*out, sql[done:]])


def _read(sql: str, schema: types.Struct, decide: _Decision) -> str:
    if '"' not in sql:
        return sql
    sql = _with_paths(sql)
    quoted = _double_quoted(sql)
    columns = {field.name for field in schema.fields}
    undecided = {(token.pos, token.text) for token in quoted if token.text in columns}
    if not undecided:
        return _spelled(sql, quoted, ())
    reading = _Reading(sql, schema, quoted)
    node = parse(sql, dialect=Dialect.SPARK)
    # Not the strings of other constructs, such as `DATE "2026-01-31"` or ESCAPE.
    strings = [part for part in parts(node) if isinstance(part, Constant) and (part.pos, part.lit.value) in undecided]
    return _spelled(sql, quoted, {text.pos for text in decide(reading, node, strings)})


def _with_paths(sql: str) -> str:
    """Return the SQL with backquotes around strings next to a dot: a string has no fields, so these are names."""
    tokens = tokenize(sql)
    dots = [n for n, token in enumerate(tokens) if token.kind is token_kind.OPERATOR and token.text == "."]
    adjacent = {tokens[n + step].pos for n in dots for step in (-1, 1)}
    names = [token for token in _double_quoted(sql) if token.pos in adjacent]
    return _spelled(sql, names, adjacent)


class _Reading:
    """Decides whether an expression can be evaluated if some of its strings are columns."""

    def __init__(self, sql: str, schema: types.Struct, quoted: Sequence[Token]) -> None:
        self._sql = sql
        self._schema = schema
        self._quoted = quoted

    def is_possible(self, node: Syntax, names: Collection[Constant]) -> bool:
        """Return whether a part of the expression does not fail for each row, with these strings as columns."""
        columns = {text.pos: Name((str(text.lit.value),), text.pos) for text in names}
        node = with_parts(node, lambda part: columns.get(part.pos) if isinstance(part, Constant) else None)
        try:
            bound = simplify(Binder(self._schema, self._sql, ExpressionContext()).bind(node), "UTC")
        except UnsupportedExpressionError:
            return True
        except InvalidArgumentError:
            return False
        return not any(_fails(part) for part in walk(bound))

    def refuse(self, names: Collection[Constant]) -> NoReturn:
        """Refuse an expression that means two things."""
        shown = " and ".join(f'"{text.lit.value}"' for text in names)
        strings, columns = (_spelled(self._sql, self._quoted, {t.pos for t in chosen}) for chosen in ((), names))
        message = (
            f"{shown} may be a string, as in Spark ({strings}), or a column, as in delta-rs ({columns}); replace the "
            "expression in the table by the one that is meant"
        )
        raise InvalidArgumentError(message)


def _of_constraint(reading: _Reading, node: Syntax, strings: Sequence[Constant]) -> list[Constant]:
    """Return the strings of a constraint that are columns: those of its comparisons."""
    match node:
        case Logical(args=args):
            return [text for arg in args for text in _of_constraint(reading, arg, strings)]
        case Unary(op="not", arg=arg):
            return _of_constraint(reading, arg, strings)
        case _:
            own = {part.pos for part in parts(node)}
            return _of_comparison(reading, node, [text for text in strings if text.pos in own])


def _of_comparison(reading: _Reading, node: Syntax, strings: Sequence[Constant]) -> list[Constant]:
    quoted = [text for text in strings if not _PLAIN_NAME.fullmatch(str(text.lit.value))]
    choices = [chosen for chosen in (quoted, list(strings)) if chosen]
    if strings and not reading.is_possible(node, ()):
        return next((chosen for chosen in choices if reading.is_possible(node, chosen)), list[Constant]())
    if not quoted or not reading.is_possible(node, quoted):
        return []
    if any(isinstance(part, Name) for part in parts(node)):
        reading.refuse(quoted)
    return quoted


def _of_value(reading: _Reading, node: Syntax, strings: Sequence[Constant]) -> list[Constant]:
    """Return the strings of a generated column's expression that are columns: all or none."""
    if not strings or not reading.is_possible(node, strings):
        return []
    if reading.is_possible(node, ()):
        reading.refuse(strings)
    return list(strings)


def _fails(node: Node) -> bool:
    """Return whether a node is a cast of a string that fails; `simplify` has folded the others."""
    match node:
        case Cast(arg=Lit(value=str()), type=kind, mode=CastMode.ANSI):
            return types.is_numeric(kind) or types.is_datetime(kind) or kind == types.BOOLEAN
        case _:
            return False
