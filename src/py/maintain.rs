//! Python functions for maintenance commands.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMillisecondType};
use arrow_schema::{DataType as Arrow, TimeUnit};
use pyo3::prelude::*;

use super::arrow::{import_stream, unreadable};
use super::open::{LogTailSource, OpenOptions, open_log};
use super::runtime::wait_settled;
use super::snapshot::PySnapshot;
use super::table::PyCommitResult;
use super::values::{FromPython, IntoPython};
use crate::error::{Error, Result};
use crate::manifest::{self, GeneratedManifests};
use crate::ops::maintain::{
    self, CloneOptions, ConvertOptions, FileInventory, RepairOptions, RestoreOptions, VacuumOptions,
};
use crate::store::ObjectMeta;

/// Deletes files that no version within the retention requires.
#[pyfunction]
#[pyo3(signature = (snapshot, options, inventory=None))]
pub(super) fn vacuum(
    py: Python<'_>,
    snapshot: &PySnapshot,
    options: FromPython<VacuumOptions>,
    inventory: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyCommitResult> {
    let stream = inventory.map(import_stream).transpose()?;
    let core = snapshot.core().clone();
    let mut found = wait_settled(py, move |cancel| {
        let inventory = stream.map(|stream| {
            let rows = stream.map(|batch| {
                batch
                    .map_err(|e| unreadable("the inventory", &e))
                    .and_then(|batch| inventory_files(&batch))
            });
            Box::new(rows.flat_map(|rows| match rows {
                Ok(rows) => rows.into_iter().map(Ok).collect::<Vec<_>>(),
                Err(error) => vec![Err(error)],
            })) as FileInventory
        });
        maintain::vacuum(&core, &options.0, inventory, cancel)
    })?;
    let done = found.done.take();
    PyCommitResult::new(py, done, found, |core| snapshot.with_core(core))
}

/// The files in a batch of an inventory (`path`, `length`, `isDir`, `modificationTime`).
fn inventory_files(batch: &arrow_array::RecordBatch) -> Result<Vec<ObjectMeta>> {
    let column = |name: &str, data_type: &Arrow| {
        let column = batch
            .column_by_name(name)
            .ok_or_else(|| Error::invalid(format!("the inventory has no column `{name}`")))?;
        arrow_cast::cast(column, data_type).map_err(|_| {
            Error::invalid(format!(
                "the inventory's column `{name}` is {}, not {data_type}",
                column.data_type()
            ))
        })
    };
    let (path, size, is_dir) = (
        column("path", &Arrow::Utf8)?,
        column("length", &Arrow::Int64)?,
        column("isDir", &Arrow::Boolean)?,
    );
    let of_time = |array: arrow_array::ArrayRef| -> Result<arrow_array::ArrayRef> {
        Ok(arrow_cast::cast(&array, &Arrow::Int64)?)
    };
    let time = match column("modificationTime", &Arrow::Int64) {
        // A timestamp is cast to the number of its own unit.
        Ok(_)
            if matches!(
                batch
                    .column_by_name("modificationTime")
                    .map(|c| c.data_type().clone()),
                Some(Arrow::Timestamp(..))
            ) =>
        {
            let millis = column(
                "modificationTime",
                &Arrow::Timestamp(TimeUnit::Millisecond, None),
            )?;
            of_time(Arc::new(
                millis.as_primitive::<TimestampMillisecondType>().clone(),
            ))?
        }
        other => other?,
    };
    let (path, size, is_dir, time) = (
        path.as_string::<i32>(),
        size.as_primitive::<Int64Type>(),
        is_dir.as_boolean(),
        time.as_primitive::<Int64Type>(),
    );
    let files = (0..batch.num_rows())
        .filter(|row| path.is_valid(*row) && !(is_dir.is_valid(*row) && is_dir.value(*row)));
    Ok(files
        .map(|row| ObjectMeta {
            path: path.value(row).to_owned(),
            size: u64::try_from(size.value(row)).unwrap_or(0),
            modified_ms: time.value(row),
        })
        .collect())
}

/// Restores an older version.
#[pyfunction]
pub(super) fn restore(
    py: Python<'_>,
    snapshot: &PySnapshot,
    options: FromPython<RestoreOptions>,
) -> PyResult<PyCommitResult> {
    let core = snapshot.core().clone();
    let mut found = wait_settled(py, move |cancel| {
        maintain::restore(&core, &options.0, cancel)
    })?;
    let done = found.done.take();
    PyCommitResult::new(py, done, found, |core| snapshot.with_core(core))
}

/// Removes missing files from the log.
#[pyfunction]
pub(super) fn repair(
    py: Python<'_>,
    snapshot: &PySnapshot,
    options: FromPython<RepairOptions>,
) -> PyResult<PyCommitResult> {
    let core = snapshot.core().clone();
    let mut found = wait_settled(py, move |cancel| {
        maintain::repair(&core, &options.0, cancel)
    })?;
    let done = found.done.take();
    PyCommitResult::new(py, done, found, |core| snapshot.with_core(core))
}

/// Writes symlink manifests.
#[pyfunction]
pub(super) fn generate(
    py: Python<'_>,
    snapshot: &PySnapshot,
) -> PyResult<IntoPython<GeneratedManifests>> {
    let core = snapshot.core().clone();
    wait_settled(py, move |cancel| manifest::generate(&core, cancel)).map(IntoPython)
}

/// Creates a table at `uri` that shares a snapshot's files.
#[pyfunction]
#[pyo3(signature = (snapshot, uri, options, storage_options=None))]
pub(super) fn clone_table(
    py: Python<'_>,
    snapshot: &PySnapshot,
    uri: String,
    options: FromPython<CloneOptions>,
    storage_options: Option<HashMap<String, String>>,
) -> PyResult<PyCommitResult> {
    let name = uri.clone();
    let core = snapshot.core().clone();
    let mut found = wait_settled(py, move |cancel| {
        let log = open_log(
            &uri,
            None,
            storage_options.unwrap_or_default(),
            &OpenOptions::default(),
            LogTailSource::default(),
        )?;
        maintain::clone(&core, log, &options.0, cancel)
    })?;
    let done = found.done.take();
    PyCommitResult::new(py, done, found, |core| PySnapshot::new(core, name, false))
}

/// Creates a table from the Parquet files at `uri`.
#[pyfunction]
#[pyo3(signature = (uri, options, storage_options=None))]
pub(super) fn convert_to_delta(
    py: Python<'_>,
    uri: String,
    options: FromPython<ConvertOptions>,
    storage_options: Option<HashMap<String, String>>,
) -> PyResult<PyCommitResult> {
    let name = uri.clone();
    let mut found = wait_settled(py, move |cancel| {
        let log = open_log(
            &uri,
            None,
            storage_options.unwrap_or_default(),
            &OpenOptions::default(),
            LogTailSource::default(),
        )?;
        maintain::convert(log, &options.0, cancel)
    })?;
    let done = found.done.take();
    PyCommitResult::new(py, done, found, |core| PySnapshot::new(core, name, false))
}
