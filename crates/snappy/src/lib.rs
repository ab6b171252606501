//! Decompression of Snappy blocks, the codec of most tables' pages.
//!
//! A block is a sequence of elements: literal bytes, and copies of bytes written before. Most of
//! the cost is in finding where the next element begins, so three loops branch as little as they
//! can: alternating literals and copies, the pattern of compressed numbers, whose order the
//! processor predicts; elements in any order, by selection instead of branches; copies from eight
//! bytes before, the pattern of sorted numbers, out of a register, since the processor waits when
//! it reads bytes that it has only just written. They run while there is room for the largest
//! elements; near the ends, and for rare elements, the decoder goes element by element.
//!
//! Rejected: decompressing two blocks in alternation. It takes a quarter less time where the bytes
//! are in the cache, and no less where pages are read from files.
//!
//! Format: "Snappy compressed format description". Cost: 1 to 2 ns an element, half to two thirds
//! of the `snap` crate's time; tests compare with that crate.

#![allow(
    clippy::inline_always,
    reason = "a loop with a call in it is twice as slow"
)]
#![allow(
    clippy::verbose_bit_mask,
    reason = "the lowest two bits of a tag are a number"
)]

use std::fmt;
use std::hint::select_unpredictable;

/// The block is not valid Snappy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnappyDecodeError;

impl fmt::Display for SnappyDecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is not a Snappy block")
    }
}

/// The longest copy, and the longest literal that is moved at once: this many bytes are always
/// moved, and the next element overwrites the excess.
const WIDE: usize = 64;
/// Bytes that one iteration may read or write from the start of its first element: two elements.
const MARGIN: usize = 160;
/// Iterations after which the loop is chosen again.
const STRETCH: usize = 512;

/// The decoded tag of an element. The offset of a copy is
/// `(the two bytes after the tag & mask) + high`.
#[derive(Clone, Copy)]
struct SnappyTag {
    mask: u16,
    high: u16,
    length: u32,
}

/// Marks long literals and far copies, which the loops do not handle: the length exceeds all valid
/// ones, so the loops stop as for a copy with an invalid offset.
const RARE: SnappyTag = SnappyTag {
    mask: 0,
    high: 0,
    length: u32::MAX,
};

#[allow(clippy::indexing_slicing, reason = "the compiler runs it")]
static TAGS: [SnappyTag; 256] = {
    let mut tags = [RARE; 256];
    let mut n = 0;
    while n < 256 {
        let upper = (n >> 2) as u32;
        tags[n] = match n & 3 {
            // With an offset that is valid for any literal, so that a loop need not distinguish it
            // from a copy.
            0 if upper < 60 => SnappyTag {
                mask: 0,
                high: WIDE as u16,
                length: upper + 1,
            },
            1 => SnappyTag {
                mask: 0xff,
                high: (n as u16 >> 5) << 8,
                length: (upper & 7) + 4,
            },
            2 => SnappyTag {
                mask: 0xffff,
                high: 0,
                length: upper + 1,
            },
            _ => RARE,
        };
        n += 1;
    }
    tags
};

/// The decompressed size in a block's header, and where its elements begin.
fn header(block: &[u8]) -> Result<(usize, usize), SnappyDecodeError> {
    let mut size = 0_u64;
    for (n, byte) in block.iter().enumerate().take(5) {
        size |= u64::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            return u32::try_from(size)
                .map(|size| (size as usize, n + 1))
                .map_err(|_| SnappyDecodeError);
        }
    }
    Err(SnappyDecodeError)
}

/// The decompressed size in a block's header.
///
/// # Errors
/// The block has no valid header.
pub fn decompressed_size(block: &[u8]) -> Result<usize, SnappyDecodeError> {
    header(block).map(|(size, _)| size)
}

/// Decompresses a block into `out`, which it must fill.
///
/// # Errors
/// The block is not valid, or has another decompressed size than `out`; `out` is then partly
/// overwritten.
pub fn decompress(block: &[u8], out: &mut [u8]) -> Result<(), SnappyDecodeError> {
    SnappyBlockDecoder::new(block, out)?.finish()
}

/// A block that is being decompressed: the elements up to `read` produced the bytes up to
/// `written`.
struct SnappyBlockDecoder<'a> {
    block: &'a [u8],
    read: usize,
    out: &'a mut [u8],
    written: usize,
}

