"""`deltalake._util`."""

from deltafast.dropin import encode_partition_value

__all__ = ["encode_partition_value"]
