//! The Python extension `deltafast._core`: converts arguments, calls the core, and converts
//! results.
//!
//! It contains no logic of Delta. Every call that can take long goes through [`runtime::wait`].

mod arrow;
mod catalog;
mod checkpoint;
mod commits;
mod credentials;
mod error;
mod expressions;
mod extension_module;
mod files;
mod guarded_call;
mod job;
mod logging;
mod maintain;
mod open;
mod runtime;
mod shared_batches;
mod snapshot;
mod store;
mod table;
mod values;
mod write;
