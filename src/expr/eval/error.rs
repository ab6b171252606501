//! What stops an evaluation, without the expression that raised it.

use arrow_array::ArrayRef;
use arrow_schema::{ArrowError, DataType as Arrow};

use crate::error::Error;

/// The error that ends an evaluation.
#[derive(Debug)]
pub(crate) enum EvalError {
    /// A value of some row has no result. The error receives the node that raised it while it
    /// propagates.
    Value(String),
    /// The values exceed the memory limit; `what` is the node with these values, once it is known.
    TooLarge {
        what: Option<String>,
        of_constants: bool,
    },
    /// Any other error.
    Error(Error),
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
