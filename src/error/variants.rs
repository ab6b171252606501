//! The error type, its constructors, and the traits that add locations.

use std::borrow::Cow;
use std::fmt;
use std::io;

use super::call_option::spell;
use super::code::ErrorCode;
use super::context::ErrorContext;
use super::kinds::{ConflictKind, CorruptionKind, ExhaustedResource, NotFoundKind};
use super::redaction::{RedactedText, shown};

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// All errors, by the possible reactions of the caller. `what` is the message, `context` the
/// location.
#[allow(
    missing_docs,
    reason = "a variant's fields say by their names what they hold"
)]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// A requested object does not exist.
    NotFound {
        kind: NotFoundKind,
        what: String,
        context: Box<ErrorContext>,
    },
    /// Bytes that violate the protocol or their own format.
    Corrupt {
        kind: CorruptionKind,
        what: String,
        context: Box<ErrorContext>,
    },
    /// A valid request or table that this version of deltafast does not support.
    Unsupported {
        feature: Option<String>,
        what: String,
        context: Box<ErrorContext>,
    },
    /// An argument of the caller is invalid.
    Invalid {
        what: String,
        context: Box<ErrorContext>,
    },
    /// Data and schema do not match.
    SchemaMismatch {
        what: String,
        expected: String,
        found: String,
        context: Box<ErrorContext>,
    },
    /// A row violates a constraint of the table: `constraint` names it.
    ConstraintViolated {
        constraint: String,
        what: String,
        context: Box<ErrorContext>,
    },
    /// The change data feed was not recorded for requested versions.
    NotRecorded {
        what: String,
        context: Box<ErrorContext>,
    },
    /// Another writer's commit came first and conflicts with this one. Nothing was committed; the
    /// operation may be retried.
    CommitFailed {
        conflict: ConflictKind,
        what: String,
        context: Box<ErrorContext>,
    },
    /// The outcome of the commit could not be determined. The caller must check the log before a
    /// retry.
    CommitUnknown {
        what: String,
        context: Box<ErrorContext>,
    },
    /// The store refused a request or failed.
    Storage {
        what: String,
        retryable: bool,
        context: Box<ErrorContext>,
    },
    /// The process exhausted a resource whose limit can be raised.
    Resource {
        resource: ExhaustedResource,
        what: String,
        context: Box<ErrorContext>,
    },
    /// The caller cancelled the work.
    Cancelled,
    /// A defect of deltafast.
    Internal {
        what: String,
        context: Box<ErrorContext>,
    },
}

impl Error {
    /// [`Error::NotFound`].
    pub fn not_found(kind: NotFoundKind, what: impl Into<String>) -> Self {
        Self::NotFound {
            kind,
            what: what.into(),
            context: Box::default(),
        }
    }

