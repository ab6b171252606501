//! The tree: a [`BoundTree`](super::BoundTree) -> checked [`BoundExpr`], and back to Spark SQL for
//! messages.
//!
//! Everything that does not depend on rows is resolved here: names, argument types, literal values,
//! sets of IN lists, patterns. After [`BoundExpr::new`] an evaluation fails only because of a
//! value or because a batch lacks a column.
//!
//! Cost: linear in the tree. Chains of AND and OR are flattened here and may arrive as one call of
//! many arguments, so long conditions are not deep.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::expr::function::Function;
use crate::expr::in_set::InSet;
use crate::expr::scalar::Scalar;
use crate::expr::text::{datetime as datetime_text, number};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::schema::DataType;

/// The behaviour of a cast for a value that the target type cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CastMode {
    /// Raise.
    Ansi,
    /// Spark's older rules: null or wrap around.
    Legacy,
    /// ANSI's rules with null instead of an error (`try_cast`).
    Try,
}

/// A typed expression.
#[derive(Debug, Clone)]
pub enum Expr {
    /// A column, or a field within struct columns.
    Column {
        /// Logical names, from the top.
        path: Vec<String>,
        /// Type of the values.
        data_type: DataType,
    },
    /// A constant.
    Literal {
        /// The value.
        value: Scalar,
        /// Its type.
        data_type: DataType,
    },
    /// A function call.
    Call {
        /// The function.
        function: Function,
        /// Its arguments, of exactly the types that it accepts.
        args: Vec<Expr>,
        /// Type of the result.
        data_type: DataType,
    },
    /// A conversion.
    Cast {
        /// The operand.
        arg: Box<Expr>,
        /// The type of the result.
        to: DataType,
        /// The behaviour for values that the target type cannot hold.
        mode: CastMode,
    },
    /// `arg IN (values)`.
    InList {
        /// The operand.
        arg: Box<Expr>,
        /// The values as written.
        values: Arc<[Scalar]>,
        /// The values as a set.
        set: Arc<InSet>,
    },
}

/// An expression with the settings that its evaluation needs.
#[derive(Debug, Clone)]
pub struct BoundExpr {
    /// The expression.
    pub expr: Expr,
    /// Whether Spark's ANSI mode is on: errors where it is, nulls and wrap-around where it is not.
    pub ansi: bool,
    /// The session's time zone.
    pub zone: TimeZoneSpec,
}

impl Expr {
    /// The type of the value.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        match self {
            Self::Column { data_type, .. }
            | Self::Literal { data_type, .. }
            | Self::Call { data_type, .. } => data_type,
            Self::Cast { to, .. } => to,
            Self::InList { .. } => &DataType::Boolean,
        }
    }

    /// A boolean literal.
    #[must_use]
    pub fn boolean(value: Option<bool>) -> Self {
        Self::Literal {
            value: value.map_or(Scalar::Null, Scalar::Boolean),
            data_type: DataType::Boolean,
        }
    }

    /// The arguments.
    #[must_use]
    pub fn children(&self) -> &[Self] {
        match self {
            Self::Column { .. } | Self::Literal { .. } => &[],
            Self::Call { args, .. } => args,
            Self::Cast { arg, .. } | Self::InList { arg, .. } => std::slice::from_ref(arg),
        }
    }

    /// Adds the paths of the columns to `out`.
    pub fn collect_columns<'a>(&'a self, out: &mut BTreeSet<&'a [String]>) {
        if let Self::Column { path, .. } = self {
            out.insert(path);
        }
        for child in self.children() {
            child.collect_columns(out);
        }
    }
}

impl BoundExpr {
    /// Another expression with the same settings.
    #[must_use]
    pub fn with(&self, expr: Expr) -> Self {
        Self {
            expr,
            ansi: self.ansi,
            zone: self.zone,
        }
    }

    /// Paths of the columns that the expression reads, each once, in order.
    #[must_use]
    pub fn columns(&self) -> Vec<&[String]> {
        let mut out = BTreeSet::new();
        self.expr.collect_columns(&mut out);
        out.into_iter().collect()
    }

    /// Names of the top-level columns that the expression reads, each once, in order.
    #[must_use]
    pub fn column_names(&self) -> Vec<&str> {
        let mut out: Vec<&str> = self
            .columns()
            .into_iter()
            .filter_map(|path| path.first().map(String::as_str))
            .collect();
        out.dedup();
        out
    }

    /// The type of the value.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        self.expr.data_type()
    }
}

impl fmt::Display for BoundExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

/// The name of a type in Spark SQL.
pub(crate) struct SqlType<'a>(pub(crate) &'a DataType);

impl fmt::Display for SqlType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DataType::Byte => f.write_str("TINYINT"),
            DataType::Short => f.write_str("SMALLINT"),
            DataType::Integer => f.write_str("INT"),
            DataType::Long => f.write_str("BIGINT"),
            DataType::Array(a) => write!(f, "ARRAY<{}>", SqlType(&a.element)),
            DataType::Map(m) => write!(f, "MAP<{}, {}>", SqlType(&m.key), SqlType(&m.value)),
            DataType::Struct(s) => {
                f.write_str("STRUCT<")?;
                for (n, field) in s.fields.iter().enumerate() {
                    write!(
                        f,
                        "{}{}: {}",
                        if n == 0 { "" } else { ", " },
                        field.name,
                        SqlType(&field.data_type)
                    )?;
                }
                f.write_str(">")
            }
            other => f.write_str(&other.to_string().to_uppercase()),
        }
    }
}

fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    f.write_str(&identifier(name))
}

