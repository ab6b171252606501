//! Functions of arrays, maps and structs.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int32Builder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type};
use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, UInt64Array};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::DataType as Arrow;

use crate::error::{Error, ErrorCode};
use crate::expr::eval::array_layout::{canonical, child, plain};
use crate::expr::eval::budget;
use crate::expr::eval::cast::range;
use crate::expr::eval::columnar_value::{ColumnarValue, reserve_rows};
use crate::expr::eval::compare::comparator;
use crate::expr::eval::error::{EvalError, EvalResult, unexpected};
use crate::expr::eval::function_call::FunctionCall;
use crate::expr::function::Function;
use crate::expr::scalar::Scalar;
use crate::expr::tree::Expr;
use crate::protocol::schema::{DataType, StringLayout};

/// Offsets and elements of an array or map argument.
struct CollectionItems<'a> {
    operand: &'a ColumnarValue,
    offsets: Vec<i32>,
}

impl<'a> CollectionItems<'a> {
    fn of(operand: &'a ColumnarValue) -> EvalResult<Self> {
        let offsets = match (
            operand.array.as_list_opt::<i32>(),
            operand.array.as_map_opt(),
        ) {
            (Some(list), _) => list.value_offsets().to_vec(),
            (_, Some(map)) => map.value_offsets().to_vec(),
            _ => return Err(unexpected(operand.array.data_type())),
        };
        Ok(Self { operand, offsets })
    }

    fn get(&self, row: usize) -> Option<std::ops::Range<usize>> {
        (!self.operand.is_null(row)).then(|| range(&self.offsets, self.operand.row(row)))
    }
}

fn list(operand: &ColumnarValue) -> EvalResult<&ListArray> {
    operand
        .array
        .as_list_opt::<i32>()
        .ok_or_else(|| unexpected(operand.array.data_type()))
}

fn taken(values: &ArrayRef, indices: &UInt64Array, data_type: &DataType) -> EvalResult {
    let array = arrow_select::take::take(values, indices, None)?;
    plain(&canonical(&array, data_type)?, data_type)
}

/// Checks that the elements taken for all rows fit into memory: one element of a constant
/// collection may be taken for each row.
fn reserve_taken(
    collection: &ColumnarValue,
    values: &ArrayRef,
    indices: &UInt64Array,
) -> EvalResult<()> {
    if !collection.scalar {
        return Ok(());
    }
    let bytes = |index: u64| {
        usize::try_from(index)
            .ok()
            .filter(|n| *n < values.len())
            .map_or(0, |n| budget::size(values.slice(n, 1).as_ref()))
    };
    let mut known: std::collections::HashMap<u64, u64> = std::collections::HashMap::new();
    budget::reserve(
        indices
            .iter()
            .flatten()
            .map(|index| *known.entry(index).or_insert_with(|| bytes(index)))
            .fold(0, u64::saturating_add),
    )
}

/// SIZE: null for null.
pub(crate) fn size(call: &FunctionCall<'_>) -> EvalResult {
    let items = CollectionItems::of(call.arg(0)?)?;
    let mut out = Int32Builder::with_capacity(call.rows);
    for row in 0..call.rows {
        out.append_option(
            items
                .get(row)
                .map(|r| i32::try_from(r.len()).unwrap_or(i32::MAX)),
        );
    }
    Ok(Arc::new(out.finish()))
}

/// ARRAY_CONTAINS: null when the value is not found and the array has a null.
pub(crate) fn contains(call: &FunctionCall<'_>) -> EvalResult {
    let (array, wanted) = (call.arg(0)?, call.arg(1)?);
    let items = CollectionItems::of(array)?;
    let values = plain(list(array)?.values(), call.arg_type(1)?)?;
    let needles = plain(&wanted.array, call.arg_type(1)?)?;
    let order = comparator(&values, &needles)?;
    let mut out = BooleanBuilder::with_capacity(call.rows);
    for row in 0..call.rows {
        let found = items
            .get(row)
            .filter(|_| !wanted.is_null(row))
            .and_then(|range| {
                let needle = wanted.row(row);
                let mut unknown = false;
                for item in range {
                    if values.is_null(item) {
                        unknown = true;
                    } else if order(item, needle).is_eq() {
                        return Some(true);
                    }
                }
                (!unknown).then_some(false)
            });
        out.append_option(found);
    }
    Ok(Arc::new(out.finish()))
}

