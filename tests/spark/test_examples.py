"""The pipeline of `examples/` does what it says."""

from __future__ import annotations

import importlib.util
import pathlib

import pytest

from deltafast import DeltaTable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def test_the_pipeline(spark, tmp_path, capsys):
    path = pathlib.Path(__file__).parents[2] / "examples" / "pipeline.py"
    spec = importlib.util.spec_from_file_location("pipeline", path)
    assert spec is not None
    assert spec.loader is not None
    pipeline = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pipeline)
    found = pipeline.run(spark, str(tmp_path))
    assert capsys.readouterr().out.splitlines()[:2] == [
        "silver: 3 new, 0 fixed, 0 gone",
        "silver: 1 new, 1 fixed, 1 gone",
    ]
    assert found["monday"] == 60
    assert found["gold"] == [("ada", 1, 10.0), ("bob", 1, 26.0), ("cy", 1, 40.0)]
    assert found["history"] == ["OPTIMIZE", "MERGE", "MERGE", "CREATE TABLE"]
    assert DeltaTable(tmp_path / "bronze").count() == len(pipeline.MONDAY) + len(pipeline.TUESDAY)
