//! The fast path for flat columns of numbers, dates, times, decimals and strings: pages -> Arrow
//! arrays.
//!
//! Most columns of most tables are flat, and plain or dictionary encoded. Here their values go from
//! the page into the array once: no level is expanded, no buffer zeroed before it is written, a
//! dictionary is converted once and its indices are unpacked by the thousand. arrow-rs decodes
//! everything else (lists, structs, other encodings, old physical types); both give the same
//! arrays, which a property test verifies.
//!
//! Format: "Data Pages", "Encodings" of the Parquet format. Cost: one pass; a copy for numbers,
//! views for strings.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryViewArray, StringViewArray, make_array};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, BooleanBufferBuilder, Buffer, NullBuffer, ScalarBuffer,
};
use arrow_data::ArrayDataBuilder;
use arrow_schema::{DataType, Field};
use bytes::Bytes;
use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;

use crate::error::{Error, Result};
use crate::exec::PooledBuilder;
use crate::pq::decoder_errors::decode_error;
use crate::pq::encoding::rle::{HybridRleDecoder, RleDecodeError, RleRun};
use crate::pq::input::page_check::level_above;

/// Dictionary indices unpacked at once.
const INDICES: usize = 1024;

/// Decodes a flat column, some rows at a time.
pub(in crate::pq) struct FlatColumn {
    pages: Box<dyn PageReader>,
    optional: bool,
    out: Box<dyn FlatArrayBuilder>,
    page: DataPage,
    /// Rows of the array under construction, and which of them are valid once one is not.
    rows: usize,
    validity: Option<BooleanBufferBuilder>,
}

/// The remaining part of a page.
struct DataPage {
    left: usize,
    levels: Option<HybridRleDecoder>,
    values: PageValueDecoder,
}

enum PageValueDecoder {
    Plain(PlainPageValues),
    Indices(HybridRleDecoder),
}

/// Values one after the other.
struct PlainPageValues {
    bytes: Bytes,
    at: usize,
    /// The page's number among the buffers of the array under construction.
    buffer: Option<u32>,
}

impl PlainPageValues {
    fn new(bytes: Bytes) -> Self {
        Self {
            bytes,
            at: 0,
            buffer: None,
        }
    }

    fn take(&mut self, count: usize) -> Result<&[u8]> {
        let bytes = self
            .at
            .checked_add(count)
            .and_then(|end| self.bytes.get(self.at..end))
            .ok_or_else(page_too_short_error)?;
        self.at += count;
        Ok(bytes)
    }
}

fn page_too_short_error() -> Error {
    Error::corrupt_data("a Parquet page ends before its values do")
}

fn corrupt_levels_error(_: RleDecodeError) -> Error {
    Error::corrupt_data("the levels or indices of a Parquet page are damaged")
}

/// A builder of an array from page values.
trait FlatArrayBuilder: Send {
    fn reserve(&mut self, rows: usize);
    fn dictionary(&mut self, bytes: Bytes, values: usize) -> Result<()>;
    fn plain(&mut self, page: &mut PlainPageValues, count: usize) -> Result<()>;
    /// Entries of the dictionary.
    fn gather(&mut self, indices: &[u32]) -> Result<()>;
    fn repeat(&mut self, index: u32, count: usize) -> Result<()>;
    fn nulls(&mut self, count: usize);
    /// Spreads the last values over as many slots as `valid` has bits.
    fn spread(&mut self, valid: &BooleanBuffer);
    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef>;
}

/// A number in plain encoding.
trait PlainEncodedNumber: Copy + Send + 'static {
    const SIZE: usize;
    /// Its bytes.
    type Bytes: Copy;
    /// The numbers in `bytes`, whose end may be an incomplete number.
    fn plain_values(bytes: &[u8]) -> &[Self::Bytes];
    fn read(bytes: Self::Bytes) -> Self;
}

macro_rules! stored {
    ($($t:ty),*) => {$(
        impl PlainEncodedNumber for $t {
            const SIZE: usize = size_of::<$t>();
            type Bytes = [u8; size_of::<$t>()];
            fn plain_values(bytes: &[u8]) -> &[Self::Bytes] {
                bytes.as_chunks().0
            }
            fn read(bytes: Self::Bytes) -> Self {
                Self::from_le_bytes(bytes)
            }
        }
    )*};
}

stored!(i32, i64, f32, f64);

/// The values of an array under construction.
struct ArrayValueBuffer<T> {
    /// The range of dictionary entries that the array consists of, as long as it has no other
    /// values: values that do not repeat are in the order of their entries, and need no copy.
    dictionary_range: Range<usize>,
    out: Option<PooledBuilder<T>>,
    rows: usize,
}

impl<T: ArrowNativeType> ArrayValueBuffer<T> {
    fn new() -> Self {
        Self {
            dictionary_range: 0..0,
            out: None,
            rows: 0,
        }
    }

