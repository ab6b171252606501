//! Compatibility of a table with Iceberg readers: data files that satisfy IcebergCompatV1 or V2,
//! and Iceberg metadata alongside the log (UniForm).
//!
//! A writer that commits to a table with Iceberg metadata need not write that metadata: an engine
//! that has a converter generates it up to its own commit.
//!
//! Protocol: "Iceberg Compatibility V1", "Iceberg Compatibility V2". The metadata's property and
//! the tag are delta-spark's.

use std::collections::BTreeMap;

use serde_json::Value;

use super::action::{Metadata, Protocol};
use super::evolution::{self, TYPE_CHANGES};
use super::features;
use super::properties;
use super::schema::{DataType, StructField, StructType};
use super::schema_change;
use crate::error::{Error, Result, shown};

/// The IcebergCompat properties and their versions.
const COMPAT: [(&str, u64); 2] = [
    ("delta.enableIcebergCompatV1", 1),
    ("delta.enableIcebergCompatV2", 2),
];
/// The property that enables metadata of other formats.
pub const FORMATS: &str = "delta.universalFormat.enabledFormats";
/// Set when a table is created for Iceberg or upgraded, and never removed.
pub const ATOMIC: &str = "delta.universalFormat.iceberg.atomicConversion.supported";
/// The tag of files that were written for an IcebergCompat version, from V2 on.
pub const TAG: &str = "ICEBERG_COMPAT_VERSION";

/// The enabled IcebergCompat property and its version.
#[must_use]
pub fn enabled_iceberg_compat(metadata: &Metadata) -> Option<(&'static str, u64)> {
    COMPAT.into_iter().find(|(key, _)| metadata.flag(key))
}

/// Whether the protocol has the feature of an IcebergCompat version. It stays when its property is
/// unset.
#[must_use]
pub fn has_compat_feature(protocol: &Protocol) -> bool {
    ["icebergCompatV1", "icebergCompatV2", "icebergCompatV3"]
        .iter()
        .any(|feature| protocol.has_writer_feature(feature))
}

/// The property of an IcebergCompat version.
#[must_use]
pub fn property_of(version: u64) -> Option<&'static str> {
    COMPAT
        .into_iter()
        .find(|(_, other)| *other == version)
        .map(|(key, _)| key)
}

/// The other formats whose metadata is enabled for the table.
#[must_use]
pub fn formats(metadata: &Metadata) -> Vec<String> {
    let listed = metadata
        .configuration
        .get(FORMATS)
        .map(|text| properties::formats(text).map(str::to_owned).collect());
    listed.unwrap_or_default()
}

/// Whether metadata of another format is enabled.
#[must_use]
pub fn has_metadata(metadata: &Metadata) -> bool {
    metadata
        .configuration
        .get(FORMATS)
        .is_some_and(|text| properties::formats(text).any(|name| name == "iceberg"))
}

/// Makes the Iceberg properties consistent after `changes`; returns the IcebergCompat version.
/// Iceberg metadata requires IcebergCompat, and is disabled with it.
///
/// # Errors
/// [`Error::Invalid`] for properties that exclude each other, and for Iceberg metadata without
/// IcebergCompat.
pub fn resolve_iceberg_compat(
    metadata: &mut Metadata,
    changes: &BTreeMap<String, String>,
    is_new: bool,
) -> Result<Option<u64>> {
    if COMPAT.iter().all(|(key, _)| metadata.flag(key)) {
        return Err(Error::invalid(
            "`delta.enableIcebergCompatV1` and `delta.enableIcebergCompatV2` cannot both be true",
        ));
    }
    let version = enabled_iceberg_compat(metadata).map(|(_, version)| version);
    if has_metadata(metadata) {
        if version.is_none() && changes.keys().any(|key| key.eq_ignore_ascii_case(FORMATS)) {
            return Err(Error::invalid(format!(
                "`{FORMATS}` needs files that Iceberg can read: set `delta.enableIcebergCompatV2` to `true` in the same call, or upgrade a table with files by REORG TABLE .. APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))"
            )));
        }
        if version.is_none() {
            metadata.configuration.remove(FORMATS);
        }
    }
    if is_new && version.is_some() {
        metadata
            .configuration
            .insert(ATOMIC.to_owned(), "true".to_owned());
    }
    Ok(version)
}

