//! Conversion between JSON from Python and the core's serializable types.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Parses options; an error says that they are invalid.
pub(super) fn parse_options<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|e| Error::invalid(format!("unknown options: {e}")))
}

/// Parses a value; an error begins with `what`, its description.
pub(super) fn from_json<T: DeserializeOwned>(what: &str, json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|e| Error::invalid(format!("{what}: {e}")))
}

pub(super) fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|e| Error::internal(format!("a result cannot be written as JSON: {e}")))
}
