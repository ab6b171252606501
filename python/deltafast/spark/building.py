"""`DeltaTableBuilder`: a new table, column by column."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltafast.spark._scan.physical_columns import field_of
from deltafast.spark._sql.argument_checks import columns_of, refuse
from deltafast.spark._sql.catalog import handle
from deltafast.spark._sql.create_table import NewTable, create, where
from deltafast.spark.exceptions import UnsupportedTypeException, translated

if TYPE_CHECKING:
    from deltafast.spark._session.session import Session
    from deltafast.spark._sql.create_table import Mode
    from deltafast.spark.tables import DeltaTable

__all__ = ["DeltaTableBuilder", "IdentityGenerator"]


@dataclass
class IdentityGenerator:
    """How an identity column counts."""

    #: The first value.
    start: int = 1
    #: What each next one adds; not 0.
    step: int = 1


class DeltaTableBuilder:
    """What a new table is to be, with delta-spark's names; made by `DeltaTable.create` and its like.

    A table needs a location or a name. One with a name goes into the session's catalog, which must have something that
    reads Delta tables.
    """

    def __init__(
        self,
        session: Session,
        mode: Mode,
        made: type[DeltaTable],
    ) -> None:
        self._session = session
        self._mode: Mode = mode
        self._made = made
        self._name: str | None = None
        self._location: str | None = None
        self._comment: str | None = None
        self._fields: list[dict[str, Any]] = []
        self._partition: list[str] = []
        self._cluster: list[str] = []
        self._properties: dict[str, str] = {}

    def tableName(self, identifier: str) -> DeltaTableBuilder:  # noqa: N802 - delta-spark's names
        """The table's name in the session's catalog, or ``delta.`path` ``."""
        self._need_text("Identifier must be str.", identifier)
        self._name = identifier
        return self

    def location(self, location: str) -> DeltaTableBuilder:
        """Where the table is to be."""
        self._need_text("Location must be str.", location)
        self._location = location
        return self

    def comment(self, comment: str) -> DeltaTableBuilder:
        """What the table is."""
        self._need_text("Table comment must be str.", comment)
        self._comment = comment
        return self

    def addColumn(  # noqa: N802
        self,
        colName: str,  # noqa: N803
        dataType: Any,  # noqa: N803
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,  # noqa: N803
        generatedByDefaultAs: IdentityGenerator | None = None,  # noqa: N803
        comment: str | None = None,
    ) -> DeltaTableBuilder:
        """Add a column.

        Args:
            colName: Its name.
            dataType: DDL text or a type of PySpark.
            nullable: Whether it may be null.
            generatedAlwaysAs: SQL that computes it, or how it counts, so that nobody may give it values.
            generatedByDefaultAs: How it counts where nobody gives it a value.
            comment: What it is.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: Both ways of generating are given, or a step is 0.
            UnsupportedOperationException: A column that counts is no BIGINT.
            ParseException: The type is none.
        """
        from pyspark.sql.types import DataType, LongType

        self._need_text("Column name must be str.", colName)
        if not isinstance(dataType, (str, DataType)):
            refuse("Column data type must be str or DataType.", dataType)
        if type(nullable) is not bool:
            refuse("Column nullable must be bool.", nullable)
        if generatedAlwaysAs is not None and generatedByDefaultAs is not None:
            message = "generatedByDefaultAs and generatedAlwaysAs cannot both be set."
            raise ValueError(message)
        kind = DataType.fromDDL(dataType) if isinstance(dataType, str) else dataType
        metadata = _generated(generatedAlwaysAs, generatedByDefaultAs)
        if "delta.identity.step" in metadata and not isinstance(kind, LongType):
            message = f"the column `{colName}` counts, so it must be BIGINT, not {kind.simpleString().upper()}"
            raise UnsupportedTypeException(message, column=colName)
        if comment is not None:
            self._need_text("Column comment must be str.", comment)
            metadata["comment"] = comment
        self._fields.append(field_of(colName, json.loads(kind.json()), metadata) | {"nullable": nullable})
        return self

    def addColumns(self, cols: Any) -> DeltaTableBuilder:  # noqa: N802
        """Add the columns of a schema, a `StructType` or a list of `StructField`.

        Raises:
            TypeError: It is neither.
        """
        from pyspark.sql.types import StructField, StructType

        if isinstance(cols, list):
            fields: list[Any] = list(cols)  # pyright: ignore[reportUnknownArgumentType]
            for column in fields:
                if not isinstance(column, StructField):
                    refuse("Column in existing schema must be StructField.", column)
            cols = StructType(fields)
        if not isinstance(cols, StructType):
            refuse("Schema must be StructType or a list of StructField.", cols)
        self._fields += json.loads(cols.json())["fields"]
        return self

    def partitionedBy(self, *cols: Any) -> DeltaTableBuilder:  # noqa: N802
        """The partition columns, one by one or as a list."""
        self._partition = columns_of(cols, "Partitioning column must be str.")
        return self

    def clusterBy(self, *cols: Any) -> DeltaTableBuilder:  # noqa: N802
        """The columns by which it is clustered, one by one or as a list."""
        self._cluster = columns_of(cols, "Clustering column must be str.")
        return self

    def property(self, key: str, value: str) -> DeltaTableBuilder:
        """Set a table property."""
        self._need_text("Key and value of property must be string.", key)
        self._need_text("Key and value of property must be string.", value)
        self._properties[key] = value
        return self

    @translated()
    def execute(self) -> DeltaTable:
        """Make the table.

        Returns:
            The table; with `createIfNotExists` the one that is there.

        Raises:
            InvalidArgumentError: There is a table already, a place is missing, or a column or property is wrong.
            TableNotFoundError: There is nothing to replace.
        """
        path, name, _ = where(self._session, self._name, self._location)
        place = create(
            self._session,
            NewTable(
                self._mode,
                path,
                name,
                self._fields,
                self._partition,
                self._cluster,
                self._properties,
                self._comment,
            ),
        )
        return self._made(self._session, place, handle(self._session, place))

    def _need_text(self, what: str, value: Any) -> None:
        if not isinstance(value, str):
            refuse(what, value)


def _generated(always: Any, by_default: Any) -> dict[str, Any]:
    """What the metadata of a column say of how it is generated."""
    metadata: dict[str, Any] = {}
    if isinstance(always, str):
        metadata["delta.generationExpression"] = always
    elif isinstance(always, IdentityGenerator):
        metadata |= _identity(always, explicit=False)
    elif always is not None:
        refuse("Generated always as expression must be str or IdentityGenerator.", always)
    if isinstance(by_default, IdentityGenerator):
        metadata |= _identity(by_default, explicit=True)
    elif by_default is not None:
        refuse("Generated by default expression must be IdentityGenerator.", by_default)
    return metadata


def _identity(generator: IdentityGenerator, *, explicit: bool) -> dict[str, Any]:
    if generator.step == 0:
        message = "Column identity generation requires step to be non-zero."
        raise ValueError(message)
    return {
        "delta.identity.start": generator.start,
        "delta.identity.step": generator.step,
        "delta.identity.allowExplicitInsert": explicit,
    }
