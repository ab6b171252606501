"""Reads tables in a process of its own, so that a crash, a hang or a balloon hits nobody else.

Takes one request a line (JSON) on standard input and answers one line each on a duplicate of standard output: the ids
or number of rows, or the error; the peak of resident memory above what the imports took; the seconds. The reader is the
module named by `DELTAFAST_HOSTILE_READER` (deltafast unless the suite itself is tried on another implementation).
"""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib
import json
import os
import pathlib
import resource
import sys
import time
from typing import Any

import pyarrow as pa

from . import stores

IDS_AT_MOST = 200_000
ADDRESS_SPACE = 12 << 30


def _status(key: str) -> int:
    """Return a memory figure of this process in bytes."""
    for line in pathlib.Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return 0


def _reset_peak() -> None:
    """Make the kernel count the peak anew."""
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/clear_refs").write_text("5", "ascii")


def _result(table: pa.Table) -> dict[str, Any]:
    """Return the ids and number of rows of a table."""
    out: dict[str, Any] = {"count": table.num_rows}
    if "id" in table.column_names and table.num_rows <= IDS_AT_MOST:
        out["ids"] = table.column("id").to_pylist()
    return out


def _open(module: Any, request: dict[str, Any]) -> Any:
    options = {k: request["arguments"][k] for k in ("version", "storage_options") if k in request["arguments"]}
    if "store" in request["arguments"]:
        options["store"] = stores.BY_NAME[request["arguments"]["store"]](request["table"])
    return module.DeltaTable(request["table"], **options)


def answer(module: Any, request: dict[str, Any]) -> dict[str, Any]:  # noqa: C901 - one branch a step
    """Do what a request asks for."""
    given = request["arguments"]
    table = _open(module, request)
    version = table.version()
    match request["do"]:
        case "read":
            table.schema().to_json()
            pa.table(table.get_add_actions(flatten=True))
            out = _result(table.to_pyarrow_table())
        case "open":
            out = {"count": len(table.schema().fields)}
        case "files":
            predicate = {"predicate": given["sql"]} if "sql" in given else {}
            out = {"count": pa.table(table.get_add_actions(flatten=True, **predicate)).num_rows}
        case "filter":
            out = _result(table.scan(predicate=given["sql"]).read_all())
        case "columns":
            out = _result(table.to_pyarrow_table(columns=given["columns"]))
        case "stream":
            out = {"count": sum(batch.num_rows for batch in table.scan(string_view=given.get("views", False)))}
        case "count":
            out = {"count": table.count()}
        case "history":
            out = {"count": len(table.history())}
        case "vectors":
            out = {"count": table.deletion_vectors().read_all().num_rows}
        case "changes":
            out = _result(table.load_cdf(starting_version=given["start"], ending_version=given["end"]).read_all())
        case "at_time":
            table.load_as_version(dt.datetime.fromtimestamp(given["milliseconds"] / 1000, dt.UTC))
            version = table.version()
            out = _result(table.to_pyarrow_table())
        case other:
            message = f"no step is called {other}"
            raise AssertionError(message)
    return out | {"version": version}


def _error(error: BaseException) -> dict[str, Any]:
    """Return what an error says."""
    return {
        "error": str(error),
        "repr": repr(error),
        "class": type(error).__name__,
        "classes": [c.__name__ for c in type(error).__mro__],
    }


def main() -> None:
    """Answer requests until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    module = importlib.import_module(os.environ.get("DELTAFAST_HOSTILE_READER", "deltafast"))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    baseline = _status("VmRSS")
    for line in sys.stdin:
        request = json.loads(line)
        _reset_peak()
        start = time.monotonic()
        try:
            response = answer(module, request)
        except BaseException as error:  # noqa: BLE001 - a panic is not an Exception
            response = _error(error)
        response["seconds"] = time.monotonic() - start
        response["memory"] = _status("VmHWM") - baseline
        # `surrogatepass` would hide a broken text; a message with half a character is written with escapes.
        out.write(json.dumps(response) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
