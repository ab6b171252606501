//! The implementation of each function that is evaluated by column.

use std::sync::Arc;

use super::error::EvalResult;
use super::function_call::FunctionCall;
use super::{arith, collection, compare, datetime, pattern, string};
use crate::error::Error;
use crate::expr::function::Function;
use crate::protocol::schema::DataType;

/// Evaluates a call with the implementation of its function.
pub(super) fn call_function(call: &FunctionCall<'_>) -> EvalResult {
    use Function as F;
    match call.function {
        F::Not => Ok(Arc::new(arrow_arith::boolean::not(
            call.arg(0)?.booleans()?,
        )?)),
        F::IsNull => Ok(Arc::new(arrow_arith::boolean::is_null(
            &call.arg(0)?.array,
        )?)),
        F::IsNotNull => Ok(Arc::new(arrow_arith::boolean::is_not_null(
            &call.arg(0)?.array,
        )?)),
        F::IsNan => compare::is_nan(call),
        F::Equal | F::EqualNullSafe | F::Less | F::LessEqual | F::Greater | F::GreaterEqual => {
            compare::call(call)
        }
        F::Greatest | F::Least => compare::extreme(call),
        F::Like | F::RLike | F::StartsWith | F::EndsWith | F::Contains => pattern::call(call),
        F::Add
        | F::Subtract
        | F::Multiply
        | F::Divide
        | F::IntegralDivide
        | F::Remainder
        | F::PositiveModulo => arith::binary(call),
        F::Negative | F::Abs => arith::unary(call),
        F::Sign | F::Sqrt | F::Exp | F::Ln | F::Log10 => arith::of_double(call),
        F::Pow | F::Log => arith::of_two_doubles(call),
        F::Round | F::BankersRound => arith::round(call),
        F::Floor | F::Ceil => arith::floor(call),
        F::BitAnd | F::BitOr | F::BitXor => arith::bits(call),
        F::BitNot => arith::bit_not(call),
        F::ShiftLeft | F::ShiftRight => arith::shift(call),
        F::Reverse | F::Concat if matches!(call.result, DataType::Array(_)) => {
            collection::rearrange(call)
        }
        F::Lower | F::Upper | F::InitCap | F::Reverse => string::letters(call),
        F::Trim | F::LeftTrim | F::RightTrim => string::trim(call),
        F::Length | F::OctetLength => string::length(call),
        F::Substring | F::Left | F::Right => string::substring(call),
        F::Concat => string::concat(call),
        F::ConcatWs => string::concat_ws(call),
        F::Replace => string::replace(call),
        F::LeftPad | F::RightPad => string::pad(call),
        F::Repeat => string::repeat(call),
        F::Instr | F::Locate => string::find(call),
        F::SplitPart => string::split_part(call),
        F::Hex => string::hex(call),
        F::Unhex => string::unhex(call),
        F::Md5 | F::Sha2 => string::digest(call),
        F::Year
        | F::Month
        | F::Day
        | F::Quarter
        | F::DayOfWeek
        | F::Weekday
        | F::DayOfYear
        | F::WeekOfYear
        | F::Hour
        | F::Minute
        | F::Second => datetime::field(call),
        F::DateTrunc => datetime::date_trunc(call),
        F::Trunc => datetime::trunc(call),
        F::DateAdd | F::DateSub | F::AddMonths => datetime::add(call),
        F::TimestampAddMonths | F::TimestampAddMicros => datetime::add_to_timestamp(call),
        F::MonthsBetween => datetime::months_between(call),
        F::DateDiff => datetime::date_diff(call),
        F::LastDay => datetime::last_day(call),
        F::NextDay => datetime::next_day(call),
        F::DateFormat | F::FromUnixtime => datetime::format(call),
        F::MakeDate => datetime::make_date(call),
        F::UnixMicros | F::UnixTimestamp => datetime::to_unix(call),
        F::TimestampMicros | F::TimestampSeconds => datetime::from_unix(call),
        F::Size => collection::size(call),
        F::ArrayContains => collection::contains(call),
        F::ElementAt | F::Get | F::GetItem => collection::element(call),
        F::GetField => collection::field(call),
        F::MapKeys | F::MapValues => collection::map_part(call),
        F::MakeArray => collection::make_array(call),
        F::MakeMap => collection::make_map(call),
        F::NamedStruct => collection::make_struct(call),
        // Evaluated lazily, before their arguments.
        F::And | F::Or | F::If | F::Case | F::Coalesce => Err(Error::internal(format!(
            "`{}` is not evaluated by column",
            call.function.name()
        ))
        .into()),
    }
}
