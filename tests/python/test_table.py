"""The table handle: opening, moving, sharing, pickling, and what it says of itself."""

import copy
import datetime as dt
import gc
import json
import multiprocessing
import pathlib
import pickle
import shutil
import threading

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltafast import DeltaTable, Schema, convert_to_deltalake, exceptions
from support import same_rows


class TestOpening:
    def test_takes_paths_as_text_or_path_objects(self, events_path):
        assert DeltaTable(str(events_path)) == DeltaTable(events_path) == DeltaTable(f"file://{events_path}")

    def test_takes_a_version_or_a_timestamp(self, events_path):
        assert DeltaTable(events_path, 1).version() == 1
        first = DeltaTable(events_path, version=0).timestamp()
        assert DeltaTable(events_path, timestamp=first).version() == 0
        assert DeltaTable(events_path, timestamp=first.isoformat()).version() == 0
        with pytest.raises(exceptions.InvalidArgumentError, match="not both"):
            DeltaTable(events_path, version=0, timestamp=first)

    def test_accepts_the_loading_options_of_deltalake(self, events_path):
        table = DeltaTable(events_path, without_files=True, log_buffer_size=3, skip_stats=True)
        assert table.table_config == (True, 3, True)
        assert table.count() == 90

    def test_a_missing_table_is_file_not_found(self, tmp_path):
        for path in (tmp_path, tmp_path / "nothing"):
            with pytest.raises(FileNotFoundError, match=str(path)) as caught:
                DeltaTable(path)
            assert isinstance(caught.value, exceptions.TableNotFoundError)

    def test_a_missing_version_is_named(self, events_path):
        with pytest.raises(exceptions.VersionNotFoundError, match="7"):
            DeltaTable(events_path, version=7)

    def test_distinguishes_tables_from_other_folders(self, events_path, tmp_path):
        assert DeltaTable.is_deltatable(events_path)
        assert not DeltaTable.is_deltatable(tmp_path)
        assert not DeltaTable.is_deltatable(str(tmp_path / "nothing"))

    def test_a_zone_that_does_not_exist_is_refused(self, events_path):
        with pytest.raises(ValueError, match="Nowhere"):
            DeltaTable(events_path, time_zone="Nowhere/Land").files()


class TestMoving:
    def test_goes_to_versions_and_back_to_the_newest(self, events):
        events.load_as_version(0)
        assert (events.version(), events.count()) == (0, 30)
        events.load_as_version(1)
        assert (events.version(), events.count()) == (1, 60)
        events.update_incremental()
        assert (events.version(), events.count()) == (2, 90)

    @pytest.mark.parametrize("bad", [None, 1.5, True, b"1"])
    def test_refuses_what_is_no_version(self, events, bad):
        with pytest.raises(TypeError, match="version must be"):
            events.load_as_version(bad)

    def test_refuses_text_that_is_no_timestamp(self, events):
        with pytest.raises(exceptions.InvalidArgumentError, match="yesterday"):
            events.load_as_version("yesterday")

    def test_a_timestamp_before_the_table_is_refused(self, events):
        with pytest.raises(exceptions.VersionNotFoundError):
            events.load_as_version("1999-01-01")

    def test_sees_new_commits_only_when_asked_to(self, tmp_path):
        deltalake.write_deltalake(tmp_path, pa.table({"x": [1]}))
        table = DeltaTable(tmp_path)
        deltalake.write_deltalake(tmp_path, pa.table({"x": [2]}), mode="append")
        assert table.to_pyarrow_table().num_rows == 1
        table.update_incremental()
        assert table.to_pyarrow_table().num_rows == 2

    def test_a_reader_keeps_the_version_it_began_with(self, events):
        events.load_as_version(0)
        reader, frame, dataset = events.scan(), events.scan_polars(), events.to_pyarrow_dataset()
        events.load_as_version(2)
        assert reader.read_all().num_rows == 30
        assert frame.collect().height == 30
        assert dataset.count_rows() == 30

    def test_the_schema_follows_the_version(self, tmp_path):
        deltalake.write_deltalake(tmp_path, pa.table({"x": [1]}))
        deltalake.write_deltalake(tmp_path, pa.table({"x": [2], "y": ["a"]}), mode="append", schema_mode="merge")
        table = DeltaTable(tmp_path)
        assert [field.name for field in table.schema().fields] == ["x", "y"]
        table.load_as_version(0)
        assert [field.name for field in table.schema().fields] == ["x"]


