"""A session for programs that were written for delta-spark, without Delta's jar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import deltafast.spark
from deltafast import DeltaTable, write_deltalake
from spark.sessions.started import Started, builder

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator

EXTENSION, CATALOG = "io.delta.sql.DeltaSparkSessionExtension", "org.apache.spark.sql.delta.catalog.DeltaCatalog"


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Give the folder of managed tables."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def started(warehouse: pathlib.Path) -> Iterator[Started]:
    """Give the session, which has the settings of a program for delta-spark, whose classes do not exist here."""

    def build() -> Any:
        made = builder("local[2]").config("spark.sql.extensions", EXTENSION)
        made = made.config("spark.sql.catalog.spark_catalog", CATALOG).config("spark.log.level", "OFF")
        made = made.config("spark.sql.session.timeZone", "America/St_Johns").config("spark.sql.shuffle.partitions", 1)
        return made.config("spark.sql.warehouse.dir", str(warehouse)).getOrCreate()

    started = Started(build)
    yield started
    started.stop()


@pytest.fixture
def spark(started: Started) -> Iterator[Any]:
    """Give the session with deltafast enabled."""
    deltafast.spark.enable(started.session())
    yield from started.isolated()


@pytest.fixture
def replaced(tmp_path: pathlib.Path) -> str:
    """Give a partitioned table of three versions, with a column that the second one added."""
    path = str(tmp_path / "replaced")

    def rows(ids: list[int], parts: list[int], **more: list[str]) -> pa.Table:
        return pa.table({"id": pa.array(ids, pa.int64()), "p": pa.array(parts, pa.int64()), **more})

    write_deltalake(path, rows(list(range(10)), [0, 1] * 5), partition_by=["p"])
    write_deltalake(path, rows([10, 11], [0, 1], more=["x", "x"]), mode="append", schema_mode="merge")
    write_deltalake(path, rows([70, 71], [1, 1], more=["y", "y"]), mode="overwrite", predicate="p = 1")
    assert sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist()) == [0, 2, 4, 6, 8, 10, 70, 71]
    return path