    /// [`Error::Corrupt`] of the log.
    pub fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt {
            kind: CorruptionKind::Log,
            what: what.into(),
            context: Box::default(),
        }
    }

    /// [`Error::Corrupt`] of a data file or a deletion vector.
    pub fn corrupt_data(what: impl Into<String>) -> Self {
        Self::Corrupt {
            kind: CorruptionKind::Data,
            what: what.into(),
            context: Box::default(),
        }
    }

    /// [`Error::Unsupported`] without a table feature.
    pub fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported {
            feature: None,
            what: what.into(),
            context: Box::default(),
        }
    }

    /// [`Error::Unsupported`] because of a table feature.
    pub fn unsupported_feature(feature: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Unsupported {
            feature: Some(feature.into()),
            what: what.into(),
            context: Box::default(),
        }
    }

    /// [`Error::Invalid`].
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid {
            what: what.into(),
            context: Box::default(),
        }
    }

    /// [`Error::SchemaMismatch`].
    pub fn schema_mismatch(
        what: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::SchemaMismatch {
            what: what.into(),
            expected: expected.into(),
            found: found.into(),
            context: Box::default(),
        }
    }

    /// [`Error::ConstraintViolated`].
    pub fn constraint_violated(constraint: impl Into<String>, what: impl Into<String>) -> Self {
        Self::ConstraintViolated {
            constraint: constraint.into(),
            what: what.into(),
            context: Box::default(),
        }
    }

    /// [`Error::NotRecorded`].
    pub fn not_recorded(what: impl Into<String>) -> Self {
        Self::NotRecorded {
            what: what.into(),
            context: Box::default(),
        }
    }

    /// [`Error::Storage`].
    pub fn storage(what: impl Into<String>, retryable: bool) -> Self {
        Self::Storage {
            what: what.into(),
            retryable,
            context: Box::default(),
        }
    }

    /// [`Error::Resource`]: `what` cannot allocate this many bytes of memory.
    #[must_use]
    pub fn no_memory(what: &str, bytes: u64) -> Self {
        Self::exhausted_memory(&format!(
            "{what} takes {bytes} bytes that the process cannot have"
        ))
    }

    /// The error for a library's failure that has this text, if memory was exhausted in it:
    /// Zstandard's own words for that, and those of the panic of its bindings.
    #[must_use]
    pub(crate) fn library_without_memory(text: &str) -> Option<Self> {
        [
            "Allocation error : not enough memory",
            "zstd returned null pointer",
        ]
        .iter()
        .any(|words| text.contains(words))
        .then(|| Self::exhausted_memory("Zstandard takes memory that the process cannot have"))
    }

    fn exhausted_memory(what: &str) -> Self {
        let what = format!(
            "no memory left: {what}; raise its limit (`ulimit -v`, the control group's), or lower DELTAFAST_MEMORY_LIMIT, so that less is decoded ahead"
        );
        Self::Resource {
            resource: ExhaustedResource::Memory,
            what,
            context: Box::default(),
        }
    }

    /// [`Error::Resource`]: `what` takes this many bytes, which is more than the process's memory
    /// limit allows.
    #[must_use]
    pub fn over_budget(what: &str, bytes: u64) -> Self {
        let what = format!(
            "{what} takes {bytes} bytes, more than may be held at once; work on fewer rows at once, or raise DELTAFAST_MEMORY_LIMIT"
        );
        Self::Resource {
            resource: ExhaustedResource::Memory,
            what,
            context: Box::default(),
        }
    }

    /// [`Error::Resource`]: `what` takes this many bytes, more than the process's memory limit.
    #[must_use]
    pub fn over_memory_limit(what: &str, bytes: u64, limit: u64) -> Self {
        let what = format!(
            "{what} takes {bytes} bytes at once, more than the memory limit of {limit} bytes; raise DELTAFAST_MEMORY_LIMIT to read it"
        );
        Self::Resource {
            resource: ExhaustedResource::Memory,
            what,
            context: Box::default(),
        }
    }

    /// [`Error::Resource`]: the system refuses another thread.
    #[must_use]
    pub fn no_thread(error: &dyn fmt::Display) -> Self {
        let what = format!(
            "no thread can be started: {error}; raise the limit of processes (`ulimit -u`, the control group's `pids.max`) or of memory for their stacks (`ulimit -v`), or use fewer (DELTAFAST_THREADS)"
        );
        Self::Resource {
            resource: ExhaustedResource::Threads,
            what,
            context: Box::default(),
        }
    }

    /// [`Error::Resource`] for a system error about an exhausted resource; `what` needed the
    /// resource.
    #[must_use]
    pub fn exhausted(what: &str, error: &io::Error) -> Option<Self> {
        /// Error numbers that are the same on all Unix systems.
        const ENOMEM: i32 = 12;
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        let (resource, left, advice) = match error.raw_os_error() {
            Some(EMFILE) if cfg!(unix) => (
                ExhaustedResource::FileDescriptors,
                "no file descriptors left",
                "raise the process's limit (`ulimit -n`), or close files and connections",
            ),
            Some(ENFILE) if cfg!(unix) => (
                ExhaustedResource::FileDescriptors,
                "no file descriptors left in the system",
                "raise its limit (`fs.file-max`), or close files and connections",
            ),
            Some(ENOMEM) if cfg!(unix) => (
                ExhaustedResource::Memory,
                "no memory left",
                "raise the process's limit (`ulimit -v`, the control group's)",
            ),
            _ if error.kind() == io::ErrorKind::OutOfMemory => (
                ExhaustedResource::Memory,
                "no memory left",
                "raise the process's limit (`ulimit -v`, the control group's)",
            ),
            _ => return None,
        };
        Some(Self::Resource {
            resource,
            what: format!("{left} for {what}; {advice}"),
            context: Box::default(),
        })
    }

    /// [`Error::CommitFailed`].
    pub fn commit_failed(conflict: ConflictKind, what: impl Into<String>) -> Self {
        Self::CommitFailed {
            conflict,
            what: what.into(),
            context: Box::default(),
        }
    }

    /// [`Error::CommitUnknown`].
    pub fn commit_unknown(what: impl Into<String>) -> Self {
        Self::CommitUnknown {
            what: what.into(),
            context: Box::default(),
        }
    }

    /// [`Error::Internal`].
    pub fn internal(what: impl Into<String>) -> Self {
        Self::Internal {
            what: what.into(),
            context: Box::default(),
        }
    }

    /// Whether a commit that ended with this error may exist all the same: its files must not be
    /// deleted.
    #[must_use]
    pub fn may_be_committed(&self) -> bool {
        // After a defect the outcome is unknown.
        matches!(self, Self::CommitUnknown { .. } | Self::Internal { .. })
    }

    fn edit(mut self, edit: impl FnOnce(&mut ErrorContext)) -> Self {
        match &mut self {
            Self::NotFound { context, .. }
            | Self::Corrupt { context, .. }
            | Self::Unsupported { context, .. }
            | Self::Invalid { context, .. }
            | Self::SchemaMismatch { context, .. }
            | Self::ConstraintViolated { context, .. }
            | Self::NotRecorded { context, .. }
            | Self::CommitFailed { context, .. }
            | Self::CommitUnknown { context, .. }
            | Self::Storage { context, .. }
            | Self::Resource { context, .. }
            | Self::Internal { context, .. } => edit(context),
            Self::Cancelled => {}
        }
        self
    }

    /// Names the file, unless a deeper layer named one already.
    #[must_use]
    pub fn at_file(self, file: impl Into<String>) -> Self {
        self.edit(|p| {
            p.file.get_or_insert_with(|| file.into());
        })
    }

    /// Names the table version, unless a deeper layer named one already.
    #[must_use]
    pub fn at_version(self, version: i64) -> Self {
        self.edit(|p| {
            p.version.get_or_insert(version);
        })
    }

    /// Names the line (from 1), unless a deeper layer named one already.
    #[must_use]
    pub fn at_line(self, line: u64) -> Self {
        self.edit(|p| {
            p.line.get_or_insert(line);
        })
    }

    /// Names the column, unless a deeper layer named one already.
    #[must_use]
    pub fn at_column(self, column: impl Into<String>) -> Self {
        self.edit(|p| {
            p.column.get_or_insert_with(|| column.into());
        })
    }

    /// Gives the error a code that is more specific than that of its variant, with the values of
    /// those of its [`ErrorCode::parameters`] that the variant does not hold.
    #[must_use]
    pub fn with_code(
        self,
        code: ErrorCode,
        parameters: &[(&'static str, &dyn fmt::Display)],
    ) -> Self {
        let error = self.edit(|context| context.set_code(code, parameters));
        debug_assert!(
            code.parameters()
                .iter()
                .all(|name| error.parameters().any(|(known, _)| known == *name)),
            "the parameters of {code:?} are {:?}",
            code.parameters()
        );
        error
    }

    /// The error as one of an argument, with its message, code and parameters: for what the caller
    /// gave in a format that is otherwise read from files.
    #[must_use]
    pub fn into_invalid(self) -> Self {
        let context = ErrorContext {
            code: self.context().and_then(ErrorContext::code),
            parameters: self
                .parameters()
                .map(|(name, value)| (name, value.into_owned()))
                .collect(),
            ..ErrorContext::default()
        };
        Self::Invalid {
            what: self.marked_message(),
            context: Box::new(context),
        }
    }

    /// The family of the message.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.context()
            .and_then(|context| context.code)
            .unwrap_or_else(|| self.code_of_variant())
    }

    fn code_of_variant(&self) -> ErrorCode {
        match self {
            Self::NotFound { kind, .. } => match kind {
                NotFoundKind::Table => ErrorCode::TableNotFound,
                NotFoundKind::Version => ErrorCode::VersionNotFound,
                NotFoundKind::DataFile => ErrorCode::DataFileNotFound,
                NotFoundKind::Object => ErrorCode::ObjectNotFound,
            },
            Self::Corrupt { kind, .. } => match kind {
                CorruptionKind::Log => ErrorCode::CorruptLog,
                CorruptionKind::Data => ErrorCode::CorruptData,
            },
            Self::Unsupported { feature: None, .. } => ErrorCode::Unsupported,
            Self::Unsupported { .. } => ErrorCode::UnsupportedFeature,
            Self::Invalid { .. } => ErrorCode::InvalidArgument,
            Self::SchemaMismatch { .. } => ErrorCode::SchemaMismatch,
            Self::ConstraintViolated { .. } => ErrorCode::ConstraintViolated,
            Self::NotRecorded { .. } => ErrorCode::ChangeDataNotRecorded,
            Self::CommitFailed { conflict, .. } => conflict.code(),
            Self::CommitUnknown { .. } => ErrorCode::CommitUnknown,
            Self::Storage { .. } => ErrorCode::StorageFailed,
            Self::Resource { resource, .. } => match resource {
                ExhaustedResource::Memory => ErrorCode::MemoryExhausted,
                ExhaustedResource::Threads => ErrorCode::ThreadsExhausted,
                ExhaustedResource::FileDescriptors => ErrorCode::FileDescriptorsExhausted,
            },
            Self::Cancelled => ErrorCode::Cancelled,
            Self::Internal { .. } => ErrorCode::Internal,
        }
    }

    /// The parameters of the message by name.
    pub fn parameters(&self) -> impl Iterator<Item = (&'static str, Cow<'_, str>)> {
        let of_variant = match self {
            Self::Unsupported {
                feature: Some(feature),
                ..
            } => vec![("feature", feature)],
            Self::SchemaMismatch {
                expected, found, ..
            } => vec![("expected", expected), ("found", found)],
            Self::ConstraintViolated { constraint, .. } => vec![("constraint", constraint)],
            _ => Vec::new(),
        };
        let of_code = self
            .context()
            .map_or(&[][..], |context| &context.parameters);
        of_variant
            .into_iter()
            .filter(|(name, _)| !of_code.iter().any(|(other, _)| other == name))
            .map(|(name, value)| (name, Cow::Owned(shown(value))))
            .chain(
                of_code
                    .iter()
                    .map(|(name, value)| (*name, Cow::Borrowed(value.as_str()))),
            )
    }

    /// The message, in which options are marked as by
    /// [`CallOption`](super::call_option::CallOption), for a surface that spells them; [`fmt::Display`] shows their names.
    #[must_use]
    pub fn marked_message(&self) -> String {
        MarkedMessage(self).to_string()
    }

    /// The location of the error, as far as known.
    #[must_use]
    pub fn context(&self) -> Option<&ErrorContext> {
        match self {
            Self::NotFound { context, .. }
            | Self::Corrupt { context, .. }
            | Self::Unsupported { context, .. }
            | Self::Invalid { context, .. }
            | Self::SchemaMismatch { context, .. }
            | Self::ConstraintViolated { context, .. }
            | Self::NotRecorded { context, .. }
            | Self::CommitFailed { context, .. }
            | Self::CommitUnknown { context, .. }
            | Self::Storage { context, .. }
            | Self::Resource { context, .. }
            | Self::Internal { context, .. } => Some(context),
            Self::Cancelled => None,
        }
    }

    /// True for an object that does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// True for damage in the log, for which other files of the log may be a substitute.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Self::Corrupt { .. })
    }
}

