"""Types of columns in the text that catalogs have: Spark's catalog strings, which are Hive's types."""

from __future__ import annotations

from typing import Any

__all__ = ["catalog_string"]

#: Of the log; others have the same name.
_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def catalog_string(data_type: Any) -> str:
    """Return a type of the log (the JSON of a schema) as text, such as `struct<a:bigint,b:array<string>>`."""
    match data_type:
        case {"type": "struct", "fields": fields}:
            inner = ",".join(f"{field['name']}:{catalog_string(field['type'])}" for field in fields)
            return f"struct<{inner}>"
        case {"type": "array", "elementType": element}:
            return f"array<{catalog_string(element)}>"
        case {"type": "map", "keyType": key, "valueType": value}:
            return f"map<{catalog_string(key)},{catalog_string(value)}>"
        case _:
            return _NAMES.get(data_type, str(data_type))
