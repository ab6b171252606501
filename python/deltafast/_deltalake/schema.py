"""The class with the name `deltalake.Field`; see `table`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltafast.schema import Field as PlainField

if TYPE_CHECKING:
    from deltafast.schema import ArrowSchemaExportable

__all__ = ["Field"]


class _EveryField(type):
    """Makes `deltafast.Field` objects instances of the class below, so that either is accepted."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, PlainField) if cls is Field else super().__instancecheck__(instance)


class Field(PlainField, metaclass=_EveryField):
    """`deltafast.Field` whose metadata are strings and numbers: objects and lists are returned as JSON.

    The log has them unchanged, since Spark reads objects in the metadata of fields.
    """

    __slots__ = ("_given",)

    @property
    def metadata(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Delta's metadata of the field; to change them, assign a dict."""
        return {
            key: json.dumps(value, separators=(",", ":"), ensure_ascii=False)
            if isinstance(value, (dict, list, tuple))
            else value
            for key, value in self._given.items()
        }

    @metadata.setter
    def metadata(self, given: dict[str, Any]) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._given = given

    def _tree(self) -> dict[str, Any]:
        return super()._tree() | {"metadata": self._given}

    @staticmethod
    def from_json(field_json: str) -> Field:
        """Read a field's JSON."""
        return _served(PlainField.from_json(field_json))

    @staticmethod
    def from_arrow(field: ArrowSchemaExportable) -> Field:
        """Convert an Arrow field."""
        return _served(PlainField.from_arrow(field))


def _served(field: PlainField) -> Field:
    return Field(field.name, field.type, field.nullable, field.metadata)