/// The message with the marks of [`CallOption`](super::call_option::CallOption), for a surface that
/// spells the options.
struct MarkedMessage<'a>(&'a Error);

impl fmt::Display for MarkedMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.0;
        match error {
            Error::NotFound { what, .. }
            | Error::Corrupt { what, .. }
            | Error::Unsupported { what, .. }
            | Error::Invalid { what, .. }
            | Error::ConstraintViolated { what, .. }
            | Error::NotRecorded { what, .. }
            | Error::CommitFailed { what, .. }
            | Error::CommitUnknown { what, .. }
            | Error::Storage { what, .. }
            | Error::Resource { what, .. } => write!(f, "{}", RedactedText(what))?,
            Error::SchemaMismatch {
                what,
                expected,
                found,
                ..
            } => {
                write!(
                    f,
                    "{}: expected {}, found {}",
                    RedactedText(what),
                    RedactedText(expected),
                    RedactedText(found)
                )?;
            }
            Error::Cancelled => f.write_str("cancelled")?,
            Error::Internal { what, .. } => {
                write!(
                    f,
                    "defect in deltafast, please report it: {}",
                    RedactedText(what)
                )?;
            }
        }
        match error.context() {
            // The message already names the missing version.
            Some(_)
                if matches!(
                    error,
                    Error::NotFound {
                        kind: NotFoundKind::Version,
                        ..
                    }
                ) =>
            {
                Ok(())
            }
            Some(context) if context.has_location() => write!(f, " ({context})"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&spell(&self.marked_message()))
    }
}

