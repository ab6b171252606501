"""The expressions of a MERGE -> trees over two sides: the target (`target`) and the source (`source`).

Trees of the condition and of clauses for matched rows qualify columns with their side; those of the other clauses use
one side only, without qualifiers. The condition is split into conjuncts: an engine joins by the equalities between both
sides, and conjuncts over one side are evaluated before the join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

from deltafast._call_options import option
from deltafast._expr import coercion, types
from deltafast._expr.binder import Binder
from deltafast._expr.constraints import bare_name, is_cast_by_core, quotes_hint
from deltafast._expr.errors import UnsupportedExpressionError, invalid
from deltafast._expr.parser import parse
from deltafast._expr.session_calls import uses_session
from deltafast._expr.simplify import simplify
from deltafast._expr.syntax import ExactName, Name
from deltafast._expr.syntax_sql import sql_text
from deltafast._expr.tree import Bound, Call, Cast, CastMode, Col, In, Lit, Node, SessionCall, joined, walk
from deltafast._expr.types import BOOLEAN, STRING, VOID, Array, DataType, Field, Map, Struct
from deltafast.exceptions import ErrorCode, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._core_types import BoundTree, EqualityPlan, NamedExpression, ValuePlan
    from deltafast._expr.context import ExpressionContext
    from deltafast._expr.syntax import Syntax

__all__ = ["BOTH", "SOURCE", "TARGET", "Sides", "Value"]

TARGET, SOURCE = "target", "source"
BOTH = (TARGET, SOURCE)


class Value(NamedTuple):
    """A new value: the path of its column or field, and its tree."""

    path: tuple[str, ...]
    node: Node


class MergeCondition(TypedDict):
    """The ON condition in the parts of a `MergePlan`."""

    on: str
    equalities: list[EqualityPlan]
    target_only: BoundTree | None
    source_only: BoundTree | None
    residual: BoundTree | None


class Sides:
    """Binds expressions against both schemas.

    Args:
        target: Schema of the target, as it is read.
        source: Schema of the source.
        target_alias: Alias of the target in expressions; `target` if None.
        source_alias: Alias of the source in expressions; `source` if None.
        context: How expressions are read and evaluated.
        mode: Mode of casts to the types of columns, whatever the context's is: `ANSI` or `TRY`.
    """

    def __init__(
        self,
        target: Struct,
        source: Struct,
        target_alias: str | None,
        source_alias: str | None,
        context: ExpressionContext,
        mode: CastMode,
    ) -> None:
        self.schemas = {TARGET: target, SOURCE: source}
        self.context = context
        self.aliases = {
            side: str(bare_name(alias or side, context.dialect))
            for side, alias in ((TARGET, target_alias), (SOURCE, source_alias))
        }
        if self.aliases[TARGET].lower() == self.aliases[SOURCE].lower():
            message = f"the target and the source are both called {self.aliases[TARGET]!r}; give them different aliases"
            raise InvalidArgumentError(message)
        self.mode = mode

    # --- conditions

    def predicate(self, sql: str | Syntax, sides: Sequence[str]) -> Node:
        """Return a condition over these sides; columns of a single side are not qualified."""
        try:
            node = simplify(self._binder(sql, sides).predicate(self._parsed(sql)), self.context.zone)
        except RecursionError:
            message = "the condition nests too deep"
            raise InvalidArgumentError(message) from None
        return _plain(node, sides)

    def condition(self, sql: str | Syntax) -> MergeCondition:
        """Split the ON condition as for `MergePlan`."""
        node = self.predicate(sql, BOTH)
        parts = node.args if isinstance(node, Call) and node.f == "and" else (node,)
        equalities: list[EqualityPlan] = []
        rest: dict[str, list[Node]] = {TARGET: [], SOURCE: [], "both": []}
        for part in parts:
            sides = _sides(part)
            if part == Lit(value=True, type=BOOLEAN):
                continue
            equality = self._equality(part) if len(sides) == len(BOTH) else None
            if equality is not None:
                equalities.append(equality)
            elif len(sides) == len(BOTH):
                rest["both"].append(part)
            else:
                # A constant that is not true matches nothing, so it can be evaluated on either side.
                side = next(iter(sides), TARGET)
                rest[side].append(_stripped(part))
        return {
            "on": sql_text(sql),
            "equalities": equalities,
            "target_only": self._all(rest[TARGET]),
            "source_only": self._all(rest[SOURCE]),
            "residual": self._all(rest["both"]),
        }

    def _equality(self, node: Node) -> EqualityPlan | None:
        if not isinstance(node, Call) or node.f not in ("=", "<=>"):
            return None
        left, right = node.args
        found = {next(iter(sides)): side for side in (left, right) if len(sides := _sides(side)) == 1}
        if found.keys() != {TARGET, SOURCE} or isinstance(left.type, types.NESTED) or uses_session(node):
            return None
        tree = {side: self._tree(_stripped(value)) for side, value in found.items()}
        return {"target": tree[TARGET], "source": tree[SOURCE], "null_safe": node.f == "<=>"}

    def _all(self, nodes: list[Node]) -> BoundTree | None:
        return self._tree(joined("and", nodes)) if nodes else None

    def _tree(self, node: Node) -> BoundTree:
        return Bound(node, ansi=self.context.ansi, zone=self.context.zone).to_tree()

    def clause_condition(self, sql: str | Syntax, sides: Sequence[str]) -> NamedExpression:
        """Return a clause's condition for the core."""
        return {"name": "condition", "sql": sql_text(sql), "tree": self._tree(self.predicate(sql, sides))}

    # --- values

    def value(self, path: tuple[str, ...], sql: str | Syntax, column: DataType, sides: Sequence[str]) -> ValuePlan:
        """Return a new value of exactly the column's type, or of a struct whose fields the core matches by name."""
        try:
            binder = self._binder(sql, sides)
            node = simplify(binder.bind(self._parsed(sql)), self.context.zone)
            binder.check_assignment(node, column)
        except RecursionError:
            message = "the expression nests too deep"
            raise InvalidArgumentError(message) from None
        except InvalidArgumentError as error:
            hint = quotes_hint(sql, column)
            error.args = (f"the new value of `{'.'.join(path)}` cannot be evaluated: {error}{hint}",)
            raise
        return self._value(path, _plain(node, sides), column, sql_text(sql))

    def column_value(
        self, path: tuple[str, ...], source: tuple[str, ...], column: DataType, sides: Sequence[str]
    ) -> ValuePlan:
        """Return a column of the source, or a nested field, as a new value."""
        node = Col((SOURCE, *source), field_of(self.schemas[SOURCE], source).type)
        return self._value(path, _plain(node, sides), column, ".".join(source))

    def merged_struct(self, path: tuple[str, ...], source: tuple[str, ...], column: Struct) -> ValuePlan:
        """Return a struct of the source with the target's values in the fields that only the target has.

        As in delta-spark it is null where both structs are null, at each level: fields that only the target has would
        otherwise be lost where the source is null, and a null struct would become one of nulls where both are.
        """
        node = self._merged(path, source, column)
        return {"path": list(path), "tree": self._tree(node)}

    def _merged(self, path: tuple[str, ...], source: tuple[str, ...], column: Struct) -> Node:
        of_source = field_of(self.schemas[SOURCE], source).type
        of_target = field_of(self.schemas[TARGET], path).type
        old, new = Col((TARGET, *path), of_target), Col((SOURCE, *source), of_source)
        parts: list[Node] = []
        fields: list[Field] = []
        for field in column.fields:
            theirs = _find(of_source, field.name) if isinstance(of_source, Struct) else None
            ours = _find(of_target, field.name) if isinstance(of_target, Struct) else None
            if theirs is None:
                value: Node = Lit(None, field.type) if ours is None else Col((*old.path, ours.name), ours.type)
            elif ours is not None and isinstance(field.type, Struct) and lacks_fields(theirs.type, field.type):
                value = self._merged((*path, ours.name), (*source, theirs.name), field.type)
            else:
                inner = (*source, theirs.name)
                value = self._cast((*path, field.name), Col((SOURCE, *inner), theirs.type), field.type, ".".join(inner))
            parts += (Lit(field.name, STRING), value)
            fields.append(Field(field.name, value.type))
        struct = Struct(tuple(fields))
        is_null = joined("and", [Call("isnull", (side,), BOOLEAN) for side in (old, new)])
        return Call("if", (is_null, Lit(None, struct), Call("named_struct", tuple(parts), struct)), struct)

    def _value(self, path: tuple[str, ...], node: Node, column: DataType, sql: str) -> ValuePlan:
        return {"path": list(path), "tree": self._tree(self._cast(path, node, column, sql))}

    def _cast(self, path: tuple[str, ...], node: Node, column: DataType, sql: str) -> Node:
        """Return a value of the column's type, or of a nested type whose fields the core matches by name."""
        if node.type == VOID:
            node = Lit(None, column)
        elif not _alike(node.type, column):
            if type(node.type) is type(column) and isinstance(column, types.NESTED):
                pass  # by name, in the core
            elif is_cast_by_core(node, self.context.dialect, self.mode):
                pass
            elif coercion.can_cast(node.type, column, CastMode.ANSI):
                node = simplify(Cast(node, column, self.mode), self.context.zone)
            else:
                kinds = f"{types.sql_name(node.type)}, the column `{'.'.join(path)}` of type {types.sql_name(column)}"
                message = f"{sql!r} is of type {kinds}"
                raise InvalidArgumentError(message)
        return node

    def plain_column(self, sql: str | Syntax) -> tuple[str, ...]:
        """Return the path of the source column or field if the expression is only that, else an empty path."""
        try:
            node = self.predicate_or_value(sql)
        except InvalidArgumentError:
            return ()
        match node:
            case Col((side, *path)) if side == SOURCE:
                return tuple(path)
            case _:
                return ()

    def predicate_or_value(self, sql: str | Syntax) -> Node:
        """Return an expression over both sides, of any type."""
        return self._binder(sql, BOTH).bind(self._parsed(sql))

    # --- names

    def target_path(self, name: str, schema: Struct) -> tuple[str, ...] | None:
        """Return the path of the column or field that gets a value; None if it does not exist."""
        for candidate in (name, bare_name(name, self.context.dialect)):
            if (found := _find(schema, candidate)) is not None:
                return (found.name,)
        parts = self._parts(name)
        qualified = _is_called(self.aliases[TARGET], parts[0])
        return (found_path(schema, parts[1:]) if qualified else ()) or found_path(schema, parts) or None

    def new_path(self, name: str) -> tuple[str, ...]:
        """Return the path of a source column or field to add to the target; empty if the source does not have it."""
        source, parts = self.schemas[SOURCE], self._parts(name)
        if path := self.target_path(name, source):
            return path
        # A name with another qualifier than the alias.
        return () if _find(self.schemas[TARGET], parts[0]) else found_path(source, parts[-1:])

    def _parts(self, name: str) -> tuple[str, ...]:
        try:
            node = self._parsed(name)
        except InvalidArgumentError:
            node = None
        if isinstance(node, Name):
            return node.parts
        return tuple(bare_name(part, self.context.dialect) for part in name.split("."))

    def _parsed(self, sql: str | Syntax) -> Syntax:
        return parse(sql, dialect=self.context.dialect, zone=self.context.zone)

    def _binder(self, sql: str | Syntax, sides: Sequence[str]) -> _Binder:
        return _Binder(self, tuple(sides), sql_text(sql))


