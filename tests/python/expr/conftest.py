"""A table with a column of each type, and short spellings of what is bound."""

import json

import pytest

from deltafast._expr import bind_expression, bind_predicate
from deltafast._expr.context import ExpressionContext
from deltafast._expr.render import to_spark_sql

COLUMNS = {
    "id": "integer",
    "i": "integer",
    "j": "integer",
    "l": "long",
    "by": "byte",
    "sh": "short",
    "f": "float",
    "d": "double",
    "e": "double",
    "dec": "decimal(10,2)",
    "dec2": "decimal(38,10)",
    "s": "string",
    "p": "string",
    "dt": "date",
    "ts": "timestamp",
    "ntz": "timestamp_ntz",
    "b": "boolean",
    "bin": "binary",
    "arr": {"type": "array", "elementType": "integer", "containsNull": True},
    "m": {"type": "map", "keyType": "string", "valueType": "integer", "valueContainsNull": True},
    "st": {
        "type": "struct",
        "fields": [
            {"name": "X", "type": "integer", "nullable": True, "metadata": {}},
            {
                "name": "in ner",
                "type": {
                    "type": "struct",
                    "fields": [{"name": "z", "type": "long", "nullable": True, "metadata": {}}],
                },
                "nullable": True,
                "metadata": {},
            },
        ],
    },
    "Mixed Case": "string",
}


def field(name: str, kind: object, **metadata: object) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def table(*fields: dict[str, object]) -> str:
    return json.dumps({"type": "struct", "fields": list(fields)})


SCHEMA = table(*(field(n, t) for n, t in COLUMNS.items()))


class Bind:
    """Binds against the table; what comes back is the tree as Spark SQL, in which every cast shows."""

    schema = SCHEMA

    def __call__(self, predicate: object, **settings: object) -> str:
        return to_spark_sql(bind_predicate(predicate, self.schema, ExpressionContext(**settings)))

    def expression(self, text: str, **settings: object) -> str:
        return to_spark_sql(bind_expression(text, self.schema, ExpressionContext(**settings)))

    def tree(self, text: str, **settings: object):
        return bind_expression(text, self.schema, ExpressionContext(**settings))["expr"]

    def content(self, text: str, **settings: object):
        """Return the root without its kind."""
        (content,) = self.tree(text, **settings).values()
        return content

    def type(self, text: str, **settings: object):
        return self.content(text, **settings).get("data_type", "boolean")


@pytest.fixture
def bind() -> Bind:
    return Bind()
