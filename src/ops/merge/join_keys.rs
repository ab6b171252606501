//! Join keys of a MERGE: which rows of the table can match, and the keys by which an engine joins
//! both sides.
//!
//! Keys are passed to the engine as one column of integers or of bytes. Two keys are equal exactly
//! if Spark's `=` is true, and keys with nulls that cannot match are left out. Therefore any engine
//! joins them correctly, independent of its semantics for `NaN`, zeros or collations.
//!
//! Cost: 16 bits of memory for each row of the source, and one pass over its keys.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_cast::cast;
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType as Arrow;

use crate::error::{Error, Result, invariant};
use crate::expr::{BoundExpr, Expr, Function};
use crate::ops::rewrite::partition_predicate::combine_exprs;
use crate::ops::rewrite::replace_keys::{KeyDomain, comparable};
use crate::parse::mask;
use crate::protocol::schema::{DataType, StringLayout};

/// An equality of the join condition.
#[derive(Debug, Clone)]
pub(in crate::ops) struct JoinEquality {
    /// Expression over the table's columns.
    pub target: BoundExpr,
    /// Expression over the source's columns, of the same type.
    pub source: BoundExpr,
    /// Whether null equals null.
    pub null_safe: bool,
}

/// The encoding of keys as one column.
#[derive(Debug, Clone)]
pub(in crate::ops) struct KeyColumn {
    types: Vec<DataType>,
    null_safe: Vec<bool>,
    encoding: KeyEncoding,
}

#[derive(Debug, Clone)]
enum KeyEncoding {
    Number,
    Binary,
    RowFormat(Arc<RowConverter>),
}

impl KeyColumn {
    pub(in crate::ops) fn new(equalities: &[JoinEquality]) -> Result<Self> {
        let types: Vec<DataType> = equalities
            .iter()
            .map(|equality| equality.target.data_type().clone())
            .collect();
        for (equality, data_type) in equalities.iter().zip(&types) {
            invariant!(
                equality.source.data_type() == data_type,
                "the two sides of a key are of different types"
            );
        }
        let null_safe: Vec<bool> = equalities
            .iter()
            .map(|equality| equality.null_safe)
            .collect();
        let form = match (types.as_slice(), null_safe.as_slice()) {
            ([number], [false]) if number.integer_range().is_some() => KeyEncoding::Number,
            ([DataType::String | DataType::Binary], [false]) => KeyEncoding::Binary,
            _ => {
                let fields = types
                    .iter()
                    .map(|data_type| SortField::new(data_type.to_arrow(StringLayout::Plain)))
                    .collect();
                KeyEncoding::RowFormat(Arc::new(RowConverter::new(fields)?))
            }
        };
        Ok(Self {
            types,
            null_safe,
            encoding: form,
        })
    }

    /// The Arrow type of the key column.
    pub(in crate::ops) fn data_type(&self) -> Arrow {
        if matches!(self.encoding, KeyEncoding::Number) {
            Arrow::Int64
        } else {
            Arrow::Binary
        }
    }

