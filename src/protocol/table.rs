//! Changes of a table's protocol and metadata: creation, properties set and unset. Pure.
//!
//! Setting a property, using a type or marking a column raises the protocol to the required level
//! in the same step; nothing here ever lowers it.
//!
//! Protocol: "Table Features for New and Existing Tables", "Protocol Evolution", "Column Mapping".

use std::collections::{BTreeMap, BTreeSet};

use super::action::{FormatSpecification, Metadata, Protocol};
use super::features::{self, ColumnMapping};
use super::iceberg;
use super::properties::{self, CONSTRAINTS, FEATURE, MAX_COLUMN_ID, STATS_COLUMNS};
use super::schema::{DataType, StructField, StructType};
use super::schema_change::{self, ColumnMappingAssigner};
use crate::error::{Error, ErrorCode, Result, shown};

const MODE: &str = "delta.columnMapping.mode";
const MIN_READER: &str = "delta.minReaderVersion";
const MIN_WRITER: &str = "delta.minWriterVersion";
const IGNORE_DEFAULTS: &str = "delta.ignoreProtocolDefaults";

/// A table to create.
#[derive(Debug, Clone, Default)]
pub struct NewTable {
    /// Its schema.
    pub schema: StructType,
    /// Names of the partition columns, in order.
    pub partition_columns: Vec<String>,
    /// Name given by the user.
    pub name: Option<String>,
    /// Description given by the user.
    pub description: Option<String>,
    /// Table properties, `delta.feature.*` and `delta.min*Version` among them.
    pub configuration: BTreeMap<String, String>,
    /// Further features that the caller needs, for example `clustering`.
    pub features: BTreeSet<String>,
}

/// The context of a change.
pub struct TableChangeContext<'a> {
    /// Whether unknown `delta.` keys may be set.
    pub allow_unknown: bool,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
    /// A globally unique string.
    pub generate_id: &'a mut dyn FnMut() -> String,
}

/// Features that metadata and schema require.
///
/// # Errors
/// [`Error::Unsupported`] for a column mapping mode that does not exist.
pub fn required_features(metadata: &Metadata, schema: &StructType) -> Result<BTreeSet<String>> {
    let mut out = BTreeSet::new();
    let configuration = &metadata.configuration;
    let by_flag = [
        ("delta.appendOnly", "appendOnly"),
        ("delta.enableChangeDataFeed", "changeDataFeed"),
        ("delta.enableChangeDataCapture", "changeDataFeed"),
        ("delta.enableDeletionVectors", "deletionVectors"),
        ("delta.enableRowTracking", "rowTracking"),
        ("delta.enableIcebergCompatV1", "icebergCompatV1"),
        ("delta.enableIcebergCompatV2", "icebergCompatV2"),
        ("delta.enableInCommitTimestamps", "inCommitTimestamp"),
        ("delta.enableTypeWidening", "typeWidening"),
        ("delta.enableVariantShredding", "variantShredding"),
        (
            "delta.enableMaterializePartitionColumnsFeature",
            "materializePartitionColumns",
        ),
    ];
    let mut need = |condition: bool, name: &str| {
        if condition {
            out.insert(name.to_owned());
        }
    };
    for (property, name) in by_flag {
        need(properties::flag(configuration, property), name);
    }
    need(
        configuration.keys().any(|key| key.starts_with(CONSTRAINTS)),
        "checkConstraints",
    );
    need(
        properties::value(configuration, "delta.checkpointPolicy")
            .is_some_and(|v| v.eq_ignore_ascii_case("v2")),
        "v2Checkpoint",
    );
    need(mode(metadata)? != ColumnMapping::None, "columnMapping");
    schema_change::for_each_field(schema, &mut |field| {
        let has = |key: &str| field.metadata.contains_key(key);
        need(!field.nullable || has("delta.invariants"), "invariants");
        need(has("delta.generationExpression"), "generatedColumns");
        need(has("delta.identity.start"), "identityColumns");
        need(has("CURRENT_DEFAULT"), "allowColumnDefaults");
        need(has("delta.typeChanges"), "typeWidening");
    });
    need(
        schema_change::any_type(schema, &|t| *t == DataType::TimestampNtz),
        "timestampNtz",
    );
    need(
        schema_change::any_type(schema, &|t| *t == DataType::Variant),
        "variantType",
    );
    Ok(out)
}