    /// Appends a range of dictionary entries without a copy; `false` if other values come before
    /// them.
    fn join(&mut self, run: &Range<usize>) -> bool {
        let joined = match self.dictionary_range.len() {
            0 => self
                .out
                .as_ref()
                .is_none_or(PooledBuilder::is_empty)
                .then(|| run.clone()),
            _ => (self.dictionary_range.end == run.start)
                .then_some(self.dictionary_range.start..run.end),
        };
        joined
            .map(|joined| self.dictionary_range = joined)
            .is_some()
    }

    /// The buffer for values that are not in `entries`.
    fn out<I: ExactSizeIterator<Item = T>>(
        &mut self,
        entries: impl FnOnce(Range<usize>) -> I,
    ) -> &mut PooledBuilder<T> {
        let whole = std::mem::replace(&mut self.dictionary_range, 0..0);
        let out = self
            .out
            .get_or_insert_with(|| PooledBuilder::new(self.rows));
        if !whole.is_empty() {
            out.extend(entries(whole));
        }
        out
    }

    /// The entries that the array can share with the dictionary, unless they are few: the array
    /// keeps the whole dictionary alive.
    fn shared(&self, dictionary: usize) -> Option<Range<usize>> {
        /// How many times the bytes that it needs of a dictionary an array may keep alive.
        const KEPT: usize = 4;
        (!self.dictionary_range.is_empty() && self.dictionary_range.len() * KEPT >= dictionary)
            .then(|| self.dictionary_range.clone())
    }

    /// All values; the builder is empty afterwards.
    fn finish<I: ExactSizeIterator<Item = T>>(
        &mut self,
        entries: impl FnOnce(Range<usize>) -> I,
    ) -> ScalarBuffer<T> {
        self.out(entries);
        self.out.take().map(ScalarBuffer::from).unwrap_or_default()
    }
}

/// Numbers: `S` in the page, `T` in the array.
struct NumberArrayBuilder<S, T> {
    /// The value in its page.
    dictionary: Bytes,
    values: ArrayValueBuffer<T>,
    data_type: DataType,
    stored: PhantomData<S>,
}

/// The numbers of a page.
fn numbers<S: PlainEncodedNumber, T: From<S>>(
    bytes: &[u8],
    range: Range<usize>,
) -> impl ExactSizeIterator<Item = T> {
    S::plain_values(bytes)
        .get(range)
        .unwrap_or_default()
        .iter()
        .map(|bytes| T::from(S::read(*bytes)))
}

impl<S: PlainEncodedNumber, T: ArrowNativeType + From<S>> NumberArrayBuilder<S, T> {
    fn boxed(data_type: &DataType) -> Box<dyn FlatArrayBuilder> {
        Box::new(Self {
            dictionary: Bytes::new(),
            values: ArrayValueBuffer::new(),
            data_type: data_type.clone(),
            stored: PhantomData,
        })
    }

    fn entries(&self) -> usize {
        self.dictionary.len() / S::SIZE
    }

    fn out(&mut self) -> &mut PooledBuilder<T> {
        self.values
            .out(|whole| numbers::<S, T>(&self.dictionary, whole))
    }

    /// The array that shares entries of the dictionary, where possible.
    fn shared(&self) -> Option<(usize, Buffer)> {
        let whole = self.values.shared(self.entries())?;
        let bytes = self
            .dictionary
            .get(whole.start * S::SIZE..whole.end * S::SIZE)?;
        let is_aligned = bytes.as_ptr().align_offset(align_of::<T>()) == 0;
        is_aligned.then(|| (whole.len(), Buffer::from(self.dictionary.slice_ref(bytes))))
    }
}

