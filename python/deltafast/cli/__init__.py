"""The command line, `deltafast`; needs `pip install 'deltafast[cli]'` (click and rich).

`commands` has the commands, `show` formats their output. Exit codes: 0 is success, 1 is a failure or a problem that
`doctor` found, 2 is a usage error, 130 is Ctrl-C.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Command-line arguments; those of the process if None.

    Returns:
        The exit code.
    """
    missing = [name for name in ("click", "rich") if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(f"deltafast: the command line needs {' and '.join(missing)}: pip install 'deltafast[cli]'\n")
        return 2
    from deltafast.cli.commands import run

    return run(arguments)
