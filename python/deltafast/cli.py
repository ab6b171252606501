"""The command line, `deltafast`.

`_cli.parser` reads the arguments; `_cli.commands`, `_cli.row_commands` and `_cli.table_commands` have the commands;
`_cli.show` formats their output, more richly where rich is installed (`pip install 'deltafast[cli]'`).

Exit codes: 0 is success, 1 is a failure, a problem that `doctor` or `check-store` found or too little pruning, 2 is a
usage error, 130 is Ctrl-C.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from deltafast._libraries import names_missing
from deltafast.exceptions import (
    DeltaError,
    InvalidArgumentError,
    MissingLibraryError,
    TableNotFoundError,
    VersionNotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors are printed as one line.

    Args:
        arguments: Command-line arguments; those of the process if None.

    Returns:
        The exit code.
    """
    from deltafast._cli.show import escaping_output

    with escaping_output():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    from deltafast._cli.opening import UsageError
    from deltafast._cli.parser import parse

    try:
        run, given = parse(arguments)
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            return names_missing(run)(**given) or 0
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 2
    except KeyboardInterrupt:
        return _fail(KeyboardInterrupt("interrupted"), _INTERRUPTED)
    except (InvalidArgumentError, MissingLibraryError, TableNotFoundError, UsageError, VersionNotFoundError) as error:
        return _fail(error, 2)
    except (DeltaError, OSError) as error:
        return _fail(error, 1)


def _fail(error: BaseException, status: int) -> int:
    from deltafast._cli.option_names import as_flag
    from deltafast._cli.show import problem

    message = error.message_with(as_flag) if isinstance(error, DeltaError) else str(error)
    problem("error:", "red", message)
    return status


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    from deltafast._cli.show import problem

    problem("warning:", "yellow", str(message))
