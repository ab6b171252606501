"""Progress is reported from beside the work."""

import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import deltafast
from deltafast import DeltaTable, convert_to_deltalake, write_deltalake
from deltafast.progress import counted, watch


class Counted:
    def __init__(self):
        self.state = (0, 4)

    def progress(self):
        return self.state


def run(counted, progress):
    watching = watch(counted, progress)
    for done in (1, 2, 4):
        counted.state = (done, 4)
        time.sleep(0.01)
    watching.stop()


def test_no_progress_starts_no_thread():
    assert watch(Counted(), False) is None


def test_a_function_sees_the_last_state():
    seen = []
    run(Counted(), lambda *state: seen.append(state))
    assert seen[-1] == (4, 4)


def test_a_bar_is_drawn_on_standard_error(capsys):
    run(Counted(), True)
    drawn = capsys.readouterr().err
    assert "4/4 files" in drawn
    assert drawn.endswith("\n")


def test_a_tqdm_bar_is_advanced_and_closed():
    tqdm = pytest.importorskip("tqdm")
    with Path("/dev/null").open("w") as nowhere:
        bar = tqdm.tqdm(file=nowhere)
        run(Counted(), bar)
    assert (bar.n, bar.total) == (4, 4)
    assert bar.disable


def test_watching_ends_when_the_work_is_done_or_gone():
    counted = Counted()
    watching = watch(counted, lambda *_: None)
    counted.state = (4, 4)
    watching._thread.join(5)
    assert not watching._thread.is_alive()
    counted = Counted()
    watching = watch(counted, lambda *_: None)
    del counted
    watching._thread.join(5)
    assert not watching._thread.is_alive()


ROWS = 4000
VECTORS = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


def rows(start: int = 0, count: int = ROWS) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64()), "n": [1] * count})


@pytest.fixture(params=["copies", "vectors"])
def table(request, tmp_path) -> DeltaTable:
    """Four files."""
    for start in range(0, 4 * ROWS, ROWS):
        settings = {"configuration": VECTORS} if request.param == "vectors" and start == 0 else {}
        write_deltalake(tmp_path / "t", rows(start), mode="append", **settings)
    return DeltaTable(tmp_path / "t")


def some(table: DeltaTable) -> None:
    """Leave files behind that no version needs."""
    table.optimize.compact()
    table.optimize.z_order(["n"])


def marked(table: DeltaTable) -> None:
    """Delete some rows of each file by deletion vectors."""
    table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    table.delete("id % 9 = 0")


#: What is done, and to how many units it comes at least; None where it is not known how many there will be.
COMMANDS = {
    "delete": (lambda t, p: t.delete("id % 2 = 0 and n = 1", progress=p), 4),
    "update": (lambda t, p: t.update({"n": "n + 1"}, predicate="id % 1000 = 0", progress=p), 4),
    "merge": (lambda t, p: t.merge(rows(5), "target.id = source.id", progress=p).when_matched_delete().execute(), 1),
    "compact": (lambda t, p: t.optimize.compact(progress=p), 1),
    "checkpoint": (lambda t, p: t.create_checkpoint(progress=p), None),
    "restore": (lambda t, p: (t.delete(), t.restore(1, progress=p)), 2),
    "repair": (lambda t, p: t.repair(dry_run=True, progress=p), 4),
    "vacuum": (lambda t, p: (some(t), t.vacuum(0, False, False, full=True, progress=p)), 5),
    "write": (lambda t, p: write_deltalake(t, rows(), mode="append", progress=p), ROWS),
    "replace": (lambda t, p: write_deltalake(t, rows(), mode="overwrite", predicate="id < 4000", progress=p), ROWS),
    "sql": (lambda t, p: deltafast.sql("DELETE FROM t WHERE id % 2 = 0 AND n = 1", t=t, progress=p), 4),
    "constraint": (lambda t, p: t.alter.add_constraint({"small": "n < 9"}, progress=p), 4),
    "feature": (lambda t, p: (marked(t), t.alter.drop_feature("deletionVectors", progress=p)), 1),
    "due": (lambda t, p: ([t.alter.set_table_name(str(n)) for n in range(5)], t.delete("id % 9 = 0", progress=p)), 4),
    "clone": (lambda t, p: t.clone(Path(t.table_uri).parent / "clone", progress=p), None),
    "generate": (lambda t, p: t.generate(progress=p), 1),
    "scan": (lambda t, p: t.scan(progress=p).read_all(), 4),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_report_how_far_they_are(table, command):
    seen: list[tuple[int, int]] = []
    run, units = COMMANDS[command]
    run(table, lambda *state: seen.append(state))
    # A stream's own thread may still have to look.
    for _ in range(50):
        if seen and (units is None or seen[-1][0] == seen[-1][1]):
            break
        time.sleep(0.1)
    done, total = seen[-1]
    assert (done, total) == (4, 0) if units is None else done == total >= units, seen


def test_a_feed_and_a_conversion_report_it_too(tmp_path):
    for n in range(3):
        settings = {"configuration": VECTORS} if n == 0 else {}
        write_deltalake(tmp_path / "t", rows(n), mode="append", **settings)
    seen: list[tuple[int, int]] = []
    found = DeltaTable(tmp_path / "t").load_cdf(progress=lambda *state: seen.append(state))
    assert found.read_all().num_rows == 3 * ROWS
    for _ in range(50):
        if seen and seen[-1] == (3, 3):
            break
        time.sleep(0.1)
    assert seen[-1] == (3, 3)
    for log in (tmp_path / "t" / "_delta_log").iterdir():
        log.unlink()
    (tmp_path / "t" / "_delta_log").rmdir()
    seen.clear()
    convert_to_deltalake(tmp_path / "t", progress=lambda *state: seen.append(state))
    assert seen[-1] == (3, 3)


def test_rows_of_a_stream_have_no_total(tmp_path, capsys):
    batches = pa.RecordBatchReader.from_batches(rows().schema, iter(rows().to_batches()))
    write_deltalake(tmp_path, batches, progress=True)
    assert capsys.readouterr().err.splitlines()[-1].rpartition("\r")[2].startswith(f"{ROWS} rows, ")


def test_who_counts_around_goes_on_counting(table):
    inner: list[tuple[int, int]] = []
    outer: list[tuple[int, int]] = []
    with counted(lambda *state: outer.append(state)):
        table.delete("id % 2 = 0 and n = 1")
        table.delete("id % 3 = 0 and n = 1", progress=lambda *state: inner.append(state))
        table.delete("id % 5 = 0 and n = 1")
        # Other threads count for themselves.
        other = threading.Thread(target=lambda: DeltaTable(table.table_uri).to_pyarrow_table())
        other.start()
        other.join()
    table.delete("id % 7 = 0 and n = 1")
    assert inner[-1][0] == inner[-1][1] > 0
    assert outer[-1][0] == outer[-1][1] > inner[-1][1]
    assert outer[-1][1] <= 16


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match="progress must be"):
        watch(Counted(), "yes")
