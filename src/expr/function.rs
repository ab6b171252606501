//! The table of functions: what the core evaluates, by which names it is called, which types it
//! takes and returns, and whether it can fail.
//!
//! A tree whose types do not match this table is refused while it is read. The table is closed on
//! purpose: the same name means different things in different engines, so a function that is not in
//! the table is refused by name.

use std::sync::LazyLock;

use super::signature::{
    FunctionParameter, FunctionSignature, is_decimal, is_ordered, is_real, parse_signatures, same,
};
use crate::protocol::schema::{DataType, MapType, StructType};

/// When a function itself (not its arguments) can raise an error for some row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureCondition {
    Never,
    /// In ANSI mode.
    Ansi,
    /// In ANSI mode, if no argument is a `float` or `double`.
    AnsiUnlessReal,
    /// In ANSI mode, if the result is a decimal.
    AnsiIfDecimal,
    /// If an argument is a date: far from 1970 it has no timestamp.
    IfDateArgument,
    /// Also where the value may exceed the memory limit of a row.
    Always,
}

macro_rules! functions {
    ($($variant:ident: $name:literal [$($sql:literal),*] $signatures:literal $failure:ident,)*) => {
        /// A function of the core.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Function {
            $(#[doc = concat!("`", $name, "`: `", $signatures, "`")] $variant,)*
        }

        impl Function {
            /// Every function.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The function of this name in a tree.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Some(match name {
                    $($name => Self::$variant,)*
                    _ => return None,
                })
            }

            /// The name in a tree.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Names in SQL that mean exactly this function, with its first signature. Others (and
            /// operators) get their types and their function by rules of the binder.
            #[must_use]
            pub fn sql_names(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($sql),*],)* }
            }

            fn signature_text(self) -> &'static str {
                match self { $(Self::$variant => $signatures,)* }
            }

            fn failure(self) -> FailureCondition {
                match self { $(Self::$variant => FailureCondition::$failure,)* }
            }
        }
    };
}