class TestSharing:
    def test_a_pickle_reopens_at_the_same_version(self, events):
        events.load_as_version(1)
        for twin in (pickle.loads(pickle.dumps(events)), copy.copy(events), copy.deepcopy(events)):
            assert twin == events
            assert twin.version() == 1
            assert twin.schema() == events.schema()

    def test_a_pickle_keeps_every_option(self, events_path):
        table = DeltaTable(events_path, storage_options={"timeout": "30s"}, skip_stats=True, time_zone="Asia/Tokyo")
        twin = pickle.loads(pickle.dumps(table))
        assert twin._handle.storage_options == {"timeout": "30s"}
        assert twin.table_config == table.table_config
        assert twin._handle.time_zone == "Asia/Tokyo"

    @pytest.mark.parametrize("method", ["spawn", "fork"])
    def test_crosses_into_other_processes(self, events, method):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(count_rows, [events, events]) == [90, 90]

    def test_many_threads_read_one_table(self, events):
        counts, errors = [], []

        def work():
            try:
                counts.append((events.count("id < 45"), events.to_pyarrow_table(filters="id < 45").num_rows))
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert counts == [(45, 45)] * 8

    def test_threads_that_update_never_go_back(self, tmp_path):
        deltalake.write_deltalake(tmp_path, pa.table({"x": [0]}))
        table = DeltaTable(tmp_path)
        seen = []

        def follow():
            for _ in range(20):
                table.update_incremental()
                seen.append(table.version())

        threads = [threading.Thread(target=follow) for _ in range(4)]
        for thread in threads:
            thread.start()
        for value in range(1, 6):
            deltalake.write_deltalake(tmp_path, pa.table({"x": [value]}), mode="append")
        for thread in threads:
            thread.join()
        table.update_incremental()
        assert table.version() == 5
        assert max(seen) <= 5

    def test_a_handle_is_not_hashable_since_it_moves(self, events):
        with pytest.raises(TypeError):
            hash(events)

    def test_handles_are_equal_at_the_same_version(self, events_path):
        assert DeltaTable(events_path) == DeltaTable(events_path)
        assert DeltaTable(events_path) != DeltaTable(events_path, 0)
        assert DeltaTable(events_path) != "events"


def count_rows(table):
    return table.to_pyarrow_table().num_rows