    /// The keys of rows, and which of the rows can match.
    pub(in crate::ops) fn encode_keys<'a>(
        &self,
        exprs: impl Iterator<Item = &'a BoundExpr>,
        batch: &RecordBatch,
    ) -> Result<(Vec<ArrayRef>, ArrayRef, BooleanArray)> {
        let columns = exprs
            .map(|expr| expr.evaluate(batch))
            .collect::<Result<Vec<_>>>()?;
        let (columns, key) = self.of(&columns)?;
        let strict: Vec<_> = columns
            .iter()
            .zip(&self.null_safe)
            .filter(|(_, safe)| !**safe)
            .filter_map(|(column, _)| column.logical_nulls())
            .collect();
        let usable = match strict.as_slice() {
            [] => BooleanArray::new(BooleanBuffer::new_set(batch.num_rows()), None),
            [one] => BooleanArray::new(one.inner().clone(), None),
            many => mask(
                (0..batch.num_rows())
                    .map(|n| many.iter().all(|nulls| nulls.is_valid(n)))
                    .collect(),
            ),
        };
        Ok((columns, key, usable))
    }

    /// The keys of rows, given the values of the equalities; and the values in comparable form.
    pub(in crate::ops) fn of(&self, values: &[ArrayRef]) -> Result<(Vec<ArrayRef>, ArrayRef)> {
        let columns = values
            .iter()
            .zip(&self.types)
            .map(|(values, data_type)| comparable(values, data_type))
            .collect::<Result<Vec<_>>>()?;
        let first = || {
            columns
                .first()
                .ok_or_else(|| Error::internal("a join has no key"))
        };
        let key: ArrayRef = match &self.encoding {
            KeyEncoding::Number => {
                let column = first()?;
                let column = if column.data_type() == &Arrow::Date32 {
                    cast(column, &Arrow::Int32)?
                } else {
                    Arc::clone(column)
                };
                cast(&column, &Arrow::Int64)?
            }
            KeyEncoding::Binary => cast(first()?, &Arrow::Binary)?,
            KeyEncoding::RowFormat(converter) => {
                let rows = converter.convert_columns(&columns)?;
                Arc::new(BinaryArray::from_iter_values(rows.iter()))
            }
        };
        Ok((columns, key))
    }
}

/// A summary of the source's keys.
#[derive(Debug)]
pub(in crate::ops) struct SourceKeySummary {
    domains: Vec<KeyDomain>,
    filter: KeyBloomFilter,
    /// The number of rows that can match.
    pub rows: u64,
}

impl SourceKeySummary {
    /// An empty summary for up to `rows` rows.
    pub(in crate::ops) fn new(equalities: &[JoinEquality], rows: u64) -> Result<Self> {
        let spans = equalities
            .iter()
            .map(|equality| KeyDomain::new(equality.source.data_type()))
            .collect::<Result<_>>()?;
        Ok(Self {
            domains: spans,
            filter: KeyBloomFilter::new(rows),
            rows: 0,
        })
    }

    /// Adds the result of [`KeyColumn::encode_keys`] for rows of the source.
    pub(in crate::ops) fn note(
        &mut self,
        columns: &[ArrayRef],
        key: &ArrayRef,
        usable: &BooleanArray,
    ) -> Result<()> {
        self.rows += usable.true_count() as u64;
        for (span, column) in self.domains.iter_mut().zip(columns) {
            span.note(column, usable)?;
        }
        self.filter.add(key, usable)
    }

    /// Drops the individual values of incomplete keys, which may have other values between the
    /// bounds.
    pub(in crate::ops) fn discard_partial_values(&mut self, complete: &[bool]) {
        for (n, span) in self.domains.iter_mut().enumerate() {
            if complete.get(n) != Some(&true) {
                span.discard_values();
            }
        }
    }

    /// True for every row of the table that can match.
    pub(in crate::ops) fn predicate(&self, equalities: &[JoinEquality]) -> Result<Option<Expr>> {
        let mut all = Vec::new();
        for (equality, span) in equalities.iter().zip(&self.domains) {
            all.extend(span.predicate(&equality.target.expr)?);
        }
        if all.is_empty() {
            Ok(None)
        } else {
            combine_exprs(Function::And, all).map(Some)
        }
    }

    /// The rows whose keys may be among those of the source.
    pub(in crate::ops) fn may_match(
        &self,
        key: &ArrayRef,
        usable: &BooleanArray,
    ) -> Result<BooleanArray> {
        self.filter.test(key, usable)
    }
}

/// A Bloom filter with blocks of a cache line: about one in a hundred missing keys passes.
/// Consecutive numbers share a block, so that sorted keys find it in the cache.
#[derive(Debug)]
struct KeyBloomFilter {
    words: Vec<u64>,
    shift: u32,
}

/// The bits of a key in the filter: the high bits of `block` select the block, `word` is the index
/// of the word in it.
struct BloomFilterSlot {
    block: u64,
    word: usize,
    bits: u64,
}

/// Words of a block.
const BLOCK: usize = 8;

