"""The schema log of a stream: the metadata of the table with which a query reads, one entry for each change.

It is delta-spark's log, in files and JSON, so a query can continue with either library.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltafast._types import is_struct, transform
from deltafast.exceptions import DeltaProtocolError, ErrorCode, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltafast import _core
    from deltafast.spark._streaming.checkpoint_files import CheckpointFolder

__all__ = ["SchemaLog", "TrackedMetadata", "log_folder"]

_FORMAT = 1
#: Metadata of fields that changes without a change of the schema.
_INTERNAL = ("delta.identity.highWaterMark",)


def log_folder(location: str, table_id: str, tracking_id: str | None) -> str:
    """Return the folder of the log of a source below the location that the program gives."""
    return f"{location.rstrip('/')}/_schema_log_{table_id}" + ("" if tracking_id is None else f"_{tracking_id}")


@dataclass(frozen=True)
class TrackedMetadata:
    """An entry: the metadata and the protocol of a version."""

    table_id: str
    #: The version from which on it applies.
    version: int
    #: The columns, in Delta's JSON.
    fields: Sequence[Mapping[str, Any]]
    partition_fields: Sequence[Mapping[str, Any]]
    #: The folder of the source in the checkpoint of its query.
    source: str
    #: None in entries of early releases of delta-spark, like the protocol.
    configuration: Mapping[str, str] | None
    protocol: Mapping[str, Any] | None
    #: The number of the entry before this one, if it is not the last number.
    previous: int | None = None

    @classmethod
    def of(cls, snapshot: _core.Snapshot, source: str) -> TrackedMetadata:
        """Return the entry of a version."""
        metadata = snapshot.metadata()
        fields = json.loads(metadata["schemaString"])["fields"]
        by_name = {field["name"]: field for field in fields}
        partition = [by_name[name] for name in metadata["partitionColumns"]]
        protocol = {key: value for key, value in snapshot.protocol().items() if value is not None}
        configuration = dict(metadata["configuration"])
        return cls(metadata["id"], snapshot.version, fields, partition, source, configuration, protocol)

    @classmethod
    def from_json(cls, text: str) -> TrackedMetadata:
        """Parse an entry."""
        found = json.loads(text)
        protocol = found.get("protocolJson")
        return cls(
            found["tableId"],
            found["deltaCommitVersion"],
            json.loads(found["dataSchemaJson"])["fields"],
            json.loads(found["partitionSchemaJson"])["fields"],
            found["sourceMetadataPath"],
            found.get("tableConfigurations"),
            None if protocol is None else json.loads(protocol)["protocol"],
            found.get("previousMetadataSeqNum"),
        )

    def to_json(self) -> str:
        """Return the entry as JSON in one line."""
        found = {
            "tableId": self.table_id,
            "deltaCommitVersion": self.version,
            "dataSchemaJson": _schema_json(self.fields),
            "partitionSchemaJson": _schema_json(self.partition_fields),
            "sourceMetadataPath": self.source,
            "tableConfigurations": self.configuration,
            "protocolJson": None if self.protocol is None else _compact({"protocol": self.protocol}),
            "previousMetadataSeqNum": self.previous,
        }
        return _compact({key: value for key, value in found.items() if value is not None})

    def is_same_as(self, other: TrackedMetadata) -> bool:
        """Return whether a stream can continue from one version to the other without a restart."""
        return (
            _normal_fields(self.fields) == _normal_fields(other.fields)
            and _normal_fields(self.partition_fields) == _normal_fields(other.partition_fields)
            and _properties(self) == _properties(other)
            and self.has_protocol_of(other)
        )

    def has_protocol_of(self, other: TrackedMetadata) -> bool:
        """Return whether both have the same protocol."""
        return _features(self.protocol) == _features(other.protocol)


class SchemaLog:
    """The log of one source of a query.

    Args:
        folder: The folder of the log.
        table_id: The id of the table.
        table_uri: The table, for messages.

    Raises:
        DeltaProtocolError: An entry cannot be read.
        InvalidArgumentError: The log is of another table.
    """

    def __init__(self, folder: CheckpointFolder, table_id: str, table_uri: str) -> None:
        self._folder, self._table_uri = folder, table_uri
        self._number = max((int(name) for name in folder.names() if name.isdigit()), default=-1)
        #: The newest entry; None if there is none.
        self.current = self._read(self._number)
        if self.current is not None and self.current.table_id != table_id:
            message = (
                f"the schema log {folder.location} is of another table ({self.current.table_id}, not {table_id}): "
                "choose another schemaTrackingLocation"
            )
            raise InvalidArgumentError(
                message,
                code=ErrorCode.SCHEMA_LOG_OF_OTHER_TABLE,
                parameters={"log_table_id": self.current.table_id, "table_id": table_id},
            )

    @property
    def location(self) -> str:
        """The location of the log."""
        return self._folder.location

    @property
    def previous(self) -> TrackedMetadata | None:
        """The entry that the newest one replaced as the stream's metadata."""
        return None if self.current is None else self._read(self._previous_number())

    def add(self, entry: TrackedMetadata, *, replaces: bool = False) -> None:
        """Add an entry.

        Args:
            entry: The entry.
            replaces: Whether the stream never read with the newest entry, so that the one before it is the previous.

        Raises:
            InvalidArgumentError: Another query has added one.
        """
        if replaces and self.current is not None:
            entry = replace(entry, previous=self._previous_number())
        if entry == self.current:
            return
        if not self._folder.create(str(self._number + 1), f"v{_FORMAT}\n{entry.to_json()}"):
            message = (
                f"another query uses the schema log {self.location} of a stream of {self._table_uri}: give each stream "
                "another schemaTrackingLocation or streamingSourceTrackingId"
            )
            raise InvalidArgumentError(
                message,
                code=ErrorCode.SCHEMA_LOG_IN_USE,
                parameters={"location": self.location, "table": self._table_uri},
            )
        self._number += 1
        self.current = entry

    def _previous_number(self) -> int:
        given = None if self.current is None else self.current.previous
        return self._number - 1 if given is None else given

    def _read(self, number: int) -> TrackedMetadata | None:
        if number < 0:
            return None
        version, _, text = self._folder.read(str(number)).partition("\n")
        if version != f"v{_FORMAT}":
            message = f"entry {number} of the schema log {self.location} has the unknown format {version!r:.20}"
            raise DeltaProtocolError(message)
        try:
            return TrackedMetadata.from_json(text.partition("\n")[0])
        except (ValueError, KeyError, TypeError) as error:
            message = f"entry {number} of the schema log {self.location} is damaged: choose another "
            message += "schemaTrackingLocation"
            raise DeltaProtocolError(
                message, code=ErrorCode.SCHEMA_LOG_CORRUPT, parameters={"location": self.location}
            ) from error


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _schema_json(fields: Sequence[Mapping[str, Any]]) -> str:
    return _compact({"type": "struct", "fields": list(fields)})


def _normal_fields(fields: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return fields without the metadata that does not matter."""
    return transform({"fields": fields}, _normal)["fields"]


def _normal(of: Any) -> Any:
    return {"type": "struct", "fields": [_normal_field(field) for field in of["fields"]]} if is_struct(of) else of


def _normal_field(field: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in field.get("metadata", {}).items() if key not in _INTERNAL}
    return {
        "name": field["name"],
        "type": field["type"],
        "nullable": field.get("nullable", True),
        "metadata": metadata,
    }


def _properties(entry: TrackedMetadata) -> dict[str, str]:
    return {key: value for key, value in (entry.configuration or {}).items() if key.startswith("delta.")}


def _features(protocol: Mapping[str, Any] | None) -> dict[str, Any]:
    lists = ("readerFeatures", "writerFeatures")
    return {key: set(value) if key in lists else value for key, value in (protocol or {}).items() if value}
