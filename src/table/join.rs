//! JOIN: rows of a source that equal rows of a table in some expressions: what of the table can match, and the keys by which
//! an engine finds the pairs.
//!
//! Keys leave the core as one column of whole numbers or of bytes in which two rows are equal just where Spark's `=` says
//! so, without nulls that cannot match. So any engine joins them right, whatever it thinks of `NaN`, zeros or collations.
//!
//! Cost: 16 bits of memory for each row of the source, and one look at its keys.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_cast::cast;
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType as Arrow;

use super::keys::{Span, comparable};
use super::predicate::joined;
use crate::error::{Error, Result};
use crate::expr::{Bound, Expr, Function};
use crate::parse::mask;
use crate::protocol::schema::{DataType, TextLayout};

/// An equality of the join's condition.
#[derive(Debug, Clone)]
pub(super) struct Equality {
    /// Over the table's columns.
    pub target: Bound,
    /// Over the source's, of the same type.
    pub source: Bound,
    /// Whether null equals null.
    pub null_safe: bool,
}

/// How keys become one column.
#[derive(Debug, Clone)]
pub(super) struct KeyColumn {
    types: Vec<DataType>,
    null_safe: Vec<bool>,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    Number,
    Text,
    Rows(Arc<RowConverter>),
}

impl KeyColumn {
    pub(super) fn new(equalities: &[Equality]) -> Result<Self> {
        let types: Vec<DataType> = equalities.iter().map(|equality| equality.target.data_type().clone()).collect();
        for (equality, data_type) in equalities.iter().zip(&types) {
            if equality.source.data_type() != data_type {
                return Err(Error::internal("the two sides of a key are of different types"));
            }
        }
        let null_safe: Vec<bool> = equalities.iter().map(|equality| equality.null_safe).collect();
        let form = match (types.as_slice(), null_safe.as_slice()) {
            (
                [DataType::Byte | DataType::Short | DataType::Integer | DataType::Long | DataType::Date | DataType::Timestamp | DataType::TimestampNtz],
                [false],
            ) => Form::Number,
            ([DataType::String | DataType::Binary], [false]) => Form::Text,
            _ => {
                let fields = types.iter().map(|data_type| SortField::new(data_type.to_arrow(TextLayout::Plain))).collect();
                Form::Rows(Arc::new(RowConverter::new(fields)?))
            }
        };
        Ok(Self { types, null_safe, form })
    }

    /// The arrow type of the key column.
    pub(super) fn data_type(&self) -> Arrow {
        if matches!(self.form, Form::Number) { Arrow::Int64 } else { Arrow::Binary }
    }

    /// The keys of rows, and which of the rows can equal any.
    pub(super) fn make<'a>(&self, exprs: impl Iterator<Item = &'a Bound>, batch: &RecordBatch) -> Result<(Vec<ArrayRef>, ArrayRef, BooleanArray)> {
        let columns = exprs.map(|expr| expr.evaluate(batch)).collect::<Result<Vec<_>>>()?;
        let (columns, key) = self.of(&columns)?;
        let strict: Vec<_> = columns.iter().zip(&self.null_safe).filter(|(_, safe)| !**safe).filter_map(|(column, _)| column.logical_nulls()).collect();
        let usable = match strict.as_slice() {
            [] => mask(vec![true; batch.num_rows()]),
            [one] => BooleanArray::new(one.inner().clone(), None),
            many => mask((0..batch.num_rows()).map(|n| many.iter().all(|nulls| nulls.is_valid(n))).collect()),
        };
        Ok((columns, key, usable))
    }

    /// The keys of rows of which there are the values of the equalities, and those as they are compared.
    pub(super) fn of(&self, values: &[ArrayRef]) -> Result<(Vec<ArrayRef>, ArrayRef)> {
        let columns = values.iter().zip(&self.types).map(|(values, data_type)| comparable(values, data_type)).collect::<Result<Vec<_>>>()?;
        let first = || columns.first().ok_or_else(|| Error::internal("a join has no key"));
        let key: ArrayRef = match &self.form {
            Form::Number => {
                let column = first()?;
                let column = if column.data_type() == &Arrow::Date32 { cast(column, &Arrow::Int32)? } else { Arc::clone(column) };
                cast(&column, &Arrow::Int64)?
            }
            Form::Text => cast(first()?, &Arrow::Binary)?,
            Form::Rows(converter) => {
                let rows = converter.convert_columns(&columns)?;
                Arc::new(BinaryArray::from_iter_values(rows.iter()))
            }
        };
        Ok((columns, key))
    }
}

/// What is known of the source's keys once all of them were seen.
#[derive(Debug)]
pub(super) struct Known {
    spans: Vec<Span>,
    filter: Filter,
    /// Rows that can match any.
    pub rows: u64,
}

impl Known {
    /// Nothing noted yet; `rows` may come.
    pub(super) fn new(equalities: &[Equality], rows: u64) -> Result<Self> {
        let spans = equalities.iter().map(|equality| Span::new(equality.source.data_type())).collect::<Result<_>>()?;
        Ok(Self { spans, filter: Filter::new(rows), rows: 0 })
    }

    /// Notes what [`KeyColumn::make`] gave for rows of the source.
    pub(super) fn note(&mut self, columns: &[ArrayRef], key: &ArrayRef, usable: &BooleanArray) -> Result<()> {
        self.rows += usable.true_count() as u64;
        for (span, column) in self.spans.iter_mut().zip(columns) {
            span.note(column, usable)?;
        }
        self.filter.add(key, usable)
    }

    /// Forgets single values of those keys of which not all were noted: there are others between the bounds.
    pub(super) fn keep_bounds(&mut self, complete: &[bool]) {
        for (n, span) in self.spans.iter_mut().enumerate() {
            if complete.get(n) != Some(&true) {
                span.keep_bounds();
            }
        }
    }

