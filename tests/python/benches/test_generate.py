"""The benchmarks' generator makes tables that independent readers understand."""

import hashlib
import json
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import report
import run
from bitmaps import VectorFile, z85
from checkpoints import last_checkpoint_text
from generate import TABLES, Table, ensure
from scenarios import SCENARIOS

deltalake = pytest.importorskip("deltalake")

SCALE = 0.0005
LOGS = [name for name in TABLES if name.startswith("log-")]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


def adds_of(table: Table) -> pa.Table:
    actions = pa.table(deltalake.DeltaTable(str(table.path)).get_add_actions(flatten=True))
    return actions.select(sorted(set(actions.column_names) - {"data_change", "modification_time"})).sort_by("path")


@pytest.mark.parametrize("name", LOGS)
def test_a_log_lists_its_files_with_statistics(cache, name):
    table = ensure(name, cache, SCALE)
    adds = adds_of(table)
    assert adds.num_rows == table.facts["files"]
    assert pc.sum(adds["size_bytes"]).as_py() == table.facts["size_bytes"]
    assert pc.sum(adds["num_records"]).as_py() == table.facts["rows"]
    for column in ("id", "score", "city", "event_time", "amount"):
        assert pc.all(pc.less_equal(adds[f"min.{column}"], adds[f"max.{column}"])).as_py()


def test_logs_of_one_size_hold_the_same_files(cache):
    logs = ["log-json", "log-checkpoint", "log-checkpoint-parsed", "log-checkpoint-crc", "log-v2"]
    first, *others = [adds_of(ensure(name, cache, SCALE)) for name in logs]
    assert all(other.equals(first) for other in others)


def test_typed_statistics_of_a_checkpoint_equal_the_json_ones(cache):
    table = ensure("log-checkpoint-parsed", cache, SCALE)
    add = pq.read_table(next(table.path.rglob("*.checkpoint.parquet")))["add"].combine_chunks().drop_null()
    strings = [json.loads(text) for text in add.field("stats").to_pylist()]
    parsed = add.field("stats_parsed").to_pylist()
    for text, typed in zip(strings, parsed, strict=True):
        assert text["numRecords"] == typed["numRecords"]
        assert text["nullCount"] == typed["nullCount"]
        for side in ("minValues", "maxValues"):
            values = typed[side]
            assert text[side]["id"] == values["id"]
            assert text[side]["score"] == values["score"]
            assert text[side]["city"] == values["city"]
            assert text[side]["event_time"] == values["event_time"].strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
            assert text[side].get("ship_date") == (values["ship_date"] and values["ship_date"].isoformat())
            assert text[side]["amount"] == pytest.approx(float(values["amount"]))


def test_the_rows_of_the_data_table_and_its_deletions_are_read(cache):
    whole = ensure("data", cache, SCALE)
    ids = set(pq.read_table(list(whole.path.glob("*.parquet")), columns=["id"])["id"].to_pylist())
    assert ids == set(range(whole.facts["rows"]))
    for name in ("data-dv1", "data-dv10"):
        table = ensure(name, cache, SCALE)
        left = pa.table(deltalake.DeltaTable(str(table.path)).scan(columns=["id"]))["id"].to_pylist()
        assert len(left) == len(set(left)) == table.facts["rows"] < whole.facts["rows"]
        assert ids >= set(left)


def test_deletion_vectors_are_decoded_to_the_right_counts(cache):
    whole = ensure("vectors", cache, SCALE)
    quarters = ensure("vectors-quarters", cache, SCALE)
    for paths in ([whole.path], [quarters.path / str(quarter) for quarter in range(4)]):
        keep = [
            pa.record_batch(batch)["selection_vector"]
            for path in paths
            for batch in deltalake.DeltaTable(str(path)).deletion_vectors()
        ]
        deleted = sum(len(mask.flatten()) - mask.flatten().true_count for mask in keep)
        assert sum(len(mask) for mask in keep) == whole.facts["files"]
        assert deleted == whole.facts["deleted"]


