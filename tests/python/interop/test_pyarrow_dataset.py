"""The pyarrow dataset over a table."""

import datetime as dt
import gc
import pickle

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pytest

from deltafast import DeltaTable, exceptions, write_deltalake
from support import same_rows

ID = pc.field("id")
# The last ones cannot be handed to the core and are left to pyarrow.
FILTERS = [
    (ID > 80),
    (ID == 3) | (ID >= 88),
    ~(ID > 3),
    pc.field("day") == dt.date(2026, 1, 1),
    pc.field("day").is_null() & (ID < 10),
    pc.field("name").isin(["name 1", "name 2"]),
    pc.field("amount") > 100.0,
    pc.field("amount").is_valid(),
    pc.starts_with(pc.field("name"), "name 3"),
    pc.bit_wise_and(ID, 1) == 1,
    (pc.bit_wise_and(ID, 1) == 1) & (ID > 80),
]


@pytest.fixture
def dataset(events):
    return events.to_pyarrow_dataset()


def test_is_a_pyarrow_dataset_with_the_tables_schema(dataset, events):
    assert isinstance(dataset, pads.Dataset)
    assert dataset.schema == pa.schema(events.schema())
    assert sorted(dataset.files) == sorted(events.file_uris())


@pytest.mark.parametrize("expression", FILTERS, ids=str)
def test_filters_as_pyarrow_does(dataset, event_table, expression):
    expected = event_table.filter(expression)
    same_rows(dataset.to_table(filter=expression), expected)
    same_rows(dataset.filter(expression).to_table(columns=["id", "name"]), expected.select(["id", "name"]))
    same_rows(pa.Table.from_batches(dataset.to_batches(filter=expression), dataset.schema), expected)
    assert dataset.count_rows(filter=expression) == expected.num_rows
    assert dataset.head(3, filter=expression).num_rows == min(3, expected.num_rows)


@pytest.mark.parametrize("expression", FILTERS, ids=str)
def test_a_table_reads_with_the_same_filters(events, event_table, expression):
    same_rows(events.to_pyarrow_table(filters=expression), event_table.filter(expression))
    found = events.to_pyarrow_table(filters=expression, columns=["id"], limit=2)
    assert found.num_rows == min(2, event_table.filter(expression).num_rows)


def test_several_filters_all_hold(dataset):
    chain = dataset.filter(ID > 10).filter(ID < 20).filter(pc.bit_wise_and(ID, 1) == 1)
    assert sorted(chain.to_table(filter=pc.field("name").is_valid()).column("id").to_pylist()) == [11, 13, 17, 19]
    assert chain.count_rows() == 5


def test_columns_are_names_or_expressions(dataset):
    assert dataset.to_table(columns=["name", "id", "name"]).column_names == ["name", "id", "name"]
    found = dataset.to_table(columns={"double": ID * 2, "n": pc.field("name")}, filter=ID < 5)
    assert sorted(found.column("double").to_pylist()) == [0, 2, 4, 6, 8]
    assert dataset.to_table(columns={"n": pc.field("name")}).column_names == ["n"]
    assert dataset.to_table(columns=[]).num_rows == 90


def test_only_the_columns_asked_for_are_read(dataset, monkeypatch):
    asked = []
    names = dataset._names

    def spy(columns):
        asked.append(names(columns))
        return asked[-1]

    monkeypatch.setattr(dataset, "_names", spy)
    dataset.to_table(columns=["id"], filter=ID > 3)
    dataset.to_table(columns={"n": pc.field("name")})
    assert asked == [["id"], ["name"]]


def test_other_types_can_be_asked_for(events):
    large = events.to_pyarrow_dataset(as_large_types=True)
    assert large.schema.field("name").type == pa.large_string()
    assert large.to_table(filter=ID < 3).schema == large.schema
    schema = large.schema.set(0, pa.field("id", pa.float64()))
    found = events.to_pyarrow_dataset(schema=schema).to_table(columns=["id"], filter=ID < 3)
    assert found.schema.field("id").type == pa.float64()
    assert set(found.column("id").to_pylist()) == {0.0, 1.0, 2.0}


def test_files_can_be_left_out_beforehand(events):
    dataset = events.to_pyarrow_dataset(file_pruning_predicate="day = '2026-01-01'")
    assert set(dataset.to_table().column("day").to_pylist()) == {dt.date(2026, 1, 1)}
    assert dataset.count_rows() == 30
    assert events.to_pyarrow_dataset(partitions=[("day", "=", "2026-01-01")]).count_rows() == 30


def test_in_memory_work_goes_through_pyarrow(dataset):
    assert dataset.sort_by("id").to_table().column("id").to_pylist() == list(range(90))
    assert dataset.take([0, 1]).num_rows == 2


