"""delta-spark's error conditions: an error message of deltafast -> condition, SQLSTATE and delta-spark's sentence.

Programs distinguish errors by `getCondition()`, `getSqlState()`, or by a part of the message. The conditions and the
sentences are those of delta-spark 4.4; `tests/golden/spark_errors.json` has its errors to the programs of
`tests/spark/bad_programs.py`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["CONFLICT_CONDITIONS", "ErrorCondition", "condition_of"]


class ErrorCondition(NamedTuple):
    """What a program looks at in an error of delta-spark."""

    name: str
    sql_state: str
    #: delta-spark's sentence; empty where deltafast's message contains it.
    sentence: str


#: The conditions of conflicts by the names of their classes. `WITHOUT_HINT`: deltafast's message names what conflicts.
CONFLICT_CONDITIONS: Final = {
    "ConcurrentWriteException": ErrorCondition(
        "DELTA_CONCURRENT_WRITE",
        "2D521",
        "ConcurrentWriteException: A concurrent transaction has written new data since the current transaction read "
        "the table. Please try the operation again",
    ),
    "MetadataChangedException": ErrorCondition(
        "DELTA_METADATA_CHANGED",
        "2D521",
        "MetadataChangedException: The metadata of the Delta table has been changed by a concurrent update. Please try "
        "the operation again",
    ),
    "ProtocolChangedException": ErrorCondition(
        "DELTA_PROTOCOL_CHANGED",
        "2D521",
        "ProtocolChangedException: The protocol version of the Delta table has been changed by a concurrent update",
    ),
    "ConcurrentAppendException": ErrorCondition(
        "DELTA_CONCURRENT_APPEND.WITHOUT_HINT",
        "2D521",
        "Transaction conflict detected. A concurrent operation added data to the table",
    ),
    "ConcurrentDeleteReadException": ErrorCondition(
        "DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT",
        "2D521",
        "Transaction conflict detected, a concurrent operation deleted data that this transaction read",
    ),
    "ConcurrentDeleteDeleteException": ErrorCondition(
        "DELTA_CONCURRENT_DELETE_DELETE.WITHOUT_HINT",
        "2D521",
        "Transaction conflict detected, a concurrent operation deleted data that this transaction attempted to delete",
    ),
    "ConcurrentTransactionException": ErrorCondition(
        "DELTA_CONCURRENT_TRANSACTION",
        "2D521",
        "ConcurrentTransactionException: This error occurs when multiple streaming queries are using the same "
        "checkpoint to write into this table",
    ),
}


class _Rule(NamedTuple):
    """The messages that have a condition, and the operation in which they have it; in all if None."""

    message: re.Pattern[str]
    condition: str
    sql_state: str
    #: Groups of `message` by their number in braces.
    sentence: str = ""
    operation: str | None = None


def _rule(message: str, condition: str, sql_state: str, sentence: str = "", operation: str | None = None) -> _Rule:
    return _Rule(re.compile(message, re.DOTALL), condition, sql_state, sentence, operation)


_NO_TABLE: Final = r"no Delta table at (?:file://)?(\S+?)[/:]*(?: |$)"
_NO_FOLDER: Final = _NO_TABLE + r"\(there is no"
_TOO_LATE: Final = r"(.+?) is after the newest version of .+, which was committed at ([^;]+)"
_CHECK: Final = r".*\bthe CHECK constraint `(.+?)` \((.+)\) does not hold"
_RULES: Final = (
    # tables that do not exist
    _rule(_NO_FOLDER, "PATH_NOT_FOUND", "42K03", "Path does not exist: {1}", "relation"),
    _rule(_NO_TABLE, "DELTA_TABLE_NOT_FOUND", "42P01", "Delta table `{1}` doesn't exist", "relation"),
    _rule(
        _NO_TABLE,
        "DELTA_TABLE_ONLY_OPERATION",
        "0AKDD",
        "`{1}` is not a Delta table. DESCRIBE HISTORY is only supported for Delta tables",
        "history",
    ),
    _rule(_NO_TABLE, "DELTA_SCHEMA_NOT_SET", "KD008", "Table schema is not set", "stream"),
    _rule(_NO_TABLE, "DELTA_MISSING_DELTA_TABLE", "42P01", "`{1}` is not a Delta table"),
    _rule(
        r"`(.+?)` is not a Delta table of the session's catalog",
        "DELTA_MISSING_DELTA_TABLE",
        "42P01",
        "`{1}` is not a Delta table",
    ),
    # versions
    _rule(
        r"the table has no version (\d+); it has versions (\d+) to (\d+)",
        "DELTA_VERSION_NOT_FOUND",
        "22003",
        "Cannot time travel Delta table to version {1}. Available versions: [{2}, {3}]",
    ),
    _rule(
        r"versionAsOf must be the number",
        "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
        "42604",
        "versionAsOf needs to be a valid begin value",
    ),
    _rule(
        _TOO_LATE,
        "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER",
        "22003",
        "Cannot restore table to timestamp ({1}) as it is after the latest version available",
        "restore",
    ),
    _rule(
        _TOO_LATE,
        "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        "42816",
        "Timestamp {1} is after the table's latest version ({2})",
    ),
    _rule(
        r"the time (\S+) is before the oldest version left",
        "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        "42816",
        "The provided timestamp ({1}) is before the earliest version available",
    ),
    _rule(
        r"not a date and time: (.+)",
        "DELTA_TIMESTAMP_INVALID",
        "42816",
        "The provided timestamp ({1}) cannot be converted to a valid timestamp",
    ),
    _rule(
        r"give either version or timestamp, not both",
        "DELTA_ONEOF_IN_TIMETRAVEL",
        "42601",
        "Please either provide 'timestampAsOf' or 'versionAsOf' for time travel",
    ),
    _rule(
        r"version (\d+) cannot be restored: the newest one is (\d+)",
        "DELTA_CANNOT_RESTORE_TABLE_VERSION",
        "22003",
        "Cannot restore table to version {1}",
    ),
    _rule(
        r"the change data of version \d+ was not recorded \(asked for: (\d+) to (\d+)\)",
        "DELTA_MISSING_CHANGE_DATA",
        "KD002",
        "Error getting change data for range [{1} , {2}] as change data was not recorded",
    ),
    _rule(
        r"a change data feed needs startingVersion or startingTimestamp",
        "DELTA_NO_START_FOR_CDC_READ",
        "42601",
        "No startingVersion or startingTimestamp provided for CDC read",
    ),
    _rule(
        r"invalid table version: (\d+), where the newest version is (\d+)",
        "DELTA_CDC_START_VERSION_AFTER_LATEST",
        "22003",
        "Start version {1} for change data feed exceeds the latest table version {2}",
    ),
    # writes
    _rule(
        r"there is a table at (?:file://)?(\S+?)/? already; use the mode",
        "DELTA_PATH_EXISTS",
        "42K04",
        "Cannot write to already existent path {1} without setting OVERWRITE = 'true'",
    ),
    _rule(
        r".*the value is a struct with the fields .*: an update finds fields by their names",
        "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
        "42846",
        "Cannot cast the value of an update to the type of its column; all nested columns must match",
    ),
    _rule(
        r"`(.*)` has a value in PARTITION and is in the list of columns",
        "STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST",
        "42713",
        "Static partition column {1} is also specified in the column list",
    ),
    _rule(
        r"Cannot cast schema, number of fields does not match|Specified table partitioning does not match"
        r"|the table lacks fields that the data has: ",
        "DELTA_METADATA_MISMATCH",
        "42KDG",
        "A metadata mismatch was detected when writing to the Delta table",
    ),
    _rule(r"Failed to merge fields '", "DELTA_FAILED_TO_MERGE_FIELDS", "22005"),
    _rule(
        r"the rows break replaceWhere: \(?(.*?)\)?$",
        "DELTA_REPLACE_WHERE_MISMATCH",
        "44000",
        "Written data does not conform to partial table overwrite condition or constraint '{1}'",
    ),
    _rule(
        r"""expected .+ at character \d+ of "(.*?)"; see""",
        "DELTA_FAILED_RECOGNIZE_PREDICATE",
        "42601",
        "Cannot recognize the predicate '{1}'",
        "write",
    ),
    _rule(
        r"overwriteSchema and partitionOverwriteMode=dynamic exclude each other",
        "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        "42613",
        "'overwriteSchema' cannot be used in dynamic partition overwrite mode",
    ),
    _rule(
        r"the session's partitionOverwriteMode is dynamic, which",
        "DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED",
        "0A000",
        "Dynamic partition overwrite mode is specified by session config or write options, but it is disabled",
    ),
    _rule(
        r"replaceWhere and partitionOverwriteMode=dynamic exclude each other",
        "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
        "42613",
        "A 'replaceWhere' expression and 'partitionOverwriteMode'='dynamic' cannot both be set",
    ),
    _rule(
        _CHECK,
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        "23001",
        "CHECK constraint {1} ({2}) violated by row with values",
    ),
    _rule(
        r"the rows break (Generated Column .+?): (.+)",
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        "23001",
        "CHECK constraint {1} ({2}) violated by row with values",
    ),
    _rule(
        r".*\bthe length of (?:.+?) is limited by its type (.+), the string in row",
        "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
        "22001",
        "Value exceeds char/varchar type length limitation ({1})",
    ),
    _rule(
        r"the rows break length of (?:.+?): (.+)",
        "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
        "22001",
        "Value exceeds char/varchar type length limitation. Failed check: {1}",
    ),
    _rule(
        r".*\bthe column `(.+?)` is NOT NULL",
        "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        "23502",
        "NOT NULL constraint violated for column: {1}",
    ),
    _rule(
        r"the column `(.+?)` has the collation (\S+): deltafast creates",
        "DELTA_UNSUPPORTED_DATA_TYPES",
        "0AKDC",
        "Found columns using unsupported data types: [{1}: StringType({2})]",
    ),
    _rule(r"Found invalid character\(s\) among", "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES", "42K05"),
    _rule(
        r"the data has the column `(.+?)` twice",
        "DELTA_DUPLICATE_COLUMNS_FOUND.DATA",
        "42711",
        "Found duplicate column(s): {1}. The duplicate was found in the data being saved",
    ),
    _rule(
        r"the partition column `(.+?)` is not in the schema",
        "DELTA_PARTITION_COLUMN_NOT_FOUND",
        "42703",
        "Partition column `{1}` not found in schema",
    ),
    _rule(
        r"a table cannot be partitioned by all of its columns",
        "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
        "428FT",
        "Cannot use all columns for partition columns",
    ),
    _rule(
        r"both .+ must be specified for an idempotent write",
        "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
        "42616",
        "Invalid options for idempotent Dataframe writes: Both txnVersion and txnAppId must be specified",
    ),
    _rule(
        r"(\d+) columns \(.*\) are to get values, the rows have (\d+)",
        "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        "42802",
        "target table has {1} column(s) but the inserted data has {2} column(s)",
    ),
    # changes
    _rule(
        r"the table is append-only",
        "DELTA_CANNOT_MODIFY_APPEND_ONLY",
        "42809",
        "This table is configured to only allow appends",
    ),
    _rule(
        r"the table has no column `+(.+?)`+ \(column",
        "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
        "42703",
        "Z-Ordering column {1} does not exist in data schema",
        "optimize",
    ),
    _rule(
        r"(?:no column '(.+?)' at character|the table has no column `+(.+?)`+(?:; it has| \(column)"
        r"|there is no `(.+?)` that it could)",
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        "42703",
        "A column, variable, or function parameter with name `{1}{2}{3}` cannot be resolved",
    ),
    _rule(
        r"the column `(.+?)` is given a value twice",
        "DELTA_CONFLICT_SET_COLUMN",
        "42701",
        "There is a conflict from these SET columns: [`{1}`]",
    ),
    _rule(
        r"several rows of the source match",
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        "21506",
        "Cannot perform Merge as multiple source rows matched and attempted to modify the same target row",
    ),
    _rule(r"Predicate references non-partition column", "DELTA_NON_PARTITION_COLUMN_REFERENCE", "42P10"),
    _rule(r".+ is a partition column. Z-Ordering can only", "DELTA_ZORDERING_ON_PARTITION_COLUMN", "42P10"),
    _rule(
        r"a retention of .+ is shorter than the table's",
        "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
        "22003",
        "The specified VACUUM retention period is too low",
    ),
    # streams
    _rule(
        r"the metadata of \S+ changed in version \d+, and the schema log",
        "DELTA_STREAMING_METADATA_EVOLUTION",
        "22000",
        "The schema, table configuration or protocol of your Delta table has changed during streaming",
    ),
    _rule(
        r"the stream of \S+ stops after a (.+?) between versions (\d+) and (\d+) \(",
        "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
        "KD002",
        "We've detected one or more non-additive schema change(s) ({1}) between Delta version {2} and {3} in the Delta "
        "streaming source",
    ),
    _rule(
        r"the schema of \S+ changed in version (\d+) in a way that a stream cannot follow",
        "DELTA_SCHEMA_CHANGED_WITH_VERSION",
        "KD007",
        "Detected schema change in version {1}",
    ),
    _rule(
        r"the schema log \S+ cannot be started: .+ from version (\d+) to (\d+), whose",
        "DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA",
        "22000",
        "We could not initialize the Delta streaming source schema log because we detected an incompatible schema or "
        "protocol change while serving a streaming batch from table version {1} to {2}",
    ),
    _rule(
        r"the schema log \S+ is of another table \((\S+), not (\S+)\)",
        "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
        "22000",
        "Detected incompatible Delta table id when trying to read Delta stream. Persisted table id: {1}, Table id: {2}",
    ),
    _rule(
        r"entry \d+ of the schema log (\S+) is damaged",
        "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
        "22000",
        "Incomplete log file in the Delta streaming source schema log at '{1}'",
    ),
    _rule(
        r"another query uses the schema log (\S+) of a stream of (\S+):",
        "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
        "22000",
        "Detected conflicting schema location '{1}' while streaming from table or table located at '{2}'",
    ),
    _rule(
        r"schemaTrackingLocation is (\S+), which is not below the checkpoint (\S+):",
        "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT",
        "22000",
        "Schema location '{1}' must be placed under checkpoint location '{2}'",
    ),
    # definitions
    _rule(
        r"the table has a column `(.+?)` already",
        "FIELD_ALREADY_EXISTS",
        "42710",
        "Cannot add column, because `{1}` already exists",
    ),
    _rule(
        r"columns can be dropped where the table maps columns",
        "DELTA_UNSUPPORTED_DROP_COLUMN",
        "0AKDC",
        "DROP COLUMN is not supported for your Delta table",
    ),
    _rule(
        r"columns can be renamed where the table maps columns",
        "DELTA_UNSUPPORTED_RENAME_COLUMN",
        "0AKDC",
        "Column rename is not supported for your Delta table",
    ),
    _rule(
        r"a type can be changed where the table widens types|the type (?:byte|short|integer|long|float) cannot become "
        r"(?:float|double) |the type [^ <]+ cannot become string ",
        "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        "0AKDC",
        "ALTER TABLE CHANGE COLUMN is not supported for this change of type",
    ),
    *(
        _rule(
            rf"the type .+ cannot become {kind}<.+ as a whole",
            f"CANNOT_UPDATE_FIELD.{kind.upper()}_TYPE",
            "0A000",
            f"Cannot update field type: {sentence}",
        )
        for kind, sentence in (
            ("array", "Update the element by updating its element"),
            ("map", "Update a map by updating its key or value"),
            ("struct", "Update a struct by updating its fields"),
        )
    ),
    _rule(
        r"the type .+ cannot become ",
        "NOT_SUPPORTED_CHANGE_COLUMN",
        "0A000",
        "ALTER TABLE ALTER/CHANGE COLUMN is not supported for this change of type",
    ),
    _rule(
        r"`(.+?)` is changed twice",
        "NOT_SUPPORTED_CHANGE_SAME_COLUMN",
        "0A000",
        "ALTER TABLE ALTER/CHANGE COLUMN is not supported for changing column `{1}` including its nested fields "
        "multiple times in the same command",
    ),
    _rule(
        r"the column is not an identity column",
        "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN",
        "429BQ",
        "ALTER TABLE ALTER COLUMN SYNC IDENTITY cannot be called on non IDENTITY columns",
    ),
    _rule(
        r"the (?:elements|keys|values) of a (?:list|map) cannot have `comment`",
        "DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY",
        "0AKDC",
        "Adding a comment to a map key/value or array element is not supported",
    ),
    _rule(
        r"only columns and fields of structs can be dropped",
        "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE",
        "0AKDC",
        "Can only drop nested columns from StructType",
    ),
    _rule(
        r"only columns and fields of structs can be renamed.+\(column `(.+?)`\)",
        "INVALID_FIELD_NAME",
        "42000",
        "Field name `{1}` is invalid: its parent is not a struct",
    ),
    _rule(
        r"a (?:struct must keep at least one field|table must keep at least one column)",
        "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
        "0AKDC",
        "Cannot drop column from a schema with a single column",
    ),
    _rule(
        r"the column `(.+?)` cannot be .+: the constraint `",
        "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
        "42K09",
        "Cannot alter column {1} because this column is referenced by the following check constraint(s)",
    ),
    _rule(
        r"the column `(.+?)` cannot be .+: the generated column `",
        "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
        "42K09",
        "Cannot alter column {1} because this column is referenced by the following generated column(s)",
    ),
    _rule(
        r"REPLACE COLUMNS cannot ",
        "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
        "0AKDC",
        "Unsupported ALTER TABLE REPLACE COLUMNS operation",
    ),
    _rule(
        r"REPLACE COLUMNS is not possible for a table with identity columns",
        "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED",
        "429BQ",
        "ALTER TABLE REPLACE COLUMNS is not supported for table with IDENTITY columns",
    ),
    _rule(
        r"schema: the field name `(.+?)` occurs twice",
        "COLUMN_ALREADY_EXISTS",
        "42711",
        "The column `{1}` already exists. Choose another name or rename the existing column",
    ),
    _rule(
        r"there is no table property `(.+?)`",
        "DELTA_UNKNOWN_CONFIGURATION",
        "F0000",
        "Unknown configuration was specified: {1}",
    ),
    _rule(
        r"the constraint `(.+?)` \((.+)\) does not hold for a row that is there",
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
        "23512",
        "rows violate the new CHECK constraint ({2})",
    ),
    _rule(
        r"the constraint `(.+?)` is there already",
        "DELTA_CONSTRAINT_ALREADY_EXISTS",
        "42710",
        "Constraint '{1}' already exists",
    ),
    _rule(
        r"the table has no constraint `(.+?)`",
        "DELTA_CONSTRAINT_DOES_NOT_EXIST",
        "42704",
        "Cannot drop nonexistent constraint {1}",
    ),
    _rule(
        r"the table (\S+) already exists at",
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        "42P07",
        "Cannot create table or view `{1}` because it already exists",
    ),
    _rule(
        r"the specified schema does not match the existing schema at",
        "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
        "42KD7",
        "The specified schema does not match the existing schema",
    ),
    # table features
    _rule(
        r"there is no table feature `(.+?)`",
        "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
        "56038",
        "Table features configured in the following Spark configs or Delta table properties are not recognized: "
        "delta.feature.{1}",
    ),
    _rule(r"the table does not have the feature `", "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", "0AKDE"),
    _rule(
        r"the feature `.+` cannot be dropped, not by delta-spark", "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE", "0AKDC"
    ),
    _rule(r"the feature `.+` cannot be dropped while the table has", "DELTA_FEATURE_DROP_DEPENDENT_FEATURE", "55000"),
    _rule(
        r"the feature `.+` is dropped without truncating",
        "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
        "42000",
    ),
    _rule(r"the feature `.+` is no longer in use but was", "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD", "22KD0"),
    _rule(r"the feature `.+` is no longer in use but older", "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST", "22KD0"),
    _rule(r"deltafast knows no table feature `", "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE", "0AKDC"),
)


def condition_of(message: str, operation: str | None = None) -> ErrorCondition | None:
    """Return the condition of an error message, if delta-spark has one.

    Args:
        message: A message of deltafast.
        operation: What was done: `relation` (a table in a query or a change of rows), `write`, `restore`, `history`,
            `optimize`, `stream`, or `command` for other statements; None for anything else.
    """
    for rule in _RULES:
        if rule.operation in (None, operation) and (found := rule.message.match(message)):
            groups = [group or "" for group in found.groups()]
            return ErrorCondition(rule.condition, rule.sql_state, rule.sentence.format("", *groups))
    return None