class _Binder(Binder):
    """Resolves names by side."""

    def __init__(self, sides: Sides, allowed: tuple[str, ...], text: str) -> None:
        schema = Struct(tuple(Field(side, sides.schemas[side]) for side in BOTH))
        super().__init__(schema, text, sides.context)
        self._sides = sides
        self._allowed = allowed

    def column(self, parts: Sequence[str], pos: int | None = None) -> Node:
        """Resolve a dotted name, with or without the alias of its side."""
        rest = tuple(parts[1:])
        for side, alias in self._sides.aliases.items():
            if (
                rest
                and _is_called(alias, parts[0])
                and (_find(self._sides.schemas[side], rest[0]) or not self._known(parts))
            ):
                if side not in self._allowed:
                    hint = f"use columns of the {self._allowed[0]}"
                    self.wrong(f"the {side} has no row where this clause applies: {'.'.join(parts)!r}", pos, hint)
                return super().column((side, *rest), pos)
        known = [side for side in self._allowed if _find(self._sides.schemas[side], parts[0])]
        if len(known) > 1:
            names = " or ".join(f"{self._sides.aliases[side]}.{parts[0]}" for side in known)
            raise invalid(
                f"the name {parts[0]!r} is ambiguous",
                self.text,
                pos,
                f"write {names}",
                code=ErrorCode.AMBIGUOUS_COLUMN,
                parameters={"column": parts[0]},
            )
        if not known and rest:
            aliases = self._sides.aliases
            hint = f"the table is called {aliases[TARGET]!r} here, the source {aliases[SOURCE]!r}"
            self.wrong(f"there is no column and no alias {parts[0]!r}", pos, hint)
        side = known[0] if known else self._allowed[0]
        if not known:
            self._lookup(self._sides.schemas[side], parts[0], parts[0], pos)
        return super().column((side, *parts), pos)

    def _known(self, parts: Sequence[str]) -> bool:
        return any(_find(self._sides.schemas[side], parts[0]) for side in self._allowed)


