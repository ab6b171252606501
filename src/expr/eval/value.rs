//! Row access to strings and binary values of any layout, and string builders that check their
//! size.

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray, StringArray,
    StringViewArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType as Arrow;

use crate::error::{Error, ErrorCode};
use crate::expr::eval::budget;
use crate::expr::eval::columnar_value::ColumnarValue;
use crate::expr::eval::error::{EvalError, EvalResult, unexpected};

/// Packs one bit per value, 64 at a time, which the compiler turns into vector instructions.
pub(crate) fn pack<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> BooleanBuffer {
    let words = values.chunks(64).map(|chunk| {
        chunk
            .iter()
            .enumerate()
            .fold(0_u64, |bits, (n, value)| {
                bits | (u64::from(test(*value)) << n)
            })
            .to_le()
    });
    BooleanBuffer::new(
        Buffer::from_vec(words.collect::<Vec<u64>>()),
        0,
        values.len(),
    )
}

/// A string column.
pub(crate) enum StringColumn<'a> {
    Plain(&'a StringArray),
    Large(&'a LargeStringArray),
    View(&'a StringViewArray),
}

impl<'a> StringColumn<'a> {
    pub(crate) fn new(array: &'a ArrayRef) -> EvalResult<Self> {
        Ok(match array.data_type() {
            Arrow::Utf8 => Self::Plain(array.as_string()),
            Arrow::LargeUtf8 => Self::Large(array.as_string()),
            Arrow::Utf8View => Self::View(array.as_string_view()),
            other => return Err(unexpected(other)),
        })
    }

    /// The string at an index, which must not be null.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &'a str {
        match self {
            Self::Plain(a) => a.value(index),
            Self::Large(a) => a.value(index),
            Self::View(a) => a.value(index),
        }
    }
}

/// A column of strings or binary values, read as bytes.
pub(crate) enum BinaryColumn<'a> {
    Plain(&'a BinaryArray),
    Large(&'a LargeBinaryArray),
    View(&'a BinaryViewArray),
    Text(StringColumn<'a>),
}

impl<'a> BinaryColumn<'a> {
    pub(crate) fn new(array: &'a ArrayRef) -> Option<Self> {
        Some(match array.data_type() {
            Arrow::Binary => Self::Plain(array.as_binary()),
            Arrow::LargeBinary => Self::Large(array.as_binary()),
            Arrow::BinaryView => Self::View(array.as_binary_view()),
            _ => Self::Text(StringColumn::new(array).ok()?),
        })
    }

    /// The bytes at an index, which must not be null.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &'a [u8] {
        match self {
            Self::Plain(a) => a.value(index),
            Self::Large(a) => a.value(index),
            Self::View(a) => a.value(index),
            Self::Text(t) => t.get(index).as_bytes(),
        }
    }
}

/// A string argument by row.
pub(crate) struct StringArg<'a> {
    strings: StringColumn<'a>,
    operand: &'a ColumnarValue,
}

impl<'a> StringArg<'a> {
    pub(crate) fn new(operand: &'a ColumnarValue) -> EvalResult<Self> {
        Ok(Self {
            strings: StringColumn::new(&operand.array)?,
            operand,
        })
    }

    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<&'a str> {
        let index = self.operand.row(row);
        if self.operand.array.is_null(index) {
            None
        } else {
            Some(self.strings.get(index))
        }
    }
}

/// Builds strings or binary values; refuses to grow beyond the evaluation's memory limit and the
/// range of 32-bit offsets.
pub(crate) struct BytesBuilder {
    data: Vec<u8>,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    most: usize,
}

impl BytesBuilder {
    pub(crate) fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        let most = usize::try_from(budget::room())
            .unwrap_or(usize::MAX)
            .min(i32::MAX as usize);
        Self {
            data: Vec::new(),
            offsets,
            nulls: NullBufferBuilder::new(rows),
            most,
        }
    }

    /// Adds the value that `write` appends, at most `bound` bytes; nothing may be removed.
    pub(crate) fn push_with(
        &mut self,
        bound: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> EvalResult<()> {
        self.make_room(bound)?;
        write(&mut self.data);
        self.close(true)
    }

    pub(crate) fn push(&mut self, value: &[u8]) -> EvalResult<()> {
        self.make_room(value.len())?;
        self.data.extend_from_slice(value);
        self.close(true)
    }

    pub(crate) fn push_null(&mut self) -> EvalResult<()> {
        self.close(false)
    }

    fn close(&mut self, valid: bool) -> EvalResult<()> {
        let end = i32::try_from(self.data.len()).map_err(|_| budget::too_large())?;
        self.offsets.push(end);
        self.nulls.append(valid);
        Ok(())
    }

    /// Checks that this many bytes may be added.
    pub(crate) fn make_room(&mut self, bytes: usize) -> EvalResult<()> {
        if bytes > self.most.saturating_sub(self.data.len()) {
            return Err(budget::too_large());
        }
        // Small growth is left to the allocator, which aborts on failure; large growth is tried
        // first.
        const MUCH: usize = 1 << 20;
        if self.data.capacity() - self.data.len() < bytes && self.data.len() + bytes > MUCH {
            let more = bytes.max(self.data.len().min(self.most - self.data.len()));
            let tried = self
                .data
                .try_reserve_exact(more)
                .or_else(|_| self.data.try_reserve_exact(bytes));
            tried.map_err(|_| {
                Error::no_memory(
                    "the value of an expression",
                    (self.data.len() + bytes) as u64,
                )
            })?;
        }
        Ok(())
    }

    pub(crate) fn finish_binary(mut self) -> BinaryArray {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        BinaryArray::new(offsets, Buffer::from_vec(self.data), self.nulls.finish())
    }

    pub(crate) fn finish_text(mut self) -> EvalResult<StringArray> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        StringArray::try_new(offsets, Buffer::from_vec(self.data), self.nulls.finish())
            .map_err(|_| EvalError::value(ErrorCode::InvalidArgument, "bytes are not UTF-8 text"))
    }
}
