"""`deltalake.fs.fs_handler`."""

from deltafast._deltalake.files import DeltaStorageHandler

__all__ = ["DeltaStorageHandler"]
