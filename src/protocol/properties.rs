//! Table properties: names, types and defaults; parsing of their values.
//!
//! Protocol: "Table Properties" and the sections of the features that they enable; types and
//! defaults are delta-spark's.

use std::collections::BTreeMap;

use super::duration::parse_duration_ms;
use crate::error::{Error, ErrorCode, Result, shown};

/// The kind of a property's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertyValueKind {
    /// `true` or `false`.
    Boolean,
    /// A whole number of at least this.
    Integer(i64),
    /// A duration without months or years.
    Interval,
    /// One of these, compared without case.
    OneOf(&'static [&'static str]),
    /// A number of bytes, `104857600` or `100mb`.
    Bytes,
    /// Version numbers such as `1.0.0`.
    Version,
    /// Column names separated by commas.
    Columns,
    /// Names of other table formats whose metadata is written, separated by commas.
    Formats,
    /// Any string.
    Text,
}

/// A property of the `delta.` family.
#[derive(Debug, Clone, Copy)]
pub struct TableProperty {
    /// Its key.
    pub key: &'static str,
    /// The kind of its values.
    pub kind: PropertyValueKind,
    /// Its default.
    pub default: Option<&'static str>,
    /// Whether users may set it; the others are set by writers.
    pub settable: bool,
}

const fn set(
    key: &'static str,
    kind: PropertyValueKind,
    default: Option<&'static str>,
) -> TableProperty {
    TableProperty {
        key,
        kind,
        default,
        settable: true,
    }
}

const fn internal(
    key: &'static str,
    kind: PropertyValueKind,
    default: Option<&'static str>,
) -> TableProperty {
    TableProperty {
        key,
        kind,
        default,
        settable: false,
    }
}

const YES: Option<&str> = Some("true");
const NO: Option<&str> = Some("false");

