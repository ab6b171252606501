//! The extension module: what Python imports, and the allocator.

use super::arrow;
use super::arrow::{ArrowBatch, ArrowSchemaExport, ArrowStream, ArrowTable};
use super::checkpoint;
use super::commits;
use super::credentials;
use super::expressions;
use super::files;
use super::job;
use super::logging;
use super::maintain;
use super::snapshot;
use super::snapshot::PySnapshot;
use super::store;
use super::table;
use super::write;
use pyo3::prelude::*;
use std::ffi::{c_int, c_long};

/// Batches are allocated on one thread and freed on another, hundreds of megabytes in total; the
/// system's allocator needs a system call and a page fault for each. Version 2 of mimalloc: version
/// 3 ties its main heap to the thread that loads the extension, and every other thread crashes once
/// that thread has ended.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Milliseconds after which the allocator returns unused memory to the system. The default is a
/// second, in which memory that a job freed on one thread is held in addition to the memory that
/// the next job needs on another one: processes with many commits grew. Returning it immediately
/// slows a scan down by two fifths.
const PURGE_DELAY: c_long = 100;

fn set_purge_delay() {
    /// Its number in `mi_option_t`.
    const MI_OPTION_PURGE_DELAY: c_int = 15;
    unsafe extern "C" {
        fn mi_option_set_default(option: c_int, value: c_long);
    }
    // SAFETY: a function of the linked allocator; it ignores unknown option numbers, and options
    // that are set in the environment (`MIMALLOC_PURGE_DELAY`).
    unsafe { mi_option_set_default(MI_OPTION_PURGE_DELAY, PURGE_DELAY) }
}

#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    set_purge_delay();
    module.add_class::<PySnapshot>()?;
    module.add_class::<commits::Commits>()?;
    module.add_class::<commits::CommitFiles>()?;
    module.add_class::<ArrowStream>()?;
    module.add_class::<ArrowBatch>()?;
    module.add_class::<ArrowTable>()?;
    module.add_class::<ArrowSchemaExport>()?;
    module.add_function(wrap_pyfunction!(snapshot::is_deltatable, module)?)?;
    module.add_function(wrap_pyfunction!(expressions::evaluate, module)?)?;
    module.add_function(wrap_pyfunction!(expressions::cast_constants, module)?)?;
    module.add_function(wrap_pyfunction!(arrow::python_batches, module)?)?;
    module.add_function(wrap_pyfunction!(arrow::cast_stream, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint::create_checkpoint, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint::write_checksum, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint::cleanup_metadata, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint::compact_logs, module)?)?;
    module.add_function(wrap_pyfunction!(maintain::vacuum, module)?)?;
    module.add_function(wrap_pyfunction!(maintain::restore, module)?)?;
    module.add_function(wrap_pyfunction!(maintain::repair, module)?)?;
    module.add_function(wrap_pyfunction!(maintain::generate, module)?)?;
    module.add_function(wrap_pyfunction!(maintain::clone_table, module)?)?;
    module.add_function(wrap_pyfunction!(maintain::convert_to_delta, module)?)?;
    module.add_function(wrap_pyfunction!(store::check_store, module)?)?;
    module.add_function(wrap_pyfunction!(logging::take_requests, module)?)?;
    module.add_function(wrap_pyfunction!(store::expand_address, module)?)?;
    module.add_function(wrap_pyfunction!(store::store_schemes, module)?)?;
    module.add_function(wrap_pyfunction!(store::is_url, module)?)?;
    module.add_function(wrap_pyfunction!(store::option_warnings, module)?)?;
    module.add_function(wrap_pyfunction!(write::write_files, module)?)?;
    module.add_class::<credentials::PyCredentialSource>()?;
    module.add_class::<table::PyCommitResult>()?;
    module.add_class::<table::TableWrite>()?;
    module.add_class::<table::TableMerge>()?;
    module.add_class::<job::ChangeJob>()?;
    module.add_class::<job::OptimizeJob>()?;
    module.add_function(wrap_pyfunction!(job::abandon_folders, module)?)?;
    module.add_class::<files::Files>()?;
    module.add_class::<files::FileUpload>()?;
    module.add_function(wrap_pyfunction!(table::create_table, module)?)?;
    module.add_function(wrap_pyfunction!(table::new_table_constraints, module)?)?;
    module.add_function(wrap_pyfunction!(table::table_constraints, module)?)?;
    module.add_function(wrap_pyfunction!(table::alter, module)?)?;
    module.add_function(wrap_pyfunction!(table::check_retention, module)?)?;
    module.add_function(wrap_pyfunction!(table::retention_ms, module)?)?;
    module.add_function(wrap_pyfunction!(table::parse_byte_size, module)?)?;
    module.add_function(wrap_pyfunction!(table::drop_feature, module)?)?;
    module.add_function(wrap_pyfunction!(table::delete, module)?)?;
    module.add_function(wrap_pyfunction!(table::update, module)?)?;
    module.add_class::<table::Counter>()?;
    module.add_function(wrap_pyfunction!(table::optimize, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(build_profile, module)?)?;
    module.add_function(wrap_pyfunction!(expressions::function_names, module)?)?;
    module.add_function(wrap_pyfunction!(expressions::sql_functions, module)?)?;
    Ok(())
}

/// The version of the core.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// `release`, or `debug` for a slow development build.
#[pyfunction]
fn build_profile() -> &'static str {
    if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    }
}