/// ELEMENT_AT, GET, GETITEM.
pub(crate) fn element(call: &FunctionCall<'_>) -> EvalResult {
    let (collection, key) = (call.arg(0)?, call.arg(1)?);
    let items = CollectionItems::of(collection)?;
    let mut indices = UInt64Builder::with_capacity(call.rows);
    if let Some(map) = collection.array.as_map_opt() {
        let keys = plain(map.keys(), call.arg_type(1)?)?;
        let needles = plain(&key.array, call.arg_type(1)?)?;
        let order = comparator(&keys, &needles)?;
        for row in 0..call.rows {
            let needle = key.row(row);
            // The first of equal keys is used.
            let found = items
                .get(row)
                .filter(|_| !key.is_null(row))
                .and_then(|mut range| range.find(|entry| order(*entry, needle).is_eq()));
            indices.append_option(found.map(|n| n as u64));
        }
        let indices = indices.finish();
        reserve_taken(collection, map.values(), &indices)?;
        return taken(map.values(), &indices, call.result);
    }
    let values = list(collection)?.values();
    let numbers = key.primitive::<Int32Type>()?;
    let ansi = call.settings.ansi;
    for row in 0..call.rows {
        let index = key.row(row);
        let Some(range) = items.get(row).filter(|_| numbers.is_valid(index)) else {
            indices.append_null();
            continue;
        };
        let (number, length) = (i64::from(numbers.value(index)), range.len() as i64);
        let (place, code) = match (call.function, number) {
            (Function::ElementAt, 0) => {
                return Err(EvalError::value(
                    ErrorCode::InvalidIndexOfZero,
                    "elements are counted from 1 or from -1, not from 0",
                ));
            }
            (Function::ElementAt, 1..) => (number - 1, ErrorCode::InvalidArrayIndexInElementAt),
            (Function::ElementAt, _) => (length + number, ErrorCode::InvalidArrayIndexInElementAt),
            _ => (number, ErrorCode::InvalidArrayIndex),
        };
        match usize::try_from(place).ok().filter(|p| *p < range.len()) {
            Some(place) => indices.append_value((range.start + place) as u64),
            None if ansi && call.function != Function::Get => {
                return Err(EvalError::value(
                    code,
                    format!("the index {number} is out of bounds: the array has {length} elements"),
                ));
            }
            None => indices.append_null(),
        }
    }
    let indices = indices.finish();
    reserve_taken(collection, values, &indices)?;
    taken(values, &indices, call.result)
}

/// GETFIELD.
pub(crate) fn field(call: &FunctionCall<'_>) -> EvalResult {
    let operand = call.arg(0)?;
    let Some(Expr::Literal {
        value: Scalar::Text(name),
        ..
    }) = call.args.get(1)
    else {
        return Err(Error::internal("`getfield` without a literal name").into());
    };
    let parent = operand
        .array
        .as_struct_opt()
        .ok_or_else(|| unexpected(operand.array.data_type()))?;
    let array = child(parent, name).ok_or_else(|| unexpected(operand.array.data_type()))?;
    let operand = ColumnarValue {
        array: canonical(&array, call.result)?,
        scalar: operand.scalar,
    };
    operand.into_array(call.rows)
}

