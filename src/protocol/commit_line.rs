//! Actions of a writer: structs -> the JSON lines of a commit.
//!
//! Reading is columnar (see `parse`); a writer has its few actions as structs. Fields are in the
//! order of delta-spark. Fields without a value are omitted (some readers fail on an explicit
//! null); the only nulls ever written are those of partition values, which mean null.
//!
//! Protocol: "Actions". Cost: one pass over the actions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::action::{DomainMetadata, Metadata, Protocol, SetTransaction, or_default};
use crate::error::{Error, Result};

/// Partition values by physical column name; `None` is null.
pub type PartitionValues = BTreeMap<String, Option<String>>;

/// Descriptor of a deletion vector.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionVectorDescriptor {
    /// `u`, `i` or `p`.
    pub storage_type: String,
    /// Its location, or the inline vector.
    pub path_or_inline_dv: String,
    /// Start in its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i32>,
    /// Size in bytes.
    pub size_in_bytes: i32,
    /// Rows that it deletes.
    pub cardinality: i64,
}

impl DeletionVectorDescriptor {
    /// The id that distinguishes it from other vectors of the same file.
    #[must_use]
    pub fn unique_id(&self) -> String {
        match self.offset {
            Some(offset) => format!("{}{}@{offset}", self.storage_type, self.path_or_inline_dv),
            None => format!("{}{}", self.storage_type, self.path_or_inline_dv),
        }
    }
}

/// `add`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Add {
    /// URI-encoded path, relative to the table or absolute.
    pub path: String,
    /// A value for every partition column.
    #[serde(default, deserialize_with = "or_default")]
    pub partition_values: PartitionValues,
    /// Size in bytes.
    pub size: i64,
    /// Time of the file's creation, milliseconds since the epoch.
    pub modification_time: i64,
    /// False if the rows were in the table before.
    pub data_change: bool,
    /// Statistics, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    /// Further metadata of the file by the writer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, Option<String>>>,
    /// The rows that are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVectorDescriptor>,
    /// Row id of the first row; `None` for a new file, the commit gives it one where the table
    /// tracks rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_row_id: Option<i64>,
    /// Version in which the file was first added; `None` for a new file, as for the row id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_row_commit_version: Option<i64>,
    /// The implementation that clustered the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clustering_provider: Option<String>,
}

impl Add {
    /// `numRecords` of the statistics.
    #[must_use]
    pub fn num_records(&self) -> Option<i64> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Records {
            num_records: Option<i64>,
        }
        serde_json::from_str::<Records>(self.stats.as_deref()?)
            .ok()?
            .num_records
    }

    /// The remove that ends this file at `deletion_timestamp` (milliseconds since the epoch).
    #[must_use]
    pub fn to_remove(&self, deletion_timestamp: i64, data_change: bool) -> Remove {
        Remove {
            path: self.path.clone(),
            deletion_timestamp: Some(deletion_timestamp),
            data_change,
            extended_file_metadata: Some(true),
            partition_values: Some(self.partition_values.clone()),
            size: Some(self.size),
            tags: self.tags.clone(),
            deletion_vector: self.deletion_vector.clone(),
            base_row_id: self.base_row_id,
            default_row_commit_version: self.default_row_commit_version,
            stats: self.stats.clone(),
        }
    }
}

/// `remove`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remove {
    /// As in the add.
    pub path: String,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<i64>,
    /// False if the rows stay in the table.
    pub data_change: bool,
    /// Whether partition values and size are present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended_file_metadata: Option<bool>,
    /// As in the add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_values: Option<PartitionValues>,
    /// As in the add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// As in the add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, Option<String>>>,
    /// As in the add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVectorDescriptor>,
    /// As in the add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_row_id: Option<i64>,
    /// As in the add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_row_commit_version: Option<i64>,
    /// As in the add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
}

/// `cdc`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cdc {
    /// URI-encoded path below `_change_data`.
    pub path: String,
    /// A value for every partition column.
    #[serde(default, deserialize_with = "or_default")]
    pub partition_values: PartitionValues,
    /// Size in bytes.
    pub size: i64,
    /// Further metadata of the file by the writer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, Option<String>>>,
    /// Always false.
    #[serde(default)]
    pub data_change: bool,
}

/// `commitInfo`, with the keys that deltafast writes.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitInfo {
    /// The commit's time where the table has in-commit timestamps; milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_commit_timestamp: Option<i64>,
    /// The writer's clock, milliseconds since the epoch.
    pub timestamp: i64,
    /// The operation, for example `WRITE`.
    pub operation: String,
    /// Its parameters.
    pub operation_parameters: Map<String, Value>,
    /// The version that was read; `None` for the first commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_version: Option<i64>,
    /// `Serializable`, `WriteSerializable` or `SnapshotIsolation`.
    pub isolation_level: String,
    /// Whether the commit only adds files and has read no files.
    pub is_blind_append: bool,
    /// Whether the commit changes rows: adds or removes a file with `dataChange`.
    pub data_change: bool,
    /// The operation's metrics.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub operation_metrics: Map<String, Value>,
    /// The user's metadata string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_metadata: Option<String>,
    /// Tags that other writers' conflict checks read.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// The engine that wrote it.
    pub engine_info: String,
    /// Unique id of the transaction, by which a writer recognises its own commit.
    pub txn_id: String,
    /// Further keys of the user.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CommitInfo {
    /// Whether a user's key would collide with one of the protocol.
    #[must_use]
    pub fn is_reserved(key: &str) -> bool {
        const OURS: &[&str] = &[
            "inCommitTimestamp",
            "timestamp",
            "operation",
            "operationParameters",
            "readVersion",
            "isolationLevel",
            "isBlindAppend",
            "dataChange",
            "operationMetrics",
            "userMetadata",
            "tags",
            "engineInfo",
            "txnId",
            "version",
        ];
        OURS.contains(&key)
    }
}