def test_joins_in_memory(tmp_path):
    deltalake.write_deltalake(tmp_path, pa.table({"id": [1, 2, 3], "x": [1, 2, 3]}))
    dataset = DeltaTable(tmp_path).to_pyarrow_dataset()
    small = dataset.filter(ID < 3)
    assert small.join(dataset, "id", right_suffix="_r").to_table().num_rows == 2
    assert small.join_asof(dataset.sort_by("id"), on="id", by="x", tolerance=0, right_on="id").to_table().num_rows == 2


def test_can_be_written_elsewhere(dataset, event_table, tmp_path):
    pads.write_dataset(dataset, tmp_path, format="parquet")
    same_rows(pads.dataset(tmp_path).to_table(), event_table)


def test_pickles(dataset, event_table):
    same_rows(pickle.loads(pickle.dumps(dataset.filter(ID < 5))).to_table(), event_table.filter(ID < 5))


def test_a_scanner_outlives_dataset_and_table(events_path):
    reader = DeltaTable(events_path).to_pyarrow_dataset().scanner(columns=["id"]).to_reader()
    gc.collect()
    assert reader.read_all().num_rows == 90


def test_code_that_goes_round_the_scanner_fails_rather_than_misreads(dataset):
    with pytest.raises(OSError, match="read by deltafast"):
        pads.UnionDataset(dataset.schema, [dataset]).to_table()


class TestPlainFiles:
    def test_are_given_when_a_file_system_is(self, events, events_path, event_table):
        for below in (f"file://{events_path}", pafs.SubTreeFileSystem(str(events_path), pafs.LocalFileSystem())):
            dataset = events.to_pyarrow_dataset(filesystem=below)
            assert type(dataset) is pads.FileSystemDataset
            same_rows(dataset.to_table(), event_table)
            same_rows(events.to_pyarrow_table(filesystem=below, filters=[("id", ">", 80)]), event_table.filter(ID > 80))

    def test_are_given_when_read_options_are(self, events):
        dataset = events.to_pyarrow_dataset(parquet_read_options=pads.ParquetReadOptions(dictionary_columns={"name"}))
        assert pa.types.is_dictionary(dataset.to_table(columns=["name"]).schema.field("name").type)

    def test_know_their_partition_values(self, events):
        fragments = list(events.to_pyarrow_dataset().get_fragments(pc.field("day") == dt.date(2026, 1, 1)))
        assert len(fragments) == 3

    @pytest.mark.parametrize("expression", FILTERS, ids=str)
    def test_are_filtered_as_pyarrow_does(self, events, event_table, expression):
        dataset = events.to_pyarrow_dataset(parquet_read_options=pads.ParquetReadOptions())
        same_rows(dataset.to_table(filter=expression), event_table.filter(expression))

    def test_know_their_statistics(self, tmp_path):
        timestamp = dt.datetime(2026, 1, 1, 0, 0, 0, 500, dt.UTC)
        columns = {
            "n": pa.int64(),
            "d": pa.date32(),
            "t": pa.timestamp("us", "UTC"),
            "s": pa.string(),
            "x": pa.float64(),
        }
        files = [
            {
                "n": [1, 2],
                "d": [dt.date(2026, 1, 1)] * 2,
                "t": [timestamp] * 2,
                "s": ["a", "b"],
                "x": [0.5, float("nan")],
            },
            {
                "n": [5, None],
                "d": [dt.date(2026, 1, 2), None],
                "t": [None, None],
                "s": ["c" * 40, "d"],
                "x": [1.5, None],
            },
        ]
        schema = pa.schema(list(columns.items()))
        for rows in files:
            write_deltalake(tmp_path, pa.table(rows, schema), mode="append")
        dataset = DeltaTable(tmp_path).to_pyarrow_dataset(parquet_read_options=pads.ParquetReadOptions())
        for expression, fragments, count in [
            (pc.field("n") > 2, 1, 1),
            (pc.field("n").is_null(), 1, 1),
            (pc.field("d") == dt.date(2026, 1, 2), 1, 1),
            (pc.field("t") == timestamp, 1, 2),
            (pc.field("t") > timestamp + dt.timedelta(milliseconds=3), 0, 0),
            (pc.field("t").is_null(), 1, 2),
            (pc.field("s") == "c" * 40, 1, 1),
            (pc.field("s") < "a", 1, 0),
            (pc.field("x") > 0, 2, 2),
        ]:
            assert len(list(dataset.get_fragments(expression))) == fragments, expression
            assert dataset.count_rows(filter=expression) == count, expression

    def test_are_refused_where_pyarrow_would_read_wrong_rows(self, tmp_path):
        configuration = {"delta.columnMapping.mode": "name"}
        deltalake.DeltaTable.create(tmp_path, pa.schema([("x", pa.int64())]), configuration=configuration)
        table = DeltaTable(tmp_path)
        with pytest.raises(exceptions.DeltaProtocolError, match="columnMapping") as caught:
            table.to_pyarrow_dataset(filesystem=f"file://{tmp_path}")
        assert caught.value.feature == "columnMapping"
        assert table.to_pyarrow_dataset().count_rows() == 0
