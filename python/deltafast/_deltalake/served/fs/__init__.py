"""`deltalake.fs`."""

from deltafast._deltalake.files import DeltaStorageHandler

__all__ = ["DeltaStorageHandler"]
