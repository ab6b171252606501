//! Fuzzing of the evaluator: random typed trees over random batches, within small limits of bytes.
//!
//! Whatever the tree, the evaluation does not panic, holds no more memory than its limits say, and
//! gives every row the value that it has alone. The seconds and the seed are those of `fuzz.rs`;
//! a failure names the number that `FUZZ_CASE` runs alone.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{Array, ArrayRef, ListArray, MapArray, RecordBatch, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::DataType as Arrow;
use deltafast::error::Error;
use deltafast::expr::eval::budget::EvaluationLimits;
use deltafast::expr::{BoundExpr, CastMode, Expr, Function, Scalar};
use deltafast::protocol::calendar::TimeZoneSpec;
use deltafast::protocol::schema::{DataType, StringLayout};

use super::fuzz::{Random, long_seconds, seed, setting};

/// Counts what each thread holds; blocks that another thread frees stay counted.
#[cfg_attr(feature = "python", allow(dead_code))]
struct CountingAllocator;

thread_local! {
    /// Bytes held now, and at most so far.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

#[cfg_attr(feature = "python", allow(dead_code))]
fn count(bytes: i64) {
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: everything is the system's allocator's; it only counts, without allocating.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

// The extension brings an allocator of its own.
#[cfg(not(feature = "python"))]
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// What `work` holds at most beyond what was held before it.
fn most_held<T>(work: impl FnOnce() -> T) -> (T, i64) {
    let before = HELD.get().0;
    HELD.set((before, before));
    let value = work();
    (value, HELD.get().1 - before)
}

const TYPES: &[&str] = &[
    r#""boolean""#,
    r#""byte""#,
    r#""integer""#,
    r#""long""#,
    r#""float""#,
    r#""double""#,
    r#""decimal(10,2)""#,
    r#""decimal(38,18)""#,
    r#""string""#,
    r#""binary""#,
    r#""date""#,
    r#""timestamp""#,
    r#""timestamp_ntz""#,
    r#"{"type":"array","elementType":"integer","containsNull":true}"#,
    r#"{"type":"array","elementType":"string","containsNull":true}"#,
    r#"{"type":"map","keyType":"string","valueType":"integer","valueContainsNull":true}"#,
    r#"{"type":"struct","fields":[{"name":"x","type":"integer","nullable":true,"metadata":{}},{"name":"y","type":"string","nullable":true,"metadata":{}}]}"#,
];

/// Strings that some functions expect as arguments.
const TEXTS: &[&str] = &[
    "",
    "a",
    "x",
    "y",
    "a b",
    "ß日𝄞",
    "12",
    "-1.5",
    "2024-03-10 02:30:00",
    "true",
    "%_",
    "a|[0-9]$",
    "yyyy-MM-dd HH:mm",
    "month",
    "MONDAY",
];

/// Limits so small that evaluations reach them often.
const LIMITS: EvaluationLimits = EvaluationLimits {
    piece: 64 << 10,
    row: 512 << 10,
    whole: 4 << 20,
};
/// What a tree may hold beyond the values that the limits count: nulls, offsets, rows selected,
/// both halves of a growing buffer, and the values of the batch in another layout.
const HELD_ALONGSIDE: i64 = 4 << 20;
const DEPTH: usize = 4;
const ROWS: usize = 12;

/// The types, and the calls that give each: a function and the types of its arguments.
struct ExpressionGrammar {
    types: Vec<DataType>,
    calls: HashMap<usize, Vec<(Function, Vec<usize>)>>,
    casts: HashMap<usize, Vec<(usize, CastMode)>>,
}

impl ExpressionGrammar {
    fn new() -> Self {
        let types: Vec<DataType> = TYPES
            .iter()
            .map(|json| DataType::from_json(&serde_json::from_str(json).unwrap()).unwrap())
            .collect();
        let count = types.len();
        let (mut calls, mut casts): (HashMap<usize, Vec<_>>, HashMap<usize, Vec<_>>) =
            (HashMap::new(), HashMap::new());
        let mut shapes: Vec<Vec<usize>> = (0..count).map(|a| vec![a]).collect();
        shapes.extend((0..count * count).map(|n| vec![n / count, n % count]));
        shapes.extend(
            (0..count * count * count)
                .map(|n| vec![n / count / count, n / count % count, n % count]),
        );
        for function in Function::ALL {
            for shape in &shapes {
                let given: Vec<&DataType> = shape.iter().map(|n| &types[*n]).collect();
                for (result, data_type) in types.iter().enumerate() {
                    if function.accepts(&given, data_type) {
                        calls
                            .entry(result)
                            .or_default()
                            .push((*function, shape.clone()));
                    }
                }
            }
        }
        for (from, source) in types.iter().enumerate() {
            for (to, target) in types.iter().enumerate().filter(|(to, _)| *to != from) {
                for mode in [CastMode::Ansi, CastMode::Legacy, CastMode::Try] {
                    if deltafast::expr::eval::cast::is_possible(source, target, mode) {
                        casts.entry(to).or_default().push((from, mode));
                    }
                }
            }
        }
        Self {
            types,
            calls,
            casts,
        }
    }

    fn tree(&self, random: &mut Random, wanted: usize, depth: usize) -> Expr {
        let leaf = |random: &mut Random| {
            if self.types[wanted].is_nested() || random.below(3) > 0 {
                Expr::Column {
                    path: vec![format!("c{wanted}")],
                    data_type: self.types[wanted].clone(),
                }
            } else {
                literal(random, &self.types[wanted])
            }
        };
        if depth == 0 || random.below(8) == 0 {
            return leaf(random);
        }
        if random.below(6) == 0
            && let Some(casts) = self.casts.get(&wanted)
        {
            let (from, mode) = casts[random.below(casts.len())];
            let arg = self.tree(random, from, depth - 1);
            return Expr::cast(arg, self.types[wanted].clone(), mode)
                .unwrap_or_else(|_| leaf(random));
        }
        let Some(calls) = self.calls.get(&wanted) else {
            return leaf(random);
        };
        let function = calls[random.below(calls.len())].0;
        let function = if random.below(4) == 0 {
            GROWING[random.below(GROWING.len())]
        } else {
            function
        };
        let shapes: Vec<&Vec<usize>> = calls
            .iter()
            .filter(|(other, _)| *other == function)
            .map(|(_, shape)| shape)
            .collect();
        if shapes.is_empty() {
            return leaf(random);
        }
        let shape = shapes[random.below(shapes.len())];
        let mut args: Vec<Expr> = shape
            .iter()
            .map(|n| self.tree(random, *n, depth - 1))
            .collect();
        for _ in 0..6 {
            if let Ok(call) = Expr::call(function, args.clone(), self.types[wanted].clone()) {
                return call;
            }
            // Some arguments must be literals, and of few values.
            let n = random.below(args.len());
            if !self.types[shape[n]].is_nested() {
                args[n] = literal(random, &self.types[shape[n]]);
            }
        }
        leaf(random)
    }
}

/// Functions whose value is larger than their arguments.
const GROWING: &[Function] = &[
    Function::Repeat,
    Function::LeftPad,
    Function::RightPad,
    Function::Replace,
    Function::Concat,
    Function::ConcatWs,
    Function::MakeArray,
    Function::Hex,
];

trait NestedType {
    fn is_nested(&self) -> bool;
}

impl NestedType for DataType {
    fn is_nested(&self) -> bool {
        matches!(
            self,
            DataType::Array(_) | DataType::Map(_) | DataType::Struct(_)
        )
    }
}

fn literal(random: &mut Random, data_type: &DataType) -> Expr {
    Expr::Literal {
        value: scalar(random, data_type),
        data_type: data_type.clone(),
    }
}

fn scalar(random: &mut Random, data_type: &DataType) -> Scalar {
    let longs = |random: &mut Random, low: i64, high: i64| {
        let some = [
            0,
            1,
            -1,
            2,
            7,
            100,
            5000,
            200_000,
            1_710_055_800_000_000,
            low,
            high,
        ];
        Scalar::Long(some[random.below(some.len())].clamp(low, high))
    };
    if random.below(8) == 0 {
        return Scalar::Null;
    }
    match data_type {
        DataType::Boolean => Scalar::Boolean(random.below(2) == 0),
        DataType::Byte => longs(random, i8::MIN.into(), i8::MAX.into()),
        DataType::Integer | DataType::Date => longs(random, i32::MIN.into(), i32::MAX.into()),
        DataType::Float => Scalar::Double(
            [0.0, -0.0, 1.5, f64::NAN, f64::INFINITY, f64::from(f32::MAX)][random.below(6)],
        ),
        DataType::Double => Scalar::Double(
            [
                0.0,
                -0.0,
                2.5,
                f64::NAN,
                f64::NEG_INFINITY,
                f64::MAX,
                5e-324,
            ][random.below(7)],
        ),
        DataType::Decimal(precision, _) => {
            let most = 10_i128.pow(u32::from(*precision)) - 1;
            Scalar::Decimal([0, 1, -1, 333, most, -most][random.below(6)])
        }
        DataType::String => {
            let text = TEXTS[random.below(TEXTS.len())];
            Scalar::Text(if random.below(6) == 0 {
                text.repeat(random.below(500)).into()
            } else {
                text.into()
            })
        }
        DataType::Binary => Scalar::Bytes(TEXTS[random.below(TEXTS.len())].as_bytes().into()),
        _ => longs(random, i64::MIN, i64::MAX),
    }
}

/// A column of random values; text in any layout.
fn column(random: &mut Random, data_type: &DataType, rows: usize) -> ArrayRef {
    let plain = data_type.to_arrow(StringLayout::Plain);
    let nulls = |random: &mut Random| NullBuffer::from_iter((0..rows).map(|_| random.below(6) > 0));
    let offsets =
        |random: &mut Random| OffsetBuffer::from_lengths((0..rows).map(|_| random.below(5)));
    match (data_type, &plain) {
        (DataType::Array(array), Arrow::List(field)) => {
            let offsets: OffsetBuffer<i32> = offsets(random);
            let values = plain_column(random, &array.element, offsets.last() as usize);
            Arc::new(ListArray::new(
                Arc::clone(field),
                offsets,
                values,
                Some(nulls(random)),
            ))
        }
        (DataType::Map(map), Arrow::Map(field, sorted)) => {
            let Arrow::Struct(fields) = field.data_type() else {
                unreachable!()
            };
            let offsets = offsets(random);
            let count = offsets.last() as usize;
            let keys: arrow_array::StringArray =
                (0..count).map(|n| Some(format!("k{}", n % 3))).collect();
            let entries = StructArray::new(
                fields.clone(),
                vec![Arc::new(keys), plain_column(random, &map.value, count)],
                None,
            );
            Arc::new(MapArray::new(
                Arc::clone(field),
                offsets,
                entries,
                Some(nulls(random)),
                *sorted,
            ))
        }
        (DataType::Struct(made), Arrow::Struct(fields)) => {
            let columns = made
                .fields
                .iter()
                .map(|field| plain_column(random, &field.data_type, rows))
                .collect();
            Arc::new(StructArray::new(
                fields.clone(),
                columns,
                Some(nulls(random)),
            ))
        }
        (DataType::String, _) => {
            let layouts = [
                Arrow::Utf8,
                Arrow::LargeUtf8,
                Arrow::Utf8View,
                Arrow::Dictionary(Box::new(Arrow::Int32), Box::new(Arrow::Utf8)),
            ];
            let layout = &layouts[random.below(layouts.len())];
            arrow_cast::cast(&plain_column(random, data_type, rows), layout).unwrap()
        }
        _ => plain_column(random, data_type, rows),
    }
}

fn plain_column(random: &mut Random, data_type: &DataType, rows: usize) -> ArrayRef {
    if rows == 0 {
        return arrow_array::new_empty_array(&data_type.to_arrow(StringLayout::Plain));
    }
    if data_type.is_nested() {
        return column(random, data_type, rows);
    }
    let values: Vec<ArrayRef> = (0..rows)
        .map(|_| scalar(random, data_type).to_array(data_type).unwrap())
        .collect();
    arrow_select::concat::concat(
        &values
            .iter()
            .map(AsRef::as_ref)
            .collect::<Vec<&dyn Array>>(),
    )
    .unwrap()
}

fn batch(random: &mut Random, types: &[DataType]) -> RecordBatch {
    let rows = 1 + random.below(ROWS);
    let columns = types
        .iter()
        .enumerate()
        .map(|(n, data_type)| (format!("c{n}"), column(random, data_type, rows + 2), true));
    // A slice, as readers give them: what stands before and behind it does not count.
    RecordBatch::try_from_iter_with_nullable(columns)
        .unwrap()
        .slice(random.below(3), rows)
}

/// Whether two values are the same. The sign of a NaN is no part of its value, and a processor
/// chooses it; `Debug` shows every NaN alike.
fn is_same(one: &ArrayRef, other: &ArrayRef) -> bool {
    let has_floats = format!("{:?}", one.data_type()).contains("Float");
    one.to_data() == other.to_data() || has_floats && format!("{one:?}") == format!("{other:?}")
}

fn check(bound: &BoundExpr, batch: &RecordBatch) -> Result<(), String> {
    let (whole, held) = most_held(|| bound.evaluate_within(batch, LIMITS));
    let most = (LIMITS.piece + 2 * LIMITS.row + 2 * LIMITS.whole) as i64 + HELD_ALONGSIDE;
    if held > most {
        return Err(format!("holds {held} bytes, more than {most}"));
    }
    let whole = match whole {
        // The values of all rows together are limited as well.
        Err(Error::Resource { .. }) => return Ok(()),
        whole => whole,
    };
    let alone: Vec<_> = (0..batch.num_rows())
        .map(|row| bound.evaluate_within(&batch.slice(row, 1), LIMITS))
        .collect();
    match whole {
        Ok(whole) => {
            if *whole.data_type() != bound.data_type().to_arrow(StringLayout::Plain) {
                return Err(format!("gives {}", whole.data_type()));
            }
            for (row, value) in alone.into_iter().enumerate() {
                let value = value.map_err(|error| format!("row {row} fails alone: {error}"))?;
                if !is_same(&whole.slice(row, 1), &value) {
                    return Err(format!(
                        "row {row} is {:?} alone and {:?} in the batch",
                        value,
                        whole.slice(row, 1)
                    ));
                }
            }
        }
        Err(Error::Internal { what, .. }) => return Err(format!("a defect: {what}")),
        Err(error) if alone.iter().all(Result::is_ok) => {
            return Err(format!("fails only as a batch: {error}"));
        }
        Err(_) => {}
    }
    Ok(())
}

#[test]
fn trees_give_a_row_the_same_value_alone_and_hold_bounded_memory() {
    let language = ExpressionGrammar::new();
    let seed = seed();
    let only = setting("FUZZ_CASE", 0);
    let until = Instant::now() + Duration::from_secs(long_seconds());
    let mut case = seed << 32;
    let (mut evaluated, mut failed) = (0_u64, 0_u64);
    while Instant::now() < until {
        case += 1;
        let case = if only > 0 { only } else { case };
        let mut random = Random::new(case);
        let wanted = random.below(language.types.len());
        let expr = language.tree(&mut random, wanted, DEPTH);
        let batch = batch(&mut random, &language.types);
        let zone = TimeZoneSpec::parse(["UTC", "America/New_York"][random.below(2)]).unwrap();
        let bound = BoundExpr {
            expr,
            ansi: random.below(2) == 0,
            zone,
        };
        let begun = Instant::now();
        let checked = catch_unwind(AssertUnwindSafe(|| check(&bound, &batch)))
            .unwrap_or_else(|_| Err("panics".to_owned()));
        if let Err(what) = checked {
            panic!("FUZZ_CASE={case}: `{bound}` {what}\n{batch:?}");
        }
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "FUZZ_CASE={case}: `{bound}` takes {:?}",
            begun.elapsed()
        );
        evaluated += 1;
        failed += u64::from(bound.evaluate_within(&batch, LIMITS).is_err());
        if only > 0 {
            break;
        }
    }
    println!("trees: {evaluated}, of which {failed} have no value");
    assert!(
        only > 0 || failed < evaluated / 2 && evaluated > 200,
        "{failed} of {evaluated} have no value"
    );
}
