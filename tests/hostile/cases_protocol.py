"""Protocol, metadata and schema that are missing, contradictory or from the future."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tablekit import log

from .generate import MEBIBYTE, Expect, case, either, error, rows

if TYPE_CHECKING:
    import pathlib

ALL = range(30)
FIRST = "00000000000000000000.json"


def _first(folder: pathlib.Path, *actions: log.Action | str) -> log.Table:
    """Return the basic table whose first commit holds these actions instead of protocol and metadata."""
    table = log.basic(folder)
    table.commit(0, *actions, table.actions(0, 0)[-1])
    return table


def _protocol(folder: pathlib.Path, body: Any) -> None:
    """Write the basic table with another protocol."""
    _first(folder, {"protocol": body}, log.metadata())


@case("protocol_missing", error("CorruptLogError", "protocol"))
def _(folder: pathlib.Path) -> None:
    """No protocol in the whole log."""
    _first(folder, log.metadata())


@case("metadata_missing", error("CorruptLogError", "metaData"))
def _(folder: pathlib.Path) -> None:
    """No metadata in the whole log."""
    _first(folder, log.protocol())


@case("protocol_and_metadata_missing", error("CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """Neither."""
    _first(folder)


@case("protocol_only_later", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Protocol and metadata come with the last commit: the latest version is whole."""
    table = _first(folder)
    table.commit(2, log.protocol(), log.metadata(), *table.actions(2, 2))


_PROTOCOLS: list[tuple[str, Any, Expect]] = [
    ("reader_99", {"minReaderVersion": 99, "minWriterVersion": 99}, error("DeltaProtocolError", "99", "3")),
    ("reader_4", {"minReaderVersion": 4, "minWriterVersion": 7}, error("DeltaProtocolError", "4")),
    ("reader_zero", {"minReaderVersion": 0, "minWriterVersion": 2}, either(ALL, "CorruptLogError|DeltaProtocolError")),
    ("reader_negative", {"minReaderVersion": -1, "minWriterVersion": 2}, error("CorruptLogError|DeltaProtocolError")),
    ("reader_text", {"minReaderVersion": "1", "minWriterVersion": 2}, either(ALL, "CorruptLogError")),
    ("reader_missing", {"minWriterVersion": 2}, error("CorruptLogError", FIRST)),
    ("reader_null", {"minReaderVersion": None, "minWriterVersion": 2}, error("CorruptLogError", FIRST)),
    ("reader_huge", {"minReaderVersion": 10**30, "minWriterVersion": 2}, error("CorruptLogError|DeltaProtocolError")),
    ("writer_99", {"minReaderVersion": 1, "minWriterVersion": 99}, rows(ALL)),
    ("empty", {}, error("CorruptLogError", FIRST)),
    ("list", [1, 2], error("CorruptLogError", FIRST)),
    (
        "features_below_3",
        {
            "minReaderVersion": 2,
            "minWriterVersion": 7,
            "readerFeatures": ["columnMapping"],
            "writerFeatures": ["columnMapping"],
        },
        error("CorruptLogError|DeltaProtocolError", "readerFeatures"),
    ),
    (
        "reader_3_writer_6",
        {"minReaderVersion": 3, "minWriterVersion": 6, "readerFeatures": [], "writerFeatures": []},
        error("CorruptLogError|DeltaProtocolError"),
    ),
    (
        "feature_in_reader_list_alone",
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"], "writerFeatures": []},
        error("CorruptLogError|DeltaProtocolError", "deletionVectors"),
    ),
    (
        "features_missing_at_3",
        {"minReaderVersion": 3, "minWriterVersion": 7},
        error("CorruptLogError|DeltaProtocolError", "readerFeatures"),
    ),
    (
        "features_not_a_list",
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": "deletionVectors", "writerFeatures": []},
        error("CorruptLogError", FIRST),
    ),
    (
        "features_of_numbers",
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [1, 2], "writerFeatures": [1, 2]},
        error("CorruptLogError|DeltaProtocolError"),
    ),
    (
        "unknown_feature",
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["quantumRows"],
            "writerFeatures": ["quantumRows"],
        },
        error("DeltaProtocolError", "quantumRows"),
    ),
    (
        "unknown_feature_with_escape_codes",
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["x\x1b[31m\ny\r"],
            "writerFeatures": ["x\x1b[31m\ny\r"],
        },
        error("DeltaProtocolError|CorruptLogError"),
    ),
    (
        "ten_thousand_unknown_features",
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": [f"feature{i}" for i in range(10_000)],
            "writerFeatures": [f"feature{i}" for i in range(10_000)],
        },
        error("DeltaProtocolError", "feature0"),
    ),
    (
        "feature_name_of_a_mebibyte",
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["f" * MEBIBYTE],
            "writerFeatures": ["f" * MEBIBYTE],
        },
        error("DeltaProtocolError"),
    ),
    (
        "unknown_writer_feature",
        {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["quantumRows"]},
        rows(ALL),
    ),
    (
        "catalog_owned",
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["catalogOwned"],
            "writerFeatures": ["catalogOwned"],
        },
        error("DeltaProtocolError", "catalogOwned"),
    ),
    (
        "catalog_owned_preview",
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["catalogOwned-preview"],
            "writerFeatures": ["catalogOwned-preview"],
        },
        error("DeltaProtocolError", "catalogOwned-preview"),
    ),
    (
        "feature_twice",
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors", "deletionVectors"],
            "writerFeatures": ["deletionVectors"],
        },
        either(ALL, "CorruptLogError|DeltaProtocolError"),
    ),
]
for _name, _body, _expect in _PROTOCOLS:

    @case(f"protocol_{_name}", _expect)
    def _(folder: pathlib.Path, body: Any = _body) -> None:
        """A protocol action that is wrong, or needs more than this reader has."""
        _protocol(folder, body)


