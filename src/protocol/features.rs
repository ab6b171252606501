//! Table features: what a table needs from its readers, against what deltafast can do.
//!
//! Protocol: "Table Features", "Reader Version Requirements", "Valid Feature Names in Table Features".

use super::action::{Metadata, Protocol};
use crate::error::{Error, Result};

/// Reader features that deltafast reads, by the names that stand in the log.
pub const READER_FEATURES: &[&str] = &[
    "catalogManaged",
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantShredding",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
];

/// The newest reader version there is.
pub const MAX_READER_VERSION: i32 = 3;
/// The newest writer version there is.
pub const MAX_WRITER_VERSION: i32 = 7;

/// Checks that a table with this protocol can be read.
///
/// # Errors
/// [`Error::Unsupported`] names the version or the feature; [`Error::Corrupt`] for a protocol that contradicts itself.
pub fn check_readable(protocol: &Protocol) -> Result<()> {
    if protocol.min_reader_version < 1 || protocol.min_writer_version < 1 {
        return Err(Error::corrupt(format!("the protocol versions ({}, {}) are below 1", protocol.min_reader_version, protocol.min_writer_version)));
    }
    if protocol.min_reader_version > MAX_READER_VERSION {
        return Err(Error::unsupported(format!(
            "the table needs reader version {} and writer version {}, deltafast {} has {MAX_READER_VERSION} and {MAX_WRITER_VERSION}; upgrade deltafast to read it",
            protocol.min_reader_version,
            protocol.min_writer_version,
            env!("CARGO_PKG_VERSION"),
        )));
    }
    if protocol.min_reader_version < 3 {
        return match &protocol.reader_features {
            Some(features) if !features.is_empty() => Err(Error::corrupt(format!(
                "the protocol has `readerFeatures` with reader version {}; only reader version 3 has them",
                protocol.min_reader_version
            ))),
            _ => Ok(()),
        };
    }
    let Some(features) = &protocol.reader_features else {
        return Err(Error::corrupt("the protocol has reader version 3 but no `readerFeatures`"));
    };
    if protocol.min_writer_version < 7 {
        return Err(Error::corrupt(format!(
            "the protocol has reader version 3 with writer version {}; reader version 3 needs writer version 7",
            protocol.min_writer_version
        )));
    }
    let unknown: Vec<&str> = features.iter().map(String::as_str).filter(|f| !READER_FEATURES.contains(f)).collect();
    if !unknown.is_empty() {
        let (list, plural) = (unknown.join("`, `"), if unknown.len() > 1 { "s" } else { "" });
        let what = format!(
            "the table needs the reader feature{plural} `{list}`, which deltafast {} does not have; upgrade deltafast to read it",
            env!("CARGO_PKG_VERSION")
        );
        return Err(Error::unsupported_feature(unknown.join(", "), what));
    }
    let of_writers = protocol.writer_features.as_deref().unwrap_or_default();
    if let Some(alone) = features.iter().find(|feature| !of_writers.contains(feature)) {
        return Err(Error::corrupt(format!("the feature `{alone}` is in `readerFeatures` but not in `writerFeatures`")));
    }
    Ok(())
}

/// How columns of data files are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColumnMapping {
    /// By logical name.
    #[default]
    None,
    /// By physical name.
    Name,
    /// By Parquet field id.
    Id,
}

/// The column mapping mode in force: the property counts only where the protocol supports the feature.
///
/// # Errors
/// [`Error::Unsupported`] for a mode that does not exist.
pub fn column_mapping(protocol: &Protocol, metadata: &Metadata) -> Result<ColumnMapping> {
    // Some writers list the feature for writers only.
    let supported = protocol.min_reader_version == 2 || protocol.has_reader_feature("columnMapping") || protocol.has_writer_feature("columnMapping");
    match metadata.configuration.get("delta.columnMapping.mode").map(String::as_str) {
        None | Some("none") => Ok(ColumnMapping::None),
        Some(_) if !supported => Ok(ColumnMapping::None),
        Some("name") => Ok(ColumnMapping::Name),
        Some("id") => Ok(ColumnMapping::Id),
        Some(other) => Err(Error::unsupported_feature(
            "columnMapping",
            format!("`delta.columnMapping.mode` is `{other}`, a column mapping mode that does not exist; known are none, name and id"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protocol(reader: i32, writer: i32, features: Option<&[&str]>) -> Protocol {
        let features = features.map(|f| f.iter().map(ToString::to_string).collect::<Vec<_>>());
        Protocol { min_reader_version: reader, min_writer_version: writer, reader_features: features.clone(), writer_features: features }
    }

    #[test]
    fn unknown_features_and_versions_are_refused_by_name() {
        assert!(check_readable(&protocol(1, 2, None)).is_ok());
        assert!(check_readable(&protocol(3, 7, Some(READER_FEATURES))).is_ok());
        let error = check_readable(&protocol(3, 7, Some(&["catalogOwned"]))).unwrap_err();
        assert!(error.to_string().contains("`catalogOwned`"), "{error}");
        let error = check_readable(&protocol(4, 9, None)).unwrap_err().to_string();
        assert!(error.contains("reader version 4") && error.contains("writer version 9") && error.contains("upgrade deltafast"), "{error}");
    }

    #[test]
    fn contradicting_protocols_are_corrupt() {
        assert!(check_readable(&protocol(3, 7, None)).unwrap_err().is_corrupt());
        assert!(check_readable(&protocol(3, 6, Some(&[]))).unwrap_err().is_corrupt());
    }
}
