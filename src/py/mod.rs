//! The Python extension `deltafast._core`: arguments in, one call of the core, results out.
//!
//! Nothing here decides anything about Delta. Every call that can take long goes through
//! [`runtime::wait`].

mod arrow;
mod catalog;
mod checkpoint;
mod commits;
mod error;
mod files;
mod job;
mod json;
mod maintain;
mod runtime;
mod snapshot;
mod store;
mod table;
mod write;

use std::ffi::{c_int, c_long};

use pyo3::prelude::*;

use arrow::{ArrowBatch, ArrowSchemaExport, ArrowStream};
use snapshot::Snapshot;

/// Batches are allocated on one thread and freed on another by the hundred megabytes, which the
/// system's allocator answers with a system call and a page fault each. Version 2 of mimalloc:
/// version 3 ties its main heap to the thread that loads the extension, and every other thread
/// crashes once that one has ended.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Milliseconds after which the allocator gives back memory that nobody uses. By itself it waits a
/// second, and what a job leaves on one thread is held beside what the next one needs on another: a
/// process of many commits grew by that. At once costs a scan two fifths more time.
const PURGE_DELAY: c_long = 100;

fn set_purge_delay() {
    /// Its number in `mi_option_t`.
    const MI_OPTION_PURGE_DELAY: c_int = 15;
    unsafe extern "C" {
        fn mi_option_set_default(option: c_int, value: c_long);
    }
    // SAFETY: the function of the allocator that is linked; it refuses numbers that it does not
    // know, and leaves alone what the environment sets (`MIMALLOC_PURGE_DELAY`).
    unsafe { mi_option_set_default(MI_OPTION_PURGE_DELAY, PURGE_DELAY) }
}

#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    set_purge_delay();
    module.add_class::<Snapshot>()?;
    module.add_class::<commits::Commits>()?;
    module.add_class::<commits::CommitFiles>()?;
    module.add_class::<ArrowStream>()?;
    module.add_class::<ArrowBatch>()?;
    module.add_class::<ArrowSchemaExport>()?;
    module.add_function(wrap_pyfunction!(snapshot::is_deltatable, module)?)?;
    module.add_function(wrap_pyfunction!(arrow::evaluate, module)?)?;
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
    module.add_function(wrap_pyfunction!(store::expand_address, module)?)?;
    module.add_function(wrap_pyfunction!(store::is_url, module)?)?;
    module.add_function(wrap_pyfunction!(store::option_warnings, module)?)?;
    module.add_function(wrap_pyfunction!(write::write_files, module)?)?;
    module.add_class::<table::TableWrite>()?;
    module.add_class::<table::TableMerge>()?;
    module.add_class::<job::ChangeJob>()?;
    module.add_class::<job::OptimizeJob>()?;
    module.add_function(wrap_pyfunction!(job::abandon_folders, module)?)?;
    module.add_class::<files::Files>()?;
    module.add_class::<files::FileUpload>()?;
    module.add_function(wrap_pyfunction!(table::create_table, module)?)?;
    module.add_function(wrap_pyfunction!(table::demands, module)?)?;
    module.add_function(wrap_pyfunction!(table::demands_of, module)?)?;
    module.add_function(wrap_pyfunction!(table::alter, module)?)?;
    module.add_function(wrap_pyfunction!(table::check_retention, module)?)?;
    module.add_function(wrap_pyfunction!(table::drop_feature, module)?)?;
    module.add_function(wrap_pyfunction!(table::delete, module)?)?;
    module.add_function(wrap_pyfunction!(table::update, module)?)?;
    module.add_class::<table::Counter>()?;
    module.add_function(wrap_pyfunction!(table::optimize, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(build_profile, module)?)?;
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
