//! The types of the Delta protocol: pure data, no input or output.
//!
//! Names follow the protocol text; the doc of each file names its section.

pub mod action;
pub mod calendar;
pub mod canonical_json;
pub mod commit_line;
pub mod data_path;
pub mod duration;
pub mod evolution;
pub mod features;
mod field_list;
pub(crate) mod iceberg;
pub mod log_path;
mod nested_json;
pub mod partition_value;
pub mod properties;
pub mod schema;
pub(crate) mod schema_change;
pub(crate) mod stored_expressions;
pub mod table;
pub mod time;
