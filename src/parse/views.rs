//! String views into a text that is already in memory: no byte is copied.

use std::sync::Arc;

use arrow_array::StringViewArray;
use arrow_buffer::{Buffer, NullBufferBuilder, ScalarBuffer};
use arrow_data::ByteView;

use super::cursor::{Span, Wrong, unescape};

/// A column of views into one text, and into a second buffer for values whose escapes had to be resolved.
pub(super) struct Views {
    views: Vec<u128>,
    nulls: NullBufferBuilder,
    resolved: Vec<u8>,
}

impl Views {
    pub(super) fn new() -> Self {
        Self { views: Vec::new(), nulls: NullBufferBuilder::new(0), resolved: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.views.len()
    }

    #[inline]
    fn view(bytes: &[u8], buffer: u32, offset: usize) -> u128 {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if length <= 12 {
            let mut inline = [0u8; 16];
            let (head, tail) = inline.split_at_mut(4);
            head.copy_from_slice(&length.to_le_bytes());
            for (to, from) in tail.iter_mut().zip(bytes) {
                *to = *from;
            }
            return u128::from_le_bytes(inline);
        }
        let mut prefix = [0u8; 4];
        for (to, from) in prefix.iter_mut().zip(bytes) {
            *to = *from;
        }
        ByteView { length, prefix: u32::from_le_bytes(prefix), buffer_index: buffer, offset: u32::try_from(offset).unwrap_or(u32::MAX) }.into()
    }

    /// Appends the content of a string, escapes resolved.
    #[inline]
    pub(super) fn push(&mut self, text: &[u8], span: Span) -> Result<(), Wrong> {
        let content = text.get(span.start..span.end).unwrap_or_default();
        if span.escaped {
            let resolved = unescape(content)?;
            self.push_owned(&resolved);
        } else {
            self.views.push(Self::view(content, 0, span.start));
            self.nulls.append_non_null();
        }
        Ok(())
    }

    /// Appends a span of the text as it is.
    #[inline]
    pub(super) fn push_raw(&mut self, text: &[u8], start: usize, end: usize) {
        self.views.push(Self::view(text.get(start..end).unwrap_or_default(), 0, start));
        self.nulls.append_non_null();
    }

    pub(super) fn push_owned(&mut self, value: &str) {
        let offset = self.resolved.len();
        self.resolved.extend_from_slice(value.as_bytes());
        self.views.push(Self::view(value.as_bytes(), 1, offset));
        self.nulls.append_non_null();
    }

    #[inline]
    pub(super) fn push_null(&mut self) {
        self.views.push(0);
        self.nulls.append_null();
    }

    #[inline]
    pub(super) fn push_opt(&mut self, text: &[u8], span: Option<Span>) -> Result<(), Wrong> {
        match span {
            Some(span) => self.push(text, span),
            None => {
                self.push_null();
                Ok(())
            }
        }
    }

    /// The column; `text` is the text that the spans were taken from.
    pub(super) fn finish(mut self, text: &Buffer) -> StringViewArray {
        let buffers: Arc<[Buffer]> = Arc::from([text.clone(), Buffer::from_vec(self.resolved)]);
        // SAFETY: every view was made from a slice of one of the two buffers, at its offset and with its length. The text
        // was checked to be UTF-8 and spans begin and end next to ASCII quotes or brackets; resolved values are `str`s.
        unsafe { StringViewArray::new_unchecked(ScalarBuffer::from(self.views), buffers, self.nulls.finish()) }
    }
}
