//! `_last_checkpoint`: JSON -> [`LastCheckpointHint`], or nothing when it cannot be trusted.

use serde::Deserialize;

use crate::protocol::canonical_json;

/// The checkpoint that `_last_checkpoint` names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastCheckpointHint {
    /// Version of the checkpoint.
    pub version: i64,
    /// Number of parts of a multi-part checkpoint.
    #[serde(default)]
    pub parts: Option<u32>,
    /// Number of actions in it.
    #[serde(default)]
    pub size: Option<i64>,
    /// Number of live files in it.
    #[serde(default)]
    pub num_of_add_files: Option<i64>,
    /// Bytes of all its files.
    #[serde(default)]
    pub size_in_bytes: Option<u64>,
    /// The MD5 of the file's canonical form.
    #[serde(default)]
    checksum: Option<String>,
    /// Further fields for a V2 checkpoint.
    #[serde(default)]
    pub v2_checkpoint: Option<V2CheckpointHint>,
}

/// `v2Checkpoint`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct V2CheckpointHint {
    /// File name of the checkpoint.
    pub path: String,
}

/// The most bytes of a hint: the actions that some writers include take kilobytes.
pub(super) const LONGEST: u64 = 16 << 20;

impl LastCheckpointHint {
    /// Parses the file; `None` if it is damaged, too long, or has a wrong checksum or duplicate
    /// keys.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() as u64 > LONGEST {
            return None;
        }
        let text = std::str::from_utf8(bytes).ok()?;
        let hint: Self = serde_json::from_str(text).ok()?;
        let computed = canonical_json::checksum(text)?;
        if hint.version < 0
            || hint
                .checksum
                .as_ref()
                .is_some_and(|given| !given.eq_ignore_ascii_case(&computed))
        {
            return None;
        }
        Some(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_with_a_wrong_checksum_or_duplicate_keys_says_nothing() {
        assert_eq!(
            LastCheckpointHint::parse(br#"{"version":3,"size":10}"#)
                .unwrap()
                .version,
            3
        );
        assert!(LastCheckpointHint::parse(br#"{"version":3,"size":10,"checksum":"00"}"#).is_none());
        assert!(LastCheckpointHint::parse(br#"{"version":3,"size":10,"version":4}"#).is_none());
        assert!(LastCheckpointHint::parse(br#"{"version":-3}"#).is_none());
        assert!(LastCheckpointHint::parse(b"{\"version\":3").is_none());
        let sum = canonical_json::checksum(r#"{"version":3,"size":10}"#).unwrap();
        assert!(
            LastCheckpointHint::parse(
                format!(r#"{{"version":3,"size":10,"checksum":"{sum}"}}"#).as_bytes()
            )
            .is_some()
        );
    }
}