/// MAP_KEYS and MAP_VALUES: the map's offsets with the entries' column.
pub(crate) fn map_part(call: &FunctionCall<'_>) -> EvalResult {
    let operand = call.arg(0)?;
    let map = operand
        .array
        .as_map_opt()
        .ok_or_else(|| unexpected(operand.array.data_type()))?;
    let values = if call.function == Function::MapKeys {
        map.keys()
    } else {
        map.values()
    };
    let Arrow::List(field) = call.result.to_arrow(StringLayout::Plain) else {
        return Err(unexpected(operand.array.data_type()));
    };
    let field = Arc::new(
        field
            .as_ref()
            .clone()
            .with_nullable(field.is_nullable() || values.null_count() > 0),
    );
    let element = match call.result {
        DataType::Array(a) => plain(values, &a.element)?,
        _ => values.clone(),
    };
    let list = ListArray::try_new(field, map.offsets().clone(), element, map.nulls().cloned())?;
    plain(
        &(ColumnarValue {
            array: Arc::new(list),
            scalar: operand.scalar,
        })
        .into_array(call.rows)?,
        call.result,
    )
}

/// REVERSE and CONCAT of arrays.
pub(crate) fn rearrange(call: &FunctionCall<'_>) -> EvalResult {
    let DataType::Array(element) = call.result else {
        return Err(unexpected(&Arrow::Null));
    };
    let items = call
        .operands
        .iter()
        .map(CollectionItems::of)
        .collect::<EvalResult<Vec<_>>>()?;
    let mut values = Vec::new();
    for operand in call.operands {
        values.push(plain(list(operand)?.values(), &element.element)?);
    }
    reserve_rows(call.operands, call.rows)?;
    let counts = items.iter().map(|items| {
        (0..call.rows)
            .filter_map(|row| items.get(row))
            .map(|range| range.len() as u64)
            .sum::<u64>()
    });
    let count = counts.fold(0, u64::saturating_add);
    budget::reserve(count.saturating_mul(size_of::<(usize, usize)>() as u64))?;
    let (mut places, mut offsets, mut nulls) = (
        Vec::new(),
        vec![0_i32],
        arrow_buffer::NullBufferBuilder::new(call.rows),
    );
    for row in 0..call.rows {
        let ranges: Option<Vec<_>> = items.iter().map(|i| i.get(row)).collect();
        nulls.append(ranges.is_some());
        for (n, range) in ranges.unwrap_or_default().into_iter().enumerate() {
            if call.function == Function::Reverse {
                places.extend(range.rev().map(|item| (n, item)));
            } else {
                places.extend(range.map(|item| (n, item)));
            }
        }
        offsets.push(i32::try_from(places.len()).map_err(|_| budget::too_large())?);
    }
    let arrays: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
    list_of(
        offsets,
        arrow_select::interleave::interleave(&arrays, &places)?,
        nulls.finish(),
        call.result,
    )
}

/// A list array of a type, out of its elements.
fn list_of(
    offsets: Vec<i32>,
    elements: ArrayRef,
    nulls: Option<NullBuffer>,
    result: &DataType,
) -> EvalResult {
    let Arrow::List(field) = result.to_arrow(StringLayout::Plain) else {
        return Err(unexpected(&Arrow::Null));
    };
    let field = Arc::new(field.as_ref().clone().with_nullable(true));
    let list = ListArray::try_new(field, OffsetBuffer::new(offsets.into()), elements, nulls)?;
    plain(&(Arc::new(list) as ArrayRef), result)
}

