"""Observability: logger and tracer `deltafast` get each commit and open, the logger each scan, too.

The logger gets a line for each commit (INFO), open and scan (DEBUG), the tracer of OpenTelemetry a span for each commit
and open. A program that has not imported `logging` or `opentelemetry.trace` cannot listen, so nothing is imported or
formatted for it.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from logging import Logger

    from deltafast._core_types import ScanPlan

__all__ = ["debug_logger", "log_commit", "log_open", "log_scan"]


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
        logger.info(message, operation, version, url, commit_ms, tries, facts or "no metrics", extra=extra)


def log_open(url: str, version: int, open_ms: float) -> None:
    """Log the opening of a table."""
    _record_span("deltafast.open", open_ms, {"deltafast.table": url, "deltafast.version": version})
    logger = debug_logger()
    if logger is None:
        return
    extra = {"table": url, "version": version, "open_ms": open_ms}
    logger.debug("opened version %d of %s in %.1f ms", version, url, open_ms, extra=extra)


def log_scan(logger: Logger, url: str, version: int, plan: ScanPlan) -> None:
    """Log how many files a scan reads."""
    total, partitions, files = plan["files_total"], plan["files_after_partition"], plan["files"]
    extra = {"table": url, "version": version, "plan": dict(plan)}
    message = "a scan of version %d of %s reads %d of %d files: partition values exclude %d, statistics %d"
    logger.debug(message, version, url, files, total, total - partitions, partitions - files, extra=extra)


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
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return
    end = time.time_ns()
    span = trace.get_tracer("deltafast").start_span(
        name, attributes=dict(attributes), start_time=end - round(elapsed_ms * 1e6)
    )
    span.end(end)
