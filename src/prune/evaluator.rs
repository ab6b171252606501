//! The pruning evaluator: walks the tree and decides each leaf from the ranges of its operands.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{Field, Schema};

use crate::expr::eval::compare::comparator;
use crate::expr::eval::pattern::LikePattern;
use crate::expr::eval::set_membership;
use crate::expr::eval::value::StringColumn;
use crate::expr::eval::{ColumnarValue, cast, datetime, is_null_intolerant};
use crate::expr::in_set::{InSet, SortedValues};
use crate::expr::{BoundExpr, CastMode, Expr, Function, Scalar};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::schema::DataType;
use crate::prune::outcomes::PredicateOutcomes;
use crate::prune::range::{
    ValueRange, may_be_at_most, may_be_equal, may_be_less, shift_zone, true_bits, truncated_prefix,
};
use crate::prune::statistics::PruningStatistics;

pub(super) struct PruningEvaluator<'a> {
    bound: &'a BoundExpr,
    statistics: &'a dyn PruningStatistics,
    rows: usize,
    /// The partition columns in the predicate.
    partitions: RecordBatch,
    /// Their paths.
    exact: BTreeSet<Vec<String>>,
}

impl<'a> PruningEvaluator<'a> {
    pub(super) fn new(bound: &'a BoundExpr, facts: &'a dyn PruningStatistics) -> Self {
        let rows = facts.rows();
        let mut exact = BTreeSet::new();
        let (mut fields, mut columns): (Vec<Field>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
        for path in bound.columns() {
            // Partition columns are never nested.
            let ([name], Some(array)) = (path, facts.partition(path)) else {
                continue;
            };
            if array.len() == rows {
                exact.insert(path.to_vec());
                fields.push(Field::new(name, array.data_type().clone(), true));
                columns.push(array);
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let partitions =
            RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
                .unwrap_or_else(|_| RecordBatch::from(StructArray::new_empty_fields(rows, None)));
        Self {
            bound,
            statistics: facts,
            rows,
            partitions,
            exact,
        }
    }

    fn none(&self) -> BooleanBuffer {
        BooleanBuffer::new_unset(self.rows)
    }

    fn all(&self) -> BooleanBuffer {
        BooleanBuffer::new_set(self.rows)
    }

    /// Whether the value depends only on partition columns and literals.
    fn is_exact(&self, expr: &Expr) -> bool {
        let mut columns = BTreeSet::new();
        expr.collect_columns(&mut columns);
        columns.into_iter().all(|path| self.exact.contains(path))
    }

    /// The value of an expression that [`Self::is_exact`].
    fn value(&self, expr: &Expr) -> Option<ColumnarValue> {
        if let Expr::Literal { value, data_type } = expr {
            return Some(ColumnarValue {
                array: value.to_array(data_type).ok()?,
                scalar: true,
            });
        }
        // An error belongs to a row of an unknown file: the scan will raise it or not evaluate the
        // row.
        self.bound
            .with(expr.clone())
            .evaluate(&self.partitions)
            .ok()
            .map(ColumnarValue::column)
    }

    /// The outcomes of a predicate.
    pub(super) fn predicate(&self, expr: &Expr) -> PredicateOutcomes {
        if self.rows == 0 {
            return PredicateOutcomes::unknown(0);
        }
        if self.is_exact(expr)
            && let Some(value) = self.value(expr)
        {
            return self.known(&value);
        }
        match expr {
            Expr::Call { function, args, .. } => match (function, args.as_slice()) {
                (Function::And, args) => args
                    .iter()
                    .map(|a| self.predicate(a))
                    .reduce(|a, b| a.and(&b))
                    .unwrap_or_else(|| PredicateOutcomes::unknown(self.rows)),
                (Function::Or, args) => args
                    .iter()
                    .map(|a| self.predicate(a))
                    .reduce(PredicateOutcomes::or)
                    .unwrap_or_else(|| PredicateOutcomes::unknown(self.rows)),
                (Function::Not, [arg]) => self.predicate(arg).not(),
                (Function::IsNull, [arg]) => self.is_null(arg),
                (Function::IsNotNull, [arg]) => self.is_null(arg).not(),
                (Function::EqualNullSafe, [a, b]) => self.equal_null_safe(a, b),
                (
                    Function::Equal
                    | Function::Less
                    | Function::LessEqual
                    | Function::Greater
                    | Function::GreaterEqual,
                    [a, b],
                ) => self.comparison(*function, &self.range(a), &self.range(b)),
                (
                    Function::Like,
                    [
                        value,
                        Expr::Literal {
                            value: Scalar::Text(pattern),
                            ..
                        },
                        escape @ ..,
                    ],
                ) => self.like(value, pattern, escape),
                (
                    Function::StartsWith,
                    [
                        value,
                        Expr::Literal {
                            value: Scalar::Text(prefix),
                            data_type: DataType::String,
                        },
                    ],
                ) => self.starts_with(&self.range(value), prefix, true),
                _ => self.truth(&self.range(expr)),
            },
            Expr::InList { arg, values, set } => self.in_list(arg, values, set),
            _ => self.truth(&self.range(expr)),
        }
    }

    /// A predicate whose value is known for every file.
    fn known(&self, value: &ColumnarValue) -> PredicateOutcomes {
        let Some(values) = value.array.as_boolean_opt() else {
            // Void: null everywhere.
            return PredicateOutcomes {
                may_be_true: self.none(),
                may_be_false: self.none(),
                may_be_null: BooleanBuffer::new_set(self.rows),
            };
        };
        let bits = |wanted: Option<bool>| {
            BooleanBuffer::collect_bool(self.rows, |row| {
                let row = value.row(row);
                values.is_valid(row).then(|| values.value(row)) == wanted
            })
        };
        PredicateOutcomes {
            may_be_true: bits(Some(true)),
            may_be_false: bits(Some(false)),
            may_be_null: bits(None),
        }
    }

    /// A boolean used as a predicate.
    fn truth(&self, range: &ValueRange) -> PredicateOutcomes {
        let is = |operand: &Option<ColumnarValue>, wanted: bool| {
            let Some(operand) = operand else {
                return self.none();
            };
            let Some(values) = operand.array.as_boolean_opt() else {
                return self.none();
            };
            BooleanBuffer::collect_bool(self.rows, |row| {
                !operand.is_null(row) && values.value(operand.row(row)) == wanted
            })
        };
        // A maximum of false excludes true, a minimum of true excludes false.
        PredicateOutcomes {
            may_be_true: &range.may_have_value & &!&is(&range.high, false),
            may_be_false: &range.may_have_value & &!&is(&range.low, true),
            may_be_null: range.may_be_null.clone(),
        }
    }

    fn is_null(&self, arg: &Expr) -> PredicateOutcomes {
        let range = self.range(arg);
        PredicateOutcomes {
            may_be_true: range.may_be_null,
            may_be_false: range.may_have_value,
            may_be_null: self.none(),
        }
    }

    fn comparison(&self, function: Function, a: &ValueRange, b: &ValueRange) -> PredicateOutcomes {
        let rows = self.rows;
        let (yes, no) = match function {
            Function::Less => (may_be_less(a, b, rows), may_be_at_most(b, a, rows)),
            Function::LessEqual => (may_be_at_most(a, b, rows), may_be_less(b, a, rows)),
            Function::Greater => (may_be_less(b, a, rows), may_be_at_most(a, b, rows)),
            Function::GreaterEqual => (may_be_at_most(b, a, rows), may_be_less(a, b, rows)),
            _ => (may_be_equal(a, b, rows), !&a.are_one_value(b, rows)),
        };
        let values = &a.may_have_value & &b.may_have_value;
        PredicateOutcomes {
            may_be_true: &yes & &values,
            may_be_false: &no & &values,
            may_be_null: &a.may_be_null | &b.may_be_null,
        }
    }

    fn equal_null_safe(&self, a: &Expr, b: &Expr) -> PredicateOutcomes {
        let (a, b) = (self.range(a), self.range(b));
        let plain = self.comparison(Function::Equal, &a, &b);
        let differ = &(&a.may_be_null & &b.may_have_value) | &(&b.may_be_null & &a.may_have_value);
        PredicateOutcomes {
            may_be_true: &plain.may_be_true | &(&a.may_be_null & &b.may_be_null),
            may_be_false: &plain.may_be_false | &differ,
            may_be_null: self.none(),
        }
    }

    fn in_list(&self, arg: &Expr, values: &[Scalar], set: &InSet) -> PredicateOutcomes {
        let range = self.range(arg);
        let has_null = set.has_null();
        let inside = set.sorted(values, arg.data_type()).map_or_else(
            || self.all(),
            |sorted| self.any_in_range(&range, sorted, arg.data_type()),
        );
        // The single value of a file is in the list.
        let certain = range.one_value(self.rows).and_then(|one| {
            let low = range.low.as_ref()?;
            let found = true_bits(&set_membership::contains(set, &low.array).ok()?);
            Some(BooleanBuffer::collect_bool(self.rows, |row| {
                one.value(row) && found.value(low.row(row))
            }))
        });
        let open = !&certain.unwrap_or_else(|| self.none());
        let misses = &range.may_have_value & &open;
        PredicateOutcomes {
            may_be_true: &range.may_have_value & &inside,
            may_be_false: if has_null {
                self.none()
            } else {
                misses.clone()
            },
            may_be_null: if has_null {
                &range.may_be_null | &misses
            } else {
                range.may_be_null
            },
        }
    }

    /// The files whose range holds one of the values.
    fn any_in_range(
        &self,
        range: &ValueRange,
        sorted: &SortedValues,
        data_type: &DataType,
    ) -> BooleanBuffer {
        let unknown = || self.all();
        let list = &sorted.array;
        if list.is_empty() {
            return self.none();
        }
        if range.may_be_nan && sorted.has_nan {
            return unknown();
        }
        let (Some(low), Some(high)) = (&range.low, &range.high) else {
            return self.any_beyond(range, list, data_type);
        };
        let as_list = |array: &ArrayRef| arrow_cast::cast(array, list.data_type()).ok();
        let (Some(lows), Some(highs)) = (as_list(&low.array), as_list(&high.array)) else {
            return unknown();
        };
        let (Ok(from_low), Ok(from_high)) = (comparator(list, &lows), comparator(list, &highs))
        else {
            return unknown();
        };
        let texts = StringColumn::new(list)
            .ok()
            .zip(StringColumn::new(&highs).ok())
            .filter(|_| !range.is_exact);
        BooleanBuffer::collect_bool(self.rows, |row| {
            let (l, h) = (low.row(row), high.row(row));
            let first = if lows.is_null(l) {
                0
            } else {
                first_from(list.len(), |n| from_low(n, l).is_ge())
            };
            if first >= list.len() {
                return false;
            }
            let cut = || {
                texts.as_ref().is_some_and(|(values, highs)| {
                    truncated_prefix(highs.get(h)).is_some_and(|s| values.get(first).starts_with(s))
                })
            };
            highs.is_null(h) || from_high(first, h).is_le() || cut()
        })
    }

    /// [`Self::any_in_range`] when a bound is unknown for all files.
    fn any_beyond(
        &self,
        range: &ValueRange,
        list: &ArrayRef,
        data_type: &DataType,
    ) -> BooleanBuffer {
        if range.may_be_nan {
            return self.all();
        }
        let literal = |position: usize| {
            let array = list.slice(position, 1);
            let value = ColumnarValue {
                array,
                scalar: true,
            };
            ValueRange::exact(value, self.rows, data_type)
        };
        let (least, greatest) = (literal(0), literal(list.len() - 1));
        &may_be_at_most(range, &greatest, self.rows) & &may_be_at_most(&least, range, self.rows)
    }

    fn like(&self, value: &Expr, pattern: &str, escape: &[Expr]) -> PredicateOutcomes {
        let escape = match escape {
            [] => Some('\\'),
            [
                Expr::Literal {
                    value: Scalar::Text(escape),
                    ..
                },
            ] => escape.chars().next(),
            _ => None,
        };
        let range = self.range(value);
        let like = escape.and_then(|escape| LikePattern::new(pattern, escape).ok());
        let Some(like) = like else {
            return PredicateOutcomes {
                may_be_true: range.may_have_value.clone(),
                may_be_false: range.may_have_value,
                may_be_null: BooleanBuffer::new_set(self.rows),
            };
        };
        if let Some(exact) = like.exact() {
            let literal = ColumnarValue {
                array: Arc::new(arrow_array::StringArray::from(vec![exact])),
                scalar: true,
            };
            return self.comparison(
                Function::Equal,
                &range,
                &ValueRange::exact(literal, self.rows, &DataType::String),
            );
        }
        let (prefix, is_all) = like.prefix();
        self.starts_with(&range, &prefix, is_all)
    }

    /// A string that begins with `prefix`, and, unless `is_all`, must satisfy a further condition.
    fn starts_with(&self, range: &ValueRange, prefix: &str, is_all: bool) -> PredicateOutcomes {
        let test = |operand: &Option<ColumnarValue>, unknown: bool, test: &dyn Fn(&str) -> bool| {
            let texts = operand
                .as_ref()
                .and_then(|o| Some((o, StringColumn::new(&o.array).ok()?)));
            match texts {
                Some((o, texts)) => BooleanBuffer::collect_bool(self.rows, |row| {
                    if o.is_null(row) {
                        unknown
                    } else {
                        test(texts.get(o.row(row)))
                    }
                }),
                None if unknown => BooleanBuffer::new_set(self.rows),
                None => self.none(),
            }
        };
        // Strings with the prefix sort from the prefix itself to the last string that begins with
        // it.
        let low = test(&range.low, true, &|low| {
            low <= prefix || low.starts_with(prefix)
        });
        let high = test(&range.high, true, &|high| {
            high >= prefix
                || (!range.is_exact
                    && truncated_prefix(high).is_some_and(|s| prefix.starts_with(s)))
        });
        let all = &test(&range.low, false, &|low| low.starts_with(prefix))
            & &test(&range.high, false, &|high| high.starts_with(prefix));
        let may_be_false = if is_all {
            &range.may_have_value & &!&all
        } else {
            range.may_have_value.clone()
        };
        PredicateOutcomes {
            may_be_true: &(&low & &high) & &range.may_have_value,
            may_be_false,
            may_be_null: range.may_be_null.clone(),
        }
    }

    /// The range of an expression's values in each file.
    fn range(&self, expr: &Expr) -> ValueRange {
        let data_type = expr.data_type();
        if self.is_exact(expr) {
            return match self.value(expr) {
                Some(value) => ValueRange::exact(value, self.rows, data_type),
                None => ValueRange::unknown(self.rows, data_type),
            };
        }
        match expr {
            Expr::Column { path, data_type } => {
                ValueRange::of_statistics(path, data_type, self.statistics)
            }
            Expr::Cast { arg, to, .. } => self.cast(arg, to),
            Expr::Call {
                function: Function::GetField,
                args,
                data_type,
            } => match field_path(args) {
                Some(path) => ValueRange::of_statistics(&path, data_type, self.statistics),
                None => ValueRange::unknown(self.rows, data_type),
            },
            Expr::Call {
                function,
                args,
                data_type,
            } => self
                .monotonic(*function, args, data_type)
                .unwrap_or_else(|| self.nullness(*function, args, data_type)),
            _ => ValueRange::unknown(self.rows, data_type),
        }
    }

    /// The range of a function about which only nullness is known: null if an argument is null, for
    /// null-intolerant functions.
    fn nullness(&self, function: Function, args: &[Expr], data_type: &DataType) -> ValueRange {
        let mut out = ValueRange::unknown(self.rows, data_type);
        let known = is_null_intolerant(function)
            && !matches!(
                function,
                Function::And
                    | Function::Or
                    | Function::If
                    | Function::Case
                    | Function::Coalesce
                    | Function::Locate
            );
        if known {
            for arg in args {
                out.may_have_value = &out.may_have_value & &self.range(arg).may_have_value;
            }
        }
        out
    }

    /// Functions that are monotonic and null only for null: the bounds of the value are the values
    /// of the bounds.
    fn monotonic(
        &self,
        function: Function,
        args: &[Expr],
        data_type: &DataType,
    ) -> Option<ValueRange> {
        let place = self.ordered_argument(function, args)?;
        let argument = args.get(place)?;
        let mut args = args.to_vec();
        *args.get_mut(place)? = Expr::Column {
            path: vec!["value".to_owned()],
            data_type: argument.data_type().clone(),
        };
        let call = self.bound.with(Expr::Call {
            function,
            args,
            data_type: data_type.clone(),
        });
        let apply = |operand: &ColumnarValue| {
            let field = Field::new("value", operand.array.data_type().clone(), true);
            let batch = RecordBatch::try_new(
                Arc::new(Schema::new(vec![field])),
                vec![operand.array.clone()],
            )
            .ok()?;
            Some(ColumnarValue {
                array: call.evaluate(&batch).ok()?,
                scalar: operand.scalar,
            })
        };
        Some(self.range(argument).map(apply, apply, false))
    }

    /// The argument in which the function is monotonic if the others are constant. Overflow must
    /// raise, because wrapping around breaks the order.
    fn ordered_argument(&self, function: Function, args: &[Expr]) -> Option<usize> {
        let is_exact_number =
            |e: &Expr| !matches!(e.data_type(), DataType::Float | DataType::Double);
        let is_constant = |e: &Expr| matches!(e, Expr::Literal { value, .. } if !value.is_null());
        let is_positive = |e: &Expr| match e {
            Expr::Literal {
                value: Scalar::Long(v),
                ..
            } => *v > 0,
            Expr::Literal {
                value: Scalar::Decimal(v),
                ..
            } => *v > 0,
            _ => false,
        };
        let unit_is_known = |e: &Expr| matches!(e, Expr::Literal { value: Scalar::Text(unit), .. } if datetime::truncates(function, unit));
        match (function, args) {
            (
                Function::Year
                | Function::UnixMicros
                | Function::UnixTimestamp
                | Function::TimestampMicros
                | Function::TimestampSeconds,
                [a],
            ) => is_exact_number(a).then_some(0),
            (Function::Trunc, [_, unit]) if unit_is_known(unit) => Some(0),
            // In a region's zone local time sometimes goes back.
            (Function::DateTrunc, [unit, a]) if unit_is_known(unit) => {
                (matches!(self.bound.zone, TimeZoneSpec::Fixed(_))
                    || matches!(a.data_type(), DataType::TimestampNtz))
                .then_some(1)
            }
            (Function::Add | Function::Subtract | Function::Multiply, [a, b])
                if self.bound.ansi && is_exact_number(a) =>
            {
                let usable = |e: &Expr| {
                    if function == Function::Multiply {
                        is_positive(e)
                    } else {
                        is_constant(e)
                    }
                };
                if usable(b) {
                    Some(0)
                } else {
                    (usable(a) && function != Function::Subtract).then_some(1)
                }
            }
            _ => None,
        }
    }

    fn cast(&self, arg: &Expr, to: &DataType) -> ValueRange {
        use DataType as T;
        let from = arg.data_type();
        let range = self.range(arg);
        let zone = self.bound.zone;
        match (from, to) {
            _ if from == to => range,
            (T::Timestamp, T::Date | T::TimestampNtz) => shift_zone(&range, &zone, true, to),
            (T::Date | T::TimestampNtz, T::Timestamp) => shift_zone(&range, &zone, false, to),
            (T::Date, T::TimestampNtz) | (T::TimestampNtz, T::Date) => {
                shift_zone(&range, &TimeZoneSpec::UTC, true, to)
            }
            _ if keeps_order(from, to) => {
                // Such a cast has a result for every value, so the mode does not matter.
                let apply = |operand: &ColumnarValue| {
                    let array = cast::cast(&operand.array, from, to, CastMode::Ansi, &zone).ok()?;
                    Some(ColumnarValue {
                        array,
                        scalar: operand.scalar,
                    })
                };
                range.map(apply, apply, range.may_be_nan)
            }
            _ => {
                // Null stays null, and a value may become null.
                let mut out = ValueRange::unknown(self.rows, to);
                out.may_have_value = range.may_have_value;
                out
            }
        }
    }
}

/// Casts between numbers that have a result for every value and never reverse the order of two
/// values.
fn keeps_order(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    let number = |t: &DataType| {
        matches!(
            t,
            T::Byte | T::Short | T::Integer | T::Long | T::Float | T::Double | T::Decimal(..)
        )
    };
    if !number(from) || !number(to) || cast::can_fail(from, to, CastMode::Ansi) {
        return false;
    }
    // A cast from double to float rounds, which keeps the order too; in a cast to integers some
    // values have no result.
    match (from, to) {
        (T::Float | T::Double, to) => matches!(to, T::Float | T::Double),
        _ => true,
    }
}

/// The path of a field of a struct column.
fn field_path(args: &[Expr]) -> Option<Vec<String>> {
    let [
        arg,
        Expr::Literal {
            value: Scalar::Text(name),
            ..
        },
    ] = args
    else {
        return None;
    };
    let mut path = match arg {
        Expr::Column { path, .. } => path.clone(),
        Expr::Call {
            function: Function::GetField,
            args,
            ..
        } => field_path(args)?,
        _ => return None,
    };
    path.push(name.to_string());
    Some(path)
}

/// The first position below `count` at which `reached` is true, which it then stays; else `count`.
fn first_from(count: usize, reached: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if reached(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}
