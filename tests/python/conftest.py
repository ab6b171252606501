"""Tables for the tests of the Python layer, written by another implementation."""

import datetime as dt
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import servers

DAYS = [dt.date(2026, 1, 1), dt.date(2026, 1, 2), None]


def event_rows(count: int, start: int = 0) -> pa.Table:
    ids = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "amount": pa.array([i * 1.5 if i % 7 else None for i in ids], pa.float64()),
            "name": pa.array([f"name {i % 10}" if i % 5 else None for i in ids], pa.string()),
            "at": pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=i) for i in ids]),
            "tags": pa.array([[f"t{i}"] * (i % 3) for i in ids], pa.list_(pa.string())),
            "day": pa.array([DAYS[i % 3] for i in ids], pa.date32()),
        }
    )


@pytest.fixture(scope="session")
def events_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three versions of 30 rows each, partitioned by day (with a null day). Tests only read it."""
    path = tmp_path_factory.mktemp("tables") / "events"
    for version in range(3):
        deltalake.write_deltalake(
            path,
            event_rows(30, version * 30),
            mode="append",
            partition_by=["day"],
            name="events" if version == 0 else None,
            description="what happened" if version == 0 else None,
            configuration={"delta.enableChangeDataFeed": "true"} if version == 0 else None,
            commit_properties=deltalake.CommitProperties(app_transactions=[deltalake.Transaction("loader", version)]),
        )
    return path


@pytest.fixture(scope="session")
def event_table() -> pa.Table:
    """All rows of that table."""
    return event_rows(90)


@pytest.fixture
def events(events_path: Path):
    from deltafast import DeltaTable

    return DeltaTable(events_path)


@pytest.fixture(
    scope="module",
    params=[pytest.param("s3", marks=pytest.mark.slow), pytest.param("azure", marks=pytest.mark.slow), "gcs"],
)
def cloud(request):
    """Each kind of cloud in turn, one at a time; the server of the last is a part of this process."""
    with servers.cloud(request.param) as running:
        yield running
