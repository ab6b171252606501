//! The columns of a checkpoint: its schema, and batches of actions in that schema.
//!
//! File actions are converted from column to column. The few non-file actions are converted to JSON
//! values first, since a V2 manifest may be JSON as well.
//!
//! Protocol: "Checkpoint Schema", "Checkpoints".

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int32Builder, Int64Builder, StringViewBuilder};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, ListArray, MapArray, RecordBatch,
    RecordBatchOptions, StringViewArray, StructArray, UInt32Array, new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType as Arrow, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take;
use serde_json::Value;

use super::stats;
use crate::error::{Error, Result};
use crate::parse::{DvColumns, FileActionProjection, FileBatch};
use crate::protocol::partition_value;
use crate::protocol::schema::{DataType, MapType, StringLayout, StructField, StructType};
use crate::snapshot::Snapshot;

/// The number of rows of the last checkpoint that are decoded at once, and of the new one that are
/// built at once. It is smaller than for listing files, because all columns are read, up to a
/// kilobyte per row, and a batch is held in memory together with the output of the previous one.
pub(super) const BATCH_ROWS: usize = 1 << 10;

/// The actions that a file of a checkpoint may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckpointFileKind {
    /// V1: all but those of V2.
    V1,
    /// A V2 manifest: all.
    V2,
    /// A sidecar: file actions only.
    Sidecar,
}

/// The layout of a table's actions in its checkpoints.
#[derive(Debug, Clone)]
pub(super) struct CheckpointLayout {
    /// The schema in Delta's types.
    pub(super) delta_schema: StructType,
    pub(super) schema: SchemaRef,
    partition: Vec<(String, DataType)>,
    stats: stats::StatsLayout,
    /// `delta.checkpoint.writeStatsAsJson`
    json: bool,
    /// `delta.checkpoint.writeStatsAsStruct`
    parsed: bool,
    zone: crate::protocol::calendar::TimeZoneSpec,
}

fn field(name: &str, data_type: DataType) -> StructField {
    StructField::new(name, data_type, true)
}

fn struct_field(name: &str, fields: Vec<StructField>) -> StructField {
    field(
        name,
        DataType::Struct(Arc::new(StructType {
            fields: fields.into(),
        })),
    )
}

fn string_map() -> DataType {
    DataType::Map(Arc::new(MapType {
        key: DataType::String,
        value: DataType::String,
        value_contains_null: true,
    }))
}

fn string_list() -> DataType {
    DataType::Array(Arc::new(crate::protocol::schema::ArrayType {
        element: DataType::String,
        contains_null: true,
    }))
}

fn deletion_vector_field() -> StructField {
    struct_field(
        "deletionVector",
        vec![
            field("storageType", DataType::String),
            field("pathOrInlineDv", DataType::String),
            field("offset", DataType::Integer),
            field("sizeInBytes", DataType::Integer),
            field("cardinality", DataType::Long),
        ],
    )
}

fn remove() -> StructField {
    struct_field(
        "remove",
        vec![
            field("path", DataType::String),
            field("deletionTimestamp", DataType::Long),
            field("dataChange", DataType::Boolean),
            field("extendedFileMetadata", DataType::Boolean),
            field("partitionValues", string_map()),
            field("size", DataType::Long),
            deletion_vector_field(),
            field("baseRowId", DataType::Long),
            field("defaultRowCommitVersion", DataType::Long),
        ],
    )
}

/// The fields of the non-file actions.
fn singles() -> Vec<StructField> {
    let format = struct_field(
        "format",
        vec![
            field("provider", DataType::String),
            field("options", string_map()),
        ],
    );
    vec![
        struct_field(
            "metaData",
            vec![
                field("id", DataType::String),
                field("name", DataType::String),
                field("description", DataType::String),
                format,
                field("schemaString", DataType::String),
                field("partitionColumns", string_list()),
                field("configuration", string_map()),
                field("createdTime", DataType::Long),
            ],
        ),
        struct_field(
            "protocol",
            vec![
                field("minReaderVersion", DataType::Integer),
                field("minWriterVersion", DataType::Integer),
                field("readerFeatures", string_list()),
                field("writerFeatures", string_list()),
            ],
        ),
        struct_field(
            "domainMetadata",
            vec![
                field("domain", DataType::String),
                field("configuration", DataType::String),
                field("removed", DataType::Boolean),
            ],
        ),
    ]
}

