//! The location of an error in a table, its code and its parameters.

use std::fmt;

use super::code::ErrorCode;
use super::redaction::{RedactedText, shown};

/// The location of an error in a table, its code and its parameters. Every part is optional;
/// [`fmt::Display`] shows the known parts of the location.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorContext {
    /// File, as a path relative to the table or a URL without credentials.
    pub file: Option<String>,
    /// Table version.
    pub version: Option<i64>,
    /// Line of a text file, counted from 1.
    pub line: Option<u64>,
    /// Column of the table.
    pub column: Option<String>,
    /// The code, if it is a more specific one than that of the variant.
    pub(super) code: Option<ErrorCode>,
    /// The parameters of the code by name.
    pub(super) parameters: Vec<(&'static str, String)>,
}

impl fmt::Display for ErrorContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if let Some(file) = &self.file {
            write!(f, "in {}", RedactedText(file))?;
            separator = ", ";
        }
        if let Some(version) = self.version {
            write!(f, "{separator}version {version}")?;
            separator = ", ";
        }
        if let Some(line) = self.line {
            write!(f, "{separator}line {line}")?;
            separator = ", ";
        }
        if let Some(column) = &self.column {
            write!(f, "{separator}column `{}`", RedactedText(column))?;
        }
        Ok(())
    }
}

impl ErrorContext {
    pub(super) fn has_location(&self) -> bool {
        self.file.is_some()
            || self.version.is_some()
            || self.line.is_some()
            || self.column.is_some()
    }

    /// The code, if it is a more specific one than that of the variant.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        self.code
    }

    /// Sets the code and its parameters, which are shown as external text.
    pub(super) fn set_code(
        &mut self,
        code: ErrorCode,
        parameters: &[(&'static str, &dyn fmt::Display)],
    ) {
        self.code = Some(code);
        self.parameters = parameters
            .iter()
            .map(|(name, value)| (*name, shown(&value.to_string())))
            .collect();
    }
}
