//! Signatures of functions: the types of their parameters and results.
//!
//! The table of functions (`function.rs`) has them as text, which is read once:
//! - `(string, integer) -> string; (binary, integer) -> binary`: a function may have several.
//! - `long | double`: one of these types. `integral`, `real`, `number` and `ordered` are sets of
//!   types; `any` is every type; `array` and `map` are those of any elements.
//! - `T: integral`: a variable is one type wherever it is named; the type after `:` limits it.
//! - `T?`, `T*`, `T+`: at most once, any number of times, at least once; `{K, V}*` repeats both.
//! - `integer = 1`: may be left out, for that value.

use serde::Serialize;
use serde_json::Value;

use crate::protocol::schema::DataType;

/// A set of types.
#[derive(Debug, Clone)]
enum TypePattern {
    Any,
    Integral,
    Real,
    Number,
    Ordered,
    /// A decimal of any precision and scale.
    Decimal,
    Struct,
    Exactly(DataType),
    Array(Box<TypePattern>),
    Map(Box<TypePattern>, Box<TypePattern>),
    OneOf(Vec<TypePattern>),
    /// One type in all places that name it, within the limit that one of them states.
    Variable(char, Box<TypePattern>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParameterRepetition {
    Once,
    Optional,
    AnyNumber,
    AtLeastOnce,
}

/// A parameter, or several that are repeated together.
#[derive(Debug, Clone)]
struct ParameterGroup {
    patterns: Vec<TypePattern>,
    repetition: ParameterRepetition,
}

/// A parameter as callers that convert arguments need it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionParameter {
    /// The types as in the table, for example `string | binary`.
    pub types: String,
    /// The value of an argument that is left out.
    pub default: Option<Value>,
}

/// The types of a function's parameters and of its result.
#[derive(Debug, Clone)]
pub struct FunctionSignature {
    groups: Vec<ParameterGroup>,
    result: TypePattern,
    /// The parameters in order, each once.
    pub parameters: Vec<FunctionParameter>,
    /// The result as in the table.
    pub result_type: String,
}

/// The types of variables, in the order in which they are named first.
#[derive(Default)]
struct TypeVariables<'a>(Vec<(char, &'a DataType)>);

impl TypePattern {
    fn matches<'a>(&self, data_type: &'a DataType, variables: &mut TypeVariables<'a>) -> bool {
        match self {
            Self::Any => true,
            Self::Integral => is_integral(data_type),
            Self::Real => is_real(data_type),
            Self::Number => is_number(data_type),
            Self::Ordered => is_ordered(data_type),
            Self::Decimal => is_decimal(data_type),
            Self::Struct => matches!(data_type, DataType::Struct(_)),
            Self::Exactly(expected) => data_type == expected,
            Self::Array(element) => match data_type {
                DataType::Array(array) => element.matches(&array.element, variables),
                _ => false,
            },
            Self::Map(key, value) => match data_type {
                DataType::Map(map) => {
                    key.matches(&map.key, variables) && value.matches(&map.value, variables)
                }
                _ => false,
            },
            Self::OneOf(patterns) => patterns
                .iter()
                .any(|pattern| pattern.matches(data_type, variables)),
            Self::Variable(name, limit) => {
                let bound = variables.0.iter().find(|(variable, _)| variable == name);
                if let Some((_, bound)) = bound {
                    return same(bound, data_type);
                }
                variables.0.push((*name, data_type));
                limit.matches(data_type, variables)
            }
        }
    }
}

impl FunctionSignature {
    /// Whether arguments and a result are of these types.
    #[must_use]
    pub fn accepts(&self, args: &[&DataType], result: &DataType) -> bool {
        let mut variables = TypeVariables::default();
        let mut remaining = args;
        for group in &self.groups {
            let mut repetitions = 0;
            let most = match group.repetition {
                ParameterRepetition::Once | ParameterRepetition::Optional => 1,
                ParameterRepetition::AnyNumber | ParameterRepetition::AtLeastOnce => usize::MAX,
            };
            while repetitions < most
                && let Some((arguments, others)) = remaining.split_at_checked(group.patterns.len())
                && !arguments.is_empty()
            {
                let mut pairs = group.patterns.iter().zip(arguments);
                if !pairs.all(|(pattern, argument)| pattern.matches(argument, &mut variables)) {
                    return false;
                }
                remaining = others;
                repetitions += 1;
            }
            let is_required = matches!(
                group.repetition,
                ParameterRepetition::Once | ParameterRepetition::AtLeastOnce
            );
            if is_required && repetitions == 0 {
                return false;
            }
        }
        remaining.is_empty() && self.result.matches(result, &mut variables)
    }
}

/// Reads signatures; the table is part of the program, so its tests read each entry.
///
/// # Errors
/// A message that names what is not a signature.
pub fn parse_signatures(text: &str) -> Result<Vec<FunctionSignature>, String> {
    text.split("; ").map(parse_signature).collect()
}

fn parse_signature(text: &str) -> Result<FunctionSignature, String> {
    let (parameters, result) = text
        .strip_prefix('(')
        .and_then(|rest| rest.split_once(") -> "))
        .ok_or_else(|| format!("`{text}` is not a signature"))?;
    let mut signature = FunctionSignature {
        groups: Vec::new(),
        result: parse_pattern(result)?,
        parameters: Vec::new(),
        result_type: result.to_owned(),
    };
    for parameter in split_outside_brackets(parameters) {
        signature.add_group(parameter)?;
    }
    Ok(signature)
}