/// Preview names of features stand for the final names.
fn without_previews(protocol: &Protocol, mut required: BTreeSet<String>) -> BTreeSet<String> {
    let supported = features::supported(protocol);
    required.retain(|name| !supported.contains(&format!("{name}-preview")));
    required
}

/// The protocol raised to the requirements of metadata and schema.
///
/// # Errors
/// [`Error::Unsupported`] for a column mapping mode that does not exist.
pub fn sufficient(
    protocol: &Protocol,
    metadata: &Metadata,
    schema: &StructType,
) -> Result<Protocol> {
    let required = without_previews(protocol, required_features(metadata, schema)?);
    Ok(features::with_features(protocol, &required))
}

/// The mode in the properties, whatever the protocol.
fn mode(metadata: &Metadata) -> Result<ColumnMapping> {
    let all = Protocol {
        min_reader_version: 2,
        min_writer_version: 5,
        reader_features: None,
        writer_features: None,
    };
    features::column_mapping(&all, metadata)
}

/// The protocol of a plain table.
#[must_use]
pub fn base_protocol() -> Protocol {
    Protocol {
        min_reader_version: 1,
        min_writer_version: 2,
        reader_features: None,
        writer_features: None,
    }
}

/// Protocol and metadata of a new table.
///
/// # Errors
/// [`Error::Invalid`] names the column or property that is wrong, [`Error::Unsupported`] a feature
/// that deltafast does not support.
pub fn create(
    table: &NewTable,
    context: &mut TableChangeContext<'_>,
) -> Result<(Protocol, Metadata)> {
    let metadata = Metadata {
        id: (context.generate_id)(),
        name: table.name.clone(),
        description: table.description.clone(),
        format: FormatSpecification::default(),
        schema_string: schema_string(&table.schema)?,
        partition_columns: table.partition_columns.clone(),
        configuration: BTreeMap::new(),
        created_time: Some(context.now_ms),
    };
    let (protocol, metadata) = apply(
        &base_protocol(),
        metadata,
        &table.schema,
        &table.configuration,
        &table.features,
        true,
        context,
    )?;
    Ok((protocol, metadata))
}

/// The property by which each commit updates the symlink manifests.
pub const SYMLINK_MANIFESTS: &str = "delta.compatibility.symlinkFormatManifest.enabled";

/// Properties that concern a table's own log.
const OF_THE_LOG: [&str; 3] = [
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
    "delta.requireCheckpointProtectionBeforeVersion",
];

/// Properties that a table keeps when everything else about it is replaced.
const KEPT: &[&str] = &[
    MAX_COLUMN_ID,
    ROW_TRACKING_COLUMNS[0].0,
    ROW_TRACKING_COLUMNS[1].0,
];

/// Protocol and metadata of a table that replaces another: the id stays, column ids continue to
/// grow, and the supported features remain supported.
///
/// # Errors
/// As [`create`].
pub fn replace(
    protocol: &Protocol,
    metadata: &Metadata,
    table: &NewTable,
    context: &mut TableChangeContext<'_>,
) -> Result<(Protocol, Metadata)> {
    let kept = metadata
        .configuration
        .iter()
        .filter(|(key, _)| KEPT.contains(&key.as_str()));
    let metadata = Metadata {
        name: table.name.clone(),
        description: table.description.clone(),
        schema_string: schema_string(&table.schema)?,
        partition_columns: table.partition_columns.clone(),
        configuration: kept
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        created_time: Some(context.now_ms),
        ..metadata.clone()
    };
    apply(
        protocol,
        metadata,
        &table.schema,
        &table.configuration,
        &table.features,
        true,
        context,
    )
}