/// Every known property, sorted by key.
pub const PROPERTIES: &[TableProperty] = &[
    set("delta.appendOnly", PropertyValueKind::Boolean, NO),
    set("delta.autoOptimize", PropertyValueKind::Boolean, None),
    set(
        "delta.autoOptimize.autoCompact",
        PropertyValueKind::OneOf(&["true", "false", "auto", "legacy"]),
        None,
    ),
    set(
        "delta.autoOptimize.optimizeWrite",
        PropertyValueKind::Boolean,
        None,
    ),
    set("delta.castIcebergTimeType", PropertyValueKind::Boolean, NO),
    set(
        "delta.checkpoint.writeStatsAsJson",
        PropertyValueKind::Boolean,
        YES,
    ),
    set(
        "delta.checkpoint.writeStatsAsStruct",
        PropertyValueKind::Boolean,
        YES,
    ),
    set(
        "delta.checkpointInterval",
        PropertyValueKind::Integer(1),
        Some("10"),
    ),
    set(
        "delta.checkpointPolicy",
        PropertyValueKind::OneOf(&["classic", "v2"]),
        Some("classic"),
    ),
    set(
        "delta.checkpointRetentionDuration",
        PropertyValueKind::Interval,
        Some("interval 2 days"),
    ),
    internal(
        "delta.columnMapping.maxColumnId",
        PropertyValueKind::Integer(0),
        Some("0"),
    ),
    set(
        "delta.columnMapping.mode",
        PropertyValueKind::OneOf(&["none", "name", "id"]),
        Some("none"),
    ),
    set(
        "delta.compatibility.symlinkFormatManifest.enabled",
        PropertyValueKind::Boolean,
        NO,
    ),
    internal(
        "delta.coordinatedCommits.commitCoordinator-preview",
        PropertyValueKind::Text,
        None,
    ),
    internal(
        "delta.coordinatedCommits.commitCoordinatorConf-preview",
        PropertyValueKind::Text,
        None,
    ),
    internal(
        "delta.coordinatedCommits.tableConf-preview",
        PropertyValueKind::Text,
        None,
    ),
    set(
        "delta.dataSkippingNumIndexedCols",
        PropertyValueKind::Integer(-1),
        Some("32"),
    ),
    set(
        "delta.dataSkippingStatsColumns",
        PropertyValueKind::Columns,
        None,
    ),
    set(
        "delta.dataSkippingStringPrefixLength",
        PropertyValueKind::Integer(1),
        None,
    ),
    set(
        "delta.deletedFileRetentionDuration",
        PropertyValueKind::Interval,
        Some("interval 1 week"),
    ),
    set(
        "delta.dropFeatureTruncateHistory.retentionDuration",
        PropertyValueKind::Interval,
        Some("interval 24 hours"),
    ),
    set(
        "delta.enableChangeDataCapture",
        PropertyValueKind::Boolean,
        NO,
    ),
    set("delta.enableChangeDataFeed", PropertyValueKind::Boolean, NO),
    set(
        "delta.enableDeletionVectors",
        PropertyValueKind::Boolean,
        NO,
    ),
    set(
        "delta.enableExpiredLogCleanup",
        PropertyValueKind::Boolean,
        YES,
    ),
    set(
        "delta.enableFullRetentionRollback",
        PropertyValueKind::Boolean,
        YES,
    ),
    set(
        "delta.enableIcebergCompatV1",
        PropertyValueKind::Boolean,
        None,
    ),
    set(
        "delta.enableIcebergCompatV2",
        PropertyValueKind::Boolean,
        None,
    ),
    internal(
        "delta.enableIcebergCompatV3",
        PropertyValueKind::Boolean,
        None,
    ),
    set(
        "delta.enableInCommitTimestamps",
        PropertyValueKind::Boolean,
        NO,
    ),
    set(
        "delta.enableMaterializePartitionColumnsFeature",
        PropertyValueKind::Boolean,
        None,
    ),
    set("delta.enableRowTracking", PropertyValueKind::Boolean, NO),
    set("delta.enableTypeWidening", PropertyValueKind::Boolean, NO),
    set(
        "delta.enableVariantShredding",
        PropertyValueKind::Boolean,
        NO,
    ),
    set(
        "delta.ignoreIcebergBucketPartition",
        PropertyValueKind::Boolean,
        NO,
    ),
    set(
        "delta.ignoreProtocolDefaults",
        PropertyValueKind::Boolean,
        NO,
    ),
    internal(
        "delta.inCommitTimestampEnablementTimestamp",
        PropertyValueKind::Integer(i64::MIN),
        None,
    ),
    internal(
        "delta.inCommitTimestampEnablementVersion",
        PropertyValueKind::Integer(0),
        None,
    ),
    set(
        "delta.isolationLevel",
        PropertyValueKind::OneOf(&["Serializable", "WriteSerializable"]),
        Some("Serializable"),
    ),
    set(
        "delta.logRetentionDuration",
        PropertyValueKind::Interval,
        Some("interval 30 days"),
    ),
    set(
        "delta.minReaderVersion",
        PropertyValueKind::Integer(1),
        None,
    ),
    set(
        "delta.minWriterVersion",
        PropertyValueKind::Integer(1),
        None,
    ),
    set(
        "delta.parquet.compression.codec",
        PropertyValueKind::OneOf(&[
            "none",
            "uncompressed",
            "snappy",
            "gzip",
            "lz4",
            "lz4_raw",
            "zstd",
        ]),
        Some("zstd"),
    ),
    set(
        "delta.parquet.format.version",
        PropertyValueKind::Version,
        Some("1.0.0"),
    ),
    set(
        "delta.randomPrefixLength",
        PropertyValueKind::Integer(1),
        Some("2"),
    ),
    set(
        "delta.randomizeFilePrefixes",
        PropertyValueKind::Boolean,
        NO,
    ),
    internal(
        "delta.redirectReaderWriter-preview",
        PropertyValueKind::Text,
        None,
    ),
    internal(
        "delta.redirectWriterOnly-preview",
        PropertyValueKind::Text,
        None,
    ),
    internal(
        "delta.requireCheckpointProtectionBeforeVersion",
        PropertyValueKind::Integer(0),
        Some("0"),
    ),
    internal(
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        PropertyValueKind::Text,
        None,
    ),
    internal(
        "delta.rowTracking.materializedRowIdColumnName",
        PropertyValueKind::Text,
        None,
    ),
    set("delta.rowTrackingSuspended", PropertyValueKind::Boolean, NO),
    set(
        "delta.sampleRetentionDuration",
        PropertyValueKind::Interval,
        Some("interval 7 days"),
    ),
    set(
        "delta.setTransactionRetentionDuration",
        PropertyValueKind::Interval,
        None,
    ),
    set("delta.targetFileSize", PropertyValueKind::Bytes, None),
    set(
        "delta.tuneFileSizesForRewrites",
        PropertyValueKind::Boolean,
        None,
    ),
    set(
        "delta.universalFormat.enabledFormats",
        PropertyValueKind::Formats,
        Some(""),
    ),
    internal(
        "delta.universalFormat.iceberg.atomicConversion.supported",
        PropertyValueKind::Boolean,
        NO,
    ),
    set(
        "delta.writePartitionColumnsToParquet",
        PropertyValueKind::Boolean,
        None,
    ),
];