    /// True for every row of the table that can match.
    pub(super) fn predicate(&self, equalities: &[Equality]) -> Result<Option<Expr>> {
        let mut all = Vec::new();
        for (equality, span) in equalities.iter().zip(&self.spans) {
            all.extend(span.predicate(&equality.target.expr)?);
        }
        if all.is_empty() { Ok(None) } else { joined(Function::And, all).map(Some) }
    }

    /// The rows whose keys may be among those of the source.
    pub(super) fn may_match(&self, key: &ArrayRef, usable: &BooleanArray) -> Result<BooleanArray> {
        self.filter.test(key, usable)
    }
}

/// A Bloom filter in blocks of 64 bits: of a hundred keys that are not there about one passes.
#[derive(Debug)]
struct Filter {
    words: Vec<u64>,
    shift: u32,
}

impl Filter {
    fn new(keys: u64) -> Self {
        let words = (keys.max(4).saturating_mul(16) / 64).max(1).next_power_of_two().min(1 << 26);
        Self { words: vec![0; words as usize], shift: 64 - words.trailing_zeros() }
    }

    /// The word and the bits of a key.
    fn place(&self, hash: u64) -> (usize, u64) {
        let word = if self.shift == 64 { 0 } else { (hash >> self.shift) as usize };
        (word, 1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63))
    }

    fn add(&mut self, key: &ArrayRef, usable: &BooleanArray) -> Result<()> {
        let hashes = hashes(key)?;
        for row in usable.values().set_indices() {
            let (word, bits) = self.place(hashes.get(row).copied().unwrap_or(0));
            if let Some(word) = self.words.get_mut(word) {
                *word |= bits;
            }
        }
        Ok(())
    }

    fn test(&self, key: &ArrayRef, usable: &BooleanArray) -> Result<BooleanArray> {
        let hashes = hashes(key)?;
        let found = BooleanBuffer::collect_bool(hashes.len().min(usable.len()), |row| {
            let (word, bits) = self.place(hashes.get(row).copied().unwrap_or(0));
            (self.words.get(word).copied().unwrap_or(0) & bits == bits) & usable.value(row)
        });
        Ok(BooleanArray::new(found, None))
    }
}

/// Spreads the bits of a number over all others.
fn mixed(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

fn hashes(key: &ArrayRef) -> Result<Vec<u64>> {
    use std::hash::Hasher;
    if let Some(numbers) = key.as_primitive_opt::<Int64Type>() {
        return Ok(numbers.values().iter().map(|value| mixed(*value as u64)).collect());
    }
    let bytes = key.as_binary_opt::<i32>().ok_or_else(|| Error::internal("a key is neither a number nor bytes"))?;
    let hash = |n: usize| {
        let mut hasher = rustc_hash::FxHasher::default();
        hasher.write(bytes.value(n));
        mixed(hasher.finish())
    };
    Ok((0..bytes.len()).map(hash).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::calendar::Zone;
    use arrow_array::{Float64Array, Int64Array, StringArray};

    fn column(name: &str, data_type: DataType) -> Bound {
        Bound { expr: Expr::Column { path: vec![name.to_owned()], data_type }, ansi: true, zone: Zone::UTC }
    }

    fn equality(data_type: DataType, null_safe: bool) -> Equality {
        Equality { target: column("t", data_type.clone()), source: column("s", data_type), null_safe }
    }

    fn made(equality: &Equality, values: ArrayRef) -> (ArrayRef, BooleanArray) {
        let batch = RecordBatch::try_from_iter_with_nullable(vec![("s", values, true)]).unwrap();
        let (_, key, usable) = KeyColumn::new(std::slice::from_ref(equality)).unwrap().make([&equality.source].into_iter(), &batch).unwrap();
        (key, usable)
    }

    #[test]
    fn keys_are_equal_where_spark_has_it() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![Some(0.0), Some(-0.0), Some(f64::NAN), Some(-f64::NAN), None]));
        let (key, usable) = made(&equality(DataType::Double, false), values.clone());
        let bytes = key.as_binary::<i32>();
        assert!(bytes.value(0) == bytes.value(1) && bytes.value(2) == bytes.value(3) && bytes.value(0) != bytes.value(2));
        assert_eq!(usable.iter().map(Option::unwrap).collect::<Vec<_>>(), [true, true, true, true, false]);
        let (_, usable) = made(&equality(DataType::Double, true), values);
        assert_eq!(usable.true_count(), 5);
        let (key, usable) = made(&equality(DataType::String, false), Arc::new(StringArray::from(vec![Some("a"), None])));
        assert_eq!((key.data_type(), usable.true_count()), (&Arrow::Binary, 1));
    }

    #[test]
    fn few_keys_pass_that_are_not_there() {
        let equalities = [equality(DataType::Long, false)];
        let mut known = Known::new(&equalities, 5000).unwrap();
        let numbers = |from: i64, step: i64| -> ArrayRef { Arc::new(Int64Array::from((0..5000).map(|n| from + n * step).collect::<Vec<_>>())) };
        let (key, usable) = made(&equalities[0], numbers(0, 7));
        known.note(std::slice::from_ref(&key), &key, &usable).unwrap();
        assert_eq!((known.rows, known.may_match(&key, &usable).unwrap().true_count()), (5000, 5000));
        let others = known.may_match(&numbers(1, 7), &usable).unwrap().true_count();
        assert!(others < 250, "{others}");
        let bounds = known.predicate(&equalities).unwrap().unwrap().to_string();
        assert!(bounds.contains("34993"), "{bounds}");
        assert_eq!(Filter::new(0).words.len(), 1);
    }
}
