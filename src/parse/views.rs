//! String views into a text that is already in memory: no byte is copied.
//!
//! Views are made without Arrow's checks, so every precondition is checked here:
//! [`Utf8BufferSlice`] is UTF-8, a value begins and ends at character boundaries, and offsets and
//! lengths fit the 32 bits that a view has for them.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::StringViewArray;
use arrow_buffer::{Buffer, NullBufferBuilder, ScalarBuffer};
use arrow_data::ByteView;
use bytes::Bytes;

use super::cursor::{JsonSyntaxError, StringSpan, unescape};

/// The reason that a text cannot be viewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StringViewError {
    /// It is not UTF-8 from this byte on.
    NotUtf8(usize),
    /// It ends beyond the range that a view can address.
    TooLong,
}

/// A piece of a text, checked to be UTF-8 and short enough for views. Positions are those in the
/// whole text.
#[derive(Clone)]
pub(super) struct Utf8BufferSlice {
    buffer: Buffer,
    piece: Range<usize>,
}

impl Utf8BufferSlice {
    pub(super) fn new(text: &Bytes, piece: Range<usize>) -> Result<Self, StringViewError> {
        if u32::try_from(piece.end).is_err() {
            return Err(StringViewError::TooLong);
        }
        let piece = if text.get(piece.clone()).is_some() {
            piece
        } else {
            0..0
        };
        let bytes = text.get(piece.clone()).unwrap_or_default();
        simdutf8::compat::from_utf8(bytes)
            .map_err(|error| StringViewError::NotUtf8(piece.start + error.valid_up_to()))?;
        Ok(Self {
            buffer: Buffer::from(text.clone()),
            piece,
        })
    }

    /// The string from `start` to `end`, if these are character boundaries within the piece.
    #[inline]
    fn get(&self, start: usize, end: usize) -> Option<&str> {
        let bytes = self.buffer.get(self.piece.clone())?;
        // SAFETY: `new` checked these bytes, and they are immutable.
        let piece = unsafe { std::str::from_utf8_unchecked(bytes) };
        piece.get(start.checked_sub(self.piece.start)?..end.checked_sub(self.piece.start)?)
    }
}

/// A column of views into one text, and into a second buffer for values whose escapes had to be
/// resolved.
pub(super) struct JsonStringViewBuilder {
    text: Utf8BufferSlice,
    views: Vec<u128>,
    nulls: NullBufferBuilder,
    resolved: Vec<u8>,
}

/// The error for a value that cannot be addressed.
const TOO_LONG: JsonSyntaxError = "a string is beyond the 4 GiB that can be addressed";

/// The offset and length of a value, if a view can hold them.
#[inline]
fn address(offset: usize, length: usize) -> Result<(u32, u32), JsonSyntaxError> {
    let end = offset
        .checked_add(length)
        .and_then(|end| u32::try_from(end).ok())
        .ok_or(TOO_LONG)?;
    let length = u32::try_from(length).map_err(|_| TOO_LONG)?;
    Ok((end - length, length))
}

impl JsonStringViewBuilder {
    pub(super) fn new(text: &Utf8BufferSlice) -> Self {
        Self {
            text: text.clone(),
            views: Vec::new(),
            nulls: NullBufferBuilder::new(0),
            resolved: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.views.len()
    }

    #[inline]
    fn view(value: &[u8], buffer: u32, offset: usize) -> Result<u128, JsonSyntaxError> {
        let (offset, length) = address(offset, value.len())?;
        if length <= 12 {
            let mut inline = [0u8; 16];
            let (head, tail) = inline.split_at_mut(4);
            head.copy_from_slice(&length.to_le_bytes());
            for (to, from) in tail.iter_mut().zip(value) {
                *to = *from;
            }
            return Ok(u128::from_le_bytes(inline));
        }
        let mut prefix = [0u8; 4];
        for (to, from) in prefix.iter_mut().zip(value) {
            *to = *from;
        }
        Ok(ByteView {
            length,
            prefix: u32::from_le_bytes(prefix),
            buffer_index: buffer,
            offset,
        }
        .into())
    }

    /// Appends the content of a string, escapes resolved.
    #[inline]
    pub(super) fn push(&mut self, span: StringSpan) -> Result<(), JsonSyntaxError> {
        if span.escaped {
            let content = self
                .text
                .get(span.start, span.end)
                .ok_or("a string does not end at a character")?;
            let resolved = unescape(content.as_bytes())?;
            self.push_owned(&resolved)
        } else {
            self.push_raw(span.start, span.end)
        }
    }

    /// Appends a span of the text unchanged.
    #[inline]
    pub(super) fn push_raw(&mut self, start: usize, end: usize) -> Result<(), JsonSyntaxError> {
        let content = self
            .text
            .get(start, end)
            .ok_or("a string does not end at a character")?;
        let view = Self::view(content.as_bytes(), 0, start)?;
        self.views.push(view);
        self.nulls.append_non_null();
        Ok(())
    }

    fn push_owned(&mut self, value: &str) -> Result<(), JsonSyntaxError> {
        let view = Self::view(value.as_bytes(), 1, self.resolved.len())?;
        self.resolved.extend_from_slice(value.as_bytes());
        self.views.push(view);
        self.nulls.append_non_null();
        Ok(())
    }

    #[inline]
    pub(super) fn push_null(&mut self) {
        self.views.push(0);
        self.nulls.append_null();
    }

    #[inline]
    pub(super) fn push_opt(&mut self, span: Option<StringSpan>) -> Result<(), JsonSyntaxError> {
        match span {
            Some(span) => self.push(span),
            None => {
                self.push_null();
                Ok(())
            }
        }
    }

    /// The column.
    pub(super) fn finish(mut self) -> StringViewArray {
        let buffers: Arc<[Buffer]> = Arc::from([self.text.buffer, Buffer::from_vec(self.resolved)]);
        // SAFETY: a view is made of a `str` that is in one of the two buffers, with its length and
        // offset there, which `address` found to fit; a null has the view of the empty string.
        // Nothing is removed from the buffers.
        unsafe {
            StringViewArray::new_unchecked(
                ScalarBuffer::from(self.views),
                buffers,
                self.nulls.finish(),
            )
        }
    }
}

/// Few and small, so that Miri can run them: `cargo +nightly miri test --lib parse::views`.
#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;