impl<S: PlainEncodedNumber, T: ArrowNativeType + From<S>> FlatArrayBuilder
    for NumberArrayBuilder<S, T>
{
    fn reserve(&mut self, rows: usize) {
        self.values.rows = rows;
    }

    fn dictionary(&mut self, bytes: Bytes, values: usize) -> Result<()> {
        let size = values
            .checked_mul(S::SIZE)
            .filter(|size| *size <= bytes.len())
            .ok_or_else(page_too_short_error)?;
        self.out();
        self.dictionary = bytes.slice(..size);
        Ok(())
    }

    fn plain(&mut self, page: &mut PlainPageValues, count: usize) -> Result<()> {
        let bytes = page.take(
            count
                .checked_mul(S::SIZE)
                .ok_or_else(page_too_short_error)?,
        )?;
        self.out().extend(numbers::<S, T>(bytes, 0..count));
        Ok(())
    }

    fn gather(&mut self, indices: &[u32]) -> Result<()> {
        let Some(run) = consecutive_range(indices) else {
            let out = self
                .values
                .out(|whole| numbers::<S, T>(&self.dictionary, whole));
            return gather(S::plain_values(&self.dictionary), indices, out, |bytes| {
                T::from(S::read(bytes))
            });
        };
        if run.end > self.entries() {
            return Err(dictionary_index_error());
        }
        if size_of::<T>() != S::SIZE || !self.values.join(&run) {
            let out = self
                .values
                .out(|whole| numbers::<S, T>(&self.dictionary, whole));
            out.extend(numbers::<S, T>(&self.dictionary, run));
        }
        Ok(())
    }

    fn repeat(&mut self, index: u32, count: usize) -> Result<()> {
        let value = T::from(S::read(
            *S::plain_values(&self.dictionary)
                .get(index as usize)
                .ok_or_else(dictionary_index_error)?,
        ));
        self.out().extend(std::iter::repeat_n(value, count));
        Ok(())
    }

    fn nulls(&mut self, count: usize) {
        self.out().extend(std::iter::repeat_n(T::default(), count));
    }

    fn spread(&mut self, valid: &BooleanBuffer) {
        spread(self.out(), valid);
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let (length, buffer) = match self.shared() {
            Some(shared) => {
                self.values.dictionary_range = 0..0;
                shared
            }
            None => {
                let values = self
                    .values
                    .finish(|whole| numbers::<S, T>(&self.dictionary, whole));
                (values.len(), values.into_inner())
            }
        };
        let data = ArrayDataBuilder::new(self.data_type.clone())
            .len(length)
            .add_buffer(buffer)
            .nulls(nulls)
            .build()?;
        Ok(make_array(data))
    }
}

fn dictionary_index_error() -> Error {
    Error::corrupt_data("a Parquet page names a dictionary entry that does not exist")
}

/// The entries at `indices`, if each follows the one before it.
fn consecutive_range(indices: &[u32]) -> Option<Range<usize>> {
    let (first, last) = (*indices.first()?, *indices.last()?);
    // Most that are not consecutive are detected here.
    if last.wrapping_sub(first) as usize != indices.len() - 1 {
        return None;
    }
    let differ = indices
        .iter()
        .zip(first..=last)
        .fold(0, |differ, (index, next)| differ | (index ^ next));
    (differ == 0).then(|| first as usize..last as usize + 1)
}

/// Appends the entries at `indices`.
fn gather<E: Copy, T: ArrowNativeType>(
    dictionary: &[E],
    indices: &[u32],
    out: &mut PooledBuilder<T>,
    value: impl Fn(E) -> T,
) -> Result<()> {
    // One bit shows for all indices at once whether any is negative, as a signed number, or above
    // the last entry: two instructions for four indices on any processor, unlike a maximum of
    // unsigned numbers.
    let last = i32::try_from(dictionary.len()).map_err(|_| dictionary_index_error())? - 1;
    let outside = indices.iter().fold(0, |outside, index| {
        outside | last.wrapping_sub(index.cast_signed()) | index.cast_signed()
    });
    if outside < 0 {
        return Err(dictionary_index_error());
    }
    out.extend(indices.iter().map(|index| {
        // SAFETY: no index is below zero or above the last entry.
        value(unsafe { *dictionary.get_unchecked(*index as usize) })
    }));
    Ok(())
}

/// Spreads the last values of `out`, so that each is at the position of its bit; the slots between
/// are unspecified.
fn spread<T: ArrowNativeType>(out: &mut PooledBuilder<T>, valid: &BooleanBuffer) {
    let values = valid.count_set_bits();
    let Some(from) = out.len().checked_sub(values) else {
        return;
    };
    out.extend(std::iter::repeat_n(T::default(), valid.len() - values));
    let slots = out.tail(from);
    let mut next = values;
    for slot in (0..valid.len()).rev() {
        if next == 0 || next == slot + 1 {
            // The remaining values are at their positions already.
            break;
        }
        if valid.value(slot) {
            next -= 1;
            slots.copy_within(next..=next, slot);
        }
    }
}

/// Strings or byte strings, as views into pages.
struct ByteViewArrayBuilder {
    text: bool,
    dictionary: ScalarBuffer<u128>,
    values: ArrayValueBuffer<u128>,
    dictionary_bytes: Option<Buffer>,
    /// The dictionary's number among the buffers, and the buffer number in its views.
    dictionary_buffer: Option<u32>,
    named: u32,
    buffers: Vec<Buffer>,
}

/// The position of the buffer number in a view.
const BUFFER_BITS: u32 = 64;
/// The position of the offset in a view.
const OFFSET_BITS: u32 = 96;
/// Strings of at most this length are stored inline in the view.
const INLINE: u32 = 12;

fn view_length(view: u128) -> u32 {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the length is the lowest quarter"
    )]
    {
        view as u32
    }
}

