//! REORG TABLE ... APPLY (PURGE): files with deleted content: rows that deletion vectors delete,
//! columns that were dropped.
//!
//! Protocol: "Deletion Vectors", "Column Mapping". The selection of files is delta-spark's. Cost: a
//! footer for every file without deletion vector.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::exec::{CancellationToken, map_all};
use crate::ops::rewrite::target_table::TRACKED;
use crate::pq::infer_schema;
use crate::protocol::commit_line::Add;
use crate::protocol::data_path;
use crate::protocol::schema::{DataType, StructType};
use crate::snapshot::Snapshot;

/// The files that contain deleted rows or columns.
pub(in crate::ops) fn files_to_purge(
    snapshot: &Snapshot,
    files: Vec<Add>,
    cancel: &CancellationToken,
) -> Result<Vec<Add>> {
    let (marked, others): (Vec<Add>, Vec<Add>) = files
        .into_iter()
        .partition(|add| add.deletion_vector.is_some());
    let tracked: HashSet<String> = TRACKED
        .iter()
        .filter_map(|(_, property)| snapshot.metadata().configuration.get(*property))
        .map(|name| name.to_lowercase())
        .collect();
    let (looked, cancel) = (snapshot.clone(), cancel.clone());
    let found = map_all(others, move |add: Add| {
        cancel.check()?;
        let path = data_path::canonical(&add.path)?;
        let file = looked.stores().file(&path, u64::try_from(add.size).ok())?;
        let more = match infer_schema(&file) {
            Ok(found) => found.schema.fields.iter().any(|field| {
                match column_type(&looked, looked.schema(), &field.name) {
                    Some(known) => has_dropped_fields(&looked, known, &field.data_type),
                    None => !tracked.contains(&field.name.to_lowercase()),
                }
            }),
            // A type that tables cannot have: the column was dropped, or never belonged to the
            // table.
            Err(Error::Unsupported { .. }) => true,
            Err(error) => return Err(error),
        };
        Ok(more.then_some(add))
    })?;
    Ok(marked
        .into_iter()
        .chain(found.into_iter().flatten())
        .collect())
}

/// The type of a table's column, by its name in files.
fn column_type<'a>(
    snapshot: &Snapshot,
    schema: &'a StructType,
    name: &str,
) -> Option<&'a DataType> {
    schema
        .fields
        .iter()
        .find(|field| snapshot.physical_name(field).eq_ignore_ascii_case(name))
        .map(|field| &field.data_type)
}

/// Whether a file's column has fields that the table's column lacks.
fn has_dropped_fields(snapshot: &Snapshot, known: &DataType, found: &DataType) -> bool {
    match (known, found) {
        (DataType::Struct(known), DataType::Struct(found)) => found.fields.iter().any(|field| {
            column_type(snapshot, known, &field.name)
                .is_none_or(|known| has_dropped_fields(snapshot, known, &field.data_type))
        }),
        (DataType::Array(known), DataType::Array(found)) => {
            has_dropped_fields(snapshot, &known.element, &found.element)
        }
        (DataType::Map(known), DataType::Map(found)) => {
            has_dropped_fields(snapshot, &known.key, &found.key)
                || has_dropped_fields(snapshot, &known.value, &found.value)
        }
        _ => false,
    }
}
