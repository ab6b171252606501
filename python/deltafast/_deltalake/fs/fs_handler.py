"""`deltalake.fs.fs_handler`."""

from deltafast.dropin_files import DeltaStorageHandler

__all__ = ["DeltaStorageHandler"]
