"""The file list of large logs: damage on the way, and what a plan leaves for the next one."""

import json
import random
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltafast import DeltaTable, exceptions
from tablekit import log

FILES = 20_000
COLUMNS = (("id", "long"), ("score", "double"), ("name", "string"), ("day", "date"))


def statistics(number: int) -> str:
    low = {"id": number, "score": number / 4, "name": f"n{number:05}", "day": f"2024-01-{number % 28 + 1:02}"}
    high = {"id": number + 5, "score": number / 4 + 1, "name": f"n{number:05}x", "day": f"2024-02-{number % 28 + 1:02}"}
    return json.dumps(
        {"numRecords": 10, "minValues": low, "maxValues": high, "nullCount": dict.fromkeys(low, number % 3)}
    )


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A log of 20,000 files behind a checkpoint of more than 4 MiB in four row groups, and a commit after it."""
    table = log.Table(tmp_path_factory.mktemp("large"))
    rng = random.Random(5)
    adds = [
        log.add(f"part-{number:05}-{rng.randbytes(60).hex()}.parquet", 100 + number, stats=statistics(number))
        for number in range(FILES)
    ]
    half = FILES // 2
    table.commit(0, log.protocol(), log.metadata(columns=COLUMNS), *adds[:half])
    table.commit(1, *adds[half:])
    (file,) = table.checkpoint(1, row_group_size=FILES // 4, compression="none", use_dictionary=False)
    assert file.stat().st_size > 4 << 20
    table.last_checkpoint(1)
    gone = [adds[n]["add"]["path"] for n in (7, half, FILES - 1)]
    table.commit(2, *(log.remove(path) for path in gone), log.add("new.parquet", 1, stats=statistics(FILES)))
    paths = {add["add"]["path"] for add in adds} - set(gone) | {"new.parquet"}
    return table, file, paths


@pytest.fixture
def damaged(large, tmp_path):
    """Make a copy in which one column of one row group of the checkpoint is garbage."""
    table, file, paths = large

    def make(column: str, group: int) -> tuple[log.Table, set[str]]:
        copy = log.Table(shutil.copytree(table.folder, tmp_path / f"{column}-{group}"))
        data = bytearray((copy.log / file.name).read_bytes())
        groups = pq.read_metadata(file).row_group(group)
        (chunk,) = (c for i in range(groups.num_columns) if (c := groups.column(i)).path_in_schema == column)
        middle = chunk.data_page_offset + chunk.total_compressed_size // 2
        data[middle : middle + 4096] = b"\xff" * 4096
        (copy.log / file.name).write_bytes(data)
        return copy, paths

    return make


class TestDamageOnTheWay:
    @pytest.mark.parametrize("column", ["add.path", "add.stats", "add.size"])
    @pytest.mark.parametrize("group", [0, 3])
    def test_every_file_is_listed_once(self, damaged, column, group):
        table, paths = damaged(column, group)
        for flatten in (True, False):
            files = DeltaTable(str(table)).get_add_actions(flatten).column("path").to_pylist()
            assert len(files) == len(paths)
            assert set(files) == paths

    def test_a_stream_goes_on_after_what_it_gave(self, damaged):
        table, paths = damaged("add.stats", 3)
        stream = DeltaTable(str(table)).add_actions_stream()
        first = pa.record_batch(next(iter(stream)))
        assert 0 < first.num_rows < len(paths)
        rest = [path for batch in stream for path in pa.record_batch(batch).column("path").to_pylist()]
        assert sorted(first.column("path").to_pylist() + rest) == sorted(paths)

    def test_a_plan_starts_over(self, damaged):
        table, paths = damaged("add.path", 3)
        with pytest.warns(exceptions.DeltaWarning, match=r"00001\.checkpoint\.parquet"):
            assert len(DeltaTable(str(table)).file_uris()) == len(paths)
        with pytest.warns(exceptions.DeltaWarning, match=r"00001\.checkpoint\.parquet"):
            found = DeltaTable(str(table)).file_uris(file_pruning_predicate=f"id >= {FILES - 1}")
        assert min(uri.rsplit("/", 1)[-1][:10] for uri in found) == "new.parque"
        assert len(found) == 6

    def test_without_the_commits_the_error_names_the_checkpoint(self, damaged):
        table, _ = damaged("add.path", 3)
        table.drop_commits(0, 0)
        with pytest.raises(exceptions.CorruptLogError, match=r"00001\.checkpoint\.parquet"):
            DeltaTable(str(table)).get_add_actions()


class TestTheNextPlan:
    PREDICATES = (
        ("id BETWEEN 100 AND 110", 16),
        ("score < 1.0", 4),
        ("name = 'n00500'", 1),
        ("day > '2024-02-27'", FILES // 28),
        ("day IS NULL AND id < 3", 2),
    )

    @pytest.mark.parametrize("first", range(len(PREDICATES)))
    def test_reads_nothing_again(self, large, tmp_path, first):
        original, _, _ = large
        copy = log.Table(shutil.copytree(original.folder, tmp_path / "copy"))
        table = DeltaTable(str(copy))
        fresh = {
            text: len(DeltaTable(str(original)).file_uris(file_pruning_predicate=text)) for text, _ in self.PREDICATES
        }
        order = self.PREDICATES[first:] + self.PREDICATES[:first]
        assert len(table.file_uris(file_pruning_predicate=order[0][0])) == fresh[order[0][0]]
        shutil.rmtree(copy.log)
        for text, about in order:
            found = len(table.file_uris(file_pruning_predicate=text))
            assert found == fresh[text]
            assert abs(found - about) <= 3

    def test_follows_new_commits(self, large, tmp_path):
        original, _, _ = large
        copy = log.Table(shutil.copytree(original.folder, tmp_path / "copy"))
        table = DeltaTable(str(copy))
        before = len(table.file_uris(file_pruning_predicate="score < 1.0"))
        copy.commit(3, log.add("one.parquet", 1, stats=statistics(0)), log.add("two.parquet", 1, stats=statistics(100)))
        table.update_incremental()
        assert len(table.file_uris(file_pruning_predicate="score < 1.0")) == before + 1
        assert [u for u in table.file_uris(file_pruning_predicate="name = 'n00100'") if "two" in u]

    def test_parsed_statistics_are_read_when_asked_for(self, tmp_path):
        table = log.Table(tmp_path)
        adds = [log.add(f"{number}.parquet", 1, stats=statistics(number)) for number in range(50)]
        parsed = [
            {"add": add["add"] | {"stats": None, "stats_parsed": json.loads(add["add"]["stats"])}} for add in adds
        ]
        table.commit(0, log.protocol(), log.metadata(columns=COLUMNS), *adds)
        bounds = pa.struct([("id", pa.int64()), ("score", pa.float64()), ("name", pa.string())])
        counts = pa.struct([(name, pa.int64()) for name in ("id", "score", "name")])
        stats = [("numRecords", pa.int64()), ("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)]
        columns = {"add": pa.struct([*log.ADD, ("stats_parsed", pa.struct(stats))])}
        table.checkpoint(0, [*table.actions(0, 0)[:2], *parsed], columns=columns)
        table.last_checkpoint(0)
        handle = DeltaTable(str(table))
        for text, count in (("id < 3", 3), ("score < 1.0", 4), ("name < 'n00002'", 2), ("id < 3", 3)):
            assert len(handle.file_uris(file_pruning_predicate=text)) == count
