"""Run the crash harness from the command line."""

from __future__ import annotations

import argparse
import pathlib
import sys
import time

if not __package__ or __package__ != "crash":
    # One name for the modules, however this was started.
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from crash.run import Options, run


def main() -> int:
    """Run, print the report; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.25, help="how long writers work")
    parser.add_argument("--seed", type=int, default=None, help="the clock's if not given; it is printed")
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--kills", type=float, default=6.0, help="a second")
    parser.add_argument("--keep", type=pathlib.Path, default=None, help="where to make the table")
    parser.add_argument("--property", action="append", default=[], metavar="KEY=VALUE", help="of the table")
    given = parser.parse_args()
    seed = int(time.time()) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    more = {"configuration": dict(pair.split("=", 1) for pair in given.property)}
    options = Options(given.minutes * 60, given.writers, given.kills, seed, more=more)
    report = run(options, given.keep)
    print(report)
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
