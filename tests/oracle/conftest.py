"""Tests against the reference call it `spark` or take its recorded `answers`; failures in helpers show both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oracle.recorded_answers import Answers
    from oracle.reference import Reference

pytest.register_assert_rewrite("conformance.corpus", "oracle.recorded_answers")

_FAILED = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def spark(reference: Reference) -> Reference:
    """Give the running reference."""
    return reference


@pytest.fixture(params=["recorded", pytest.param("live", marks=[pytest.mark.spark, pytest.mark.proof])])
def answers(request: pytest.FixtureRequest) -> Iterator[Answers]:
    """Give the answers of the reference: those recorded, or those that it gives now."""
    from oracle.recorded_answers import Answers, recording

    test = request.node.originalname
    if others := [part for part in request.node.callspec.id.split("-") if part != request.param]:
        test += f"[{'-'.join(others)}]"
    spark = request.getfixturevalue("reference") if request.param == "live" else None
    found = Answers(recording(request.path.stem), test, spark, record=request.config.getoption("record_answers"))
    yield found
    if not request.node.stash.get(_FAILED, False):
        found.finish()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """Note that a test failed: what it did not ask for any more says nothing."""
    report = yield
    if report.when == "call" and report.failed:
        item.stash[_FAILED] = True
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run only what records, if answers are recorded."""
    if config.getoption("record_answers"):
        recording = [
            item
            for item in items
            if isinstance(item, pytest.Function)
            and (spec := getattr(item, "callspec", None)) is not None
            and spec.params.get("answers") == "live"
        ]
        config.hook.pytest_deselected(items=[item for item in items if item not in recording])
        items[:] = recording
