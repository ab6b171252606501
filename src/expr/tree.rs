//! The tree: JSON of the binder -> checked [`BoundExpr`], and back to Spark SQL for messages.
//!
//! Everything that does not depend on rows is resolved here: names, argument types, literal values,
//! sets of IN lists, patterns. After [`BoundExpr::from_json`] an evaluation fails only because of a
//! value or because a batch lacks a column.
//!
//! Cost: linear in the JSON text. The JSON parser limits depth (128 levels, about 60 nested calls);
//! chains of AND and OR are flattened here and may arrive as one call of many arguments, so long
//! conditions are not deep.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::error::{Error, Result, shown};
use crate::expr::eval::in_set::InSet;
use crate::expr::eval::{cast, datetime, pattern};
use crate::expr::function::{Function, same};
use crate::expr::scalar::Scalar;
use crate::expr::text::{datetime as datetime_text, number};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::schema::{DataType, StructType};

/// The behaviour of a cast for a value that the target type cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// The limit of nested calls. The JSON parser's own limit is lower; this one applies to trees built
/// in Rust.
const MAX_DEPTH: usize = 200;

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

    /// A call, checked against the table of functions.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for argument types that the function does not accept.
    pub fn call(function: Function, args: Vec<Self>, data_type: DataType) -> Result<Self> {
        let types: Vec<&DataType> = args.iter().map(Self::data_type).collect();
        if !function.accepts(&types, &data_type) {
            let types: Vec<String> = types.iter().map(ToString::to_string).collect();
            return Err(Error::unsupported(format!(
                "the expression `{}({})` of type {data_type} is not supported by the core",
                function.name(),
                types.join(", ")
            )));
        }
        if let (Function::GetField, [arg, name]) = (function, args.as_slice()) {
            check_field(arg, name, &data_type)?;
        }
        if let (Function::NamedStruct, DataType::Struct(fields)) = (function, &data_type) {
            check_names(&args, fields)?;
        }
        if matches!(function, Function::Round | Function::BankersRound)
            && args
                .get(1)
                .is_some_and(|places| !matches!(places, Self::Literal { .. }))
        {
            return Err(Error::unsupported(format!(
                "`{}` to places that are no literal is not supported by the core",
                function.name()
            )));
        }
        pattern::check(function, &args)?;
        datetime::check(function, &args)?;
        let args = match function {
            Function::And | Function::Or => flatten(function, args),
            _ => args,
        };
        Ok(Self::Call {
            function,
            args,
            data_type,
        })
    }

    /// A cast, checked against the pairs that Spark allows in the mode.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other pairs.
    pub fn cast(arg: Self, to: DataType, mode: CastMode) -> Result<Self> {
        if !cast::is_possible(arg.data_type(), &to, mode) {
            let how = match mode {
                CastMode::Ansi => "",
                CastMode::Legacy => " (not ANSI)",
                CastMode::Try => " (try)",
            };
            return Err(Error::unsupported(format!(
                "a cast from {} to {to}{how} is not supported by the core",
                arg.data_type()
            )));
        }
        Ok(Self::Cast {
            arg: Box::new(arg),
            to,
            mode,
        })
    }

    /// `arg IN (values)`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for types without a set.
    pub fn in_list(arg: Self, values: Vec<Scalar>) -> Result<Self> {
        let set = InSet::new(arg.data_type(), &values)?;
        Ok(Self::InList {
            arg: Box::new(arg),
            values: values.into(),
            set: Arc::new(set),
        })
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

    /// Whether the evaluation can fail for some row.
    #[must_use]
    pub fn can_fail(&self, ansi: bool) -> bool {
        let own = match self {
            Self::Column { .. } | Self::Literal { .. } | Self::InList { .. } => false,
            Self::Call {
                function: Function::Like,
                args,
                ..
            } => !matches!(args.get(1), Some(Self::Literal { .. })),
            Self::Call {
                function,
                args,
                data_type,
            } => {
                let types: Vec<&DataType> = args.iter().map(Self::data_type).collect();
                function.can_fail(&types, data_type, ansi)
            }
            Self::Cast { arg, to, mode } => cast::can_fail(arg.data_type(), to, *mode),
        };
        own || self.children().iter().any(|child| child.can_fail(ansi))
    }

    fn from_json(value: &Value, depth: usize) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(Error::invalid(format!(
                "the expression is nested deeper than {MAX_DEPTH} calls"
            )));
        }
        let node = value.as_object().ok_or_else(|| {
            malformed(format!(
                "a node must be an object, found {}",
                shown(&value.to_string())
            ))
        })?;
        match string_field(node, "k")? {
            "col" => {
                let path = node
                    .get("path")
                    .and_then(Value::as_array)
                    .ok_or_else(|| malformed("a column has no `path`"))?;
                let path: Option<Vec<String>> = path
                    .iter()
                    .map(|part| part.as_str().map(str::to_owned))
                    .collect();
                let path = path
                    .filter(|p| !p.is_empty())
                    .ok_or_else(|| malformed("the `path` of a column must be a list of names"))?;
                Ok(Self::Column {
                    path,
                    data_type: data_type(node)?,
                })
            }
            "lit" => {
                let data_type = data_type(node)?;
                let value = Scalar::from_json(node.get("v").unwrap_or(&Value::Null), &data_type)?;
                Ok(Self::Literal { value, data_type })
            }
            "call" => {
                let name = string_field(node, "f")?;
                let function = Function::from_name(name).ok_or_else(|| {
                    Error::unsupported(format!(
                        "the function `{}` is not supported by the core",
                        shown(name)
                    ))
                })?;
                let args = node
                    .get("a")
                    .and_then(Value::as_array)
                    .ok_or_else(|| malformed("a call has no list `a` of arguments"))?;
                let args = args
                    .iter()
                    .map(|arg| Self::from_json(arg, depth + 1))
                    .collect::<Result<Vec<_>>>()?;
                Self::call(function, args, data_type(node)?)
            }
            "cast" => {
                let mode = match string_field(node, "m")? {
                    "ansi" => CastMode::Ansi,
                    "legacy" => CastMode::Legacy,
                    "try" => CastMode::Try,
                    other => {
                        return Err(malformed(format!(
                            "a cast has the unknown mode `{}`",
                            shown(other)
                        )));
                    }
                };
                Self::cast(
                    Self::from_json(child(node)?, depth + 1)?,
                    data_type(node)?,
                    mode,
                )
            }
            "in" => {
                let arg = Self::from_json(child(node)?, depth + 1)?;
                let values = node
                    .get("v")
                    .and_then(Value::as_array)
                    .ok_or_else(|| malformed("an IN has no list `v` of values"))?;
                let values = values
                    .iter()
                    .map(|v| Scalar::from_json(v, arg.data_type()))
                    .collect::<Result<Vec<_>>>()?;
                Self::in_list(arg, values)
            }
            other => Err(malformed(format!(
                "a node of the unknown kind `{}`",
                shown(other)
            ))),
        }
    }
}

