//! Actions other than file actions: protocol, metadata, application transactions, domain metadata,
//! commit information.
//!
//! File actions (`add`, `remove`, `cdc`) come by the million and are never structs: they are stored
//! in Arrow columns, see `parse`.
//!
//! Protocol: "Actions".

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{Error, Result};

/// `protocol`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Protocol {
    /// Lowest reader version that may read the table.
    pub min_reader_version: i32,
    /// Lowest writer version that may write the table.
    pub min_writer_version: i32,
    /// Features that a reader must support; the list exists exactly at reader version 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<Vec<String>>,
    /// Features that a writer must support; the list exists exactly at writer version 7.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_features: Option<Vec<String>>,
}

impl Protocol {
    /// Whether the reader feature is listed.
    #[must_use]
    pub fn has_reader_feature(&self, name: &str) -> bool {
        self.min_reader_version >= 3
            && self
                .reader_features
                .as_ref()
                .is_some_and(|list| list.iter().any(|f| f == name))
    }

    /// Whether the writer feature is listed.
    #[must_use]
    pub fn has_writer_feature(&self, name: &str) -> bool {
        self.min_writer_version >= 7
            && self
                .writer_features
                .as_ref()
                .is_some_and(|list| list.iter().any(|f| f == name))
    }
}

/// `metaData.format`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatSpecification {
    /// Encoding of the data files; only `parquet` exists.
    #[serde(default = "parquet")]
    pub provider: String,
    /// Its options.
    #[serde(default, deserialize_with = "string_map")]
    pub options: BTreeMap<String, String>,
}

fn parquet() -> String {
    "parquet".to_owned()
}

impl Default for FormatSpecification {
    fn default() -> Self {
        Self {
            provider: parquet(),
            options: BTreeMap::new(),
        }
    }
}

/// `metaData`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Identifier of the table, which never changes.
    pub id: String,
    /// Name given by a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Description given by a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Format of the data files.
    #[serde(default)]
    pub format: FormatSpecification,
    /// The schema as JSON text.
    pub schema_string: String,
    /// Names of the partition columns, in order.
    #[serde(default, deserialize_with = "or_default")]
    pub partition_columns: Vec<String>,
    /// Table properties.
    #[serde(default, deserialize_with = "string_map")]
    pub configuration: BTreeMap<String, String>,
    /// Time of creation, milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<i64>,
}

impl Metadata {
    /// Whether a boolean property is set to true.
    #[must_use]
    pub fn flag(&self, property: &str) -> bool {
        self.configuration
            .get(property)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }
}

/// `txn`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetTransaction {
    /// Identifier of the application.
    pub app_id: String,
    /// The application's version.
    pub version: i64,
    /// Time of the transaction, milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<i64>,
}

/// `domainMetadata`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainMetadata {
    /// Name of the domain.
    pub domain: String,
    /// Its configuration, a string in the domain's own format.
    #[serde(default, deserialize_with = "or_default")]
    pub configuration: String,
    /// True for a tombstone.
    #[serde(default, deserialize_with = "or_default")]
    pub removed: bool,
}

/// `sidecar`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sidecar {
    /// File name below `_delta_log/_sidecars`, or a URI.
    pub path: String,
    /// Size in bytes.
    pub size_in_bytes: i64,
    /// Time of its making, milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modification_time: Option<i64>,
}

/// The fields of `commitInfo` that time travel and the change data feed need.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitTimes {
    /// The writer's clock, milliseconds since the epoch.
    #[serde(default)]
    pub timestamp: Option<serde_json::Value>,
    /// The in-commit timestamp, milliseconds since the epoch.
    #[serde(default)]
    pub in_commit_timestamp: Option<i64>,
}

pub(super) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> std::result::Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Some writers put nulls, numbers and booleans into string maps; a null counts as absent.
fn string_map<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<BTreeMap<String, String>, D::Error> {
    let map = Option::<BTreeMap<String, serde_json::Value>>::deserialize(deserializer)?
        .unwrap_or_default();
    Ok(map
        .into_iter()
        .filter_map(|(key, value)| match value {
            serde_json::Value::Null => None,
            serde_json::Value::String(text) => Some((key, text)),
            other => Some((key, other.to_string())),
        })
        .collect())
}

/// Parses an action other than a file action from the JSON of its body.
///
/// # Errors
/// [`Error::Corrupt`] names the action and the JSON problem.
pub fn from_json<'a, T: Deserialize<'a>>(name: &str, json: &'a str) -> Result<T> {
    // The library would accept an array as a struct.
    if !json.trim_start().starts_with('{') {
        return Err(Error::corrupt(format!(
            "the action `{name}` is not an object"
        )));
    }
    serde_json::from_str(json).map_err(|e| {
        Error::corrupt(format!(
            "the action `{name}` is malformed: {}",
            without_position(&e)
        ))
    })
}

/// The library counts lines and columns within the action's body, which would mislead: the error's
/// context names file and line.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}