@case("protocol_rises_above_us", error("DeltaProtocolError", "quantumRows"))
def _(folder: pathlib.Path) -> None:
    """A later commit asks for an unknown feature: it counts, not the first."""
    log.basic(folder).commit(3, log.protocol(features=["quantumRows"]))


@case("protocol_was_above_us", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """The unknown feature has been dropped again."""
    table = log.basic(folder)
    table.commit(3, log.protocol(features=["quantumRows"]))
    table.commit(4, log.protocol())


@case("protocol_was_below", rows(range(10)), version=0)
def _(folder: pathlib.Path) -> None:
    """An old version of a table whose latest protocol is too new can still be read."""
    log.basic(folder).commit(3, log.protocol(features=["quantumRows"]))


# Metadata.

_METADATA: list[tuple[str, dict[str, Any], Expect]] = [
    (
        "provider_orc",
        {"format": {"provider": "orc", "options": {}}},
        error("DeltaProtocolError|CorruptLogError", "orc"),
    ),
    ("provider_missing", {"format": {"options": {}}}, either(ALL, "CorruptLogError|DeltaProtocolError")),
    ("format_text", {"format": "parquet"}, either(ALL, "CorruptLogError")),
    ("configuration_list", {"configuration": ["a"]}, error("CorruptLogError", FIRST)),
    ("configuration_numbers", {"configuration": {"delta.checkpointInterval": 10}}, either(ALL, "CorruptLogError")),
    ("configuration_null_value", {"configuration": {"a": None}}, either(ALL, "CorruptLogError")),
    ("configuration_unknown_keys", {"configuration": {"delta.noSuchThing": "x", "": ""}}, rows(ALL)),
    (
        "configuration_bad_values",
        {"configuration": {"delta.checkpointInterval": "many", "delta.appendOnly": "?"}},
        rows(ALL),
    ),
    (
        "configuration_bad_interval",
        {
            "configuration": {
                "delta.logRetentionDuration": "forever",
                "delta.deletedFileRetentionDuration": "interval -5 weeks",
            }
        },
        rows(ALL),
    ),
    ("created_time_text", {"createdTime": "yesterday"}, either(ALL, "CorruptLogError")),
    ("id_missing", {"id": None}, either(ALL, "CorruptLogError")),
    ("id_no_uuid", {"id": "table one"}, rows(ALL)),
    ("id_with_escape_codes", {"id": "\x1b[2J\x00"}, rows(ALL)),
    ("partition_columns_missing", {"partitionColumns": None}, either(ALL, "CorruptLogError")),
    ("schema_missing", {"schemaString": None}, error("CorruptLogError", FIRST)),
    ("schema_number", {"schemaString": 7}, error("CorruptLogError", FIRST)),
    ("schema_object", {"schemaString": {"type": "struct", "fields": []}}, error("CorruptLogError", FIRST)),
]
for _name, _changes, _expect in _METADATA:

    @case(f"metadata_{_name}", _expect)
    def _(folder: pathlib.Path, changes: dict[str, Any] = _changes) -> None:
        """Metadata with a field that is odd."""
        _first(folder, log.protocol(), log.metadata(**changes))


def _field(kind: Any, name: str = "x") -> str:
    """Return a schema string: id, name and one more field."""
    return log.schema_string([*log.ID_NAME, (name, kind)])


def _nested(depth: int) -> str:
    """Return a schema string with structs in structs."""
    head = '{"type":"struct","fields":[{"name":"a","nullable":true,"metadata":{},"type":' * depth
    return head + '"long"' + "}]}" * depth


_ID = '{"name":"id","type":"long","nullable":true,"metadata":{}}'
_SCHEMAS: list[tuple[str, str, Expect]] = [
    ("empty", "", error("CorruptLogError")),
    ("not_json", "id long, name string", error("CorruptLogError")),
    ("truncated", log.schema_string(log.ID_NAME)[:-3], error("CorruptLogError")),
    ("list", "[]", error("CorruptLogError")),
    ("primitive", '"long"', error("CorruptLogError")),
    ("null", "null", error("CorruptLogError")),
    ("array_type", '{"type":"array","elementType":"long","containsNull":true}', error("CorruptLogError")),
    ("no_fields", '{"type":"struct"}', error("CorruptLogError")),
    ("fields_object", '{"type":"struct","fields":{}}', error("CorruptLogError")),
    (
        "field_without_name",
        '{"type":"struct","fields":[{"type":"long","nullable":true,"metadata":{}}]}',
        error("CorruptLogError"),
    ),
    (
        "field_without_type",
        '{"type":"struct","fields":[{"name":"id","nullable":true,"metadata":{}}]}',
        error("CorruptLogError", "id"),
    ),
    (
        "field_without_nullable",
        '{"type":"struct","fields":[{"name":"id","type":"long","metadata":{}}]}',
        either(ALL, "CorruptLogError"),
    ),
    ("field_without_metadata", '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true}]}', rows(ALL)),
    (
        "field_name_number",
        '{"type":"struct","fields":[{"name":7,"type":"long","nullable":true,"metadata":{}}]}',
        error("CorruptLogError"),
    ),
    (
        "field_metadata_list",
        '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":[]}]}',
        either(ALL, "CorruptLogError"),
    ),
    ("type_unknown", _field("quaternion"), error("CorruptLogError|DeltaProtocolError", "quaternion")),
    ("type_of_parquet", _field("int64"), error("CorruptLogError|DeltaProtocolError", "int64")),
    ("type_number", _field(7), error("CorruptLogError")),
    ("type_null", _field(None), error("CorruptLogError")),
    ("decimal_too_precise", _field("decimal(99,2)"), error("CorruptLogError", "decimal(99,2)")),
    ("decimal_scale_above_precision", _field("decimal(5,9)"), error("CorruptLogError", "decimal(5,9)")),
    ("decimal_negative", _field("decimal(-5,2)"), error("CorruptLogError")),
    ("decimal_negative_scale", _field("decimal(5,-2)"), error("CorruptLogError|DeltaProtocolError")),
    ("decimal_unclosed", _field("decimal(5,2"), error("CorruptLogError|DeltaProtocolError")),
    ("decimal_overflow", _field("decimal(99999999999999999999,2)"), error("CorruptLogError")),
    ("decimal_bare", _field("decimal"), either(ALL, "CorruptLogError|DeltaProtocolError")),
    ("array_without_element", _field({"type": "array", "containsNull": True}), error("CorruptLogError")),
    (
        "map_without_key",
        _field({"type": "map", "valueType": "long", "valueContainsNull": True}),
        error("CorruptLogError"),
    ),
    (
        "column_twice",
        log.schema_string([("id", "long"), ("id", "long")]),
        error("CorruptLogError|SchemaMismatchError", "id"),
    ),
    (
        "column_twice_but_for_case",
        log.schema_string([("id", "long"), ("ID", "long")]),
        error("CorruptLogError|SchemaMismatchError"),
    ),
    (
        "column_without_letters",
        log.schema_string([("id", "long"), ("", "long")]),
        either(ALL, "CorruptLogError|SchemaMismatchError"),
    ),
    ("column_with_odd_letters", log.schema_string([("id", "long"), ("a.b`c\n\x1b[0m,;", "long")]), rows(ALL)),
    ("deep_20000", _nested(20_000), error("CorruptLogError|DeltaProtocolError")),
    (
        "deep_300",
        '{"type":"struct","fields":['
        + _ID
        + ',{"name":"a","nullable":true,"metadata":{},"type":'
        + _nested(300)
        + "}]}",
        either(ALL),
    ),
    (
        "deep_arrays",
        _field(json.loads('{"type":"array","containsNull":true,"elementType":' * 60 + '"long"' + "}" * 60)),
        either(ALL),
    ),
    ("ten_thousand_columns", log.schema_string([*log.ID_NAME, *((f"c{i}", "long") for i in range(10_000))]), rows(ALL)),
    ("name_of_a_mebibyte", _field("long", "n" * MEBIBYTE), either(ALL)),
    ("duplicate_keys", '{"type":"struct","type":"array","fields":[' + _ID + "]}", either(ALL, "CorruptLogError")),
    ("no_columns", '{"type":"struct","fields":[]}', either(None, "CorruptLogError", count=30)),
]
for _name, _text, _expect in _SCHEMAS:

    @case(f"schema_{_name}", _expect)
    def _(folder: pathlib.Path, text: str = _text) -> None:
        """A schema string that is odd or wrong."""
        _first(folder, log.protocol(), log.metadata(text))


# Column mapping.


def _mapped(
    folder: pathlib.Path, columns: list[tuple[Any, ...]], mode: str = "name", protocol: log.Action | None = None
) -> None:
    """Write the basic table with column mapping."""
    configuration = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "2"}
    _first(folder, protocol or log.protocol(2, 5), log.metadata(columns, configuration=configuration))


