//! Version checksums, `n.crc`: JSON -> [`ChecksumFileContents`], the writer's summary of a version,
//! and its comparison with the log.
//!
//! Fields are compared when their source is loaded anyway: protocol and metadata when the table is
//! opened, numbers of files and bytes when all files were read, transactions and domains when a
//! caller requests them. `allFiles` and the histograms are neither used nor compared.
//!
//! Protocol: "Version Checksum File".

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::protocol::action::{DomainMetadata, Metadata, Protocol, SetTransaction};
use crate::protocol::schema::StructType;

/// The parts of a version checksum that reading uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChecksumFileContents {
    /// Sum of the sizes of all live files.
    pub table_size_bytes: i64,
    /// Number of live files.
    pub num_files: i64,
    /// The metadata.
    pub metadata: Metadata,
    /// The protocol.
    pub protocol: Protocol,
    /// Number of files with a deletion vector, if the writer records it.
    #[serde(default)]
    pub num_deletion_vectors_opt: Option<i64>,
    /// Number of rows that these delete, if the writer records it.
    #[serde(default)]
    pub num_deleted_records_opt: Option<i64>,
    /// The in-commit timestamp, if enabled.
    #[serde(default)]
    pub in_commit_timestamp_opt: Option<i64>,
    /// Application transactions, if the writer records them.
    #[serde(default)]
    pub set_transactions: Option<Vec<SetTransaction>>,
    /// Domains, if the writer records them.
    #[serde(default)]
    pub domain_metadata: Option<Vec<DomainMetadata>>,
}

impl ChecksumFileContents {
    /// Parses the file; `None` if it is damaged.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// The fields in which it contradicts the log's protocol and metadata. Order in feature lists
    /// and the formatting of the schema's JSON are ignored.
    #[must_use]
    pub fn against_table(&self, protocol: &Protocol, metadata: &Metadata) -> Vec<&'static str> {
        Self::differences((&self.protocol, &self.metadata), (protocol, metadata))
    }

    /// The fields in which two protocols and metadata differ, with the same exceptions.
    #[must_use]
    pub fn differences(
        (own, meta): (&Protocol, &Metadata),
        (protocol, metadata): (&Protocol, &Metadata),
    ) -> Vec<&'static str> {
        fn set(list: Option<&Vec<String>>) -> HashSet<&String> {
            list.into_iter().flatten().collect()
        }
        let schema = || matches!((StructType::parse(&meta.schema_string), StructType::parse(&metadata.schema_string)), (Ok(a), Ok(b)) if a == b);
        differing_fields([
            (
                "protocol.minReaderVersion",
                own.min_reader_version == protocol.min_reader_version,
            ),
            (
                "protocol.minWriterVersion",
                own.min_writer_version == protocol.min_writer_version,
            ),
            (
                "protocol.readerFeatures",
                set(own.reader_features.as_ref()) == set(protocol.reader_features.as_ref()),
            ),
            (
                "protocol.writerFeatures",
                set(own.writer_features.as_ref()) == set(protocol.writer_features.as_ref()),
            ),
            ("metadata.id", meta.id == metadata.id),
            ("metadata.name", meta.name == metadata.name),
            (
                "metadata.description",
                meta.description == metadata.description,
            ),
            ("metadata.format", meta.format == metadata.format),
            (
                "metadata.schemaString",
                meta.schema_string == metadata.schema_string || schema(),
            ),
            (
                "metadata.partitionColumns",
                meta.partition_columns == metadata.partition_columns,
            ),
            (
                "metadata.createdTime",
                meta.created_time == metadata.created_time,
            ),
            (
                "metadata.configuration",
                meta.configuration == metadata.configuration,
            ),
        ])
    }

    /// The fields in which it contradicts the live files.
    #[must_use]
    pub fn against_files(&self, totals: &LiveFileTotals) -> Vec<&'static str> {
        differing_fields([
            ("numFiles", self.num_files == totals.files),
            ("tableSizeBytes", self.table_size_bytes == totals.bytes),
            (
                "numDeletionVectorsOpt",
                self.num_deletion_vectors_opt
                    .is_none_or(|n| n == totals.vectors),
            ),
            (
                "numDeletedRecordsOpt",
                self.num_deleted_records_opt
                    .is_none_or(|n| n == totals.deleted),
            ),
        ])
    }

    /// The field, if it contradicts the log's transactions.
    #[must_use]
    pub fn against_transactions(
        &self,
        log: &BTreeMap<String, SetTransaction>,
    ) -> Vec<&'static str> {
        let same = |own: &Vec<SetTransaction>| {
            own.len() == log.len()
                && own.iter().all(|txn| {
                    log.get(&txn.app_id)
                        .is_some_and(|known| known.version == txn.version)
                })
        };
        differing_fields([(
            "setTransactions",
            self.set_transactions.as_ref().is_none_or(same),
        )])
    }

    /// The field, if it contradicts the log's domains.
    #[must_use]
    pub fn against_domains(&self, log: &BTreeMap<String, DomainMetadata>) -> Vec<&'static str> {
        let same = |own: &Vec<DomainMetadata>| {
            let own: Vec<_> = own.iter().filter(|domain| !domain.removed).collect();
            own.len() == log.len()
                && own
                    .iter()
                    .all(|domain| log.get(&domain.domain) == Some(domain))
        };
        differing_fields([(
            "domainMetadata",
            self.domain_metadata.as_ref().is_none_or(same),
        )])
    }

    /// The field, if it contradicts the commit's in-commit timestamp.
    #[must_use]
    pub fn against_time(&self, in_commit_timestamp: i64) -> Vec<&'static str> {
        differing_fields([(
            "inCommitTimestampOpt",
            self.in_commit_timestamp_opt
                .is_none_or(|time| time == in_commit_timestamp),
        )])
    }
}

/// The names of the fields that differ.
fn differing_fields<const N: usize>(fields: [(&'static str, bool); N]) -> Vec<&'static str> {
    fields
        .into_iter()
        .filter(|(_, agrees)| !agrees)
        .map(|(name, _)| name)
        .collect()
}

/// Totals of all live files of a version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveFileTotals {
    /// Number of files.
    pub files: i64,
    /// Their bytes.
    pub bytes: i64,
    /// Number of files with a deletion vector.
    pub vectors: i64,
    /// Rows that these delete.
    pub deleted: i64,
}

impl LiveFileTotals {
    /// Adds the totals of more files.
    pub fn add(&mut self, more: &Self) {
        self.files = self.files.saturating_add(more.files);
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.vectors = self.vectors.saturating_add(more.vectors);
        self.deleted = self.deleted.saturating_add(more.deleted);
    }
}