def _is_called(alias: str, name: str) -> bool:
    """Return whether a name is that of a side; in double quotes, in its exact case."""
    return name == alias if isinstance(name, ExactName) else name.lower() == alias.lower()


def _find(schema: Struct, name: str) -> Field | None:
    """Return the field with a name, preferring the exact case; a name in double quotes has no other."""
    field = schema.find(name)
    return None if field and field.name != name and isinstance(name, ExactName) else field


find = _find


def found_path(schema: Struct, parts: Sequence[str]) -> tuple[str, ...]:
    """Return the path of the column or field with these parts of a name; empty if it does not exist."""
    out: list[str] = []
    level: DataType = schema
    for part in parts:
        field = _find(level, part) if isinstance(level, Struct) else None
        if field is None:
            return ()
        out.append(field.name)
        level = field.type
    return tuple(out)


def field_of(schema: Struct, path: Sequence[str]) -> Field:
    """Return the field at an existing path."""
    level: DataType = schema
    field: Field | None = None
    for part in path:
        field = _find(level, part) if isinstance(level, Struct) else None
        if field is None:
            break
        level = field.type
    if field is None:
        message = f"there is no column {'.'.join(path)!r}"
        raise InvalidArgumentError(message)
    return field


def _alike(a: DataType, b: DataType) -> bool:
    """Return whether two types are equal apart from nullability."""
    pairs = types.paired_types(a, b)
    return a == b if pairs is None else _field_names(a) == _field_names(b) and all(_alike(x, y) for x, y in pairs)


