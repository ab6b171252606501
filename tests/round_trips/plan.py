"""Rounds: which table a round makes and what happens to it, so that a full run covers each cell.

A full run has `SHARES` x `ROUNDS_OF_SHARE` rounds. What a round covers is fixed by its number; names, values and
arguments are drawn from the seed.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import pyarrow as pa

from .model import Contents, Model, draw_columns
from .names import INTERNAL_NAMES, draw_names
from .operations import OPERATIONS
from .readers import READERS, readers_of
from .types import FAMILIES, PRIMITIVES, ColumnType, decimal_type, deep_type, draw_type, of_family

SHARES = 24
ROUNDS_OF_SHARE = 4
ROUNDS = SHARES * ROUNDS_OF_SHARE

#: Cells of the coverage table: family of a type, operation, reader.
Cell = tuple[str, str, str]

#: Families that can be partition columns.
_PARTITIONABLE = [family for family in PRIMITIVES if family not in ("binary", "float", "double")]
#: Properties that a reader need not know, or that all readers know.
_WRITER_PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpointInterval": "2",
    "delta.dataSkippingNumIndexedCols": "3",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.targetFileSize": "1kb",
}
_READER_PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.checkpointPolicy": "v2",
}
#: Operations after which the schema is another one, last in a round so that the others have all types.
_SCHEMA_CHANGES = ("merge schema", "add column", "widen column", "rename column", "drop column")
#: What an operation asks of readers.
_FEATURES_OF_OPERATIONS = {
    "merge schema": {"schemaChanged"},
    "add column": {"schemaChanged"},
    "rename column": {"columnMapping"},
    "drop column": {"columnMapping"},
    "widen column": {"typeWidening"},
}
#: Operations of special rounds only.
_OF_SPECIALS = ("append many",)
_SPECIALS = ("large", "wide", "no columns", "repeated lists", "deep", "decimals", "names", "many rows")


class Plan(NamedTuple):
    """A round: the table, and its operations in order."""

    number: int
    seed: int
    kind: str
    model: Model
    operations: list[str]

    @property
    def chance(self) -> random.Random:
        """Return the generator of what the operations draw."""
        return random.Random(f"steps/{self.seed}/{self.number}")

    def __str__(self) -> str:
        model = self.model
        return (
            f"round {self.number} of seed {self.seed} ({self.kind}): columns {model.columns}, key {model.key!r}, "
            f"partitioned by {model.partition_by}, clustered by {model.cluster_by}, {model.configuration}"
        )

    def planned_cells(self) -> set[Cell]:
        """Return the cells that the round covers whatever it draws; none if it is drawn freely."""
        if self.kind not in ("plain", "featured"):
            return set()
        cells: set[Cell] = set()
        features = set(self.model.features)
        for operation in self.operations:
            features |= _FEATURES_OF_OPERATIONS.get(operation, set())
            readers = readers_of(frozenset(features))
            cells |= {(family, operation, reader) for family in self.model.families for reader in readers}
        return cells


def applicable_cells() -> set[Cell]:
    """Return all cells but those of readers that lack a feature of the type or the operation."""
    return {
        (family, operation, name)
        for family in FAMILIES
        for operation in OPERATIONS
        if operation not in _OF_SPECIALS
        for name, reader in READERS.items()
        if not reader.unsupported & (_features_of(family) | _FEATURES_OF_OPERATIONS.get(operation, set()))
    }


def _features_of(family: str) -> set[str]:
    return {"variantType"} if family == "variant" else set()


def plan_round(seed: int, number: int) -> Plan:
    """Return a round of a seed."""
    chance = random.Random(f"table/{seed}/{number}")
    turn, kind = divmod(number, ROUNDS_OF_SHARE)
    make = (_plain, _featured, _drawn, _special)[kind]
    return make(chance, seed, number, turn)


def _rotated(operations: list[str], turn: int, count: int) -> list[str]:
    """Return the next operations of a rotation: in as many turns as it takes all come."""
    first = turn * count
    chosen = [operations[(first + n) % len(operations)] for n in range(min(count, len(operations)))]
    return [
        *(name for name in chosen if name not in _SCHEMA_CHANGES),
        *(name for name in _SCHEMA_CHANGES if name in chosen),
    ]


def _possible(*, partitioned: bool, clustered: bool, configuration: dict[str, str]) -> list[str]:
    return [
        name
        for name, operation in OPERATIONS.items()
        if name not in _OF_SPECIALS
        and operation.configuration.items() <= configuration.items()
        and operation.clustered in (None, clustered)
        and operation.partitioned in (None, partitioned)
    ]


def _model(
    chance: random.Random,
    columns: dict[str, ColumnType],
    configuration: dict[str, str],
    *,
    partitioned: bool = False,
    clustered: bool = False,
) -> Model:
    """Return an empty table: the columns, with a key at a random place."""
    taken = {name.lower() for name in columns}
    key = next(name for name in draw_names(chance, len(columns) + 200, configuration) if name.lower() not in taken)
    place = chance.randint(0, len(columns))
    items = list(columns.items())
    columns = dict([*items[:place], (key, of_family("long")), *items[place:]])
    of_files = [name for name, column_type in columns.items() if column_type.family in _PARTITIONABLE and name != key]
    partition_by = chance.sample(of_files, min(len(of_files), chance.choice([1, 1, 2]))) if partitioned else []
    ordered = [name for name, column_type in columns.items() if column_type.family in _CLUSTERABLE]
    if clustered:
        # Clustering columns need statistics, which the first 32 columns have.
        configuration.pop("delta.dataSkippingNumIndexedCols", None)
    cluster_by = chance.sample(ordered, min(len(ordered), 2)) if clustered else []
    return Model(key, partition_by, cluster_by, configuration, Contents(columns, []))


_CLUSTERABLE = [family for family in PRIMITIVES if family not in ("binary", "boolean")]


def _plain(chance: random.Random, seed: int, number: int, turn: int) -> Plan:
    """Every type that all readers have, in a table that all of them can read."""
    families = [family for family in FAMILIES if family != "variant"]
    configuration = dict(item for item in _WRITER_PROPERTIES.items() if chance.randrange(5) == 0)
    names = draw_names(chance, len(families), configuration)
    clustered, partitioned = turn % 4 == 1, turn % 4 == 3
    model = _model(
        chance, draw_columns(chance, names, families), configuration, partitioned=partitioned, clustered=clustered
    )
    possible = _possible(partitioned=partitioned, clustered=clustered, configuration=configuration)
    rotation = [name for name in possible if name != "append"]
    return Plan(number, seed, "plain", model, ["append", "append", *_rotated(rotation, turn, 6)])


def _featured(chance: random.Random, seed: int, number: int, turn: int) -> Plan:
    """Every type, in a table with features; each second one without variants, which `deltalake` cannot read."""
    families = [family for family in FAMILIES if family != "variant" or turn % 2]
    possible_properties = _WRITER_PROPERTIES | _READER_PROPERTIES
    configuration = dict(item for item in possible_properties.items() if chance.randrange(3) == 0)
    configuration["delta.columnMapping.mode"] = chance.choice(["name", "name", "id"])
    names = draw_names(chance, len(families), configuration)
    clustered, partitioned = turn % 8 in (2, 3), turn % 8 in (4, 5)
    if turn % 4 in (1, 2):
        configuration["delta.enableTypeWidening"] = "true"
    model = _model(
        chance, draw_columns(chance, names, families), configuration, partitioned=partitioned, clustered=clustered
    )
    mapped = {**configuration, "delta.columnMapping.mode": "name"}
    possible = _possible(partitioned=partitioned, clustered=clustered, configuration=mapped)
    always = [name for name in _SCHEMA_CHANGES[2:] if name in possible]
    rotation = [name for name in possible if name not in ("append", *always)]
    operations = ["append", "append", *_rotated(rotation, turn // 2, 5)]
    operations += always[: 1 + turn // 4 % 3] if turn % 2 else always
    return Plan(number, seed, "featured", model, operations)


def _drawn(chance: random.Random, seed: int, number: int, turn: int) -> Plan:
    """Anything."""
    properties = _WRITER_PROPERTIES | _READER_PROPERTIES
    properties |= {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    configuration = dict(item for item in properties.items() if chance.randrange(3) == 0)
    families = [chance.choice(FAMILIES) for _ in range(chance.randint(1, 9))]
    names = draw_names(chance, len(families), configuration)
    layout = chance.choice(["plain", "plain", "partitioned", "clustered"])
    partitioned, clustered = layout == "partitioned", layout == "clustered"
    model = _model(
        chance, draw_columns(chance, names, families), configuration, partitioned=partitioned, clustered=clustered
    )
    possible = _possible(partitioned=bool(model.partition_by), clustered=clustered, configuration=configuration)
    # Those that need a certain column come in the other rounds.
    possible = [name for name in possible if name not in ("drop column", "rename column", "widen column")]
    return Plan(number, seed, "drawn", model, ["append", *chance.choices(possible, k=chance.randint(4, 8))])


def _special(chance: random.Random, seed: int, number: int, turn: int) -> Plan:
    """What is large, wide, deep or empty."""
    special = _SPECIALS[turn % len(_SPECIALS)]
    operations = ["append", "append", "delete", "compact"]
    columns: dict[str, ColumnType] = {}
    configuration: dict[str, str] = {}
    if special == "large":
        sizes = [16 << 20, (16 << 20) + 1, 64 << 20]
        columns = {
            "text": _large(of_family("string"), sizes[turn // 8 % 3]),
            "data": _large(of_family("binary"), sizes[0]),
        }
        operations = ["append", "compact"]
    elif special == "wide":
        families = [chance.choice(PRIMITIVES) for _ in range((300, 1000, 5000)[turn // 8 % 3])]
        columns = {f"column {n}".replace(" ", "_"): draw_type(chance, family) for n, family in enumerate(families)}
        operations = ["append", "update", "checkpoint"]
    elif special == "no columns":
        model = Model(None, [], [], {}, Contents({}, []))
        return Plan(number, seed, special, model, ["checkpoint", "vacuum", "compact"])
    elif special == "repeated lists":
        columns = {"vector": _vector(chance.choice([0.0, 1.0]), 768)}
        operations = ["append many", "append many", "compact"]
    elif special == "deep":
        kinds = (("struct",), ("array",), ("map",), ("struct", "array", "map"))
        columns = {f"deep_{n}": deep_type(chance, 20 if n != 2 else 15, kind) for n, kind in enumerate(kinds)}
        operations += ["checkpoint", "merge", "upsert"]
    elif special == "decimals":
        columns = {f"decimal_{n}": decimal_type(n, chance.choice([0, n, n // 2])) for n in range(1, 39)}
        operations += ["update", "z-order", "merge"]
    elif special == "names":
        columns = {name: draw_type(chance, chance.choice(PRIMITIVES)) for name in _unlike(INTERNAL_NAMES)}
        configuration = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": str(turn < 8).lower()}
        operations += ["update", "merge", "upsert", "replace keys", "z-order", "purge", "restore"]
    else:
        columns = {family: draw_type(chance, family) for family in PRIMITIVES}
        operations = ["append many", "delete", "update", "merge", "z-order", "compact"]
    return Plan(number, seed, special, _model(chance, columns, configuration), operations)


def _unlike(names: tuple[str, ...]) -> list[str]:
    """Return names that differ where case is ignored."""
    return list({name.lower(): name for name in names}.values())


def _large(column_type: ColumnType, size: int) -> ColumnType:
    """Return the type with values that take much memory and few bytes in files."""
    units = {"string": ["x", " ", '{"a": 0}', "\N{SNOWMAN}"], "binary": [b"\x00", b"\xff", b"ab"]}[column_type.family]

    def draw_value(chance: random.Random) -> str | bytes:
        unit = chance.choice(units)
        length = len(unit.encode()) if isinstance(unit, str) else len(unit)
        return unit * (size // length + 1)

    return column_type._replace(draw_value=draw_value)


def _vector(value: float, length: int) -> ColumnType:
    """Return lists of zeros, or with a single other value."""
    zeros = [0.0] * length
    one_hot = [[*zeros[:n], value, *zeros[n + 1 :]] for n in range(8)]
    delta = {"type": "array", "elementType": "float", "containsNull": True}
    return ColumnType("array", delta, pa.list_(pa.float32()), lambda chance: chance.choice([zeros, *one_hot]))
