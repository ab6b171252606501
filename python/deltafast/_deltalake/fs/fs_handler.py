"""`deltalake.fs.fs_handler`."""

from deltafast.filesystem import DeltaStorageHandler

__all__ = ["DeltaStorageHandler"]