def _mapping(identifier: Any, physical: Any) -> dict[str, Any]:
    out = {"delta.columnMapping.id": identifier, "delta.columnMapping.physicalName": physical}
    return {k: v for k, v in out.items() if v is not None}


_GOOD = [("id", "long", _mapping(1, "id")), ("name", "string", _mapping(2, "name"))]
_MAPPINGS: list[tuple[str, list[tuple[Any, ...]], str, Expect]] = [
    ("mode_unknown", _GOOD, "sideways", error("CorruptLogError|DeltaProtocolError", "sideways")),
    ("mode_empty", _GOOD, "", error("CorruptLogError|DeltaProtocolError", "mode")),
    ("mode_none", _GOOD, "none", rows(ALL)),
    (
        "id_twice",
        [("id", "long", _mapping(1, "id")), ("name", "string", _mapping(1, "name"))],
        "id",
        error("CorruptLogError|CorruptDataError"),
    ),
    (
        "physical_name_twice",
        [("id", "long", _mapping(1, "id")), ("name", "string", _mapping(2, "id"))],
        "name",
        error("CorruptLogError|SchemaMismatchError"),
    ),
    (
        "physical_name_missing",
        [("id", "long", _mapping(1, None)), ("name", "string", _mapping(2, "name"))],
        "name",
        error("CorruptLogError", "id"),
    ),
    (
        "physical_name_number",
        [("id", "long", _mapping(1, 7)), ("name", "string", _mapping(2, "name"))],
        "name",
        error("CorruptLogError"),
    ),
    (
        "id_missing",
        [("id", "long", _mapping(None, "id")), ("name", "string", _mapping(2, "name"))],
        "id",
        error("CorruptLogError|CorruptDataError"),
    ),
    (
        "id_text",
        [("id", "long", _mapping("one", "id")), ("name", "string", _mapping(2, "name"))],
        "id",
        error("CorruptLogError|CorruptDataError"),
    ),
    (
        "id_overflow",
        [("id", "long", _mapping(10**30, "id")), ("name", "string", _mapping(2, "name"))],
        "id",
        error("CorruptLogError|CorruptDataError"),
    ),
]
for _name, _columns, _mode, _expect in _MAPPINGS:

    @case(f"column_mapping_{_name}", _expect)
    def _(folder: pathlib.Path, columns: list[tuple[Any, ...]] = _columns, mode: str = _mode) -> None:
        """Column mapping that contradicts itself."""
        _mapped(folder, columns, mode)