/// Protocol and metadata of a clone: the columns and properties of another table, and its own row
/// ids. If the clone replaces an `old` table without files, that table keeps its id, name and
/// description, and everything that [`replace`] keeps.
///
/// # Errors
/// As [`create`]; [`Error::Invalid`] where the mode of column mapping would change.
pub fn clone(
    source: (&Protocol, &Metadata),
    old: Option<(&Protocol, &Metadata)>,
    changes: &BTreeMap<String, String>,
    context: &mut TableChangeContext<'_>,
) -> Result<(Protocol, Metadata)> {
    let mut metadata = source.1.clone();
    metadata.configuration.retain(|key, _| {
        !OF_THE_LOG.contains(&key.as_str())
            && !ROW_TRACKING_COLUMNS.iter().any(|(name, _)| name == key)
    });
    let Some((protocol, old)) = old else {
        let metadata = Metadata {
            id: (context.generate_id)(),
            created_time: Some(context.now_ms),
            description: None,
            ..metadata
        };
        return set_properties(source.0, &metadata, changes, context);
    };
    if mode(old)? != mode(&metadata)? {
        let text = |metadata: &Metadata| {
            metadata
                .configuration
                .get(MODE)
                .map_or("none", String::as_str)
                .to_owned()
        };
        return Err(Error::invalid(format!(
            "`{MODE}` cannot go from `{}` to `{}`, as a clone in the place of the table would have it; drop the table, or choose another place",
            text(old),
            text(&metadata)
        )));
    }
    let timed = |metadata: &Metadata| {
        properties::flag(&metadata.configuration, "delta.enableInCommitTimestamps")
    };
    let goes_on = timed(old) && timed(&metadata);
    for (key, ours) in &old.configuration {
        let of_the_log = OF_THE_LOG.contains(&key.as_str())
            && (goes_on || !key.starts_with("delta.inCommitTimestamp"));
        if of_the_log || KEPT.contains(&key.as_str()) {
            if key == MAX_COLUMN_ID
                && properties::max_column_id(&old.configuration)?
                    > properties::max_column_id(&metadata.configuration)?
            {
                _ = metadata.configuration.insert(key.clone(), ours.clone());
            }
            metadata
                .configuration
                .entry(key.clone())
                .or_insert_with(|| ours.clone());
        }
    }
    let metadata = Metadata {
        id: old.id.clone(),
        name: old.name.clone(),
        description: old.description.clone(),
        created_time: old.created_time,
        ..metadata
    };
    let protocol = features::with_features(protocol, &features::supported(source.0));
    set_properties(&protocol, &metadata, changes, context)
}

/// Protocol and metadata of a table after setting properties.
///
/// # Errors
/// As [`create`].
pub fn set_properties(
    protocol: &Protocol,
    metadata: &Metadata,
    changes: &BTreeMap<String, String>,
    context: &mut TableChangeContext<'_>,
) -> Result<(Protocol, Metadata)> {
    let schema = StructType::parse(&metadata.schema_string)?;
    apply(
        protocol,
        metadata.clone(),
        &schema,
        changes,
        &BTreeSet::new(),
        false,
        context,
    )
}

/// Metadata of a table with another schema: column mapping is assigned to new fields, `maxColumnId`
/// is raised.
///
/// # Errors
/// As [`create`].
pub fn set_schema(
    protocol: &Protocol,
    metadata: &Metadata,
    schema: &StructType,
    context: &mut TableChangeContext<'_>,
) -> Result<(Protocol, Metadata)> {
    apply(
        protocol,
        metadata.clone(),
        schema,
        &BTreeMap::new(),
        &BTreeSet::new(),
        false,
        context,
    )
}

/// Metadata of a table without these properties. Features stay.
///
/// # Errors
/// [`Error::Invalid`] for a property that is not set (unless `if_exists`) or that cannot be unset.
pub fn unset_properties(metadata: &Metadata, keys: &[String], if_exists: bool) -> Result<Metadata> {
    let mut out = metadata.clone();
    for key in keys {
        let key = properties::property(key).map_or(key.as_str(), |p| p.key);
        if properties::property(key).is_some_and(|p| !p.settable) || key == MODE {
            return Err(Error::invalid(format!(
                "the property `{}` cannot be unset",
                shown(key)
            )));
        }
        if out.configuration.remove(key).is_none() && !if_exists {
            return Err(Error::invalid(format!(
                "the table has no property `{}` to unset",
                shown(key)
            )));
        }
    }
    iceberg::resolve_iceberg_compat(&mut out, &BTreeMap::new(), false)?;
    Ok(out)
}

/// Columns that row tracking writes in addition to the table's own.
const ROW_TRACKING_COLUMNS: [(&str, &str); 2] = [
    (
        "delta.rowTracking.materializedRowIdColumnName",
        "_row-id-col-",
    ),
    (
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        "_row-commit-version-col-",
    ),
];

