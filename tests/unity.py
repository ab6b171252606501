"""A server of Unity Catalog, as far as its specification says what it does: every request and answer is checked.

It was not compared with a real server.
"""

from __future__ import annotations

import functools
import json
import pathlib
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import openapi
import servers

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = pathlib.Path(__file__).parent / "data" / "unity"
ROOT = "/api/2.1/unity-catalog"
#: Types are strings, or objects with a member `type`; the schema describes only the latter.
_LOOSE = ("DeltaDataType",)
#: The most commits that are not published.
MOST_COMMITS = 20


class RefusalError(Exception):
    """An answer with an error."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


class UnityServer(servers.Server):
    """A server with the catalog `main` and the schema `sales`.

    Args:
        credentials: Makes the credentials of a location and an operation: those of the Delta API in `config`.
        has_delta_api: Whether it has the Delta API; else it is one of before.
    """

    def __init__(
        self,
        credentials: Callable[[str, str], tuple[dict[str, str], float]] | None = None,
        *,
        has_delta_api: bool = True,
    ) -> None:
        super().__init__()
        self._credentials = credentials or _no_credentials
        self._has_delta_api = has_delta_api
        self._delta, self._all = _specifications()
        self._lock = threading.Lock()
        self.tables: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.names = {"main": {"sales"}}
        #: Where managed tables are made, and the locations of those that have no name yet.
        self.warehouse = ""
        self.staged: dict[str, str] = {}
        #: The token that requests must have.
        self.token = "word"
        #: What is wrong in requests and answers.
        self.violations: list[str] = []
        #: Called with method and target; may answer instead.
        self.disturb: Callable[[str], servers.Answer | None] | None = None
        #: Says of a request whether its answer is lost, after it was carried out.
        self.loses: Callable[[str], bool] | None = None
        #: Whether it takes metrics of commits, and those that it was sent.
        self.takes_metrics = False
        self.metrics: list[dict[str, Any]] = []
        #: Operations for which no credentials are given.
        self.forbidden: set[str] = set()

    def register(self, name: str, location: str, properties: dict[str, str], schema: Any, *, managed: bool) -> None:
        """Add a table that exists."""
        self.tables[tuple(name.split("."))] = {  # type: ignore[index]
            "id": str(uuid.uuid4()),
            "kind": "MANAGED" if managed else "EXTERNAL",
            "location": location,
            "format": "DELTA",
            "columns": schema,
            "properties": dict(properties),
            "commits": {},
            "latest": 0,
            "published": 0,
            "etag": 0,
        }

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> servers.Answer:
        """Answer a request, and check both."""
        request = f"{method} {target.removeprefix(ROOT)}"
        self.requests.append(request)
        given = {name.lower(): value for name, value in headers.items()}
        if self.disturb is not None and (instead := self.disturb(request)) is not None:
            return instead
        if given.get("authorization") != f"Bearer {self.token}":
            return _json(401, _error(401, "NotAuthorizedException", "the token is missing or has expired"))
        content = json.loads(body) if body else None
        try:
            specification = self._delta if f"{ROOT}/delta/v1" in target else self._all
            operation = specification.request(method, target, content)
            if operation is None or (specification is self._delta and not self._has_delta_api):
                return _json(404, _error(404, "NotFoundException", "no such endpoint"))
            try:
                with self._lock:
                    status, answer = 200, getattr(self, f"_{operation.name}")(operation, content)
            except RefusalError as refusal:
                status, answer = refusal.status, _error(refusal.status, refusal.kind, str(refusal))
            status = 204 if answer is None and status == 200 else status
            specification.answer(method, target, status, answer)
        except AssertionError as error:
            self.violations.append(f"{request}: {error}")
            return _json(400, _error(400, "BadRequestException", str(error)))
        if self.loses is not None and self.loses(request):
            return servers.DROPPED
        return servers.Answer(204, {}, b"") if answer is None else _json(status, answer)

    # --- the Delta API -----------------------------------------------------------------------------

    def _getConfig(self, operation: openapi.Operation, _: Any) -> Any:  # noqa: N802 - names of the specification
        if operation.query["catalog"] not in self.names:
            raise RefusalError(404, "NoSuchCatalogException", "no such catalog")
        table = "/v1/catalogs/{catalog}/schemas/{schema}/tables/{table}"
        endpoints = [f"GET {table}", *([f"POST {table}/metrics"] if self.takes_metrics else [])]
        return {"endpoints": endpoints, "protocol-version": "1.0"}

    def _reportMetrics(self, operation: openapi.Operation, body: Any) -> Any:  # noqa: N802
        assert body["table-id"] == self._table(operation)["id"], "the metrics are of another table"
        self.metrics.append(body["report"]["commit-report"])

    def _getTemporaryPathCredentials(self, operation: openapi.Operation, _: Any) -> Any:  # noqa: N802
        wanted = operation.query["operation"]
        if wanted in self.forbidden:
            raise RefusalError(403, "PermissionDeniedException", f"no {wanted}")
        return {"storage-credentials": [self._credential(operation.query["location"], wanted)]}

    def _createStagingTable(self, operation: openapi.Operation, body: Any) -> Any:  # noqa: N802
        key = self._key_of_schema(operation, body["name"])
        if key in self.tables:
            raise RefusalError(409, "AlreadyExistsException", "there is one")
        table_id = str(uuid.uuid4())
        location = f"{self.warehouse}/{table_id}"
        self.staged[table_id] = location
        features = ["catalogManaged", "deletionVectors", "inCommitTimestamp", "v2Checkpoint", "vacuumProtocolCheck"]
        readers = [feature for feature in features if feature != "inCommitTimestamp"]
        versions = {"min-reader-version": 3, "min-writer-version": 7}
        return {
            "table-id": table_id,
            "table-type": "MANAGED",
            "location": location,
            "storage-credentials": [self._credential(location, "READ_WRITE")],
            "required-protocol": {**versions, "reader-features": readers, "writer-features": features},
            "required-properties": {
                "delta.checkpointPolicy": "v2",
                "delta.enableDeletionVectors": "true",
                "delta.enableInCommitTimestamps": "true",
                "io.unitycatalog.tableId": table_id,
            },
            "suggested-protocol": {"writer-features": ["columnMapping", "domainMetadata", "rowTracking"]},
            "suggested-properties": {
                "delta.columnMapping.mode": "name",
                "delta.columnMapping.maxColumnId": None,
                "delta.enableRowTracking": "true",
                "delta.rowTracking.materializedRowIdColumnName": None,
            },
        }

    def _getStagingTableCredentials(self, operation: openapi.Operation, _: Any) -> Any:  # noqa: N802
        location = self.staged.get(operation.parts["table_id"])
        if location is None:
            raise RefusalError(404, "NoSuchTableException", "no such staging table")
        return {"storage-credentials": [self._credential(location, "READ_WRITE")]}

    def _createTable(self, operation: openapi.Operation, body: Any) -> Any:  # noqa: N802
        """Answer both APIs, which have an operation of this name."""
        if "table_type" in body:
            return self._create_by_tables_api(body)
        key = self._key_of_schema(operation, body["name"])
        if key in self.tables:
            raise RefusalError(409, "AlreadyExistsException", "there is one")
        if body["table-type"] == "EXTERNAL":
            self._check_external(body["location"], body["properties"])
            self.register(".".join(key), body["location"], body["properties"], body["columns"], managed=False)
            return self._loaded(self.tables[key])
        table_id = next((known for known, location in self.staged.items() if location == body["location"]), None)
        assert table_id is not None, "the location is not one of a staging table"
        assert body["properties"].get("io.unitycatalog.tableId") == table_id, "the id of the table is not its property"
        wanted = {"catalogManaged", "deletionVectors", "inCommitTimestamp", "v2Checkpoint", "vacuumProtocolCheck"}
        missing = wanted - set(body["protocol"]["writer-features"])
        assert not missing, f"the protocol lacks {missing}"
        if body["location"].startswith("file://"):
            first = pathlib.Path(body["location"].removeprefix("file://")) / "_delta_log" / f"{0:020}.json"
            assert first.exists(), "the first version is not in the log"
        self.register(".".join(key), body["location"], body["properties"], body["columns"], managed=True)
        self.tables[key]["id"] = table_id
        self.tables[key]["properties"]["delta.feature.catalogManaged"] = "supported"
        del self.staged[table_id]
        return self._loaded(self.tables[key])

    def _create_by_tables_api(self, body: Any) -> Any:
        key = (body["catalog_name"], body["schema_name"], body["name"])
        if body["schema_name"] not in self.names.get(body["catalog_name"], ()):
            raise RefusalError(404, "NOT_FOUND", "no such schema")
        if key in self.tables:
            raise RefusalError(409, "ALREADY_EXISTS", "there is one")
        assert (body["table_type"], body["data_source_format"]) == ("EXTERNAL", "DELTA"), "not an external Delta table"
        self._check_external(body["storage_location"], body["properties"])
        fields = [json.loads(column["type_json"]) for column in body["columns"]]
        schema = {"type": "struct", "fields": fields}
        self.register(".".join(key), body["storage_location"], body["properties"], schema, managed=False)
        self.tables[key]["described_columns"] = body["columns"]
        return self._described(key)

    def _check_external(self, location: str, properties: dict[str, str]) -> None:
        assert "delta.feature.catalogManaged" not in properties, "an external table has no commits in the catalog"
        assert location not in self.staged.values(), "the location is one of a managed table"
        if location in {table["location"] for table in self.tables.values()}:
            raise RefusalError(409, "AlreadyExistsException", "another table has the location")

    def _key_of_schema(self, operation: openapi.Operation, table: str) -> tuple[str, str, str]:
        catalog, schema = operation.parts["catalog"], operation.parts["schema"]
        if schema not in self.names.get(catalog, ()):
            raise RefusalError(404, "NoSuchSchemaException", "no such schema")
        return catalog, schema, table

    def _loadTable(self, operation: openapi.Operation, _: Any) -> Any:  # noqa: N802
        table = self._table(operation)
        if table["format"] != "DELTA":
            raise RefusalError(400, "UnsupportedTableFormatException", "not a Delta table")
        return self._loaded(table)

    def _updateTable(self, operation: openapi.Operation, body: Any) -> Any:  # noqa: N802
        table = self._table(operation)
        for requirement in body["requirements"]:
            expected = table["id"] if requirement["type"] == "assert-table-uuid" else str(table["etag"])
            if requirement.get("uuid", requirement.get("etag")) != expected:
                raise RefusalError(409, "UpdateRequirementConflictException", "another table, or another state of it")
        kinds = [update["action"] for update in body["updates"]]
        assert len(set(kinds)) == len(kinds), "two updates of one kind"
        commit = next((update["commit"] for update in body["updates"] if update["action"] == "add-commit"), None)
        if commit is not None:
            known = table["commits"].get(commit["version"])
            if known is not None and known["file-name"] == commit["file-name"]:
                return self._loaded(table)
            if commit["version"] != table["latest"] + 1:
                raise RefusalError(409, "CommitVersionConflictException", f"the newest version is {table['latest']}")
            if len(table["commits"]) >= MOST_COMMITS:
                raise RefusalError(429, "ResourceExhaustedException", "too many commits are not published")
            file = pathlib.Path(table["location"].removeprefix("file://"))
            assert (
                not table["location"].startswith("file:")
                or (file / "_delta_log" / "_staged_commits" / commit["file-name"]).exists()
            ), "the file of the commit does not exist"
        for update in body["updates"]:
            self._apply(table, update)
        table["etag"] += 1
        return self._loaded(table)

    @staticmethod
    def _apply(table: dict[str, Any], update: dict[str, Any]) -> None:
        match update["action"]:
            case "add-commit":
                table["commits"][update["commit"]["version"]] = update["commit"]
                table["latest"] = update["commit"]["version"]
            case "set-latest-backfilled-version":
                table["published"] = max(table["published"], update["latest-published-version"])
                table["commits"] = {n: commit for n, commit in table["commits"].items() if n > table["published"]}
            case "set-properties":
                table["properties"] |= update["updates"]
            case "remove-properties":
                for name in update["removals"]:
                    table["properties"].pop(name, None)
            case "set-columns":
                table["columns"] = update["columns"]
            case other:
                table.setdefault("others", []).append(other)

    def _getTableCredentials(self, operation: openapi.Operation, _: Any) -> Any:  # noqa: N802
        table, wanted = self._table(operation), operation.query["operation"]
        if wanted in self.forbidden:
            raise RefusalError(403, "PermissionDeniedException", f"no {wanted}")
        return {"storage-credentials": [self._credential(table["location"], wanted)]}

    def _credential(self, location: str, operation: str) -> dict[str, Any]:
        config, expires = self._credentials(location, operation)
        found = {"prefix": location, "operation": operation, "config": config}
        return {**found, "expiration-time-ms": round(expires * 1000)}

    def _renameTable(self, operation: openapi.Operation, body: Any) -> Any:  # noqa: N802
        table, key = self._table(operation), self._key(operation)
        new = (*key[:2], body["new-name"])
        if new in self.tables:
            raise RefusalError(409, "AlreadyExistsException", "there is one")
        del self.tables[key]
        self.tables[new] = table

    def _loaded(self, table: dict[str, Any]) -> dict[str, Any]:
        return {
            "metadata": {
                "etag": str(table["etag"]),
                "table-type": table["kind"],
                "table-uuid": table["id"],
                "location": table["location"],
                "created-time": 0,
                "updated-time": 0,
                "columns": table["columns"],
                "properties": table["properties"] | {"delta.lastUpdateVersion": "0"},
            },
            "commits": [table["commits"][version] for version in sorted(table["commits"], reverse=True)],
            "latest-table-version": table["latest"],
        }

    # --- the tables API ----------------------------------------------------------------------------

    def _listCatalogs(self, _: openapi.Operation, __: Any) -> Any:  # noqa: N802
        return {"catalogs": [{"name": name} for name in self.names]}

    def _listSchemas(self, operation: openapi.Operation, _: Any) -> Any:  # noqa: N802
        return {"schemas": [{"name": name} for name in self.names[operation.query["catalog_name"]]]}

    def _listTables(self, operation: openapi.Operation, _: Any) -> Any:  # noqa: N802
        place = (operation.query["catalog_name"], operation.query["schema_name"])
        names = sorted(key[2] for key in self.tables if key[:2] == place)
        # Two to a page.
        start = int(operation.query.get("page_token", "0"))
        page: dict[str, Any] = {"tables": [{"name": name} for name in names[start : start + 2]]}
        return page | ({"next_page_token": str(start + 2)} if start + 2 < len(names) else {})

    def _getTable(self, operation: openapi.Operation, _: Any) -> Any:  # noqa: N802
        self._table(operation)
        return self._described(self._key(operation))

    def _described(self, key: tuple[str, str, str]) -> dict[str, Any]:
        table = self.tables[key]
        return {
            "name": key[2],
            "table_type": table["kind"],
            "data_source_format": table["format"],
            "storage_location": table["location"],
            "table_id": table["id"],
            "properties": table["properties"],
            "catalog_name": key[0],
            "schema_name": key[1],
            "columns": table.get("described_columns", []),
        }

    def _deleteTable(self, operation: openapi.Operation, _: Any) -> Any:  # noqa: N802
        self._table(operation)
        del self.tables[self._key(operation)]
        return {}

    def _generateTemporaryTableCredentials(self, _: openapi.Operation, body: Any) -> Any:  # noqa: N802
        table = next(table for table in self.tables.values() if table["id"] == body["table_id"])
        if body["operation"] in self.forbidden:
            raise RefusalError(403, "PERMISSION_DENIED", f"no {body['operation']}")
        return self._temporary(table["location"], body["operation"])

    def _generateTemporaryPathCredentials(self, _: openapi.Operation, body: Any) -> Any:  # noqa: N802
        if body["operation"] in self.forbidden:
            raise RefusalError(403, "PERMISSION_DENIED", f"no {body['operation']}")
        return self._temporary(body["url"], body["operation"])

    def _temporary(self, location: str, operation: str) -> dict[str, Any]:
        config, expires = self._credentials(location, operation)
        found: dict[str, Any] = {"expiration_time": round(expires * 1000)}
        if "azure.sas-token" in config:
            return found | {"azure_user_delegation_sas": {"sas_token": config["azure.sas-token"]}}
        if "gcs.oauth-token" in config:
            return found | {"gcp_oauth_token": {"oauth_token": config["gcs.oauth-token"]}}
        if not config:
            return found
        keys = {name: config.get(f"s3.{name.replace('_', '-')}") for name in ("access_key_id", "secret_access_key")}
        return found | {"aws_temp_credentials": {**keys, "session_token": config.get("s3.session-token")}}

    def _key(self, operation: openapi.Operation) -> tuple[str, str, str]:
        parts = {name: unquote(value) for name, value in operation.parts.items()}
        if "full_name" in parts:
            catalog, schema, table = parts["full_name"].split(".")
            return catalog, schema, table
        return parts["catalog"], parts["schema"], parts["table"]

    def _table(self, operation: openapi.Operation) -> dict[str, Any]:
        found = self.tables.get(self._key(operation))
        if found is None:
            raise RefusalError(404, "NoSuchTableException", "no such table")
        return found


@functools.cache
def _specifications() -> tuple[openapi.Specification, openapi.Specification]:
    """Return the Delta API, and the API of catalogs, schemas and tables; reading them takes a second."""
    return openapi.Specification(DATA / "delta.yaml", ROOT, _LOOSE), openapi.Specification(DATA / "all.yaml", ROOT)


def _no_credentials(location: str, operation: str) -> tuple[dict[str, str], float]:
    return {}, time.time() + 3600


def _error(status: int, kind: str, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": status}}


def _json(status: int, content: Any) -> servers.Answer:
    return servers.Answer(status, {"Content-Type": "application/json"}, json.dumps(content).encode())
