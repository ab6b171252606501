//! Nodes of the tree, checked when they are built; from JSON, in which the binder sends them.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::tree::{BoundExpr, CastMode, Expr};
use crate::error::{Error, Result, shown};
use crate::expr::eval::{cast, datetime, pattern};
use crate::expr::function::{Function, same};
use crate::expr::in_set::InSet;
use crate::expr::scalar::Scalar;
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::schema::{DataType, StructType};

/// The limit of nested calls. The JSON parser's own limit is lower; this one applies to trees built
/// in Rust.
const MAX_DEPTH: usize = 200;

impl Expr {
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
                "`{}` to a number of places that is not a literal is not supported by the core",
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
        Self::from_value(&value)
    }

    /// The expression of a parsed tree.
    ///
    /// # Errors
    /// As [`BoundExpr::from_json`].
    pub fn from_value(value: &Value) -> Result<Self> {
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
