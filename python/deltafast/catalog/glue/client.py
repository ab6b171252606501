"""`GlueCatalog`: requests to the AWS Glue Data Catalog.

Source: the AWS Glue API (`GetTable`, `CreateTable`, `UpdateTable`), and "Using Delta Lake tables" of Amazon Athena for
the parameter `table_type`.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from deltafast._libraries import raise_named
from deltafast.catalog.catalog_types import catalog_string
from deltafast.catalog.missing_table import missing_table
from deltafast.catalog.rest_client import CatalogError
from deltafast.exceptions import DeltaProtocolError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltafast.catalog.glue.glue_name import GlueName
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
        parameters: dict[str, str] = table.get("Parameters") or {}
        kinds = {
            parameters.get(key, "").lower() for key in ("table_type", "spark.sql.sources.provider", "classification")
        }
        storage: dict[str, Any] = table.get("StorageDescriptor") or {}
        if "delta" not in kinds:
            kind = next(filter(None, sorted(kinds)), None) or table.get("TableType") or "unknown"
            message = f"{name} is not a table of Delta Lake: AWS Glue has it as {kind}"
            raise DeltaProtocolError(message)
        serde: dict[str, Any] = storage.get("SerdeInfo") or {}
        reader: dict[str, str] = serde.get("Parameters") or {}
        location: str = reader.get("path") or storage.get("Location") or ""
        if not location or location.endswith(_PLACEHOLDER):
            message = f"AWS Glue has no location of {name}"
            raise DeltaProtocolError(message)
        return location

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
        place: str = found["Database"].get("LocationUri") or ""
        if not place:
            message = (
                f"the database {name.database} of AWS Glue has no location, below which {name.table} could be created; "
                "give it one, or write to a URL and register the table"
            )
            raise InvalidArgumentError(message)
        return f"{place.rstrip('/')}/{name.table}"

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
            found = self._table(name)
            table = {key: found[key] for key in _INPUT if key in found}
            table["StorageDescriptor"] = {**table["StorageDescriptor"], "Columns": _columns(schema_string)}
            version = {"VersionId": found["VersionId"]} if found.get("VersionId") else {}
            try:
                self._call("update_table", **name.catalog, DatabaseName=name.database, TableInput=table, **version)
            except CatalogError as error:
                if not left or error.kind != "ConcurrentModificationException":
                    raise
            else:
                return

    def _table(self, name: GlueName) -> dict[str, Any]:
        try:
            return self._call("get_table", **name.catalog, DatabaseName=name.database, Name=name.table)["Table"]
        except CatalogError as error:
            if error.kind != "EntityNotFoundException":
                raise
            raise self._not_found(name) from None

    def _call(self, operation: str, **arguments: Any) -> Any:
        errors: Any = import_module("botocore.exceptions")
        try:
            return getattr(self._client, operation)(**arguments)
        except errors.ClientError as error:
            answer: dict[str, dict[str, Any]] = error.response
            found, status = answer.get("Error", {}), answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
            kind, text = str(found.get("Code") or ""), str(found.get("Message") or "").partition("\n")[0][:300]
            message = f"AWS Glue answers {operation} with {kind}: {text}"
            raise CatalogError(message, status=status, kind=kind) from None
        except errors.BotoCoreError as error:
            message = f"AWS Glue does not answer {operation}: {str(error).partition(chr(10))[0]}"
            raise CatalogError(message) from None

    def _not_found(self, name: GlueName) -> TableNotFoundError:
        """Return the error for a missing table, with what is nearest to its name."""
        levels = (
            ("database", name.database, lambda: self._names("get_databases", "DatabaseList", name)),
            ("table", name.table, lambda: self._names("get_tables", "TableList", name, DatabaseName=name.database)),
        )
        return missing_table(name, "AWS Glue", levels)

    def _names(self, operation: str, key: str, name: GlueName, **arguments: str) -> Iterator[str]:
        token: dict[str, str] = {}
        while True:
            page = self._call(operation, **name.catalog, **arguments, **token)
            yield from (found["Name"] for found in page[key])
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}


def _columns(schema_string: str) -> list[dict[str, str]]:
    """Return the columns of a schema of the log."""
    return [_column(field) for field in json.loads(schema_string)["fields"]]


def _column(field: Mapping[str, Any]) -> dict[str, str]:
    column = {"Name": field["name"], "Type": catalog_string(field["type"])}
    details: dict[str, Any] = field.get("metadata") or {}
    comment = details.get("comment")
    return column | ({} if comment is None else {"Comment": str(comment)[:255]})
