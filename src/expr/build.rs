//! Nodes of the tree, checked when they are built; from what the binder sends.

use std::fmt;
use std::sync::Arc;

use super::bound_tree::{BoundTree, ExpressionNode};
use super::tree::{BoundExpr, CastMode, Expr};
use crate::error::{Error, Result, shown};
use crate::expr::eval::{cast, datetime, pattern};
use crate::expr::function::Function;
use crate::expr::in_set::InSet;
use crate::expr::scalar::Scalar;
use crate::expr::signature::same;
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::schema::{DataType, StructType};

/// The limit of nested calls.
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

    fn from_node(node: &ExpressionNode, depth: usize) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(Error::invalid(format!(
                "the expression is nested deeper than {MAX_DEPTH} calls"
            )));
        }
        match node {
            ExpressionNode::Column(column) if column.path.is_empty() => {
                Err(malformed("a column has no name"))
            }
            ExpressionNode::Column(column) => Ok(Self::Column {
                path: column.path.clone(),
                data_type: DataType::from_json(&column.data_type)?,
            }),
            ExpressionNode::Literal(literal) => {
                let data_type = DataType::from_json(&literal.data_type)?;
                let value = Scalar::from_json(&literal.value, &data_type)?;
                Ok(Self::Literal { value, data_type })
            }
            ExpressionNode::Call(call) => {
                let function = Function::from_name(&call.function)
                    .ok_or_else(|| unknown_function(&call.function))?;
                let arguments = call
                    .arguments
                    .iter()
                    .map(|argument| Self::from_node(argument, depth + 1))
                    .collect::<Result<Vec<_>>>()?;
                Self::call(function, arguments, DataType::from_json(&call.data_type)?)
            }
            ExpressionNode::SessionCall(call) => Err(unknown_function(&call.function)),
            ExpressionNode::Cast(cast) => Self::cast(
                Self::from_node(&cast.argument, depth + 1)?,
                DataType::from_json(&cast.data_type)?,
                cast.mode,
            ),
            ExpressionNode::InList(list) => {
                let argument = Self::from_node(&list.argument, depth + 1)?;
                let values = list
                    .values
                    .iter()
                    .map(|value| Scalar::from_json(value, argument.data_type()))
                    .collect::<Result<Vec<_>>>()?;
                Self::in_list(argument, values)
            }
        }
    }
}

impl BoundExpr {
    /// Checks a bound expression.
    ///
    /// # Errors
    /// [`Error::Unsupported`] names a function, a cast or a type that the core does not have;
    /// [`Error::Invalid`] names the error in the tree.
    pub fn new(tree: &BoundTree) -> Result<Self> {
        Ok(Self {
            expr: Expr::from_node(&tree.expr, 0)?,
            ansi: tree.ansi,
            zone: TimeZoneSpec::parse(&tree.zone)?,
        })
    }

    /// Reads a bound expression from JSON, for tests.
    ///
    /// # Errors
    /// As [`BoundExpr::new`]; [`Error::Invalid`] if the text is not a [`BoundTree`].
    #[cfg(any(test, feature = "testing"))]
    pub fn from_json(json: &str) -> Result<Self> {
        Self::new(&serde_json::from_str(json).map_err(malformed)?)
    }
}

fn unknown_function(name: &str) -> Error {
    Error::unsupported(format!(
        "the function `{}` is not supported by the core",
        shown(name)
    ))
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
