"""The codes of errors, as the Rust core defines them; written by `dev/make_core_types.py`."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

__all__ = ["ERROR_PARAMETERS", "ErrorCode"]


class ErrorCode(StrEnum):
    """The family of an error's message: `DeltaError.code`.

    Codes are stable, so programs may branch on them; messages are for people and change. Parameters of the message are
    in `DeltaError.parameters` by the names that are listed with each code.

    Examples:
        >>> from deltafast.exceptions import ErrorCode
        >>> ErrorCode.TABLE_NOT_FOUND == "TABLE_NOT_FOUND"
        True
    """

    TABLE_NOT_FOUND = "TABLE_NOT_FOUND"
    """No Delta table exists at the location, which has no `_delta_log`. Parameters: `path`."""
    NOT_A_DELTA_TABLE = "NOT_A_DELTA_TABLE"
    """The location has something else than a Delta table: `content` says what. Parameters: `path`, `content`."""
    NOT_A_CATALOG_TABLE = "NOT_A_CATALOG_TABLE"
    """A name of the catalog is not that of a Delta table. Parameters: `table`."""
    VERSION_NOT_FOUND = "VERSION_NOT_FOUND"
    """The table has no such version, or its commits were deleted. Parameters: `version`, `oldest`, `newest`."""
    LOG_WITHOUT_COMMITS = "LOG_WITHOUT_COMMITS"
    """The log has no commits left, so no version can be found by its time."""
    TIMESTAMP_TOO_EARLY = "TIMESTAMP_TOO_EARLY"
    """A time is before the oldest version left. Parameters: `timestamp`, `version`, `version_timestamp`."""
    TIMESTAMP_TOO_LATE = "TIMESTAMP_TOO_LATE"
    """A time is after the newest version. Parameters: `timestamp`, `version`, `version_timestamp`."""
    DATA_FILE_NOT_FOUND = "DATA_FILE_NOT_FOUND"
    """A file that the log lists does not exist."""
    OBJECT_NOT_FOUND = "OBJECT_NOT_FOUND"
    """Any other object does not exist."""
    RESTORED_FILES_MISSING = "RESTORED_FILES_MISSING"
    """Files of the version to restore were deleted. Parameters: `version`, `missing`, `file`."""
    TABLE_EXISTS = "TABLE_EXISTS"
    """A table exists where one was to be created. Parameters: `path`."""
    CATALOG_TABLE_EXISTS = "CATALOG_TABLE_EXISTS"
    """The catalog has a table of the name. Parameters: `table`, `path`."""
    TABLE_DEFINITION_MISMATCH = "TABLE_DEFINITION_MISMATCH"
    """A table exists at the location with another schema, partitioning or other properties than requested.
    Parameters: `path`.
    """
    CORRUPT_LOG = "CORRUPT_LOG"
    """The transaction log violates the protocol."""
    CORRUPT_DATA = "CORRUPT_DATA"
    """A data file or a deletion vector is damaged or contradicts the log."""
    DUPLICATE_FIELD_IN_SCHEMA = "DUPLICATE_FIELD_IN_SCHEMA"
    """A schema in JSON has a field name twice. Parameters: `column`."""
    INVALID_TIMESTAMP = "INVALID_TIMESTAMP"
    """A text is not a date and time. Parameters: `timestamp`."""
    INVALID_VERSION = "INVALID_VERSION"
    """A version is not a number from 0. Parameters: `option`, `version`."""
    VERSION_AND_TIMESTAMP = "VERSION_AND_TIMESTAMP"
    """A request has both a version and a timestamp."""
    RESTORE_VERSION_TOO_NEW = "RESTORE_VERSION_TOO_NEW"
    """The version to restore is newer than the newest one. Parameters: `version`, `newest`."""
    CHANGE_DATA_NOT_RECORDED = "CHANGE_DATA_NOT_RECORDED"
    """The change data feed was not enabled in a version of the range. Parameters: `version`, `start`, `end`."""
    CHANGE_FEED_START_MISSING = "CHANGE_FEED_START_MISSING"
    """A change data feed needs its first version or time."""
    CHANGE_FEED_START_TOO_LATE = "CHANGE_FEED_START_TOO_LATE"
    """A change data feed starts after the newest version. Parameters: `version`, `newest`."""
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    """An argument is invalid, in another way than those below."""
    SCHEMA_MODE_NEEDS_OVERWRITE = "SCHEMA_MODE_NEEDS_OVERWRITE"
    """Only an overwrite can replace the schema."""
    REPLACEMENT_NEEDS_OVERWRITE = "REPLACEMENT_NEEDS_OVERWRITE"
    """An option that chooses the replaced rows needs an overwrite."""
    REPLACEMENTS_EXCLUDE = "REPLACEMENTS_EXCLUDE"
    """Several options choose the replaced rows."""
    OVERWRITE_SCHEMA_WITH_PARTIAL_OVERWRITE = "OVERWRITE_SCHEMA_WITH_PARTIAL_OVERWRITE"
    """The schema is to be replaced, but only some of the rows."""
    OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITIONS = "OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITIONS"
    """The schema is to be replaced, but only the partitions of the data."""
    REPLACE_WHERE_WITH_DYNAMIC_PARTITIONS = "REPLACE_WHERE_WITH_DYNAMIC_PARTITIONS"
    """A condition and dynamic partitions both choose the replaced rows."""
    DYNAMIC_PARTITIONS_DISABLED = "DYNAMIC_PARTITIONS_DISABLED"
    """Dynamic partition overwrite is requested and disabled."""
    IDEMPOTENT_WRITE_OPTIONS_INCOMPLETE = "IDEMPOTENT_WRITE_OPTIONS_INCOMPLETE"
    """An application's transaction needs both its identifier and its version."""
    INVALID_PARTITION_STRATEGY = "INVALID_PARTITION_STRATEGY"
    """A partition strategy is neither `hive` nor `directory`. Parameters: `strategy`."""
    PARTITION_COLUMN_UNNAMED = "PARTITION_COLUMN_UNNAMED"
    """A folder is that of a partition column that the caller did not name. Parameters: `folder`."""
    UNKNOWN_STORE_SCHEME = "UNKNOWN_STORE_SCHEME"
    """No store has the scheme of an address. Parameters: `scheme`, `address`."""
    NEGATIVE_RETENTION = "NEGATIVE_RETENTION"
    """A retention is negative."""
    RETENTION_TOO_SHORT = "RETENTION_TOO_SHORT"
    """A vacuum is to delete what the table retains. Parameters: `retention_hours`, `table_hours`."""
    ADD_AND_REMOVE_OF_ONE_FILE = "ADD_AND_REMOVE_OF_ONE_FILE"
    """A commit both adds and removes a file. Parameters: `path`."""
    SCHEMA_MISMATCH = "SCHEMA_MISMATCH"
    """The data has another schema than the table. Parameters: `expected`, `found`."""
    FIELD_COUNT_MISMATCH = "FIELD_COUNT_MISMATCH"
    """The data has more columns than the table. Parameters: `expected`, `found`."""
    FIELD_NOT_IN_TABLE = "FIELD_NOT_IN_TABLE"
    """The data has a column or field that the table does not have. Parameters: `expected`, `found`."""
    DUPLICATE_COLUMN_IN_DATA = "DUPLICATE_COLUMN_IN_DATA"
    """The data has a column twice, compared without case. Parameters: `column`."""
    NOT_NULL_COLUMN_MISSING = "NOT_NULL_COLUMN_MISSING"
    """The data lacks a column that is NOT NULL and has no values from elsewhere. Parameters: `expected`, `found`."""
    TYPE_MISMATCH = "TYPE_MISMATCH"
    """A column of the data has a type that the table's cannot take. Parameters: `expected`, `found`."""
    VALUE_NOT_REPRESENTABLE = "VALUE_NOT_REPRESENTABLE"
    """A value of the data cannot be kept without a loss. Parameters: `reason`, `expected`, `found`."""
    INTEGER_OUT_OF_RANGE = "INTEGER_OUT_OF_RANGE"
    """An integer of the data is out of the range of the column's type. Parameters: `reason`, `expected`, `found`."""
    FIELD_MERGE_FAILED = "FIELD_MERGE_FAILED"
    """Two types of a field cannot be merged. Parameters: `column`."""
    STRUCT_FIELD_MISMATCH = "STRUCT_FIELD_MISMATCH"
    """A value of an update is a struct with other fields than its column. Parameters: `expected`, `found`."""
    PARTITIONING_MISMATCH = "PARTITIONING_MISMATCH"
    """A write names other partition columns than the table has. Parameters: `expected`, `found`."""
    PARTITION_COLUMN_IN_INSERT_LIST = "PARTITION_COLUMN_IN_INSERT_LIST"
    """A column has a value in PARTITION and is in the list of columns. Parameters: `column`."""
    INSERT_ARITY_MISMATCH = "INSERT_ARITY_MISMATCH"
    """The rows of an INSERT have another number of values than columns are to get. Parameters: `columns`, `values`."""
    UNSUPPORTED_COLLATION = "UNSUPPORTED_COLLATION"
    """A column has a collation that the operation does not support. Parameters: `column`, `collation`."""
    CONSTRAINT_VIOLATED = "CONSTRAINT_VIOLATED"
    """A row violates a constraint of another kind than those below. Parameters: `constraint`."""
    NOT_NULL_VIOLATED = "NOT_NULL_VIOLATED"
    """A NOT NULL column is null. Parameters: `constraint`, `column`."""
    CHECK_VIOLATED = "CHECK_VIOLATED"
    """A row does not satisfy a CHECK constraint. Parameters: `constraint`, `expression`."""
    GENERATED_COLUMN_VIOLATED = "GENERATED_COLUMN_VIOLATED"
    """The value of a generated column is not that of its expression. Parameters: `constraint`, `expression`."""
    LENGTH_EXCEEDED = "LENGTH_EXCEEDED"
    """A string is longer than its column's `char(n)` or `varchar(n)` allows. Parameters: `constraint`, `limit`."""
    LENGTH_CHECK_VIOLATED = "LENGTH_CHECK_VIOLATED"
    """A row of Spark does not satisfy the condition by which Spark checks the lengths of a column. Parameters:
    `constraint`, `expression`.
    """
    REPLACEMENT_VIOLATED = "REPLACEMENT_VIOLATED"
    """A row does not satisfy the condition of the rows that it replaces. Parameters: `constraint`, `expression`."""
    NEW_CHECK_VIOLATED = "NEW_CHECK_VIOLATED"
    """A row of the table does not satisfy a new CHECK constraint. Parameters: `constraint`, `expression`."""
    CONSTRAINT_EXISTS = "CONSTRAINT_EXISTS"
    """The table has a constraint of the name. Parameters: `constraint`."""
    CONSTRAINT_NOT_FOUND = "CONSTRAINT_NOT_FOUND"
    """The table has no constraint of the name. Parameters: `constraint`."""
    APPEND_ONLY_TABLE = "APPEND_ONLY_TABLE"
    """Rows of an append-only table are to be changed or deleted."""
    COLUMN_NOT_FOUND = "COLUMN_NOT_FOUND"
    """The table or the data has no column of the name. Parameters: `column`."""
    COLUMN_ASSIGNED_TWICE = "COLUMN_ASSIGNED_TWICE"
    """A column gets a value twice. Parameters: `column`."""
    MULTIPLE_SOURCE_ROWS_MATCHED = "MULTIPLE_SOURCE_ROWS_MATCHED"
    """Several rows of the source match one row of the table. Parameters: `file`, `row`."""
    EXPRESSION_SYNTAX_ERROR = "EXPRESSION_SYNTAX_ERROR"
    """An expression cannot be parsed. Parameters: `expression`."""
    NON_PARTITION_COLUMN_IN_PREDICATE = "NON_PARTITION_COLUMN_IN_PREDICATE"
    """A predicate over partitions reads another column. Parameters: `column`."""
    Z_ORDER_BY_PARTITION_COLUMN = "Z_ORDER_BY_PARTITION_COLUMN"
    """A table is to be Z-ordered by a partition column. Parameters: `column`."""
    Z_ORDER_COLUMN_NOT_FOUND = "Z_ORDER_COLUMN_NOT_FOUND"
    """A table is to be Z-ordered by a column that it does not have. Parameters: `column`."""
    PREDICATE_NOT_BOOLEAN = "PREDICATE_NOT_BOOLEAN"
    """A predicate has another type than BOOLEAN. Parameters: `expression`, `data_type`."""
    UNCASTABLE_TYPE = "UNCASTABLE_TYPE"
    """A value has a type that a column's type cannot take. Parameters: `value`, `source_type`, `target_type`."""
    NON_DETERMINISTIC_EXPRESSION = "NON_DETERMINISTIC_EXPRESSION"
    """An expression gives another value each time. Parameters: `expression`."""
    AGGREGATE_IN_PREDICATE = "AGGREGATE_IN_PREDICATE"
    """A predicate contains an aggregate. Parameters: `expression`."""
    FIELD_NOT_FOUND = "FIELD_NOT_FOUND"
    """A struct has no field of the name. Parameters: `field`, `parent`."""
    MERGE_WITHOUT_CLAUSE = "MERGE_WITHOUT_CLAUSE"
    """A MERGE has no clause."""
    MERGE_CLAUSE_WITHOUT_CONDITION = "MERGE_CLAUSE_WITHOUT_CONDITION"
    """Only the last clause of a kind may have no condition. Parameters: `clause`."""
    COLUMN_INSERTED_TWICE = "COLUMN_INSERTED_TWICE"
    """A list of columns to insert has one twice. Parameters: `column`."""
    IDENTITY_COLUMN_INSERTED = "IDENTITY_COLUMN_INSERTED"
    """An identity column gets values, which are the table's to give. Parameters: `column`."""
    IDENTITY_COLUMN_UPDATED = "IDENTITY_COLUMN_UPDATED"
    """An identity column is updated. Parameters: `column`."""
    REPLACEMENT_COLUMN_NOT_FOUND = "REPLACEMENT_COLUMN_NOT_FOUND"
    """A column that chooses the replaced rows does not exist. Parameters: `column`."""
    NOT_A_PARTITION_COLUMN = "NOT_A_PARTITION_COLUMN"
    """A value in PARTITION is that of a column by which the table is not partitioned. Parameters: `column`."""
    TABLE_NOT_PARTITIONED = "TABLE_NOT_PARTITIONED"
    """Partitions of a table without any are requested. Parameters: `table`."""
    INVALID_OPTION_VALUE = "INVALID_OPTION_VALUE"
    """An option has a value that it cannot have. Parameters: `option`, `value`, `values`."""
    OPTIMIZE_FULL_WITHOUT_CLUSTERING = "OPTIMIZE_FULL_WITHOUT_CLUSTERING"
    """OPTIMIZE FULL is of a table without clustering columns."""
    UNKNOWN_MANIFEST = "UNKNOWN_MANIFEST"
    """GENERATE has something to make other than manifests. Parameters: `mode`."""
    UNSUPPORTED_EXPRESSION = "UNSUPPORTED_EXPRESSION"
    """An expression is valid but deltafast does not evaluate it."""
    CAST_INVALID_INPUT = "CAST_INVALID_INPUT"
    """A value cannot be cast since it is malformed. Parameters: `value`, `source_type`, `target_type`, `expression`."""
    CAST_OVERFLOW = "CAST_OVERFLOW"
    """A value cannot be cast since it is out of the range of the type. Parameters: `value`, `source_type`,
    `target_type`, `expression`.
    """
    ARITHMETIC_OVERFLOW = "ARITHMETIC_OVERFLOW"
    """The result of an operation is out of the range of its type."""
    BINARY_ARITHMETIC_OVERFLOW = "BINARY_ARITHMETIC_OVERFLOW"
    """The result of an operation of bytes or shorts is out of their range."""
    NUMERIC_VALUE_OUT_OF_RANGE = "NUMERIC_VALUE_OUT_OF_RANGE"
    """A number is out of the range of a type."""
    DATETIME_OVERFLOW = "DATETIME_OVERFLOW"
    """A date or time is out of its range."""
    DATETIME_FIELD_OUT_OF_BOUNDS = "DATETIME_FIELD_OUT_OF_BOUNDS"
    """A date of this year, month and day does not exist."""
    DIVIDE_BY_ZERO = "DIVIDE_BY_ZERO"
    """A number is divided by zero."""
    REMAINDER_BY_ZERO = "REMAINDER_BY_ZERO"
    """A remainder of a division by zero is requested."""
    ILLEGAL_DAY_OF_WEEK = "ILLEGAL_DAY_OF_WEEK"
    """A text is not a day of the week."""
    INVALID_INDEX_OF_ZERO = "INVALID_INDEX_OF_ZERO"
    """An index is 0, where the first is 1."""
    INVALID_ARRAY_INDEX = "INVALID_ARRAY_INDEX"
    """An index is out of the range of an array."""
    INVALID_ARRAY_INDEX_IN_ELEMENT_AT = "INVALID_ARRAY_INDEX_IN_ELEMENT_AT"
    """An index of `element_at` is out of the range of an array."""
    NOT_UTF8 = "NOT_UTF8"
    """Bytes are not UTF-8 text."""
    NULL_MAP_KEY = "NULL_MAP_KEY"
    """A key of a map is null."""
    DUPLICATED_MAP_KEY = "DUPLICATED_MAP_KEY"
    """A map has a key twice."""
    COLUMN_EXISTS = "COLUMN_EXISTS"
    """The table has a column of the name. Parameters: `column`."""
    DUPLICATE_COLUMN = "DUPLICATE_COLUMN"
    """A schema has a column twice, compared without case. Parameters: `column`."""
    INVALID_COLUMN_NAME = "INVALID_COLUMN_NAME"
    """A column's name has characters that files without column mapping cannot have. Parameters: `columns`."""
    PARTITION_COLUMN_NOT_FOUND = "PARTITION_COLUMN_NOT_FOUND"
    """A partition column is not in the schema. Parameters: `column`."""
    PARTITIONED_BY_ALL_COLUMNS = "PARTITIONED_BY_ALL_COLUMNS"
    """A table is to be partitioned by all of its columns."""
    AMBIGUOUS_COLUMN = "AMBIGUOUS_COLUMN"
    """Several columns fit a name. Parameters: `column`."""
    SIBLING_NOT_FOUND = "SIBLING_NOT_FOUND"
    """The column behind which another is to stand does not exist. Parameters: `column`."""
    DROP_COLUMN_NEEDS_MAPPING = "DROP_COLUMN_NEEDS_MAPPING"
    """Columns can be dropped only where the table maps columns."""
    RENAME_COLUMN_NEEDS_MAPPING = "RENAME_COLUMN_NEEDS_MAPPING"
    """Columns can be renamed only where the table maps columns."""
    DROP_OF_ELEMENTS_OR_KEYS = "DROP_OF_ELEMENTS_OR_KEYS"
    """Elements, keys and values cannot be dropped. Parameters: `column`."""
    RENAME_OF_ELEMENTS_OR_KEYS = "RENAME_OF_ELEMENTS_OR_KEYS"
    """Elements, keys and values cannot be renamed. Parameters: `column`."""
    LAST_COLUMN_DROPPED = "LAST_COLUMN_DROPPED"
    """A table or struct must keep a column or field."""
    COLUMN_USED_BY_CONSTRAINT = "COLUMN_USED_BY_CONSTRAINT"
    """A column cannot be changed since a CHECK constraint uses it. Parameters: `column`, `constraint`."""
    COLUMN_USED_BY_GENERATED_COLUMN = "COLUMN_USED_BY_GENERATED_COLUMN"
    """A column cannot be changed since a generated column uses it. Parameters: `column`, `generated_column`."""
    COLUMN_USED_BY_LAYOUT = "COLUMN_USED_BY_LAYOUT"
    """A column cannot be changed since the table is partitioned or clustered by it. Parameters: `column`."""
    COLUMN_CHANGED_TWICE = "COLUMN_CHANGED_TWICE"
    """A statement changes a column twice. Parameters: `column`."""
    TYPE_WIDENING_DISABLED = "TYPE_WIDENING_DISABLED"
    """A type can be widened only where the table widens types. Parameters: `column`."""
    UPCAST_NEEDS_REWRITE = "UPCAST_NEEDS_REWRITE"
    """A column's type cannot become a wider one without rewriting files. Parameters: `column`, `from`, `to`."""
    UNSUPPORTED_TYPE_CHANGE = "UNSUPPORTED_TYPE_CHANGE"
    """A column's type cannot become another without rewriting files. Parameters: `column`, `from`, `to`."""
    ARRAY_TYPE_REPLACED = "ARRAY_TYPE_REPLACED"
    """An array is to get another type as a whole, instead of its element. Parameters: `column`."""
    MAP_TYPE_REPLACED = "MAP_TYPE_REPLACED"
    """A map is to get another type as a whole, instead of its key or value. Parameters: `column`."""
    STRUCT_TYPE_REPLACED = "STRUCT_TYPE_REPLACED"
    """A struct is to get another type as a whole, instead of its fields. Parameters: `column`."""
    COMMENT_ON_ELEMENT = "COMMENT_ON_ELEMENT"
    """Elements, keys and values cannot have a comment."""
    REPLACE_COLUMNS_UNSUPPORTED = "REPLACE_COLUMNS_UNSUPPORTED"
    """REPLACE COLUMNS cannot make a change."""
    REPLACE_COLUMNS_WITH_IDENTITY = "REPLACE_COLUMNS_WITH_IDENTITY"
    """REPLACE COLUMNS is not possible for a table with identity columns."""
    NOT_AN_IDENTITY_COLUMN = "NOT_AN_IDENTITY_COLUMN"
    """A column is not an identity column. Parameters: `column`."""
    ADDED_COLUMN_NOT_NULL = "ADDED_COLUMN_NOT_NULL"
    """A column cannot be added NOT NULL. Parameters: `column`."""
    ADDED_COLUMN_WITH_VALUES = "ADDED_COLUMN_WITH_VALUES"
    """A column cannot be added with values for rows that are there. Parameters: `column`."""
    COLUMN_DEFAULTS_NOT_ENABLED = "COLUMN_DEFAULTS_NOT_ENABLED"
    """A column's default needs the feature `allowColumnDefaults`. Parameters: `column`."""
    LOCATION_SCHEMA_MISMATCH = "LOCATION_SCHEMA_MISMATCH"
    """A table has another schema than the one at the location that a name is to get. Parameters: `path`."""
    LOCATION_OF_PATH_TABLE = "LOCATION_OF_PATH_TABLE"
    """The location of a table that is named by its path cannot change. Parameters: `path`."""
    LOCATION_NOT_EMPTY = "LOCATION_NOT_EMPTY"
    """A folder in which a table is to be created has other files. Parameters: `path`."""
    BUCKETS_UNSUPPORTED = "BUCKETS_UNSUPPORTED"
    """A table has no buckets. Parameters: `table`."""
    INVALID_PARTITION_COLUMN_TYPE = "INVALID_PARTITION_COLUMN_TYPE"
    """A table cannot be partitioned by a column of the type. Parameters: `column`, `data_type`."""
    PARTITIONED_BY_IDENTITY_COLUMN = "PARTITIONED_BY_IDENTITY_COLUMN"
    """A table cannot be partitioned by an identity column. Parameters: `column`."""
    INVALID_IDENTITY_COLUMN_TYPE = "INVALID_IDENTITY_COLUMN_TYPE"
    """Identity columns have another type. Parameters: `data_type`."""
    IDENTITY_STEP_OF_ZERO = "IDENTITY_STEP_OF_ZERO"
    """The values of an identity column would all be the same."""
    INVALID_GENERATION_EXPRESSION = "INVALID_GENERATION_EXPRESSION"
    """The expression of a generated column cannot be one. Parameters: `column`, `expression`."""
    CHECK_NOT_BOOLEAN = "CHECK_NOT_BOOLEAN"
    """A condition of a CHECK constraint has another type than BOOLEAN. Parameters: `constraint`, `expression`."""
    TOO_MANY_CLUSTERING_COLUMNS = "TOO_MANY_CLUSTERING_COLUMNS"
    """A table has more clustering columns than are possible. Parameters: `count`, `most`."""
    CLUSTERED_AND_PARTITIONED = "CLUSTERED_AND_PARTITIONED"
    """A partitioned table cannot be clustered."""
    COLUMN_MAPPING_MODE_CHANGE = "COLUMN_MAPPING_MODE_CHANGE"
    """The mode of column mapping cannot change in this way. Parameters: `from`, `to`."""
    CATALOG_TABLE_NOT_FOUND = "CATALOG_TABLE_NOT_FOUND"
    """The catalog has no table of the name. Parameters: `table`."""
    PARTITIONS_NOT_MANAGED = "PARTITIONS_NOT_MANAGED"
    """Partitions come and go with their rows. Parameters: `table`."""
    TRUNCATED_PARTITION = "TRUNCATED_PARTITION"
    """The partitions of a table are removed by DELETE."""
    FRAME_SCHEMA_CHANGED = "FRAME_SCHEMA_CHANGED"
    """The columns of a table have changed since a data frame was made of it. Parameters: `path`."""
    UNKNOWN_PROPERTY = "UNKNOWN_PROPERTY"
    """No table property has the name. Parameters: `property`."""
    UNSUPPORTED = "UNSUPPORTED"
    """A valid request or table needs what this release does not support."""
    UNSUPPORTED_FEATURE = "UNSUPPORTED_FEATURE"
    """A table needs a table feature that this release does not support for the operation. Parameters: `feature`."""
    UNKNOWN_FEATURE = "UNKNOWN_FEATURE"
    """No table feature has the name. Parameters: `feature`."""
    PROTOCOL_UPGRADE_NEEDED = "PROTOCOL_UPGRADE_NEEDED"
    """A feature needs higher protocol versions than the table has. Parameters: `reader_version`, `writer_version`,
    `table_reader_version`, `table_writer_version`.
    """
    FEATURE_NOT_PRESENT = "FEATURE_NOT_PRESENT"
    """The table does not have the feature to drop. Parameters: `feature`."""
    FEATURE_NOT_DROPPABLE = "FEATURE_NOT_DROPPABLE"
    """A feature cannot be dropped. Parameters: `feature`."""
    FEATURE_NEEDED_BY_OTHER = "FEATURE_NEEDED_BY_OTHER"
    """A feature cannot be dropped while the table has another one that needs it. Parameters: `feature`,
    `other_feature`.
    """
    FEATURE_DROP_WITHOUT_TRUNCATION = "FEATURE_DROP_WITHOUT_TRUNCATION"
    """A feature is dropped without truncating the history. Parameters: `feature`."""
    FEATURE_DROP_NEEDS_TRUNCATION = "FEATURE_DROP_NEEDS_TRUNCATION"
    """A feature is dropped only together with the history. Parameters: `feature`."""
    FEATURE_DROP_WAITS_FOR_RETENTION = "FEATURE_DROP_WAITS_FOR_RETENTION"
    """A feature can be dropped once the retention of its history is over. Parameters: `feature`."""
    FEATURE_IN_HISTORY = "FEATURE_IN_HISTORY"
    """Older versions still use the feature to drop. Parameters: `feature`, `version`."""
    FEATURE_UNKNOWN_TO_DROP = "FEATURE_UNKNOWN_TO_DROP"
    """A feature to drop is not known. Parameters: `feature`."""
    CONCURRENT_APPEND = "CONCURRENT_APPEND"
    """Another commit added files that the transaction should have read. Parameters: `removes_read_files`."""
    CONCURRENT_DELETE_READ = "CONCURRENT_DELETE_READ"
    """Another commit removed files that the transaction read."""
    CONCURRENT_DELETE_DELETE = "CONCURRENT_DELETE_DELETE"
    """Another commit removed files that the transaction removes."""
    CONCURRENT_TRANSACTION = "CONCURRENT_TRANSACTION"
    """Another commit wrote an application's transaction or a metadata domain on which this one depends."""
    METADATA_CHANGED = "METADATA_CHANGED"
    """Another commit changed the metadata."""
    PROTOCOL_CHANGED = "PROTOCOL_CHANGED"
    """Another commit changed the protocol."""
    CONCURRENT_WRITE = "CONCURRENT_WRITE"
    """Other writers created the next version first, more often than retries are allowed."""
    COMMIT_FAILED = "COMMIT_FAILED"
    """A commit failed for another reason."""
    COMMIT_UNKNOWN = "COMMIT_UNKNOWN"
    """The outcome of a commit is unknown."""
    STREAM_METADATA_CHANGED = "STREAM_METADATA_CHANGED"
    """The metadata of a stream's table changed; the schema log has the new one. Parameters: `table`, `version`."""
    STREAM_STOPPED_BY_SCHEMA_CHANGE = "STREAM_STOPPED_BY_SCHEMA_CHANGE"
    """A stream stops after a change of the schema that it cannot follow by itself. Parameters: `change`, `start`,
    `end`.
    """
    STREAM_SCHEMA_CHANGED = "STREAM_SCHEMA_CHANGED"
    """The schema of a stream's table changed in a way that a stream cannot follow. Parameters: `version`."""
    SCHEMA_LOG_INITIALIZATION = "SCHEMA_LOG_INITIALIZATION"
    """A schema log cannot be started in a batch in which the schema changed. Parameters: `start`, `end`."""
    SCHEMA_LOG_OF_OTHER_TABLE = "SCHEMA_LOG_OF_OTHER_TABLE"
    """A schema log is that of another table. Parameters: `log_table_id`, `table_id`."""
    SCHEMA_LOG_CORRUPT = "SCHEMA_LOG_CORRUPT"
    """An entry of a schema log is damaged. Parameters: `location`."""
    SCHEMA_LOG_IN_USE = "SCHEMA_LOG_IN_USE"
    """Another stream of the query uses the schema log. Parameters: `location`, `table`."""
    SCHEMA_LOG_OUTSIDE_CHECKPOINT = "SCHEMA_LOG_OUTSIDE_CHECKPOINT"
    """A schema log is not below the checkpoint. Parameters: `location`, `checkpoint`."""
    STORAGE_FAILED = "STORAGE_FAILED"
    """A store refused a request or failed."""
    CATALOG_FAILED = "CATALOG_FAILED"
    """A catalog refused a request or failed."""
    MEMORY_EXHAUSTED = "MEMORY_EXHAUSTED"
    """The process has no memory left, or its limit is too low."""
    THREADS_EXHAUSTED = "THREADS_EXHAUSTED"
    """The system refuses another thread."""
    FILE_DESCRIPTORS_EXHAUSTED = "FILE_DESCRIPTORS_EXHAUSTED"
    """The process or the system has no file descriptors left."""
    MISSING_LIBRARY = "MISSING_LIBRARY"
    """A library that a call needs is not installed."""
    CANCELLED = "CANCELLED"
    """The caller cancelled the work."""
    INTERNAL = "INTERNAL"
    """A defect of deltafast."""


