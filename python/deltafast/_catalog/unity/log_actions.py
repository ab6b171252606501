"""Actions of a commit in the form that the Delta API of Unity Catalog has."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from deltafast._delta_keys import CLUSTERING_DOMAIN, MIN_READER_VERSION, MIN_WRITER_VERSION
from deltafast._types import transform

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["columns_of", "commit_report", "definition", "protocol_of", "updates"]

#: Domains that the catalog keeps.
_DOMAINS = (CLUSTERING_DOMAIN, "delta.rowTracking")
#: Properties that the server adds by itself.
_DERIVED = (
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    "delta.clusteringColumns",
    "delta.lastUpdateVersion",
    "delta.lastCommitTimestamp",
    "delta.rowTracking.rowIdHighWaterMark",
)

#: Rows of a commit, and the metrics of operations that count them, the first that is there.
_ROW_METRICS = {
    "num-rows-inserted": ("numTargetRowsInserted", "numOutputRows"),
    "num-rows-removed": ("numTargetRowsDeleted", "numDeletedRows"),
    "num-rows-updated": ("numTargetRowsUpdated", "numUpdatedRows"),
}

#: The parts of the definition of a new table: the update of an existing one that has it, and its key there.
_PARTS = {
    "columns": ("set-columns", "columns"),
    "partition-columns": ("set-partition-columns", "partition-columns"),
    "protocol": ("set-protocol", "protocol"),
    "properties": ("set-properties", "updates"),
    "comment": ("set-table-comment", "comment"),
    "domain-metadata": ("set-domain-metadata", "updates"),
}


def updates(actions: list[dict[str, Any]], known: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield what a commit changes of the table's definition.

    Args:
        actions: The actions.
        known: The properties that the catalog has.
    """
    for action in actions:
        if "metaData" in action:
            metadata = action["metaData"]
            yield {"action": "set-columns", "columns": columns_of(json.loads(metadata["schemaString"]))}
            configuration: dict[str, str] = metadata.get("configuration") or {}
            changed = {key: value for key, value in configuration.items() if known.get(key) != value}
            if changed:
                yield {"action": "set-properties", "updates": changed}
            removed = sorted(key for key in known if key not in configuration and not _is_derived(key))
            if removed:
                yield {"action": "remove-properties", "removals": removed}
            if metadata.get("description") is not None:
                yield {"action": "set-table-comment", "comment": metadata["description"]}
            yield {"action": "set-partition-columns", "partition-columns": metadata["partitionColumns"]}
        elif "protocol" in action:
            yield {"action": "set-protocol", "protocol": protocol_of(action["protocol"])}
    domains = [action["domainMetadata"] for action in actions if "domainMetadata" in action]
    ours = [found for found in domains if found["domain"] in _DOMAINS]
    kept = {found["domain"]: json.loads(found["configuration"]) for found in ours if not found.get("removed")}
    gone = sorted(found["domain"] for found in ours if found.get("removed"))
    if kept:
        yield {"action": "set-domain-metadata", "updates": kept}
    if gone:
        yield {"action": "remove-domain-metadata", "domains": gone}


def definition(actions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the definition of a new table by the actions of its first version."""
    made = {update["action"]: update for update in updates(actions, {})}
    parts = {name: made[action][key] for name, (action, key) in _PARTS.items() if action in made}
    return {"properties": {}, **parts}


def commit_report(actions: list[dict[str, Any]]) -> dict[str, int]:
    """Return the metrics of a commit: files and bytes of its actions, rows by the metrics of its operation."""
    report: dict[str, int] = {}
    for kind, past in (("add", "added"), ("remove", "removed")):
        files = [action[kind] for action in actions if kind in action]
        report[f"num-files-{past}"] = len(files)
        report[f"num-bytes-{past}"] = sum(file.get("size") or 0 for file in files)
    info: dict[str, Any] = {}
    for action in actions:
        info = action.get("commitInfo") or info
    metrics: dict[str, Any] = info.get("operationMetrics") or {}
    for name, known in _ROW_METRICS.items():
        found = next((metrics[metric] for metric in known if str(metrics.get(metric, "")).isdigit()), None)
        if found is not None:
            report[name] = int(found)
    return report


def columns_of(data_type: Any) -> Any:
    """Return a type of the log in the form of the catalog, which spells its keys with hyphens."""

    def with_hyphens(of: Any) -> Any:
        match of:
            case {"fields": fields}:
                return {"type": "struct", "fields": [_field(field) for field in fields]}
            case {"type": _}:
                return {re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", key): of[key] for key in of}
            case _:
                return of

    return transform(data_type, with_hyphens)


def protocol_of(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Return the action `protocol` in the form of the catalog."""
    names = {"minReaderVersion": "min-reader-version", "minWriterVersion": "min-writer-version"}
    names |= {"readerFeatures": "reader-features", "writerFeatures": "writer-features"}
    return {names[key]: value for key, value in protocol.items() if key in names and value is not None}


def _field(field: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: field[key] for key in ("name", "type", "nullable")}
    return {**kept, "metadata": field.get("metadata") or {}}


def _is_derived(key: str) -> bool:
    return key in _DERIVED or key.startswith("delta.feature.")