/// The values of some arguments, interleaved by row.
fn interleaved_by_row<'a>(
    call: &FunctionCall<'a>,
    arguments: impl Iterator<Item = &'a ColumnarValue>,
    data_type: &DataType,
) -> EvalResult {
    let operands: Vec<&ColumnarValue> = arguments.collect();
    if operands.is_empty() {
        return Ok(arrow_array::new_empty_array(
            &data_type.to_arrow(StringLayout::Plain),
        ));
    }
    reserve_rows(operands.iter().copied(), call.rows)?;
    budget::reserve(
        (call.rows as u64).saturating_mul((operands.len() * size_of::<(usize, usize)>()) as u64),
    )?;
    let columns = operands
        .iter()
        .map(|operand| plain(&operand.array, data_type))
        .collect::<EvalResult<Vec<_>>>()?;
    let places: Vec<(usize, usize)> = (0..call.rows)
        .flat_map(|row| {
            operands
                .iter()
                .enumerate()
                .map(move |(n, operand)| (n, operand.row(row)))
        })
        .collect();
    let columns: Vec<&dyn Array> = columns.iter().map(AsRef::as_ref).collect();
    Ok(arrow_select::interleave::interleave(&columns, &places)?)
}

/// Offsets of rows that all have this many entries.
fn even_offsets(rows: usize, entries: usize) -> EvalResult<Vec<i32>> {
    (0..=rows)
        .map(|row| i32::try_from(row * entries).map_err(|_| budget::too_large()))
        .collect()
}

/// ARRAY.
pub(crate) fn make_array(call: &FunctionCall<'_>) -> EvalResult {
    let DataType::Array(array) = call.result else {
        return Err(unexpected(&Arrow::Null));
    };
    let offsets = even_offsets(call.rows, call.operands.len())?;
    list_of(
        offsets,
        interleaved_by_row(call, call.operands.iter(), &array.element)?,
        None,
        call.result,
    )
}

/// MAP: alternating keys and values. Keys are never null and never duplicated; -0.0 becomes 0.0.
pub(crate) fn make_map(call: &FunctionCall<'_>) -> EvalResult {
    let (DataType::Map(map), Arrow::Map(entries, sorted)) =
        (call.result, call.result.to_arrow(StringLayout::Plain))
    else {
        return Err(unexpected(&Arrow::Null));
    };
    let Arrow::Struct(fields) = entries.data_type() else {
        return Err(unexpected(entries.data_type()));
    };
    let count = call.operands.len() / 2;
    let offsets = even_offsets(call.rows, count)?;
    let keys = unsigned_zeros(interleaved_by_row(
        call,
        call.operands.iter().step_by(2),
        &map.key,
    )?);
    let values = interleaved_by_row(call, call.operands.iter().skip(1).step_by(2), &map.value)?;
    if keys.null_count() > 0 {
        return Err(EvalError::value(
            ErrorCode::NullMapKey,
            "a key of a map is null",
        ));
    }
    let order = comparator(&keys, &keys)?;
    for start in (0..call.rows * count).step_by(count.max(1)) {
        let twice = |key: usize| (start..key).any(|other| order(other, key).is_eq());
        if (start..start + count).any(twice) {
            return Err(EvalError::value(
                ErrorCode::DuplicatedMapKey,
                "a map has the same key twice",
            ));
        }
    }
    let parts = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
    Ok(Arc::new(MapArray::try_new(
        entries,
        OffsetBuffer::new(offsets.into()),
        parts,
        None,
        sorted,
    )?))
}

fn unsigned_zeros(keys: ArrayRef) -> ArrayRef {
    match keys.data_type() {
        Arrow::Float32 => Arc::new(
            keys.as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|key| key + 0.0),
        ),
        Arrow::Float64 => Arc::new(
            keys.as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|key| key + 0.0),
        ),
        _ => keys,
    }
}

/// `NAMED_STRUCT`: alternating names and values; the names are those of the type.
pub(crate) fn make_struct(call: &FunctionCall<'_>) -> EvalResult {
    let (DataType::Struct(made), Arrow::Struct(fields)) =
        (call.result, call.result.to_arrow(StringLayout::Plain))
    else {
        return Err(unexpected(&Arrow::Null));
    };
    let values = call.operands.iter().skip(1).step_by(2).zip(&made.fields);
    let columns = values
        .map(|(operand, field)| plain(&operand.clone().into_array(call.rows)?, &field.data_type))
        .collect::<EvalResult<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new(fields, columns, None)?))
}