impl<'a> SnappyBlockDecoder<'a> {
    fn new(block: &'a [u8], out: &'a mut [u8]) -> Result<Self, SnappyDecodeError> {
        let (size, read) = header(block)?;
        if size == out.len() {
            Ok(Self {
                block,
                read,
                out,
                written: 0,
            })
        } else {
            Err(SnappyDecodeError)
        }
    }

    fn finish(mut self) -> Result<(), SnappyDecodeError> {
        while self.decode_until_loop()? {
            let mut here = self.cursor();
            while run(&mut here) {}
            self.resume_from(&here);
        }
        if self.written == self.out.len() {
            Ok(())
        } else {
            Err(SnappyDecodeError)
        }
    }

    /// Decodes at least one element, until a loop can run; `false` at the end of the block.
    fn decode_until_loop(&mut self) -> Result<bool, SnappyDecodeError> {
        while self.read < self.block.len() {
            self.element()?;
            // The loops also need bytes before the output position.
            if self.written >= WIDE
                && self.block.len() - self.read > MARGIN
                && self.out.len() - self.written > MARGIN
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The start position of a loop; only valid after [`SnappyBlockDecoder::decode_until_loop`]
    /// returned `true`.
    fn cursor(&mut self) -> SnappyCursor {
        let (block, begin) = (self.block.as_ptr(), self.out.as_mut_ptr());
        // SAFETY: more bytes than the margin follow in both, so all of these are within their
        // slices.
        unsafe {
            SnappyCursor {
                from: block.add(self.read + 1),
                tag: usize::from(*block.add(self.read)),
                to: begin.add(self.written),
                begin,
                last_from: block.add(self.block.len() - MARGIN),
                last_to: begin.add(self.out.len() - MARGIN),
                way: DecodeLoopKind::Alternating,
            }
        }
    }

    /// Continues where the loops ended.
    fn resume_from(&mut self, at: &SnappyCursor) {
        // SAFETY: loops only move forward from their start, and stay within the slices.
        unsafe {
            self.read = at.from.offset_from_unsigned(self.block.as_ptr()) - 1;
            self.written = at.to.offset_from_unsigned(at.begin);
        }
    }

    /// Decodes one element of any kind.
    #[inline(never)]
    fn element(&mut self) -> Result<(), SnappyDecodeError> {
        let tag = self.read_length(1)?;
        let upper = tag >> 2;
        let (length, offset) = match tag & 3 {
            0 => {
                let length = if upper < 60 {
                    upper
                } else {
                    self.read_length(upper - 59)?
                } + 1;
                let literal = self
                    .read
                    .checked_add(length)
                    .and_then(|end| self.block.get(self.read..end))
                    .ok_or(SnappyDecodeError)?;
                let to = self
                    .out
                    .get_mut(self.written..)
                    .and_then(|out| out.get_mut(..length))
                    .ok_or(SnappyDecodeError)?;
                to.copy_from_slice(literal);
                self.read += length;
                self.written += length;
                return Ok(());
            }
            1 => ((upper & 7) + 4, (tag >> 5) << 8 | self.read_length(1)?),
            2 => (upper + 1, self.read_length(2)?),
            _ => (upper + 1, self.read_length(4)?),
        };
        if offset == 0 || offset > self.written || length > self.out.len() - self.written {
            return Err(SnappyDecodeError);
        }
        for _ in 0..length {
            // A byte at a time, since a copy may overlap its own output.
            let from = self.written - offset;
            self.out.copy_within(from..=from, self.written);
            self.written += 1;
        }
        Ok(())
    }

    /// Reads a number of this many bytes.
    fn read_length(&mut self, bytes: usize) -> Result<usize, SnappyDecodeError> {
        let text = self
            .block
            .get(self.read..self.read + bytes)
            .ok_or(SnappyDecodeError)?;
        self.read += bytes;
        Ok(text
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }
}

/// The position of the loops. Made by [`SnappyBlockDecoder::cursor`] and moved by
/// [`DecodeLoop::step`] only.
#[derive(Clone, Copy)]
struct SnappyCursor {
    /// After the tag of the next element.
    from: *const u8,
    tag: usize,
    to: *mut u8,
    /// The end of the output.
    begin: *mut u8,
    /// The start of the margins.
    last_from: *const u8,
    last_to: *mut u8,
    way: DecodeLoopKind,
}

impl SnappyCursor {
    #[inline(always)]
    fn has_room(&self) -> bool {
        self.from < self.last_from && self.to < self.last_to
    }
}

/// The loop for the next elements.
#[derive(Clone, Copy)]
enum DecodeLoopKind {
    Alternating,
    AnyOrder,
    EightByteCopy,
}

/// The result of an iteration.
enum DecodeLoopStep {
    Continue,
    Change(DecodeLoopKind),
    /// The element is not for a loop.
    Exit,
}

/// Runs the loop for the next elements; `false` if there is none.
fn run(at: &mut SnappyCursor) -> bool {
    match at.way {
        DecodeLoopKind::Alternating => run_by::<AlternatingLoop>(at),
        DecodeLoopKind::AnyOrder => run_by::<AnyOrderLoop>(at),
        DecodeLoopKind::EightByteCopy => run_by::<EightByteCopyLoop>(at),
    }
}

#[inline(never)]
fn run_by<L: DecodeLoop>(at: &mut SnappyCursor) -> bool {
    // A copy, which stays in registers.
    let mut here = *at;
    let mut by = L::new(&here);
    let mut left = L::TURNS;
    let runs = loop {
        if !here.has_room() {
            break false;
        }
        if left == 0 {
            here.way = by.next_loop();
            break true;
        }
        left -= 1;
        // SAFETY: there is room.
        match unsafe { by.step(&mut here) } {
            DecodeLoopStep::Continue => {}
            DecodeLoopStep::Change(way) => {
                here.way = way;
                break true;
            }
            DecodeLoopStep::Exit => break false,
        }
    };
    *at = here;
    runs
}

trait DecodeLoop {
    /// Iterations until [`DecodeLoop::next_loop`] is called.
    const TURNS: usize;
    fn new(at: &SnappyCursor) -> Self;
    /// Decodes one or two elements; the position stays at the first that it does not decode.
    ///
    /// # Safety
    /// There is room.
    unsafe fn step(&mut self, at: &mut SnappyCursor) -> DecodeLoopStep;
    /// The loop to run after these elements.
    fn next_loop(&self) -> DecodeLoopKind;
}

/// Alternating literals and copies.
struct AlternatingLoop {
    /// Iterations without a literal, or without a copy.
    odd: usize,
}

impl DecodeLoop for AlternatingLoop {
    const TURNS: usize = STRETCH;

    fn new(_: &SnappyCursor) -> Self {
        Self { odd: 0 }
    }

    #[inline(always)]
    unsafe fn step(&mut self, at: &mut SnappyCursor) -> DecodeLoopStep {
        // SAFETY: a literal of at most 60 bytes and a copy of at most 64, with their tags, touch no
        // more than 80 bytes behind their begins; the copied bytes are between `begin` and
        // `to`. A tag is below 256.
        unsafe {
            if at.tag & 3 == 0 {
                let upper = at.tag >> 2;
                if upper >= 60 {
                    return DecodeLoopStep::Exit;
                }
                move_wide(at.from, at.to, upper + 1);
                at.tag = usize::from(*at.from.add(upper + 1));
                at.from = at.from.add(upper + 2);
                at.to = at.to.add(upper + 1);
                if at.tag & 3 == 0 {
                    self.odd += 1;
                    return DecodeLoopStep::Continue;
                }
            } else {
                self.odd += 1;
            }
            let SnappyTag { mask, high, length } = *TAGS.get_unchecked(at.tag);
            let length = length as usize;
            let offset =
                usize::from(at.from.cast::<u16>().read_unaligned() & mask) + usize::from(high);
            if offset > at.to.offset_from_unsigned(at.begin) {
                return DecodeLoopStep::Exit;
            }
            if offset == 8 {
                return DecodeLoopStep::Change(DecodeLoopKind::EightByteCopy);
            }
            if offset >= length {
                move_wide(at.to.sub(offset), at.to, length);
            } else if !repeat(at.to, offset, length) {
                return DecodeLoopStep::Exit;
            }
            let size = at.tag & 3;
            at.tag = usize::from(*at.from.add(size));
            at.from = at.from.add(size + 1);
            at.to = at.to.add(length);
        }
        DecodeLoopStep::Continue
    }

    fn next_loop(&self) -> DecodeLoopKind {
        if (STRETCH / 16..STRETCH / 16 * 15).contains(&self.odd) {
            DecodeLoopKind::AnyOrder
        } else {
            DecodeLoopKind::Alternating
        }
    }
}

/// Elements in any order: the source of the bytes and the start of the next element are selected
/// without a branch.
struct AnyOrderLoop;

impl DecodeLoop for AnyOrderLoop {
    const TURNS: usize = 8 * STRETCH;

    fn new(_: &SnappyCursor) -> Self {
        Self
    }

    #[inline(always)]
    unsafe fn step(&mut self, at: &mut SnappyCursor) -> DecodeLoopStep {
        for _ in 0..2 {
            // SAFETY: an element of at most 64 bytes, with its tag, touches no more than 80 bytes
            // behind its begin; the copied bytes are between `begin` and `to`. A tag is
            // below 256.
            unsafe {
                let SnappyTag { mask, high, length } = *TAGS.get_unchecked(at.tag);
                let length = length as usize;
                let offset =
                    usize::from(at.from.cast::<u16>().read_unaligned() & mask) + usize::from(high);
                if offset > at.to.offset_from_unsigned(at.begin) {
                    return DecodeLoopStep::Exit;
                }
                let is_literal = at.tag & 3 == 0;
                if offset >= length {
                    move_wide(
                        select_unpredictable(is_literal, at.from, at.to.sub(offset).cast_const()),
                        at.to,
                        length,
                    );
                } else if !repeat(at.to, offset, length) {
                    return DecodeLoopStep::Exit;
                }
                let (upper, size) = (at.tag >> 2, at.tag & 3);
                let (after_literal, after_copy) = (*at.from.add(upper + 1), *at.from.add(size));
                at.tag = usize::from(select_unpredictable(is_literal, after_literal, after_copy));
                at.from = at
                    .from
                    .add(select_unpredictable(is_literal, upper + 1, size) + 1);
                at.to = at.to.add(length);
            }
        }
        DecodeLoopStep::Continue
    }

    fn next_loop(&self) -> DecodeLoopKind {
        DecodeLoopKind::Alternating
    }
}

/// Copies from eight bytes before, and short literals between them.
struct EightByteCopyLoop {
    /// The last eight bytes.
    last: u64,
}

impl DecodeLoop for EightByteCopyLoop {
    const TURNS: usize = STRETCH;

    fn new(at: &SnappyCursor) -> Self {
        // SAFETY: no place has fewer bytes before it.
        let last = unsafe { at.to.sub(8).cast::<u64>().read_unaligned() };
        Self {
            last: u64::from_le(last),
        }
    }

    #[inline(always)]
    unsafe fn step(&mut self, at: &mut SnappyCursor) -> DecodeLoopStep {
        // SAFETY: a literal of at most 7 bytes and a copy of at most 64, with their tags, touch no
        // more than 64 bytes behind their begins. A tag is below 256.
        unsafe {
            if at.tag & 3 == 0 {
                let upper = at.tag >> 2;
                if upper >= 7 {
                    return DecodeLoopStep::Change(DecodeLoopKind::Alternating);
                }
                let literal = at.from.cast::<u64>().read_unaligned();
                at.to.cast::<u64>().write_unaligned(literal);
                let bits = 8 * (upper + 1);
                self.last = self.last >> bits | u64::from_le(literal) << (64 - bits);
                at.tag = usize::from(*at.from.add(upper + 1));
                at.from = at.from.add(upper + 2);
                at.to = at.to.add(upper + 1);
            }
            let SnappyTag { mask, high, length } = *TAGS.get_unchecked(at.tag);
            let offset =
                usize::from(at.from.cast::<u16>().read_unaligned() & mask) + usize::from(high);
            if offset != 8 {
                return DecodeLoopStep::Change(DecodeLoopKind::Alternating);
            }
            let eight = self.last.to_le();
            at.to.cast::<u64>().write_unaligned(eight);
            if length > 8 {
                for n in 1..8 {
                    at.to.add(8 * n).cast::<u64>().write_unaligned(eight);
                }
            }
            self.last = self.last.rotate_right(8 * (length & 7));
            let size = at.tag & 3;
            at.tag = usize::from(*at.from.add(size));
            at.from = at.from.add(size + 1);
            at.to = at.to.add(length as usize);
        }
        DecodeLoopStep::Continue
    }

    fn next_loop(&self) -> DecodeLoopKind {
        DecodeLoopKind::EightByteCopy
    }
}

/// # Safety
/// 16 bytes may be read and written there.
#[inline(always)]
unsafe fn move_16(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's.
    unsafe {
        to.cast::<u128>()
            .write_unaligned(from.cast::<u128>().read_unaligned());
    }
}

/// Moves `length` bytes, and those behind them up to 16 or [`WIDE`].
///
/// # Safety
/// [`WIDE`] bytes may be read and written there.
#[inline(always)]
unsafe fn move_wide(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the caller's.
    unsafe {
        move_16(from, to);
        if length > 16 {
            move_16(from.add(16), to.add(16));
            move_16(from.add(32), to.add(32));
            move_16(from.add(48), to.add(48));
        }
    }
}

/// Repeats the `offset` bytes before `to` until there are `length` more; `false` if that is no
/// copy.
///
/// # Safety
/// `offset` bytes are before `to`, and 80 may be written there.
#[inline(never)]
unsafe fn repeat(to: *mut u8, offset: usize, length: usize) -> bool {
    if offset == 0 || length > WIDE {
        return false;
    }
    let (mut done, mut period) = (0, offset);
    while done < length {
        // SAFETY: `done` is below 64. What is read begins `offset` bytes before `to` or later.
        unsafe { move_16(to.add(done).sub(period), to.add(done)) };
        if period < 16 {
            // Only the earlier bytes are valid; the repeated pattern is now twice as long.
            done += period;
            period *= 2;
        } else {
            done += 16;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        snap::raw::Encoder::new().compress_vec(bytes).unwrap()
    }

    fn expanded(block: &[u8]) -> Result<Vec<u8>, SnappyDecodeError> {
        // The previous content must not be visible.
        let mut out = vec![0xa5; decompressed_size(block)?];
        decompress(block, &mut out).map(|()| out)
    }

    /// Elements as another compressor may write them, and the bytes that they encode.
    #[derive(Debug, Clone)]
    enum Element {
        Literal(Vec<u8>),
        Copy {
            offset: usize,
            length: usize,
            size: usize,
        },
    }

    fn written(elements: &[Element]) -> (Vec<u8>, Vec<u8>) {
        let (mut text, mut plain) = (Vec::new(), Vec::<u8>::new());
        for element in elements {
            match element {
                Element::Literal(bytes) => {
                    let n = u32::try_from(bytes.len() - 1).unwrap();
                    match n {
                        0..60 => text.push(u8::try_from(n).unwrap() << 2),
                        60..256 => text.extend([60 << 2, u8::try_from(n).unwrap()]),
                        _ => {
                            text.push(63 << 2);
                            text.extend(n.to_le_bytes());
                        }
                    }
                    text.extend(bytes);
                    plain.extend(bytes);
                }
                Element::Copy {
                    offset,
                    length,
                    size,
                } => {
                    let Some(from) = plain
                        .len()
                        .checked_sub(1)
                        .map(|most| plain.len() - 1 - (offset % 70_000).min(most))
                    else {
                        continue;
                    };
                    let offset = u32::try_from(plain.len() - from).unwrap();
                    let length = match size {
                        1 if offset < 2048 => 4 + length % 8,
                        _ => 1 + length % 64,
                    };
                    let upper = u8::try_from(length - 1).unwrap() << 2;
                    let [a, b, c, d] = offset.to_le_bytes();
                    match size {
                        1 if offset < 2048 => {
                            text.extend([1 | u8::try_from(length - 4).unwrap() << 2 | b << 5, a]);
                        }
                        0..=2 if offset < 1 << 16 => text.extend([2 | upper, a, b]),
                        _ => text.extend([3 | upper, a, b, c, d]),
                    }
                    for n in from..from + length {
                        plain.push(plain[n]);
                    }
                }
            }
        }
        let mut block = Vec::new();
        let mut n = plain.len();
        while n >= 0x80 {
            block.push(u8::try_from(n & 0x7f).unwrap() | 0x80);
            n >>= 7;
        }
        block.push(u8::try_from(n).unwrap());
        block.extend(text);
        (block, plain)
    }

    fn element() -> impl Strategy<Value = Element> {
        let copy = |offset: std::ops::Range<usize>| {
            (offset, 0..64_usize, 0..4_usize).prop_map(|(offset, length, size)| Element::Copy {
                offset,
                length,
                size,
            })
        };
        prop_oneof![
            4 => prop::collection::vec(any::<u8>(), 1..12).prop_map(Element::Literal),
            1 => prop::collection::vec(any::<u8>(), 1..400).prop_map(Element::Literal),
            // Offsets count from zero here.
            2 => copy(7..8),
            2 => copy(0..20),
            2 => copy(0..3000),
            1 => copy(0..70_000),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 6 } else { 512 }))]

        #[test]
        fn any_elements_are_expanded(some in prop::collection::vec(element(), 1..60), times in 1..if cfg!(miri) { 3_usize } else { 40 }) {
            let elements: Vec<Element> = some.iter().cycle().take(some.len() * times).cloned().collect();
            let (block, plain) = written(&elements);
            prop_assert_eq!(snap::raw::Decoder::new().decompress_vec(&block).unwrap(), plain.clone());
            prop_assert_eq!(expanded(&block).unwrap(), plain);
        }

        #[test]
        fn a_damaged_block_is_found_as_by_others(
            some in prop::collection::vec(element(), 1..60), times in 1..if cfg!(miri) { 3_usize } else { 20 }, damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), cut in any::<prop::sample::Index>(), cuts in any::<bool>(),
        ) {
            let elements: Vec<Element> = some.iter().cycle().take(some.len() * times).cloned().collect();
            let (mut block, _) = written(&elements);
            for (at, byte) in damages {
                let at = at.index(block.len());
                block[at] = byte;
            }
            if cuts {
                block.truncate(cut.index(block.len()));
            }
            // Sizes that tests need not allocate.
            prop_assume!(decompressed_size(&block).is_ok_and(|size| size < 1 << 24));
            prop_assert_eq!(expanded(&block).ok(), snap::raw::Decoder::new().decompress_vec(&block).ok());
        }
    }