class TestFacts:
    def test_repr_names_location_and_version_but_no_secret(self, events_path):
        assert repr(DeltaTable(events_path)) == f"DeltaTable('file://{events_path}/', version=2)"
        options = {"aws_secret_access_key": "very-secret"}
        assert "very-secret" not in repr(DeltaTable(events_path, storage_options=options))

    def test_detail_is_describe_detail(self, events, events_path):
        detail = events.detail()
        files = list(events_path.glob("day=*/*.parquet"))
        assert detail["format"] == "delta"
        assert detail["name"] == "events"
        assert detail["description"] == "what happened"
        assert detail["partitionColumns"] == ["day"]
        assert detail["clusteringColumns"] == []
        assert detail["numFiles"] == len(files)
        assert detail["sizeInBytes"] == sum(file.stat().st_size for file in files)
        assert detail["properties"]["delta.enableChangeDataFeed"] == "true"
        assert detail["lastModified"] == events.timestamp()
        assert detail["createdAt"].tzinfo is not None

    def test_a_table_without_partitions_has_none(self, tmp_path):
        deltalake.write_deltalake(tmp_path, pa.table({"x": [1]}))
        assert DeltaTable(tmp_path).partitions() == []

    def test_files_are_paths_as_in_the_log(self, events, events_path):
        assert sorted(f"{events_path}/{path}" for path in events.files()) == sorted(events.file_uris())

    def test_partition_values_of_every_type_read_as_the_log_has_them(self, tmp_path):
        row = {
            "b": pa.array([True]),
            "i": pa.array([-3], pa.int32()),
            "d": pa.array([dt.date(2026, 1, 2)]),
            "t": pa.array([dt.datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
            "s": pa.array(["a b/ü"]),
            "x": pa.array([1]),
        }
        deltalake.write_deltalake(tmp_path, pa.table(row), partition_by=["b", "i", "d", "t", "s"])
        assert DeltaTable(tmp_path).partitions() == deltalake.DeltaTable(tmp_path).partitions()

    def test_plan_counts_what_a_predicate_prunes(self, events):
        plan = events.plan("day = DATE'2026-01-01' AND id < 30")
        assert plan["files_total"] > plan["files_after_partition"] > plan["files"] == 1


class TestScanning:
    def test_gives_all_rows_with_the_tables_types(self, events, event_table):
        found = events.scan().read_all()
        assert found.schema == pa.schema(events.schema())
        same_rows(found, event_table)

    def test_gives_columns_in_the_order_asked(self, events, event_table):
        assert events.scan(["name", "id"]).read_all().column_names == ["name", "id"]
        same_rows(events.scan(["name", "id"]).read_all(), event_table.select(["name", "id"]))

    @pytest.mark.parametrize("columns", [["nothing"], ["id", "nothing"]])
    def test_refuses_columns_that_are_not_there(self, events, columns):
        with pytest.raises(exceptions.InvalidArgumentError, match="nothing"):
            events.scan(columns).read_all()

    @pytest.mark.parametrize("limit", [0, 1, 17, 90, 1000])
    def test_stops_at_the_limit(self, events, limit):
        assert events.scan(limit=limit).read_all().num_rows == min(limit, 90)
        assert events.to_pyarrow_table(limit=limit).num_rows == min(limit, 90)
        assert events.to_polars(limit=limit).height == min(limit, 90)

    def test_keeps_batches_within_the_size_asked(self, events):
        assert max(batch.num_rows for batch in events.scan(batch_size=4)) <= 4

    def test_adds_metadata_columns(self, events, event_table):
        found = events.scan(["id"], metadata_columns=["file_path", "row_index"]).read_all()
        assert found.column_names == ["id", "file_path", "row_index"]
        assert set(found.column("file_path").to_pylist()) <= set(events.file_uris()) | set(events.files())
        assert found.num_rows == event_table.num_rows

    def test_counts_rows(self, events, event_table):
        assert events.count() == 90
        assert events.count("day IS NULL") == event_table.column("day").null_count
        assert events.count("amount > 100") == sum(1 for v in event_table["amount"].to_pylist() if v and v > 100)

    def test_string_views_are_given_on_request(self, events):
        assert pa.types.is_string_view(events.scan(["name"], string_view=True).schema.field("name").type)
        assert pa.types.is_string(events.scan(["name"]).schema.field("name").type)

    def test_a_pyarrow_table_keeps_order_and_repeats_of_columns(self, events):
        assert events.to_pyarrow_table(columns=["id", "name", "id"]).column_names == ["id", "name", "id"]

    @pytest.mark.parametrize(("op", "value"), [("=", {"a": 1}), ("in", [["2026-01-01"]])])
    def test_a_container_is_no_partition_value(self, events, op, value):
        with pytest.raises(exceptions.InvalidArgumentError, match="Could not encode partition value for type"):
            events.to_pyarrow_dataset([("day", op, value)])

    def test_old_partition_filters_leave_out_files(self, events):
        found = events.to_pyarrow_table(partitions=[("day", "=", "2026-01-02")], columns=["day"])
        assert set(found.column("day").to_pylist()) == {dt.date(2026, 1, 2)}


class TestReader:
    def test_reads_batch_by_batch(self, events):
        reader = events.scan(batch_size=10)
        first = reader.read_next_batch()
        assert isinstance(first, pa.RecordBatch)
        assert first.num_rows + reader.read_all().num_rows == 90
        with pytest.raises(StopIteration):
            reader.read_next_batch()

    def test_hands_itself_over_once(self, events):
        reader = events.scan()
        assert not reader.closed
        assert pa.table(reader).num_rows == 90
        assert reader.closed

    def test_turns_into_a_pyarrow_reader(self, events):
        assert isinstance(events.scan().to_pyarrow(), pa.RecordBatchReader)
        assert events.scan().to_pyarrow().read_all().num_rows == 90

    def test_can_be_left_early(self, events):
        with events.scan(batch_size=1) as reader:
            next(reader)
        assert reader.closed
        reader.close()

    def test_reports_progress(self, events):
        seen = []
        reader = events.scan(progress=lambda *state: seen.append(state))
        reader.read_all()
        assert reader.progress()[0] == reader.progress()[1] == len(events.files())
        assert seen[-1] == reader.progress()

    def test_errors_in_the_stream_keep_their_class_and_place(self, tmp_path):
        deltalake.write_deltalake(tmp_path, pa.table({"x": [1]}))
        file = next(tmp_path.glob("*.parquet"))
        file.unlink()
        table = DeltaTable(tmp_path)
        for read in (lambda: table.scan().read_all(), table.to_pyarrow_table, table.to_pandas, table.to_polars):
            with pytest.raises(exceptions.DataFileNotFoundError, match=file.name) as caught:
                read()
            assert caught.value.file == file.name

    def test_errors_of_a_stream_that_was_handed_over_can_be_asked_for(self, tmp_path):
        deltalake.write_deltalake(tmp_path, pa.table({"x": [1]}))
        next(tmp_path.glob("*.parquet")).write_bytes(b"PAR1 nonsense PAR1")
        reader = DeltaTable(tmp_path).scan()
        with pytest.raises((pa.ArrowException, OSError)):
            pa.table(reader)
        with pytest.raises(exceptions.CorruptDataError):
            reader.check()


class TestArrowStream:
    def test_anything_that_speaks_arrow_takes_the_table(self, events, event_table):
        same_rows(pa.table(events), event_table)
        same_rows(pa.table(events), event_table)
        assert pa.schema(events) == pa.schema(events.schema())

    def test_a_stream_outlives_its_table(self, events_path):
        reader = DeltaTable(events_path).scan().to_pyarrow()
        gc.collect()
        assert reader.read_all().num_rows == 90


def test_schema_is_a_schema(events):
    assert isinstance(events.schema(), Schema)


def test_domain_metadata_is_empty_without_any(events):
    assert events.domain_metadata() == {}


def test_a_filter_on_the_base_of_a_generated_partition_column_prunes_partitions(tmp_path: pathlib.Path) -> None:
    """`day` is `cast(ts as date)`: a range of `ts` leaves only the days that it touches."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    fields = [
        {"name": "ts", "type": "timestamp", "nullable": True, "metadata": {}},
        {
            "name": "day",
            "type": "date",
            "nullable": True,
            "metadata": {"delta.generationExpression": "CAST(ts AS DATE)"},
        },
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    lines: list[dict[str, object]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}},
        {
            "metaData": {
                "id": "t",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": ["day"],
                "configuration": {},
            }
        },
    ]
    lines += [
        {
            "add": {
                "path": f"{n}",
                "partitionValues": {"day": f"2026-01-{n:02}"},
                "size": 1,
                "modificationTime": 0,
                "dataChange": True,
            }
        }
        for n in range(1, 29)
    ]
    (log / f"{0:020}.json").write_text("\n".join(json.dumps(line) for line in lines))
    plan = DeltaTable(str(tmp_path)).plan("ts >= TIMESTAMP'2026-01-20 00:00:00Z'")
    assert plan["files_total"] == 28
    assert plan["files_after_partition"] <= 11


SMALL_FILES = 150


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    for n in range(SMALL_FILES):
        rows = {
            "id": [n * 10 + k for k in range(n % 7)],
            "text": [None if k == 2 else f"{n}-{'x' * k * 9}" for k in range(n % 7)],
        }
        pq.write_table(pa.table(rows, pa.schema({"id": pa.int64(), "text": pa.string()})), folder / f"{n:03}.parquet")
    convert_to_deltalake(folder)
    return DeltaTable(folder)


class TestSmallFiles:
    """Small files of a local table are read together."""

    @pytest.mark.parametrize("views", [False, True])
    def test_their_rows_come_in_few_batches(self, small, views):
        batches = list(small.scan(string_view=views))
        assert 1 < len(batches) < SMALL_FILES / 5
        rows = [row for batch in batches for row in pa.record_batch(batch).to_pylist()]
        ids = [n * 10 + k for n in range(SMALL_FILES) for k in range(n % 7)]
        assert sorted(row["id"] for row in rows) == ids
        strings = {row["id"]: row["text"] for row in rows}
        assert [strings[i] for i in ids] == [None if i % 10 == 2 else f"{i // 10}-{'x' * (i % 10) * 9}" for i in ids]

    def test_batches_that_name_their_file_are_of_one(self, small):
        batches = [pa.record_batch(batch) for batch in small.scan(["id"], metadata_columns=["file_path", "row_index"])]
        paths = [set(batch["file_path"].to_pylist()) for batch in batches]
        assert all(len(path) == 1 for path in paths)
        assert len(set.union(*paths)) == sum(n % 7 > 0 for n in range(SMALL_FILES))
        for batch in batches:
            assert batch["row_index"].to_pylist() == list(range(len(batch)))

    def test_a_batch_is_no_larger_than_asked(self, small):
        sizes = [len(batch) for batch in small.scan(batch_size=5)]
        assert max(sizes) == 5
        assert sum(sizes) == sum(n % 7 for n in range(SMALL_FILES))

    def test_progress_counts_files(self, small):
        seen = []
        for _ in small.scan(progress=lambda done, total: seen.append((done, total))):
            pass
        assert seen[-1] == (SMALL_FILES, SMALL_FILES)

    def test_one_that_is_missing_is_named(self, small, tmp_path):
        copy = tmp_path / "t"
        shutil.copytree(small.table_uri.removeprefix("file://"), copy)
        (copy / "077.parquet").unlink()
        with pytest.raises(exceptions.DataFileNotFoundError, match=r"077\.parquet"):
            list(DeltaTable(copy).scan())