impl FunctionSignature {
    fn add_group(&mut self, text: &str) -> Result<(), String> {
        let (text, default) = match text.split_once(" = ") {
            Some((text, default)) => {
                let value = serde_json::from_str(default)
                    .map_err(|_| format!("`{default}` is not a default value"))?;
                (text, Some(value))
            }
            None => (text, None),
        };
        let (types, repetition) = match text.chars().last() {
            Some('?') => (&text[..text.len() - 1], ParameterRepetition::Optional),
            Some('*') => (&text[..text.len() - 1], ParameterRepetition::AnyNumber),
            Some('+') => (&text[..text.len() - 1], ParameterRepetition::AtLeastOnce),
            _ if default.is_some() => (text, ParameterRepetition::Optional),
            _ => (text, ParameterRepetition::Once),
        };
        let types = types
            .strip_prefix('{')
            .and_then(|group| group.strip_suffix('}'))
            .map_or_else(|| vec![types], split_outside_brackets);
        let mut patterns = Vec::with_capacity(types.len());
        for pattern in types {
            patterns.push(parse_pattern(pattern)?);
            self.parameters.push(FunctionParameter {
                types: pattern.to_owned(),
                default: default.clone(),
            });
        }
        self.groups.push(ParameterGroup {
            patterns,
            repetition,
        });
        Ok(())
    }
}

fn parse_pattern(text: &str) -> Result<TypePattern, String> {
    if let Some((name, limit)) = text.split_once(": ")
        && let Some(name) = variable_name(name)
    {
        return Ok(TypePattern::Variable(name, Box::new(parse_pattern(limit)?)));
    }
    let types: Vec<&str> = text.split(" | ").collect();
    if types.len() > 1 {
        let patterns = types
            .into_iter()
            .map(parse_pattern)
            .collect::<Result<_, _>>()?;
        return Ok(TypePattern::OneOf(patterns));
    }
    if let Some(name) = variable_name(text) {
        return Ok(TypePattern::Variable(name, Box::new(TypePattern::Any)));
    }
    let contents = |kind: &str| {
        text.strip_prefix(kind)
            .and_then(|rest| rest.strip_prefix('<'))
            .and_then(|rest| rest.strip_suffix('>'))
    };
    if let Some(element) = contents("array") {
        return Ok(TypePattern::Array(Box::new(parse_pattern(element)?)));
    }
    if let Some((key, value)) = contents("map").and_then(|pair| pair.split_once(", ")) {
        let (key, value) = (parse_pattern(key)?, parse_pattern(value)?);
        return Ok(TypePattern::Map(Box::new(key), Box::new(value)));
    }
    let any = || Box::new(TypePattern::Any);
    Ok(match text {
        "any" => TypePattern::Any,
        "integral" => TypePattern::Integral,
        "real" => TypePattern::Real,
        "number" => TypePattern::Number,
        "ordered" => TypePattern::Ordered,
        "decimal" => TypePattern::Decimal,
        "struct" => TypePattern::Struct,
        "array" => TypePattern::Array(any()),
        "map" => TypePattern::Map(any(), any()),
        name => TypePattern::Exactly(
            DataType::from_json(&Value::from(name)).map_err(|_| format!("`{name}` is no type"))?,
        ),
    })
}

fn variable_name(text: &str) -> Option<char> {
    match text.as_bytes() {
        [letter] if letter.is_ascii_uppercase() => Some(char::from(*letter)),
        _ => None,
    }
}

/// The parts between commas that are in no brackets.
fn split_outside_brackets(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0_usize);
    for (position, character) in text.char_indices() {
        match character {
            '<' | '{' => depth += 1,
            '>' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text[start..position].trim());
                start = position + 1;
            }
            _ => {}
        }
    }
    if !text.is_empty() {
        parts.push(text[start..].trim());
    }
    parts
}

fn is_integral(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Byte | DataType::Short | DataType::Integer | DataType::Long
    )
}

pub(super) fn is_real(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float | DataType::Double)
}

pub(super) fn is_decimal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal(..))
}

fn is_number(data_type: &DataType) -> bool {
    is_integral(data_type) || is_real(data_type) || is_decimal(data_type)
}

/// Types that have an order and an equality here. Nested values are compared element by element.
pub(super) fn is_ordered(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.fields.iter().all(|f| is_ordered(&f.data_type)),
        DataType::Array(array) => is_ordered(&array.element),
        DataType::Map(_) | DataType::Variant => false,
        _ => true,
    }
}

/// Equality of two types, ignoring the nullability of their parts.
#[must_use]
pub fn same(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Struct(a), DataType::Struct(b)) => {
            a.fields.len() == b.fields.len()
                && a.fields
                    .iter()
                    .zip(&b.fields)
                    .all(|(a, b)| a.name == b.name && same(&a.data_type, &b.data_type))
        }
        (DataType::Array(a), DataType::Array(b)) => same(&a.element, &b.element),
        (DataType::Map(a), DataType::Map(b)) => same(&a.key, &b.key) && same(&a.value, &b.value),
        _ => a == b,
    }
}
