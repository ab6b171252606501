//! Python functions for maintenance commands: options and results are JSON strings; the snapshot
//! after a command that committed is returned in addition.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMillisecondType};
use arrow_schema::{DataType as Arrow, TimeUnit};
use pyo3::prelude::*;

use super::arrow::import_stream;
use super::json::{parse_options, to_json};
use super::runtime::wait_settled;
use super::snapshot::{LogTailSource, PySnapshot, open_log};
use super::table::report_warnings;
use crate::error::{Error, Result};
use crate::manifest;
use crate::ops::maintain::{self, FileInventory};
use crate::store::ObjectMeta;

type MaintenanceOutput = (Option<PySnapshot>, String);

/// Deletes files that no version within the retention requires.
#[pyfunction]
#[pyo3(signature = (snapshot, options_json, inventory=None))]
pub(super) fn vacuum(
    py: Python<'_>,
    snapshot: &PySnapshot,
    options_json: String,
    inventory: Option<&Bound<'_, PyAny>>,
) -> PyResult<MaintenanceOutput> {
    let stream = inventory.map(import_stream).transpose()?;
    let core = snapshot.core().clone();
    let (json, done) = wait_settled(py, move |cancel| {
        let inventory = stream.map(|stream| {
            let rows = stream.map(|batch| {
                batch
                    .map_err(|e| Error::invalid(format!("the inventory cannot be read: {e}")))
                    .and_then(|batch| inventory_files(&batch))
            });
            Box::new(rows.flat_map(|rows| match rows {
                Ok(rows) => rows.into_iter().map(Ok).collect::<Vec<_>>(),
                Err(error) => vec![Err(error)],
            })) as FileInventory
        });
        let done = maintain::vacuum(&core, &parse_options(&options_json)?, inventory, cancel)?;
        Ok((to_json(&done)?, done.done))
    })?;
    Ok((
        report_warnings(py, done)?.map(|core| snapshot.with_core(core)),
        json,
    ))
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
    options_json: String,
) -> PyResult<MaintenanceOutput> {
    let core = snapshot.core().clone();
    let (json, done) = wait_settled(py, move |cancel| {
        let done = maintain::restore(&core, &parse_options(&options_json)?, cancel)?;
        Ok((to_json(&done)?, done.done))
    })?;
    Ok((
        report_warnings(py, done)?.map(|core| snapshot.with_core(core)),
        json,
    ))
}

/// Removes missing files from the log.
#[pyfunction]
pub(super) fn repair(
    py: Python<'_>,
    snapshot: &PySnapshot,
    options_json: String,
) -> PyResult<MaintenanceOutput> {
    let core = snapshot.core().clone();
    let (json, done) = wait_settled(py, move |cancel| {
        let done = maintain::repair(&core, &parse_options(&options_json)?, cancel)?;
        Ok((to_json(&done)?, done.done))
    })?;
    Ok((
        report_warnings(py, done)?.map(|core| snapshot.with_core(core)),
        json,
    ))
}

/// Writes symlink manifests.
#[pyfunction]
pub(super) fn generate(py: Python<'_>, snapshot: &PySnapshot) -> PyResult<String> {
    let core = snapshot.core().clone();
    wait_settled(py, move |cancel| {
        to_json(&manifest::generate(&core, cancel)?)
    })
}

/// Creates a table at `uri` that shares a snapshot's files.
#[pyfunction]
#[pyo3(signature = (snapshot, uri, options_json, storage_options=None))]
pub(super) fn clone_table(
    py: Python<'_>,
    snapshot: &PySnapshot,
    uri: String,
    options_json: String,
    storage_options: Option<HashMap<String, String>>,
) -> PyResult<String> {
    let core = snapshot.core().clone();
    let (json, done) = wait_settled(py, move |cancel| {
        let log = open_log(
            &uri,
            None,
            storage_options.unwrap_or_default(),
            &HashMap::new(),
            LogTailSource::default(),
        )?;
        let done = maintain::clone(&core, log, &parse_options(&options_json)?, cancel)?;
        Ok((to_json(&done)?, done.done))
    })?;
    report_warnings(py, done)?;
    Ok(json)
}

/// Creates a table from the Parquet files at `uri`.
#[pyfunction]
#[pyo3(signature = (uri, options_json, storage_options=None))]
pub(super) fn convert_to_delta(
    py: Python<'_>,
    uri: String,
    options_json: String,
    storage_options: Option<HashMap<String, String>>,
) -> PyResult<String> {
    let (json, done) = wait_settled(py, move |cancel| {
        let log = open_log(
            &uri,
            None,
            storage_options.unwrap_or_default(),
            &HashMap::new(),
            LogTailSource::default(),
        )?;
        let done = maintain::convert(log, &parse_options(&options_json)?, cancel)?;
        Ok((to_json(&done)?, done.done))
    })?;
    report_warnings(py, done)?;
    Ok(json)
}
