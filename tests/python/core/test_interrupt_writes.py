"""Ctrl-C at random instants of a command that changes something: the table is the old one or the new one, the caller
learns which, and nothing half written stays. `test_interrupt.py` does the same at chosen instants.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from deltafast import DeltaTable, write_deltalake

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(sys.platform == "win32", reason="signals to a child are another matter there"),
]

SEED = int(os.environ.get("DELTAFAST_INTERRUPT_SEED", "0")) or int.from_bytes(os.urandom(3), "big")

# Runs a call again and again, each on a copy of the table, and interrupts it at random instants; tells of each what
# became of it: how it ended, the seconds from the signal to the end, the notes of the exception.
CHILD = """
import json, random, shutil, signal, sys, threading, time, traceback
import pyarrow as pa
import deltafast
from deltafast import DeltaTable, convert_to_deltalake, write_deltalake

base, folder, seed, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rows = 400_000
data = pa.table({"id": range(rows), "text": [f"text {n % 1000}" for n in range(rows)]})
batches = data.to_batches(max_chunksize=20_000)

def prepare(n):
    path = f"{folder}/{n}"
    shutil.copytree(base, path)
    return path

def call(path):
    CALL

main = threading.get_ident()
choose = random.Random(seed)
times = []
for name in ("first", "second", "third"):
    path = prepare(name)
    begun = time.monotonic()
    call(path)
    times.append(time.monotonic() - begun)
# The first takes longer than any after it, and a busy machine makes single ones slow.
usual = min(times)
for n in range(rounds):
    path = prepare(n)
    sent = []
    def strike():
        sent.append(time.monotonic())
        signal.pthread_kill(main, signal.SIGINT)
    timer = threading.Timer(choose.random() * usual * 1.1, strike)
    out = {"path": path, "end": "interrupted", "notes": [], "cause": None, "waited": 0.0, "where": ""}
    try:
        timer.start()
        try:
            call(path)
            out["end"] = "done"
        except KeyboardInterrupt as interrupt:
            out |= {"notes": getattr(interrupt, "__notes__", []), "cause": repr(interrupt.__cause__)}
            out["waited"] = time.monotonic() - sent[0]
            out["where"] = traceback.extract_tb(interrupt.__traceback__)[-1].line
        timer.join()
        time.sleep(0.001)
    except KeyboardInterrupt:
        pass
    print(json.dumps(out), flush=True)