fn v2_action_fields() -> [StructField; 2] {
    [
        struct_field(
            "checkpointMetadata",
            vec![
                field("version", DataType::Long),
                field("tags", string_map()),
            ],
        ),
        struct_field(
            "sidecar",
            vec![
                field("path", DataType::String),
                field("sizeInBytes", DataType::Long),
                field("modificationTime", DataType::Long),
                field("tags", string_map()),
            ],
        ),
    ]
}

impl CheckpointLayout {
    pub(super) fn new(snapshot: &Snapshot, kinds: CheckpointFileKind) -> Self {
        let flag = |name: &str| {
            snapshot
                .metadata()
                .configuration
                .get(name)
                .is_none_or(|value| !value.eq_ignore_ascii_case("false"))
        };
        let partition: Vec<(String, DataType)> = snapshot
            .partition_fields()
            .iter()
            .map(|f| (snapshot.physical_name(f).to_owned(), f.data_type.clone()))
            .collect();
        let mut out = Self {
            delta_schema: StructType::default(),
            schema: Arc::new(Schema::empty()),
            partition,
            stats: stats::StatsLayout::new(snapshot),
            json: flag("delta.checkpoint.writeStatsAsJson"),
            parsed: flag("delta.checkpoint.writeStatsAsStruct"),
            zone: snapshot.options().zone,
        };
        let mut columns = Vec::new();
        if kinds != CheckpointFileKind::Sidecar {
            columns.push(struct_field(
                "txn",
                vec![
                    field("appId", DataType::String),
                    field("version", DataType::Long),
                    field("lastUpdated", DataType::Long),
                ],
            ));
        }
        columns.extend([out.add(), remove()]);
        if kinds != CheckpointFileKind::Sidecar {
            columns.extend(singles());
        }
        if kinds == CheckpointFileKind::V2 {
            columns.extend(v2_action_fields());
        }
        out.schema = Arc::new(Schema::new(
            columns.iter().map(arrow_column).collect::<Fields>(),
        ));
        out.delta_schema = StructType {
            fields: columns.into(),
        };
        out
    }

    fn add(&self) -> StructField {
        let mut fields = vec![
            field("path", DataType::String),
            field("partitionValues", string_map()),
            field("size", DataType::Long),
            field("modificationTime", DataType::Long),
            field("dataChange", DataType::Boolean),
            field("tags", string_map()),
            deletion_vector_field(),
            field("baseRowId", DataType::Long),
            field("defaultRowCommitVersion", DataType::Long),
            field("clusteringProvider", DataType::String),
        ];
        if self.json {
            fields.push(field("stats", DataType::String));
        }
        if self.parsed {
            let typed: Vec<StructField> = self
                .partition
                .iter()
                .filter(|(_, data_type)| *data_type != DataType::Void)
                .map(|(name, data_type)| field(name, data_type.clone()))
                .collect();
            if !typed.is_empty() {
                fields.push(struct_field("partitionValues_parsed", typed));
            }
            fields.push(field(
                "stats_parsed",
                DataType::Struct(Arc::new(self.stats.data_type())),
            ));
        }
        struct_field("add", fields)
    }

    /// The columns of live files to read.
    pub(super) fn add_columns(&self) -> FileActionProjection {
        FileActionProjection {
            stats: self.json || self.parsed,
            stats_text: self.json,
            leaves: self.stats.all_leaf_paths.clone(),
            tags: true,
            clustering: true,
            ..self.remove_columns()
        }
    }

    /// The columns of tombstones to read.
    pub(super) fn remove_columns(&self) -> FileActionProjection {
        let partition = self
            .partition
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        FileActionProjection {
            partition,
            time: true,
            row_ids: true,
            batch_rows: Some(BATCH_ROWS),
            ..FileActionProjection::default()
        }
    }

    /// Live files as rows of the checkpoint.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for invalid tags or partition values.
    pub(super) fn adds(&self, files: &FileBatch) -> Result<RecordBatch> {
        let rows = files.len();
        self.batch("add", rows, |field| {
            Ok(match field.name().as_str() {
                "modificationTime" => int_column(files.time.as_ref(), rows),
                "tags" => tags(files.tags.as_ref(), field, rows)?,
                "clusteringProvider" => string_column(files.clustering.as_ref(), rows),
                "stats" => Arc::new(stats::stats_json(files.stats.as_ref(), rows)),
                "partitionValues_parsed" => self.typed_partition(files, field)?,
                "stats_parsed" => match field.data_type() {
                    Arrow::Struct(fields) => {
                        self.stats
                            .stats_parsed_column(files.stats.as_ref(), fields, rows)?
                    }
                    other => new_null_array(other, rows),
                },
                _ => return self.common_column(files, field, None),
            })
        })
    }