/// Sets properties, and completes and checks protocol, metadata and schema.
fn apply(
    protocol: &Protocol,
    mut metadata: Metadata,
    schema: &StructType,
    changes: &BTreeMap<String, String>,
    features: &BTreeSet<String>,
    is_new: bool,
    context: &mut TableChangeContext<'_>,
) -> Result<(Protocol, Metadata)> {
    let before = mode(&metadata)?;
    let stats_columns = metadata.configuration.get(STATS_COLUMNS).cloned();
    let mut requested = set_values(&mut metadata, changes, context.allow_unknown)?;
    requested.features.extend(features.iter().cloned());
    let compat = iceberg::resolve_iceberg_compat(&mut metadata, changes, is_new)?;
    if compat.is_some() {
        require_column_mapping(&mut metadata, is_new)?;
    }
    let after = mode(&metadata)?;
    if !is_new {
        check_mode_change(before, after)?;
    }
    let mut schema = schema.clone();
    if after != ColumnMapping::None {
        let keep_names = !is_new && before == ColumnMapping::None;
        schema = assign_column_mapping(
            &mut metadata,
            &schema,
            keep_names,
            compat == Some(2),
            context,
        )?;
    }
    if is_on(&metadata, "delta.enableRowTracking") {
        name_row_tracking_columns(&mut metadata, context)?;
    }
    check_column_types(&metadata, &schema, is_new)?;
    let change_feed = is_on(&metadata, "delta.enableChangeDataFeed")
        || is_on(&metadata, "delta.enableChangeDataCapture");
    schema_change::check(&schema, &metadata.partition_columns, change_feed)?;
    // An unchanged schema is kept verbatim.
    let has_new_schema = StructType::parse(&metadata.schema_string)? != schema;
    if has_new_schema {
        metadata.schema_string = schema_string(&schema)?;
    }
    if let Some(list) = metadata.configuration.get(STATS_COLUMNS)
        && (is_new || has_new_schema || stats_columns.as_ref() != Some(list))
    {
        schema_change::check_stats_columns(list, &schema, &metadata.partition_columns)?;
    }

    let protocol = raise_protocol(protocol, requested, &metadata, &schema)?;
    features::check_writable(&protocol)?;
    iceberg::check(&protocol, &metadata, &schema)?;
    // As in delta-spark: readers of manifests do not see deletion vectors.
    if is_on(&metadata, SYMLINK_MANIFESTS) && is_on(&metadata, "delta.enableDeletionVectors") {
        return Err(Error::invalid(format!(
            "`{SYMLINK_MANIFESTS}` and `delta.enableDeletionVectors` cannot both be true: readers of \
             manifests do not see deletion vectors"
        )));
    }
    Ok((protocol, metadata))
}

fn is_on(metadata: &Metadata, key: &str) -> bool {
    properties::flag(&metadata.configuration, key)
}

/// The features and versions of the protocol that a change requests by name.
#[derive(Default)]
struct RequestedProtocol {
    features: BTreeSet<String>,
    min_reader: Option<i32>,
    min_writer: Option<i32>,
}

/// Sets properties in the metadata; returns the features and versions among them.
fn set_values(
    metadata: &mut Metadata,
    changes: &BTreeMap<String, String>,
    allow_unknown: bool,
) -> Result<RequestedProtocol> {
    let mut requested = RequestedProtocol::default();
    for (key, value) in changes {
        let lower = key.to_ascii_lowercase();
        if lower.starts_with(FEATURE) {
            requested.features.insert(named_feature(
                key.get(FEATURE.len()..).unwrap_or_default(),
                value,
            )?);
            continue;
        }
        // An unchanged value is always accepted: tables have keys that users may not set.
        if metadata.configuration.get(key) == Some(value) {
            continue;
        }
        let key = properties::canonical_property_key(key, value, allow_unknown)?;
        match key.as_str() {
            MIN_READER => requested.min_reader = value.trim().parse().ok(),
            MIN_WRITER => requested.min_writer = value.trim().parse().ok(),
            IGNORE_DEFAULTS => {}
            _ => {
                if metadata
                    .configuration
                    .keys()
                    .any(|k| k != &key && k.eq_ignore_ascii_case(&key))
                    && key.starts_with(CONSTRAINTS)
                {
                    return Err(Error::invalid(format!(
                        "the constraint `{}` is there already; names are compared without case",
                        shown(&key)
                    ))
                    .with_code(ErrorCode::ConstraintExists, &[("constraint", &key)]));
                }
                metadata.configuration.insert(key, value.clone());
            }
        }
    }
    Ok(requested)
}