/// Prefix of CHECK constraints.
pub const CONSTRAINTS: &str = "delta.constraints.";
/// Prefix of features to be supported; never kept in the metadata.
pub const FEATURE: &str = "delta.feature.";

/// The versions before this one are protected from cleanups of the log.
pub const PROTECTED: &str = "delta.requireCheckpointProtectionBeforeVersion";

/// The highest column id that was ever assigned.
pub const MAX_COLUMN_ID: &str = "delta.columnMapping.maxColumnId";

/// Booleans whose value decides what a commit may do and must contain.
const SWITCHES: [&str; 9] = [
    "delta.appendOnly",
    "delta.enableChangeDataCapture",
    "delta.enableChangeDataFeed",
    "delta.enableIcebergCompatV1",
    "delta.enableIcebergCompatV2",
    "delta.enableIcebergCompatV3",
    "delta.enableInCommitTimestamps",
    "delta.enableRowTracking",
    "delta.rowTrackingSuspended",
];

/// The columns that have statistics.
pub const STATS_COLUMNS: &str = "delta.dataSkippingStatsColumns";

/// The property of this key, compared without case.
#[must_use]
pub fn property(key: &str) -> Option<&'static TableProperty> {
    PROPERTIES.iter().find(|p| p.key.eq_ignore_ascii_case(key))
}

/// The effective value: the one that is set, else the default.
#[must_use]
pub fn value<'a>(configuration: &'a BTreeMap<String, String>, key: &str) -> Option<&'a str> {
    configuration
        .get(key)
        .map(String::as_str)
        .or_else(|| property(key).and_then(|p| p.default))
}

/// The effective length of time of a retention, in milliseconds.
///
/// # Errors
/// [`Error::Invalid`] names a value that is negative or not a length of time: whatever a default
/// permits to delete cannot be brought back.
pub fn retention_ms(configuration: &BTreeMap<String, String>, key: &str) -> Result<i64> {
    let text = value(configuration, key).unwrap_or_default();
    parse_duration_ms(text).filter(|ms| *ms >= 0).ok_or_else(|| {
        Error::invalid(format!(
            "the table property `{key}` is `{}`, which is not a length of time that is at least zero: set it to one such as `interval 1 week`",
            shown(text)
        ))
    })
}

/// The versions before this one whose log must not be deleted; 0 if the property is not set.
///
/// # Errors
/// [`Error::Invalid`] for a value that is not a version.
pub fn protected_before_version(configuration: &BTreeMap<String, String>) -> Result<i64> {
    let Some(text) = configuration.get(PROTECTED) else {
        return Ok(0);
    };
    text.trim().parse().map_err(|_| {
        Error::invalid(format!(
            "the table property `{PROTECTED}` is `{}`, not a version: set it to the version before which the log must be kept",
            shown(text)
        ))
    })
}

/// The highest column id that was ever assigned; 0 if the property is not set.
///
/// # Errors
/// [`Error::Invalid`] for a value that is not an id of 32 bits: an id that is assigned twice would
/// give a new column the values of a dropped one.
pub fn max_column_id(configuration: &BTreeMap<String, String>) -> Result<i64> {
    let Some(text) = configuration.get(MAX_COLUMN_ID) else {
        return Ok(0);
    };
    text.trim()
        .parse::<i32>()
        .ok()
        .filter(|id| *id >= 0)
        .map(i64::from)
        .ok_or_else(|| {
            Error::invalid(format!(
                "the table property `{MAX_COLUMN_ID}` is `{}`, not a column id from 0 to {}",
                shown(text),
                i32::MAX
            ))
        })
}

/// Refuses values that are neither true nor false of the properties that decide how a table is
/// written, as delta-spark does: read as false they would permit a forbidden change, or leave out
/// what the table promises.
///
/// # Errors
/// [`Error::Invalid`] names the property and its value.
pub fn check_switches(configuration: &BTreeMap<String, String>) -> Result<()> {
    for key in SWITCHES {
        if let Some(text) = configuration.get(key)
            && !text.eq_ignore_ascii_case("true")
            && !text.eq_ignore_ascii_case("false")
        {
            return Err(Error::invalid(format!(
                "the table property `{key}` is `{}`: set it to `true` or `false` before the table is changed",
                shown(text)
            )));
        }
    }
    Ok(())
}