    /// Tombstones as rows of the checkpoint.
    ///
    /// # Errors
    /// [`Error::Internal`].
    pub(super) fn removes(&self, files: &FileBatch) -> Result<RecordBatch> {
        let rows = files.len();
        // `extendedFileMetadata`: whether size and partition values are present; writers that left
        // them out wrote neither.
        let extended: BooleanArray = (0..rows)
            .map(|row| {
                Some(
                    files.size.is_valid(row)
                        && (files.partition.is_empty()
                            || files.partition.iter().any(|column| column.is_valid(row))),
                )
            })
            .collect();
        let present = NullBuffer::new(extended.values().clone());
        self.batch("remove", rows, |field| {
            Ok(match field.name().as_str() {
                "deletionTimestamp" => int_column(files.time.as_ref(), rows),
                "extendedFileMetadata" => Arc::new(extended.clone()),
                _ => return self.common_column(files, field, Some(&present)),
            })
        })
    }

    /// Fields that adds and removes share.
    fn common_column(
        &self,
        files: &FileBatch,
        field: &Field,
        partition_present: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let rows = files.len();
        Ok(match field.name().as_str() {
            "path" => Arc::new(files.path.clone()),
            "size" => Arc::new(files.size.clone()),
            // A checkpoint does not change data.
            "dataChange" => Arc::new(BooleanArray::from(vec![false; rows])),
            "partitionValues" => self.partition_map(files, field, partition_present)?,
            "deletionVector" => deletion_vector_column(files.dv.as_ref(), field, rows)?,
            "baseRowId" => int_column(files.base_row_id.as_ref(), rows),
            "defaultRowCommitVersion" => {
                int_column(files.default_row_commit_version.as_ref(), rows)
            }
            other => {
                return Err(Error::internal(format!(
                    "a file action has no field `{other}`"
                )));
            }
        })
    }

    /// A batch in which only `column` is set.
    fn batch(
        &self,
        column: &str,
        rows: usize,
        make: impl Fn(&FieldRef) -> Result<ArrayRef>,
    ) -> Result<RecordBatch> {
        let columns = self
            .schema
            .fields()
            .iter()
            .map(|field| match field.data_type() {
                Arrow::Struct(fields) if field.name() == column => {
                    let children = fields.iter().map(&make).collect::<Result<Vec<_>>>()?;
                    Ok(Arc::new(StructArray::try_new(fields.clone(), children, None)?) as ArrayRef)
                }
                other => Ok(new_null_array(other, rows)),
            });
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns.collect::<Result<_>>()?,
            &options,
        )?)
    }

    /// Non-file actions, as rows of the checkpoint.
    ///
    /// # Errors
    /// [`Error::Internal`].
    pub(super) fn singles(&self, actions: &[Value]) -> Result<RecordBatch> {
        let columns = self.schema.fields().iter().map(|field| {
            let values: Vec<Option<&Value>> = actions
                .iter()
                .map(|action| action.get(field.name()))
                .collect();
            from_json(&values, field.data_type())
        });
        let options = RecordBatchOptions::new().with_row_count(Some(actions.len()));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns.collect::<Result<_>>()?,
            &options,
        )?)
    }

    fn partition_map(
        &self,
        files: &FileBatch,
        field: &Field,
        present: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let (Arrow::Map(entries, _), rows, width) =
            (field.data_type(), files.len(), files.partition.len())
        else {
            return Err(Error::internal("partition values are a map"));
        };
        let Arrow::Struct(parts) = entries.data_type() else {
            return Err(Error::internal("a map has entries"));
        };
        // Keys repeat for every row; the values of row r are at index r of each column.
        let count = |n: usize| {
            u32::try_from(n).map_err(|_| Error::internal("a batch of files is too large"))
        };
        count(rows * width.max(1))?;
        let names: StringViewArray = self.partition.iter().map(|(name, _)| Some(name)).collect();
        let keys = take(
            &names,
            &(0..rows)
                .flat_map(|_| 0..count(width).unwrap_or(0))
                .collect::<UInt32Array>(),
            None,
        )?;
        let values: ArrayRef = match files.partition.as_slice() {
            [] => Arc::new(StringViewArray::new_null(0)),
            [one] => Arc::new(one.clone()),
            several => {
                let all = concat(
                    &several
                        .iter()
                        .map(|column| column as &dyn Array)
                        .collect::<Vec<_>>(),
                )?;
                let order =
                    (0..rows).flat_map(|row| (0..width).map(move |column| column * rows + row));
                take(
                    &all,
                    &order
                        .map(count)
                        .collect::<Result<Vec<u32>>>()
                        .map(UInt32Array::from)?,
                    None,
                )?
            }
        };
        let entries_array = StructArray::try_new(parts.clone(), vec![keys, values], None)?;
        let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(width, rows));
        Ok(Arc::new(MapArray::try_new(
            Arc::clone(entries),
            offsets,
            entries_array,
            present.cloned(),
            false,
        )?))
    }

    fn typed_partition(&self, files: &FileBatch, field: &Field) -> Result<ArrayRef> {
        let Arrow::Struct(fields) = field.data_type() else {
            return Err(Error::internal("typed partition values are a struct"));
        };
        let typed = self
            .partition
            .iter()
            .zip(&files.partition)
            .filter(|((_, data_type), _)| *data_type != DataType::Void);
        let columns = typed
            .zip(fields)
            .map(|(((name, data_type), values), field)| {
                let array = partition_value::parse(values, data_type, self.zone)
                    .map_err(|e| e.at_column(name))?;
                if array.data_type() == field.data_type() {
                    Ok(array)
                } else {
                    Ok(arrow_cast::cast(&array, field.data_type())?)
                }
            });
        Ok(Arc::new(StructArray::try_new(
            fields.clone(),
            columns.collect::<Result<_>>()?,
            None,
        )?))
    }
}

