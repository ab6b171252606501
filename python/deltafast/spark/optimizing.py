"""`DeltaOptimizeBuilder`: OPTIMIZE of a table of the Spark API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast._sql import tree
from deltafast._sql.run_upkeep import run_optimize
from deltafast.spark._sql.argument_checks import columns_of
from deltafast.spark._sql.result_frames import answered
from deltafast.spark.exceptions import translated

if TYPE_CHECKING:
    from deltafast.spark.tables import DeltaTable

__all__ = ["DeltaOptimizeBuilder"]


class DeltaOptimizeBuilder:
    """Lays the files of a table out anew; made by `DeltaTable.optimize`. No row changes."""

    def __init__(self, table: DeltaTable) -> None:
        self._table = table
        self._filters: tuple[str, ...] = ()

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:  # noqa: N803 - delta-spark's names
        """Only partitions for which SQL over partition columns is true; several filters all hold.

        Raises:
            TypeError: The filter is no text.
        """
        if not isinstance(partitionFilter, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"partitionFilter must be a string (expression in SQL syntax), not {type(partitionFilter)}"
            raise TypeError(message)
        self._filters += (partitionFilter,)
        return self

    def executeCompaction(self) -> Any:  # noqa: N802
        """Pack small files into large ones; of a clustered table cluster what is new.

        Returns:
            A data frame with `path` and `metrics`, as in delta-spark.

        Raises:
            InvalidArgumentError: The filter names other columns than partition columns.
            CommitFailedError: Another writer changed the same files meanwhile.
        """
        return self._run(())

    def executeZOrderBy(self, *cols: Any) -> Any:  # noqa: N802
        """Lay rows out along the Z-order curve of some columns, given one by one or as a list.

        Returns:
            A data frame with `path` and `metrics`, as in delta-spark.

        Raises:
            TypeError: A column is no text.
            InvalidArgumentError: A column is not there, has no order or is a partition column.
            CommitFailedError: Another writer changed the same files meanwhile.
        """
        names = columns_of(cols, "Z-order column must be str.")
        return self._run(tuple((name,) for name in names))

    @translated()
    def _run(self, columns: tuple[tuple[str, ...], ...]) -> Any:
        where = " AND ".join(f"({text})" for text in self._filters)
        wanted = tree.Optimize(
            tree.TableName("table", by_path=False, pos=0),
            full=False,
            where=tree.Expression(where, 0) if where else None,
            zorder_by=columns,
        )
        return answered(self._table._session, run_optimize(wanted, self._table._tables()))