/// Checks that a table with this protocol, metadata and schema satisfies its IcebergCompat version,
/// if one is enabled.
///
/// # Errors
/// [`Error::Invalid`] names the obstacle, and what to do.
pub fn check(protocol: &Protocol, metadata: &Metadata, schema: &StructType) -> Result<()> {
    let Some((key, version)) = enabled_iceberg_compat(metadata) else {
        return Ok(());
    };
    let is_first = version == 1;
    let refuse = |what: String| Err(Error::invalid(format!("`{key}` cannot be true: {what}")));
    // V1 allows no deletion vectors at all, V2 only no new ones.
    if metadata.flag("delta.enableDeletionVectors") {
        return refuse(
            "the table deletes rows by vectors; set `delta.enableDeletionVectors` to `false` first"
                .to_owned(),
        );
    }
    if is_first && features::supported(protocol).contains("deletionVectors") {
        return refuse("the table has the feature `deletionVectors`; drop it first".to_owned());
    }
    let is_unknown = |data_type: &DataType| match data_type {
        DataType::Void | DataType::Spark(_) => true,
        DataType::Array(_) | DataType::Map(_) => is_first,
        DataType::Variant => !is_first,
        _ => false,
    };
    let unknown = |field: &&StructField| {
        schema_change::any_type(
            &StructType {
                fields: vec![(*field).clone()].into(),
            },
            &is_unknown,
        )
    };
    if let Some(field) = schema.fields.iter().find(unknown) {
        return refuse(format!(
            "the type {} of the column `{}` is not for it",
            field.data_type,
            shown(&field.name)
        ));
    }
    let mut wrong = None;
    schema_change::for_each_field(schema, &mut |field| {
        for change in field
            .metadata
            .get(TYPE_CHANGES)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let side = |key: &str| {
                change
                    .get(key)
                    .and_then(Value::as_str)
                    .and_then(|name| DataType::from_name(name).ok())
            };
            match (side("fromType"), side("toType")) {
                (Some(from), Some(to)) if !evolution::widens_in_iceberg(&from, &to) => {
                    wrong.get_or_insert_with(|| format!("the type of `{}` was widened from {from} to {to}, which Iceberg cannot follow", shown(&field.name)));
                }
                _ => {}
            }
        }
    });
    wrong.map_or(Ok(()), refuse)
}

/// Checks a change of partition columns: Iceberg supports changed types, and partitioning of an
/// unpartitioned table, but no other columns.
///
/// # Errors
/// [`Error::Invalid`] names both.
pub fn check_partitions(old: &Metadata, new: &Metadata) -> Result<()> {
    let Some((key, _)) = enabled_iceberg_compat(new) else {
        return Ok(());
    };
    let (was, is) = (&old.partition_columns, &new.partition_columns);
    if was.is_empty() || was == is {
        return Ok(());
    }
    let list = |names: &[String]| {
        if names.is_empty() {
            "none".to_owned()
        } else {
            names
                .iter()
                .map(|name| shown(name))
                .collect::<Vec<_>>()
                .join(", ")
        }
    };
    Err(Error::invalid(format!(
        "`{key}` is true, and Iceberg cannot follow a change of the partition columns from {} to {}; keep them, or set `{key}` to `false` first",
        list(was),
        list(is)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(
        configuration: &[(&str, &str)],
        changed: &[&str],
    ) -> Result<(Option<u64>, Vec<String>)> {
        let texts = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let mut metadata: Metadata =
            serde_json::from_str(r#"{"id":"t","schemaString":"{}"}"#).unwrap();
        metadata.configuration = texts(configuration);
        let changes = configuration
            .iter()
            .copied()
            .filter(|(key, _)| changed.contains(key))
            .collect::<Vec<_>>();
        let version = resolve_iceberg_compat(&mut metadata, &texts(&changes), false)?;
        Ok((version, metadata.configuration.into_keys().collect()))
    }

    #[test]
    fn the_second_promise_needs_the_first() {
        let (on, off, formats) = (
            (COMPAT[1].0, "true"),
            (COMPAT[1].0, "false"),
            (FORMATS, "iceberg"),
        );
        assert_eq!(
            settled(&[on, formats], &[FORMATS]).unwrap(),
            (Some(2), vec![on.0.to_owned(), FORMATS.to_owned()])
        );
        assert_eq!(
            settled(&[off, formats], &[off.0]).unwrap(),
            (None, vec![off.0.to_owned()])
        );
        assert!(
            settled(&[formats], &[FORMATS])
                .unwrap_err()
                .to_string()
                .contains("UPGRADE UNIFORM")
        );
        // Other formats are not affected.
        assert_eq!(
            settled(&[(FORMATS, "hudi")], &[]).unwrap(),
            (None, vec![FORMATS.to_owned()])
        );
        assert!(
            settled(&[on, (COMPAT[0].0, "true")], &[])
                .unwrap_err()
                .to_string()
                .contains("cannot both be true")
        );
    }

    #[test]
    fn the_names_of_partition_columns_stay() {
        let partitioned = |names: &[&str], key: &str| {
            let mut metadata: Metadata =
                serde_json::from_str(r#"{"id":"t","schemaString":"{}"}"#).unwrap();
            metadata.partition_columns = names.iter().map(|name| (*name).to_owned()).collect();
            metadata
                .configuration
                .insert(key.to_owned(), "true".to_owned());
            metadata
        };
        for (key, _) in COMPAT {
            let check = |old: &[&str], new: &[&str]| {
                check_partitions(&partitioned(old, "other"), &partitioned(new, key))
            };
            assert!(
                check(&["a"], &["a"]).is_ok()
                    && check(&[], &["a"]).is_ok()
                    && check(&[], &[]).is_ok()
            );
            for (old, new) in [
                (&["a"][..], &["b"][..]),
                (&["a"], &[]),
                (&["a", "b"], &["b", "a"]),
                (&["a"], &["a", "b"]),
            ] {
                let error = check(old, new).unwrap_err().to_string();
                assert!(
                    error.contains(key) && error.contains(&format!("from {}", old.join(", "))),
                    "{error}"
                );
            }
        }
        assert!(
            check_partitions(
                &partitioned(&["a"], COMPAT[0].0),
                &partitioned(&["b"], "other")
            )
            .is_ok()
        );
    }
}
