"""`deltalake.transaction`."""

from deltafast._deltalake.table import create_table_with_add_actions
from deltafast.transaction import (
    AddAction,
    CommitProperties,
    PostCommitHookProperties,
    RemoveAction,
    Transaction,
)

__all__ = [
    "AddAction",
    "CommitProperties",
    "PostCommitHookProperties",
    "RemoveAction",
    "Transaction",
    "create_table_with_add_actions",
]
