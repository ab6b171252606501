//! The options of a call that messages name.
//!
//! The core does not know how a surface spells an option: `schema_mode="merge"` in Python,
//! `mergeSchema` in Spark, `--schema-mode merge` on the command line. In a message an option is its
//! name, and its value if there is one, between two characters that Unicode reserves for the
//! internal use of a process; [`spell`] replaces them.

use std::borrow::Cow;
use std::fmt;

/// The character before an option in a message.
const START: char = '\u{fdd0}';
/// The character after an option in a message.
const END: char = '\u{fdd1}';

/// An option of a call, by its name in the API for Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "the variants are the options' names, which the API reference documents"
)]
#[non_exhaustive]
pub enum CallOption {
    AllowExternalPaths,
    AllowOutOfRange,
    AllowProtocolVersionsIncrease,
    ClassicName,
    ClusterBy,
    Committer,
    DataChangeFalse,
    EnforceRetentionDurationFalse,
    FormV2,
    IgnoreMissingFiles,
    LogTail,
    MaxCommitRetries,
    MaxTableVersion,
    MaxTempDirectorySize,
    ModeAppend,
    ModeIgnore,
    ModeOverwrite,
    PartitionBy,
    PartitionOverwriteMode,
    PartitionOverwriteModeDynamic,
    Parts,
    Predicate,
    ReplaceOn,
    ReplaceUsing,
    SchemaModeMerge,
    SchemaModeOverwrite,
    SidecarRows,
    StorageOptions,
    Store,
    TruncateHistory,
    TruncateHistoryFalse,
    TruncateHistoryTrue,
}

impl CallOption {
    /// The option's name, and the value that a message gives it.
    #[must_use]
    pub fn name_and_value(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::AllowExternalPaths => ("allow_external_paths", None),
            Self::AllowOutOfRange => ("allow_out_of_range", None),
            Self::AllowProtocolVersionsIncrease => {
                ("allow_protocol_versions_increase", Some("true"))
            }
            Self::ClassicName => ("classic_name", None),
            Self::ClusterBy => ("cluster_by", None),
            Self::Committer => ("committer", None),
            Self::DataChangeFalse => ("data_change", Some("false")),
            Self::EnforceRetentionDurationFalse => ("enforce_retention_duration", Some("false")),
            Self::FormV2 => ("form", Some("v2")),
            Self::IgnoreMissingFiles => ("ignore_missing_files", Some("true")),
            Self::LogTail => ("log_tail", None),
            Self::MaxCommitRetries => ("max_commit_retries", None),
            Self::MaxTableVersion => ("max_table_version", None),
            Self::MaxTempDirectorySize => ("max_temp_directory_size", None),
            Self::ModeAppend => ("mode", Some("append")),
            Self::ModeIgnore => ("mode", Some("ignore")),
            Self::ModeOverwrite => ("mode", Some("overwrite")),
            Self::PartitionBy => ("partition_by", None),
            Self::PartitionOverwriteMode => ("partition_overwrite_mode", None),
            Self::PartitionOverwriteModeDynamic => ("partition_overwrite_mode", Some("dynamic")),
            Self::Parts => ("parts", None),
            Self::Predicate => ("predicate", None),
            Self::ReplaceOn => ("replace_on", None),
            Self::ReplaceUsing => ("replace_using", None),
            Self::SchemaModeMerge => ("schema_mode", Some("merge")),
            Self::SchemaModeOverwrite => ("schema_mode", Some("overwrite")),
            Self::SidecarRows => ("sidecar_rows", None),
            Self::StorageOptions => ("storage_options", None),
            Self::Store => ("store", None),
            Self::TruncateHistory => ("truncate_history", None),
            Self::TruncateHistoryTrue => ("truncate_history", Some("true")),
            Self::TruncateHistoryFalse => ("truncate_history", Some("false")),
        }
    }
}

/// The option between its two marks, for a message.
impl fmt::Display for CallOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name_and_value() {
            (name, None) => write!(f, "{START}{name}{END}"),
            (name, Some(value)) => write!(f, "{START}{name}={value}{END}"),
        }
    }
}

/// The message with its options as `name` and `name=value`.
#[must_use]
pub fn spell(message: &str) -> Cow<'_, str> {
    if message.contains(START) {
        Cow::Owned(message.replace([START, END], "`"))
    } else {
        Cow::Borrowed(message)
    }
}

#[cfg(test)]
mod tests {
    use super::{CallOption, spell};

    #[test]
    fn options_are_spelled_by_name_and_value() {
        let message = format!(
            "give {} with {}",
            CallOption::Predicate,
            CallOption::ModeOverwrite
        );
        assert_eq!(spell(&message), "give `predicate` with `mode=overwrite`");
        assert_eq!(spell("a \u{fdd1} alone"), "a \u{fdd1} alone");
    }
}