/// One line of a commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// `add`
    Add(Add),
    /// `remove`
    Remove(Remove),
    /// `cdc`
    Cdc(Cdc),
    /// `metaData`
    MetaData(Box<Metadata>),
    /// `protocol`
    Protocol(Protocol),
    /// `txn`
    Txn(SetTransaction),
    /// `domainMetadata`
    DomainMetadata(DomainMetadata),
}

impl Action {
    /// Whether the action changes the table's rows. Change data files repeat the changes of other
    /// actions.
    #[must_use]
    pub fn changes_rows(&self) -> bool {
        match self {
            Self::Add(add) => add.data_change,
            Self::Remove(remove) => remove.data_change,
            _ => false,
        }
    }
}

/// The longest line, for readers as for writers. Lines contain one action each; the largest are
/// schemas of very many columns.
pub const LONGEST_LINE: u64 = 256 << 20;

/// Appends `value` as one line.
///
/// # Errors
/// [`Error::Invalid`] for a value that JSON cannot hold.
pub fn push_line(out: &mut Vec<u8>, value: &impl Serialize) -> Result<()> {
    let start = out.len();
    serde_json::to_writer(&mut *out, value)
        .map_err(|e| Error::invalid(format!("an action cannot be written as JSON: {e}")))?;
    let length = (out.len() - start) as u64;
    if length >= LONGEST_LINE {
        return Err(Error::invalid(format!(
            "an action of {length} bytes is longer than the {LONGEST_LINE} bytes that one may have in a commit; make its properties, metadata or values shorter"
        )));
    }
    out.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(action: &Action) -> String {
        let mut out = Vec::new();
        push_line(&mut out, action).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn file_actions_have_the_order_of_delta_spark_and_no_nulls() {
        let add = Add {
            path: "p=1/a%20b.parquet".into(),
            partition_values: [
                ("p".to_owned(), Some("1".to_owned())),
                ("q".to_owned(), None),
            ]
            .into(),
            size: 3,
            modification_time: 5,
            data_change: true,
            stats: Some(r#"{"numRecords":7}"#.into()),
            ..Add::default()
        };
        assert_eq!(
            line(&Action::Add(add.clone())),
            concat!(
                r#"{"add":{"path":"p=1/a%20b.parquet","partitionValues":{"p":"1","q":null},"size":3,"modificationTime":5,"dataChange":true,"#,
                r#""stats":"{\"numRecords\":7}"}}"#,
                "\n"
            )
        );
        assert_eq!(add.num_records(), Some(7));
        let remove = Add {
            base_row_id: Some(2),
            default_row_commit_version: Some(1),
            ..add
        }
        .to_remove(9, false);
        assert_eq!(
            line(&Action::Remove(remove)),
            concat!(
                r#"{"remove":{"path":"p=1/a%20b.parquet","deletionTimestamp":9,"dataChange":false,"extendedFileMetadata":true,"#,
                r#""partitionValues":{"p":"1","q":null},"size":3,"baseRowId":2,"defaultRowCommitVersion":1,"stats":"{\"numRecords\":7}"}}"#,
                "\n"
            )
        );
        let cdc = Cdc {
            path: "_change_data/c.parquet".into(),
            size: 4,
            ..Cdc::default()
        };
        assert_eq!(
            line(&Action::Cdc(cdc)),
            "{\"cdc\":{\"path\":\"_change_data/c.parquet\",\"partitionValues\":{},\"size\":4,\"dataChange\":false}}\n"
        );
    }

    #[test]
    fn metadata_ends_with_its_configuration_and_time() {
        let metadata = Metadata {
            id: "i".into(),
            name: None,
            description: None,
            format: super::super::action::FormatSpecification::default(),
            schema_string: "{}".into(),
            partition_columns: vec!["p".into()],
            configuration: [("delta.appendOnly".to_owned(), "true".to_owned())].into(),
            created_time: Some(1),
        };
        assert_eq!(
            line(&Action::MetaData(Box::new(metadata))),
            concat!(
                r#"{"metaData":{"id":"i","format":{"provider":"parquet","options":{}},"schemaString":"{}","partitionColumns":["p"],"#,
                r#""configuration":{"delta.appendOnly":"true"},"createdTime":1}}"#,
                "\n"
            )
        );
    }

    #[test]
    fn lines_come_back_as_they_were_and_incomplete_ones_are_refused() {
        let text = concat!(
            r#"{"txn":{"appId":"a","version":3}}"#,
            "\n",
            r#"{"domainMetadata":{"domain":"d","configuration":"{}","removed":false}}"#,
            "\n",
            r#"{"remove":{"path":"x","dataChange":true,"deletionVector":{"storageType":"u","pathOrInlineDv":"ab","offset":1,"sizeInBytes":2,"cardinality":3}}}"#,
            "\n"
        );
        let actions: Vec<Action> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(actions.iter().map(line).collect::<String>(), text);
        let error = serde_json::from_str::<Action>("{\"add\":{}}").unwrap_err();
        assert!(error.to_string().contains("missing field"), "{error}");
    }
}
