"""Every case of the corpus, one test each: tables written by other implementations, answers by the reference."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from . import compare, corpus

if TYPE_CHECKING:
    import pathlib

READER = corpus.Reader()

# The version checksum of this table names files, transactions and domains that its log does not have.
LYING_CHECKSUM = "kernelrs-crc-full"

# What the error must be, for each reason of a `must_fail` case.
ERRORS = {
    "missing_protocol_or_metadata": "CorruptLogError",
    "log_gap": "CorruptLogError",
    "unsupported_protocol_version": "DeltaProtocolError",
    "unsupported_reader_feature": "DeltaProtocolError",
    "no_delta_table": "TableNotFoundError",
    "data_file_missing": "DataFileNotFoundError",
    "version_not_available": "VersionNotFoundError",
    "change_data_not_recorded": "ChangeDataNotRecordedError",
    "catalog_managed": "DeltaProtocolError",
}


def _errors() -> Any:
    from deltafast import exceptions

    return exceptions


def _clean(error: BaseException) -> str:
    """Return the message of an error after checking that it can be shown to a user."""
    message = str(error)
    assert message
    assert "\n" not in message
    assert "\x1b" not in message
    return message


def _check_version(path: pathlib.Path, case: dict[str, Any]) -> None:
    corpus.check_snapshot(READER.facts(path, case["requested_version"]), case)
    corpus.check_rows(READER.rows(path, case["requested_version"]), case["rows"])
    assert READER.count(path, case["requested_version"]) == case["rows"]["row_count"]


@pytest.mark.parametrize("case", corpus.cases("read", "time_travel"), ids=str)
def test_rows_and_snapshot_of_a_version(case: corpus.Case) -> None:
    """Snapshot, schema and rows of a version equal the reference's."""
    lies = case.table["name"] == LYING_CHECKSUM
    warned = pytest.warns(_errors().DeltaWarning) if lies else contextlib.nullcontext()
    with corpus.folder(case.table) as path, warned:
        _check_version(path, case.case)


@pytest.mark.parametrize("case", corpus.cases("snapshot"), ids=str)
def test_snapshot_of_a_version(case: corpus.Case) -> None:
    """The log alone is read as the reference reads it; where the case allows it, a clear refusal is as good."""
    with corpus.folder(case.table) as path:
        try:
            facts = READER.facts(path, case.case["requested_version"])
        except _errors().CorruptLogError as error:
            if "error_accepted" not in case.case:
                raise
            _clean(error)
            return
        corpus.check_snapshot(facts, case.case)


@pytest.mark.parametrize("case", corpus.cases("cdf"), ids=str)
def test_change_data_feed(case: corpus.Case) -> None:
    """The change data feed between two versions has the reference's columns and rows."""
    with corpus.folder(case.table) as path:
        changes = READER.changes(path, case.case["start_version"], case.case["end_version"])
    _check_changes(changes, case.case["rows"])


def _check_changes(changes: Any, want: dict[str, Any]) -> None:
    """Compare change rows; the commit timestamp may depend on file times, so only its type is checked."""
    field = changes.schema.field("_commit_timestamp")
    assert not list(compare.type_problems(field.type, "timestamp", field.name))
    corpus.check_rows(changes.drop_columns(["_commit_timestamp"]), want)


@pytest.mark.parametrize("case", corpus.cases("filter"), ids=str)
def test_filter(case: corpus.Case) -> None:
    """A predicate gives exactly its rows, and plans no more files than the reference."""
    want = case.case
    fields = next(
        c["rows"]["schema"]["fields"]
        for c in case.table["cases"]
        if c["kind"] in {"read", "time_travel"} and c["version"] == want["version"]
    )
    encoded = next(
        c["rows"].get("encoded_columns")
        for c in case.table["cases"]
        if c["kind"] in {"read", "time_travel"} and c["version"] == want["version"]
    )
    with corpus.folder(case.table) as path:
        rows, planned = READER.filtered(path, want["requested_version"], want["predicate"]["sql"])
    assert rows.num_rows == want["rows"]["row_count"]
    if not encoded:
        assert compare.digest(compare.row_strings(rows, fields)) == want["rows"]["content_digest"]
    assert planned <= want["reference_files_read"], f"{planned} files planned of {want['files_total']}"