/// A name as an SQL identifier: in backquotes unless it consists of letters, digits and `_` and
/// does not begin with a digit.
#[must_use]
pub fn identifier(name: &str) -> Cow<'_, str> {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    if plain {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("`{}`", name.replace('`', "``")))
    }
}

fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('\'')?;
    for c in text.chars() {
        if matches!(c, '\'' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(c)?;
    }
    f.write_char('\'')
}

fn write_literal(f: &mut fmt::Formatter<'_>, value: &Scalar, data_type: &DataType) -> fmt::Result {
    let mut text = String::new();
    match (value, data_type) {
        (Scalar::Null, _) => return f.write_str("NULL"),
        (Scalar::Boolean(v), _) => return write!(f, "{v}"),
        (Scalar::Long(days), DataType::Date) => {
            datetime_text::write_date(&mut text, *days);
            return write!(f, "DATE '{text}'");
        }
        (Scalar::Long(micros), DataType::Timestamp) => {
            datetime_text::write_timestamp(&mut text, *micros);
            return write!(f, "TIMESTAMP '{text}Z'");
        }
        (Scalar::Long(micros), DataType::TimestampNtz) => {
            datetime_text::write_timestamp(&mut text, *micros);
            return write!(f, "TIMESTAMP_NTZ '{text}'");
        }
        (Scalar::Long(v), _) => return write!(f, "{v}"),
        (Scalar::Double(v), DataType::Float) => number::write_float(&mut text, *v as f32),
        (Scalar::Double(v), _) => number::write_double(&mut text, *v),
        (Scalar::Decimal(v), DataType::Decimal(_, scale)) => {
            number::write_decimal(&mut text, *v, *scale);
        }
        (Scalar::Decimal(v), _) => return write!(f, "{v}"),
        (Scalar::Text(v), _) => return write_quoted(f, v),
        (Scalar::Bytes(v), _) => {
            f.write_str("X'")?;
            for byte in v.iter() {
                write!(f, "{byte:02X}")?;
            }
            return f.write_str("'");
        }
    }
    f.write_str(&text)
}

/// An argument of an operator, in parentheses where it is an operator itself.
struct ParenthesizedOperand<'a>(&'a Expr);

impl fmt::Display for ParenthesizedOperand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Expr::Call { function, .. }
                if function.infix().is_some()
                    || matches!(
                        function,
                        Function::Not | Function::IsNull | Function::IsNotNull | Function::Like
                    ) =>
            {
                write!(f, "({})", self.0)
            }
            Expr::InList { .. } => write!(f, "({})", self.0),
            _ => write!(f, "{}", self.0),
        }
    }
}

/// The number of values of an IN list in a message.
const SHOWN_VALUES: usize = 20;

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column { path, .. } => {
                for (n, part) in path.iter().enumerate() {
                    if n > 0 {
                        f.write_char('.')?;
                    }
                    write_name(f, part)?;
                }
                Ok(())
            }
            Self::Literal { value, data_type } => write_literal(f, value, data_type),
            Self::Cast { arg, to, mode } => write!(
                f,
                "{}({arg} AS {})",
                if *mode == CastMode::Try {
                    "try_cast"
                } else {
                    "CAST"
                },
                SqlType(to)
            ),
            Self::InList { arg, values, .. } => {
                write!(f, "{} IN (", ParenthesizedOperand(arg))?;
                for (n, value) in values.iter().take(SHOWN_VALUES).enumerate() {
                    if n > 0 {
                        f.write_str(", ")?;
                    }
                    write_literal(f, value, arg.data_type())?;
                }
                f.write_str(if values.len() > SHOWN_VALUES {
                    ", ...)"
                } else {
                    ")"
                })
            }
            Self::Call { function, args, .. } => match (function, args.as_slice()) {
                (Function::Not, [arg]) => write!(f, "NOT {}", ParenthesizedOperand(arg)),
                (Function::IsNull, [arg]) => write!(f, "{} IS NULL", ParenthesizedOperand(arg)),
                (Function::IsNotNull, [arg]) => {
                    write!(f, "{} IS NOT NULL", ParenthesizedOperand(arg))
                }
                (Function::Negative, [arg]) => write!(f, "-{}", ParenthesizedOperand(arg)),
                (Function::BitNot, [arg]) => write!(f, "~{}", ParenthesizedOperand(arg)),
                (Function::Like, [value, like, escape @ ..]) => {
                    write!(
                        f,
                        "{} LIKE {}",
                        ParenthesizedOperand(value),
                        ParenthesizedOperand(like)
                    )?;
                    escape.first().map_or(Ok(()), |e| write!(f, " ESCAPE {e}"))
                }
                (
                    Function::GetField,
                    [
                        arg,
                        Self::Literal {
                            value: Scalar::Text(name),
                            ..
                        },
                    ],
                ) => {
                    write!(f, "{}.", ParenthesizedOperand(arg))?;
                    write_name(f, name)
                }
                (Function::Case, args) => {
                    f.write_str("CASE")?;
                    for pair in args.chunks(2) {
                        match pair {
                            [condition, value] => write!(f, " WHEN {condition} THEN {value}")?,
                            rest => {
                                for value in rest {
                                    write!(f, " ELSE {value}")?;
                                }
                            }
                        }
                    }
                    f.write_str(" END")
                }
                (function, args) => match function.infix() {
                    Some(sign) => {
                        for (n, arg) in args.iter().enumerate() {
                            if n > 0 {
                                write!(f, " {sign} ")?;
                            }
                            write!(f, "{}", ParenthesizedOperand(arg))?;
                        }
                        Ok(())
                    }
                    None => {
                        write!(f, "{}(", function.name())?;
                        for (n, arg) in args.iter().enumerate() {
                            write!(f, "{}{arg}", if n > 0 { ", " } else { "" })?;
                        }
                        f.write_char(')')
                    }
                },
            },
        }
    }
}
