"""Arrow types within Arrow types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["with_leaves"]


def with_leaves(kind: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return an Arrow type in which the leaf types of structs, lists and maps are replaced."""
    import pyarrow as pa

    arrow: Any = pa
    is_ = arrow.types
    lists: dict[Any, Any] = {
        is_.is_list: arrow.list_,
        is_.is_large_list: arrow.large_list,
        is_.is_list_view: arrow.list_view,
        is_.is_large_list_view: arrow.large_list_view,
    }

    def inner(field: Any) -> Any:
        return field.with_type(with_leaves(field.type, leaf))

    if is_.is_struct(kind):
        return arrow.struct([inner(field) for field in kind.fields])
    if is_.is_map(kind):
        return arrow.map_(inner(kind.key_field), inner(kind.item_field), keys_sorted=kind.keys_sorted)
    if is_.is_fixed_size_list(kind):
        return arrow.list_(inner(kind.value_field), kind.list_size)
    for test, make in lists.items():
        if test(kind):
            return make(inner(kind.value_field))
    return leaf(kind)
