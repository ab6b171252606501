//! The values of an IN list as a set, built once while the tree is read.

use std::sync::OnceLock;

use arrow_array::ArrayRef;
use rustc_hash::FxHashSet;

use crate::error::{Error, Result};
use crate::expr::scalar::{Scalar, sorted_array};
use crate::protocol::schema::DataType;

/// A set of values of one type, and whether the list has a null.
#[derive(Debug)]
pub struct InSet {
    pub(super) members: InSetValues,
    has_null: bool,
    pub(super) is_empty: bool,
    sorted: OnceLock<Option<SortedValues>>,
}

/// The values of a list in their order, for comparisons with bounds.
#[derive(Debug)]
pub(crate) struct SortedValues {
    /// The values that are not null, in the plain layout, each once.
    pub(crate) array: ArrayRef,
    pub(crate) has_nan: bool,
}

/// The values that are not null.
#[derive(Debug)]
pub(super) enum InSetValues {
    Few(Vec<i64>),
    Longs(FxHashSet<i64>),
    Doubles(FxHashSet<u64>),
    Decimals(FxHashSet<i128>),
    Bytes(FxHashSet<Box<[u8]>>),
}

/// Lists up to this length are searched linearly.
const FEW: usize = 8;

/// One pattern for every `NaN` and one for both zeros.
pub(super) fn double_key(value: f64) -> u64 {
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

    pub(super) fn has_long(&self, value: i64) -> bool {
        match &self.members {
            InSetValues::Few(list) => list.contains(&value),
            InSetValues::Longs(set) => set.contains(&value),
            _ => false,
        }
    }
}
