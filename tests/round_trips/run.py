"""A run of rounds: makes the tables, checks them after each step, and reports and shrinks failures."""

from __future__ import annotations

import copy
import json
import pathlib
import random
import re
import shutil
import tempfile
import time
import traceback
from typing import TYPE_CHECKING, Any

from deltafast import DeltaTable, Schema

from . import checks
from .coverage import Coverage
from .operations import OPERATIONS, Step
from .plan import Plan, plan_round
from .predicates import draw_predicate
from .types import json_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .model import Model

#: From so many columns on only some predicates and columns are read, and some readers left to other rounds.
WIDE = 200


class RoundError(AssertionError):
    """A failure with all that is needed to repeat it."""

    def __init__(self, plan: Plan, steps: list[Step], error: BaseException) -> None:
        self.steps, self.error = steps, error
        super().__init__(plan, steps, error)
        self.plan = plan

    @property
    def signature(self) -> tuple[Any, ...]:
        """Return what two failures of one cause have in common."""
        message = re.sub(r"\d+", "0", str(self.error))[:60]
        notes = [re.sub(r"\d+", "0", note)[:20] for note in getattr(self.error, "__notes__", [])]
        return type(self.error).__name__, message, self.steps[-1].operation if self.steps else "", *notes

    def __str__(self) -> str:
        trace = "".join(traceback.format_exception(self.error, limit=-4))
        history = "\n".join(f"  {n}. {step}" for n, step in enumerate(self.steps))
        repeat = f"python -m tests.round_trips --seed {self.plan.seed} --round {self.plan.number}"
        return f"{self.plan}\n{history}\nrepeat with: {repeat}\n{trace}"


def run_round(seed: int, number: int, coverage: Coverage, shrink_seconds: float = 60.0) -> Plan:
    """Run a round.

    Raises:
        RoundError: A check failed; the history is as short as the time allowed.
    """
    plan = plan_round(seed, number)
    try:
        _run(plan, _draw_steps(plan), coverage)
    except RoundError as failure:
        raise _shrunk(failure, shrink_seconds) from None
    return plan


def _draw_steps(plan: Plan) -> Iterator[Any]:
    """Yield the operations of a plan; the caller draws their arguments."""
    yield from plan.operations


def _run(plan: Plan, steps: Any, coverage: Coverage) -> None:
    """Run operations whose arguments are drawn, or recorded steps."""
    folder = tempfile.mkdtemp(prefix="round-trip-")
    done: list[Step] = []
    chance, model = plan.chance, copy.deepcopy(plan.model)
    try:
        path = str(pathlib.Path(folder) / "table")
        create(path, model)
        model.commit(0)
        for number, given in enumerate(steps):
            operation = OPERATIONS[given if isinstance(given, str) else given.operation]
            step = given if isinstance(given, Step) else Step(given, operation.draw(chance, model))
            done.append(step)
            table = DeltaTable(path)
            step.run(table, model)
            model.commit(DeltaTable(path).version())
            _check(path, plan, model, step.operation, number, coverage)
    except Exception as error:
        raise RoundError(plan, done, error) from error
    finally:
        shutil.rmtree(folder)


def create(path: str, model: Model) -> None:
    """Create the table of a model, without rows."""
    schema = Schema.from_json(json.dumps({"type": "struct", "fields": json_fields(model.columns)}))
    DeltaTable.create(
        path,
        schema,
        partition_by=model.partition_by or None,
        cluster_by=model.cluster_by or None,
        configuration=model.configuration,
    )


def _check(path: str, plan: Plan, model: Model, operation: str, number: int, coverage: Coverage) -> None:
    in_memory = model.to_arrow()
    checks.check_table(path, model, in_memory, operation, coverage)
    checks.check_counts(path, model)
    if not model.columns:
        return
    chance = _chance_of_checks(plan, number)
    columns = list(model.columns)
    checks.check_projection(path, model, in_memory, chance.sample(columns, chance.randint(1, min(len(columns), 4))))
    # Each column in turn, so that a few rounds ask for all types.
    for place in range(1 if len(columns) > WIDE else 2):
        first = columns[(plan.number * 7 + number * 2 + place) % len(columns)]
        predicate = draw_predicate(chance, model.columns, model.rows, first=first)
        checks.check_predicate(path, model, in_memory, predicate, first, coverage)


def _chance_of_checks(plan: Plan, number: int) -> random.Random:
    return random.Random(f"checks/{plan.seed}/{plan.number}/{number}")


def _shrunk(failure: RoundError, seconds: float) -> RoundError:
    """Return a failure of the same kind with fewer steps, if leaving out single steps leads to one."""
    end = time.monotonic() + seconds
    place = len(failure.steps) - 2
    while place >= 0 and time.monotonic() < end:
        steps = failure.steps[:place] + failure.steps[place + 1 :]
        try:
            _run(failure.plan, steps, Coverage())
        except RoundError as shorter:
            if shorter.signature == failure.signature:
                failure = shorter
        place = min(place, len(failure.steps) - 1) - 1
    return failure
