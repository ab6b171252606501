"""`deltalake._util`."""

from deltafast._deltalake.install import deprecate_positional_commit_args, encode_partition_value

__all__ = ["deprecate_positional_commit_args", "encode_partition_value"]
