"""`GlueCatalog`: requests to the AWS Glue Data Catalog.

Source: the AWS Glue API (`GetTable`, `CreateTable`, `UpdateTable`), and "Using Delta Lake tables" of Amazon Athena for
the parameter `table_type`.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from deltafast._catalog.catalog_error import CatalogError
from deltafast._catalog.json_answer import AnswerSource, JsonObject
from deltafast._catalog.missing_table import missing_table
from deltafast._catalog.server_text import checked_location, server_text
from deltafast._libraries import raise_named
from deltafast._types import spark_name
from deltafast.exceptions import DeltaProtocolError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltafast._catalog.glue.glue_name import GlueName
    from deltafast.exceptions import TableNotFoundError

__all__ = ["GlueCatalog"]

#: Keys of storage options, in lower case, and the arguments of boto3's client.
_OPTIONS = {
    "aws_region": "region_name",
    "region": "region_name",
    "aws_default_region": "region_name",
    "aws_access_key_id": "aws_access_key_id",
    "access_key_id": "aws_access_key_id",
    "aws_secret_access_key": "aws_secret_access_key",
    "secret_access_key": "aws_secret_access_key",
    "aws_session_token": "aws_session_token",
    "session_token": "aws_session_token",
    "token": "aws_session_token",
}
#: The option with the endpoint of Glue, which is not that of the store.
_ENDPOINT = "glue_endpoint_url"
#: How often a change is made again after somebody else's.
_ATTEMPTS = 5
#: Members of a table that a change of it takes.
_INPUT = (
    "Name",
    "Description",
    "Owner",
    "LastAccessTime",
    "LastAnalyzedTime",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "ViewOriginalText",
    "ViewExpandedText",
    "TableType",
    "Parameters",
    "TargetTable",
)
#: The most pages of a listing.
_PAGES = 10_000
#: What Spark writes in place of the location of a table that has one of its own.
_PLACEHOLDER = "-__PLACEHOLDER__"


class GlueCatalog:
    """A client of the catalog.

    Args:
        client: boto3's client.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    @classmethod
    def of_options(cls, storage_options: Mapping[str, Any] | None) -> tuple[GlueCatalog, dict[str, Any] | None]:
        """Return the catalog, and the options that remain for the store.

        Region and keys come from the options, else from where boto3 finds them. `glue_endpoint_url` is the endpoint.

        Raises:
            MissingLibraryError: boto3 is not installed.
        """
        try:
            boto3: Any = import_module("boto3")
            errors: Any = import_module("botocore.exceptions")
        except ModuleNotFoundError as error:
            raise_named(error, "AWS Glue")
            raise
        options = dict(storage_options or {})
        given = {key.strip().lower(): value for key, value in options.items()}
        arguments = {_OPTIONS[key]: value for key, value in given.items() if key in _OPTIONS}
        # The variable of the store; boto3 has another one.
        if "region_name" not in arguments and os.environ.get("AWS_REGION"):
            arguments["region_name"] = os.environ["AWS_REGION"]
        endpoint = given.get(_ENDPOINT)
        try:
            client = boto3.client("glue", endpoint_url=endpoint, **arguments)
        except (errors.BotoCoreError, ValueError) as error:
            message = f"there is no client of AWS Glue: {str(error).splitlines()[0]}"
            raise InvalidArgumentError(message) from None
        rest = {key: value for key, value in options.items() if key.strip().lower() != _ENDPOINT}
        return cls(client), rest or None

    def location(self, name: GlueName) -> str:
        """Return the location of a table.

        Raises:
            TableNotFoundError: There is no such table; the message has the nearest name.
            DeltaProtocolError: The table is not one of Delta Lake.
            CatalogError: The catalog refused the request.
        """
        table = self._table(name)
        parameters = table.text_map("Parameters")
        kinds = {
            parameters.get(key, "").lower() for key in ("table_type", "spark.sql.sources.provider", "classification")
        }
        if "delta" not in kinds:
            kind = next(filter(None, sorted(kinds)), None) or table.optional_text("TableType") or "unknown"
            message = f"{name} is not a table of Delta Lake: AWS Glue has it as {server_text(kind, most=60)}"
            raise DeltaProtocolError(message)
        storage = table.optional_object("StorageDescriptor")
        serde = storage and storage.optional_object("SerdeInfo")
        path = serde.text_map("Parameters").get("path") if serde else None
        location = path or (storage and storage.optional_text("Location")) or ""
        if not location or location.endswith(_PLACEHOLDER):
            message = f"AWS Glue has no location of {name}"
            raise DeltaProtocolError(message)
        return checked_location(location)

    def new_location(self, name: GlueName) -> str:
        """Return the location for a new table: below that of its database.

        Raises:
            TableNotFoundError: There is no such database.
            InvalidArgumentError: The database has no location.
            CatalogError: The catalog refused the request.
        """
        try:
            found = self._call("get_database", **name.catalog, Name=name.database)
        except CatalogError as error:
            if error.kind != "EntityNotFoundException":
                raise
            raise self._not_found(name) from None
        place = found.object("Database").optional_text("LocationUri")
        if not place:
            message = (
                f"the database {name.database} of AWS Glue has no location, below which {name.table} could be created; "
                "give it one, or write to a URL and register the table"
            )
            raise InvalidArgumentError(message)
        return checked_location(f"{place.rstrip('/')}/{name.table}")

    def register(self, name: GlueName, location: str, schema_string: str) -> None:
        """Give a name to a table that exists.

        Args:
            name: The name.
            location: The URL of the table.
            schema_string: Its schema, as in the log.

        Raises:
            InvalidArgumentError: There is a table of this name.
            CatalogError: The catalog refused the request.
        """
        table = {
            "Name": name.table,
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {
                "EXTERNAL": "TRUE",
                "table_type": "DELTA",
                "classification": "delta",
                "spark.sql.sources.provider": "delta",
            },
            "StorageDescriptor": {
                "Location": location,
                "Columns": _columns(schema_string),
                "InputFormat": "org.apache.hadoop.mapred.SequenceFileInputFormat",
                "OutputFormat": "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
                "SerdeInfo": {
                    "SerializationLibrary": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
                    "Parameters": {"serialization.format": "1", "path": location},
                },
            },
        }
        try:
            self._call("create_table", **name.catalog, DatabaseName=name.database, TableInput=table)
        except CatalogError as error:
            if error.kind != "AlreadyExistsException":
                raise
            # After a lost answer, which boto3 asks for again, the table has its name already.
            if self.location(name) != location:
                message = f"there is a table {name} in AWS Glue already"
                raise InvalidArgumentError(message) from None

    def change_columns(self, name: GlueName, schema_string: str) -> None:
        """Change the columns of a table.

        Raises:
            TableNotFoundError: There is no such table.
            CatalogError: The catalog refused the request.
        """
        for left in range(_ATTEMPTS, -1, -1):
            found = self._table(name).members
            table: dict[str, Any] = {key: found[key] for key in _INPUT if key in found}
            table["StorageDescriptor"] = {**(table.get("StorageDescriptor") or {}), "Columns": _columns(schema_string)}
            version = {"VersionId": found["VersionId"]} if found.get("VersionId") else {}
            try:
                self._call("update_table", **name.catalog, DatabaseName=name.database, TableInput=table, **version)
            except CatalogError as error:
                if not left or error.kind != "ConcurrentModificationException":
                    raise
            else:
                return

    def _table(self, name: GlueName) -> JsonObject:
        try:
            return self._call("get_table", **name.catalog, DatabaseName=name.database, Name=name.table).object("Table")
        except CatalogError as error:
            if error.kind != "EntityNotFoundException":
                raise
            raise self._not_found(name) from None

    def _call(self, operation: str, **arguments: Any) -> JsonObject:
        errors: Any = import_module("botocore.exceptions")
        try:
            answer = getattr(self._client, operation)(**arguments)
        except errors.ClientError as error:
            failure = _refusal(operation, error.response)
        except errors.BotoCoreError as error:
            failure = CatalogError(f"AWS Glue does not answer {operation}: {server_text(str(error))}")
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            # botocore reads some answers without a look at their types.
            failure = CatalogError(f"AWS Glue answers {operation} with what boto3 cannot read: {type(error).__name__}")
        else:
            return JsonObject(answer, AnswerSource(f"AWS Glue answers {operation}"))
        # Not within `except`: the errors of boto3 have whole answers.
        raise failure

    def _not_found(self, name: GlueName) -> TableNotFoundError:
        """Return the error for a missing table, with what is nearest to its name."""
        levels = (
            ("database", name.database, lambda: self._names("get_databases", "DatabaseList", name)),
            ("table", name.table, lambda: self._names("get_tables", "TableList", name, DatabaseName=name.database)),
        )
        return missing_table(name, "AWS Glue", levels)

    def _names(self, operation: str, key: str, name: GlueName, **arguments: str) -> Iterator[str]:
        token, seen_tokens = "", {""}
        while True:
            page = self._call(operation, **name.catalog, **arguments, **({"NextToken": token} if token else {}))
            yield from (found.text("Name") for found in page.objects(key))
            token = page.optional_text("NextToken") or ""
            if not token:
                return
            if token in seen_tokens or len(seen_tokens) > _PAGES:
                problem = "the same page twice" if token in seen_tokens else f"more than {_PAGES} pages"
                message = f"AWS Glue answers {operation} with {problem}"
                raise CatalogError(message)
            seen_tokens.add(token)


def _refusal(operation: str, response: Any) -> CatalogError:
    """Return the error for a refusal of the service."""
    answer = JsonObject(response, AnswerSource(f"AWS Glue answers {operation}"))
    error, metadata = answer.optional_object("Error"), answer.optional_object("ResponseMetadata")
    status = metadata and metadata.optional_integer("HTTPStatusCode")
    kind, text = (str(error.members.get(name) or "") if error else "" for name in ("Code", "Message"))
    kind, line = server_text(kind, most=100), server_text(text.partition("\n")[0])
    return CatalogError(f"AWS Glue answers {operation} with {kind}: {line}", status=status, kind=kind)


def _columns(schema_string: str) -> list[dict[str, str]]:
    """Return the columns of a schema of the log."""
    return [_column(field) for field in json.loads(schema_string)["fields"]]


def _column(field: Mapping[str, Any]) -> dict[str, str]:
    column = {"Name": field["name"], "Type": spark_name(field["type"])}
    details: dict[str, Any] = field.get("metadata") or {}
    comment = details.get("comment")
    return column | ({} if comment is None else {"Comment": str(comment)[:255]})