impl ByteViewArrayBuilder {
    fn boxed(text: bool) -> Box<dyn FlatArrayBuilder> {
        Box::new(Self {
            text,
            dictionary: ScalarBuffer::default(),
            values: ArrayValueBuffer::new(),
            dictionary_bytes: None,
            dictionary_buffer: None,
            named: 0,
            buffers: Vec::new(),
        })
    }

    fn out(&mut self) -> &mut PooledBuilder<u128> {
        self.values.out(|whole| entries(&self.dictionary, whole))
    }

    /// Adds the dictionary to the array's buffers and updates the buffer number of its views.
    fn use_dictionary(&mut self) {
        if self.dictionary_buffer.is_some() {
            return;
        }
        let Some(bytes) = &self.dictionary_bytes else {
            return;
        };
        let at = u32::try_from(self.buffers.len()).unwrap_or(u32::MAX);
        self.buffers.push(bytes.clone());
        self.dictionary_buffer = Some(at);
        if self.named != at {
            let named = |view: &u128| {
                *view & !(u128::from(u32::MAX) << BUFFER_BITS) | u128::from(at) << BUFFER_BITS
            };
            let mut renamed = PooledBuilder::new(self.dictionary.len());
            renamed.extend(self.dictionary.iter().map(|view| {
                if view_length(*view) > INLINE {
                    named(view)
                } else {
                    *view
                }
            }));
            self.dictionary = renamed.into();
            self.named = at;
        }
    }
}

fn entries(dictionary: &[u128], range: Range<usize>) -> impl ExactSizeIterator<Item = u128> {
    dictionary.get(range).unwrap_or_default().iter().copied()
}

/// Makes views into `buffer` of consecutive values, each prefixed with its length; returns where
/// they end and whether any is too long to be inline.
///
/// A short value with its length prefix equals its view, except for the bytes that follow; a long
/// one equals its first half.
fn read_views(
    bytes: &[u8],
    from: usize,
    text: bool,
    buffer: u32,
    views: &mut [u128],
) -> Result<(usize, bool)> {
    let not_text = || Error::corrupt_data("a Parquet page has a string that is not UTF-8");
    let check = |range: Option<&[u8]>| {
        range
            .filter(|bytes| simdutf8::basic::from_utf8(bytes).is_ok())
            .map(|_| ())
            .ok_or_else(not_text)
    };
    let (mut at, mut unchecked, mut long) = (from, from, false);
    for view in views {
        let head = match bytes.get(at..).and_then(<[u8]>::first_chunk) {
            Some(head) => u128::from_le_bytes(*head),
            None => last_head(bytes.get(at..).unwrap_or_default())?,
        };
        let length = view_length(head);
        let start = at + 4;
        let end = start + length as usize;
        if end > bytes.len() {
            return Err(page_too_short_error());
        }
        *view = if length <= INLINE {
            head & u128::MAX >> (8 * (INLINE - length))
        } else {
            long = true;
            // Pages are smaller than 4 GiB.
            head & u128::from(u64::MAX)
                | u128::from(buffer) << BUFFER_BITS
                | u128::from(u32::try_from(start).unwrap_or(u32::MAX)) << OFFSET_BITS
        };
        // Lengths below 128 are ASCII, so runs of values are validated at once, including the
        // lengths: no character can extend across a length. Other lengths are left out.
        if text && length >= 128 {
            check(bytes.get(unchecked..at))?;
            check(bytes.get(start..end))?;
            unchecked = end;
        }
        at = end;
    }
    if text {
        check(bytes.get(unchecked..at))?;
    }
    Ok((at, long))
}

/// The first 16 of the remaining bytes, padded with zeros.
#[cold]
fn last_head(bytes: &[u8]) -> Result<u128> {
    let mut head = [0; 16];
    if bytes.len() < 4 {
        return Err(page_too_short_error());
    }
    head.iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = *from);
    Ok(u128::from_le_bytes(head))
}

impl FlatArrayBuilder for ByteViewArrayBuilder {
    fn reserve(&mut self, rows: usize) {
        self.values.rows = rows;
    }

    fn dictionary(&mut self, bytes: Bytes, values: usize) -> Result<()> {
        if values > bytes.len() / size_of::<u32>() {
            return Err(page_too_short_error());
        }
        self.out();
        let mut views = PooledBuilder::new(values);
        let (_, long) = read_views(&bytes, 0, self.text, 0, views.more(values))?;
        self.dictionary = views.into();
        self.dictionary_bytes = long.then(|| Buffer::from(bytes));
        (self.dictionary_buffer, self.named) = (None, 0);
        Ok(())
    }

    fn plain(&mut self, page: &mut PlainPageValues, count: usize) -> Result<()> {
        let next = u32::try_from(self.buffers.len()).unwrap_or(u32::MAX);
        let buffer = page.buffer.unwrap_or(next);
        let text = self.text;
        let (at, long) = read_views(&page.bytes, page.at, text, buffer, self.out().more(count))?;
        page.at = at;
        if long && page.buffer.is_none() {
            page.buffer = Some(buffer);
            self.buffers.push(Buffer::from(page.bytes.clone()));
        }
        Ok(())
    }