    #[test]
    fn numbers_and_text_are_expanded() {
        let mixed = |n: u64| (n ^ (n >> 7)).wrapping_mul(0x5851_f42d_4c95_7f2d);
        // Miri takes seconds where native code takes milliseconds.
        let scale = if cfg!(miri) { 200 } else { 1 };
        let sorted: Vec<u8> = (0..50_000_u64 / scale)
            .flat_map(|n| (n * 37).to_le_bytes())
            .collect();
        let scattered: Vec<u8> = (0..50_000_u64 / scale)
            .flat_map(|n| (mixed(n) >> 40).to_le_bytes())
            .collect();
        let small: Vec<u8> = (0..50_000 / scale as u32)
            .flat_map(|n| (n / 100).to_le_bytes())
            .collect();
        let text: Vec<u8> = (0..20_000_u64 / scale)
            .flat_map(|n| format!("the reference {}, {}", mixed(n) % 1000, n).into_bytes())
            .collect();
        let noise: Vec<u8> = (0..30_000_u64 / scale)
            .flat_map(|n| mixed(mixed(n)).to_le_bytes())
            .collect();
        let (run, repeats) = (
            vec![7; 100_000 / scale as usize],
            [1, 2, 3].repeat(50_000 / scale as usize),
        );
        for plain in [
            sorted,
            scattered,
            small,
            text,
            noise,
            run,
            repeats,
            Vec::new(),
            vec![5],
            vec![0; 64],
        ] {
            let block = compressed(&plain);
            assert_eq!(decompressed_size(&block), Ok(plain.len()));
            assert_eq!(expanded(&block).unwrap(), plain);
            let mut other = vec![0; plain.len() + 1];
            assert_eq!(
                decompress(&block, &mut other),
                Err(SnappyDecodeError),
                "the size is another"
            );
        }
    }

    #[test]
    fn headers_are_at_most_32_bits() {
        assert_eq!(decompressed_size(&[]), Err(SnappyDecodeError));
        assert_eq!(decompressed_size(&[0x80]), Err(SnappyDecodeError));
        assert_eq!(
            decompressed_size(&[0xff, 0xff, 0xff, 0xff, 0x0f]),
            Ok(u32::MAX as usize)
        );
        assert_eq!(
            decompressed_size(&[0xff, 0xff, 0xff, 0xff, 0x1f]),
            Err(SnappyDecodeError)
        );
        assert_eq!(decompressed_size(&[0x80; 9]), Err(SnappyDecodeError));
    }
}