impl std::error::Error for Error {}

/// Adds a location to an error while it propagates.
pub trait ResultExt<T> {
    /// See [`Error::at_file`].
    ///
    /// # Errors
    /// The same with its context.
    fn at_file(self, file: &str) -> Result<T>;
    /// See [`Error::at_version`].
    ///
    /// # Errors
    /// The same with its context.
    fn at_version(self, version: i64) -> Result<T>;
    /// See [`Error::at_column`].
    ///
    /// # Errors
    /// The same with its context.
    fn at_column(self, column: &str) -> Result<T>;
}

impl<T> ResultExt<T> for Result<T> {
    fn at_file(self, file: &str) -> Result<T> {
        self.map_err(|e| e.at_file(file))
    }

    fn at_version(self, version: i64) -> Result<T> {
        self.map_err(|e| e.at_version(version))
    }

    fn at_column(self, column: &str) -> Result<T> {
        self.map_err(|e| e.at_column(column))
    }
}

/// A failure of an Arrow kernel on valid arrays is a defect of deltafast, unless the kernel reports
/// another cause.
impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Self {
        use arrow_schema::ArrowError as A;
        match error {
            A::ExternalError(inner) => match inner.downcast::<Error>() {
                Ok(own) => *own,
                Err(other) => Self::storage(other.to_string(), false),
            },
            A::ArithmeticOverflow(what)
            | A::CastError(what)
            | A::ComputeError(what)
            | A::ParseError(what) => Self::invalid(what),
            A::DivideByZero => Self::invalid("division by zero"),
            other => Self::internal(other.to_string()),
        }
    }
}