/// A column of the checkpoint in Arrow. Strings are views, except in columns that the parsers
/// build.
fn arrow_column(column: &StructField) -> Field {
    let DataType::Struct(of) = &column.data_type else {
        return column.to_arrow(StringLayout::View);
    };
    let fields = of.fields.iter().map(|field| match &field.data_type {
        DataType::Struct(inner) if field.name.ends_with("_parsed") => {
            Field::new(&field.name, Arrow::Struct(stats::plain_fields(inner)), true)
        }
        _ => field.to_arrow(StringLayout::View),
    });
    Field::new(&column.name, Arrow::Struct(fields.collect()), true)
}

/// Whether a leaf of a checkpoint is repeated.
pub(super) fn repeats(path: &[String]) -> bool {
    let mut parts = path.iter().map(String::as_str);
    match (parts.next(), parts.next()) {
        (
            Some("add" | "remove"),
            Some(
                "partitionValues"
                | "partitionValues_parsed"
                | "tags"
                | "clusteringProvider"
                | "defaultRowCommitVersion",
            ),
        ) => true,
        (Some("add"), Some("stats_parsed")) => parts.next() == Some("nullCount"),
        (Some("add" | "remove"), Some("deletionVector")) => {
            matches!(parts.next(), Some("storageType" | "pathOrInlineDv"))
        }
        _ => false,
    }
}

fn int_column(array: Option<&Int64Array>, rows: usize) -> ArrayRef {
    array.map_or_else(
        || Arc::new(Int64Array::new_null(rows)) as ArrayRef,
        |array| Arc::new(array.clone()),
    )
}

fn string_column(array: Option<&StringViewArray>, rows: usize) -> ArrayRef {
    array.map_or_else(
        || Arc::new(StringViewArray::new_null(rows)) as ArrayRef,
        |array| Arc::new(array.clone()),
    )
}

fn deletion_vector_column(dv: Option<&DvColumns>, field: &Field, rows: usize) -> Result<ArrayRef> {
    let (Some(dv), Arrow::Struct(fields)) = (dv, field.data_type()) else {
        return Ok(new_null_array(field.data_type(), rows));
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(dv.storage_type.clone()),
        Arc::new(dv.path_or_inline.clone()),
        Arc::new(dv.offset.clone()),
        Arc::new(dv.size_in_bytes.clone()),
        Arc::new(dv.cardinality.clone()),
    ];
    Ok(Arc::new(StructArray::try_new(
        fields.clone(),
        columns,
        Some(NullBuffer::new(dv.present.clone())),
    )?))
}

/// Tags, which are given as JSON.
fn tags(column: Option<&StringViewArray>, field: &Field, rows: usize) -> Result<ArrayRef> {
    let Some(column) = column.filter(|column| column.null_count() < rows) else {
        return Ok(new_null_array(field.data_type(), rows));
    };
    let parsed = column
        .iter()
        .map(|text| text.map(serde_json::from_str::<Value>).transpose())
        .collect::<Result<Vec<_>, _>>();
    let parsed =
        parsed.map_err(|e| Error::corrupt(format!("the `tags` of a file are malformed: {e}")))?;
    from_json(
        &parsed.iter().map(Option::as_ref).collect::<Vec<_>>(),
        field.data_type(),
    )
}

