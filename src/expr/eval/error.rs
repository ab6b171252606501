//! What stops an evaluation, without the expression that raised it.

use std::fmt;

use arrow_array::ArrayRef;
use arrow_schema::{ArrowError, DataType as Arrow};

use crate::error::{Error, ErrorCode, shown};

/// The error that ends an evaluation.
#[derive(Debug)]
pub(crate) enum EvalError {
    /// A value of some row has no result. The error receives the node that raised it while it
    /// propagates.
    Value(Box<ValueFault>),
    /// The values exceed the memory limit; `what` is the node with these values, once it is known.
    TooLarge {
        what: Option<String>,
        of_constants: bool,
    },
    /// Any other error.
    Error(Error),
}

/// Why a value has no result.
#[derive(Debug)]
pub(crate) struct ValueFault {
    /// The code, which begins the message unless it is that of any invalid argument.
    pub(crate) code: ErrorCode,
    parameters: Vec<(&'static str, String)>,
    what: String,
}

impl ValueFault {
    /// The error, with the expression that raised it if that is known.
    pub(crate) fn into_error(mut self, expr: Option<&dyn fmt::Display>) -> Error {
        let expression = expr.map_or_else(String::new, |expr| shown(&expr.to_string()));
        let place = if expression.is_empty() {
            String::new()
        } else {
            format!(", in `{expression}`")
        };
        let what = self.what;
        if self.code.parameters().contains(&"expression") {
            self.parameters.push(("expression", expression));
        }
        if matches!(
            self.code,
            ErrorCode::InvalidArgument | ErrorCode::MemoryExhausted
        ) {
            return Error::invalid(format!("{what}{place}")).with_code(self.code, &[]);
        }
        let parameters: Vec<(&'static str, &dyn fmt::Display)> = self
            .parameters
            .iter()
            .map(|(name, value)| (*name, value as &dyn fmt::Display))
            .collect();
        Error::invalid(format!("[{}] {what}{place}", self.code.name()))
            .with_code(self.code, &parameters)
    }
}

impl EvalError {
    /// [`EvalError::Value`] with a code that has no parameters.
    pub(crate) fn value(code: ErrorCode, what: impl Into<String>) -> Self {
        Self::value_with(code, &[], what)
    }

    /// [`EvalError::Value`].
    pub(crate) fn value_with(
        code: ErrorCode,
        parameters: &[(&'static str, &dyn fmt::Display)],
        what: impl Into<String>,
    ) -> Self {
        Self::Value(Box::new(ValueFault {
            code,
            parameters: parameters
                .iter()
                .map(|(name, value)| (*name, value.to_string()))
                .collect(),
            what: what.into(),
        }))
    }
}

impl From<Error> for EvalError {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<ArrowError> for EvalError {
    fn from(error: ArrowError) -> Self {
        Self::Error(error.into())
    }
}

pub(crate) type EvalResult<T = ArrayRef> = std::result::Result<T, EvalError>;

/// The error for a value of another type than the tree declares: the binder and the batch disagree
/// in a way that [`super::canonical`] should have detected.
pub(crate) fn unexpected(found: &Arrow) -> EvalError {
    Error::internal(format!(
        "the evaluator met an unexpected array of type {found}"
    ))
    .into()
}
