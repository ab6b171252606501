//! deltafast: Delta Lake tables of any size.

pub mod dv;
pub mod error;
pub mod exec;
pub mod expr;
pub mod history;
pub mod log;
pub mod parse;
pub mod pq;
pub mod protocol;
pub mod prune;
pub mod reconcile;
pub mod scan;
pub mod snapshot;
pub mod store;

#[cfg(feature = "python")]
mod py;
