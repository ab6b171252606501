//! Changes of properties, table features, domains and clustering.

use super::alter_command::{AlterCommand, AlteredTable, json_string};
use crate::commit::CommitOperation;
use crate::commit::finish::json_string_list;
use crate::error::{CallOption, Error, ErrorCode, Result, shown};
use crate::exec::now_ms;
use crate::exec::uuid;
use crate::log::MaintenanceOperation;
use crate::ops::create::checked_clustering;
use crate::ops::rewrite::clustering_domain::{clustering_columns, clustering_domain};
use crate::ops::rewrite::column_path::quoted_column_path;
use crate::ops::rewrite::iceberg_compatibility;
use crate::protocol::action::DomainMetadata;
use crate::protocol::features::{self, ColumnMapping};
use crate::protocol::iceberg::{ATOMIC, enabled_iceberg_compat, property_of};
use crate::protocol::properties::{CONSTRAINTS, FEATURE};
use crate::protocol::table::{self, TableChangeContext};
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl AlterCommand<'_> {
    pub(super) fn set_domain(
        &self,
        domain: &str,
        configuration: Option<&str>,
    ) -> Result<AlteredTable> {
        if domain.is_empty() || domain.starts_with("delta.") {
            return Err(Error::invalid(format!(
                "the domain `{domain}` cannot be set or removed by users; names that begin with `delta.` are the protocol's"
            )));
        }
        let name = if configuration.is_some() {
            "SET DOMAIN METADATA"
        } else {
            "REMOVE DOMAIN METADATA"
        };
        let action = match configuration {
            Some(text) => Some(DomainMetadata {
                domain: domain.to_owned(),
                configuration: text.to_owned(),
                removed: false,
            }),
            None => self
                .snapshot
                .non_file_actions()?
                .domains
                .get(domain)
                .map(|last| DomainMetadata {
                    removed: true,
                    ..last.clone()
                }),
        };
        let altered = self.metadata(
            self.old_metadata.clone(),
            CommitOperation::with_parameters(name, [("domain", domain.into())]),
        );
        Ok(AlteredTable {
            domains: action.into_iter().collect(),
            ..altered
        })
    }

    pub(super) fn with_properties(
        &self,
        properties: &BTreeMap<String, String>,
        allow_unknown: bool,
        operation: CommitOperation,
    ) -> Result<AlteredTable> {
        let altered = self.with_unchecked_properties(properties, allow_unknown, operation)?;
        let reads_all =
            iceberg_compatibility::check_files(self.snapshot, &altered.metadata, self.cancel)?;
        Ok(AlteredTable {
            reads_all,
            ..altered
        })
    }

    /// The same without a check of the existing files.
    fn with_unchecked_properties(
        &self,
        properties: &BTreeMap<String, String>,
        allow_unknown: bool,
        operation: CommitOperation,
    ) -> Result<AlteredTable> {
        let (snapshot, mut context) = (
            self.snapshot,
            TableChangeContext {
                allow_unknown,
                now_ms: now_ms(),
                generate_id: &mut uuid,
            },
        );
        if let Some(key) = properties
            .keys()
            .find(|key| key.to_ascii_lowercase().starts_with(CONSTRAINTS))
        {
            return Err(Error::invalid(format!(
                "`{}` is not a property to set: add the constraint, so that the rows are checked",
                shown(key)
            )));
        }
        let (protocol, metadata) = table::set_properties(
            snapshot.protocol(),
            snapshot.metadata(),
            properties,
            &mut context,
        )?;
        if protocol.has_writer_feature("catalogManaged")
            && !snapshot.protocol().has_writer_feature("catalogManaged")
        {
            return Err(Error::unsupported_feature(
                "catalogManaged",
                "a table is given to a catalog by the catalog, not by a property",
            ));
        }
        Ok(AlteredTable {
            protocol,
            ..self.metadata(metadata, operation)
        })
    }

    pub(super) fn upgrade_uniform(&self, version: u64) -> Result<AlteredTable> {
        let (snapshot, metadata) = (self.snapshot, self.old_metadata);
        snapshot.check_maintenance(MaintenanceOperation::Optimize)?;
        let Some(key) = property_of(version) else {
            return Err(Error::unsupported(format!(
                "there is no ICEBERG_COMPAT_VERSION {version} that deltafast writes: 1 and 2 are supported"
            )));
        };
        let old = enabled_iceberg_compat(metadata);
        let mut properties: BTreeMap<String, String> = BTreeMap::new();
        if old.is_none_or(|(_, old)| old != version) {
            let mut set =
                |key: &str, value: &str| _ = properties.insert(key.to_owned(), value.to_owned());
            set(key, "true");
            set("delta.enableDeletionVectors", "false");
            if let Some((old, _)) = old {
                set(old, "false");
            }
            if features::column_mapping(snapshot.protocol(), metadata)? == ColumnMapping::None {
                set("delta.columnMapping.mode", "name");
            }
        }
        let said = CommitOperation::with_parameters(
            "REORG TABLE UPGRADE UNIFORM",
            [("properties", json_string(&json!(properties)))],
        );
        if properties.is_empty() {
            return Ok(self.metadata(metadata.clone(), said));
        }
        // Files are not rewritten for version 1, so the existing ones must be compatible.
        let mut altered = if version == 1 {
            self.with_properties(&properties, true, said)?
        } else {
            self.with_unchecked_properties(&properties, true, said)?
        };
        altered
            .metadata
            .configuration
            .insert(ATOMIC.to_owned(), "true".to_owned());
        Ok(altered)
    }

    pub(super) fn add_features(
        &self,
        names: &[String],
        allow_versions: bool,
    ) -> Result<AlteredTable> {
        let properties = names
            .iter()
            .map(|name| (format!("{FEATURE}{name}"), "supported".to_owned()))
            .collect();
        let altered = self.with_properties(
            &properties,
            false,
            CommitOperation::with_parameters("ADD FEATURE", [("name", json_string_list(names))]),
        )?;
        let (old, new) = (self.protocol, &altered.protocol);
        if !allow_versions
            && (old.min_reader_version, old.min_writer_version)
                != (new.min_reader_version, new.min_writer_version)
        {
            return Err(Error::invalid(format!(
                "the feature needs the protocol ({}, {}), the table has ({}, {}); pass {} to raise it",
                new.min_reader_version,
                new.min_writer_version,
                old.min_reader_version,
                old.min_writer_version,
                CallOption::AllowProtocolVersionsIncrease
            ))
            .with_code(
                ErrorCode::ProtocolUpgradeNeeded,
                &[
                    ("reader_version", &new.min_reader_version),
                    ("writer_version", &new.min_writer_version),
                    ("table_reader_version", &old.min_reader_version),
                    ("table_writer_version", &old.min_writer_version),
                ],
            ));
        }
        Ok(altered)
    }

    pub(super) fn cluster_by(&self, columns: &[String]) -> Result<AlteredTable> {
        let (snapshot, metadata) = (self.snapshot, self.old_metadata);
        if !metadata.partition_columns.is_empty() {
            return Err(Error::invalid("a partitioned table cannot be clustered")
                .with_code(ErrorCode::ClusteredAndPartitioned, &[]));
        }
        let old = clustering_columns(self.snapshot)?;
        let new = checked_clustering(snapshot.schema(), columns, metadata)?;
        let protocol = if columns.is_empty() {
            snapshot.protocol().clone()
        } else {
            features::with_features(snapshot.protocol(), &["clustering".to_owned()].into())
        };
        let listed = |paths: &[Vec<String>]| {
            let names: Vec<String> = paths.iter().map(|path| quoted_column_path(path)).collect();
            Value::from(names.join(","))
        };
        let parameters = [
            ("oldClusteringColumns", listed(&old)),
            ("newClusteringColumns", listed(&new)),
        ];
        let domains = if old == new {
            Vec::new()
        } else {
            vec![clustering_domain(snapshot.schema(), &new)?]
        };
        Ok(AlteredTable {
            protocol,
            domains,
            ..self.metadata(
                metadata.clone(),
                CommitOperation::with_parameters("CLUSTER BY", parameters),
            )
        })
    }
}