/// Whether a boolean property is effectively true.
#[must_use]
pub fn flag(configuration: &BTreeMap<String, String>, key: &str) -> bool {
    value(configuration, key).is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

impl TableProperty {
    /// Whether it can have this value.
    #[must_use]
    pub fn accepts(&self, text: &str) -> bool {
        match self.kind {
            PropertyValueKind::Boolean => {
                text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
            }
            PropertyValueKind::Integer(least) => {
                text.trim().parse::<i64>().is_ok_and(|n| n >= least)
            }
            PropertyValueKind::Interval => parse_duration_ms(text).is_some_and(|ms| ms >= 0),
            PropertyValueKind::OneOf(words) => {
                words.iter().any(|word| word.eq_ignore_ascii_case(text))
            }
            PropertyValueKind::Bytes => bytes(text).is_some_and(|n| n > 0),
            PropertyValueKind::Version => {
                text.split('.').count() == 3
                    && text.split('.').all(|part| part.parse::<u32>().is_ok())
            }
            PropertyValueKind::Columns => columns(text).is_some(),
            PropertyValueKind::Formats => formats(text).all(|name| name == "iceberg"),
            PropertyValueKind::Text => true,
        }
    }

    /// A description of its values.
    #[must_use]
    pub fn expected(&self) -> String {
        match self.kind {
            PropertyValueKind::Boolean => "`true` or `false`".to_owned(),
            PropertyValueKind::Integer(least) => format!("a whole number of at least {least}"),
            PropertyValueKind::Interval => "a length of time such as `interval 2 weeks`, without months or years".to_owned(),
            PropertyValueKind::OneOf(words) => format!("one of `{}`", words.join("`, `")),
            PropertyValueKind::Bytes => "a number of bytes such as `104857600` or `100mb`".to_owned(),
            PropertyValueKind::Version => "a version such as `1.0.0`".to_owned(),
            PropertyValueKind::Columns => "column names separated by commas, in backticks where they hold other characters than letters, digits and `_`".to_owned(),
            PropertyValueKind::Formats => "`iceberg` or nothing: deltafast prepares tables for no other format".to_owned(),
            PropertyValueKind::Text => "any text".to_owned(),
        }
    }

    /// Checks a value that a user sets.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the expected values; [`Error::Unsupported`] for properties that
    /// users cannot set.
    pub fn check(&self, text: &str) -> Result<()> {
        if !self.settable {
            return Err(match self.key {
                "delta.enableIcebergCompatV3" => Error::unsupported(format!(
                    "the property `{}` cannot be set: deltafast has no such feature",
                    self.key
                )),
                key if key.ends_with("-preview") => Error::unsupported(format!(
                    "the property `{key}` cannot be set: deltafast has no such feature"
                )),
                key => Error::invalid(format!(
                    "the property `{key}` cannot be set by users: the table's writers keep it"
                )),
            });
        }
        if self.accepts(text) {
            Ok(())
        } else {
            Err(Error::invalid(format!(
                "the property `{}` takes {}, not `{}`",
                self.key,
                self.expected(),
                shown(text)
            )))
        }
    }
}

/// The canonical spelling of a key that a user may set. `allow_unknown` allows unknown `delta.`
/// keys.
///
/// # Errors
/// [`Error::Invalid`] for an unknown key or a wrong value, [`Error::Unsupported`] for features that
/// deltafast does not support.
pub fn canonical_property_key(key: &str, text: &str, allow_unknown: bool) -> Result<String> {
    let lower = key.to_ascii_lowercase();
    if !lower.starts_with("delta.") {
        return Ok(key.to_owned());
    }
    if lower.starts_with(CONSTRAINTS) {
        if text.trim().is_empty() || key.len() == CONSTRAINTS.len() {
            return Err(Error::invalid(format!(
                "the constraint `{}` needs a name and an expression",
                shown(key)
            )));
        }
        return Ok(format!(
            "{CONSTRAINTS}{}",
            key.get(CONSTRAINTS.len()..).unwrap_or_default()
        ));
    }
    if let Some(property) = property(key) {
        property.check(text)?;
        return Ok(property.key.to_owned());
    }
    if allow_unknown {
        return Ok(key.to_owned());
    }
    Err(Error::invalid(format!(
        "there is no table property `{}`; a key that is not Delta's own must not begin with `delta.`",
        shown(key)
    ))
    .with_code(ErrorCode::UnknownProperty, &[("property", &key)]))
}

/// The error for a change of rows of an append-only table.
#[must_use]
pub fn append_only_error() -> Error {
    Error::invalid(
        "the table is append-only (`delta.appendOnly`): rows can be added, not changed or deleted",
    )
    .with_code(ErrorCode::AppendOnlyTable, &[])
}

/// Names of table formats in a list such as `iceberg,hudi`.
pub fn formats(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

/// A number of bytes: digits, with or without a unit (`k`, `kb`, `mb`, `g` ..., powers of 1024).
#[must_use]
pub fn bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        "p" | "pb" | "pib" => 50,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Column names (paths of nested ones) in a list such as `a, b.c, `odd,name``; `None` for one that
/// is malformed.
#[must_use]
pub fn columns(text: &str) -> Option<Vec<Vec<String>>> {
    let mut out: Vec<Vec<String>> = Vec::new();
    if text.trim().is_empty() {
        return Some(out);
    }
    let mut path: Vec<String> = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let mut name = String::new();
        if chars.next_if_eq(&'`').is_some() {
            loop {
                match chars.next()? {
                    '`' if chars.next_if_eq(&'`').is_some() => name.push('`'),
                    '`' => break,
                    c => name.push(c),
                }
            }
        } else {
            while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) {
                name.push(c);
            }
        }
        if name.is_empty() {
            return None;
        }
        path.push(name);
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        match chars.next() {
            Some('.') => {}
            Some(',') => out.push(std::mem::take(&mut path)),
            None => {
                out.push(path);
                return Some(out);
            }
            Some(_) => return None,
        }
    }
}