/// `and(and(a, b), c)` -> `and(a, b, c)`: the order of evaluation stays.
fn flatten(function: Function, args: Vec<Expr>) -> Vec<Expr> {
    let mut out = Vec::with_capacity(args.len());
    for arg in args {
        match arg {
            Expr::Call {
                function: inner,
                args,
                ..
            } if inner == function => out.extend(args),
            other => out.push(other),
        }
    }
    out
}

fn check_field(arg: &Expr, name: &Expr, data_type: &DataType) -> Result<()> {
    let (
        DataType::Struct(fields),
        Expr::Literal {
            value: Scalar::Text(name),
            ..
        },
    ) = (arg.data_type(), name)
    else {
        return Err(malformed("`getfield` takes a struct and a literal name"));
    };
    match fields.fields.iter().find(|f| f.name == **name) {
        Some(field) if same(&field.data_type, data_type) => Ok(()),
        Some(field) => Err(malformed(format!(
            "the field `{}` is of type {}, not {data_type}",
            shown(name),
            field.data_type
        ))),
        None => Err(malformed(format!(
            "the struct has no field `{}`",
            shown(name)
        ))),
    }
}

/// The names in a struct constructor are literals and equal those of its type.
fn check_names(args: &[Expr], fields: &StructType) -> Result<()> {
    for (pair, field) in args.chunks(2).zip(&fields.fields) {
        if !matches!(pair.first(), Some(Expr::Literal { value: Scalar::Text(name), .. }) if **name == field.name)
        {
            return Err(malformed(format!(
                "`named_struct` does not name the field `{}` of its type by a literal",
                shown(&field.name)
            )));
        }
    }
    Ok(())
}

fn malformed(what: impl fmt::Display) -> Error {
    Error::invalid(format!("expression tree: {what}"))
}

fn string_field<'a>(node: &'a Map<String, Value>, key: &str) -> Result<&'a str> {
    node.get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| malformed(format!("a node has no text `{key}`")))
}

fn child(node: &Map<String, Value>) -> Result<&Value> {
    node.get("a")
        .ok_or_else(|| malformed("a node has no argument `a`"))
}

fn data_type(node: &Map<String, Value>) -> Result<DataType> {
    DataType::from_json(
        node.get("t")
            .ok_or_else(|| malformed("a node has no type `t`"))?,
    )
}

impl BoundExpr {
    /// Reads the binder's envelope `{"expr": node, "ansi": bool, "zone": name}`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] names a function, a cast or a type that the core does not have;
    /// [`Error::Invalid`] names the error in the tree.
    pub fn from_json(json: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(json).map_err(|e| {
            let text = e.to_string();
            if text.starts_with("recursion limit") {
                Error::invalid("the expression is nested too deeply; write it flatter")
            } else {
                malformed(text)
            }
        })?;
        let envelope = value
            .as_object()
            .ok_or_else(|| malformed("the envelope must be an object"))?;
        let expr = Expr::from_json(
            envelope
                .get("expr")
                .ok_or_else(|| malformed("the envelope has no `expr`"))?,
            0,
        )?;
        let ansi = envelope
            .get("ansi")
            .and_then(Value::as_bool)
            .unwrap_or(true);
        let zone = match envelope.get("zone") {
            None | Some(Value::Null) => TimeZoneSpec::UTC,
            Some(Value::String(name)) => TimeZoneSpec::parse(name)?,
            Some(_) => return Err(malformed("`zone` must be a name")),
        };
        Ok(Self { expr, ansi, zone })
    }

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