/// Returns [`Error::Internal`] from the function unless a condition holds that only a defect can
/// break: `invariant!(condition, "message {}", argument)`.
macro_rules! invariant {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::error::variants::Error::internal(format!($($message)+)));
        }
    };
}
pub(crate) use invariant;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_with_its_place() {
        let error = Error::corrupt("not JSON:\n\u{1b}[31mred")
            .at_file("_delta_log/00000000000000000003.json")
            .at_version(3)
            .at_line(7);
        assert_eq!(
            error.to_string(),
            "not JSON: \u{fffd}[31mred (in _delta_log/00000000000000000003.json, version 3, line 7)"
        );
    }

    #[test]
    fn the_deepest_place_wins() {
        let error = Error::corrupt("x").at_file("inner").at_file("outer");
        assert_eq!(
            error.context().and_then(|p| p.file.as_deref()),
            Some("inner")
        );
    }

    #[test]
    fn only_what_ran_out_is_a_resource() {
        let of = |number: i32| Error::exhausted("a/file", &io::Error::from_raw_os_error(number));
        for (number, resource, setting) in [
            (24, "file descriptors", "ulimit -n"),
            (23, "file descriptors", "fs.file-max"),
            (12, "memory", "ulimit -v"),
        ] {
            let Some(Error::Resource {
                resource: found,
                what,
                ..
            }) = of(number)
            else {
                panic!("{number}")
            };
            assert_eq!(found.name(), resource);
            assert!(
                what.contains("left") && what.contains("a/file") && what.contains(setting),
                "{what}"
            );
        }
        assert!(of(2).is_none() && of(28).is_none());
        assert!(!Error::no_thread(&"why").to_string().contains("report"));
    }

    #[test]
    fn no_credential_of_a_url_is_shown() {
        let error = Error::storage(
            "cannot reach http://key:secret@host:9000/b/k?X-Amz-Signature=abc, gave up",
            true,
        )
        .at_file("s3://u:p@bucket/x?sig=1");
        assert_eq!(
            error.to_string(),
            "cannot reach http://host:9000/b/k, gave up (in s3://bucket/x)"
        );
        let error = Error::invalid(
            "s3://KEY:SEC/RET@bucket/t and s3://KEY:SECRET/t and http://[::1]:9000/t and http://[::1]/t",
        );
        assert_eq!(
            error.to_string(),
            "s3://bucket/t and s3://KEY/t and http://[::1]:9000/t and http://[::1]/t"
        );
    }
}