/// Checks that a table with Iceberg compatibility has column mapping; a new one gets it.
fn require_column_mapping(metadata: &mut Metadata, is_new: bool) -> Result<()> {
    if is_new && !metadata.configuration.contains_key(MODE) {
        metadata
            .configuration
            .insert(MODE.to_owned(), "name".to_owned());
    }
    if mode(metadata)? == ColumnMapping::None {
        return Err(Error::invalid(
            "Iceberg compatibility needs `delta.columnMapping.mode` to be `name` or `id`; set it in the same call or before",
        ));
    }
    Ok(())
}

/// Checks that an existing table may change its column mapping mode.
fn check_mode_change(before: ColumnMapping, after: ColumnMapping) -> Result<()> {
    if before == after || (before, after) == (ColumnMapping::None, ColumnMapping::Name) {
        return Ok(());
    }
    let text = |mode| match mode {
        ColumnMapping::None => "none",
        ColumnMapping::Name => "name",
        ColumnMapping::Id => "id",
    };
    let hint = if after == ColumnMapping::None {
        "; drop the feature `columnMapping`, which rewrites the files"
    } else {
        ""
    };
    Err(Error::invalid(format!(
        "`delta.columnMapping.mode` cannot go from `{}` to `{}` on an existing table{hint}",
        text(before),
        text(after)
    ))
    .with_code(
        ErrorCode::ColumnMappingModeChange,
        &[("from", &text(before)), ("to", &text(after))],
    ))
}

/// The schema with column mapping for every field; raises `maxColumnId`.
fn assign_column_mapping(
    metadata: &mut Metadata,
    schema: &StructType,
    keep_names: bool,
    nested: bool,
    context: &mut TableChangeContext<'_>,
) -> Result<StructType> {
    let highest_assigned = properties::max_column_id(&metadata.configuration)?;
    let mut assign = ColumnMappingAssigner {
        max_id: highest_assigned.max(schema_change::max_column_id(schema)),
        keep_names,
        nested,
        generate_id: &mut *context.generate_id,
    };
    let mapped = assign.schema(schema);
    // Parquet's field ids have 32 bits.
    if assign.max_id > i64::from(i32::MAX) {
        return Err(Error::invalid(format!(
            "the columns need ids up to {}, and the highest possible is {}: none is left after `{MAX_COLUMN_ID}` = {highest_assigned}",
            assign.max_id,
            i32::MAX
        )));
    }
    metadata
        .configuration
        .insert(MAX_COLUMN_ID.to_owned(), assign.max_id.to_string());
    Ok(mapped)
}

/// Names the columns of row tracking that have no name yet.
fn name_row_tracking_columns(
    metadata: &mut Metadata,
    context: &mut TableChangeContext<'_>,
) -> Result<()> {
    if is_on(metadata, "delta.rowTrackingSuspended") {
        return Err(Error::invalid(
            "`delta.enableRowTracking` and `delta.rowTrackingSuspended` cannot both be true",
        ));
    }
    for (key, prefix) in ROW_TRACKING_COLUMNS {
        let name = format!("{prefix}{}", (context.generate_id)());
        metadata.configuration.entry(key.to_owned()).or_insert(name);
    }
    Ok(())
}

/// Checks that no column gets a type of Spark that Delta does not have.
fn check_column_types(metadata: &Metadata, schema: &StructType, is_new: bool) -> Result<()> {
    let is_spark = |data_type: &DataType| matches!(data_type, DataType::Spark(_));
    // A table that has such columns keeps them; no new ones are added.
    if !is_new && schema_change::any_type(&StructType::parse(&metadata.schema_string)?, &is_spark) {
        return Ok(());
    }
    let holds = |field: &&StructField| {
        schema_change::any_type(
            &StructType {
                fields: vec![(*field).clone()].into(),
            },
            &is_spark,
        )
    };
    match schema.fields.iter().find(holds) {
        Some(field) => Err(Error::unsupported(format!(
            "Delta tables have no columns of type {}; store the number as long",
            field.data_type
        ))
        .at_column(&field.name)),
        None => Ok(()),
    }
}

