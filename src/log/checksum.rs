//! `n.crc`: JSON -> [`Checksum`], what a writer said of the table at a version.
//!
//! Protocol: "Version Checksum File".

use serde::Deserialize;

use crate::protocol::action::{DomainMetadata, Metadata, Protocol, Txn};

/// The parts of a version checksum that reading uses.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checksum {
    /// Sum of the sizes of all live files.
    pub table_size_bytes: i64,
    /// Number of live files.
    pub num_files: i64,
    /// The metadata.
    pub metadata: Metadata,
    /// The protocol.
    pub protocol: Protocol,
    /// The in-commit timestamp, where enabled.
    #[serde(default)]
    pub in_commit_timestamp_opt: Option<i64>,
    /// Application transactions, where the writer keeps them.
    #[serde(default)]
    pub set_transactions: Option<Vec<Txn>>,
    /// Domains, where the writer keeps them.
    #[serde(default)]
    pub domain_metadata: Option<Vec<DomainMetadata>>,
}

impl Checksum {
    /// Parses the file; a damaged one says nothing.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}
