//! Table features: the features that a table requires of readers and writers, and those that
//! deltafast supports.
//!
//! Protocol: "Table Features", "Reader Version Requirements", "Writer Version Requirements", "Valid
//! Feature Names in Table Features".

use std::collections::BTreeSet;

use super::action::{Metadata, Protocol};
use crate::error::{CallOption, Error, Result};

/// A table feature that deltafast supports for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableFeature {
    /// Its name in the log.
    pub name: &'static str,
    /// The lowest reader version that supports it; 0 for a writer feature.
    pub reader: i32,
    /// The writer version that implies it without a list; 7 for features that are always listed.
    pub writer: i32,
    /// Features that it requires.
    pub dependencies: &'static [&'static str],
}

impl TableFeature {
    /// Whether writer versions before 7 could imply it.
    #[must_use]
    pub fn is_legacy(&self) -> bool {
        self.writer < 7
    }
}

const fn legacy(name: &'static str, reader: i32, writer: i32) -> TableFeature {
    TableFeature {
        name,
        reader,
        writer,
        dependencies: &[],
    }
}

const fn of_writers(name: &'static str, needs: &'static [&'static str]) -> TableFeature {
    TableFeature {
        name,
        reader: 0,
        writer: 7,
        dependencies: needs,
    }
}

const fn of_both(name: &'static str, needs: &'static [&'static str]) -> TableFeature {
    TableFeature {
        name,
        reader: 3,
        writer: 7,
        dependencies: needs,
    }
}

/// Every feature that deltafast supports for writing, legacy ones first, ordered by version.
pub const FEATURES: &[TableFeature] = &[
    legacy("appendOnly", 0, 2),
    legacy("invariants", 0, 2),
    legacy("checkConstraints", 0, 3),
    legacy("changeDataFeed", 0, 4),
    legacy("generatedColumns", 0, 4),
    legacy("columnMapping", 2, 5),
    legacy("identityColumns", 0, 6),
    of_writers("allowColumnDefaults", &[]),
    of_both(
        "catalogManaged",
        &["inCommitTimestamp", "vacuumProtocolCheck"],
    ),
    of_writers("checkpointProtection", &[]),
    of_writers("clustering", &["domainMetadata"]),
    of_writers("collations", &["domainMetadata"]),
    of_writers("collations-preview", &["domainMetadata"]),
    of_both("deletionVectors", &[]),
    of_writers("domainMetadata", &[]),
    of_writers("icebergCompatV1", &["columnMapping"]),
    of_writers("icebergCompatV2", &["columnMapping"]),
    of_writers("inCommitTimestamp", &[]),
    of_writers("materializePartitionColumns", &[]),
    of_writers("rowTracking", &["domainMetadata"]),
    of_both("timestampNtz", &[]),
    of_both("typeWidening", &[]),
    of_both("typeWidening-preview", &[]),
    of_both("v2Checkpoint", &[]),
    of_both("vacuumProtocolCheck", &[]),
    of_both("variantShredding", &["variantType"]),
    of_both("variantShredding-preview", &[]),
    of_both("variantType", &[]),
    of_both("variantType-preview", &[]),
];

/// Names under which some writers list a feature, and the name that the protocol gives it.
const ALIASES: &[(&str, &str)] = &[("timestampWithoutTimezone", "timestampNtz")];

/// The protocol's name of a feature that a table lists.
#[must_use]
pub fn canonical_name(name: &str) -> &str {
    ALIASES
        .iter()
        .find(|(alias, _)| *alias == name)
        .map_or(name, |(_, canonical)| canonical)
}

/// The feature of this name, compared without case.
#[must_use]
pub fn feature(name: &str) -> Option<&'static TableFeature> {
    let name = ALIASES
        .iter()
        .find(|(alias, _)| alias.eq_ignore_ascii_case(name))
        .map_or(name, |(_, canonical)| canonical);
    FEATURES.iter().find(|f| f.name.eq_ignore_ascii_case(name))
}

/// The features that a protocol supports, listed or implied by its versions, by the protocol's
/// names.
#[must_use]
pub fn supported(protocol: &Protocol) -> BTreeSet<String> {
    if protocol.min_writer_version >= 7 {
        return protocol
            .writer_features
            .iter()
            .flatten()
            .map(|name| canonical_name(name).to_owned())
            .collect();
    }
    let implied = FEATURES.iter().filter(|f| {
        f.writer <= protocol.min_writer_version && f.reader <= protocol.min_reader_version
    });
    implied.map(|f| f.name.to_owned()).collect()
}

/// `names` and the features that they require.
#[must_use]
pub fn with_dependencies(names: &BTreeSet<String>) -> BTreeSet<String> {
    let mut out = names.clone();
    let mut new: Vec<String> = names.iter().cloned().collect();
    while let Some(name) = new.pop() {
        for needed in feature(&name).map(|f| f.dependencies).unwrap_or_default() {
            if out.insert((*needed).to_owned()) {
                new.push((*needed).to_owned());
            }
        }
    }
    out
}

/// The lowest protocol with feature lists of exactly these features.
fn with_feature_list(names: &BTreeSet<String>, min_reader_version: i32) -> Protocol {
    let of_readers: Vec<String> = names
        .iter()
        .filter(|name| feature(name).is_none_or(|f| f.reader > 0))
        .cloned()
        .collect();
    let reader = of_readers
        .iter()
        .map(|name| feature(name).map_or(3, |f| f.reader))
        .max()
        .unwrap_or(1)
        .max(min_reader_version);
    Protocol {
        min_reader_version: reader,
        min_writer_version: 7,
        reader_features: (reader >= 3).then_some(of_readers),
        writer_features: Some(names.iter().cloned().collect()),
    }
}

/// `protocol` raised to support `names` and the features that they require: by legacy version
/// numbers if these suffice, else with feature lists that include all features that the old
/// versions implied. Features that are already supported change nothing.
#[must_use]
pub fn with_features(protocol: &Protocol, names: &BTreeSet<String>) -> Protocol {
    let before = supported(protocol);
    let wanted = with_dependencies(names);
    if wanted.is_subset(&before) {
        return protocol.clone();
    }
    let all: BTreeSet<String> = before.union(&wanted).cloned().collect();
    let only_legacy = all
        .iter()
        .all(|name| feature(name).is_some_and(TableFeature::is_legacy));
    if protocol.min_writer_version < 7 && only_legacy {
        let needed = || wanted.iter().filter_map(|name| feature(name));
        return Protocol {
            min_reader_version: needed()
                .map(|f| f.reader)
                .max()
                .unwrap_or(0)
                .max(protocol.min_reader_version),
            min_writer_version: needed()
                .map(|f| f.writer)
                .max()
                .unwrap_or(0)
                .max(protocol.min_writer_version),
            reader_features: None,
            writer_features: None,
        };
    }
    with_feature_list(&all, protocol.min_reader_version)
}

/// The lowest protocol that supports exactly the features of `protocol` except `name`: legacy
/// version numbers where they imply exactly these, feature lists otherwise.
#[must_use]
pub fn without_feature(protocol: &Protocol, name: &str) -> Protocol {
    let mut left = supported(protocol);
    left.retain(|n| n != name);
    minimal_protocol(&left)
}

/// The lowest protocol that supports exactly these features.
#[must_use]
pub fn minimal_protocol(names: &BTreeSet<String>) -> Protocol {
    let reader = if names.contains("columnMapping") {
        2
    } else {
        1
    };
    let fits = (1..7).map(|writer| Protocol {
        min_reader_version: reader,
        min_writer_version: writer,
        reader_features: None,
        writer_features: None,
    });
    fits.into_iter()
        .find(|legacy| supported(legacy) == *names)
        .unwrap_or_else(|| with_feature_list(names, 1))
}

/// `protocol` raised to at least these versions; lower ones never lower it.
///
/// # Errors
/// [`Error::Unsupported`] for versions that do not exist.
pub fn with_versions(
    protocol: &Protocol,
    reader: Option<i32>,
    writer: Option<i32>,
) -> Result<Protocol> {
    let (reader, mut writer) = (
        reader.unwrap_or(0).max(protocol.min_reader_version),
        writer.unwrap_or(0).max(protocol.min_writer_version),
    );
    if reader > MAX_READER_VERSION || writer > MAX_WRITER_VERSION {
        return Err(Error::unsupported(format!(
            "there is no protocol ({reader}, {writer}); the newest versions are {MAX_READER_VERSION} for readers and {MAX_WRITER_VERSION} for writers"
        )));
    }
    if reader == 3 {
        writer = 7;
    }
    if (reader, writer) == (protocol.min_reader_version, protocol.min_writer_version) {
        return Ok(protocol.clone());
    }
    if writer < 7 {
        return Ok(Protocol {
            min_reader_version: reader,
            min_writer_version: writer,
            reader_features: None,
            writer_features: None,
        });
    }
    let mut out = with_feature_list(&supported(protocol), reader);
    out.min_reader_version = reader;
    Ok(out)
}

/// Checks that a table with this protocol can be written.
///
/// # Errors
/// [`Error::Unsupported`] names the version or the features; [`Error::Corrupt`] for a protocol that
/// contradicts itself.
pub fn check_writable(protocol: &Protocol) -> Result<()> {
    check_readable(protocol)?;
    if protocol.min_writer_version > MAX_WRITER_VERSION {
        return Err(Error::unsupported(format!(
            "the table needs writer version {}, deltafast {} has {MAX_WRITER_VERSION}; upgrade deltafast to write it",
            protocol.min_writer_version,
            env!("CARGO_PKG_VERSION"),
        )));
    }
    let Some(features) = &protocol.writer_features else {
        return match protocol.min_writer_version {
            7 => Err(Error::corrupt(
                "the protocol has writer version 7 but no `writerFeatures`",
            )),
            _ => Ok(()),
        };
    };
    if protocol.min_writer_version < 7 {
        return if features.is_empty() {
            Ok(())
        } else {
            Err(Error::corrupt(format!(
                "the protocol has `writerFeatures` with writer version {}; only writer version 7 has them",
                protocol.min_writer_version
            )))
        };
    }
    let unknown: Vec<&str> = features
        .iter()
        .map(String::as_str)
        .filter(|name| !FEATURES.iter().any(|f| f.name == canonical_name(name)))
        .collect();
    if !unknown.is_empty() {
        let (list, plural) = (
            unknown.join("`, `"),
            if unknown.len() > 1 { "s" } else { "" },
        );
        let what = format!(
            "the table needs the writer feature{plural} `{list}`, which deltafast {} does not have; upgrade deltafast to write it, or drop the feature{plural} with the engine that added it",
            env!("CARGO_PKG_VERSION")
        );
        return Err(Error::unsupported_feature(unknown.join(", "), what));
    }
    let listed = supported(protocol);
    if let Some(missing) = with_dependencies(&listed).difference(&listed).next() {
        let needs =
            |f: &&String| feature(f).is_some_and(|f| f.dependencies.contains(&missing.as_str()));
        let by = listed
            .iter()
            .find(needs)
            .map_or("a feature", String::as_str);
        return Err(Error::corrupt(format!(
            "the protocol has `{by}` in `writerFeatures` but not `{missing}`, which it needs"
        )));
    }
    Ok(())
}

/// Reader features that deltafast supports, by their names in the log.
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

/// The newest reader version.
pub const MAX_READER_VERSION: i32 = 3;
/// The newest writer version.
pub const MAX_WRITER_VERSION: i32 = 7;

/// Checks that a table with this protocol can be read.
///
/// # Errors
/// [`Error::Unsupported`] names the version or the feature; [`Error::Corrupt`] for a protocol that
/// contradicts itself.
pub fn check_readable(protocol: &Protocol) -> Result<()> {
    if protocol.min_reader_version < 1 || protocol.min_writer_version < 1 {
        return Err(Error::corrupt(format!(
            "the protocol versions ({}, {}) are below 1",
            protocol.min_reader_version, protocol.min_writer_version
        )));
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
        return Err(Error::corrupt(
            "the protocol has reader version 3 but no `readerFeatures`",
        ));
    };
    if protocol.min_writer_version < 7 {
        return Err(Error::corrupt(format!(
            "the protocol has reader version 3 with writer version {}; reader version 3 needs writer version 7",
            protocol.min_writer_version
        )));
    }
    let unknown: Vec<&str> = features
        .iter()
        .map(String::as_str)
        .filter(|f| !READER_FEATURES.contains(&canonical_name(f)))
        .collect();
    if !unknown.is_empty() {
        let (list, plural) = (
            unknown.join("`, `"),
            if unknown.len() > 1 { "s" } else { "" },
        );
        let what = format!(
            "the table needs the reader feature{plural} `{list}`, which deltafast {} does not have; upgrade deltafast to read it",
            env!("CARGO_PKG_VERSION")
        );
        return Err(Error::unsupported_feature(unknown.join(", "), what));
    }
    let of_writers = protocol.writer_features.as_deref().unwrap_or_default();
    if let Some(alone) = features
        .iter()
        .find(|feature| !of_writers.contains(feature))
    {
        return Err(Error::corrupt(format!(
            "the feature `{alone}` is in `readerFeatures` but not in `writerFeatures`"
        )));
    }
    Ok(())
}

/// The key by which columns of data files are found.
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

/// The effective column mapping mode: the property applies only if the protocol supports the
/// feature.
///
/// # Errors
/// [`Error::Unsupported`] for a mode that does not exist.
pub fn column_mapping(protocol: &Protocol, metadata: &Metadata) -> Result<ColumnMapping> {
    // Some writers list the feature only for writers.
    let supported = protocol.min_reader_version == 2
        || protocol.has_reader_feature("columnMapping")
        || protocol.has_writer_feature("columnMapping");
    match metadata
        .configuration
        .get("delta.columnMapping.mode")
        .map(String::as_str)
    {
        None | Some("none") => Ok(ColumnMapping::None),
        Some(_) if !supported => Ok(ColumnMapping::None),
        Some("name") => Ok(ColumnMapping::Name),
        Some("id") => Ok(ColumnMapping::Id),
        Some(other) => Err(Error::unsupported_feature(
            "columnMapping",
            format!(
                "`delta.columnMapping.mode` is `{other}`, a column mapping mode that does not exist; known are none, name and id"
            ),
        )),
    }
}

/// The error for a commit to a table with the feature `catalogManaged` without its catalog.
#[must_use]
pub fn committer_needed_error() -> Error {
    Error::unsupported_feature(
        "catalogManaged",
        format!(
            "the table's commits are managed by a catalog; open it with a {} to commit through it, or nobody else will see the commit",
            CallOption::Committer
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protocol(reader: i32, writer: i32, features: Option<&[&str]>) -> Protocol {
        let features = features.map(|f| f.iter().map(ToString::to_string).collect::<Vec<_>>());
        Protocol {
            min_reader_version: reader,
            min_writer_version: writer,
            reader_features: features.clone(),
            writer_features: features,
        }
    }

    #[test]
    fn unknown_features_and_versions_are_refused_by_name() {
        assert!(check_readable(&protocol(1, 2, None)).is_ok());
        assert!(check_readable(&protocol(3, 7, Some(READER_FEATURES))).is_ok());
        let error = check_readable(&protocol(3, 7, Some(&["catalogOwned"]))).unwrap_err();
        assert!(error.to_string().contains("`catalogOwned`"), "{error}");
        let error = check_readable(&protocol(4, 9, None))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("reader version 4")
                && error.contains("writer version 9")
                && error.contains("upgrade deltafast"),
            "{error}"
        );
    }

    fn names(list: &[&str]) -> BTreeSet<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn old_numbers_are_kept_while_they_can_say_it() {
        let base = protocol(1, 2, None);
        assert_eq!(with_features(&base, &names(&["appendOnly"])), base);
        assert_eq!(
            with_features(&base, &names(&["changeDataFeed"])),
            protocol(1, 4, None)
        );
        assert_eq!(
            with_features(&base, &names(&["columnMapping", "checkConstraints"])),
            protocol(2, 5, None)
        );
    }

    #[test]
    fn an_upgrade_lists_what_the_numbers_implied() {
        let up = with_features(&protocol(1, 3, None), &names(&["rowTracking"]));
        assert_eq!(
            (
                up.min_reader_version,
                up.min_writer_version,
                up.reader_features.clone()
            ),
            (1, 7, None)
        );
        assert_eq!(
            up.writer_features.unwrap(),
            [
                "appendOnly",
                "checkConstraints",
                "domainMetadata",
                "invariants",
                "rowTracking"
            ]
        );
        let up = with_features(&protocol(2, 5, None), &names(&["deletionVectors"]));
        assert_eq!(
            up.reader_features.unwrap(),
            ["columnMapping", "deletionVectors"]
        );
        assert_eq!(up.min_reader_version, 3);
        let up = with_features(&protocol(1, 2, None), &names(&["icebergCompatV2"]));
        assert_eq!((up.min_reader_version, up.reader_features), (2, None));
        assert!(
            up.writer_features
                .unwrap()
                .contains(&"columnMapping".to_owned())
        );
    }

    #[test]
    fn dropping_falls_to_the_lowest_that_says_what_is_left() {
        let up = with_features(&protocol(2, 5, None), &names(&["deletionVectors"]));
        assert_eq!(
            without_feature(&up, "deletionVectors"),
            protocol(2, 5, None)
        );
        let without = without_feature(&protocol(1, 4, None), "generatedColumns");
        assert_eq!(
            (without.min_reader_version, without.min_writer_version),
            (1, 7)
        );
        assert_eq!(
            without.writer_features.unwrap(),
            [
                "appendOnly",
                "changeDataFeed",
                "checkConstraints",
                "invariants"
            ]
        );
    }

    #[test]
    fn versions_only_rise() {
        let base = protocol(2, 5, None);
        assert_eq!(with_versions(&base, Some(1), Some(2)).unwrap(), base);
        let up = with_versions(&base, Some(3), None).unwrap();
        assert_eq!(
            (up.min_writer_version, up.reader_features.unwrap()),
            (7, vec!["columnMapping".to_owned()])
        );
        assert!(with_versions(&base, Some(4), None).is_err());
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        assert!(check_writable(&protocol(1, 6, None)).is_ok());
        let writers = |list: &[&str]| Protocol {
            min_reader_version: 1,
            min_writer_version: 7,
            reader_features: None,
            writer_features: Some(names(list).into_iter().collect()),
        };
        assert!(check_writable(&writers(&["rowTracking", "domainMetadata", "clustering"])).is_ok());
        let error = check_writable(&writers(&["someFutureFeature", "appendOnly"])).unwrap_err();
        assert!(
            matches!(&error, Error::Unsupported { feature: Some(f), .. } if f == "someFutureFeature"),
            "{error}"
        );
        assert!(
            check_writable(&writers(&["rowTracking"]))
                .unwrap_err()
                .to_string()
                .contains("`domainMetadata`")
        );
        let lacking: [(&[&str], &str); 3] = [
            (&["catalogManaged"], "`inCommitTimestamp`"),
            (
                &["catalogManaged", "inCommitTimestamp"],
                "`vacuumProtocolCheck`",
            ),
            (
                &["variantShredding", "variantType-preview"],
                "`variantType`",
            ),
        ];
        for (both, missing) in lacking {
            let lists = protocol(3, 7, Some(both));
            assert!(
                check_readable(&Protocol {
                    reader_features: Some(vec![both[0].to_owned()]),
                    ..lists.clone()
                })
                .is_ok()
            );
            let error = check_writable(&Protocol {
                reader_features: Some(vec![both[0].to_owned()]),
                ..lists
            })
            .unwrap_err()
            .to_string();
            assert!(
                error.contains(missing) && error.contains(both[0]),
                "{error}"
            );
        }
        assert!(check_writable(&protocol(3, 7, Some(&["variantShredding-preview"]))).is_ok());
        assert!(
            check_writable(&protocol(1, 7, None))
                .unwrap_err()
                .is_corrupt()
        );
        assert!(
            check_writable(&protocol(1, 8, None))
                .unwrap_err()
                .to_string()
                .contains("writer version 8")
        );
    }

    #[test]
    fn unknown_writer_features_stop_writing_but_not_reading() {
        let writer = |version, features: &[&str]| Protocol {
            min_reader_version: 1,
            min_writer_version: version,
            reader_features: None,
            writer_features: (version == 7)
                .then(|| features.iter().map(ToString::to_string).collect()),
        };
        let all: Vec<&str> = FEATURES.iter().map(|f| f.name).collect();
        assert!(check_writable(&writer(7, &all)).is_ok());
        assert!(check_writable(&writer(6, &[])).is_ok());
        let of_readers: BTreeSet<&str> = FEATURES
            .iter()
            .filter(|f| f.reader > 0)
            .map(|f| f.name)
            .collect();
        assert_eq!(of_readers, READER_FEATURES.iter().copied().collect());
        let unknown = writer(7, &["appendOnly", "someFutureFeature"]);
        assert!(check_readable(&unknown).is_ok());
        assert!(
            check_writable(&unknown)
                .unwrap_err()
                .to_string()
                .contains("`someFutureFeature`")
        );
        assert!(
            check_writable(&writer(8, &[]))
                .unwrap_err()
                .to_string()
                .contains("writer version 8")
        );
    }

    #[test]
    fn an_alias_is_the_feature_that_it_names() {
        let old = protocol(3, 7, Some(&["timestampWithoutTimezone"]));
        check_writable(&old).unwrap();
        assert_eq!(supported(&old), names(&["timestampNtz"]));
        assert_eq!(with_features(&old, &names(&["timestampNtz"])), old);
        let up = with_features(&old, &names(&["deletionVectors"]));
        assert_eq!(
            up.reader_features.unwrap(),
            ["deletionVectors", "timestampNtz"]
        );
        assert_eq!(
            feature("TimestampWithoutTimezone").unwrap().name,
            "timestampNtz"
        );
    }

    #[test]
    fn contradicting_protocols_are_corrupt() {
        assert!(
            check_readable(&protocol(3, 7, None))
                .unwrap_err()
                .is_corrupt()
        );
        assert!(
            check_readable(&protocol(3, 6, Some(&[])))
                .unwrap_err()
                .is_corrupt()
        );
    }
}
