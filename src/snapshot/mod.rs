//! A version of a table. A snapshot is immutable; protocol and metadata are loaded when it is
//! opened, files on demand.
//!
//! Opening reads the checkpoint hint, a listing of the log, and the newest protocol and metadata:
//! from the version checksum where there is one, else from the commits after the checkpoint, else
//! from two columns of the checkpoint. A newer snapshot is made from an older one by reading only
//! the commits in between.
//!
//! Checkpoints and compactions are treated as hints, too: if one turns out to be damaged while it
//! is read, the work starts over without it, in the last resort by replaying all commits. A
//! checkpoint that contradicts a version checksum or the hint is compared with the commits, see
//! `arbitration`.
//!
//! Protocol: "Delta Table Specification", "Requirements for Readers". Cost of opening: at most four
//! requests with a checkpoint and a version checksum.

mod arbitration;
mod commit_checks;
mod commit_fingerprint;
mod commit_tail;
mod count_check;
mod files;
mod identity;
mod log_damage;
mod newer_versions;
mod segment_cell;
mod snapshot_state;
mod snapshot_warnings;
mod table_reader;

pub use commit_tail::in_commit_timestamp;
pub use files::SnapshotFiles;
pub use snapshot_state::{ReadOptions, Snapshot};