def _field_names(kind: DataType) -> list[str]:
    return [field.name for field in kind.fields] if isinstance(kind, Struct) else []


def lacks_fields(source: DataType, target: DataType) -> bool:
    """Return whether a value of one type lacks fields that the other has."""
    match source, target:
        case Array(element=x), Array(element=y):
            return lacks_fields(x, y)
        case Map(value=v), Map(value=w):
            return lacks_fields(v, w)
        case Struct() as a, Struct() as b:
            found = [(_find(a, field.name), field) for field in b.fields]
            return any(own is None or lacks_fields(own.type, field.type) for own, field in found)
        case _:
            return False


def _sides(node: Node) -> set[str]:
    return {item.path[0] for item in walk(node) if isinstance(item, Col)}


def _plain(node: Node, sides: Sequence[str]) -> Node:
    return node if len(sides) > 1 else _stripped(node)


def _stripped(node: Node) -> Node:
    """Return the tree with unqualified columns."""
    match node:
        case Col(path, kind):
            return Col(path[1:], kind)
        case Call(f, args, kind):
            return Call(f, tuple(_stripped(arg) for arg in args), kind)
        case SessionCall(f, args, kind):
            return SessionCall(f, tuple(_stripped(arg) for arg in args), kind)
        case Cast(arg, kind, mode):
            return Cast(_stripped(arg), kind, mode)
        case In(arg, values):
            return In(_stripped(arg), values)
        case Lit():
            return node


def refuse_lost_fields(column: str) -> None:
    """Refuse an assignment that would silently drop fields."""
    message = (
        f"the source's `{column}` lacks fields that the table's has: a whole new value would make them null; "
        f"assign the fields that change (`column.field`), or pass {option('merge_schema', 'true')} to keep the others"
    )
    raise UnsupportedExpressionError(message)
