//! The closed typed expression tree and its evaluator: JSON from the binder -> [`BoundExpr`] -> Arrow
//! arrays.
//!
//! The binder (Python) resolves names, inserts every implicit cast and decides every result type.
//! What arrives here is a tree in which nothing is left to guess: a name from [`Function`]'s table,
//! arguments of exactly the types that function takes, Spark's ANSI switch and a time zone. What
//! the tree cannot say is refused by name while it is read, never while rows flow and never by an
//! approximation.
//!
//! The meaning is Spark SQL's: three-valued logic, `NaN` equal to itself and greater than
//! everything, `-0.0` equal to `0.0`, text compared by bytes and measured in code points, Java's
//! number formats, the proleptic Gregorian calendar.
//!
//! Rejected: handing the text to another engine's SQL (the same names mean other things there), and
//! DataFusion's physical expressions (their casts and their null and error rules are not Spark's).
//!
//! Stages: [`tree`] (JSON -> tree), [`eval`] (tree x batch -> array). `prune` reads the same tree a
//! second way.

pub mod eval;
pub mod function;
pub mod scalar;
pub mod text;
pub mod tree;

pub use function::Function;
pub use scalar::Scalar;
pub use tree::{BoundExpr, CastMode, Expr, identifier};
