"""What the recorded answers of delta-spark rely on: each is current, asked for, and compared."""

from __future__ import annotations

import ast
import json
import pathlib
from typing import Any, cast

import pytest

from .recorded_answers import FOLDER, Answers, Recording, packed, plain, refusal, unpack, without_uuids
from .reference import PACKAGE, Reference

HERE = pathlib.Path(__file__).resolve().parent


class _Spark:
    """Stands in for a running delta-spark."""

    spark_version = "4.2.0"

    def forget(self) -> None:
        """Do nothing."""


SPARK = cast("Reference", _Spark())


def stored(tmp_path: pathlib.Path, answers: dict[str, Any]) -> Recording:
    """Record these answers of a test, and read them back."""
    path = tmp_path / "test_m.jsonl"
    recorder = Answers(Recording(path), "test_x[a]", SPARK, record=True)
    for key, answer in answers.items():
        recorder(key, lambda _, answer=answer: answer)
    recorder.finish()
    return Recording(path)


def test_every_module_that_takes_answers_has_them_of_one_delta_spark() -> None:
    taken = "    from .recorded_answers " + "import Answers\n"
    modules = {path.stem for path in HERE.glob("test_*.py") if taken in path.read_text()}
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == modules
    headers = [Recording(path).header for path in FOLDER.glob("*.jsonl")]
    assert {header["delta-spark"] for header in headers} == {PACKAGE}
    assert len({header["spark"] for header in headers}) == 1


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_answer_is_of_a_test_that_takes_answers(path: pathlib.Path) -> None:
    tree = ast.parse((HERE / f"{path.stem}.py").read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    takes = {node.name for node in functions if "answers" in [argument.arg for argument in node.args.args]}
    recording = Recording(path)
    assert {test.partition("[")[0] for test in recording.tests} <= takes
    # A test may take no more than a table.
    assert len(recording.tests) + len(recording.tables) >= len(takes)


def test_a_recorded_answer_is_given_without_spark(tmp_path: pathlib.Path) -> None:
    recording = stored(tmp_path, {"SELECT 1": {"rows": (1, 2)}, "SELECT 2": {"b", "a"}, "SELECT 3": "\n\u2028é"})
    assert recording.header == {
        "delta-spark": PACKAGE,
        "spark": "4.2.0",
        "recorded by": "python dev/make_oracle_answers.py test_m",
    }
    answers = Answers(recording, "test_x[a]", None)
    assert answers("SELECT 1", pytest.fail) == {"rows": [1, 2]}
    assert answers("SELECT 2", pytest.fail) == ["a", "b"]
    assert answers("SELECT 3", pytest.fail) == "\n\u2028é"
    answers.finish()


def test_what_a_test_does_with_an_answer_does_not_change_it(tmp_path: pathlib.Path) -> None:
    recording = stored(tmp_path, {"q": {"rows": 1}})
    Answers(recording, "test_x[a]", None)("q", pytest.fail).clear()
    assert Answers(recording, "test_x[a]", None)("q", pytest.fail) == {"rows": 1}


def test_a_live_answer_must_be_the_recorded_one(tmp_path: pathlib.Path) -> None:
    recording = stored(tmp_path, {"q": [1, 2]})
    assert Answers(recording, "test_x[a]", SPARK)("q", lambda _: (1, 2)) == [1, 2]
    with pytest.raises(AssertionError, match=r"no longer answers 'q' as recorded: run python dev/make_oracle_answers"):
        Answers(recording, "test_x[a]", SPARK)("q", lambda _: [1, 3])
    with pytest.raises(AssertionError, match="no longer answers"):
        Answers(recording, "test_x[a]", SPARK)("q", lambda _: [1, 4], agree=lambda old, new: new[1] < old[1] + 2)
    near = Answers(recording, "test_x[a]", SPARK)("q", lambda _: [1, 3], agree=lambda old, new: new[1] < old[1] + 2)
    assert near == [1, 3]


def test_a_question_without_an_answer_fails(tmp_path: pathlib.Path) -> None:
    recording = stored(tmp_path, {"q": 1})
    for test, key in (("test_x[a]", "q2"), ("test_x[b]", "q")):
        for spark in (None, SPARK):
            with pytest.raises(AssertionError, match=r"no answer is recorded for .*: run python"):
                Answers(recording, test, spark)(key, lambda _: 1)


def test_an_answer_that_is_not_asked_for_fails(tmp_path: pathlib.Path) -> None:
    answers = Answers(stored(tmp_path, {"q": 1, "r": 2}), "test_x[a]", None)
    answers("q", pytest.fail)
    with pytest.raises(AssertionError, match=r"does not ask for: \['r'\]"):
        answers.finish()


def test_a_key_is_used_once(tmp_path: pathlib.Path) -> None:
    answers = Answers(stored(tmp_path, {"q": 1}), "test_x[a]", None)
    answers("q", pytest.fail)
    with pytest.raises(AssertionError, match="used twice"):
        answers("q", pytest.fail)


def test_one_test_is_recorded_again_without_the_others(tmp_path: pathlib.Path) -> None:
    recording = stored(tmp_path, {"q": 1})
    other = Answers(recording, "test_y", SPARK, record=True)
    other("q", lambda _: 2)
    other.finish()
    again = Answers(recording, "test_x[a]", SPARK, record=True)
    again("r", lambda _: 3)
    again.finish()
    assert Recording(recording.path).tests == {"test_x[a]": {"r": 3}, "test_y": {"q": 2}}


def test_a_stored_table_is_moved_in_time(tmp_path: pathlib.Path) -> None:
    table = tmp_path / "table"
    (table / "_delta_log").mkdir(parents=True)
    (table / "p=a b").mkdir()
    (table / "p=a b" / "x.parquet").write_bytes(b"\x00\xff")
    (table / "_delta_log" / ".0.json.crc").write_bytes(b"\x00")
    for number in range(2):
        commit = {"commitInfo": {"timestamp": 1000 + number, "text": "1000"}}
        (table / "_delta_log" / f"{number}.json").write_text(json.dumps(commit, separators=(",", ":")))
    again = tmp_path / "again"
    unpack(plain(packed(table)), again)
    assert (again / "p=a b" / "x.parquet").read_bytes() == b"\x00\xff"
    assert sorted(path.name for path in (again / "_delta_log").iterdir()) == ["0.json", "1.json"]
    first, second = (json.loads((again / "_delta_log" / f"{n}.json").read_text())["commitInfo"] for n in range(2))
    assert second["timestamp"] == first["timestamp"] + 1 > 1_700_000_000_000
    assert first["text"] == "1000"


def test_a_table_is_recorded_once_and_given_to_every_test(tmp_path: pathlib.Path) -> None:
    path, made = tmp_path / "test_m.jsonl", []

    def make(_: Reference, folder: pathlib.Path, text: str) -> None:
        made.append(text)
        (folder / "_delta_log").mkdir(parents=True)
        (folder / "_delta_log" / "0.json").write_text('{"commitInfo":{"timestamp":1}}')

    recording = Recording(path)
    for test in ("test_x", "test_y"):
        recorder = Answers(recording, test, SPARK, record=True)
        recorder.table("t", tmp_path / f"recorded {test}", make, "first")
        recorder.finish()
    assert made == ["first"]
    for spark in (None, SPARK):
        answers = Answers(Recording(path), "test_x", spark)
        answers.table("t", tmp_path / f"given {spark}", pytest.fail)
        assert (tmp_path / f"given {spark}" / "_delta_log" / "0.json").exists()
        with pytest.raises(AssertionError, match="the table 'u' is not recorded: run python"):
            answers.table("u", tmp_path / "u", pytest.fail)
        answers.finish()


def test_refusals_are_compared_by_their_condition() -> None:
    def fail(text: str) -> None:
        raise ValueError(text)

    assert refusal(fail, "[DELTA_X.SUB_Y] The table [a] of 12:00 ...") == "DELTA_X.SUB_Y"
    assert refusal(fail, "no condition") == "ValueError"
    assert refusal(str) is None


def test_random_names_are_all_the_same() -> None:
    name = "col-0f1e2d3c-0000-4000-8000-0123456789ab"
    assert without_uuids({"a": (name, 1)}) == {"a": ["col-uuid", 1]}
