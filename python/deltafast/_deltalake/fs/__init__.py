"""`deltalake.fs`."""

from deltafast.dropin_files import DeltaStorageHandler

__all__ = ["DeltaStorageHandler"]