"""


def table(path: Path) -> Path:
    """Thirty small files, some ended, some orphans that a vacuum takes."""
    for n in range(10):
        write_deltalake(path, pa.table({"id": [n] * 3, "text": ["x"] * 3}), mode="append")
    write_deltalake(path, pa.table({"id": [3], "text": ["y"]}), mode="overwrite", predicate="id = 3")
    long_ago = time.time() - 86400
    for n in range(200):
        orphan = path / f"orphan-{n}.parquet"
        orphan.write_bytes(b"PAR1")
        os.utime(orphan, (long_ago, long_ago))
    return path


#: The core looks for signals every 50 milliseconds: calls that take less are not interrupted.
PLAIN_FILES = 1500


def plain(path: Path) -> Path:
    """Parquet files without a log."""
    import pyarrow.parquet as pq

    path.mkdir()
    for n in range(PLAIN_FILES):
        pq.write_table(pa.table({"id": [n], "text": ["x"]}), path / f"{n}.parquet")
    return path


def strike(tmp_path: Path, base: Path, call: str, rounds: int) -> list[dict]:
    (tmp_path / "copies").mkdir()
    command = [
        sys.executable,
        "-c",
        CHILD.replace("CALL", call),
        str(base),
        str(tmp_path / "copies"),
        str(SEED),
        str(rounds),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, f"seed {SEED}: {done.stderr[-3000:]}"
    ends = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(ends) == rounds
    shown = f"seed {SEED}: {[(end['end'], round(end['waited'], 3), end['notes']) for end in ends]}"
    assert any(end["end"] == "interrupted" for end in ends), shown
    for end in ends:
        assert end["cause"] in (None, "None"), (shown, end)
        # Half a second, and what a busy machine takes.
        assert end["waited"] < 1.5, (shown, end)
        left = [file for file in Path(end["path"]).rglob("*") if file.name.endswith(".tmp")]
        assert not left, (shown, end, left)
    # A signal in the microseconds between the core's last look and the caller's next line is Python's own affair.
    return [end for end in ends if end["end"] == "done" or "_core." in end["where"] or ".run(" in end["where"]]


def happened(end: dict) -> bool:
    """Whether the caller was told that it happened."""
    return end["end"] == "done" or any("it is done" in note for note in end["notes"])


def test_an_append_is_committed_or_not_and_the_caller_knows(tmp_path):
    base = table(tmp_path / "base")
    before = DeltaTable(base)
    for end in strike(tmp_path, base, "write_deltalake(path, iter(batches), mode='append')", 25):
        after = DeltaTable(end["path"])
        assert after.version() == before.version() + happened(end), (SEED, end)
        assert after.count() == before.count() + 400_000 * happened(end), (SEED, end)
        # Files of an append that was stopped are gone, too.
        known = set(after.files()) | {row["path"] for row in after.tombstones().read_all().to_pylist()}
        left = {file.name for file in Path(end["path"]).glob("part-*.parquet")} - known
        assert not left, (SEED, end)


def test_an_overwrite_is_committed_or_not_and_the_caller_knows(tmp_path):
    base = table(tmp_path / "base")
    before = DeltaTable(base)
    call = "write_deltalake(path, data, mode='overwrite', schema_mode='overwrite')"
    for end in strike(tmp_path, base, call, 15):
        after = DeltaTable(end["path"])
        assert after.version() == before.version() + happened(end), (SEED, end)
        assert after.count() == (400_000 if happened(end) else before.count()), (SEED, end)


def test_a_checkpoint_is_whole_or_not_there(tmp_path):
    base = table(tmp_path / "base")
    before = DeltaTable(base).to_pyarrow_table().sort_by("id")
    for end in strike(tmp_path, base, "DeltaTable(path).create_checkpoint()", 25):
        log = Path(end["path"]) / "_delta_log"
        found = list(log.glob(f"{DeltaTable(base).version():020}.checkpoint.parquet"))
        if happened(end):
            assert found
        assert DeltaTable(end["path"]).to_pyarrow_table().sort_by("id") == before, (SEED, end)


def test_a_vacuum_that_is_stopped_needs_nothing_back(tmp_path):
    base = table(tmp_path / "base")
    before = DeltaTable(base).to_pyarrow_table().sort_by("id")
    call = "DeltaTable(path).vacuum(1, dry_run=False, enforce_retention_duration=False, full=True)"
    for end in strike(tmp_path, base, call, 25):
        after = DeltaTable(end["path"])
        assert after.to_pyarrow_table().sort_by("id") == before, (SEED, end)
        left = len(list(Path(end["path"]).glob("orphan-*")))
        operations = [entry["operation"] for entry in after.history()]
        # What was deleted was told before, and that it ended after.
        assert operations.count("VACUUM START") == operations.count("VACUUM END") <= 1, (SEED, end, operations)
        if happened(end):
            assert (left, operations[0]) == (0, "VACUUM END"), (SEED, end)
        elif left < 200:
            assert operations[0] == "VACUUM END", (SEED, end, left)


def test_a_conversion_makes_a_table_or_none(tmp_path):
    base = plain(tmp_path / "base")
    for end in strike(tmp_path, base, "convert_to_deltalake(path)", 25):
        assert DeltaTable.is_deltatable(end["path"]) == happened(end), (SEED, end)
        if happened(end):
            assert DeltaTable(end["path"]).count() == PLAIN_FILES


def test_a_restore_is_committed_or_not_and_the_caller_knows(tmp_path):
    base = table(tmp_path / "base")
    before = DeltaTable(base)
    for end in strike(tmp_path, base, "DeltaTable(path).restore(5)", 25):
        after = DeltaTable(end["path"])
        assert after.version() == before.version() + happened(end), (SEED, end)
        assert after.count() == (18 if happened(end) else before.count()), (SEED, end)


@pytest.mark.parametrize("vectors", ["false", "true"])
@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("DeltaTable(path).delete('id % 2 = 1')", ["x"]),
        ("DeltaTable(path).update({'text': '\\'y\\''}, predicate='id % 2 = 1')", ["x", "y"]),
    ],
    ids=["delete", "update"],
)
def test_a_change_of_rows_is_committed_or_not_and_the_caller_knows(tmp_path, call, values, vectors):
    base = tmp_path / "base"
    # Marking rows takes less time than writing them.
    count = 400_000 if vectors == "false" else 4_000_000
    data = pa.table({"id": pa.array(range(count)), "text": pa.repeat("x", count)})
    write_deltalake(base, data, configuration={"delta.enableDeletionVectors": vectors})
    for end in strike(tmp_path, base, call, 12):
        after = DeltaTable(end["path"])
        assert after.version() == int(happened(end)), (SEED, end)
        counts = after.to_pyarrow_table(columns=["text"]).group_by("text").aggregate([([], "count_all")])
        found = sorted(zip(*(column.to_pylist() for column in counts.select(["text", "count_all"])), strict=True))
        assert found == ([(value, count // 2) for value in values] if happened(end) else [("x", count)]), (SEED, end)
        # Files of one that was stopped are gone, too.
        log = "".join(file.read_text() for file in (Path(end["path"]) / "_delta_log").glob("0*.json"))
        left = [file.name for file in Path(end["path"]).glob("part-*.parquet") if file.name not in log]
        assert not left, (SEED, end)
        marked = len(list(Path(end["path"]).glob("*.bin")))
        assert marked == (happened(end) and vectors == "true"), (SEED, end)


MERGE = (
    "DeltaTable(path).merge(data, 't.id = s.id and t.text = \\'x\\' and s.id % 2 = 1', 's', 't')"
    ".when_matched_update({'text': '\\'y\\''}).execute()"
)


@pytest.mark.parametrize("vectors", ["false", "true"])
@pytest.mark.parametrize(
    ("call", "changes"),
    [
        (MERGE, True),
        ("DeltaTable(path).optimize.compact()", False),
        ("DeltaTable(path).optimize.z_order(['text', 'id'])", False),
        ("DeltaTable(path).optimize.cluster()", False),
        ("DeltaTable(path).optimize.purge()", False),
    ],
    ids=["merge", "compact", "z-order", "cluster", "purge"],
)
def test_a_merge_or_a_new_layout_is_committed_or_not_and_the_caller_knows(tmp_path, call, changes, vectors):
    base = tmp_path / "base"
    for start in range(0, 400_000, 50_000):
        data = pa.table({"id": range(start, start + 50_000), "text": ["x"] * 50_000})
        configuration = {"delta.enableDeletionVectors": vectors, "delta.columnMapping.mode": "name"}
        write_deltalake(base, data.append_column("old", data["id"]), mode="append", configuration=configuration)
    if "cluster" in call:
        DeltaTable(base).alter.cluster_by(["id", "text"])
    # What a purge is for.
    DeltaTable(base).alter.drop_columns(["old"])
    before = DeltaTable(base).version()
    for end in strike(tmp_path, base, call, 12):
        after = DeltaTable(end["path"])
        assert after.version() == before + happened(end), (SEED, end)
        rows = after.to_pyarrow_table().sort_by("id")
        assert rows["id"].to_pylist() == list(range(400_000)), (SEED, end)
        assert rows["text"].to_pylist().count("y") == 200_000 * (happened(end) and changes), (SEED, end)
        log = "".join(file.read_text() for file in (Path(end["path"]) / "_delta_log").glob("0*.json"))
        left = [file.name for file in Path(end["path"]).glob("part-*.parquet") if file.name not in log]
        assert not left, (SEED, end)
        marked = len(list(Path(end["path"]).glob("*.bin")))
        assert marked == (happened(end) and changes and vectors == "true"), (SEED, end)


def test_a_clone_is_a_table_or_none_and_the_caller_knows(tmp_path):
    base = table(tmp_path / "base")
    before = DeltaTable(base).to_pyarrow_table().sort_by("id")
    for end in strike(tmp_path, base, "DeltaTable(path).clone(path + '/../clone-of-' + path.rpartition('/')[2])", 25):
        clone = Path(end["path"]).parent / f"clone-of-{Path(end['path']).name}"
        assert DeltaTable.is_deltatable(clone) == happened(end), (SEED, end)
        if happened(end):
            assert DeltaTable(clone).to_pyarrow_table().sort_by("id") == before, (SEED, end)