impl KeyBloomFilter {
    fn new(keys: u64) -> Self {
        let blocks = (keys.saturating_mul(16) / (64 * BLOCK as u64))
            .max(2)
            .next_power_of_two()
            .min(1 << 23);
        Self {
            words: vec![0; blocks as usize * BLOCK],
            shift: 64 - blocks.trailing_zeros(),
        }
    }

    fn index(&self, place: &BloomFilterSlot) -> usize {
        (place.block >> self.shift) as usize * BLOCK + place.word
    }

    fn add(&mut self, key: &ArrayRef, usable: &BooleanArray) -> Result<()> {
        let places = KeyColumnValues::of(key)?;
        for row in usable.values().set_indices() {
            let place = places.get(row);
            let index = self.index(&place);
            if let Some(word) = self.words.get_mut(index) {
                *word |= place.bits;
            }
        }
        Ok(())
    }

    fn test(&self, key: &ArrayRef, usable: &BooleanArray) -> Result<BooleanArray> {
        let held = |place: BloomFilterSlot| {
            self.words
                .get(self.index(&place))
                .is_some_and(|word| word & place.bits == place.bits)
        };
        let found = match KeyColumnValues::of(key)? {
            KeyColumnValues::Numbers(numbers) => {
                let mut numbers = numbers.iter();
                BooleanBuffer::collect_bool(numbers.len(), |_| {
                    numbers
                        .next()
                        .is_some_and(|number| held(slot_of_number(*number)))
                })
            }
            places @ KeyColumnValues::Bytes(_) => {
                BooleanBuffer::collect_bool(key.len(), |row| held(places.get(row)))
            }
        };
        Ok(BooleanArray::new(&found & usable.values(), None))
    }
}

