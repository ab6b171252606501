//! The crate's only error type.
//!
//! Variants correspond to the reactions that are possible to a failure, never to the places that
//! can fail. Every error names what is wrong, where (file, version, line, column) and, where
//! possible, what to do: one line, no debug dumps, no credentials. There is deliberately no
//! `Generic(String)`.

//!
//! Every error has a [`code`](Error::code), which is stable, and parameters by name: programs and
//! the surfaces branch on these, never on a message, which is for people and free to change. A
//! message names options of a call by [`CallOption`]; each surface spells them in its own way.

mod call_option;
mod code;
mod context;
mod kinds;
mod redaction;
pub(crate) mod variants;

pub use call_option::{CallOption, spell};
pub use code::ErrorCode;
pub use context::ErrorContext;
pub use kinds::{ConflictKind, CorruptionKind, ExhaustedResource, NotFoundKind};
pub use redaction::shown;
pub(crate) use variants::invariant;
pub use variants::{Error, Result, ResultExt};
