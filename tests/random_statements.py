"""Draws tables of every kind and statements of SQL that change them, in the words that Spark and deltafast share.

A `Case` is a table (types, nulls, partitions, properties, files) with statements over it; whoever draws one runs the
statements on two sides and compares. Values come from small pools with edges, so that rows match, tie and overflow.
The generator is a `random.Random`: one with a seed where a case costs seconds and no two should be alike, that of
hypothesis (`st.randoms()`) where it may shrink them.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

UTC = dt.UTC


class Kind(NamedTuple):
    """A type: of Arrow, of SQL; values, how one is spelled, and expressions over a column `{c}` that stay in it."""

    arrow: pa.DataType
    sql: str
    values: tuple[Any, ...]
    spell: Callable[[Any], str]
    forms: tuple[str, ...] = ()
    partitions: bool = False
    #: Conditions over a column `{c}` beside comparisons.
    tests: tuple[str, ...] = ()


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _double(value: float) -> str:
    return f"{value!r}D" if math.isfinite(value) else f"double('{value!r}')"


def _float(value: float) -> str:
    return f"float('{value!r}')"


def _whole(kind: str) -> Callable[[int], str]:
    return lambda value: f"cast('{value}' as {kind})"


def _nothing(_: Any) -> str:
    """Nested values: there is no expression that makes one."""
    return "null"


def _instant(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=UTC)


STRUCT = pa.struct(
    [("x", pa.int32()), ("y", pa.struct([("z", pa.string()), ("d", pa.decimal128(9, 2))]))],
)
KINDS: dict[str, Kind] = {
    "byte": Kind(pa.int8(), "tinyint", (-128, -1, 0, 1, 127), _whole("tinyint"), ("{c} % 3Y", "-{c}"), True),
    "short": Kind(pa.int16(), "smallint", (-(2**15), 0, 3, 2**15 - 1), _whole("smallint"), ("{c} / 2",), True),
    "int": Kind(
        pa.int32(),
        "int",
        (-(2**31), -2, -1, 0, 1, 2, 3, 2**31 - 1),
        str,
        ("{c} + 1", "{c} * 2", "abs({c})", "{c} % 3", "cast({c} as bigint) + 1"),
        True,
        ("{c} % 2 = 0", "abs({c} % 10) > 2"),
    ),
    "long": Kind(
        pa.int64(),
        "bigint",
        (-(2**63), -5, 0, 1, 2, 2**53 + 1, 2**63 - 1),
        _whole("bigint"),
        ("{c} + 1", "{c} - 7", "greatest({c}, 2L)"),
        True,
    ),
    "float": Kind(
        pa.float32(), "float", (0.0, -0.0, 1.5, math.nan, math.inf), _float, ("{c} * 2", "{c} + 0.5"), False, ()
    ),
    "double": Kind(
        pa.float64(),
        "double",
        (0.0, -0.0, 1.5, -2.25, 1e300, math.nan, -math.inf),
        _double,
        ("{c} * 2", "abs({c})", "{c} + 0.1"),
        False,
        ("isnan({c})", "{c} > 1"),
    ),
    "boolean": Kind(pa.bool_(), "boolean", (True, False), lambda v: str(v).lower(), ("not {c}",), True, ("{c}",)),
    "string": Kind(
        pa.string(),
        "string",
        ("", "a", "B", "zz", "x/y %=", "\N{SNOWMAN}é", "it's", "null", "long " * 9),
        _text,
        ("concat({c}, '!')", "upper({c})", "substring({c}, 2, 3)", "coalesce({c}, 'none')", "cast(length({c}) as int)"),
        True,
        ("{c} like '%z%'", "length({c}) > 1", "lower({c}) = 'b'", "{c} like 'a_'"),
    ),
    "binary": Kind(pa.binary(), "binary", (b"", b"\x00\xff", b"ab"), lambda v: f"X'{v.hex()}'", (), False, ()),
    "date": Kind(
        pa.date32(),
        "date",
        (dt.date(1, 1, 1), dt.date(1582, 10, 4), dt.date(1999, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 30)),
        lambda v: f"date'{v.isoformat()}'",
        ("date_add({c}, 1)", "date_sub({c}, 30)"),
        True,
        ("year({c}) > 2000", "month({c}) = 2"),
    ),
    "timestamp": Kind(
        pa.timestamp("us", "UTC"),
        "timestamp",
        (_instant(1900, 1, 1), _instant(1969, 12, 31, 23, 59, 59, 999999), _instant(2024, 2, 29, 12, 30, 1, 500)),
        lambda v: f"timestamp'{v:%Y-%m-%d %H:%M:%S.%f}'",
        ("date_trunc('DAY', {c})", "cast(cast({c} as date) as timestamp)"),
        True,
        ("hour({c}) = 12",),
    ),
    "timestamp_ntz": Kind(
        pa.timestamp("us"),
        "timestamp_ntz",
        tuple(v.replace(tzinfo=None) for v in (_instant(1970, 1, 1), _instant(2024, 2, 29, 23, 59, 59, 999999))),
        lambda v: f"timestamp_ntz'{v:%Y-%m-%d %H:%M:%S.%f}'",
        (),
        True,
        (),
    ),
    "decimal": Kind(
        pa.decimal128(9, 2),
        "decimal(9,2)",
        (Decimal("0.00"), Decimal("-1.25"), Decimal("3.50"), Decimal("9999999.99")),
        lambda v: f"{v}BD",
        ("{c} + 1", "{c} * 2", "round({c}, 1)", "{c} / 3"),
        True,
        ("{c} > 1", "{c} * 2 = 7"),
    ),
    "wide": Kind(
        pa.decimal128(38, 10),
        "decimal(38,10)",
        (Decimal("0E-10"), Decimal("1E-10"), Decimal(10) ** 27, Decimal("-123456789012345678.5")),
        lambda v: f"cast('{v:f}' as decimal(38,10))",
        ("-{c}",),
        False,
        (),
    ),
    "list": Kind(
        pa.list_(pa.int32()),
        "array<int>",
        ([], [1, None], [3, 2, 1]),
        _nothing,
        (),
        False,
        ("size({c}) > 1",),
    ),
    "map": Kind(
        pa.map_(pa.string(), pa.int64()),
        "map<string,bigint>",
        ([("a", 1)], [("b", 2), ("c", 3)]),
        _nothing,
        (),
        False,
        (),
    ),
    "struct": Kind(
        STRUCT,
        "struct<x:int,y:struct<z:string,d:decimal(9,2)>>",
        (
            {"x": 1, "y": {"z": "q", "d": Decimal("1.50")}},
            {"x": None, "y": {"z": None, "d": Decimal("-2.00")}},
            {"x": 3, "y": None},
        ),
        _nothing,
        (),
        False,
        ("{c}.x = 1", "{c}.y.z is null", "{c}.y.d > 0"),
    ),
}
#: What no table can be clustered by: what has no statistics that skip files.
_UNORDERED = ("boolean", "binary", "list", "map", "struct")
#: delta-spark's OPTIMIZE passes over a condition on a partition column of such a name.
_DOTTED = "x.y"
_ODD_NAMES = ("a b", "Größe", _DOTTED, "p,q")


class Case(NamedTuple):
    """A table, and what happens to it. Texts have `{t}` for the table, `{s0}`, `{s1}`, .. for the sources."""

    columns: dict[str, str]
    partition_by: list[str]
    cluster_by: list[str]
    configuration: dict[str, str]
    files: list[pa.Table]
    statements: list[str]
    sources: list[pa.Table]

    def __repr__(self) -> str:
        return (
            f"columns {self.columns}, partitioned by {self.partition_by}, clustered by {self.cluster_by}, "
            f"{self.configuration}, {[t.num_rows for t in self.files]} rows, {self.statements}"
        )


class Choices(NamedTuple):
    """What may be drawn."""

    commands: tuple[str, ...] = ("delete", "update", "merge", "insert", "optimize")
    #: Of columns beside `id`, which is a `long`.
    kinds: Mapping[str, Kind] = KINDS
    #: Whether tables have properties and clustering.
    features: bool = True
    #: Whether rows of a source may have the same key.
    ambiguous: bool = True
    #: Whether a MERGE may add columns.
    evolves: bool = True
    statements: int = 3


def quoted(name: str) -> str:
    return "`" + name + "`"


def draw_case(chance: random.Random, choices: Choices) -> Case:
    """Draw a table and statements."""
    return _Drawer(chance, choices).case()


class _Drawer:
    """Draws one case."""

    def __init__(self, chance: random.Random, choices: Choices) -> None:
        self.random = chance
        self.choices = choices
        self.kinds = choices.kinds
        self.columns: dict[str, str] = {"id": "long"}
        self.partition_by: list[str] = []
        self.cluster_by: list[str] = []
        self.rows = 0
        self.sources: list[pa.Table] = []

    def one(self, *options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, of: int) -> bool:
        """Whether something that happens once in so often does."""
        return self.random.randrange(of) == 0

    def some(self, of: Sequence[Any], most: int | None = None) -> list[Any]:
        """One or more, in any order."""
        return self.random.sample(list(of), self.random.randint(1, min(len(of), most or len(of))))

    def between(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    # --- the table

    def case(self) -> Case:
        features = self._features() if self.choices.features else {}
        odd = list(_ODD_NAMES) if "delta.columnMapping.mode" in features else []
        for n in range(self.between(1, 5)):
            kind = self.one(*self.kinds)
            name = odd.pop() if odd and self.chance(3) else f"c{n}_{kind}"
            self.columns[name] = kind
        can = [
            name for name, kind in self.columns.items() if name not in ("id", _DOTTED) and self.kinds[kind].partitions
        ]
        wanted = self.one(0, 0, 1, 2)
        # A column is left to hold data.
        self.partition_by = can[:wanted] if wanted < len(self.columns) - 1 else []
        clustered = self.choices.features and not self.partition_by and self.chance(3)
        self.cluster_by = self._clustering() if clustered else []
        files = []
        for _ in range(self.between(1, 3)):
            count = self.between(1, 8)
            files.append(self.data(self.columns, range(self.rows, self.rows + count)))
            self.rows += count
        made = [
            self.statement(self.one(*self.choices.commands)) for _ in range(self.between(1, self.choices.statements))
        ]
        return Case(self.columns, self.partition_by, self.cluster_by, features, files, made, self.sources)

    def _clustering(self) -> list[str]:
        """A column or two, or one of text."""
        can = [name for name, kind in self.columns.items() if kind not in _UNORDERED and name != _DOTTED]
        strings = [name for name in can if self.columns[name] == "string"]
        return self.one(["id"], self.some(can, 2), self.some(strings or can, 1))

    def _features(self) -> dict[str, str]:
        features: dict[str, str] = {}
        for key, of in (("DeletionVectors", 2), ("ChangeDataFeed", 2), ("RowTracking", 5), ("InCommitTimestamps", 6)):
            if self.chance(of):
                features[f"delta.enable{key}"] = "true"
        mapping = self.one("none", "none", "name", "id")
        return features if mapping == "none" else features | {"delta.columnMapping.mode": mapping}

    def data(self, columns: dict[str, str], ids: Sequence[int | None]) -> pa.Table:
        """Rows with these ids, a third of all else being null."""
        out = {}
        for name, kind in columns.items():
            pool: Sequence[Any] = self.kinds[kind].values
            values = ids if name == "id" else [None if self.chance(4) else self.one(*pool) for _ in ids]
            out[name] = pa.array(values, self.kinds[kind].arrow)
        return pa.table(out)

    # --- expressions

    def column(self, sides: Sequence[str], kind: str | None = None) -> tuple[str, str] | None:
        """A column or field with its kind, as `side.name`."""
        of_kind = [n for n, k in self.columns.items() if kind in (None, k)]
        if not of_kind:
            return None
        name = self.one(*of_kind)
        side = self.one(*sides)
        prefix = f"{side}." if side else ""
        return prefix + quoted(name), self.columns[name]

    def ordered(self, kind: str) -> bool:
        """Whether values of a kind are compared."""
        return not pa.types.is_nested(self.kinds[kind].arrow)

    def literal(self, kind: str) -> str:
        return self.kinds[kind].spell(self.one(*self.kinds[kind].values))

    def predicate(self, sides: Sequence[str] = ("",), depth: int = 2) -> str:
        """A condition over these sides."""
        if depth and self.chance(3):
            a, b = (self.predicate(sides, depth - 1) for _ in range(2))
            return self.one(f"({a} and {b})", f"({a} or {b})", f"not ({a})")
        found = self.column(sides)
        assert found is not None
        c, kind = found
        if "id" in c and self.chance(2):
            k = self.between(0, self.rows)
            return self.one(f"{c} = {k}", f"{c} > {k}", f"{c} <= {k}", f"{c} between {k} and {k + 3}", f"{c} % 3 = 1")
        if self.kinds[kind].tests and self.chance(2):
            return self.one(*self.kinds[kind].tests).format(c=c)
        if not self.ordered(kind) or self.chance(4):
            return self.one(f"{c} is null", f"{c} is not null")
        a, b = self.literal(kind), self.literal(kind)
        # A column is never compared with itself: deltalake takes that for true of nulls.
        other = self.column(sides, kind)
        assert other is not None
        other = other if other[0] != c else (a, kind)
        return self.one(
            f"{c} = {a}",
            f"{c} <> {a}",
            f"{c} < {a}",
            f"{c} >= {a}",
            f"({c} <=> {a})",
            f"({c} <=> null)",
            f"{c} in ({a}, {b})",
            f"{c} in ({a}, null)",
            f"{c} not in ({a}, {b})",
            f"{c} between {a} and {b}",
            f"{c} = {other[0]}",
            f"{c} <= {other[0]}",
        )

    def value(self, kind: str, sides: Sequence[str] = ("",), depth: int = 1) -> str:
        """An expression for a column of a kind."""
        if depth and self.chance(4):
            a, b = (self.value(kind, sides, depth - 1) for _ in range(2))
            return f"case when {self.predicate(sides, 0)} then {a} else {b} end"
        if self.chance(6):
            return "null"
        found = self.column(sides, kind)
        if found is not None and self.chance(2):
            c, _ = found
            return self.one(c, *(form.format(c=c) for form in self.kinds[kind].forms))
        return self.literal(kind)

    # --- statements

    def statement(self, command: str) -> str:
        """A statement of this command."""
        return getattr(self, "_" + command)()

    def _delete(self) -> str:
        return "DELETE FROM {t}" + ("" if self.chance(8) else f" WHERE {self.predicate()}")

    def _assignments(self, names: Sequence[str], sides: Sequence[str], target: str = "") -> str:
        """New values of these columns, or of fields of those that are structs, out of columns of these sides."""
        out = []
        for name in names:
            path, kind = target + quoted(name), self.columns[name]
            if kind == "struct" and self.chance(2):
                path, kind = self.one((f"{path}.x", "int"), (f"{path}.y.z", "string"), (f"{path}.y.d", "decimal"))
            out.append(f"{path} = {self.value(kind, sides)}")
        return ", ".join(out)

    def _update(self) -> str:
        names = self.some(sorted(self.columns), 3)
        return f"UPDATE {{t}} SET {self._assignments(names, ('',))}" + (
            "" if self.chance(8) else f" WHERE {self.predicate()}"
        )

    def _optimize(self) -> str:
        if self.cluster_by:
            return "OPTIMIZE {t} FULL" if self.chance(3) else "OPTIMIZE {t}"
        if self.partition_by and self.chance(2):
            name = self.one(*self.partition_by)
            return f"OPTIMIZE {{t}} WHERE {quoted(name)} = {self.literal(self.columns[name])}"
        return "OPTIMIZE {t}"

    def source(self, ids: Sequence[int | None], columns: dict[str, str] | None = None) -> str:
        """A new source; the place for it in the text."""
        self.sources.append(self.data(columns or self.columns, ids))
        return f"{{s{len(self.sources) - 1}}}"

    def _insert(self) -> str:
        listed = ", ".join(quoted(name) for name in self.columns)
        # Of no rows delta-spark makes no version, deltafast an empty one.
        ids = [self.between(0, 40) for _ in range(self.between(1, 6))]
        how = self.one("append", "append", "some", "by name", "overwrite", "where id", "where partition", "where")
        if how == "append":
            return f"INSERT INTO {{t}} SELECT {listed} FROM {self.source(ids)}"
        if how in ("some", "by name"):
            some = self.some(sorted(self.columns))
            listed = ", ".join(quoted(name) for name in some)
            target = f"({listed})" if how == "some" else "BY NAME"
            return f"INSERT INTO {{t}} {target} SELECT {listed} FROM {self.source(ids)}"
        if how == "overwrite":
            return f"INSERT OVERWRITE {{t}} SELECT {listed} FROM {self.source(ids)}"
        if how == "where id":
            k = self.between(0, self.rows)
            ids = [k + self.between(0, 20) for _ in range(self.between(0, 5))]
            return f"INSERT INTO {{t}} REPLACE WHERE id >= {k} SELECT {listed} FROM {self.source(ids)}"
        if how == "where partition" and self.partition_by:
            name = self.one(*self.partition_by)
            found = self.source(ids)
            value = self.one(*self.kinds[self.columns[name]].values)
            rows = self.sources[-1]
            at = rows.column_names.index(name)
            kind = self.kinds[self.columns[name]]
            self.sources[-1] = rows.set_column(at, name, pa.array([value] * rows.num_rows, kind.arrow))
            where = f"{quoted(name)} = {kind.spell(value)}"
            return f"INSERT INTO {{t}} REPLACE WHERE {where} SELECT {listed} FROM {found}"
        return f"INSERT INTO {{t}} REPLACE WHERE {self.predicate()} SELECT {listed} FROM {self.source(ids)}"

    def _merge(self) -> str:
        columns, evolve = dict(self.columns), ""
        if self.choices.evolves and self.chance(4):
            evolve = "WITH SCHEMA EVOLUTION "
            kind = self.one(*self.kinds)
            columns[f"new_{len(self.sources)}"] = kind
            dropped = [name for name in columns if name != "id"]
            if self.chance(2):
                del columns[self.one(*dropped)]
        top = self.rows + 8
        ids: list[int | None] = self.random.sample(range(top), self.between(0, 8))
        if self.chance(5):
            ids.append(None)
        if self.choices.ambiguous and self.chance(6):
            ids += ids[:1]
        source = self.source(ids, columns)
        own = _Drawer(self.random, self.choices)
        own.columns, own.rows = {n: k for n, k in columns.items() if n in self.columns}, self.rows
        on = self._on(own)
        clauses: list[str] = []
        for kind, most in (("MATCHED", 3), ("NOT MATCHED", 2), ("NOT MATCHED BY SOURCE", 2)):
            count = self.between(0, most)
            clauses += [self._clause(kind, n == count - 1, own, columns) for n in range(count)]
        if not clauses:
            clauses = [
                "WHEN MATCHED THEN UPDATE SET *"
                if columns.keys() >= self.columns.keys()
                else "WHEN MATCHED THEN DELETE"
            ]
        return f"MERGE {evolve}INTO {{t}} AS t USING {source} AS s ON {on} " + " ".join(clauses)

    def _on(self, own: _Drawer) -> str:
        """A condition of a MERGE; `own` draws of the columns that the source has, too."""
        on = "t.id = s.id"
        how = self.one("id", "id", "id", "null safe", "target", "source", "both", "other", "false")
        if how == "null safe":
            on = "(t.id <=> s.id)"
        elif how == "target":
            on += f" and {self.predicate(('t',), 1)}"
        elif how == "source":
            on += f" and {own.predicate(('s',), 1)}"
        elif how == "both":
            on += f" and {own.predicate(('s', 't'), 1)}"
        elif how == "other":
            name = self.one(*(n for n in own.columns if self.ordered(own.columns[n])))
            on += f" and (t.{quoted(name)} <=> s.{quoted(name)})"
        elif how == "false":
            on = "false"
        return on

    def _clause(self, kind: str, last: bool, own: _Drawer, columns: dict[str, str]) -> str:
        sides = {"MATCHED": ("t", "s"), "NOT MATCHED": ("s",), "NOT MATCHED BY SOURCE": ("t",)}[kind]
        both = own if "s" in sides else self
        condition = "" if last and self.chance(2) else f" AND {both.predicate(sides, 1)}"
        whole = columns.keys() >= self.columns.keys()
        if kind == "NOT MATCHED":
            if self.chance(2) and whole:
                return f"WHEN NOT MATCHED{condition} THEN INSERT *"
            names = self.some(sorted(self.columns))
            values = ", ".join(both.value(self.columns[name], sides) for name in names)
            return f"WHEN NOT MATCHED{condition} THEN INSERT ({', '.join(map(quoted, names))}) VALUES ({values})"
        if self.chance(3):
            return f"WHEN {kind}{condition} THEN DELETE"
        if kind == "MATCHED" and self.chance(2) and whole:
            return f"WHEN MATCHED{condition} THEN UPDATE SET *"
        names = self.some(sorted(both.columns), 3)
        return f"WHEN {kind}{condition} THEN UPDATE SET {both._assignments(names, sides, 't.')}"
