//! The kinds of missing objects, damaged files, exhausted resources and conflicts.

use super::code::ErrorCode;

/// The kind of object that was not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotFoundKind {
    /// There is no Delta table at the location.
    Table,
    /// The table exists, but not the requested version.
    Version,
    /// A file in the log does not exist.
    DataFile,
    /// Any other object.
    Object,
}

/// The kind of damaged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CorruptionKind {
    /// The transaction log.
    Log,
    /// A data file or a deletion vector.
    Data,
}

/// A resource that a process can exhaust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExhaustedResource {
    /// Memory.
    Memory,
    /// Threads.
    Threads,
    /// File descriptors: open files and connections.
    FileDescriptors,
}

impl ExhaustedResource {
    /// The name, which is also that of the exception's attribute.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Threads => "threads",
            Self::FileDescriptors => "file descriptors",
        }
    }
}

/// The reason that a commit conflicts with an earlier one by another writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ConflictKind {
    /// It added files that this transaction should have read.
    ConcurrentAppend,
    /// It removed files that this transaction read.
    ConcurrentDeleteRead,
    /// It removed files that this transaction removes too.
    ConcurrentDeleteDelete,
    /// It wrote an application transaction, or a metadata domain, that this one depends on.
    ConcurrentTransaction,
    /// It changed the table's metadata.
    MetadataChanged,
    /// It changed the table's protocol.
    ProtocolChanged,
    /// All attempts met other commits, or one after which the transaction cannot be retried.
    ConcurrentWrite,
}

impl ConflictKind {
    /// The code of errors about it.
    #[must_use]
    pub fn code(self) -> ErrorCode {
        match self {
            Self::ConcurrentAppend => ErrorCode::ConcurrentAppend,
            Self::ConcurrentDeleteRead => ErrorCode::ConcurrentDeleteRead,
            Self::ConcurrentDeleteDelete => ErrorCode::ConcurrentDeleteDelete,
            Self::ConcurrentTransaction => ErrorCode::ConcurrentTransaction,
            Self::MetadataChanged => ErrorCode::MetadataChanged,
            Self::ProtocolChanged => ErrorCode::ProtocolChanged,
            Self::ConcurrentWrite => ErrorCode::ConcurrentWrite,
        }
    }

    /// The name, which is also the stem of the exception's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ConcurrentAppend => "ConcurrentAppend",
            Self::ConcurrentDeleteRead => "ConcurrentDeleteRead",
            Self::ConcurrentDeleteDelete => "ConcurrentDeleteDelete",
            Self::ConcurrentTransaction => "ConcurrentTransaction",
            Self::MetadataChanged => "MetadataChanged",
            Self::ProtocolChanged => "ProtocolChanged",
            Self::ConcurrentWrite => "ConcurrentWrite",
        }
    }
}
