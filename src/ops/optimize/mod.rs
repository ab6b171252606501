//! OPTIMIZE and REORG: rewrites files with the same rows: small files are combined into larger
//! ones, partitions are laid out in Z-order, clustered tables along the curve of their columns
//! (`clustering`), files without rows and columns that were deleted (`purge`), or in a form that
//! Iceberg reads (`iceberg`).
//!
//! Files of a partition are packed in the order of their creation, so that rows that were written
//! together stay together. Files that are large enough are kept, unless deletion vectors delete a
//! twentieth of their rows. No row changes: concurrent appends and changes of other files do not
//! conflict, and of two runs over the same files the second one fails.
//!
//! Protocol: "Requirements for Writers" (`dataChange`), "Writer Requirements for Row Tracking".
//! Metrics and parameters are those of delta-spark. Cost: one pass over the files that are packed.

pub(super) mod auto_compact;
pub(super) mod clustering;
pub(super) mod curve_layout;
pub(super) mod optimize_options;
pub(super) mod optimize_plan;
pub(super) mod optimize_run;
pub(super) mod purge;