// Name in a tree, names in SQL, signatures (see `signature.rs`), when it fails.
functions! {
    // Logic and comparison.
    And: "and" [] "(boolean, boolean+) -> boolean" Never,
    Or: "or" [] "(boolean, boolean+) -> boolean" Never,
    Not: "not" [] "(boolean) -> boolean" Never,
    Equal: "=" [] "(T: ordered, T) -> boolean" Never,
    EqualNullSafe: "<=>" [] "(T: ordered, T) -> boolean" Never,
    Less: "<" [] "(T: ordered, T) -> boolean" Never,
    LessEqual: "<=" [] "(T: ordered, T) -> boolean" Never,
    Greater: ">" [] "(T: ordered, T) -> boolean" Never,
    GreaterEqual: ">=" [] "(T: ordered, T) -> boolean" Never,
    IsNull: "isnull" ["isnull"] "(any) -> boolean" Never,
    IsNotNull: "isnotnull" ["isnotnull"] "(any) -> boolean" Never,
    IsNan: "isnan" [] "(float | double) -> boolean" Never,
    // Arithmetic; a decimal result has the precision and scale that the caller states.
    Add: "+" [] "(decimal, decimal) -> decimal; (T: integral | real, T) -> T" AnsiUnlessReal,
    Subtract: "-" [] "(decimal, decimal) -> decimal; (T: integral | real, T) -> T" AnsiUnlessReal,
    Multiply: "*" [] "(decimal, decimal) -> decimal; (T: integral | real, T) -> T" AnsiUnlessReal,
    Divide: "/" [] "(decimal, decimal) -> decimal; (T: real, T) -> T" Ansi,
    IntegralDivide: "div" [] "(decimal, decimal) -> long; (T: integral, T) -> long" Ansi,
    Remainder: "%" [] "(decimal, decimal) -> decimal; (T: integral | real, T) -> T" Ansi,
    PositiveModulo: "pmod" [] "(decimal, decimal) -> decimal; (T: integral | real, T) -> T" Ansi,
    Negative: "negative" [] "(T: number) -> T" AnsiUnlessReal,
    Abs: "abs" [] "(T: number) -> T" AnsiUnlessReal,
    Sign: "sign" ["sign", "signum"] "(double) -> double" Never,
    // HALF_UP.
    Round: "round" []
        "(decimal, integer?) -> decimal; (T: integral | real, integer?) -> T" AnsiUnlessReal,
    // HALF_EVEN.
    BankersRound: "bround" []
        "(decimal, integer?) -> decimal; (T: integral | real, integer?) -> T" AnsiUnlessReal,
    Floor: "floor" [] "(decimal) -> decimal; (double | long) -> long" AnsiIfDecimal,
    Ceil: "ceil" [] "(decimal) -> decimal; (double | long) -> long" AnsiIfDecimal,
    // NaN below zero.
    Sqrt: "sqrt" ["sqrt"] "(double) -> double" Never,
    Exp: "exp" ["exp"] "(double) -> double" Never,
    // Logarithms: null at or below zero, of the base too.
    Ln: "ln" ["ln"] "(double) -> double" Never,
    Log: "log" [] "(double, double) -> double" Never,
    Log10: "log10" ["log10"] "(double) -> double" Never,
    Pow: "pow" ["pow", "power"] "(double, double) -> double" Never,
    // Nulls are ignored, NaN is the greatest.
    Greatest: "greatest" [] "(T: ordered, T+) -> T" Never,
    Least: "least" [] "(T: ordered, T+) -> T" Never,
    BitAnd: "bitand" [] "(T: integral, T) -> T" Never,
    BitOr: "bitor" [] "(T: integral, T) -> T" Never,
    BitXor: "bitxor" [] "(T: integral, T) -> T" Never,
    BitNot: "bitnot" [] "(T: integral) -> T" Never,
    ShiftLeft: "shiftleft" [] "(T: integer | long, integer) -> T" Never,
    ShiftRight: "shiftright" [] "(T: integer | long, integer) -> T" Never,
    // Strings and binary values.
    Like: "like" [] "(string, string, string?) -> boolean" Always,
    RLike: "rlike" ["rlike", "regexp", "regexp_like"] "(string, string) -> boolean" Never,
    StartsWith: "startswith" ["startswith"]
        "(string, string) -> boolean; (binary, binary) -> boolean" Never,
    EndsWith: "endswith" ["endswith"]
        "(string, string) -> boolean; (binary, binary) -> boolean" Never,
    Contains: "contains" ["contains"]
        "(string, string) -> boolean; (binary, binary) -> boolean" Never,
    Lower: "lower" ["lower", "lcase"] "(string) -> string" Never,
    Upper: "upper" ["upper", "ucase"] "(string) -> string" Never,
    // Only U+0020 is removed unless the second argument has the characters.
    Trim: "trim" [] "(string, string?) -> string" Never,
    LeftTrim: "ltrim" [] "(string, string?) -> string" Never,
    RightTrim: "rtrim" [] "(string, string?) -> string" Never,
    // Code points of a string, bytes of a binary value.
    Length: "length" ["length", "len", "char_length", "character_length"]
        "(string | binary) -> integer" Never,
    OctetLength: "octet_length" ["octet_length"] "(string | binary) -> integer" Never,
    Substring: "substring" [] "(T: string | binary, integer, integer?) -> T" Never,
    Concat: "concat" [] "(T: string | binary | array, T*) -> T" Never,
    ConcatWs: "concat_ws" [] "(string, string | array<string>*) -> string" Never,
    Replace: "replace" ["replace"] "(string, string, string = \"\") -> string" Always,
    LeftPad: "lpad" [] "(string, integer, string?) -> string" Always,
    RightPad: "rpad" [] "(string, integer, string?) -> string" Always,
    Repeat: "repeat" ["repeat"] "(string, integer) -> string" Always,
    Reverse: "reverse" [] "(T: string | array) -> T" Never,
    Instr: "instr" ["instr"] "(string, string) -> integer" Never,
    Locate: "locate" ["locate", "position"] "(string, string, integer = 1) -> integer" Never,
    Left: "left" [] "(T: string | binary, integer) -> T" Never,
    Right: "right" ["right"] "(string, integer) -> string; (binary, integer) -> binary" Never,
    SplitPart: "split_part" ["split_part"] "(string, string, integer) -> string" Always,
    InitCap: "initcap" ["initcap"] "(string) -> string" Never,
    Hex: "hex" [] "(long | string | binary) -> string" Never,
    Unhex: "unhex" ["unhex"] "(string) -> binary" Never,
    Md5: "md5" ["md5"] "(binary) -> string" Never,
    Sha2: "sha2" ["sha2"] "(binary, integer) -> string" Never,
    // Branches.
    If: "if" [] "(boolean, T, T) -> T" Never,
    Case: "case" [] "({boolean, T}+, T?) -> T" Never,
    Coalesce: "coalesce" [] "(T+) -> T" Never,
    // Parts of dates and timestamps.
    Year: "year" ["year"] "(date) -> integer; (timestamp | timestamp_ntz) -> integer" Never,
    Month: "month" ["month"] "(date) -> integer; (timestamp | timestamp_ntz) -> integer" Never,
    Day: "day" ["day", "dayofmonth"]
        "(date) -> integer; (timestamp | timestamp_ntz) -> integer" Never,
    Quarter: "quarter" ["quarter"]
        "(date) -> integer; (timestamp | timestamp_ntz) -> integer" Never,
    // Sunday is 1.
    DayOfWeek: "dayofweek" ["dayofweek"]
        "(date) -> integer; (timestamp | timestamp_ntz) -> integer" Never,
    // Monday is 0.
    Weekday: "weekday" ["weekday"]
        "(date) -> integer; (timestamp | timestamp_ntz) -> integer" Never,
    DayOfYear: "dayofyear" ["dayofyear"]
        "(date) -> integer; (timestamp | timestamp_ntz) -> integer" Never,
    // Of the ISO week.
    WeekOfYear: "weekofyear" ["weekofyear"]
        "(date) -> integer; (timestamp | timestamp_ntz) -> integer" Never,
    Hour: "hour" ["hour"] "(timestamp | timestamp_ntz) -> integer" Never,
    Minute: "minute" ["minute"] "(timestamp | timestamp_ntz) -> integer" Never,
    Second: "second" ["second"] "(timestamp | timestamp_ntz) -> integer" Never,
    // Null for an unknown unit.
    DateTrunc: "date_trunc" ["date_trunc"]
        "(string, timestamp) -> timestamp; (string, timestamp_ntz) -> timestamp_ntz" Always,
    Trunc: "trunc" ["trunc"] "(date, string) -> date" Never,
    DateFormat: "date_format" ["date_format"]
        "(timestamp, string) -> string; (date | timestamp_ntz, string) -> string" IfDateArgument,
    UnixMicros: "unix_micros" [] "(timestamp) -> long" Never,
    UnixTimestamp: "unix_timestamp" [] "(date | timestamp | timestamp_ntz) -> long" IfDateArgument,
    // Arithmetic of dates and timestamps.
    DateAdd: "date_add" ["date_add", "dateadd"] "(date, byte | short | integer) -> date" Never,
    DateSub: "date_sub" ["date_sub"] "(date, byte | short | integer) -> date" Never,
    AddMonths: "add_months" ["add_months"]
        "(date, integer) -> date; (date, byte | short) -> date" Always,
    MonthsBetween: "months_between" ["months_between"]
        "(timestamp, timestamp, boolean = true) -> double" Always,
    // The end is the first argument.
    DateDiff: "datediff" ["datediff", "date_diff"] "(date, date) -> integer" Never,
    LastDay: "last_day" ["last_day"] "(date) -> date" Never,
    NextDay: "next_day" ["next_day"] "(date, string) -> date" Ansi,
    MakeDate: "make_date" ["make_date"] "(integer, integer, integer) -> date" Ansi,
    TimestampMicros: "timestamp_micros" ["timestamp_micros"] "(integral) -> timestamp" Always,
    TimestampSeconds: "timestamp_seconds" [] "(number) -> timestamp" Always,
    FromUnixtime: "from_unixtime" ["from_unixtime"]
        "(long, string = \"yyyy-MM-dd HH:mm:ss\") -> string" Never,
    // `ts + INTERVAL n MONTH`.
    TimestampAddMonths: "timestamp_add_months" []
        "(T: timestamp | timestamp_ntz, integer) -> T" Always,
    // `ts + INTERVAL .. DAY TO SECOND`; whole days by the calendar of the zone.
    TimestampAddMicros: "timestamp_add_micros" []
        "(T: timestamp | timestamp_ntz, long) -> T" Always,
    // Nested values.
    Size: "size" [] "(array | map) -> integer" Never,
    ArrayContains: "array_contains" [] "(array<T: ordered>, T) -> boolean" Never,
    // From 1; an index outside raises.
    ElementAt: "element_at" [] "(array<T>, integer) -> T; (map<K: ordered, V>, K) -> V" Always,
    // From 0; null outside.
    Get: "get" [] "(array<T>, integer) -> T; (map<K: ordered, V>, K) -> V" Never,
    // `array[i]`, from 0: an index outside raises in ANSI mode.
    GetItem: "getitem" [] "(array<T>, integer) -> T; (map<K: ordered, V>, K) -> V" Ansi,
    GetField: "getfield" [] "(struct, string) -> any" Never,
    MapKeys: "map_keys" [] "(map<K, V>) -> array<K>" Never,
    MapValues: "map_values" [] "(map<K, V>) -> array<V>" Never,
    MakeArray: "array" [] "(T*) -> array<T>" Never,
    // A null key raises, and so do two equal ones.
    MakeMap: "map" [] "({K, V}*) -> map<K, V>" Always,
    NamedStruct: "named_struct" [] "({string, any}+) -> struct" Never,
}

