//! The table of functions: name -> [`Function`], and the argument and result types of each
//! function.
//!
//! A tree whose types do not match this table is refused while it is read. The table is closed on
//! purpose: the same name means different things in different engines, so a function that is not in
//! the table is refused by name.

use crate::protocol::schema::{DataType, MapType, StructType};

macro_rules! functions {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// A function of the core.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Function {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Function {
            /// The function of this name in the tree's JSON.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Some(match name {
                    $($name => Self::$variant,)*
                    "&" => Self::BitAnd,
                    "|" => Self::BitOr,
                    "^" => Self::BitXor,
                    "~" => Self::BitNot,
                    _ => return None,
                })
            }

            /// The name in the tree's JSON.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Every function, for tests and for the list of supported functions.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }
    };
}

functions! {
    And = "and", Or = "or", Not = "not", Equal = "=", EqualNullSafe = "<=>", Less = "<", LessEqual = "<=", Greater = ">", GreaterEqual = ">=",
    IsNull = "isnull", IsNotNull = "isnotnull", IsNan = "isnan",
    Add = "+", Subtract = "-", Multiply = "*", Divide = "/", IntegralDivide = "div", Remainder = "%", PositiveModulo = "pmod", Negative = "negative",
    Abs = "abs", Sign = "sign", Round = "round", BankersRound = "bround", Floor = "floor", Ceil = "ceil", Sqrt = "sqrt", Exp = "exp", Ln = "ln", Log = "log",
    Log10 = "log10",
    Pow = "pow", Greatest = "greatest", Least = "least",
    Like = "like", RLike = "rlike", StartsWith = "startswith", EndsWith = "endswith", Contains = "contains", Lower = "lower", Upper = "upper", Trim = "trim",
    LeftTrim = "ltrim", RightTrim = "rtrim", Length = "length", OctetLength = "octet_length", Substring = "substring", Concat = "concat", ConcatWs = "concat_ws",
    Replace = "replace", LeftPad = "lpad", RightPad = "rpad", Repeat = "repeat", Reverse = "reverse", Instr = "instr", Locate = "locate", Left = "left",
    Right = "right", SplitPart = "split_part", InitCap = "initcap", Hex = "hex", Unhex = "unhex", Md5 = "md5", Sha2 = "sha2",
    If = "if", Case = "case", Coalesce = "coalesce", NullIf = "nullif", Nvl2 = "nvl2",
    Year = "year", Month = "month", Day = "day", Quarter = "quarter", DayOfWeek = "dayofweek", Weekday = "weekday", DayOfYear = "dayofyear",
    WeekOfYear = "weekofyear", Hour = "hour", Minute = "minute", Second = "second", DateTrunc = "date_trunc", Trunc = "trunc", DateAdd = "date_add",
    DateSub = "date_sub", AddMonths = "add_months", MonthsBetween = "months_between", DateDiff = "datediff", LastDay = "last_day", NextDay = "next_day",
    DateFormat = "date_format", MakeDate = "make_date", UnixMicros = "unix_micros", TimestampMicros = "timestamp_micros",
    TimestampSeconds = "timestamp_seconds", UnixTimestamp = "unix_timestamp", FromUnixtime = "from_unixtime", TimestampAddMonths = "timestamp_add_months",
    TimestampAddMicros = "timestamp_add_micros",
    Size = "size", ArrayContains = "array_contains", ElementAt = "element_at", Get = "get", GetItem = "getitem", GetField = "getfield", MapKeys = "map_keys", MapValues = "map_values",
    MakeArray = "array", MakeMap = "map", NamedStruct = "named_struct",
    BitAnd = "bitand", BitOr = "bitor", BitXor = "bitxor", BitNot = "bitnot", ShiftLeft = "shiftleft", ShiftRight = "shiftright",
}

fn is_integral(t: &DataType) -> bool {
    matches!(
        t,
        DataType::Byte | DataType::Short | DataType::Integer | DataType::Long
    )
}

fn is_real(t: &DataType) -> bool {
    matches!(t, DataType::Float | DataType::Double)
}

