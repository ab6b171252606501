"""The model of a table in memory: columns, rows, and what the log says of them."""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from conformance import compare

from .types import ColumnType, draw_type, json_fields

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from .predicates import Predicate, Row


@dataclasses.dataclass
class Contents:
    """Columns and rows of one version."""

    columns: dict[str, ColumnType]
    rows: list[Row]
    #: Features of `readers.FEATURES` that depend on the version.
    features: frozenset[str] = frozenset()


@dataclasses.dataclass
class Model:
    """A table."""

    #: The column by which MERGE finds rows: a long that is unique; `None` in a table without columns.
    key: str | None
    partition_by: list[str]
    cluster_by: list[str]
    configuration: dict[str, str]
    contents: Contents
    #: Contents by version that RESTORE may bring back.
    versions: dict[int, Contents] = dataclasses.field(default_factory=dict)
    next_key: int = 0

    @property
    def columns(self) -> dict[str, ColumnType]:
        """Return the columns of the newest version."""
        return self.contents.columns

    @property
    def rows(self) -> list[Row]:
        """Return the rows of the newest version."""
        return self.contents.rows

    @rows.setter
    def rows(self, rows: list[Row]) -> None:
        self.contents.rows = rows

    @property
    def is_mapped(self) -> bool:
        """Whether names in files are others than those of columns."""
        return "delta.columnMapping.mode" in self.configuration

    @property
    def families(self) -> set[str]:
        """Return the rows of the coverage table that the table belongs to."""
        return {column_type.family for column_type in self.columns.values()}

    @property
    def features(self) -> frozenset[str]:
        """Return what a reader must support."""
        features = set(self.contents.features)
        if self.is_mapped:
            features.add("columnMapping")
        if self.configuration.get("delta.enableDeletionVectors") == "true":
            features.add("deletionVectors")
        if self.configuration.get("delta.checkpointPolicy") == "v2":
            features.add("v2Checkpoint")
        if self.configuration.get("delta.enableTypeWidening") == "true":
            features.add("typeWidening")
        if any(_has_variant(column_type.delta) for column_type in self.columns.values()):
            features.add("variantType")
        if self.partition_by:
            features.add("partitioned")
        if any(self.columns[name].family == "decimal" for name in self.partition_by):
            features.add("decimalPartitions")
        if any(_is_escaped_in_paths(name) for name in self.partition_by):
            features.add("escapedPartitionNames")
        if not self.columns:
            features.add("noColumns")
        return frozenset(features)

    def require(self, feature: str) -> None:
        """Note a feature that the table has from this version on."""
        self.contents.features |= {feature}

    def commit(self, version: int) -> None:
        """Remember the contents of a version."""
        self.versions[version] = Contents(dict(self.columns), copy.copy(self.rows), self.contents.features)

    def draw_rows(self, chance: random.Random, count: int, columns: dict[str, ColumnType] | None = None) -> list[Row]:
        """Draw rows with new keys."""
        rows = []
        for _ in range(count):
            row: Row = {}
            for name, column_type in (columns or self.columns).items():
                row[name] = (
                    None if chance.randrange(5) == 0 else draw_value(chance, column_type, name in self.partition_by)
                )
            if self.key is not None:
                row[self.key] = self.next_key
                self.next_key += 1
            rows.append(row)
        return rows

    def stored(self, row: Row) -> Row:
        """Return a row as the table returns it: in partition columns an empty string or binary is null."""
        return {
            name: None if name in self.partition_by and value in ("", b"") else value for name, value in row.items()
        }

    def matches(self, predicate: Predicate) -> list[Row]:
        """Return the rows for which a predicate is true."""
        return [row for row in self.rows if predicate.holds(row)]

    def to_arrow(self) -> pa.Table:
        """Return the rows."""
        return arrow_table(self.rows, self.columns)


def draw_value(chance: random.Random, column_type: ColumnType, is_partition: bool) -> Any:
    """Draw a value; a partition value cannot be the text that stands for null in folders."""
    value = column_type.draw_value(chance)
    return "a=b/c" if is_partition and value == "__HIVE_DEFAULT_PARTITION__" else value


def _is_escaped_in_paths(name: str) -> bool:
    """Whether the folders of partition values do not have the name as it is."""
    return name.endswith((".", " ")) or any(c < " " or c in "\"#%'*/:=?\\{[]^\x7f" for c in name)


def _has_variant(delta: Any) -> bool:
    return '"variant"' in json.dumps(delta)


def arrow_schema(columns: dict[str, ColumnType]) -> pa.Schema:
    """Return the schema of data to write; a variant is an extension type."""
    variant = {"ARROW:extension:name": "arrow.parquet.variant", "ARROW:extension:metadata": ""}
    return pa.schema(
        [
            pa.field(name, column_type.arrow, metadata=variant if column_type.family == "variant" else None)
            for name, column_type in columns.items()
        ]
    )


def arrow_table(rows: list[Row], columns: dict[str, ColumnType]) -> pa.Table:
    """Return rows as Arrow data."""
    schema = arrow_schema(columns)
    if not columns:
        # The only way to a table of rows without columns.
        return pa.table({"x": pa.nulls(len(rows))}).select([])
    arrays = [pa.array([row[name] for row in rows], column_type.arrow) for name, column_type in columns.items()]
    return pa.Table.from_arrays(arrays, schema=schema)


def row_strings(table: pa.Table, columns: dict[str, ColumnType]) -> list[str]:
    """Return each row of a table as text."""
    return compare.row_strings(table, json_fields(columns))


def describe(value: Any, limit: int = 400) -> str:
    """Return a value for a report, cut where it is long."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else f"{text[: limit // 2]} .. ({len(text)} characters) .. {text[-limit // 2 :]}"


def draw_columns(chance: random.Random, names: Sequence[str], families: Sequence[str]) -> dict[str, ColumnType]:
    """Return a column of each family."""
    return {name: draw_type(chance, family) for name, family in zip(names, families, strict=True)}