/// The protocol with the requested features and versions, raised to the requirements of metadata
/// and schema.
fn raise_protocol(
    protocol: &Protocol,
    requested: RequestedProtocol,
    metadata: &Metadata,
    schema: &StructType,
) -> Result<Protocol> {
    let raised = features::with_versions(protocol, requested.min_reader, requested.min_writer)?;
    let mut wanted = requested.features;
    wanted.extend(without_previews(
        &raised,
        required_features(metadata, schema)?,
    ));
    let protocol = features::with_features(&raised, &wanted);
    if features::supported(&protocol).contains("clustering")
        && wanted.contains("clustering")
        && !metadata.partition_columns.is_empty()
    {
        return Err(
            Error::invalid("a table cannot be both partitioned and clustered")
                .with_code(ErrorCode::ClusteredAndPartitioned, &[]),
        );
    }
    Ok(protocol)
}

/// The feature of `delta.feature.name = supported`.
fn named_feature(name: &str, value: &str) -> Result<String> {
    if !matches!(value.to_ascii_lowercase().as_str(), "supported" | "enabled") {
        return Err(Error::invalid(format!(
            "`{FEATURE}{}` can only be set to `supported`, not to `{}`",
            shown(name),
            shown(value)
        )));
    }
    match features::feature(name) {
        Some(feature) => Ok(feature.name.to_owned()),
        None => Err(Error::unsupported_feature(
            name,
            format!(
                "there is no table feature `{}` that deltafast {} writes",
                shown(name),
                env!("CARGO_PKG_VERSION")
            ),
        )
        .with_code(ErrorCode::UnknownFeature, &[])),
    }
}