static SIGNATURES: LazyLock<Vec<Vec<FunctionSignature>>> = LazyLock::new(|| {
    // A test reads all of them, so none is left out.
    Function::ALL
        .iter()
        .map(|function| parse_signatures(function.signature_text()).unwrap_or_default())
        .collect()
});

impl Function {
    /// The types that the function takes and returns.
    #[must_use]
    pub fn signatures(self) -> &'static [FunctionSignature] {
        SIGNATURES.get(self as usize).map_or(&[], Vec::as_slice)
    }

    /// Whether the function accepts arguments of these types and returns this type.
    #[must_use]
    pub fn accepts(self, args: &[&DataType], result: &DataType) -> bool {
        self.signatures()
            .iter()
            .any(|signature| signature.accepts(args, result))
            && match (self, result) {
                (Self::MakeMap, DataType::Map(map)) => is_map_constructible(map),
                (Self::NamedStruct, DataType::Struct(fields)) => has_values_of(args, fields),
                _ => true,
            }
    }

    /// Whether evaluating the function itself (not its arguments) can raise an error for some row.
    #[must_use]
    pub fn can_fail(self, args: &[&DataType], result: &DataType, ansi: bool) -> bool {
        // The decimal with the opposite sign may need a digit more, in either mode.
        if matches!(self, Self::Negative | Self::Abs) && is_decimal(result) {
            return true;
        }
        match self.failure() {
            FailureCondition::Never => false,
            FailureCondition::Ansi => ansi,
            FailureCondition::AnsiUnlessReal => {
                ansi && !args.iter().any(|data_type| is_real(data_type))
            }
            FailureCondition::AnsiIfDecimal => ansi && is_decimal(result),
            FailureCondition::IfDateArgument => args.iter().any(|t| matches!(t, DataType::Date)),
            FailureCondition::Always => true,
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

/// Arrow does not support map keys of the null type, and keys are compared.
fn is_map_constructible(map: &MapType) -> bool {
    is_ordered(&map.key) && !matches!(map.key, DataType::Void)
}

/// Whether the arguments of a struct constructor, names and values by turns, have its fields' types.
fn has_values_of(args: &[&DataType], fields: &StructType) -> bool {
    args.len() == 2 * fields.fields.len()
        && args
            .iter()
            .skip(1)
            .step_by(2)
            .zip(&fields.fields)
            .all(|(value, field)| same(value, &field.data_type))
}

/// A name in SQL that means exactly one function of the core.
#[derive(Debug, serde::Serialize)]
pub struct SqlFunction {
    /// The name in SQL.
    pub name: &'static str,
    /// The function's name in a tree.
    pub function: &'static str,
    /// The parameters; arguments are converted to their types.
    pub parameters: &'static [FunctionParameter],
    /// The type of the result.
    pub result: &'static str,
}

/// The functions of SQL that need no rule of the binder.
#[must_use]
pub fn sql_functions() -> Vec<SqlFunction> {
    let mut sql_functions = Vec::new();
    for function in Function::ALL {
        let Some(signature) = function.signatures().first() else {
            continue;
        };
        for name in function.sql_names() {
            sql_functions.push(SqlFunction {
                name,
                function: function.name(),
                parameters: &signature.parameters,
                result: &signature.result_type,
            });
        }
    }
    sql_functions
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
    fn every_signature_is_readable_and_accepts_types() {
        for function in Function::ALL {
            let signatures = parse_signatures(function.signature_text());
            assert!(
                signatures.is_ok_and(|list| !list.is_empty()),
                "{function:?}"
            );
        }
        assert!(parse_signatures("(strin) -> string").is_err());
        assert!(parse_signatures("string -> string").is_err());
    }

    #[test]
    fn arguments_of_other_types_are_not_accepted() {
        use DataType as T;
        assert!(Function::Add.accepts(&[&T::Integer, &T::Integer], &T::Integer));
        assert!(!Function::Add.accepts(&[&T::Integer, &T::Long], &T::Long));
        assert!(!Function::Divide.accepts(&[&T::Integer, &T::Integer], &T::Double));
        assert!(!Function::Add.accepts(&[&T::Integer], &T::Integer));
        assert!(!Function::Add.accepts(&[&T::Integer; 3], &T::Integer));
        assert!(!Function::Case.accepts(&[&T::Integer, &T::Integer], &T::Integer));
        assert!(Function::Case.accepts(&[&T::Boolean, &T::Long, &T::Long], &T::Long));
        assert!(!Function::Case.accepts(&[&T::Boolean, &T::Long, &T::Integer], &T::Long));
        assert!(!Function::Case.accepts(&[&T::Boolean], &T::Long));
        assert!(Function::ConcatWs.accepts(&[&T::String], &T::String));
        assert!(!Function::Coalesce.accepts(&[], &T::String));
        assert!(Function::Locate.accepts(&[&T::String; 2], &T::Integer));
    }

    #[test]
    fn a_default_is_a_value_of_the_table() {
        let signature = &Function::FromUnixtime.signatures()[0];
        let default = signature.parameters[1].default.as_ref();
        assert_eq!(
            default.and_then(|value| value.as_str()),
            Some("yyyy-MM-dd HH:mm:ss")
        );
    }
}