def test_every_kind_of_bitmap_block_decodes_to_the_rows_written(tmp_path):
    rng = np.random.default_rng(5)
    rows = {
        "one": np.array([0]),
        "array": np.sort(rng.choice(1_000_000, 5000, replace=False)),
        "bitmap": np.sort(rng.choice(200_000, 100_000, replace=False)),
        "runs": np.arange(70_000, 200_000),
        "mixed": np.concatenate([np.arange(5, 70_000), 2 * np.arange(40_000, 60_000), np.arange(400_000, 400_300)]),
        "few runs": np.concatenate([np.arange(100), np.arange(1000, 1200)]),
    }
    file = VectorFile(uuid.UUID(int=7))
    lines = [
        {
            "protocol": {"minReaderVersion": 3, "minWriterVersion": 7}
            | {f"{kind}Features": ["deletionVectors"] for kind in ("reader", "writer")}
        },
        {
            "metaData": {
                "id": str(uuid.UUID(int=1)),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(
                    {
                        "type": "struct",
                        "fields": [
                            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
                        ],
                    }
                ),
                "partitionColumns": [],
                "configuration": {},
            }
        },
        *(
            {
                "add": {
                    "path": f"{name.replace(' ', '_')}.parquet",
                    "partitionValues": {},
                    "size": 1,
                    "modificationTime": 0,
                    "dataChange": True,
                    "stats": json.dumps({"numRecords": 1_000_000}),
                    "deletionVector": file.add(values),
                }
            }
            for name, values in rows.items()
        ),
    ]
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / file.name).write_bytes(file.content())
    seen = {}
    for batch in deltalake.DeltaTable(str(tmp_path)).deletion_vectors():
        for row in pa.record_batch(batch).to_pylist():
            name = Path(row["filepath"]).stem.replace("_", " ")
            seen[name] = np.flatnonzero(~np.array(row["selection_vector"]))
    assert set(seen) == set(rows)
    for name, values in rows.items():
        assert np.array_equal(seen[name], values), name


def test_z85_and_the_hint_checksum_match_the_published_examples():
    assert z85(uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61").bytes) == "^-aqEH.-t@S}K{vb[*k^"
    hint = json.loads('{"k0":"\'v 0\'","k1":{"k2":2,"k3":["v3",[1,2],{"k4":"v4","k5":["v5","v6","v7"]}]}}')
    assert json.loads(last_checkpoint_text(hint))["checksum"] == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def measured(cache, out, names):
    """Run scenarios with a sample each; a process a sample."""
    chosen = [word for name in names for word in ("--only", name)]
    sizes = ["--scale", str(SCALE), "--samples", "1", "--without-duckdb"]
    assert run.main(["--cache", str(cache), *sizes, "--out", str(out), *chosen]) == 0
    results = json.loads(out.read_text())["scenarios"]
    assert set(results) == set(names)
    for name, found in results.items():
        assert found["wrong"] == []
        for contender, result in found["contenders"].items():
            assert result["samples"] or "absent" in result, (name, contender, result)
    page = out.with_suffix(".md").read_text()
    assert all(f'<a id="{name}">' in page for name in names)
    return results


@pytest.mark.slow
def test_a_scenario_runs_and_its_answers_are_right(cache, tmp_path):
    results = measured(cache, tmp_path / "results.json", ["update"])
    assert {name for name, found in results["update"]["contenders"].items() if found["samples"]} >= {
        "deltafast",
        "deltalake",
    }


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_scenarios_run_and_their_answers_are_right(cache, tmp_path):
    names = [
        "open",
        "files-json",
        "files-v2",
        "files-commits",
        "plan",
        "refresh",
        "checkpoint",
        "checkpoint-again",
        "scan-point",
        "scan-dv10",
        "vectors",
        "append-parts",
        "appends-4",
        "appends-10000",
        "counter",
        "convert",
        "vacuum",
        "delete-vectors",
        "update",
    ]
    results = measured(cache, tmp_path / "results.json", names)
    # Races that none wins would be an error of the sample; here it is told of what was counted.
    counted = results["counter"]["contenders"]["deltafast"]["samples"][0]["facts"]
    assert counted["lost"] == 0
    assert counted["done"] > 0


def test_goals_are_judged_by_medians():
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == "files-json")
    walls = {"deltafast": [1.0, 9.0, 1.2], "deltalake": [6.5, 6.0, 7.0], "floor: typed parse": [1.1]}
    found = {
        "contenders": {
            name: {
                "samples": [
                    {"phases": {"files": {"wall": wall, "cpu": wall, "peak_mb": 1}}, "facts": {}} for wall in of
                ]
            }
            for name, of in walls.items()
        }
    }
    judged = [report.judge(goal, scenario, found) for goal in scenario.goals]
    assert judged == [(True, "5.4x faster"), (True, "1.09x"), (False, "5.4x faster"), (False, "1.09x")]
    assert report.judge(scenario.goals[0], scenario, {"contenders": {}}) == (None, "")


def test_a_table_is_generated_once_and_again_only_for_other_parameters(tmp_path):
    first = ensure("log-json", tmp_path, SCALE)
    commit = first.path / "_delta_log" / f"{1:020}.json"
    written = commit.stat().st_mtime_ns, hashlib.md5(commit.read_bytes()).hexdigest()
    assert ensure("log-json", tmp_path, SCALE).facts == first.facts
    assert commit.stat().st_mtime_ns == written[0]
    record = tmp_path / f"{first.path.name}.json"
    record.write_text(record.read_text().replace('"format": ', '"format": 9'))
    ensure("log-json", tmp_path, SCALE)
    assert commit.stat().st_mtime_ns != written[0]
    assert hashlib.md5(commit.read_bytes()).hexdigest() == written[1]
    assert not list(tmp_path.glob(".*"))
    with pytest.raises(ValueError, match="no table"):
        ensure("log-nothing", tmp_path)