fn is_decimal(t: &DataType) -> bool {
    matches!(t, DataType::Decimal(..))
}

fn is_numeric(t: &DataType) -> bool {
    is_integral(t) || is_real(t) || is_decimal(t)
}

fn is_timestamp(t: &DataType) -> bool {
    matches!(t, DataType::Timestamp | DataType::TimestampNtz)
}

fn is_time(t: &DataType) -> bool {
    matches!(t, DataType::Date) || is_timestamp(t)
}

fn is_string(t: &DataType) -> bool {
    matches!(t, DataType::String)
}

fn is_string_or_binary(t: &DataType) -> bool {
    matches!(t, DataType::String | DataType::Binary)
}

/// Types that have an order and an equality here. Nested values are compared element by element.
fn is_ordered(t: &DataType) -> bool {
    match t {
        DataType::Struct(s) => s.fields.iter().all(|f| is_ordered(&f.data_type)),
        DataType::Array(a) => is_ordered(&a.element),
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

/// Whether all types are the same, ignoring the nullability of their parts.
fn all_same(types: &[&DataType]) -> bool {
    types
        .iter()
        .zip(types.iter().skip(1))
        .all(|(a, b)| same(a, b))
}

impl Function {
    /// Whether the function accepts arguments of these types and returns this type.
    #[must_use]
    pub fn accepts(self, args: &[&DataType], result: &DataType) -> bool {
        // Every function is in one group only; the others return false for it.
        self.accepts_as_predicate(args, result)
            || self.accepts_as_arithmetic(args, result)
            || self.accepts_as_bitwise(args, result)
            || self.accepts_as_string(args, result)
            || self.accepts_as_conditional(args, result)
            || self.accepts_as_date_part(args, result)
            || self.accepts_as_date_arithmetic(args, result)
            || self.accepts_as_collection(args, result)
            || self.accepts_as_constructor(args, result)
    }

    /// [`Function::accepts`] of the logical operators, comparisons and null tests.
    fn accepts_as_predicate(self, args: &[&DataType], result: &DataType) -> bool {
        use DataType as T;
        use Function as F;
        let accepted = match (self, args) {
            (F::And | F::Or, [_, _, ..]) => args.iter().all(|t| matches!(t, T::Boolean)),
            (F::Not, [T::Boolean]) | (F::IsNull | F::IsNotNull, [_]) => true,
            (
                F::Equal | F::EqualNullSafe | F::Less | F::LessEqual | F::Greater | F::GreaterEqual,
                [a, b],
            ) => same(a, b) && is_ordered(a),
            (F::IsNan, [a]) => is_real(a),
            _ => false,
        };
        accepted && *result == T::Boolean
    }

    /// [`Function::accepts`] of the arithmetic operators and mathematical functions.
    fn accepts_as_arithmetic(self, args: &[&DataType], result: &DataType) -> bool {
        use DataType as T;
        use Function as F;
        match (self, args) {
            (
                F::Add | F::Subtract | F::Multiply | F::Divide | F::Remainder | F::PositiveModulo,
                [T::Decimal(..), T::Decimal(..)],
            ) => is_decimal(result),
            (F::IntegralDivide, [T::Decimal(..), T::Decimal(..)]) => *result == T::Long,
            (F::Add | F::Subtract | F::Multiply | F::Remainder | F::PositiveModulo, [a, b]) => {
                a == b && (is_integral(a) || is_real(a)) && result == *a
            }
            (F::Divide, [a, b]) => a == b && is_real(a) && result == *a,
            (F::IntegralDivide, [a, b]) => a == b && is_integral(a) && *result == T::Long,
            (F::Negative | F::Abs, [a]) => is_numeric(a) && result == *a,
            (F::Sign | F::Sqrt | F::Exp | F::Ln | F::Log10, [T::Double])
            | (F::Pow | F::Log, [T::Double, T::Double]) => *result == T::Double,
            (F::Round | F::BankersRound | F::Floor | F::Ceil, [T::Decimal(..)])
            | (F::Round | F::BankersRound, [T::Decimal(..), T::Integer]) => is_decimal(result),
            (F::Floor | F::Ceil, [T::Double | T::Long]) => *result == T::Long,
            (F::Round | F::BankersRound, [a] | [a, T::Integer]) => {
                (is_integral(a) || is_real(a)) && result == *a
            }
            _ => false,
        }
    }

    /// [`Function::accepts`] of the functions of bits.
    fn accepts_as_bitwise(self, args: &[&DataType], result: &DataType) -> bool {
        use DataType as T;
        use Function as F;
        match (self, args) {
            (F::BitAnd | F::BitOr | F::BitXor, [a, b]) => a == b && is_integral(a) && result == *a,
            (F::BitNot, [a]) => is_integral(a) && result == *a,
            (F::ShiftLeft | F::ShiftRight, [a, T::Integer]) => {
                matches!(a, T::Integer | T::Long) && result == *a
            }
            _ => false,
        }
    }

    /// [`Function::accepts`] of the functions of strings and binary values.
    fn accepts_as_string(self, args: &[&DataType], result: &DataType) -> bool {
        use DataType as T;
        use Function as F;
        match (self, args) {
            (F::Like, [T::String, T::String] | [T::String, T::String, T::String])
            | (F::RLike, [T::String, T::String]) => *result == T::Boolean,
            (F::StartsWith | F::EndsWith | F::Contains, [a, b]) => {
                a == b && is_string_or_binary(a) && *result == T::Boolean
            }
            (F::Lower | F::Upper | F::InitCap, [T::String])
            | (F::Trim | F::LeftTrim | F::RightTrim, [T::String] | [T::String, T::String])
            | (F::Replace, [T::String, T::String] | [T::String, T::String, T::String])
            | (
                F::LeftPad | F::RightPad,
                [T::String, T::Integer] | [T::String, T::Integer, T::String],
            )
            | (F::Repeat, [T::String, T::Integer])
            | (F::SplitPart, [T::String, T::String, T::Integer])
            | (F::Hex, [T::Long | T::String | T::Binary])
            | (F::Md5, [T::Binary])
            | (F::Sha2, [T::Binary, T::Integer]) => *result == T::String,
            (F::Length | F::OctetLength, [a]) => is_string_or_binary(a) && *result == T::Integer,
            (F::Substring, [a, T::Integer] | [a, T::Integer, T::Integer])
            | (F::Left | F::Right, [a, T::Integer]) => is_string_or_binary(a) && result == *a,
            (F::Concat, [a, ..]) => {
                (is_string_or_binary(a) || matches!(a, T::Array(_)))
                    && all_same(args)
                    && same(result, a)
            }
            (F::ConcatWs, [T::String, rest @ ..]) => {
                rest.iter()
                    .all(|t| is_string(t) || matches!(t, T::Array(a) if is_string(&a.element)))
                    && *result == T::String
            }
            (F::Reverse, [a]) => (is_string(a) || matches!(a, T::Array(_))) && same(result, a),
            (F::Instr, [T::String, T::String])
            | (F::Locate, [T::String, T::String] | [T::String, T::String, T::Integer]) => {
                *result == T::Integer
            }
            (F::Unhex, [T::String]) => *result == T::Binary,
            _ => false,
        }
    }

    /// [`Function::accepts`] of the functions that return one of their arguments.
    fn accepts_as_conditional(self, args: &[&DataType], result: &DataType) -> bool {
        use DataType as T;
        use Function as F;
        match (self, args) {
            (F::Greatest | F::Least, [a, _, ..]) => {
                all_same(args) && is_ordered(a) && same(result, a)
            }
            (F::If, [T::Boolean, a, b]) | (F::Nvl2, [_, a, b]) => same(a, b) && same(result, a),
            (F::Case, [_, _, ..]) => args.chunks(2).all(|pair| match pair {
                [condition, value] => matches!(condition, T::Boolean) && same(value, result),
                otherwise => otherwise.iter().all(|t| same(t, result)),
            }),
            (F::Coalesce, [a, ..]) => all_same(args) && same(result, a),
            (F::NullIf, [a, b]) => same(a, b) && is_ordered(a) && same(result, a),
            _ => false,
        }
    }

    /// [`Function::accepts`] of the functions that take dates and timestamps apart, truncate or
    /// format them.
    fn accepts_as_date_part(self, args: &[&DataType], result: &DataType) -> bool {
        use DataType as T;
        use Function as F;
        match (self, args) {
            (
                F::Year
                | F::Month
                | F::Day
                | F::Quarter
                | F::DayOfWeek
                | F::Weekday
                | F::DayOfYear
                | F::WeekOfYear,
                [a],
            ) => is_time(a) && *result == T::Integer,
            (F::Hour | F::Minute | F::Second, [a]) => is_timestamp(a) && *result == T::Integer,
            (F::DateTrunc, [T::String, a]) => is_timestamp(a) && result == *a,
            (F::Trunc, [T::Date, T::String]) => *result == T::Date,
            (F::DateFormat, [a, T::String]) => is_time(a) && *result == T::String,
            (F::UnixMicros, [T::Timestamp]) => *result == T::Long,
            (F::UnixTimestamp, [a]) => is_time(a) && *result == T::Long,
            _ => false,
        }
    }

    /// [`Function::accepts`] of the functions that compute with dates and timestamps or make them,
    /// and of `from_unixtime`.
    fn accepts_as_date_arithmetic(self, args: &[&DataType], result: &DataType) -> bool {
        use DataType as T;
        use Function as F;
        match (self, args) {
            (F::NextDay, [T::Date, T::String])
            | (F::LastDay, [T::Date])
            | (
                F::DateAdd | F::DateSub | F::AddMonths,
                [T::Date, T::Integer | T::Short | T::Byte],
            )
            | (F::MakeDate, [T::Integer, T::Integer, T::Integer]) => *result == T::Date,
            (
                F::MonthsBetween,
                [T::Timestamp, T::Timestamp] | [T::Timestamp, T::Timestamp, T::Boolean],
            ) => *result == T::Double,
            (F::DateDiff, [T::Date, T::Date]) => *result == T::Integer,
            (F::TimestampMicros, [a]) => is_integral(a) && *result == T::Timestamp,
            (F::TimestampSeconds, [a]) => is_numeric(a) && *result == T::Timestamp,
            (F::TimestampAddMonths, [a, T::Integer]) | (F::TimestampAddMicros, [a, T::Long]) => {
                is_timestamp(a) && result == *a
            }
            (F::FromUnixtime, [T::Long] | [T::Long, T::String]) => *result == T::String,
            _ => false,
        }
    }

    /// [`Function::accepts`] of the functions that read arrays, maps and structs.
    fn accepts_as_collection(self, args: &[&DataType], result: &DataType) -> bool {
        use DataType as T;
        use Function as F;
        match (self, args) {
            (F::Size, [T::Array(_) | T::Map(_)]) => *result == T::Integer,
            (F::ArrayContains, [T::Array(a), value]) => {
                same(&a.element, value) && is_ordered(value) && *result == T::Boolean
            }
            (F::ElementAt | F::Get | F::GetItem, [T::Array(a), T::Integer]) => {
                same(&a.element, result)
            }
            (F::ElementAt | F::Get | F::GetItem, [T::Map(m), key]) => {
                same(&m.key, key) && is_ordered(key) && same(&m.value, result)
            }
            (F::GetField, [T::Struct(_), T::String]) => true,
            (F::MapKeys, [T::Map(m)]) => matches!(result, T::Array(a) if same(&a.element, &m.key)),
            (F::MapValues, [T::Map(m)]) => {
                matches!(result, T::Array(a) if same(&a.element, &m.value))
            }
            _ => false,
        }
    }

    /// [`Function::accepts`] of the functions that make arrays, maps and structs.
    fn accepts_as_constructor(self, args: &[&DataType], result: &DataType) -> bool {
        use DataType as T;
        use Function as F;
        match (self, args) {
            (F::MakeArray, _) => {
                matches!(result, T::Array(a) if args.iter().all(|t| same(t, &a.element)))
            }
            (F::MakeMap, _) => {
                let pairs = |m: &MapType| {
                    args.chunks(2)
                        .all(|pair| matches!(pair, [k, v] if same(k, &m.key) && same(v, &m.value)))
                };
                // Arrow does not support map keys of the null type.
                matches!(result, T::Map(m) if is_ordered(&m.key) && !matches!(m.key, T::Void) && pairs(m))
            }
            (F::NamedStruct, [_, _, ..]) => {
                let pairs = |s: &StructType| {
                    args.chunks(2)
                        .zip(&s.fields)
                        .all(|(pair, f)| matches!(pair, [T::String, v] if same(v, &f.data_type)))
                };
                matches!(result, T::Struct(s) if args.len() == 2 * s.fields.len() && pairs(s))
            }
            _ => false,
        }
    }

    /// Whether evaluating the function itself (not its arguments) can raise an error for some row.
    #[must_use]
    pub fn can_fail(self, args: &[&DataType], result: &DataType, ansi: bool) -> bool {
        use Function as F;
        let whole_or_decimal = || !args.iter().any(|t| is_real(t));
        match self {
            F::Negative | F::Abs if is_decimal(result) => true,
            F::Add
            | F::Subtract
            | F::Multiply
            | F::Negative
            | F::Abs
            | F::Round
            | F::BankersRound => ansi && whole_or_decimal(),
            F::Floor | F::Ceil => ansi && is_decimal(result),
            F::Divide
            | F::IntegralDivide
            | F::Remainder
            | F::PositiveModulo
            | F::NextDay
            | F::MakeDate
            | F::GetItem => ansi,
            F::ElementAt
            | F::MakeMap
            | F::AddMonths
            | F::DateTrunc
            | F::MonthsBetween
            | F::TimestampSeconds
            | F::TimestampMicros
            | F::TimestampAddMonths
            | F::TimestampAddMicros
            | F::SplitPart => true,
            // The value may exceed the memory limit of a row.
            F::Repeat | F::LeftPad | F::RightPad | F::Replace => true,
            // A pattern that is a literal is checked while the tree is read.
            F::Like => true,
            F::UnixTimestamp | F::DateFormat => args.iter().any(|t| matches!(t, DataType::Date)),
            _ => false,
        }
    }

    /// The operator's symbol, if the function is an infix operator in Spark SQL.
    #[must_use]
    pub fn infix(self) -> Option<&'static str> {
        use Function as F;
        Some(match self {
            F::And => "AND",
            F::Or => "OR",
            F::Equal | F::EqualNullSafe | F::Less | F::LessEqual | F::Greater | F::GreaterEqual => {
                self.name()
            }
            F::Add | F::Subtract | F::Multiply | F::Divide | F::Remainder | F::IntegralDivide => {
                self.name()
            }
            F::BitAnd => "&",
            F::BitOr => "|",
            F::BitXor => "^",
            F::RLike => "RLIKE",
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_function() {
        for function in Function::ALL {
            assert_eq!(Function::from_name(function.name()), Some(*function));
        }
        assert_eq!(Function::from_name("dayofweek2"), None);
    }

    #[test]
    fn arguments_of_other_types_are_not_accepted() {
        use DataType as T;
        assert!(Function::Add.accepts(&[&T::Integer, &T::Integer], &T::Integer));
        assert!(!Function::Add.accepts(&[&T::Integer, &T::Long], &T::Long));
        assert!(!Function::Divide.accepts(&[&T::Integer, &T::Integer], &T::Double));
        assert!(!Function::Add.accepts(&[&T::Integer], &T::Integer));
        assert!(!Function::Case.accepts(&[&T::Integer, &T::Integer], &T::Integer));
        assert!(Function::Case.accepts(&[&T::Boolean, &T::Long, &T::Long], &T::Long));
    }
}
