"""Temporary folders in memory.

Every commit to a local disk waits until its files are synced. On a disk these waits are most of the time of tests that
write many small tables; on a file system in memory they take microseconds, and the calls are the same.
"""

from __future__ import annotations

import atexit
import os
import pathlib
import shutil
import tempfile

MEMORY = pathlib.Path("/dev/shm")
#: Free bytes from which on the memory is used; all tests of a process together leave less than half of this behind.
ENOUGH = 8 << 30


def use_memory() -> None:
    """Let this process and its children make temporary folders in memory, which go when it ends.

    Nothing changes where `TMPDIR` is set, or where there is too little memory or no such file system.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < ENOUGH:
        return
    folder = tempfile.mkdtemp(prefix="deltafast-tests-", dir=MEMORY)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["TMPDIR"] = folder
    # What was found before.
    tempfile.tempdir = None