    fn views(text: &str) -> JsonStringViewBuilder {
        JsonStringViewBuilder::new(
            &Utf8BufferSlice::new(&Bytes::copy_from_slice(text.as_bytes()), 0..text.len()).unwrap(),
        )
    }

    fn span(text: &str, content: &str) -> StringSpan {
        let start = text.find(content).unwrap();
        StringSpan {
            start,
            end: start + content.len(),
            escaped: content.contains('\\'),
        }
    }

    /// The column, checked again by Arrow.
    fn checked(views: JsonStringViewBuilder) -> Vec<Option<String>> {
        let array = views.finish();
        let again = StringViewArray::try_new(
            array.views().clone(),
            array.data_buffers().to_vec(),
            array.nulls().cloned(),
        )
        .unwrap();
        assert_eq!(array, again);
        array.iter().map(|value| value.map(str::to_owned)).collect()
    }

    #[test]
    fn values_of_every_kind_are_views_that_arrow_accepts() {
        let text = r#"["","short","exactly12by.","a string that is longer","größer als zwölf Bytes","tab\tand \u00e4 and more than twelve","\n"]"#;
        let mut column = views(text);
        column
            .push(StringSpan {
                start: 2,
                end: 2,
                escaped: false,
            })
            .unwrap();
        for content in [
            "short",
            "exactly12by.",
            "a string that is longer",
            "größer als zwölf Bytes",
        ] {
            column.push(span(text, content)).unwrap();
        }
        column.push_null();
        column.push_opt(None).unwrap();
        column
            .push(span(text, r"tab\tand \u00e4 and more than twelve"))
            .unwrap();
        column.push(span(text, r"\n")).unwrap();
        column.push_raw(0, text.len()).unwrap();
        assert_eq!(column.len(), 10);
        let expected = [
            Some(""),
            Some("short"),
            Some("exactly12by."),
            Some("a string that is longer"),
            Some("größer als zwölf Bytes"),
            None,
            None,
            Some("tab\tand ä and more than twelve"),
            Some("\n"),
            Some(text),
        ];
        assert_eq!(
            checked(column),
            expected.map(|value| value.map(str::to_owned))
        );
    }

    #[test]
    fn spans_outside_of_the_piece_or_inside_of_a_character_are_refused() {
        let text = "0123456789 äöü 0123456789";
        let whole = Bytes::copy_from_slice(text.as_bytes());
        let mut column = JsonStringViewBuilder::new(&Utf8BufferSlice::new(&whole, 11..18).unwrap());
        column.push_raw(11, 17).unwrap();
        for (start, end) in [
            (10, 13),
            (11, 19),
            (12, 13),
            (11, 14),
            (15, 13),
            (0, 5),
            (usize::MAX, usize::MAX),
            (13, usize::MAX),
        ] {
            assert!(column.push_raw(start, end).is_err(), "{start}..{end}");
            assert!(
                column
                    .push(StringSpan {
                        start,
                        end,
                        escaped: true
                    })
                    .is_err(),
                "{start}..{end}"
            );
        }
        assert_eq!(checked(column), [Some("äöü".to_owned())]);
    }

    #[test]
    fn what_is_no_text_cannot_be_viewed() {
        let bytes = Bytes::from_static(b"abc\xffdef");
        assert_eq!(
            Utf8BufferSlice::new(&bytes, 0..7).err(),
            Some(StringViewError::NotUtf8(3))
        );
        assert!(Utf8BufferSlice::new(&bytes, 0..3).is_ok());
        assert!(Utf8BufferSlice::new(&bytes, 4..7).is_ok());
        // A piece outside of the text is empty.
        assert!(
            JsonStringViewBuilder::new(&Utf8BufferSlice::new(&bytes, 5..9).unwrap())
                .push_raw(5, 6)
                .is_err()
        );
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn nothing_is_addressed_beyond_32_bits() {
        let most = u32::MAX as usize;
        assert_eq!(address(most - 20, 20), Ok((u32::MAX - 20, 20)));
        for (offset, length) in [
            (most - 20, 21),
            (most + 1, 0),
            (most, 1),
            (0, most + 1),
            (usize::MAX, 1),
            (usize::MAX, usize::MAX),
        ] {
            assert_eq!(address(offset, length), Err(TOO_LONG), "{offset} {length}");
        }
        assert_eq!(
            Utf8BufferSlice::new(&Bytes::new(), 0..most + 1).err(),
            Some(StringViewError::TooLong)
        );
    }
}