    fn gather(&mut self, indices: &[u32]) -> Result<()> {
        self.use_dictionary();
        let Some(run) = consecutive_range(indices) else {
            let out = self.values.out(|whole| entries(&self.dictionary, whole));
            return gather(&self.dictionary, indices, out, |view| view);
        };
        if run.end > self.dictionary.len() {
            return Err(dictionary_index_error());
        }
        if !self.values.join(&run) {
            let out = self.values.out(|whole| entries(&self.dictionary, whole));
            out.extend(entries(&self.dictionary, run));
        }
        Ok(())
    }

    fn repeat(&mut self, index: u32, count: usize) -> Result<()> {
        self.use_dictionary();
        let view = *self
            .dictionary
            .get(index as usize)
            .ok_or_else(dictionary_index_error)?;
        self.out().extend(std::iter::repeat_n(view, count));
        Ok(())
    }

    fn nulls(&mut self, count: usize) {
        self.out().extend(std::iter::repeat_n(0, count));
    }

    fn spread(&mut self, valid: &BooleanBuffer) {
        let out = self.out();
        let from = out.len() - valid.count_set_bits();
        spread(out, valid);
        // Code that sums up lengths does not check validity.
        for (slot, valid) in out.tail(from).iter_mut().zip(valid.iter()) {
            if !valid {
                *slot = 0;
            }
        }
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let views = match self.values.shared(self.dictionary.len()) {
            Some(whole) => {
                self.values.dictionary_range = 0..0;
                self.dictionary.slice(whole.start, whole.len())
            }
            None => self.values.finish(|whole| entries(&self.dictionary, whole)),
        };
        let buffers = std::mem::take(&mut self.buffers);
        self.dictionary_buffer = None;
        // SAFETY: every view was made of a value at that offset of that buffer, buffers are only
        // appended within one array, and text was validated; views of nulls are empty.
        Ok(unsafe {
            if self.text {
                Arc::new(StringViewArray::new_unchecked(views, buffers.into(), nulls)) as ArrayRef
            } else {
                Arc::new(BinaryViewArray::new_unchecked(views, buffers.into(), nulls)) as ArrayRef
            }
        })
    }
}

/// The array builder of a column; `None` if the column is not on the fast path.
fn array_builder(column: &ColumnChunkMetaData, field: &Field) -> Option<Box<dyn FlatArrayBuilder>> {
    let described = column.column_descr();
    if described.max_rep_level() > 0 || described.max_def_level() > 1 {
        return None;
    }
    let known = |encoding| {
        matches!(
            encoding,
            Encoding::PLAIN | Encoding::PLAIN_DICTIONARY | Encoding::RLE | Encoding::RLE_DICTIONARY
        )
    };
    if !column.encodings().all(known) {
        return None;
    }
    let data_type = field.data_type();
    Some(match (column.column_type(), data_type) {
        (Physical::INT32, DataType::Int32 | DataType::Date32) => {
            NumberArrayBuilder::<i32, i32>::boxed(data_type)
        }
        (Physical::INT32, DataType::Decimal128(_, _)) => {
            NumberArrayBuilder::<i32, i128>::boxed(data_type)
        }
        (Physical::INT64, DataType::Int64 | DataType::Timestamp(_, _)) => {
            NumberArrayBuilder::<i64, i64>::boxed(data_type)
        }
        (Physical::INT64, DataType::Decimal128(_, _)) => {
            NumberArrayBuilder::<i64, i128>::boxed(data_type)
        }
        (Physical::FLOAT, DataType::Float32) => NumberArrayBuilder::<f32, f32>::boxed(data_type),
        (Physical::DOUBLE, DataType::Float64) => NumberArrayBuilder::<f64, f64>::boxed(data_type),
        (Physical::BYTE_ARRAY, DataType::Utf8View) => ByteViewArrayBuilder::boxed(true),
        (Physical::BYTE_ARRAY, DataType::BinaryView) => ByteViewArrayBuilder::boxed(false),
        _ => return None,
    })
}

/// Whether the column can be decoded on the fast path.
pub(in crate::pq) fn is_flat(column: &ColumnChunkMetaData, field: &Field) -> bool {
    array_builder(column, field).is_some()
}

impl FlatColumn {
    /// The column of `pages`, which must be [`is_flat`].
    pub fn new(
        pages: Box<dyn PageReader>,
        column: &ColumnChunkMetaData,
        field: &Field,
    ) -> Result<Self> {
        let out = array_builder(column, field)
            .ok_or_else(|| Error::internal("the column is not flat"))?;
        let page = DataPage {
            left: 0,
            levels: None,
            values: PageValueDecoder::Plain(PlainPageValues::new(Bytes::new())),
        };
        Ok(Self {
            pages,
            optional: column.column_descr().max_def_level() > 0,
            out,
            page,
            rows: 0,
            validity: None,
        })
    }

