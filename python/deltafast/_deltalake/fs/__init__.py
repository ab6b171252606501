"""`deltalake.fs`."""

from deltafast.filesystem import DeltaStorageHandler

__all__ = ["DeltaStorageHandler"]
