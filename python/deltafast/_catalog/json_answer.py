"""The JSON of answers: objects whose members are read by their types, so that an odd answer is one error."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from deltafast._catalog.catalog_error import CatalogError
from deltafast._catalog.server_text import server_text

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AnswerSource", "JsonObject", "parse_json"]

#: The most characters of a value in a message.
_LONGEST = 80
#: Integers of the protocols have 64 bits.
_LEAST, _GREATEST = -(2**63), 2**63 - 1


def parse_json(data: bytes | str) -> Any:
    """Return the value of a text in JSON.

    Raises:
        ValueError: It is not JSON, has numbers that JSON does not have, or is nested too deeply.
    """
    is_too_deep = False
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except RecursionError:
        is_too_deep = True
    message = "it is nested too deeply" if is_too_deep else ""
    raise ValueError(message)


def _refuse_constant(name: str) -> NoReturn:
    message = f"JSON has no {name}"
    raise ValueError(message)


class AnswerSource(NamedTuple):
    """Where an answer comes from, for errors about it."""

    #: What answered which request, such as `the catalog https://host answers GET tables`.
    call: str
    #: What errors must not show: what the server was sent.
    secrets: tuple[str, ...] = ()
    #: Whether the answer has credentials, so that errors show none of its values.
    is_secret: bool = False

    def error(self, what: str) -> CatalogError:
        """Return the error for an odd answer."""
        return CatalogError(f"{self.call} {what}")

    def shown(self, value: Any) -> str:
        """Return the beginning of a value for an error."""
        if not self.is_secret:
            with suppress(ValueError, RecursionError):
                text = value if isinstance(value, bytes) else json.dumps(value, default=str)
                return server_text(text, self.secrets, _LONGEST)
        return f"a value of the type {type(value).__name__}"


class JsonObject:
    """An object of an answer.

    Args:
        members: The object.
        source: Where it comes from.
        name: Its place in the answer; empty for all of it.
    """

    def __init__(self, members: Any, source: AnswerSource, name: str = "") -> None:
        self._source, self._name = source, name
        if not isinstance(members, dict):
            place = f" as {name}" if name else ""
            raise source.error(f"with {source.shown(members)}{place} where an object is expected")
        self._members = cast("dict[str, Any]", members)

    def __contains__(self, name: str) -> bool:
        return self._members.get(name) is not None

    @property
    def members(self) -> Mapping[str, Any]:
        """The members as they came."""
        return self._members

    def text(self, name: str) -> str:
        """Return a text that is not empty.

        Raises:
            CatalogError: There is none.
        """
        found = self.optional_text(name)
        if not found:
            raise self._missing(name)
        return found

    def optional_text(self, name: str) -> str | None:
        """Return a text, None for one that is missing."""
        found = self._members.get(name)
        if found is not None and not isinstance(found, str):
            raise self._odd(name, found, "a text")
        return found

    def integer(self, name: str) -> int:
        """Return an integer of 64 bits."""
        found = self.optional_integer(name)
        if found is None:
            raise self._missing(name)
        return found

    def optional_integer(self, name: str) -> int | None:
        """Return an integer of 64 bits, None for one that is missing."""
        found = self._members.get(name)
        if found is None:
            return None
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        if not isinstance(found, int) or isinstance(found, bool) or not _LEAST <= found <= _GREATEST:
            raise self._odd(name, found, "an integer of 64 bits")
        return found

    def optional_number(self, name: str) -> float | None:
        """Return a number, also one in a text; None for one that is missing."""
        found = self._members.get(name)
        if found is None:
            return None
        try:
            number = math.nan if isinstance(found, bool) else float(found)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise self._odd(name, found, "a number")
        return number

    def object(self, name: str) -> JsonObject:
        """Return an object."""
        found = self.optional_object(name)
        if found is None:
            raise self._missing(name)
        return found

    def optional_object(self, name: str) -> JsonObject | None:
        """Return an object, None for one that is missing."""
        found = self._members.get(name)
        return None if found is None else self._inner(found, self._path(name))

    def objects(self, name: str) -> list[JsonObject]:
        """Return a list of objects; an empty one if it is missing."""
        path = self._path(name)
        return [self._inner(found, f"{path}[{number}]") for number, found in enumerate(self._list(name))]

    def required_objects(self, name: str) -> list[JsonObject]:
        """Return a list of objects."""
        if name not in self:
            raise self._missing(name)
        return self.objects(name)

    def strings(self, name: str) -> list[str]:
        """Return a list of strings; an empty one if it is missing."""
        found = self._list(name)
        if any(not isinstance(text, str) for text in found):
            raise self._odd(name, found, "a list of strings")
        return found

    def text_map(self, name: str) -> dict[str, str]:
        """Return an object whose values are strings; an empty one if it is missing. Values of null are left out."""
        found = self.optional_object(name)
        strings = {} if found is None else {key: value for key, value in found.members.items() if value is not None}
        if any(not isinstance(value, str) for value in strings.values()):
            raise self._odd(name, strings, "an object of strings")
        return strings

    def _list(self, name: str) -> list[Any]:
        found = self._members.get(name)
        if found is None:
            return []
        if not isinstance(found, list):
            raise self._odd(name, found, "a list")
        return cast("list[Any]", found)

    def _inner(self, value: Any, path: str) -> JsonObject:
        return JsonObject(value, self._source, path)

    def _path(self, name: str) -> str:
        return f"{self._name}.{name}" if self._name else name

    def _missing(self, name: str) -> CatalogError:
        members = "" if self._source.is_secret else f": {self._source.shown(self._members)}"
        return self._source.error(f"without {self._path(name)}{members}")

    def _odd(self, name: str, value: Any, expected: str) -> CatalogError:
        shown = self._source.shown(value)
        return self._source.error(f"with {shown} as {self._path(name)}, which is not {expected}")