    /// The next `rows` rows, fewer only at the end.
    pub fn read(&mut self, rows: usize) -> Result<ArrayRef> {
        self.out.reserve(rows);
        self.rows = 0;
        if let PageValueDecoder::Plain(page) = &mut self.page.values {
            page.buffer = None;
        }
        while self.rows < rows && self.has_more_rows()? {
            let most = self.page.left.min(rows - self.rows);
            let taken = match &mut self.page.levels {
                None => self.valid(most)?,
                Some(levels) => match levels.next_run(most).map_err(corrupt_levels_error)? {
                    RleRun::Repeated(0, count) => self.nulls(count),
                    RleRun::Repeated(1, count) => self.valid(count)?,
                    RleRun::Repeated(level, _) => return Err(level_above(level, 1)),
                    RleRun::BitPacked(count) => {
                        let (bits, from) = levels.bits(count);
                        let valid = BooleanBuffer::new(Buffer::from(bits), from, count);
                        self.append_nullable(&valid)?
                    }
                },
            };
            self.page.left -= taken;
            self.rows += taken;
        }
        let nulls = self
            .validity
            .take()
            .map(|mut validity| NullBuffer::new(validity.finish()));
        self.out.finish(nulls)
    }

    /// Whether any row is left.
    pub fn has_more_rows(&mut self) -> Result<bool> {
        while self.page.left == 0 {
            let Some(page) = self.pages.get_next_page().map_err(decode_error)? else {
                return Ok(false);
            };
            self.load_page(page)?;
        }
        Ok(true)
    }