@pytest.mark.parametrize("case", corpus.cases("must_fail"), ids=str)
def test_must_fail(case: corpus.Case) -> None:
    """A broken table gives the error of its kind, at the stage where it is broken, never rows."""
    want = case.case
    expected = getattr(_errors(), ERRORS[want["reason"]])
    with corpus.folder(case.table) as path:
        if want["stage"] == "cdf":
            with pytest.raises(expected) as caught:
                READER.changes(path, want["start_version"], want["end_version"])
        elif want["stage"] == "scan":
            assert READER.facts(path, want["requested_version"]).version == want["version"]
            with pytest.raises(expected) as caught:
                READER.rows(path, want["requested_version"])
        else:
            with pytest.raises(expected) as caught:
                READER.facts(path, want["requested_version"])
    assert isinstance(caught.value, _errors().DeltaError)
    _clean(caught.value)


@pytest.mark.parametrize("case", corpus.cases("reference_refuses"), ids=str)
def test_reference_refuses(case: corpus.Case) -> None:
    """A clear error is right; so is a correct read."""
    want = case.case
    with corpus.folder(case.table) as path:
        try:
            rows = READER.rows(path, want["requested_version"])
        except _errors().DeltaError as error:
            _clean(error)
            return
    if "other_rows" in want:
        other = next(f for f in [want["other_rows"]])
        assert rows.num_rows == other["row_count"]
        _check_other(rows, other)
    elif want["reason"] == "table_without_columns":
        assert rows.num_columns == 0
    elif want["reason"] == "catalog_managed":
        pytest.fail("a table that a catalog manages was read without its catalog")


def _check_other(rows: Any, other: dict[str, Any]) -> None:
    """Compare rows with another implementation's answer, whose schema is that of its stored rows."""
    import pyarrow.parquet as pq

    stored = pq.read_table(corpus.root() / other["parquet"])
    fields = [{"name": f.name, "type": _delta_type(f.type)} for f in stored.schema]
    corpus.check_rows(rows, other | {"schema": {"fields": fields}})


def _delta_type(arrow: Any) -> str:
    """Return the Delta type of a flat Arrow type, as stored in the corpus' expected rows."""
    text = str(arrow)
    names = {
        "int8": "byte",
        "int16": "short",
        "int32": "integer",
        "int64": "long",
        "bool": "boolean",
        "date32[day]": "date",
    }
    names |= {"timestamp[us, tz=UTC]": "timestamp", "timestamp[us]": "timestamp_ntz"}
    return names.get(text, text)


@pytest.mark.parametrize("case", corpus.cases("disputed"), ids=str)
def test_disputed(case: corpus.Case) -> None:
    """Where implementations differ, either answer or a clear error is right."""
    want = case.case
    with corpus.folder(case.table) as path:
        try:
            if "start_version" in want:
                rows = READER.changes(path, want["start_version"], want["end_version"]).drop_columns(
                    ["_commit_timestamp"]
                )
            else:
                rows = READER.rows(path, want["requested_version"])
        except _errors().DeltaError as error:
            _clean(error)
            return
    fields = want["rows"]["schema"]
    answers = [want["rows"], want["other_rows"] | {"schema": fields}]
    assert any(corpus.rows_are(rows, answer) for answer in answers)


def test_every_case_of_the_manifest_has_a_test() -> None:
    """No kind of case is left out, so nothing is skipped in silence."""
    kinds = ["read", "time_travel", "snapshot", "cdf", "filter", "must_fail", "reference_refuses", "disputed"]
    everything = [c for t in corpus.manifest()["tables"] for c in t["cases"]]
    assert len(corpus.cases(*kinds)) == len(everything)
    assert len(everything) >= 474


def test_the_digest_of_stored_rows_is_that_of_the_manifest() -> None:
    """The comparison itself is right: the corpus' stored rows have the digests that the manifest gives for them."""
    import pyarrow.parquet as pq

    checked = 0
    for case in corpus.cases("read", "time_travel", "cdf", "disputed"):
        want = case.case["rows"]
        if "parquet" not in want:
            continue
        encoded = want.get("encoded_columns") or {}
        fields = [
            {"name": f["name"], "type": "string" if f["name"] in encoded else f["type"]}
            for f in want["schema"]["fields"]
        ]
        rows = compare.row_strings(pq.read_table(corpus.root() / want["parquet"]), fields)
        assert compare.digest(rows) == want["content_digest"], case
        checked += 1
    assert checked > 200