/// Refuses properties set together that keep commits for a shorter time than removed files, as
/// delta-spark does: if only one of the two is set, the other one has its default, whatever the
/// table has.
///
/// # Errors
/// [`Error::Invalid`] names both.
pub fn check_retention(changes: &BTreeMap<String, String>) -> Result<()> {
    const LOG: &str = "delta.logRetentionDuration";
    const FILES: &str = "delta.deletedFileRetentionDuration";
    let given = |wanted: &str| {
        changes
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(wanted))
            .map(|(_, text)| text.as_str())
    };
    let text = |key: &str| {
        given(key)
            .or_else(|| property(key).and_then(|p| p.default))
            .unwrap_or_default()
    };
    let (log, files) = (text(LOG), text(FILES));
    match (parse_duration_ms(log), parse_duration_ms(files)) {
        (Some(log_ms), Some(files_ms)) if log_ms < files_ms => {}
        _ => return Ok(()),
    }
    let hint = "; set both at once";
    Err(Error::invalid(if given(LOG).is_some() {
        format!(
            "the table property {LOG} ({log}) needs to be greater than or equal to {FILES} ({files}){hint}"
        )
    } else {
        format!(
            "the table property {FILES} ({files}) needs to be less than or equal to {LOG} ({log}){hint}"
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_kept_as_long_as_removed_files() {
        let check = |given: &[(&str, &str)]| {
            check_retention(
                &given
                    .iter()
                    .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                    .collect(),
            )
        };
        let (log, files) = (
            "delta.logRetentionDuration",
            "delta.deletedFileRetentionDuration",
        );
        check(&[]).unwrap();
        check(&[(log, "interval 7 days")]).unwrap();
        check(&[
            (log, "interval 3 days"),
            ("DELTA.deletedFileRetentionDuration", "interval 72 hours"),
        ])
        .unwrap();
        check(&[(log, "nonsense"), (files, "interval 40 days")]).unwrap();
        let message = check(&[(log, "interval 3 days")]).unwrap_err().to_string();
        assert!(
            message.contains(
                "delta.logRetentionDuration (interval 3 days) needs to be greater than or equal to"
            ),
            "{message}"
        );
        let message = check(&[(files, "interval 40 days")])
            .unwrap_err()
            .to_string();
        assert!(message.contains("(interval 40 days) needs to be less than or equal to delta.logRetentionDuration (interval 30 days)"), "{message}");
    }

    #[test]
    fn every_property_takes_its_own_default_and_is_found_without_case() {
        for property in PROPERTIES {
            assert!(
                property.default.is_none_or(|text| property.accepts(text)),
                "{}",
                property.key
            );
            assert_eq!(
                super::property(&property.key.to_uppercase()).unwrap().key,
                property.key
            );
        }
        assert!(PROPERTIES.is_sorted_by_key(|p| p.key));
    }

    #[test]
    fn wrong_values_are_refused_with_what_is_expected() {
        let cases = [
            ("delta.appendOnly", "yes"),
            ("delta.checkpointInterval", "0"),
            ("delta.logRetentionDuration", "interval 1 month"),
            ("delta.isolationLevel", "SnapshotIsolation"),
            ("delta.targetFileSize", "many"),
            ("delta.parquet.compression.codec", "lzo"),
            ("delta.parquet.compression.codec", "brotli"),
            ("delta.dataSkippingNumIndexedCols", "-2"),
            ("delta.dataSkippingStatsColumns", "a,,b"),
            ("delta.columnMapping.maxColumnId", "9"),
            ("delta.constraints.", "a > 1"),
            ("delta.constraints.c", " "),
            ("delta.checkpointIntervall", "10"),
        ];
        for (key, text) in cases {
            assert!(
                matches!(
                    canonical_property_key(key, text, false),
                    Err(Error::Invalid { .. })
                ),
                "{key}={text}"
            );
        }
        assert!(
            canonical_property_key("delta.checkpointInterval", "0", false)
                .unwrap_err()
                .to_string()
                .contains("at least 1")
        );
        assert!(
            canonical_property_key("delta.universalFormat.enabledFormats", "iceberg", false)
                .is_ok()
        );
        assert!(
            canonical_property_key(
                "delta.universalFormat.enabledFormats",
                "iceberg, hudi",
                false
            )
            .unwrap_err()
            .to_string()
            .contains("no other format")
        );
        assert!(matches!(
            canonical_property_key("delta.enableIcebergCompatV3", "true", false),
            Err(Error::Unsupported { .. })
        ));
        assert_eq!(
            canonical_property_key("DELTA.appendonly", "TRUE", false).unwrap(),
            "delta.appendOnly"
        );
        assert_eq!(
            canonical_property_key("delta.futureThing", "1", true).unwrap(),
            "delta.futureThing"
        );
        assert_eq!(
            canonical_property_key("Owner", "me", false).unwrap(),
            "Owner"
        );
        assert_eq!(
            canonical_property_key("delta.constraints.Positive", "a > 0", false).unwrap(),
            "delta.constraints.Positive"
        );
    }

    #[test]
    fn lists_of_columns_and_sizes_are_read() {
        assert_eq!(
            columns("a, b.c ,`x,``y`.z").unwrap(),
            [
                vec!["a".to_owned()],
                vec!["b".into(), "c".into()],
                vec!["x,`y".into(), "z".into()]
            ]
        );
        for bad in ["a,", "a b", "`a", ".", "a..b"] {
            assert_eq!(columns(bad), None, "{bad}");
        }
        assert_eq!(
            (bytes("100mb"), bytes("1 g"), bytes("7"), bytes("x")),
            (Some(100 << 20), Some(1 << 30), Some(7), None)
        );
    }

    #[test]
    fn intervals_are_read_in_every_unit_of_fixed_length() {
        assert_eq!(parse_duration_ms("interval 1 week"), Some(604_800_000));
        assert_eq!(
            parse_duration_ms("INTERVAL 2 days 12 hours"),
            Some(216_000_000)
        );
        assert_eq!(parse_duration_ms("1 day"), Some(86_400_000));
        for text in [
            "interval",
            "interval 1 month",
            "interval one day",
            "",
            "interval 1",
        ] {
            assert_eq!(parse_duration_ms(text), None, "{text}");
        }
    }

    #[test]
    fn lists_of_columns_are_split_outside_of_quotes() {
        let list = |text: &str| {
            columns(text).map(|all| all.iter().map(|path| path.join("|")).collect::<Vec<_>>())
        };
        assert_eq!(list("a, b.c ,`d.e`.f").unwrap(), ["a", "b|c", "d.e|f"]);
        assert_eq!(list("`a``,b`").unwrap(), ["a`,b"]);
        // As in delta-spark, an empty list is valid.
        assert_eq!(list(" ").unwrap(), [""; 0]);
        for text in ["a,,b", "a.", "`a", "a`b`", "`a`b"] {
            assert_eq!(list(text), None, "{text}");
        }
    }
}
