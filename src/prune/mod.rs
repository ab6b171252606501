//! PRUNE: the expression tree evaluated over statistics. (tree, statistics of files) -> which files
//! may hold matching rows.
//!
//! For every file the possible outcomes of its rows are three bits (true, false, null), each a
//! superset of the real outcomes. NOT swaps the first two, AND and OR combine them, and bounds
//! decide every leaf; `may_match` reads the first bit. So pruning needs no rewriting of NOT, and an
//! unknown part can only make the answer less selective. The evaluator itself computes expressions of partition values alone exactly.
//!
//! Statistics may be absent, null, wide or truncated; all of that means "unknown", never an error:
//! statistics are hints. A file is dropped only when its bounds prove that it has no matching rows.
//!
//! Rejected: rewriting a predicate into another predicate over `min`/`max` columns, as the other
//! implementations do: it has to treat NOT, null and `NaN` case by case.
//!
//! Protocol: "Per-file Statistics", "Partition Value Serialization". Cost: a few kernels per leaf
//! over as many rows as files.

mod evaluator;
mod may_match;
mod outcomes;
mod range;
mod statistics;
#[cfg(test)]
mod tests;

pub use may_match::{may_match, partition_only};
pub use statistics::PruningStatistics;
