//! The closed typed expression tree and its evaluator: [`BoundTree`] of the binder ->
//! [`BoundExpr`] -> Arrow arrays.
//!
//! The binder (Python) resolves names, inserts every implicit cast and decides every result type.
//! The tree leaves nothing to guess: it has names from [`Function`]'s table, arguments of exactly
//! the types that the function takes, Spark's ANSI switch and a time zone. An expression that the
//! tree cannot represent is refused by name while it is read, never during evaluation and never by
//! an approximation.
//!
//! The semantics are Spark SQL's: three-valued logic, `NaN` equal to itself and greater than
//! everything, `-0.0` equal to `0.0`, strings compared by bytes and measured in code points, Java's
//! number formats, the proleptic Gregorian calendar.
//!
//! Rejected: passing the SQL to another engine (the same names have other meanings there), and
//! DataFusion's physical expressions (their casts and their null and error rules are not Spark's).
//!
//! Stages: [`tree`] (what the binder sends -> tree), [`eval`] (tree x batch -> array). `prune` evaluates the same
//! tree over statistics.

mod bound_tree;
mod build;
pub mod eval;
pub(crate) mod function;
pub(crate) mod in_set;
pub(crate) mod scalar;
pub(crate) mod signature;
pub(crate) mod text;
pub(crate) mod tree;

pub use bound_tree::{
    BoundTree, CallNode, CastNode, ColumnNode, DataTypeJson, ExpressionNode, InListNode,
    LiteralNode,
};
pub use function::{Function, SqlFunction, sql_functions};
pub use scalar::Scalar;
pub use tree::{BoundExpr, CastMode, Expr, identifier};