/// The schema as it is committed.
fn schema_string(schema: &StructType) -> Result<String> {
    schema.check_nesting()?;
    schema.check_arrow_levels()?;
    Ok(schema.to_json_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::evolution;

    fn table(fields: &[(&str, &str)], configuration: &[(&str, &str)]) -> NewTable {
        NewTable {
            schema: StructType {
                fields: fields
                    .iter()
                    .map(|(n, t)| StructField::new(*n, DataType::from_name(t).unwrap(), true))
                    .collect(),
            },
            configuration: configuration
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            ..NewTable::default()
        }
    }

    fn with_context<T>(work: impl FnOnce(&mut TableChangeContext<'_>) -> T) -> T {
        let mut n = 0;
        let mut unique = || {
            n += 1;
            format!("u{n}")
        };
        work(&mut TableChangeContext {
            allow_unknown: false,
            now_ms: 5,
            generate_id: &mut unique,
        })
    }

    fn made(table: &NewTable) -> Result<(Protocol, Metadata)> {
        with_context(|context| create(table, context))
    }

    #[test]
    fn a_plain_table_has_the_lowest_protocol() {
        let (protocol, metadata) = made(&table(&[("a", "long")], &[])).unwrap();
        assert_eq!(protocol, base_protocol());
        assert_eq!(
            (
                metadata.id.as_str(),
                metadata.created_time,
                metadata.configuration.len()
            ),
            ("u1", Some(5), 0)
        );
    }

    #[test]
    fn every_switch_brings_its_feature_and_what_that_needs() {
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
        let cases: &[Case<'_>] = &[
            (
                &[("delta.enableRowTracking", "true")],
                &["rowTracking", "domainMetadata"],
            ),
            (
                &[("delta.enableDeletionVectors", "true")],
                &["deletionVectors"],
            ),
            (
                &[("delta.enableIcebergCompatV2", "true")],
                &["icebergCompatV2", "columnMapping"],
            ),
            (
                &[("delta.feature.catalogManaged", "supported")],
                &["catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"],
            ),
            (
                &[("delta.enableVariantShredding", "true")],
                &["variantShredding", "variantType"],
            ),
            (
                &[("delta.feature.timestampWithoutTimezone", "supported")],
                &["timestampNtz"],
            ),
            (&[("delta.checkpointPolicy", "v2")], &["v2Checkpoint"]),
            (&[("delta.constraints.c", "a > 0")], &["checkConstraints"]),
            (&[("delta.columnMapping.mode", "id")], &["columnMapping"]),
            (
                &[("delta.feature.CLUSTERING", "supported")],
                &["clustering", "domainMetadata"],
            ),
            (
                &[("delta.minWriterVersion", "7")],
                &["appendOnly", "invariants"],
            ),
        ];
        for (configuration, expected) in cases {
            let (protocol, metadata) =
                made(&table(&[("a", "long"), ("b", "string")], configuration)).unwrap();
            let supported = features::supported(&protocol);
            assert!(
                expected.iter().all(|name| supported.contains(*name)),
                "{configuration:?}: {supported:?}"
            );
            assert!(
                !metadata
                    .configuration
                    .keys()
                    .any(|key| key.starts_with(FEATURE) || key == MIN_WRITER),
                "{metadata:?}"
            );
        }
        for (data_type, expected) in [
            ("timestamp_ntz", "timestampNtz"),
            ("variant", "variantType"),
        ] {
            let (protocol, _) = made(&table(&[("a", data_type)], &[])).unwrap();
            assert!(
                protocol.has_reader_feature(expected)
                    && protocol.has_writer_feature(expected)
                    && protocol.has_writer_feature("appendOnly")
            );
        }
    }

    #[test]
    fn column_mapping_is_given_on_creation_and_kept_names_on_enabling() {
        let (_, metadata) = made(&table(&[("a b", "long")], &[(MODE, "name")])).unwrap();
        let schema = StructType::parse(&metadata.schema_string).unwrap();
        assert_eq!(
            (
                schema.fields[0].physical_name(),
                schema.fields[0].field_id(),
                metadata.configuration[MAX_COLUMN_ID].as_str()
            ),
            ("col-u2", Some(1), "1")
        );

        let (protocol, metadata) = made(&table(&[("a", "long")], &[])).unwrap();
        let on: BTreeMap<String, String> = [(MODE.to_owned(), "name".to_owned())].into();
        let (protocol, metadata) =
            with_context(|c| set_properties(&protocol, &metadata, &on, c)).unwrap();
        assert_eq!(
            (protocol.min_reader_version, protocol.min_writer_version),
            (2, 5)
        );
        let schema = StructType::parse(&metadata.schema_string).unwrap();
        assert_eq!(
            (
                schema.fields[0].physical_name(),
                schema.fields[0].field_id()
            ),
            ("a", Some(1))
        );
        let off: BTreeMap<String, String> = [(MODE.to_owned(), "none".to_owned())].into();
        assert!(
            with_context(|c| set_properties(&protocol, &metadata, &off, c))
                .unwrap_err()
                .to_string()
                .contains("from `name` to `none`")
        );

        // A new column gets the next id, even after the one with the highest id was dropped.
        let mut metadata = metadata;
        metadata
            .configuration
            .insert(MAX_COLUMN_ID.to_owned(), "9".to_owned());
        let mut wider = schema.clone();
        wider
            .fields
            .push(StructField::new("c", DataType::Long, true));
        let (_, metadata) = with_context(|c| set_schema(&protocol, &metadata, &wider, c)).unwrap();
        let schema = StructType::parse(&metadata.schema_string).unwrap();
        assert_eq!(
            (
                schema.fields[1].physical_name(),
                schema.fields[1].field_id()
            ),
            ("col-u1", Some(10))
        );
    }

    #[test]
    fn unknown_keys_are_refused_when_new_and_kept_when_there() {
        let error = made(&table(&[("a", "long")], &[("delta.future", "1")])).unwrap_err();
        assert!(error.to_string().contains("`delta.future`"), "{error}");
        let (protocol, mut metadata) = made(&table(&[("a", "long")], &[])).unwrap();
        metadata
            .configuration
            .insert("delta.future".to_owned(), "1".to_owned());
        let same: BTreeMap<String, String> = [
            ("delta.future".to_owned(), "1".to_owned()),
            ("delta.appendOnly".to_owned(), "true".to_owned()),
        ]
        .into();
        let (_, changed) =
            with_context(|c| set_properties(&protocol, &metadata, &same, c)).unwrap();
        assert_eq!(changed.configuration["delta.future"], "1");
        let other: BTreeMap<String, String> = [("delta.future".to_owned(), "2".to_owned())].into();
        assert!(with_context(|c| set_properties(&protocol, &metadata, &other, c)).is_err());
    }

    #[test]
    fn contradictions_are_refused() {
        let cases: &[&[(&str, &str)]] = &[
            &[
                ("delta.enableIcebergCompatV1", "true"),
                ("delta.enableIcebergCompatV2", "true"),
            ],
            &[("delta.enableIcebergCompatV2", "true"), (MODE, "none")],
            &[("delta.feature.nothing", "supported")],
            &[
                ("delta.enableRowTracking", "true"),
                ("delta.rowTrackingSuspended", "true"),
            ],
            &[
                (SYMLINK_MANIFESTS, "true"),
                ("delta.enableDeletionVectors", "true"),
            ],
            &[("delta.feature.clustering", "on")],
            &[("delta.minReaderVersion", "4")],
        ];
        for configuration in cases {
            assert!(
                made(&table(&[("a", "long")], configuration)).is_err(),
                "{configuration:?}"
            );
        }
        let mut both = table(&[("a", "long"), ("b", "long")], &[]);
        both.partition_columns = vec!["a".into()];
        both.features = ["clustering".to_owned()].into();
        assert!(made(&both).unwrap_err().to_string().contains("clustered"));
    }

    #[test]
    fn what_iceberg_cannot_read_is_refused() {
        const V1: (&str, &str) = ("delta.enableIcebergCompatV1", "true");
        const V2: (&str, &str) = ("delta.enableIcebergCompatV2", "true");
        const VECTORS: (&str, &str) = ("delta.enableDeletionVectors", "true");
        let refused = |table: &NewTable| made(table).unwrap_err().to_string();
        assert!(
            refused(&table(&[("a", "long")], &[V2, VECTORS]))
                .contains("set `delta.enableDeletionVectors` to `false`")
        );
        assert!(
            refused(&table(
                &[("a", "long")],
                &[V1, ("delta.feature.deletionVectors", "supported")]
            ))
            .contains("drop it first")
        );
        assert!(
            made(&table(
                &[("a", "long")],
                &[V2, ("delta.feature.deletionVectors", "supported")]
            ))
            .is_ok()
        );
        let list = StructType::parse(r#"{"type":"struct","fields":[{"name":"l","type":{"type":"array","elementType":"long","containsNull":true}}]}"#).unwrap();
        let with_list = |switch| NewTable {
            schema: list.clone(),
            ..table(&[], &[switch])
        };
        assert!(refused(&with_list(V1)).contains("the type array<long> of the column `l`"));
        assert!(made(&with_list(V2)).is_ok());
        assert!(refused(&table(&[("v", "variant")], &[V2])).contains("variant"));
        for (from, to, fits) in [
            ("integer", "long", true),
            ("integer", "double", false),
            ("decimal(5,2)", "decimal(7,2)", true),
            ("date", "timestamp_ntz", false),
        ] {
            let mut field = StructField::new("a", DataType::from_name(to).unwrap(), true);
            evolution::record_type_change(
                &mut field,
                &DataType::from_name(from).unwrap(),
                &DataType::from_name(to).unwrap(),
                "",
            );
            let made = made(&NewTable {
                schema: StructType {
                    fields: vec![field].into(),
                },
                ..table(&[], &[V2])
            });
            assert_eq!(made.is_ok(), fits, "{from} to {to}: {made:?}");
        }
        // An existing table determines its column mapping mode itself.
        let (protocol, metadata) = made(&table(&[("a", "long")], &[])).unwrap();
        let on: BTreeMap<String, String> = [(V2.0.to_owned(), V2.1.to_owned())].into();
        let error = with_context(|c| set_properties(&protocol, &metadata, &on, c))
            .unwrap_err()
            .to_string();
        assert!(error.contains("set it in the same call"), "{error}");
    }

    #[test]
    fn unsetting_leaves_features_and_internal_keys() {
        let (_, metadata) = made(&table(
            &[("a", "long")],
            &[
                ("delta.appendOnly", "true"),
                (MODE, "name"),
                ("owner", "me"),
            ],
        ))
        .unwrap();
        let keys = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(
            unset_properties(&metadata, &keys(&["delta.appendonly", "owner"]), false)
                .unwrap()
                .configuration
                .len()
                == 2
        );
        assert!(unset_properties(&metadata, &keys(&["nothing"]), false).is_err());
        assert!(unset_properties(&metadata, &keys(&["nothing"]), true).is_ok());
        assert!(unset_properties(&metadata, &keys(&[MAX_COLUMN_ID]), true).is_err());
    }
}