@case("column_mapping_in_old_protocol", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Supported is not active: the property counts only if the protocol supports the feature."""
    columns = [("id", "long", _mapping(1, "col-a")), ("name", "string", _mapping(2, "col-b"))]
    _mapped(folder, columns, protocol=log.protocol(1, 2))


@case("column_mapping_names_no_column", rows([None] * 30))
def _(folder: pathlib.Path) -> None:
    """Physical names that no file holds: all null."""
    _mapped(folder, [("id", "long", _mapping(1, "col-a")), ("name", "string", _mapping(2, "col-b"))])


# In-commit timestamps, row tracking, type widening.


def _ict(folder: pathlib.Path, *infos: str | None) -> None:
    """Write the basic table with in-commit timestamps, given as text of JSON, one a commit."""
    table = log.basic(folder)
    protocol = log.protocol(writer_only=["inCommitTimestamp"])
    metadata = log.metadata(configuration={"delta.enableInCommitTimestamps": "true"})
    for version, info in enumerate(infos):
        head = [] if info is None else [f'{{"commitInfo":{{"inCommitTimestamp":{info}}}}}']
        rest = [protocol, metadata] if version == 0 else []
        table.commit(version, *head, *rest, table.actions(version, version)[-1])


_FIRST, _SECOND, _THIRD = "1700000000000", "1700000001000", "1700000002000"
for _name, _infos, _expect in [
    ("missing", (_FIRST, _SECOND, None), either(ALL, "CorruptLogError")),
    ("going_back", (_THIRD, _SECOND, _FIRST), either(ALL, "CorruptLogError")),
    ("text", (_FIRST, _SECOND, '"noon"'), either(ALL, "CorruptLogError")),
    ("negative", (_FIRST, _SECOND, "-5"), either(ALL, "CorruptLogError")),
    ("overflow", (_FIRST, _SECOND, "99999999999999999999"), either(ALL, "CorruptLogError")),
    ("equal", (_FIRST, _FIRST, _FIRST), either(ALL, "CorruptLogError")),
]:

    @case(f"in_commit_timestamp_{_name}", _expect)
    def _(folder: pathlib.Path, infos: tuple[str | None, ...] = _infos) -> None:
        """In-commit timestamps that break their rules: never a reason for wrong rows."""
        _ict(folder, *infos)

    @case(f"in_commit_timestamp_{_name}_by_time", either(None), do="at_time", milliseconds=1_700_000_001_500)
    def _(folder: pathlib.Path, infos: tuple[str | None, ...] = _infos) -> None:
        """The same, asked for by timestamp: some version or a clear error."""
        _ict(folder, *infos)


@case("in_commit_timestamp_not_first", either(ALL, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """The commitInfo stands after other actions."""
    table = log.basic(folder)
    protocol = log.protocol(writer_only=["inCommitTimestamp"])
    metadata = log.metadata(configuration={"delta.enableInCommitTimestamps": "true"})
    info = f'{{"commitInfo":{{"inCommitTimestamp":{_FIRST}}}}}'
    table.commit(0, protocol, metadata, table.actions(0, 0)[-1], info)
    table.commit(1, table.actions(1, 1)[-1], info.replace(_FIRST, _SECOND))
    table.commit(2, table.actions(2, 2)[-1], info.replace(_FIRST, _THIRD))


@case("in_commit_timestamp_enablement_text", either(ALL, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """An enablement version that is not a number."""
    table = log.basic(folder)
    configuration = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "last week",
        "delta.inCommitTimestampEnablementTimestamp": "-",
    }
    protocol = log.protocol(writer_only=["inCommitTimestamp"])
    info = f'{{"commitInfo":{{"inCommitTimestamp":{_FIRST}}}}}'
    table.commit(0, info, protocol, log.metadata(configuration=configuration), table.actions(0, 0)[-1])


@case("row_tracking_without_base_ids", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Row tracking is on, the files have no base row ids: rows are there all the same."""
    features = ["rowTracking", "domainMetadata"]
    _first(folder, log.protocol(writer_only=features), log.metadata(configuration={"delta.enableRowTracking": "true"}))


for _name, _value in [("negative", -5), ("largest", 9223372036854775807), ("text", "five"), ("overflow", 10**30)]:

    @case(f"row_tracking_base_id_{_name}", either(ALL, "CorruptLogError"))
    def _(folder: pathlib.Path, value: object = _value) -> None:
        """Base row ids that overflow when a position is added."""
        table = log.Table(folder)
        protocol = log.protocol(writer_only=["rowTracking", "domainMetadata"])
        metadata = log.metadata(configuration={"delta.enableRowTracking": "true"})
        adds = [
            table.ids(f"{i}.parquet", 10 * i, 10 * i + 10, add_baseRowId=value, add_defaultRowCommitVersion=0)
            for i in range(3)
        ]
        table.commit(0, protocol, metadata, *adds)


_CHANGES: list[tuple[str, Any]] = [
    ("not_a_list", "integer to long"),
    ("empty_object", [{}]),
    ("impossible", [{"fromType": "string", "toType": "long"}]),
    ("unknown_types", [{"fromType": "tiny", "toType": "huge"}]),
    ("to_another_type", [{"fromType": "short", "toType": "integer"}]),
    ("bad_field_path", [{"fromType": "integer", "toType": "long", "fieldPath": "element.key.nowhere"}]),
]
for _name, _value in _CHANGES:

    @case(f"type_changes_{_name}", either(ALL, "CorruptLogError|DeltaProtocolError|SchemaMismatchError"))
    def _(folder: pathlib.Path, value: object = _value) -> None:
        """A history of type changes that contradicts the schema."""
        columns = [("id", "long", {"delta.typeChanges": value}), ("name", "string")]
        _first(folder, log.protocol(features=["typeWidening"]), log.metadata(columns))


@case("variant_is_no_variant", error("CorruptDataError|SchemaMismatchError", ".parquet"))
def _(folder: pathlib.Path) -> None:
    """A variant column whose file holds plain text."""
    _first(folder, log.protocol(features=["variantType"]), log.metadata([("id", "long"), ("name", "variant")]))