/// The filter slots of the keys of a column.
enum KeyColumnValues<'a> {
    Numbers(&'a [i64]),
    Bytes(&'a BinaryArray),
}

impl<'a> KeyColumnValues<'a> {
    fn of(key: &'a ArrayRef) -> Result<Self> {
        if let Some(numbers) = key.as_primitive_opt::<Int64Type>() {
            return Ok(Self::Numbers(numbers.values()));
        }
        key.as_binary_opt::<i32>()
            .map(Self::Bytes)
            .ok_or_else(|| Error::internal("a key is neither a number nor bytes"))
    }

    fn get(&self, row: usize) -> BloomFilterSlot {
        match self {
            Self::Numbers(numbers) => slot_of_number(numbers.get(row).copied().unwrap_or(0)),
            Self::Bytes(bytes) => slot_of_bytes(bytes.value(row)),
        }
    }
}

/// The number of consecutive numbers that share a block, as a power of two: together they set a
/// fifth of its bits.
const NEIGHBOURS: u32 = 5;

fn slot_of_number(number: i64) -> BloomFilterSlot {
    let number = number as u64;
    // Spreads consecutive numbers evenly.
    bloom_filter_slot(
        mix_hash(number >> NEIGHBOURS),
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 43,
    )
}

fn slot_of_bytes(bytes: &[u8]) -> BloomFilterSlot {
    use std::hash::Hasher;
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(bytes);
    let hash = mix_hash(hasher.finish());
    bloom_filter_slot(hash, hash)
}

/// A slot: one hash selects the block, 21 bits of another one select the word and three bits of it.
fn bloom_filter_slot(block: u64, within: u64) -> BloomFilterSlot {
    let bits = 1 << (within & 63) | 1 << (within >> 6 & 63) | 1 << (within >> 12 & 63);
    BloomFilterSlot {
        block,
        word: (within >> 18) as usize % BLOCK,
        bits,
    }
}

/// Mixes each bit of a number into all others.
fn mix_hash(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::calendar::TimeZoneSpec;
    use arrow_array::{Float64Array, Int64Array, StringArray};

    fn column(name: &str, data_type: DataType) -> BoundExpr {
        BoundExpr {
            expr: Expr::Column {
                path: vec![name.to_owned()],
                data_type,
            },
            ansi: true,
            zone: TimeZoneSpec::UTC,
        }
    }

    fn equality(data_type: DataType, null_safe: bool) -> JoinEquality {
        JoinEquality {
            target: column("t", data_type.clone()),
            source: column("s", data_type),
            null_safe,
        }
    }

    fn made(equality: &JoinEquality, values: ArrayRef) -> (ArrayRef, BooleanArray) {
        let batch = RecordBatch::try_from_iter_with_nullable(vec![("s", values, true)]).unwrap();
        let (_, key, usable) = KeyColumn::new(std::slice::from_ref(equality))
            .unwrap()
            .encode_keys([&equality.source].into_iter(), &batch)
            .unwrap();
        (key, usable)
    }

    #[test]
    fn keys_are_equal_where_spark_has_it() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![
            Some(0.0),
            Some(-0.0),
            Some(f64::NAN),
            Some(-f64::NAN),
            None,
        ]));
        let (key, usable) = made(&equality(DataType::Double, false), values.clone());
        let bytes = key.as_binary::<i32>();
        assert!(
            bytes.value(0) == bytes.value(1)
                && bytes.value(2) == bytes.value(3)
                && bytes.value(0) != bytes.value(2)
        );
        assert_eq!(
            usable.iter().map(Option::unwrap).collect::<Vec<_>>(),
            [true, true, true, true, false]
        );
        let (_, usable) = made(&equality(DataType::Double, true), values);
        assert_eq!(usable.true_count(), 5);
        let (key, usable) = made(
            &equality(DataType::String, false),
            Arc::new(StringArray::from(vec![Some("a"), None])),
        );
        assert_eq!((key.data_type(), usable.true_count()), (&Arrow::Binary, 1));
    }

    #[test]
    fn few_keys_pass_that_are_not_there() {
        let equalities = [equality(DataType::Long, false)];
        let numbers = |from: i64, step: i64| -> ArrayRef {
            Arc::new(Int64Array::from(
                (0..5000).map(|n| from + n * step).collect::<Vec<_>>(),
            ))
        };
        // The distance between keys, and their distance to missing ones: the last keys are
        // consecutive.
        for (step, from, by) in [
            (7, 1, 7),
            (5, 3, 5),
            (1 << 40, 1 << 39, 1 << 40),
            (1009, 1, 1),
            (1, 5000, 1),
            (-3, 1, 3),
        ] {
            let mut known = SourceKeySummary::new(&equalities, 5000).unwrap();
            let (key, usable) = made(&equalities[0], numbers(0, step));
            known
                .note(std::slice::from_ref(&key), &key, &usable)
                .unwrap();
            assert_eq!(
                (
                    known.rows,
                    known.may_match(&key, &usable).unwrap().true_count()
                ),
                (5000, 5000)
            );
            let others = known
                .may_match(&numbers(from, by), &usable)
                .unwrap()
                .true_count();
            assert!(others < 250, "{step}: {others}");
            let bounds = known.predicate(&equalities).unwrap().unwrap().to_string();
            assert!(bounds.contains(&(4999 * step).to_string()), "{bounds}");
        }
        assert_eq!(KeyBloomFilter::new(0).words.len(), 2 * BLOCK);
    }

    #[test]
    fn few_texts_pass_that_are_not_there() {
        let equalities = [equality(DataType::String, false)];
        let texts = |prefix: &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(
                (0..5000).map(|n| format!("{prefix}{n}")),
            ))
        };
        let mut known = SourceKeySummary::new(&equalities, 5000).unwrap();
        let (key, usable) = made(&equalities[0], texts("a"));
        known.note(&[texts("a")], &key, &usable).unwrap();
        assert_eq!(known.may_match(&key, &usable).unwrap().true_count(), 5000);
        let (others, _) = made(&equalities[0], texts("b"));
        assert!(known.may_match(&others, &usable).unwrap().true_count() < 250);
        let half = mask((0..5000).map(|n| n % 2 == 0).collect());
        assert_eq!(known.may_match(&key, &half).unwrap().true_count(), 2500);
    }
}
