"""`deltalake.exceptions`."""

from deltafast.exceptions import (
    CommitFailedError,
    DeltaError,
    DeltaProtocolError,
    SchemaMismatchError,
    TableNotFoundError,
)

__all__ = ["CommitFailedError", "DeltaError", "DeltaProtocolError", "SchemaMismatchError", "TableNotFoundError"]