    fn load_page(&mut self, page: Page) -> Result<()> {
        let (left, encoding, levels, values) = match page {
            Page::DictionaryPage {
                buf,
                num_values,
                encoding: Encoding::PLAIN | Encoding::PLAIN_DICTIONARY,
                ..
            } => {
                return self.out.dictionary(buf, num_values as usize);
            }
            Page::DictionaryPage { encoding, .. } => {
                return Err(Error::corrupt_data(format!(
                    "a Parquet dictionary is encoded as {encoding}"
                )));
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                ..
            } => {
                let (levels, values) = if self.optional {
                    if def_level_encoding != Encoding::RLE {
                        return Err(Error::corrupt_data(format!(
                            "the levels of a Parquet page are encoded as {def_level_encoding}"
                        )));
                    }
                    let size = buf
                        .get(..4)
                        .and_then(|size| size.try_into().ok())
                        .map(u32::from_le_bytes)
                        .ok_or_else(page_too_short_error)? as usize;
                    if size > buf.len() - 4 {
                        return Err(page_too_short_error());
                    }
                    (Some(buf.slice(4..4 + size)), buf.slice(4 + size..))
                } else {
                    (None, buf)
                };
                (num_values, encoding, levels, values)
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let (begin, end) = (
                    rep_levels_byte_len as usize,
                    rep_levels_byte_len as usize + def_levels_byte_len as usize,
                );
                if end > buf.len() {
                    return Err(page_too_short_error());
                }
                (
                    num_values,
                    encoding,
                    self.optional.then(|| buf.slice(begin..end)),
                    buf.slice(end..),
                )
            }
        };
        self.page = DataPage {
            left: left as usize,
            levels: levels
                .map(|levels| HybridRleDecoder::new(levels, 1))
                .transpose()
                .map_err(corrupt_levels_error)?,
            values: match encoding {
                Encoding::PLAIN => PageValueDecoder::Plain(PlainPageValues::new(values)),
                Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
                    // A page of nulls may have no values at all.
                    let width = values.first().copied().unwrap_or(0);
                    PageValueDecoder::Indices(
                        HybridRleDecoder::new(values.slice(values.len().min(1)..), width)
                            .map_err(corrupt_levels_error)?,
                    )
                }
                other => {
                    return Err(Error::corrupt_data(format!(
                        "a Parquet page is encoded as {other}, of which the footer does not know"
                    )));
                }
            },
        };
        Ok(())
    }

    /// Appends values.
    fn values(&mut self, count: usize) -> Result<()> {
        match &mut self.page.values {
            PageValueDecoder::Plain(page) => self.out.plain(page, count),
            PageValueDecoder::Indices(indices) => {
                let mut left = count;
                let mut unpacked = [0; INDICES];
                while left > 0 {
                    left -= match indices
                        .next_run(left.min(INDICES))
                        .map_err(corrupt_levels_error)?
                    {
                        RleRun::Repeated(index, count) => {
                            self.out.repeat(index, count)?;
                            count
                        }
                        RleRun::BitPacked(count) => {
                            let unpacked =
                                unpacked.get_mut(..count).ok_or_else(page_too_short_error)?;
                            indices.unpack(unpacked);
                            self.out.gather(unpacked)?;
                            count
                        }
                    };
                }
                Ok(())
            }
        }
    }

    fn valid(&mut self, count: usize) -> Result<usize> {
        self.values(count)?;
        if let Some(validity) = &mut self.validity {
            validity.append_n(count, true);
        }
        Ok(count)
    }

    fn nulls(&mut self, count: usize) -> usize {
        self.out.nulls(count);
        self.validity().append_n(count, false);
        count
    }

    fn append_nullable(&mut self, valid: &BooleanBuffer) -> Result<usize> {
        let values = valid.count_set_bits();
        if values == valid.len() {
            return self.valid(values);
        }
        self.values(values)?;
        self.out.spread(valid);
        self.validity().append_buffer(valid);
        Ok(valid.len())
    }

    fn validity(&mut self) -> &mut BooleanBufferBuilder {
        let rows = self.rows;
        self.validity.get_or_insert_with(|| {
            let mut validity = BooleanBufferBuilder::new(rows);
            validity.append_n(rows, true);
            validity
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{
        Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
        TimestampMicrosecondType,
    };
    use arrow_array::{Array, BinaryArray, PrimitiveArray, RecordBatch, StringArray};
    use arrow_select::concat::concat_batches;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::basic::Compression;
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use proptest::prelude::*;

    use super::*;
    use crate::pq::decode::projection::{ParquetProjection, decode};
    use crate::pq::input::{column_chunks, footer};
    use crate::pq::tests::{file_of, write};

    fn column(kind: u8, values: &[Option<u64>]) -> ArrayRef {
        macro_rules! numbers {
            ($t:ty, $of:expr) => {
                Arc::new(
                    values
                        .iter()
                        .map(|v| v.map($of))
                        .collect::<PrimitiveArray<$t>>(),
                )
            };
        }
        let text = |v: u64| {
            if v.is_multiple_of(3) {
                format!("é{v}")
            } else {
                format!("{}-{}", "long text with ü ".repeat((v % 11) as usize), v)
            }
        };
        match kind {
            0 => numbers!(Int32Type, |v| v as i32),
            1 => numbers!(Int64Type, |v| v as i64),
            2 => numbers!(Float32Type, |v| v as f32),
            3 => numbers!(Float64Type, |v| v as f64 / 7.0),
            4 => numbers!(Date32Type, |v| v as i32),
            5 => numbers!(TimestampMicrosecondType, |v| v as i64),
            6 => Arc::new(
                values
                    .iter()
                    .map(|v| v.map(i128::from))
                    .collect::<PrimitiveArray<Decimal128Type>>()
                    .with_precision_and_scale(7, 2)
                    .unwrap(),
            ),
            7 => Arc::new(
                values
                    .iter()
                    .map(|v| v.map(i128::from))
                    .collect::<PrimitiveArray<Decimal128Type>>()
                    .with_precision_and_scale(17, 3)
                    .unwrap(),
            ),
            8 => Arc::new(values.iter().map(|v| v.map(text)).collect::<StringArray>()),
            _ => Arc::new(
                values
                    .iter()
                    .map(|v| v.map(|v| v.to_le_bytes().repeat((v % 4) as usize)))
                    .collect::<BinaryArray>(),
            ),
        }
    }

    /// The batches of every row group, and how many of them the fast path decoded.
    fn ours(bytes: &[u8], batch_rows: usize) -> (Vec<RecordBatch>, usize) {
        let file = file_of(bytes);
        let (footer, end) = footer::read_with_tail(&file).unwrap();
        let schema = footer.metadata.file_metadata().schema_descr();
        let shape = ParquetProjection::new(schema, |_| true).unwrap();
        let (mut out, mut flat) = (Vec::new(), 0);
        for group in 0..footer.metadata.num_row_groups() {
            let wish = column_chunks::ChunkRequest {
                group,
                leaves: &shape.leaves,
                part: None,
            };
            let group = column_chunks::fetch(&file, &footer, Some(&end), &wish)
                .unwrap()
                .wait()
                .unwrap();
            flat += (0..shape.leaves.len())
                .filter(|n| is_flat(group.column(*n).unwrap(), &shape.fields[*n]))
                .count();
            out.extend(
                decode(&shape, &group, batch_rows, None, "test")
                    .unwrap()
                    .map(Result::unwrap),
            );
        }
        (out, flat)
    }

    /// Runs of values and of nulls, few and many distinct ones.
    fn values() -> impl Strategy<Value = Vec<Option<u64>>> {
        let run = (
            prop::option::weighted(0.8, 0..9_999_999_u64),
            1..60_usize,
            1..200_u64,
            any::<bool>(),
        );
        prop::collection::vec(run, 1..if cfg!(miri) { 4 } else { 40 }).prop_map(|runs| {
            let mut out = Vec::new();
            for (value, times, step, mixed) in runs {
                out.extend((0..times as u64).map(|n| {
                    value
                        .map(|v| (v + n * (step % 3)) % 10_000_000)
                        .filter(|v| !mixed || v % 5 != n % 5)
                }));
            }
            out
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else if cfg!(debug_assertions) { 60 } else { 250 }))]

        #[test]
        fn arrays_are_those_of_the_other_way(
            kind in 0..10_u8,
            values in values(),
            required in any::<bool>(),
            dictionary in any::<bool>(),
            second in any::<bool>(),
            codec in 0..4_u8,
            rows in (1..400_usize, 1..90_usize, 1..3000_usize),
        ) {
            let values: Vec<Option<u64>> = if required { values.iter().map(|v| Some(v.unwrap_or(1))).collect() } else { values };
            let array = column(kind, &values);
            let (batch_rows, page_rows, group_rows) = rows;
            let field = Field::new("c", array.data_type().clone(), !required);
            let batch = RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(vec![field])), vec![array]).unwrap();
            // Miri cannot run Zstandard, which is C code, and is slow with Gzip.
            let codec = if cfg!(miri) { codec % 2 } else { codec };
            let properties = WriterProperties::builder()
                .set_dictionary_enabled(dictionary)
                // Small enough that some chunks begin with a dictionary and continue without one.
                .set_dictionary_page_size_limit(300)
                .set_encoding(Encoding::PLAIN)
                .set_write_batch_size(16)
                .set_data_page_row_count_limit(page_rows)
                .set_max_row_group_row_count(Some(group_rows))
                .set_writer_version(if second { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 })
                .set_compression([Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(Default::default()), Compression::GZIP(Default::default())][codec as usize]);
            let bytes = write(&batch, Some(properties.build()));
            let theirs = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes.clone())).unwrap().build().unwrap();
            let theirs = concat_batches(&batch.schema(), &theirs.map(Result::unwrap).collect::<Vec<_>>()).unwrap();
            let (batches, flat) = ours(&bytes, batch_rows);
            prop_assert!(flat > 0, "the straight way was not taken");
            prop_assert!(batches.iter().all(|b| b.num_rows() <= batch_rows));
            let schema = batches[0].schema();
            let ours = concat_batches(&schema, &batches).unwrap();
            ours.column(0).to_data().validate_full().unwrap();
            let ours = arrow_cast::cast(ours.column(0), theirs.column(0).data_type()).unwrap();
            prop_assert_eq!(&ours, theirs.column(0));
            prop_assert_eq!(ours.null_count(), values.iter().filter(|v| v.is_none()).count());
        }
    }

    #[test]
    fn flat_columns_stand_beside_others() {
        let plain: ArrayRef = Arc::new((0..100).collect::<PrimitiveArray<Int64Type>>());
        let bools: ArrayRef = Arc::new(
            (0..100)
                .map(|n| Some(n % 3 == 0))
                .collect::<arrow_array::BooleanArray>(),
        );
        let text: ArrayRef = Arc::new(
            (0..100)
                .map(|n| Some(n.to_string()))
                .collect::<StringArray>(),
        );
        let batch = RecordBatch::try_from_iter([
            ("a", Arc::clone(&bools)),
            ("b", plain),
            ("c", text),
            ("d", bools),
        ])
        .unwrap();
        let (batches, flat) = ours(&write(&batch, None), 33);
        assert_eq!(flat, 2);
        let ours = concat_batches(&batches[0].schema(), &batches).unwrap();
        assert_eq!(
            ours.schema()
                .fields()
                .iter()
                .map(|f| f.name().as_str())
                .collect::<Vec<_>>(),
            ["a", "b", "c", "d"]
        );
        assert_eq!(
            ours.column(1)
                .as_primitive::<Int64Type>()
                .values()
                .iter()
                .sum::<i64>(),
            4950
        );
        assert_eq!(ours.column(2).as_string_view().value(99), "99");
        assert_eq!(ours.column(3).as_boolean().true_count(), 34);
    }

    #[test]
    fn strings_that_are_no_text_are_refused() {
        let push = |bytes: &[u8]| {
            let mut page = Vec::new();
            for value in [b"abc".as_slice(), bytes, b"def"] {
                page.extend(u32::try_from(value.len()).unwrap().to_le_bytes());
                page.extend(value);
            }
            read_views(&page, 0, true, 0, &mut [0; 3])
        };
        assert!(push("déjà".as_bytes()).is_ok());
        // The first half of a character, at the end of a value and at the end of a long one.
        assert!(push(b"d\xc3").is_err());
        assert!(push(&[&[b'x'; 200][..], b"\xc3"].concat()).is_err());
        assert!(push(b"\xa9d").is_err());
    }
}
