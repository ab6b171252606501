//! The values of an IN list as a set, built once while the tree is read.
//!
//! Cost: one look-up per row; lists of a few numbers are compared one by one, which is faster than
//! hashing.

use std::sync::OnceLock;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType as Arrow;
use rustc_hash::FxHashSet;

use crate::error::{Error, Result};
use crate::expr::eval::error::{EvalResult, unexpected};
use crate::expr::eval::value::{BinaryColumn, pack};
use crate::expr::scalar::{Scalar, sorted_array};
use crate::protocol::schema::DataType;

/// A set of values of one type, and whether the list has a null.
#[derive(Debug)]
pub struct InSet {
    members: InSetValues,
    has_null: bool,
    is_empty: bool,
    sorted: OnceLock<Option<SortedValues>>,
}

/// The values of a list in their order, for comparisons with bounds.
#[derive(Debug)]
pub(crate) struct SortedValues {
    /// The values that are not null, in the plain layout, each once.
    pub(crate) array: ArrayRef,
    pub(crate) has_nan: bool,
}

#[derive(Debug)]
enum InSetValues {
    Few(Vec<i64>),
    Longs(FxHashSet<i64>),
    Doubles(FxHashSet<u64>),
    Decimals(FxHashSet<i128>),
    Bytes(FxHashSet<Box<[u8]>>),
}

/// Lists up to this length are searched linearly.
const FEW: usize = 8;

/// One pattern for every `NaN` and one for both zeros.
fn double_key(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else {
        (value + 0.0).to_bits()
    }
}

impl InSet {
    /// The set of a list of values of a type.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for types that have no literals.
    pub fn new(data_type: &DataType, values: &[Scalar]) -> Result<Self> {
        let has_null = values.iter().any(Scalar::is_null);
        let mut longs = FxHashSet::default();
        let mut doubles = FxHashSet::default();
        let mut decimals = FxHashSet::default();
        let mut bytes: FxHashSet<Box<[u8]>> = FxHashSet::default();
        for value in values {
            match value {
                Scalar::Null => {}
                Scalar::Boolean(v) => drop(longs.insert(i64::from(*v))),
                Scalar::Long(v) => drop(longs.insert(*v)),
                Scalar::Double(v) => drop(doubles.insert(double_key(*v))),
                Scalar::Decimal(v) => drop(decimals.insert(*v)),
                Scalar::Text(v) => drop(bytes.insert(v.as_bytes().into())),
                Scalar::Bytes(v) => drop(bytes.insert(v.as_ref().into())),
            }
        }
        let members = match data_type {
            DataType::Float | DataType::Double => InSetValues::Doubles(doubles),
            DataType::Decimal(..) => InSetValues::Decimals(decimals),
            DataType::String | DataType::Binary => InSetValues::Bytes(bytes),
            DataType::Struct(_) | DataType::Array(_) | DataType::Map(_) | DataType::Variant => {
                return Err(Error::unsupported(format!(
                    "IN over values of type {data_type} is not supported by the core"
                )));
            }
            _ if longs.len() <= FEW => InSetValues::Few(longs.into_iter().collect()),
            _ => InSetValues::Longs(longs),
        };
        Ok(Self {
            members,
            has_null,
            is_empty: values.is_empty(),
            sorted: OnceLock::new(),
        })
    }

    /// Whether the list has a null.
    pub(crate) fn has_null(&self) -> bool {
        self.has_null
    }

    /// The values of the list in their order; sorted once, since pruning asks for each file and row
    /// group. `None` for types that have no literals.
    ///
    /// `values` and `data_type` are those of [`InSet::new`].
    pub(crate) fn sorted(&self, values: &[Scalar], data_type: &DataType) -> Option<&SortedValues> {
        self.sorted
            .get_or_init(|| {
                let has_nan = values
                    .iter()
                    .any(|value| matches!(value, Scalar::Double(v) if v.is_nan()));
                let array = sorted_array(values, data_type).ok()?;
                Some(SortedValues { array, has_nan })
            })
            .as_ref()
    }

    fn has_long(&self, value: i64) -> bool {
        match &self.members {
            InSetValues::Few(list) => list.contains(&value),
            InSetValues::Longs(set) => set.contains(&value),
            _ => false,
        }
    }

    /// Three-valued membership of every value of an array.
    pub(crate) fn contains(&self, array: &ArrayRef) -> EvalResult<BooleanArray> {
        let rows = array.len();
        if self.is_empty {
            return Ok(BooleanArray::new(BooleanBuffer::new_unset(rows), None));
        }
        let found = match array.data_type() {
            Arrow::Null => return Ok(BooleanArray::new_null(rows)),
            Arrow::Boolean => {
                let values = array.as_boolean();
                let (no, yes) = (self.has_long(0), self.has_long(1));
                BooleanBuffer::collect_bool(rows, |row| if values.value(row) { yes } else { no })
            }
            Arrow::Int8 => self.search::<Int8Type>(array, i64::from),
            Arrow::Int16 => self.search::<Int16Type>(array, i64::from),
            Arrow::Int32 => self.search::<Int32Type>(array, i64::from),
            Arrow::Date32 => self.search::<Date32Type>(array, i64::from),
            Arrow::Int64 => self.search::<Int64Type>(array, |v| v),
            Arrow::Timestamp(..) => self.search::<TimestampMicrosecondType>(array, |v| v),
            Arrow::Float64 => self.search_doubles::<Float64Type>(array, |v| v),
            Arrow::Float32 => self.search_doubles::<Float32Type>(array, f64::from),
            Arrow::Decimal128(..) => {
                let values = array.as_primitive::<Decimal128Type>();
                match &self.members {
                    InSetValues::Decimals(set) => {
                        BooleanBuffer::collect_bool(rows, |row| set.contains(&values.value(row)))
                    }
                    _ => BooleanBuffer::new_unset(rows),
                }
            }
            found => {
                let values = BinaryColumn::new(array).ok_or_else(|| unexpected(found))?;
                match &self.members {
                    InSetValues::Bytes(set) => BooleanBuffer::collect_bool(rows, |row| {
                        !array.is_null(row) && set.contains(values.get(row))
                    }),
                    _ => BooleanBuffer::new_unset(rows),
                }
            }
        };
        // A value that is not found is unknown if the list has a null.
        let nulls = if self.has_null {
            NullBuffer::union(array.nulls(), Some(&NullBuffer::new(found.clone())))
        } else {
            array.nulls().cloned()
        };
        Ok(BooleanArray::new(found, nulls))
    }

    fn search<T: ArrowPrimitiveType>(
        &self,
        array: &ArrayRef,
        wide: impl Fn(T::Native) -> i64,
    ) -> BooleanBuffer {
        let values = array.as_primitive::<T>();
        match &self.members {
            InSetValues::Few(list) => pack(values.values(), |v| list.contains(&wide(v))),
            InSetValues::Longs(set) => pack(values.values(), |v| set.contains(&wide(v))),
            _ => BooleanBuffer::new_unset(values.len()),
        }
    }

    fn search_doubles<T: ArrowPrimitiveType>(
        &self,
        array: &ArrayRef,
        wide: impl Fn(T::Native) -> f64,
    ) -> BooleanBuffer {
        let values = array.as_primitive::<T>();
        match &self.members {
            InSetValues::Doubles(set) => {
                pack(values.values(), |v| set.contains(&double_key(wide(v))))
            }
            _ => BooleanBuffer::new_unset(values.len()),
        }
    }
}
