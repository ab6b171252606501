"""Generated tables and histories read alike by every reader; a full run covers each cell."""

from __future__ import annotations

import pytest

from .coverage import Coverage
from .plan import ROUNDS, ROUNDS_OF_SHARE, SHARES, applicable_cells, plan_round
from .run import run_round

#: The seed of the rounds in the proof tier; others run by `python -m tests.round_trips`.
SEED = 0


@pytest.mark.proof
@pytest.mark.timeout(300)
@pytest.mark.parametrize("share", range(SHARES))
def test_every_reader_returns_the_rows_of_the_model_after_each_operation(share, capsys):
    coverage, planned = Coverage(), set()
    for number in range(share * ROUNDS_OF_SHARE, (share + 1) * ROUNDS_OF_SHARE):
        planned |= run_round(SEED, number, coverage).planned_cells()
    with capsys.disabled():
        print(f"\n{coverage.report(planned)}")
    assert not planned - set(coverage.reads)


def test_the_rounds_of_a_full_run_cover_every_type_after_every_operation_by_every_reader():
    covered = set().union(*(plan_round(SEED, number).planned_cells() for number in range(ROUNDS)))
    assert sorted(applicable_cells() - covered) == []
