"""Observability: what the logger and the tracer `deltafast` get.

The logger gets a line for each commit (INFO), open, scan, request to an object store and warning (DEBUG), the tracer of
OpenTelemetry a span for each commit, open and planned scan. A program that has not imported `logging` or
`opentelemetry.trace` cannot listen, so nothing is imported or formatted for it.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from deltafast import _core
from deltafast.exceptions import printable, warn, warn_of_commit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from logging import Logger

    from deltafast._core_types import BoundTree, SegmentSummary

__all__ = ["debug_logger", "log_commit", "log_open", "log_requests", "log_scan", "log_warning", "takes_requests"]


def log_commit(
    url: str, operation: str, version: int, attempts: int, commit_ms: int, metrics: Mapping[str, Any]
) -> None:
    """Log a commit; the core calls this after each.

    Args:
        url: The table, without credentials.
        operation: The operation as in the history: `WRITE`, `MERGE`, ...
        version: The version.
        attempts: The number of attempts to commit.
        commit_ms: Milliseconds of the commit and of the maintenance after it.
        metrics: The operation's metrics, as in the history.
    """
    _record_span(
        "deltafast.commit",
        commit_ms,
        {
            "deltafast.table": url,
            "deltafast.version": version,
            "db.operation.name": operation,
            "deltafast.attempts": attempts,
            **{f"deltafast.metrics.{name}": str(value) for name, value in metrics.items()},
        },
    )
    logger = _logger("INFO")
    if logger is not None:
        facts = " ".join(f"{name}={value}" for name, value in metrics.items() if not isinstance(value, dict))
        tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        extra = {
            "table": url,
            "operation": operation,
            "version": version,
            "attempts": attempts,
            "commit_ms": commit_ms,
            "metrics": dict(metrics),
        }
        message = "%s committed version %d of %s in %d ms, %s: %s"
        facts = printable(facts) or "no metrics"
        logger.info(message, printable(operation), version, printable(url), commit_ms, tries, facts, extra=extra)


def log_open(snapshot: _core.Snapshot, url: str, open_ms: float) -> None:
    """Log the opening of a table, and from which files of its log.

    Args:
        snapshot: What was opened.
        url: The table, without credentials.
        open_ms: Milliseconds.
    """
    version = snapshot.version
    _record_span("deltafast.open", open_ms, {"deltafast.table": url, "deltafast.version": version})
    logger = debug_logger()
    if logger is None:
        return
    segment = snapshot.segment_summary()
    extra = {"table": url, "version": version, "open_ms": open_ms, "segment": dict(segment)}
    message = "opened version %d of %s in %.1f ms from %s"
    logger.debug(message, version, printable(url), open_ms, _segment_text(segment), extra=extra)


def _segment_text(segment: SegmentSummary) -> str:
    """Return a text such as `the checkpoint of version 10 (1 file) and 3 commits`."""
    commits = _count_text(segment["commits"], "commit")
    if segment["commit_files"] != segment["commits"]:
        commits += f" ({_count_text(segment['commit_files'], 'file')})"
    if segment["checkpoint_version"] is None:
        return commits
    files = _count_text(segment["checkpoint_files"], "file")
    return f"the checkpoint of version {segment['checkpoint_version']} ({files}) and {commits}"


def _count_text(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def log_scan(snapshot: _core.Snapshot, url: str, predicate: BoundTree | None) -> None:
    """Log how many files a scan reads, if anybody listens: the files are then chosen once more.

    Args:
        snapshot: The version that is read.
        url: The table, without credentials.
        predicate: The predicate of the scan.
    """
    logger = debug_logger()
    if logger is None and _trace() is None:
        return
    begun = time.perf_counter()
    plan, version = snapshot.plan(predicate), snapshot.version
    plan_ms = (time.perf_counter() - begun) * 1000
    counts = {f"deltafast.{name}": count for name, count in plan.items() if isinstance(count, int)}
    _record_span("deltafast.plan", plan_ms, {"deltafast.table": url, "deltafast.version": version, **counts})
    if logger is None:
        return
    total, partitions, files = plan["files_total"], plan["files_after_partition"], plan["files"]
    extra = {"table": url, "version": version, "plan_ms": plan_ms, "plan": dict(plan)}
    message = "a scan of version %d of %s reads %d of %d files: partition values exclude %d, statistics %d"
    file_counts = (files, total, total - partitions, partitions - files)
    logger.debug(message, version, printable(url), *file_counts, extra=extra)


def log_warning(message: str) -> None:
    """Log a warning of the core, such as the reason why a checkpoint is ignored, and emit it."""
    logger = debug_logger()
    if logger is not None:
        logger.debug("warning: %s", printable(message))
    warn(message)


def log_commit_warning(message: str) -> None:
    """Log and emit a warning about a version that is committed."""
    logger = debug_logger()
    if logger is not None:
        logger.debug("warning: %s", printable(message))
    warn_of_commit(message)


def takes_requests() -> bool:
    """Return whether the logger takes requests; the core asks before each call."""
    return debug_logger() is not None


def log_requests() -> None:
    """Log the requests to object stores since the last time; the core calls this during and after its own calls."""
    logger = debug_logger()
    requests = _core.take_requests()
    if logger is None:
        return
    for request in requests["records"]:
        asked = " ".join(filter(None, (request["method"], request["url"], request["range"])))
        answer = request["error"] if request["status"] is None else str(request["status"])
        sizes = ((request["sent_bytes"] or None, "sent"), (request["received_bytes"], "received"))
        facts = "".join(f", {size} bytes {verb}" for size, verb in sizes if size is not None)
        message = "request %s: %s in %.1f ms%s"
        shown = (printable(asked), printable(answer or ""), request["elapsed_ms"], facts)
        logger.debug(message, *shown, extra={"request": dict(request)})
    if requests["dropped"]:
        logger.debug("%d requests are missing here: too many between two lines", requests["dropped"])


def debug_logger() -> Logger | None:
    """Return the logger if it takes DEBUG messages."""
    return _logger("DEBUG")


def _logger(level: str) -> Logger | None:
    """Return the logger if it takes messages of a level."""
    logging = sys.modules.get("logging")
    if logging is None:
        return None
    logger: Logger = logging.getLogger("deltafast")
    return logger if logger.isEnabledFor(getattr(logging, level)) else None


def _record_span(name: str, elapsed_ms: float, attributes: Mapping[str, str | int]) -> None:
    """Record what ended now as a span, a child of the current one."""
    trace = _trace()
    if trace is None:
        return
    end = time.time_ns()
    span = trace.get_tracer("deltafast").start_span(
        name, attributes=dict(attributes), start_time=end - round(elapsed_ms * 1e6)
    )
    span.end(end)


def _trace() -> Any:
    """Return the interface of OpenTelemetry if the program has imported it."""
    return sys.modules.get("opentelemetry.trace")
