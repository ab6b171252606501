//! The expression that a caller bound, as plain data: [`BoundExpr`](super::BoundExpr) checks it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tree::CastMode;

/// A Delta type, as in `schemaString`: a name, or an object of a nested type.
pub type DataTypeJson = Value;

/// A bound expression: names are resolved, implicit casts are inserted, all types are determined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundTree {
    /// The root.
    pub expr: ExpressionNode,
    /// Whether Spark's ANSI mode is on.
    pub ansi: bool,
    /// The session's time zone.
    pub zone: String,
}

/// A node of a bound expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpressionNode {
    /// A column.
    Column(ColumnNode),
    /// A constant.
    Literal(LiteralNode),
    /// A function of the core.
    Call(CallNode),
    /// A function that only a Spark session evaluates; the core refuses it.
    SessionCall(CallNode),
    /// A conversion.
    Cast(CastNode),
    /// A test of membership.
    InList(InListNode),
}

/// A column, or a field within struct columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnNode {
    /// Logical names, from the top.
    pub path: Vec<String>,
    /// Type of the values.
    pub data_type: DataTypeJson,
}

/// A constant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiteralNode {
    /// A boolean, a whole number (of dates days, of timestamps microseconds since 1970), a number
    /// or `NaN`, `Infinity` or `-Infinity`, text (of decimals the digits, of binary values
    /// hexadecimal), or null.
    pub value: Value,
    /// Its type.
    pub data_type: DataTypeJson,
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallNode {
    /// The function's name.
    pub function: String,
    /// Its arguments, of exactly the types that it accepts.
    pub arguments: Vec<ExpressionNode>,
    /// Type of the result.
    pub data_type: DataTypeJson,
}

/// A conversion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CastNode {
    /// The operand.
    pub argument: Box<ExpressionNode>,
    /// Type of the result.
    pub data_type: DataTypeJson,
    /// What happens to values that the type cannot hold.
    pub mode: CastMode,
}

/// A test whether a value is in a list of constants; three-valued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InListNode {
    /// The operand.
    pub argument: Box<ExpressionNode>,
    /// Constants of the operand's type, each as in a [`LiteralNode`].
    pub values: Vec<Value>,
}
