"""A specification in OpenAPI 3.1: whether requests and answers are as it says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import jsonschema
import yaml

if TYPE_CHECKING:
    import pathlib


class Operation(NamedTuple):
    """An operation that a request is one of."""

    name: str
    #: The values of the parts of the path.
    parts: dict[str, str]
    query: dict[str, str]


class Specification:
    """The operations of a file.

    Args:
        file: The file.
        root: The path of all operations.
        loose: Names of schemas that are not checked.
    """

    def __init__(self, file: pathlib.Path, root: str, loose: tuple[str, ...] = ()) -> None:
        self._content: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
        for name in loose:
            self._content["components"]["schemas"][name] = {}
        _choose_variants(self._content["components"]["schemas"])
        self._root = root
        self._paths = {
            re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path)) + "$"): item
            for path, item in self._content["paths"].items()
        }

    def request(self, method: str, target: str, body: Any) -> Operation | None:
        """Return the operation of a request after a check; None if it is none of this file.

        Raises:
            AssertionError: The request is not as the specification says.
        """
        found = self._find(method, target)
        if found is None:
            return None
        item, operation, parts = found
        query = dict(parse_qsl(urlsplit(target).query, keep_blank_values=True))
        parameters = [self._resolved(one) for one in [*item.get("parameters", ()), *operation.get("parameters", ())]]
        known = {one["name"]: one for one in parameters if one["in"] == "query"}
        assert not query.keys() - known.keys(), f"{method} {target} has parameters that the specification lacks"
        missing = [name for name, one in known.items() if one.get("required") and name not in query]
        assert not missing, f"{method} {target} lacks {missing}"
        for name, value in query.items():
            schema = self._resolved(known[name]["schema"])
            self._check(int(value) if schema.get("type") == "integer" else value, schema)
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        assert (content is None) == (body is None), f"{method} {target} has or lacks a body"
        if content is not None:
            self._check(body, content["schema"])
        return Operation(operation["operationId"], parts, query)

    def answer(self, method: str, target: str, status: int, body: Any) -> None:
        """Check the answer to a request.

        Raises:
            AssertionError: The answer is not as the specification says.
        """
        found = self._find(method, target)
        assert found is not None
        responses = found[1]["responses"]
        # Of errors the tables API says nothing.
        if str(status) not in responses and status >= 400:
            return
        assert str(status) in responses, f"{method} {target} has no answer {status}"
        content = self._resolved(responses[str(status)]).get("content", {}).get("application/json")
        if content and content.get("schema"):
            self._check(body, content["schema"])

    def _find(self, method: str, target: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]] | None:
        path = urlsplit(target).path.removeprefix(self._root)
        for pattern, item in self._paths.items():
            match = pattern.match(path)
            if match and method.lower() in item:
                return item, item[method.lower()], match.groupdict()
        return None

    def _resolved(self, node: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in node:
            found: Any = self._content
            for part in node["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            node = found
        return node

    def _check(self, value: Any, schema: dict[str, Any]) -> None:
        validator = jsonschema.Draft202012Validator({**schema, "components": self._content["components"]})
        errors = sorted(validator.iter_errors(value), key=str)
        assert not errors, f"{errors[0].json_path}: {errors[0].message}"


def _choose_variants(schemas: dict[str, Any]) -> None:
    """Make schemas with a discriminator check the variant that a value names."""
    for name, base in list(schemas.items()):
        mapping = base.get("discriminator", {}).get("mapping")
        if not mapping:
            continue
        key = base["discriminator"]["propertyName"]
        schemas[f"{name}Base"] = {part: value for part, value in base.items() if part != "discriminator"}
        for reference in mapping.values():
            variant = schemas[reference.rpartition("/")[2]]
            for part in variant.get("allOf", ()):
                if part.get("$ref") == f"#/components/schemas/{name}":
                    part["$ref"] += "Base"
        schemas[name] = {
            "type": "object",
            "properties": {key: {"enum": list(mapping)}},
            "required": [key],
            "allOf": [
                {"if": {"properties": {key: {"const": value}}}, "then": {"$ref": reference}}
                for value, reference in mapping.items()
            ],
        }
