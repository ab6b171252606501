//! The codes of errors.
//!
//! A code names a family of messages. It is stable: programs branch on it, and the surfaces map it
//! to the conditions of delta-spark and to the classes of `deltalake`. `dev/make_core_types.py`
//! writes the same list for Python.

macro_rules! error_codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal [$($parameter:ident)*],)+) => {
        /// The family of an error's message.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl ErrorCode {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name, as programs see it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The names of the parameters.
            #[must_use]
            pub fn parameters(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => &[$(stringify!($parameter)),*],)+
                }
            }
        }
    };
}

error_codes! {
    // Objects that do not exist
    /// No Delta table exists at the location, which has no `_delta_log`.
    TableNotFound = "TABLE_NOT_FOUND" [path],
    /// The location has something else than a Delta table: `content` says what.
    NotADeltaTable = "NOT_A_DELTA_TABLE" [path content],
    /// A name of the catalog is not that of a Delta table.
    NotACatalogTable = "NOT_A_CATALOG_TABLE" [table],
    /// The table has no such version, or its commits were deleted.
    VersionNotFound = "VERSION_NOT_FOUND" [version oldest newest],
    /// The log has no commits left, so no version can be found by its time.
    LogWithoutCommits = "LOG_WITHOUT_COMMITS" [],
    /// A time is before the oldest version left.
    TimestampTooEarly = "TIMESTAMP_TOO_EARLY" [timestamp version version_timestamp],
    /// A time is after the newest version.
    TimestampTooLate = "TIMESTAMP_TOO_LATE" [timestamp version version_timestamp],
    /// A file that the log lists does not exist.
    DataFileNotFound = "DATA_FILE_NOT_FOUND" [],
    /// Any other object does not exist.
    ObjectNotFound = "OBJECT_NOT_FOUND" [],
    /// Files of the version to restore were deleted.
    RestoredFilesMissing = "RESTORED_FILES_MISSING" [version missing file],

    // Tables that exist
    /// A table exists where one was to be created.
    TableExists = "TABLE_EXISTS" [path],
    /// The catalog has a table of the name.
    CatalogTableExists = "CATALOG_TABLE_EXISTS" [table path],
    /// A table exists at the location with another schema, partitioning or other properties than
    /// requested.
    TableDefinitionMismatch = "TABLE_DEFINITION_MISMATCH" [path],

    // Damaged files
    /// The transaction log violates the protocol.
    CorruptLog = "CORRUPT_LOG" [],
    /// A data file or a deletion vector is damaged or contradicts the log.
    CorruptData = "CORRUPT_DATA" [],
    /// A schema in JSON has a field name twice.
    DuplicateFieldInSchema = "DUPLICATE_FIELD_IN_SCHEMA" [column],

    // Versions and times of a request
    /// A text is not a date and time.
    InvalidTimestamp = "INVALID_TIMESTAMP" [timestamp],
    /// A version is not a number from 0.
    InvalidVersion = "INVALID_VERSION" [option version],
    /// A request has both a version and a timestamp.
    VersionAndTimestamp = "VERSION_AND_TIMESTAMP" [],
    /// The version to restore is newer than the newest one.
    RestoreVersionTooNew = "RESTORE_VERSION_TOO_NEW" [version newest],
    /// The change data feed was not enabled in a version of the range.
    ChangeDataNotRecorded = "CHANGE_DATA_NOT_RECORDED" [version start end],
    /// A change data feed needs its first version or time.
    ChangeFeedStartMissing = "CHANGE_FEED_START_MISSING" [],
    /// A change data feed starts after the newest version.
    ChangeFeedStartTooLate = "CHANGE_FEED_START_TOO_LATE" [version newest],

    // Options of a call
    /// An argument is invalid, in another way than those below.
    InvalidArgument = "INVALID_ARGUMENT" [],
    /// Only an overwrite can replace the schema.
    SchemaModeNeedsOverwrite = "SCHEMA_MODE_NEEDS_OVERWRITE" [],
    /// An option that chooses the replaced rows needs an overwrite.
    ReplacementNeedsOverwrite = "REPLACEMENT_NEEDS_OVERWRITE" [],
    /// Several options choose the replaced rows.
    ReplacementsExclude = "REPLACEMENTS_EXCLUDE" [],
    /// The schema is to be replaced, but only some of the rows.
    OverwriteSchemaWithPartialOverwrite = "OVERWRITE_SCHEMA_WITH_PARTIAL_OVERWRITE" [],
    /// The schema is to be replaced, but only the partitions of the data.
    OverwriteSchemaWithDynamicPartitions = "OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITIONS" [],
    /// A condition and dynamic partitions both choose the replaced rows.
    ReplaceWhereWithDynamicPartitions = "REPLACE_WHERE_WITH_DYNAMIC_PARTITIONS" [],
    /// Dynamic partition overwrite is requested and disabled.
    DynamicPartitionsDisabled = "DYNAMIC_PARTITIONS_DISABLED" [],
    /// An application's transaction needs both its identifier and its version.
    IdempotentWriteOptionsIncomplete = "IDEMPOTENT_WRITE_OPTIONS_INCOMPLETE" [],
    /// A partition strategy is neither `hive` nor `directory`.
    InvalidPartitionStrategy = "INVALID_PARTITION_STRATEGY" [strategy],
    /// A folder is that of a partition column that the caller did not name.
    PartitionColumnUnnamed = "PARTITION_COLUMN_UNNAMED" [folder],
    /// No store has the scheme of an address.
    UnknownStoreScheme = "UNKNOWN_STORE_SCHEME" [scheme address],
    /// A retention is negative.
    NegativeRetention = "NEGATIVE_RETENTION" [],
    /// A vacuum is to delete what the table retains.
    RetentionTooShort = "RETENTION_TOO_SHORT" [retention_hours table_hours],
    /// A commit both adds and removes a file.
    AddAndRemoveOfOneFile = "ADD_AND_REMOVE_OF_ONE_FILE" [path],

    // Data of a write
    /// The data has another schema than the table.
    SchemaMismatch = "SCHEMA_MISMATCH" [expected found],
    /// The data has more columns than the table.
    FieldCountMismatch = "FIELD_COUNT_MISMATCH" [expected found],
    /// The data has a column or field that the table does not have.
    FieldNotInTable = "FIELD_NOT_IN_TABLE" [expected found],
    /// The data has a column twice, compared without case.
    DuplicateColumnInData = "DUPLICATE_COLUMN_IN_DATA" [column],
    /// The data lacks a column that is NOT NULL and has no values from elsewhere.
    NotNullColumnMissing = "NOT_NULL_COLUMN_MISSING" [expected found],
    /// A column of the data has a type that the table's cannot take.
    TypeMismatch = "TYPE_MISMATCH" [expected found],
    /// A value of the data cannot be kept without a loss.
    ValueNotRepresentable = "VALUE_NOT_REPRESENTABLE" [reason expected found],
    /// An integer of the data is out of the range of the column's type.
    IntegerOutOfRange = "INTEGER_OUT_OF_RANGE" [reason expected found],
    /// Two types of a field cannot be merged.
    FieldMergeFailed = "FIELD_MERGE_FAILED" [column],
    /// A value of an update is a struct with other fields than its column.
    StructFieldMismatch = "STRUCT_FIELD_MISMATCH" [expected found],
    /// A write names other partition columns than the table has.
    PartitioningMismatch = "PARTITIONING_MISMATCH" [expected found],
    /// A column has a value in PARTITION and is in the list of columns.
    PartitionColumnInInsertList = "PARTITION_COLUMN_IN_INSERT_LIST" [column],
    /// The rows of an INSERT have another number of values than columns are to get.
    InsertArityMismatch = "INSERT_ARITY_MISMATCH" [columns values],
    /// A column has a collation that the operation does not support.
    UnsupportedCollation = "UNSUPPORTED_COLLATION" [column collation],

    // Constraints
    /// A row violates a constraint of another kind than those below.
    ConstraintViolated = "CONSTRAINT_VIOLATED" [constraint],
    /// A NOT NULL column is null.
    NotNullViolated = "NOT_NULL_VIOLATED" [constraint column],
    /// A row does not satisfy a CHECK constraint.
    CheckViolated = "CHECK_VIOLATED" [constraint expression],
    /// The value of a generated column is not that of its expression.
    GeneratedColumnViolated = "GENERATED_COLUMN_VIOLATED" [constraint expression],
    /// A string is longer than its column's `char(n)` or `varchar(n)` allows.
    LengthExceeded = "LENGTH_EXCEEDED" [constraint limit],
    /// A row of Spark does not satisfy the condition by which Spark checks the lengths of a column.
    LengthCheckViolated = "LENGTH_CHECK_VIOLATED" [constraint expression],
    /// A row does not satisfy the condition of the rows that it replaces.
    ReplacementViolated = "REPLACEMENT_VIOLATED" [constraint expression],
    /// A row of the table does not satisfy a new CHECK constraint.
    NewCheckViolated = "NEW_CHECK_VIOLATED" [constraint expression],
    /// The table has a constraint of the name.
    ConstraintExists = "CONSTRAINT_EXISTS" [constraint],
    /// The table has no constraint of the name.
    ConstraintNotFound = "CONSTRAINT_NOT_FOUND" [constraint],

    // Changes of rows
    /// Rows of an append-only table are to be changed or deleted.
    AppendOnlyTable = "APPEND_ONLY_TABLE" [],
    /// The table or the data has no column of the name.
    ColumnNotFound = "COLUMN_NOT_FOUND" [column],
    /// A column gets a value twice.
    ColumnAssignedTwice = "COLUMN_ASSIGNED_TWICE" [column],
    /// Several rows of the source match one row of the table.
    MultipleSourceRowsMatched = "MULTIPLE_SOURCE_ROWS_MATCHED" [file row],
    /// An expression cannot be parsed.
    ExpressionSyntaxError = "EXPRESSION_SYNTAX_ERROR" [expression],
    /// A predicate over partitions reads another column.
    NonPartitionColumnInPredicate = "NON_PARTITION_COLUMN_IN_PREDICATE" [column],
    /// A table is to be Z-ordered by a partition column.
    ZOrderByPartitionColumn = "Z_ORDER_BY_PARTITION_COLUMN" [column],
    /// A table is to be Z-ordered by a column that it does not have.
    ZOrderColumnNotFound = "Z_ORDER_COLUMN_NOT_FOUND" [column],
    /// A predicate has another type than BOOLEAN.
    PredicateNotBoolean = "PREDICATE_NOT_BOOLEAN" [expression data_type],
    /// A value has a type that a column's type cannot take.
    UncastableType = "UNCASTABLE_TYPE" [value source_type target_type],
    /// An expression gives another value each time.
    NonDeterministicExpression = "NON_DETERMINISTIC_EXPRESSION" [expression],
    /// A predicate contains an aggregate.
    AggregateInPredicate = "AGGREGATE_IN_PREDICATE" [expression],
    /// A struct has no field of the name.
    FieldNotFound = "FIELD_NOT_FOUND" [field parent],
    /// A MERGE has no clause.
    MergeWithoutClause = "MERGE_WITHOUT_CLAUSE" [],
    /// Only the last clause of a kind may have no condition.
    MergeClauseWithoutCondition = "MERGE_CLAUSE_WITHOUT_CONDITION" [clause],
    /// A list of columns to insert has one twice.
    ColumnInsertedTwice = "COLUMN_INSERTED_TWICE" [column],
    /// An identity column gets values, which are the table's to give.
    IdentityColumnInserted = "IDENTITY_COLUMN_INSERTED" [column],
    /// An identity column is updated.
    IdentityColumnUpdated = "IDENTITY_COLUMN_UPDATED" [column],
    /// A column that chooses the replaced rows does not exist.
    ReplacementColumnNotFound = "REPLACEMENT_COLUMN_NOT_FOUND" [column],
    /// A value in PARTITION is that of a column by which the table is not partitioned.
    NotAPartitionColumn = "NOT_A_PARTITION_COLUMN" [column],
    /// Partitions of a table without any are requested.
    TableNotPartitioned = "TABLE_NOT_PARTITIONED" [table],
    /// An option has a value that it cannot have.
    InvalidOptionValue = "INVALID_OPTION_VALUE" [option value values],
    /// OPTIMIZE FULL is of a table without clustering columns.
    OptimizeFullWithoutClustering = "OPTIMIZE_FULL_WITHOUT_CLUSTERING" [],
    /// GENERATE has something to make other than manifests.
    UnknownManifest = "UNKNOWN_MANIFEST" [mode],
    /// An expression is valid but deltafast does not evaluate it.
    UnsupportedExpression = "UNSUPPORTED_EXPRESSION" [],

    // Evaluation of expressions
    /// A value cannot be cast since it is malformed.
    CastInvalidInput = "CAST_INVALID_INPUT" [value source_type target_type expression],
    /// A value cannot be cast since it is out of the range of the type.
    CastOverflow = "CAST_OVERFLOW" [value source_type target_type expression],
    /// The result of an operation is out of the range of its type.
    ArithmeticOverflow = "ARITHMETIC_OVERFLOW" [],
    /// The result of an operation of bytes or shorts is out of their range.
    BinaryArithmeticOverflow = "BINARY_ARITHMETIC_OVERFLOW" [],
    /// A number is out of the range of a type.
    NumericValueOutOfRange = "NUMERIC_VALUE_OUT_OF_RANGE" [],
    /// A date or time is out of its range.
    DatetimeOverflow = "DATETIME_OVERFLOW" [],
    /// A date of this year, month and day does not exist.
    DatetimeFieldOutOfBounds = "DATETIME_FIELD_OUT_OF_BOUNDS" [],
    /// A number is divided by zero.
    DivideByZero = "DIVIDE_BY_ZERO" [],
    /// A remainder of a division by zero is requested.
    RemainderByZero = "REMAINDER_BY_ZERO" [],
    /// A text is not a day of the week.
    IllegalDayOfWeek = "ILLEGAL_DAY_OF_WEEK" [],
    /// An index is 0, where the first is 1.
    InvalidIndexOfZero = "INVALID_INDEX_OF_ZERO" [],
    /// An index is out of the range of an array.
    InvalidArrayIndex = "INVALID_ARRAY_INDEX" [],
    /// An index of `element_at` is out of the range of an array.
    InvalidArrayIndexInElementAt = "INVALID_ARRAY_INDEX_IN_ELEMENT_AT" [],
    /// Bytes are not UTF-8 text.
    NotUtf8 = "NOT_UTF8" [],
    /// A key of a map is null.
    NullMapKey = "NULL_MAP_KEY" [],
    /// A map has a key twice.
    DuplicatedMapKey = "DUPLICATED_MAP_KEY" [],

    // Definitions
    /// The table has a column of the name.
    ColumnExists = "COLUMN_EXISTS" [column],
    /// A schema has a column twice, compared without case.
    DuplicateColumn = "DUPLICATE_COLUMN" [column],
    /// A column's name has characters that files without column mapping cannot have.
    InvalidColumnName = "INVALID_COLUMN_NAME" [columns],
    /// A partition column is not in the schema.
    PartitionColumnNotFound = "PARTITION_COLUMN_NOT_FOUND" [column],
    /// A table is to be partitioned by all of its columns.
    PartitionedByAllColumns = "PARTITIONED_BY_ALL_COLUMNS" [],
    /// Several columns fit a name.
    AmbiguousColumn = "AMBIGUOUS_COLUMN" [column],
    /// The column behind which another is to stand does not exist.
    SiblingNotFound = "SIBLING_NOT_FOUND" [column],
    /// Columns can be dropped only where the table maps columns.
    DropColumnNeedsMapping = "DROP_COLUMN_NEEDS_MAPPING" [],
    /// Columns can be renamed only where the table maps columns.
    RenameColumnNeedsMapping = "RENAME_COLUMN_NEEDS_MAPPING" [],
    /// Elements, keys and values cannot be dropped.
    DropOfElementsOrKeys = "DROP_OF_ELEMENTS_OR_KEYS" [column],
    /// Elements, keys and values cannot be renamed.
    RenameOfElementsOrKeys = "RENAME_OF_ELEMENTS_OR_KEYS" [column],
    /// A table or struct must keep a column or field.
    LastColumnDropped = "LAST_COLUMN_DROPPED" [],
    /// A column cannot be changed since a CHECK constraint uses it.
    ColumnUsedByConstraint = "COLUMN_USED_BY_CONSTRAINT" [column constraint],
    /// A column cannot be changed since a generated column uses it.
    ColumnUsedByGeneratedColumn = "COLUMN_USED_BY_GENERATED_COLUMN" [column generated_column],
    /// A column cannot be changed since the table is partitioned or clustered by it.
    ColumnUsedByLayout = "COLUMN_USED_BY_LAYOUT" [column],
    /// A statement changes a column twice.
    ColumnChangedTwice = "COLUMN_CHANGED_TWICE" [column],
    /// A type can be widened only where the table widens types.
    TypeWideningDisabled = "TYPE_WIDENING_DISABLED" [column],
    /// A column's type cannot become a wider one without rewriting files.
    UpcastNeedsRewrite = "UPCAST_NEEDS_REWRITE" [column from to],
    /// A column's type cannot become another without rewriting files.
    UnsupportedTypeChange = "UNSUPPORTED_TYPE_CHANGE" [column from to],
    /// An array is to get another type as a whole, instead of its element.
    ArrayTypeReplaced = "ARRAY_TYPE_REPLACED" [column],
    /// A map is to get another type as a whole, instead of its key or value.
    MapTypeReplaced = "MAP_TYPE_REPLACED" [column],
    /// A struct is to get another type as a whole, instead of its fields.
    StructTypeReplaced = "STRUCT_TYPE_REPLACED" [column],
    /// Elements, keys and values cannot have a comment.
    CommentOnElement = "COMMENT_ON_ELEMENT" [],
    /// REPLACE COLUMNS cannot make a change.
    ReplaceColumnsUnsupported = "REPLACE_COLUMNS_UNSUPPORTED" [],
    /// REPLACE COLUMNS is not possible for a table with identity columns.
    ReplaceColumnsWithIdentity = "REPLACE_COLUMNS_WITH_IDENTITY" [],
    /// A column is not an identity column.
    NotAnIdentityColumn = "NOT_AN_IDENTITY_COLUMN" [column],
    /// A column cannot be added NOT NULL.
    AddedColumnNotNull = "ADDED_COLUMN_NOT_NULL" [column],
    /// A column cannot be added with values for rows that are there.
    AddedColumnWithValues = "ADDED_COLUMN_WITH_VALUES" [column],
    /// A column's default needs the feature `allowColumnDefaults`.
    ColumnDefaultsNotEnabled = "COLUMN_DEFAULTS_NOT_ENABLED" [column],
    /// A table has another schema than the one at the location that a name is to get.
    LocationSchemaMismatch = "LOCATION_SCHEMA_MISMATCH" [path],
    /// The location of a table that is named by its path cannot change.
    LocationOfPathTable = "LOCATION_OF_PATH_TABLE" [path],
    /// A folder in which a table is to be created has other files.
    LocationNotEmpty = "LOCATION_NOT_EMPTY" [path],
    /// A table has no buckets.
    BucketsUnsupported = "BUCKETS_UNSUPPORTED" [table],
    /// A table cannot be partitioned by a column of the type.
    InvalidPartitionColumnType = "INVALID_PARTITION_COLUMN_TYPE" [column data_type],
    /// A table cannot be partitioned by an identity column.
    PartitionedByIdentityColumn = "PARTITIONED_BY_IDENTITY_COLUMN" [column],
    /// Identity columns have another type.
    InvalidIdentityColumnType = "INVALID_IDENTITY_COLUMN_TYPE" [data_type],
    /// The values of an identity column would all be the same.
    IdentityStepOfZero = "IDENTITY_STEP_OF_ZERO" [],
    /// The expression of a generated column cannot be one.
    InvalidGenerationExpression = "INVALID_GENERATION_EXPRESSION" [column expression],
    /// A condition of a CHECK constraint has another type than BOOLEAN.
    CheckNotBoolean = "CHECK_NOT_BOOLEAN" [constraint expression],
    /// A table has more clustering columns than are possible.
    TooManyClusteringColumns = "TOO_MANY_CLUSTERING_COLUMNS" [count most],
    /// A partitioned table cannot be clustered.
    ClusteredAndPartitioned = "CLUSTERED_AND_PARTITIONED" [],
    /// The mode of column mapping cannot change in this way.
    ColumnMappingModeChange = "COLUMN_MAPPING_MODE_CHANGE" [from to],
    /// The catalog has no table of the name.
    CatalogTableNotFound = "CATALOG_TABLE_NOT_FOUND" [table],
    /// Partitions come and go with their rows.
    PartitionsNotManaged = "PARTITIONS_NOT_MANAGED" [table],
    /// The partitions of a table are removed by DELETE.
    TruncatedPartition = "TRUNCATED_PARTITION" [],
    /// The columns of a table have changed since a data frame was made of it.
    FrameSchemaChanged = "FRAME_SCHEMA_CHANGED" [path],
    /// No table property has the name.
    UnknownProperty = "UNKNOWN_PROPERTY" [property],

    // Protocol and table features
    /// A valid request or table needs what this release does not support.
    Unsupported = "UNSUPPORTED" [],
    /// A table needs a table feature that this release does not support for the operation.
    UnsupportedFeature = "UNSUPPORTED_FEATURE" [feature],
    /// No table feature has the name.
    UnknownFeature = "UNKNOWN_FEATURE" [feature],
    /// A feature needs higher protocol versions than the table has.
    ProtocolUpgradeNeeded = "PROTOCOL_UPGRADE_NEEDED"
        [reader_version writer_version table_reader_version table_writer_version],
    /// The table does not have the feature to drop.
    FeatureNotPresent = "FEATURE_NOT_PRESENT" [feature],
    /// A feature cannot be dropped.
    FeatureNotDroppable = "FEATURE_NOT_DROPPABLE" [feature],
    /// A feature cannot be dropped while the table has another one that needs it.
    FeatureNeededByOther = "FEATURE_NEEDED_BY_OTHER" [feature other_feature],
    /// A feature is dropped without truncating the history.
    FeatureDropWithoutTruncation = "FEATURE_DROP_WITHOUT_TRUNCATION" [feature],
    /// A feature is dropped only together with the history.
    FeatureDropNeedsTruncation = "FEATURE_DROP_NEEDS_TRUNCATION" [feature],
    /// A feature can be dropped once the retention of its history is over.
    FeatureDropWaitsForRetention = "FEATURE_DROP_WAITS_FOR_RETENTION" [feature],
    /// Older versions still use the feature to drop.
    FeatureInHistory = "FEATURE_IN_HISTORY" [feature version],
    /// A feature to drop is not known.
    FeatureUnknownToDrop = "FEATURE_UNKNOWN_TO_DROP" [feature],

    // Commits
    /// Another commit added files that the transaction should have read.
    ConcurrentAppend = "CONCURRENT_APPEND" [removes_read_files],
    /// Another commit removed files that the transaction read.
    ConcurrentDeleteRead = "CONCURRENT_DELETE_READ" [],
    /// Another commit removed files that the transaction removes.
    ConcurrentDeleteDelete = "CONCURRENT_DELETE_DELETE" [],
    /// Another commit wrote an application's transaction or a metadata domain on which this one
    /// depends.
    ConcurrentTransaction = "CONCURRENT_TRANSACTION" [],
    /// Another commit changed the metadata.
    MetadataChanged = "METADATA_CHANGED" [],
    /// Another commit changed the protocol.
    ProtocolChanged = "PROTOCOL_CHANGED" [],
    /// Other writers created the next version first, more often than retries are allowed.
    ConcurrentWrite = "CONCURRENT_WRITE" [],
    /// A commit failed for another reason.
    CommitFailed = "COMMIT_FAILED" [],
    /// The outcome of a commit is unknown.
    CommitUnknown = "COMMIT_UNKNOWN" [],

    // Streams
    /// The metadata of a stream's table changed; the schema log has the new one.
    StreamMetadataChanged = "STREAM_METADATA_CHANGED" [table version],
    /// A stream stops after a change of the schema that it cannot follow by itself.
    StreamStoppedBySchemaChange = "STREAM_STOPPED_BY_SCHEMA_CHANGE" [change start end],
    /// The schema of a stream's table changed in a way that a stream cannot follow.
    StreamSchemaChanged = "STREAM_SCHEMA_CHANGED" [version],
    /// A schema log cannot be started in a batch in which the schema changed.
    SchemaLogInitialization = "SCHEMA_LOG_INITIALIZATION" [start end],
    /// A schema log is that of another table.
    SchemaLogOfOtherTable = "SCHEMA_LOG_OF_OTHER_TABLE" [log_table_id table_id],
    /// An entry of a schema log is damaged.
    SchemaLogCorrupt = "SCHEMA_LOG_CORRUPT" [location],
    /// Another stream of the query uses the schema log.
    SchemaLogInUse = "SCHEMA_LOG_IN_USE" [location table],
    /// A schema log is not below the checkpoint.
    SchemaLogOutsideCheckpoint = "SCHEMA_LOG_OUTSIDE_CHECKPOINT" [location checkpoint],

    // Stores, catalogs and the process
    /// A store refused a request or failed.
    StorageFailed = "STORAGE_FAILED" [],
    /// A catalog refused a request or failed.
    CatalogFailed = "CATALOG_FAILED" [],
    /// The process has no memory left, or its limit is too low.
    MemoryExhausted = "MEMORY_EXHAUSTED" [],
    /// The system refuses another thread.
    ThreadsExhausted = "THREADS_EXHAUSTED" [],
    /// The process or the system has no file descriptors left.
    FileDescriptorsExhausted = "FILE_DESCRIPTORS_EXHAUSTED" [],
    /// A library that a call needs is not installed.
    MissingLibrary = "MISSING_LIBRARY" [],
    /// The caller cancelled the work.
    Cancelled = "CANCELLED" [],
    /// A defect of deltafast.
    Internal = "INTERNAL" [],
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::ErrorCode;

    #[test]
    fn names_are_unique_and_those_of_the_variants() {
        let names: HashSet<&str> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), ErrorCode::ALL.len());
        for code in ErrorCode::ALL {
            let variant = format!("{code:?}").to_uppercase();
            assert_eq!(code.name().replace('_', ""), variant);
        }
    }
}
