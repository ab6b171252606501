"""delta-spark's error conditions: a code of deltafast -> condition, SQLSTATE and delta-spark's sentence.

Programs distinguish errors by `getCondition()`, `getSqlState()`, or by a part of the message. The conditions and the
sentences are those of delta-spark 4.4; `tests/golden/spark_errors.json` has its errors to the programs of
`tests/spark/bad_programs.py`.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from deltafast._error_codes import ERROR_PARAMETERS, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CONFLICT_CONDITIONS", "ErrorCondition", "Operation", "condition_of"]


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


class Operation(Enum):
    """What was done when an error was raised, as far as its condition depends on that."""

    #: A table in a query, or a change of rows.
    RELATION = "relation"
    WRITE = "write"
    RESTORE = "restore"
    HISTORY = "history"
    OPTIMIZE = "optimize"
    MERGE = "merge"
    INSERT = "insert"
    SHOW_PARTITIONS = "show partitions"
    #: TIMESTAMP AS OF in a query.
    TIME_TRAVEL = "time travel"
    STREAM = "stream"
    #: Any other statement.
    COMMAND = "command"


#: Operations of which another is a part: it has the conditions of the other where it has none of its own.
_PART_OF: Final = {Operation.MERGE: Operation.RELATION, Operation.INSERT: Operation.RELATION}


class _Condition(NamedTuple):
    """The condition of a code."""

    name: str
    sql_state: str
    #: With the code's parameters in braces.
    sentence: str = ""
    #: The operation in which the code has the condition; any if None.
    operation: Operation | None = None


#: The conditions of a code; the first whose operation fits is taken.
_CONDITIONS: Final[dict[ErrorCode, tuple[_Condition, ...]]] = {
    # tables that do not exist
    ErrorCode.TABLE_NOT_FOUND: (
        _Condition("PATH_NOT_FOUND", "42K03", "Path does not exist: {path}", Operation.RELATION),
        _Condition(
            "DELTA_TABLE_ONLY_OPERATION",
            "0AKDD",
            "`{path}` is not a Delta table. DESCRIBE HISTORY is only supported for Delta tables",
            Operation.HISTORY,
        ),
        _Condition("DELTA_SCHEMA_NOT_SET", "KD008", "Table schema is not set", Operation.STREAM),
        _Condition("DELTA_MISSING_DELTA_TABLE", "42P01", "`{path}` is not a Delta table"),
    ),
    ErrorCode.NOT_A_DELTA_TABLE: (
        _Condition("DELTA_TABLE_NOT_FOUND", "42P01", "Delta table `{path}` doesn't exist", Operation.RELATION),
        _Condition(
            "DELTA_TABLE_ONLY_OPERATION",
            "0AKDD",
            "`{path}` is not a Delta table. DESCRIBE HISTORY is only supported for Delta tables",
            Operation.HISTORY,
        ),
        _Condition("DELTA_SCHEMA_NOT_SET", "KD008", "Table schema is not set", Operation.STREAM),
        _Condition("DELTA_MISSING_DELTA_TABLE", "42P01", "`{path}` is not a Delta table"),
    ),
    ErrorCode.NOT_A_CATALOG_TABLE: (
        _Condition("DELTA_MISSING_DELTA_TABLE", "42P01", "`{table}` is not a Delta table"),
    ),
    # versions
    ErrorCode.VERSION_NOT_FOUND: (
        _Condition(
            "DELTA_VERSION_NOT_FOUND",
            "22003",
            ("Cannot time travel Delta table to version {version}. Available versions: [{oldest}, {newest}]"),
        ),
    ),
    ErrorCode.INVALID_VERSION: (
        _Condition("DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE", "42604", "{option} needs to be a valid begin value"),
    ),
    ErrorCode.TIMESTAMP_TOO_LATE: (
        _Condition(
            "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER",
            "22003",
            ("Cannot restore table to timestamp ({timestamp}) as it is after the latest version available"),
            Operation.RESTORE,
        ),
        _Condition(
            "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
            "42816",
            "Timestamp {timestamp} is after the table's latest version ({version_timestamp})",
        ),
    ),
    ErrorCode.TIMESTAMP_TOO_EARLY: (
        _Condition(
            "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
            "22003",
            "Cannot restore table to timestamp ({timestamp}) as it is before the earliest version available",
            Operation.RESTORE,
        ),
        _Condition(
            "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
            "42816",
            "The provided timestamp ({timestamp}) is before the earliest version available",
        ),
    ),
    ErrorCode.INVALID_TIMESTAMP: (
        _Condition(
            "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT",
            "42K0E",
            'The time travel timestamp expression "{timestamp}" is invalid',
            Operation.TIME_TRAVEL,
        ),
        _Condition(
            "DELTA_TIMESTAMP_INVALID",
            "42816",
            "The provided timestamp ({timestamp}) cannot be converted to a valid timestamp",
        ),
    ),
    ErrorCode.VERSION_AND_TIMESTAMP: (
        _Condition(
            "DELTA_ONEOF_IN_TIMETRAVEL",
            "42601",
            "Please either provide 'timestampAsOf' or 'versionAsOf' for time travel",
        ),
    ),
    ErrorCode.RESTORE_VERSION_TOO_NEW: (
        _Condition("DELTA_CANNOT_RESTORE_TABLE_VERSION", "22003", "Cannot restore table to version {version}"),
    ),
    ErrorCode.CHANGE_DATA_NOT_RECORDED: (
        _Condition(
            "DELTA_MISSING_CHANGE_DATA",
            "KD002",
            "Error getting change data for range [{start} , {end}] as change data was not recorded",
        ),
    ),
    ErrorCode.CHANGE_FEED_START_MISSING: (
        _Condition(
            "DELTA_NO_START_FOR_CDC_READ", "42601", "No startingVersion or startingTimestamp provided for CDC read"
        ),
    ),
    ErrorCode.CHANGE_FEED_START_TOO_LATE: (
        _Condition(
            "DELTA_CDC_START_VERSION_AFTER_LATEST",
            "22003",
            "Start version {version} for change data feed exceeds the latest table version {newest}",
        ),
    ),
    # writes
    ErrorCode.TABLE_EXISTS: (
        _Condition(
            "DELTA_PATH_EXISTS",
            "42K04",
            "Cannot write to already existent path {path} without setting OVERWRITE = 'true'",
        ),
    ),
    ErrorCode.STRUCT_FIELD_MISMATCH: (
        _Condition(
            "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
            "42846",
            ("Cannot cast the value of an update to the type of its column; all nested columns must match"),
        ),
    ),
    ErrorCode.PARTITION_COLUMN_IN_INSERT_LIST: (
        _Condition(
            "STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST",
            "42713",
            "Static partition column {column} is also specified in the column list",
        ),
    ),
    ErrorCode.FIELD_COUNT_MISMATCH: (
        _Condition(
            "DELTA_METADATA_MISMATCH", "42KDG", "A metadata mismatch was detected when writing to the Delta table"
        ),
    ),
    ErrorCode.FIELD_NOT_IN_TABLE: (
        _Condition(
            "DELTA_METADATA_MISMATCH", "42KDG", "A metadata mismatch was detected when writing to the Delta table"
        ),
    ),
    ErrorCode.PARTITIONING_MISMATCH: (
        _Condition(
            "DELTA_METADATA_MISMATCH", "42KDG", "A metadata mismatch was detected when writing to the Delta table"
        ),
    ),
    ErrorCode.FIELD_MERGE_FAILED: (_Condition("DELTA_FAILED_TO_MERGE_FIELDS", "22005"),),
    ErrorCode.REPLACEMENT_VIOLATED: (
        _Condition(
            "DELTA_REPLACE_WHERE_MISMATCH",
            "44000",
            ("Written data does not conform to partial table overwrite condition or constraint '{expression}'"),
        ),
    ),
    ErrorCode.EXPRESSION_SYNTAX_ERROR: (
        _Condition(
            "DELTA_FAILED_RECOGNIZE_PREDICATE",
            "42601",
            "Cannot recognize the predicate '{expression}'",
            Operation.WRITE,
        ),
        _Condition(
            "DELTA_FAILED_RECOGNIZE_PREDICATE",
            "42601",
            "Cannot recognize the predicate '{expression}'",
            Operation.OPTIMIZE,
        ),
        _Condition("PARSE_SYNTAX_ERROR", "42601", "Syntax error"),
    ),
    ErrorCode.PREDICATE_NOT_BOOLEAN: (
        _Condition(
            "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
            "42K09",
            'Cannot resolve "{expression}" due to data type mismatch: Filter expression "{expression}" of type '
            '"{data_type}" is not a boolean',
        ),
    ),
    ErrorCode.UNCASTABLE_TYPE: (
        _Condition(
            "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION",
            "42K09",
            'Cannot resolve "{value}" due to data type mismatch: cannot cast "{source_type}" to "{target_type}"',
        ),
    ),
    ErrorCode.NON_DETERMINISTIC_EXPRESSION: (
        _Condition(
            "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
            "0AKDC",
            "Non-deterministic functions are not supported in the search condition of MERGE operation",
            Operation.MERGE,
        ),
        _Condition(
            "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
            "42K0E",
            'The operator expects a deterministic expression, but the actual expression is "{expression}"',
        ),
    ),
    ErrorCode.AGGREGATE_IN_PREDICATE: (
        _Condition(
            "UNSUPPORTED_EXPR_FOR_OPERATOR",
            "42K0E",
            "A query operator contains one or more unsupported expressions",
        ),
    ),
    ErrorCode.FIELD_NOT_FOUND: (
        _Condition("FIELD_NOT_FOUND", "42704", "No such struct field `{field}` in `{parent}`"),
    ),
    ErrorCode.AMBIGUOUS_COLUMN: (_Condition("AMBIGUOUS_REFERENCE", "42704", "Reference `{column}` is ambiguous"),),
    ErrorCode.MERGE_WITHOUT_CLAUSE: (
        _Condition("MERGE_WITHOUT_WHEN", "42601", "There must be at least one WHEN clause in a MERGE statement"),
    ),
    ErrorCode.MERGE_CLAUSE_WITHOUT_CONDITION: (_Condition("NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION", "42613"),),
    ErrorCode.COLUMN_INSERTED_TWICE: (
        _Condition(
            "DELTA_DUPLICATE_COLUMNS_ON_INSERT", "42701", "Duplicate column names in INSERT clause", Operation.MERGE
        ),
        _Condition(
            "COLUMN_ALREADY_EXISTS",
            "42711",
            "The column `{column}` already exists. Choose another name or rename the existing column",
        ),
    ),
    ErrorCode.IDENTITY_COLUMN_INSERTED: (
        _Condition(
            "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
            "42808",
            "Providing values for GENERATED ALWAYS AS IDENTITY column {column} is not supported",
        ),
    ),
    ErrorCode.IDENTITY_COLUMN_UPDATED: (
        _Condition(
            "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
            "42808",
            "UPDATE on IDENTITY column {column} is not supported",
        ),
    ),
    ErrorCode.REPLACEMENT_COLUMN_NOT_FOUND: (
        _Condition("UNRESOLVED_INSERT_REPLACE_USING_COLUMN", "42703", "Column `{column}` cannot be resolved in table"),
    ),
    ErrorCode.REPLACEMENTS_EXCLUDE: (
        _Condition(
            "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING",
            "42613",
            "Overwrite by filter is incompatible with the `replaceOn`/`replaceUsing` option",
        ),
    ),
    ErrorCode.NOT_A_PARTITION_COLUMN: (
        _Condition(
            "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN",
            "42P10",
            "Non-partitioning column(s) [{column}] are specified for SHOW PARTITIONS",
            Operation.SHOW_PARTITIONS,
        ),
        _Condition(
            "NON_PARTITION_COLUMN", "42000", "PARTITION clause cannot contain the non-partition column: `{column}`"
        ),
    ),
    ErrorCode.TABLE_NOT_PARTITIONED: (
        _Condition(
            "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE",
            "42809",
            "SHOW PARTITIONS is not allowed on a table that is not partitioned: {table}",
        ),
    ),
    ErrorCode.INVALID_OPTION_VALUE: (
        _Condition("DELTA_ILLEGAL_OPTION", "42616", "Invalid value '{value}' for option '{option}', must be {values}"),
    ),
    ErrorCode.OPTIMIZE_FULL_WITHOUT_CLUSTERING: (
        _Condition(
            "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
            "42601",
            "OPTIMIZE FULL is only supported for clustered tables with non-empty clustering columns",
        ),
    ),
    ErrorCode.UNKNOWN_MANIFEST: (
        _Condition("DELTA_MODE_NOT_SUPPORTED", "0AKDC", "Specified mode '{mode}' is not supported"),
    ),
    ErrorCode.FRAME_SCHEMA_CHANGED: (
        _Condition(
            "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
            "KD007",
            "The schema of your Delta table has changed in an incompatible way since your DataFrame or DeltaTable "
            "object was created",
        ),
    ),
    # values, as in Spark's expressions
    **{
        code: (_Condition(code.value, sql_state),)
        for code, sql_state in {
            ErrorCode.CAST_INVALID_INPUT: "22018",
            ErrorCode.ARITHMETIC_OVERFLOW: "22003",
            ErrorCode.BINARY_ARITHMETIC_OVERFLOW: "22003",
            ErrorCode.NUMERIC_VALUE_OUT_OF_RANGE: "22003",
            ErrorCode.DATETIME_OVERFLOW: "22008",
            ErrorCode.DATETIME_FIELD_OUT_OF_BOUNDS: "22023",
            ErrorCode.DIVIDE_BY_ZERO: "22012",
            ErrorCode.REMAINDER_BY_ZERO: "22012",
            ErrorCode.ILLEGAL_DAY_OF_WEEK: "22009",
            ErrorCode.INVALID_INDEX_OF_ZERO: "22003",
            ErrorCode.INVALID_ARRAY_INDEX: "22003",
            ErrorCode.INVALID_ARRAY_INDEX_IN_ELEMENT_AT: "22003",
            ErrorCode.NULL_MAP_KEY: "2200E",
            ErrorCode.DUPLICATED_MAP_KEY: "23505",
        }.items()
    },
    ErrorCode.CAST_OVERFLOW: (
        _Condition(
            "CAST_OVERFLOW_IN_TABLE_INSERT",
            "22003",
            'Fail to assign a value of "{source_type}" type to the "{target_type}" type column due to an overflow',
            Operation.INSERT,
        ),
        _Condition("CAST_OVERFLOW", "22003"),
    ),
    # definitions
    ErrorCode.ADDED_COLUMN_NOT_NULL: (
        _Condition(
            "DELTA_OPERATION_NOT_ALLOWED",
            "0AKDC",
            "Operation not allowed: `NOT NULL in ALTER TABLE ADD COLUMNS` is not supported for Delta tables",
        ),
    ),
    ErrorCode.ADDED_COLUMN_WITH_VALUES: (
        _Condition(
            "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
            "0AKDC",
            "Failed to execute the command because DEFAULT values are not supported when adding new columns to "
            "previously existing Delta tables",
        ),
    ),
    ErrorCode.COLUMN_DEFAULTS_NOT_ENABLED: (
        _Condition(
            "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
            "0AKDE",
            "Failed to execute the command because it assigned a column DEFAULT value, but the corresponding table "
            "feature was not enabled",
        ),
    ),
    ErrorCode.LOCATION_SCHEMA_MISMATCH: (
        _Condition(
            "DELTA_SET_LOCATION_SCHEMA_MISMATCH",
            "42KD7",
            "The schema of the new Delta location is different than the current table schema",
        ),
    ),
    ErrorCode.LOCATION_OF_PATH_TABLE: (
        _Condition(
            "DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER",
            "42613",
            "Cannot change the location of a path based table",
        ),
    ),
    ErrorCode.LOCATION_NOT_EMPTY: (
        _Condition(
            "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
            "42601",
            "The associated location ('{path}') is not empty and also not a Delta table",
        ),
    ),
    ErrorCode.BUCKETS_UNSUPPORTED: (
        _Condition(
            "DELTA_OPERATION_NOT_ALLOWED_DETAIL",
            "0AKDC",
            "Operation not allowed: `Bucketing` is not supported for Delta tables: {table}",
        ),
    ),
    ErrorCode.INVALID_PARTITION_COLUMN_TYPE: (
        _Condition("INVALID_PARTITION_COLUMN_DATA_TYPE", "0A000", 'Cannot use "{data_type}" for partition column'),
    ),
    ErrorCode.PARTITIONED_BY_IDENTITY_COLUMN: (
        _Condition(
            "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED",
            "42601",
            "PARTITIONED BY IDENTITY column {column} is not supported",
        ),
    ),
    ErrorCode.INVALID_IDENTITY_COLUMN_TYPE: (
        _Condition(
            "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
            "428H2",
            "DataType {data_type} is not supported for IDENTITY columns",
        ),
    ),
    ErrorCode.IDENTITY_STEP_OF_ZERO: (
        _Condition("IDENTITY_COLUMNS_ILLEGAL_STEP", "42611", "IDENTITY column step cannot be 0"),
    ),
    ErrorCode.INVALID_GENERATION_EXPRESSION: (
        _Condition(
            "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
            "42621",
            "Cannot create generated column {column} with generation expression {expression}",
        ),
    ),
    ErrorCode.CHECK_NOT_BOOLEAN: (
        _Condition(
            "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
            "42621",
            "CHECK constraint '{constraint}' ({expression}) should be a boolean expression",
        ),
    ),
    ErrorCode.TOO_MANY_CLUSTERING_COLUMNS: (
        _Condition(
            "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
            "54000",
            "CLUSTER BY supports up to {most} clustering columns, but the table has {count} clustering columns",
        ),
    ),
    ErrorCode.CLUSTERED_AND_PARTITIONED: (
        _Condition(
            "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
            "42000",
            "ALTER TABLE CLUSTER BY cannot be applied to a partitioned table",
            Operation.COMMAND,
        ),
    ),
    ErrorCode.COLUMN_MAPPING_MODE_CHANGE: (
        _Condition(
            "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            "0AKDC",
            "Changing column mapping mode from '{from}' to '{to}' is not supported",
        ),
    ),
    ErrorCode.DUPLICATE_COLUMN: (_Condition("FIELD_ALREADY_EXISTS", "42710", "`{column}` already exists"),),
    ErrorCode.CATALOG_TABLE_NOT_FOUND: (
        _Condition("TABLE_OR_VIEW_NOT_FOUND", "42P01", "The table or view `{table}` cannot be found"),
    ),
    ErrorCode.PARTITIONS_NOT_MANAGED: (
        _Condition(
            "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED",
            "42601",
            "The partition command is invalid. Table {table} does not support partition management",
        ),
    ),
    ErrorCode.TRUNCATED_PARTITION: (
        _Condition(
            "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED",
            "0AKDC",
            "Operation not allowed: TRUNCATE TABLE on Delta tables does not support partition predicates; use DELETE "
            "to delete specific partitions or rows",
        ),
    ),
    ErrorCode.OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITIONS: (
        _Condition(
            "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
            "42613",
            "'overwriteSchema' cannot be used in dynamic partition overwrite mode",
        ),
    ),
    ErrorCode.DYNAMIC_PARTITIONS_DISABLED: (
        _Condition(
            "DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED",
            "0A000",
            ("Dynamic partition overwrite mode is specified by session config or write options, but it is disabled"),
        ),
    ),
    ErrorCode.REPLACE_WHERE_WITH_DYNAMIC_PARTITIONS: (
        _Condition(
            "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
            "42613",
            "A 'replaceWhere' expression and 'partitionOverwriteMode'='dynamic' cannot both be set",
        ),
    ),
    ErrorCode.CHECK_VIOLATED: (
        _Condition(
            "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
            "23001",
            "CHECK constraint {constraint} ({expression}) violated by row with values",
        ),
    ),
    ErrorCode.GENERATED_COLUMN_VIOLATED: (
        _Condition(
            "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
            "23001",
            "CHECK constraint {constraint} ({expression}) violated by row with values",
        ),
    ),
    ErrorCode.LENGTH_EXCEEDED: (
        _Condition(
            "DELTA_EXCEED_CHAR_VARCHAR_LIMIT", "22001", "Value exceeds char/varchar type length limitation ({limit})"
        ),
    ),
    ErrorCode.LENGTH_CHECK_VIOLATED: (
        _Condition(
            "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
            "22001",
            "Value exceeds char/varchar type length limitation. Failed check: {expression}",
        ),
    ),
    ErrorCode.NOT_NULL_VIOLATED: (
        _Condition("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "23502", "NOT NULL constraint violated for column: {column}"),
    ),
    ErrorCode.UNSUPPORTED_COLLATION: (
        _Condition(
            "DELTA_UNSUPPORTED_DATA_TYPES",
            "0AKDC",
            "Found columns using unsupported data types: [{column}: StringType({collation})]",
        ),
    ),
    ErrorCode.INVALID_COLUMN_NAME: (_Condition("DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES", "42K05"),),
    ErrorCode.DUPLICATE_COLUMN_IN_DATA: (
        _Condition(
            "DELTA_DUPLICATE_COLUMNS_FOUND.DATA",
            "42711",
            "Found duplicate column(s): {column}. The duplicate was found in the data being saved",
        ),
    ),
    ErrorCode.PARTITION_COLUMN_NOT_FOUND: (
        _Condition("DELTA_PARTITION_COLUMN_NOT_FOUND", "42703", "Partition column `{column}` not found in schema"),
    ),
    ErrorCode.PARTITIONED_BY_ALL_COLUMNS: (
        _Condition(
            "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION", "428FT", "Cannot use all columns for partition columns"
        ),
    ),
    ErrorCode.IDEMPOTENT_WRITE_OPTIONS_INCOMPLETE: (
        _Condition(
            "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
            "42616",
            ("Invalid options for idempotent Dataframe writes: Both txnVersion and txnAppId must be specified"),
        ),
    ),
    ErrorCode.INSERT_ARITY_MISMATCH: (
        _Condition(
            "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
            "42802",
            "target table has {columns} column(s) but the inserted data has {values} column(s)",
        ),
    ),
    # changes
    ErrorCode.APPEND_ONLY_TABLE: (
        _Condition("DELTA_CANNOT_MODIFY_APPEND_ONLY", "42809", "This table is configured to only allow appends"),
    ),
    ErrorCode.COLUMN_NOT_FOUND: (
        _Condition(
            "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
            "42703",
            "Z-Ordering column {column} does not exist in data schema",
            Operation.OPTIMIZE,
        ),
        _Condition(
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "42703",
            "A column, variable, or function parameter with name `{column}` cannot be resolved",
        ),
    ),
    ErrorCode.Z_ORDER_COLUMN_NOT_FOUND: (
        _Condition(
            "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
            "42703",
            "Z-Ordering column {column} does not exist in data schema",
            Operation.OPTIMIZE,
        ),
        _Condition(
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "42703",
            "A column, variable, or function parameter with name `{column}` cannot be resolved",
        ),
    ),
    ErrorCode.SIBLING_NOT_FOUND: (
        _Condition(
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "42703",
            "A column, variable, or function parameter with name `{column}` cannot be resolved",
        ),
    ),
    ErrorCode.COLUMN_ASSIGNED_TWICE: (
        _Condition("DELTA_CONFLICT_SET_COLUMN", "42701", "There is a conflict from these SET columns: [`{column}`]"),
    ),
    ErrorCode.MULTIPLE_SOURCE_ROWS_MATCHED: (
        _Condition(
            "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
            "21506",
            ("Cannot perform Merge as multiple source rows matched and attempted to modify the same target row"),
        ),
    ),
    ErrorCode.NON_PARTITION_COLUMN_IN_PREDICATE: (_Condition("DELTA_NON_PARTITION_COLUMN_REFERENCE", "42P10"),),
    ErrorCode.Z_ORDER_BY_PARTITION_COLUMN: (_Condition("DELTA_ZORDERING_ON_PARTITION_COLUMN", "42P10"),),
    ErrorCode.RETENTION_TOO_SHORT: (
        _Condition(
            "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT", "22003", "The specified VACUUM retention period is too low"
        ),
    ),
    # streams
    ErrorCode.STREAM_METADATA_CHANGED: (
        _Condition(
            "DELTA_STREAMING_METADATA_EVOLUTION",
            "22000",
            ("The schema, table configuration or protocol of your Delta table has changed during streaming"),
        ),
    ),
    ErrorCode.STREAM_STOPPED_BY_SCHEMA_CHANGE: (
        _Condition(
            "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
            "KD002",
            (
                "We've detected one or more non-additive schema change(s) ({change}) between Delta "
                "version {start} and {end} in the Delta streaming source"
            ),
        ),
    ),
    ErrorCode.STREAM_SCHEMA_CHANGED: (
        _Condition("DELTA_SCHEMA_CHANGED_WITH_VERSION", "KD007", "Detected schema change in version {version}"),
    ),
    ErrorCode.SCHEMA_LOG_INITIALIZATION: (
        _Condition(
            "DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA",
            "22000",
            (
                "We could not initialize the Delta streaming source schema log because we detected an "
                "incompatible schema or protocol change while serving a streaming batch from table "
                "version {start} to {end}"
            ),
        ),
    ),
    ErrorCode.SCHEMA_LOG_OF_OTHER_TABLE: (
        _Condition(
            "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
            "22000",
            (
                "Detected incompatible Delta table id when trying to read Delta stream. Persisted table "
                "id: {log_table_id}, Table id: {table_id}"
            ),
        ),
    ),
    ErrorCode.SCHEMA_LOG_CORRUPT: (
        _Condition(
            "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
            "22000",
            "Incomplete log file in the Delta streaming source schema log at '{location}'",
        ),
    ),
    ErrorCode.SCHEMA_LOG_IN_USE: (
        _Condition(
            "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
            "22000",
            (
                "Detected conflicting schema location '{location}' while streaming from table or table "
                "located at '{table}'"
            ),
        ),
    ),
    ErrorCode.SCHEMA_LOG_OUTSIDE_CHECKPOINT: (
        _Condition(
            "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT",
            "22000",
            "Schema location '{location}' must be placed under checkpoint location '{checkpoint}'",
        ),
    ),
    # definitions
    ErrorCode.COLUMN_EXISTS: (
        _Condition("FIELD_ALREADY_EXISTS", "42710", "Cannot add column, because `{column}` already exists"),
    ),
    ErrorCode.DROP_COLUMN_NEEDS_MAPPING: (
        _Condition("DELTA_UNSUPPORTED_DROP_COLUMN", "0AKDC", "DROP COLUMN is not supported for your Delta table"),
    ),
    ErrorCode.RENAME_COLUMN_NEEDS_MAPPING: (
        _Condition("DELTA_UNSUPPORTED_RENAME_COLUMN", "0AKDC", "Column rename is not supported for your Delta table"),
    ),
    ErrorCode.TYPE_WIDENING_DISABLED: (
        _Condition(
            "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            "0AKDC",
            "ALTER TABLE CHANGE COLUMN is not supported for this change of type",
        ),
    ),
    ErrorCode.UPCAST_NEEDS_REWRITE: (
        _Condition(
            "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            "0AKDC",
            "ALTER TABLE CHANGE COLUMN is not supported for this change of type",
        ),
    ),
    ErrorCode.UNSUPPORTED_TYPE_CHANGE: (
        _Condition(
            "NOT_SUPPORTED_CHANGE_COLUMN",
            "0A000",
            "ALTER TABLE ALTER/CHANGE COLUMN is not supported for this change of type",
        ),
    ),
    ErrorCode.ARRAY_TYPE_REPLACED: (
        _Condition(
            "CANNOT_UPDATE_FIELD.ARRAY_TYPE",
            "0A000",
            "Cannot update field type: Update the element by updating its element",
        ),
    ),
    ErrorCode.MAP_TYPE_REPLACED: (
        _Condition(
            "CANNOT_UPDATE_FIELD.MAP_TYPE",
            "0A000",
            "Cannot update field type: Update a map by updating its key or value",
        ),
    ),
    ErrorCode.STRUCT_TYPE_REPLACED: (
        _Condition(
            "CANNOT_UPDATE_FIELD.STRUCT_TYPE",
            "0A000",
            "Cannot update field type: Update a struct by updating its fields",
        ),
    ),
    ErrorCode.COLUMN_CHANGED_TWICE: (
        _Condition(
            "NOT_SUPPORTED_CHANGE_SAME_COLUMN",
            "0A000",
            (
                "ALTER TABLE ALTER/CHANGE COLUMN is not supported for changing column `{column}` "
                "including its nested fields multiple times in the same command"
            ),
        ),
    ),
    ErrorCode.NOT_AN_IDENTITY_COLUMN: (
        _Condition(
            "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN",
            "429BQ",
            "ALTER TABLE ALTER COLUMN SYNC IDENTITY cannot be called on non IDENTITY columns",
        ),
    ),
    ErrorCode.COMMENT_ON_ELEMENT: (
        _Condition(
            "DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY",
            "0AKDC",
            "Adding a comment to a map key/value or array element is not supported",
        ),
    ),
    ErrorCode.DROP_OF_ELEMENTS_OR_KEYS: (
        _Condition(
            "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE",
            "0AKDC",
            "Can only drop nested columns from StructType",
        ),
    ),
    ErrorCode.RENAME_OF_ELEMENTS_OR_KEYS: (
        _Condition("INVALID_FIELD_NAME", "42000", "Field name `{column}` is invalid: its parent is not a struct"),
    ),
    ErrorCode.LAST_COLUMN_DROPPED: (
        _Condition(
            "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA", "0AKDC", "Cannot drop column from a schema with a single column"
        ),
    ),
    ErrorCode.COLUMN_USED_BY_CONSTRAINT: (
        _Condition(
            "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
            "42K09",
            ("Cannot alter column {column} because this column is referenced by the following check constraint(s)"),
        ),
    ),
    ErrorCode.COLUMN_USED_BY_GENERATED_COLUMN: (
        _Condition(
            "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
            "42K09",
            ("Cannot alter column {column} because this column is referenced by the following generated column(s)"),
        ),
    ),
    ErrorCode.REPLACE_COLUMNS_UNSUPPORTED: (
        _Condition(
            "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP", "0AKDC", "Unsupported ALTER TABLE REPLACE COLUMNS operation"
        ),
    ),
    ErrorCode.REPLACE_COLUMNS_WITH_IDENTITY: (
        _Condition(
            "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED",
            "429BQ",
            "ALTER TABLE REPLACE COLUMNS is not supported for table with IDENTITY columns",
        ),
    ),
    ErrorCode.DUPLICATE_FIELD_IN_SCHEMA: (
        _Condition(
            "COLUMN_ALREADY_EXISTS",
            "42711",
            "The column `{column}` already exists. Choose another name or rename the existing column",
        ),
    ),
    ErrorCode.UNKNOWN_PROPERTY: (
        _Condition("DELTA_UNKNOWN_CONFIGURATION", "F0000", "Unknown configuration was specified: {property}"),
    ),
    ErrorCode.NEW_CHECK_VIOLATED: (
        _Condition(
            "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION", "23512", "rows violate the new CHECK constraint ({expression})"
        ),
    ),
    ErrorCode.CONSTRAINT_EXISTS: (
        _Condition("DELTA_CONSTRAINT_ALREADY_EXISTS", "42710", "Constraint '{constraint}' already exists"),
    ),
    ErrorCode.CONSTRAINT_NOT_FOUND: (
        _Condition("DELTA_CONSTRAINT_DOES_NOT_EXIST", "42704", "Cannot drop nonexistent constraint {constraint}"),
    ),
    ErrorCode.CATALOG_TABLE_EXISTS: (
        _Condition(
            "TABLE_OR_VIEW_ALREADY_EXISTS", "42P07", "Cannot create table or view `{table}` because it already exists"
        ),
    ),
    ErrorCode.TABLE_DEFINITION_MISMATCH: (
        _Condition(
            "DELTA_CREATE_TABLE_SCHEME_MISMATCH", "42KD7", "The specified schema does not match the existing schema"
        ),
    ),
    # table features
    ErrorCode.UNKNOWN_FEATURE: (
        _Condition(
            "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            "56038",
            (
                "Table features configured in the following Spark configs or Delta table properties are "
                "not recognized: delta.feature.{feature}"
            ),
        ),
    ),
    ErrorCode.FEATURE_NOT_PRESENT: (_Condition("DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", "0AKDE"),),
    ErrorCode.FEATURE_NOT_DROPPABLE: (_Condition("DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE", "0AKDC"),),
    ErrorCode.FEATURE_NEEDED_BY_OTHER: (_Condition("DELTA_FEATURE_DROP_DEPENDENT_FEATURE", "55000"),),
    ErrorCode.FEATURE_DROP_WITHOUT_TRUNCATION: (
        _Condition("DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED", "42000"),
    ),
    ErrorCode.FEATURE_DROP_WAITS_FOR_RETENTION: (_Condition("DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD", "22KD0"),),
    ErrorCode.FEATURE_IN_HISTORY: (_Condition("DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST", "22KD0"),),
    ErrorCode.FEATURE_UNKNOWN_TO_DROP: (_Condition("DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE", "0AKDC"),),
}


def condition_of(
    code: ErrorCode, parameters: Mapping[str, str], operation: Operation | None = None
) -> ErrorCondition | None:
    """Return the condition of an error, if delta-spark has one.

    Args:
        code: The code of the error.
        parameters: Its parameters.
        operation: What was done; None for what is not a statement.
    """
    if not parameters.keys() >= set(ERROR_PARAMETERS[code]):
        # The code is only that of the error's class.
        return None
    for name, sql_state, sentence, of in _CONDITIONS.get(code, ()):
        if of in (None, operation, _PART_OF.get(operation) if operation else None):
            return ErrorCondition(name, sql_state, sentence.format_map(_as_in_spark(parameters)))
    return None


def _as_in_spark(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters with paths as Spark has them: local ones without a scheme, none with a slash at the end."""
    return {
        name: value.removeprefix("file://").rstrip("/") if name == "path" else value
        for name, value in parameters.items()
    }
