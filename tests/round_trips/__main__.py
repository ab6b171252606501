"""Run rounds from the command line: all of a seed, for some minutes, or a single one."""

from __future__ import annotations

import argparse
import pathlib
import sys
import time

if not __package__ or __package__ != "round_trips":
    # One name for the modules, however this was started.
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import temporary
from round_trips.coverage import Coverage
from round_trips.plan import ROUNDS, applicable_cells
from round_trips.run import RoundError, run_round


def main() -> int:
    """Run, print the coverage; 1 if a round failed or a cell is empty after a full run."""
    parser = argparse.ArgumentParser(prog="python -m tests.round_trips", description=__doc__)
    parser.add_argument("--minutes", type=float, default=0.0, help="how long rounds go on after a full run")
    parser.add_argument("--seed", type=int, default=None, help="the clock's if not given; it is printed")
    parser.add_argument("--round", type=int, default=None, help="run this round only")
    parser.add_argument("--first", type=int, default=0, help="the round to begin with")
    options = parser.parse_args()
    seed = int(time.time()) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    temporary.use_memory()
    begun, coverage, failures, number = time.monotonic(), Coverage(), 0, options.first
    while True:
        if options.round is not None:
            number = options.round
        begun_round = time.monotonic()
        try:
            plan = run_round(seed, number, coverage)
            print(f"round {number} ({plan.kind}): {time.monotonic() - begun_round:.1f} s", flush=True)
        except RoundError as failure:
            failures += 1
            print(f"FAILED\n{failure}", flush=True)
        number += 1
        if options.round is not None or (number >= ROUNDS and time.monotonic() - begun > options.minutes * 60):
            break
    print(coverage.report(applicable_cells()))
    empty = sorted(applicable_cells() - set(coverage.reads))
    print(f"seed {seed}: {number - options.first} rounds, {failures} failed, {len(empty)} cells empty: {empty[:20]}")
    return 1 if failures or (empty and options.round is None) else 0


if __name__ == "__main__":
    sys.exit(main())
