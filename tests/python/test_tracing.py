"""The spans that OpenTelemetry gets."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import TableNotFoundError


@pytest.fixture
def exporter(monkeypatch) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


def test_commits_and_opens_are_spans_below_the_current_one(exporter, tmp_path):
    begun = time.time_ns()
    with trace.get_tracer("program").start_as_current_span("job"):
        write_deltalake(tmp_path, {"id": [1, 2, 3]})
        table = DeltaTable(tmp_path)
        table.delete("id = 1")
    *spans, job = exporter.get_finished_spans()
    assert [span.name for span in spans] == ["deltafast.commit", "deltafast.open", "deltafast.commit"]
    for span in spans:
        assert span.parent.span_id == job.context.span_id
        assert begun <= span.start_time <= span.end_time <= job.end_time
        assert span.attributes["deltafast.table"] == table.table_uri
    written, _, deleted = spans
    assert (written.attributes["db.operation.name"], deleted.attributes["db.operation.name"]) == ("WRITE", "DELETE")
    assert (written.attributes["deltafast.version"], deleted.attributes["deltafast.version"]) == (0, 1)
    assert written.attributes["deltafast.attempts"] == 1
    assert written.attributes["deltafast.metrics.numOutputRows"] == "3"


def test_the_choice_of_files_of_a_scan_is_a_span(exporter, tmp_path):
    for day in ("mon", "tue"):
        write_deltalake(tmp_path, {"id": [1, 2], "day": [day, day]}, mode="append", partition_by=["day"])
    table = DeltaTable(tmp_path)
    exporter.clear()
    assert table.to_pyarrow_table(filters=[("day", "=", "mon")]).num_rows == 2
    assert list(table.scan(predicate="id > 2")) == []
    by_day, by_id = exporter.get_finished_spans()
    for span, after_partition, files in ((by_day, 1, 1), (by_id, 2, 0)):
        assert span.name == "deltafast.plan"
        assert dict(span.attributes) == {
            "deltafast.table": table.table_uri,
            "deltafast.version": 1,
            "deltafast.files_total": 2,
            "deltafast.files_after_partition": after_partition,
            "deltafast.files": files,
        }


def test_what_fails_is_no_span(exporter, tmp_path):
    with pytest.raises(TableNotFoundError):
        DeltaTable(tmp_path / "missing")
    assert exporter.get_finished_spans() == ()


def test_a_program_without_tracing_does_not_import_it(tmp_path):
    program = (
        "import sys, deltafast; "
        f"deltafast.write_deltalake({str(tmp_path / 't')!r}, {{'id': [1]}}); "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