#: The names of a code's parameters.
ERROR_PARAMETERS: Final[dict[ErrorCode, tuple[str, ...]]] = {
    ErrorCode.TABLE_NOT_FOUND: ("path",),
    ErrorCode.NOT_A_DELTA_TABLE: (
        "path",
        "content",
    ),
    ErrorCode.NOT_A_CATALOG_TABLE: ("table",),
    ErrorCode.VERSION_NOT_FOUND: (
        "version",
        "oldest",
        "newest",
    ),
    ErrorCode.LOG_WITHOUT_COMMITS: (),
    ErrorCode.TIMESTAMP_TOO_EARLY: (
        "timestamp",
        "version",
        "version_timestamp",
    ),
    ErrorCode.TIMESTAMP_TOO_LATE: (
        "timestamp",
        "version",
        "version_timestamp",
    ),
    ErrorCode.DATA_FILE_NOT_FOUND: (),
    ErrorCode.OBJECT_NOT_FOUND: (),
    ErrorCode.RESTORED_FILES_MISSING: (
        "version",
        "missing",
        "file",
    ),
    ErrorCode.TABLE_EXISTS: ("path",),
    ErrorCode.CATALOG_TABLE_EXISTS: (
        "table",
        "path",
    ),
    ErrorCode.TABLE_DEFINITION_MISMATCH: ("path",),
    ErrorCode.CORRUPT_LOG: (),
    ErrorCode.CORRUPT_DATA: (),
    ErrorCode.DUPLICATE_FIELD_IN_SCHEMA: ("column",),
    ErrorCode.INVALID_TIMESTAMP: ("timestamp",),
    ErrorCode.INVALID_VERSION: (
        "option",
        "version",
    ),
    ErrorCode.VERSION_AND_TIMESTAMP: (),
    ErrorCode.RESTORE_VERSION_TOO_NEW: (
        "version",
        "newest",
    ),
    ErrorCode.CHANGE_DATA_NOT_RECORDED: (
        "version",
        "start",
        "end",
    ),
    ErrorCode.CHANGE_FEED_START_MISSING: (),
    ErrorCode.CHANGE_FEED_START_TOO_LATE: (
        "version",
        "newest",
    ),
    ErrorCode.INVALID_ARGUMENT: (),
    ErrorCode.SCHEMA_MODE_NEEDS_OVERWRITE: (),
    ErrorCode.REPLACEMENT_NEEDS_OVERWRITE: (),
    ErrorCode.REPLACEMENTS_EXCLUDE: (),
    ErrorCode.OVERWRITE_SCHEMA_WITH_PARTIAL_OVERWRITE: (),
    ErrorCode.OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITIONS: (),
    ErrorCode.REPLACE_WHERE_WITH_DYNAMIC_PARTITIONS: (),
    ErrorCode.DYNAMIC_PARTITIONS_DISABLED: (),
    ErrorCode.IDEMPOTENT_WRITE_OPTIONS_INCOMPLETE: (),
    ErrorCode.INVALID_PARTITION_STRATEGY: ("strategy",),
    ErrorCode.PARTITION_COLUMN_UNNAMED: ("folder",),
    ErrorCode.UNKNOWN_STORE_SCHEME: (
        "scheme",
        "address",
    ),
    ErrorCode.NEGATIVE_RETENTION: (),
    ErrorCode.RETENTION_TOO_SHORT: (
        "retention_hours",
        "table_hours",
    ),
    ErrorCode.ADD_AND_REMOVE_OF_ONE_FILE: ("path",),
    ErrorCode.SCHEMA_MISMATCH: (
        "expected",
        "found",
    ),
    ErrorCode.FIELD_COUNT_MISMATCH: (
        "expected",
        "found",
    ),
    ErrorCode.FIELD_NOT_IN_TABLE: (
        "expected",
        "found",
    ),
    ErrorCode.DUPLICATE_COLUMN_IN_DATA: ("column",),
    ErrorCode.NOT_NULL_COLUMN_MISSING: (
        "expected",
        "found",
    ),
    ErrorCode.TYPE_MISMATCH: (
        "expected",
        "found",
    ),
    ErrorCode.VALUE_NOT_REPRESENTABLE: (
        "reason",
        "expected",
        "found",
    ),
    ErrorCode.INTEGER_OUT_OF_RANGE: (
        "reason",
        "expected",
        "found",
    ),
    ErrorCode.FIELD_MERGE_FAILED: ("column",),
    ErrorCode.STRUCT_FIELD_MISMATCH: (
        "expected",
        "found",
    ),
    ErrorCode.PARTITIONING_MISMATCH: (
        "expected",
        "found",
    ),
    ErrorCode.PARTITION_COLUMN_IN_INSERT_LIST: ("column",),
    ErrorCode.INSERT_ARITY_MISMATCH: (
        "columns",
        "values",
    ),
    ErrorCode.UNSUPPORTED_COLLATION: (
        "column",
        "collation",
    ),
    ErrorCode.CONSTRAINT_VIOLATED: ("constraint",),
    ErrorCode.NOT_NULL_VIOLATED: (
        "constraint",
        "column",
    ),
    ErrorCode.CHECK_VIOLATED: (
        "constraint",
        "expression",
    ),
    ErrorCode.GENERATED_COLUMN_VIOLATED: (
        "constraint",
        "expression",
    ),
    ErrorCode.LENGTH_EXCEEDED: (
        "constraint",
        "limit",
    ),
    ErrorCode.LENGTH_CHECK_VIOLATED: (
        "constraint",
        "expression",
    ),
    ErrorCode.REPLACEMENT_VIOLATED: (
        "constraint",
        "expression",
    ),
    ErrorCode.NEW_CHECK_VIOLATED: (
        "constraint",
        "expression",
    ),
    ErrorCode.CONSTRAINT_EXISTS: ("constraint",),
    ErrorCode.CONSTRAINT_NOT_FOUND: ("constraint",),
    ErrorCode.APPEND_ONLY_TABLE: (),
    ErrorCode.COLUMN_NOT_FOUND: ("column",),
    ErrorCode.COLUMN_ASSIGNED_TWICE: ("column",),
    ErrorCode.MULTIPLE_SOURCE_ROWS_MATCHED: (
        "file",
        "row",
    ),
    ErrorCode.EXPRESSION_SYNTAX_ERROR: ("expression",),
    ErrorCode.NON_PARTITION_COLUMN_IN_PREDICATE: ("column",),
    ErrorCode.Z_ORDER_BY_PARTITION_COLUMN: ("column",),
    ErrorCode.Z_ORDER_COLUMN_NOT_FOUND: ("column",),
    ErrorCode.PREDICATE_NOT_BOOLEAN: (
        "expression",
        "data_type",
    ),
    ErrorCode.UNCASTABLE_TYPE: (
        "value",
        "source_type",
        "target_type",
    ),
    ErrorCode.NON_DETERMINISTIC_EXPRESSION: ("expression",),
    ErrorCode.AGGREGATE_IN_PREDICATE: ("expression",),
    ErrorCode.FIELD_NOT_FOUND: (
        "field",
        "parent",
    ),
    ErrorCode.MERGE_WITHOUT_CLAUSE: (),
    ErrorCode.MERGE_CLAUSE_WITHOUT_CONDITION: ("clause",),
    ErrorCode.COLUMN_INSERTED_TWICE: ("column",),
    ErrorCode.IDENTITY_COLUMN_INSERTED: ("column",),
    ErrorCode.IDENTITY_COLUMN_UPDATED: ("column",),
    ErrorCode.REPLACEMENT_COLUMN_NOT_FOUND: ("column",),
    ErrorCode.NOT_A_PARTITION_COLUMN: ("column",),
    ErrorCode.TABLE_NOT_PARTITIONED: ("table",),
    ErrorCode.INVALID_OPTION_VALUE: (
        "option",
        "value",
        "values",
    ),
    ErrorCode.OPTIMIZE_FULL_WITHOUT_CLUSTERING: (),
    ErrorCode.UNKNOWN_MANIFEST: ("mode",),
    ErrorCode.UNSUPPORTED_EXPRESSION: (),
    ErrorCode.CAST_INVALID_INPUT: (
        "value",
        "source_type",
        "target_type",
        "expression",
    ),
    ErrorCode.CAST_OVERFLOW: (
        "value",
        "source_type",
        "target_type",
        "expression",
    ),
    ErrorCode.ARITHMETIC_OVERFLOW: (),
    ErrorCode.BINARY_ARITHMETIC_OVERFLOW: (),
    ErrorCode.NUMERIC_VALUE_OUT_OF_RANGE: (),
    ErrorCode.DATETIME_OVERFLOW: (),
    ErrorCode.DATETIME_FIELD_OUT_OF_BOUNDS: (),
    ErrorCode.DIVIDE_BY_ZERO: (),
    ErrorCode.REMAINDER_BY_ZERO: (),
    ErrorCode.ILLEGAL_DAY_OF_WEEK: (),
    ErrorCode.INVALID_INDEX_OF_ZERO: (),
    ErrorCode.INVALID_ARRAY_INDEX: (),
    ErrorCode.INVALID_ARRAY_INDEX_IN_ELEMENT_AT: (),
    ErrorCode.NOT_UTF8: (),
    ErrorCode.NULL_MAP_KEY: (),
    ErrorCode.DUPLICATED_MAP_KEY: (),
    ErrorCode.COLUMN_EXISTS: ("column",),
    ErrorCode.DUPLICATE_COLUMN: ("column",),
    ErrorCode.INVALID_COLUMN_NAME: ("columns",),
    ErrorCode.PARTITION_COLUMN_NOT_FOUND: ("column",),
    ErrorCode.PARTITIONED_BY_ALL_COLUMNS: (),
    ErrorCode.AMBIGUOUS_COLUMN: ("column",),
    ErrorCode.SIBLING_NOT_FOUND: ("column",),
    ErrorCode.DROP_COLUMN_NEEDS_MAPPING: (),
    ErrorCode.RENAME_COLUMN_NEEDS_MAPPING: (),
    ErrorCode.DROP_OF_ELEMENTS_OR_KEYS: ("column",),
    ErrorCode.RENAME_OF_ELEMENTS_OR_KEYS: ("column",),
    ErrorCode.LAST_COLUMN_DROPPED: (),
    ErrorCode.COLUMN_USED_BY_CONSTRAINT: (
        "column",
        "constraint",
    ),
    ErrorCode.COLUMN_USED_BY_GENERATED_COLUMN: (
        "column",
        "generated_column",
    ),
    ErrorCode.COLUMN_USED_BY_LAYOUT: ("column",),
    ErrorCode.COLUMN_CHANGED_TWICE: ("column",),
    ErrorCode.TYPE_WIDENING_DISABLED: ("column",),
    ErrorCode.UPCAST_NEEDS_REWRITE: (
        "column",
        "from",
        "to",
    ),
    ErrorCode.UNSUPPORTED_TYPE_CHANGE: (
        "column",
        "from",
        "to",
    ),
    ErrorCode.ARRAY_TYPE_REPLACED: ("column",),
    ErrorCode.MAP_TYPE_REPLACED: ("column",),
    ErrorCode.STRUCT_TYPE_REPLACED: ("column",),
    ErrorCode.COMMENT_ON_ELEMENT: (),
    ErrorCode.REPLACE_COLUMNS_UNSUPPORTED: (),
    ErrorCode.REPLACE_COLUMNS_WITH_IDENTITY: (),
    ErrorCode.NOT_AN_IDENTITY_COLUMN: ("column",),
    ErrorCode.ADDED_COLUMN_NOT_NULL: ("column",),
    ErrorCode.ADDED_COLUMN_WITH_VALUES: ("column",),
    ErrorCode.COLUMN_DEFAULTS_NOT_ENABLED: ("column",),
    ErrorCode.LOCATION_SCHEMA_MISMATCH: ("path",),
    ErrorCode.LOCATION_OF_PATH_TABLE: ("path",),
    ErrorCode.LOCATION_NOT_EMPTY: ("path",),
    ErrorCode.BUCKETS_UNSUPPORTED: ("table",),
    ErrorCode.INVALID_PARTITION_COLUMN_TYPE: (
        "column",
        "data_type",
    ),
    ErrorCode.PARTITIONED_BY_IDENTITY_COLUMN: ("column",),
    ErrorCode.INVALID_IDENTITY_COLUMN_TYPE: ("data_type",),
    ErrorCode.IDENTITY_STEP_OF_ZERO: (),
    ErrorCode.INVALID_GENERATION_EXPRESSION: (
        "column",
        "expression",
    ),
    ErrorCode.CHECK_NOT_BOOLEAN: (
        "constraint",
        "expression",
    ),
    ErrorCode.TOO_MANY_CLUSTERING_COLUMNS: (
        "count",
        "most",
    ),
    ErrorCode.CLUSTERED_AND_PARTITIONED: (),
    ErrorCode.COLUMN_MAPPING_MODE_CHANGE: (
        "from",
        "to",
    ),
    ErrorCode.CATALOG_TABLE_NOT_FOUND: ("table",),
    ErrorCode.PARTITIONS_NOT_MANAGED: ("table",),
    ErrorCode.TRUNCATED_PARTITION: (),
    ErrorCode.FRAME_SCHEMA_CHANGED: ("path",),
    ErrorCode.UNKNOWN_PROPERTY: ("property",),
    ErrorCode.UNSUPPORTED: (),
    ErrorCode.UNSUPPORTED_FEATURE: ("feature",),
    ErrorCode.UNKNOWN_FEATURE: ("feature",),
    ErrorCode.PROTOCOL_UPGRADE_NEEDED: (
        "reader_version",
        "writer_version",
        "table_reader_version",
        "table_writer_version",
    ),
    ErrorCode.FEATURE_NOT_PRESENT: ("feature",),
    ErrorCode.FEATURE_NOT_DROPPABLE: ("feature",),
    ErrorCode.FEATURE_NEEDED_BY_OTHER: (
        "feature",
        "other_feature",
    ),
    ErrorCode.FEATURE_DROP_WITHOUT_TRUNCATION: ("feature",),
    ErrorCode.FEATURE_DROP_NEEDS_TRUNCATION: ("feature",),
    ErrorCode.FEATURE_DROP_WAITS_FOR_RETENTION: ("feature",),
    ErrorCode.FEATURE_IN_HISTORY: (
        "feature",
        "version",
    ),
    ErrorCode.FEATURE_UNKNOWN_TO_DROP: ("feature",),
    ErrorCode.CONCURRENT_APPEND: ("removes_read_files",),
    ErrorCode.CONCURRENT_DELETE_READ: (),
    ErrorCode.CONCURRENT_DELETE_DELETE: (),
    ErrorCode.CONCURRENT_TRANSACTION: (),
    ErrorCode.METADATA_CHANGED: (),
    ErrorCode.PROTOCOL_CHANGED: (),
    ErrorCode.CONCURRENT_WRITE: (),
    ErrorCode.COMMIT_FAILED: (),
    ErrorCode.COMMIT_UNKNOWN: (),
    ErrorCode.STREAM_METADATA_CHANGED: (
        "table",
        "version",
    ),
    ErrorCode.STREAM_STOPPED_BY_SCHEMA_CHANGE: (
        "change",
        "start",
        "end",
    ),
    ErrorCode.STREAM_SCHEMA_CHANGED: ("version",),
    ErrorCode.SCHEMA_LOG_INITIALIZATION: (
        "start",
        "end",
    ),
    ErrorCode.SCHEMA_LOG_OF_OTHER_TABLE: (
        "log_table_id",
        "table_id",
    ),
    ErrorCode.SCHEMA_LOG_CORRUPT: ("location",),
    ErrorCode.SCHEMA_LOG_IN_USE: (
        "location",
        "table",
    ),
    ErrorCode.SCHEMA_LOG_OUTSIDE_CHECKPOINT: (
        "location",
        "checkpoint",
    ),
    ErrorCode.STORAGE_FAILED: (),
    ErrorCode.CATALOG_FAILED: (),
    ErrorCode.MEMORY_EXHAUSTED: (),
    ErrorCode.THREADS_EXHAUSTED: (),
    ErrorCode.FILE_DESCRIPTORS_EXHAUSTED: (),
    ErrorCode.MISSING_LIBRARY: (),
    ErrorCode.CANCELLED: (),
    ErrorCode.INTERNAL: (),
}