/// Values of an action as a column; values of another type become null.
fn from_json(values: &[Option<&Value>], data_type: &Arrow) -> Result<ArrayRef> {
    Ok(match data_type {
        Arrow::Utf8View => Arc::new(string_from_json(values)),
        Arrow::Int32 => {
            let mut out = Int32Builder::new();
            out.extend(values.iter().map(|value| {
                value
                    .and_then(Value::as_i64)
                    .and_then(|v| i32::try_from(v).ok())
            }));
            Arc::new(out.finish())
        }
        Arrow::Int64 => {
            let mut out = Int64Builder::new();
            out.extend(values.iter().map(|value| value.and_then(Value::as_i64)));
            Arc::new(out.finish())
        }
        Arrow::Boolean => {
            let mut out = BooleanBuilder::new();
            out.extend(values.iter().map(|value| value.and_then(Value::as_bool)));
            Arc::new(out.finish())
        }
        Arrow::List(item) => Arc::new(list_from_json(values, item)?),
        Arrow::Map(entries, _) => Arc::new(map_from_json(values, entries)?),
        Arrow::Struct(fields) => Arc::new(struct_from_json(values, fields)?),
        // `stats_parsed` and similar columns: non-file actions do not have them.
        other => new_null_array(other, values.len()),
    })
}

/// JSON strings as a column; numbers and booleans, which other writers put into string maps, become
/// strings.
fn string_from_json(values: &[Option<&Value>]) -> StringViewArray {
    let mut out = StringViewBuilder::new();
    for value in values {
        match value {
            Some(Value::String(text)) => out.append_value(text),
            Some(other @ (Value::Number(_) | Value::Bool(_))) => {
                out.append_value(other.to_string());
            }
            _ => out.append_null(),
        }
    }
    out.finish()
}

/// JSON arrays as a column of lists.
fn list_from_json(values: &[Option<&Value>], item: &FieldRef) -> Result<ListArray> {
    let lists: Vec<Option<&Vec<Value>>> = values
        .iter()
        .map(|value| value.and_then(Value::as_array))
        .collect();
    let items: Vec<Option<&Value>> = lists
        .iter()
        .flatten()
        .flat_map(|list| list.iter().map(Some))
        .collect();
    let offsets = OffsetBuffer::from_lengths(lists.iter().map(|list| list.map_or(0, Vec::len)));
    let nulls = lists.iter().map(Option::is_some).collect::<NullBuffer>();
    Ok(ListArray::try_new(
        Arc::clone(item),
        offsets,
        from_json(&items, item.data_type())?,
        Some(nulls),
    )?)
}

/// JSON objects as a column of string maps.
fn map_from_json(values: &[Option<&Value>], entries: &FieldRef) -> Result<MapArray> {
    let Arrow::Struct(parts) = entries.data_type() else {
        return Err(Error::internal("a map has entries"));
    };
    let maps: Vec<_> = values
        .iter()
        .map(|value| value.and_then(Value::as_object))
        .collect();
    let keys: StringViewArray = maps
        .iter()
        .flatten()
        .flat_map(|map| map.keys().map(Some))
        .collect();
    let inner: Vec<Option<&Value>> = maps
        .iter()
        .flatten()
        .flat_map(|map| map.values().map(Some))
        .collect();
    let entries_array = StructArray::try_new(
        parts.clone(),
        vec![Arc::new(keys), from_json(&inner, &Arrow::Utf8View)?],
        None,
    )?;
    let offsets =
        OffsetBuffer::from_lengths(maps.iter().map(|map| map.map_or(0, serde_json::Map::len)));
    let nulls = maps.iter().map(Option::is_some).collect::<NullBuffer>();
    Ok(MapArray::try_new(
        Arc::clone(entries),
        offsets,
        entries_array,
        Some(nulls),
        false,
    )?)
}

/// JSON objects as a column of structs.
fn struct_from_json(values: &[Option<&Value>], fields: &Fields) -> Result<StructArray> {
    let objects: Vec<_> = values
        .iter()
        .map(|value| value.and_then(Value::as_object))
        .collect();
    let columns = fields.iter().map(|field| {
        let values: Vec<Option<&Value>> = objects
            .iter()
            .map(|object| object.and_then(|object| object.get(field.name())))
            .collect();
        from_json(&values, field.data_type())
    });
    let nulls = objects.iter().map(Option::is_some).collect::<NullBuffer>();
    Ok(StructArray::try_new(
        fields.clone(),
        columns.collect::<Result<_>>()?,
        Some(nulls),
    )?)
}
