//! Checks of pages before the decoder reads them.
//!
//! arrow-rs' decoders trust some numbers in a page, and return wrong values where these are wrong:
//! levels above the column's maximum, byte streams whose length differs from that of the values,
//! prefixes longer than the value before. These are errors here, as in other readers.
//! [`crate::pq::decode::flat_column`] checks levels while it decodes; all other pages are checked
//! here.
//!
//! Cost: nothing for required columns in common encodings; for others one comparison per run of
//! levels, and one per level only where its bits can hold more than the column's maximum. Lengths
//! in delta encodings are decoded twice.

use bytes::Bytes;
use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::Page;
use parquet::schema::types::ColumnDescriptor;

use crate::error::{Error, Result};
use crate::pq::encoding::bit_unpack::{WIDEST, unpack_groups};
use crate::pq::encoding::rle::{HybridRleDecoder, RleRun};
use crate::pq::input::header_check::CompactProtocolReader;

/// Levels unpacked at once.
const LEVELS: usize = 1024;

/// The checks for the pages of a column.
#[derive(Debug, Clone, Copy)]
pub(in crate::pq) struct PageCheck {
    physical: Physical,
    /// Bytes of a `FIXED_LEN_BYTE_ARRAY`.
    length: usize,
    max_definition: u32,
    max_repetition: u32,
    checks_levels: bool,
}

/// A level that the column does not have.
pub(in crate::pq) fn level_above(level: u32, max: u32) -> Error {
    Error::corrupt_data(format!(
        "a Parquet page has level {level}, above the column's highest, which is {max}"
    ))
}

fn truncated_page_error() -> Error {
    Error::corrupt_data("a Parquet page ends before its values do")
}

/// The levels of a page.
enum PageLevels {
    Runs(Bytes),
    /// Every level in as many bits, the highest bit first.
    Packed(Bytes),
}

impl PageCheck {
    /// The rules for pages of `column`. Levels are only checked if `checks_levels`.
    pub fn new(column: &ColumnDescriptor, checks_levels: bool) -> Self {
        let level = |level: i16| u32::try_from(level).unwrap_or(0);
        Self {
            physical: column.physical_type(),
            length: usize::try_from(column.type_length()).unwrap_or(0),
            max_definition: level(column.max_def_level()),
            max_repetition: level(column.max_rep_level()),
            checks_levels,
        }
    }

    /// Checks that the levels and values of `page` are consistent.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if not.
    pub fn check(&self, page: &Page) -> Result<()> {
        let encoding = page.encoding();
        let special = matches!(
            encoding,
            Encoding::BYTE_STREAM_SPLIT
                | Encoding::DELTA_BYTE_ARRAY
                | Encoding::DELTA_LENGTH_BYTE_ARRAY
        );
        // The header of a page of version 2 says where its levels end and how many values are null,
        // and no checksum covers it.
        let is_second = matches!(page, Page::DataPageV2 { .. });
        let checks_levels =
            (self.checks_levels || is_second) && self.max_definition + self.max_repetition > 0;
        if !special && !checks_levels {
            return Ok(());
        }
        let count = page.num_values() as usize;
        let (repetition, definition, values) = match page {
            Page::DictionaryPage { .. } => return Ok(()),
            Page::DataPage {
                buf,
                def_level_encoding,
                rep_level_encoding,
                ..
            } => {
                let (repetition, rest) =
                    split_levels(buf, *rep_level_encoding, self.max_repetition, count)?;
                let (definition, rest) =
                    split_levels(&rest, *def_level_encoding, self.max_definition, count)?;
                (repetition, definition, rest)
            }
            Page::DataPageV2 {
                buf,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let begin = *rep_levels_byte_len as usize;
                let end = begin + *def_levels_byte_len as usize;
                if end > buf.len() {
                    return Err(truncated_page_error());
                }
                let runs = |max: u32, bytes: Bytes| (max > 0).then_some(PageLevels::Runs(bytes));
                let (repetition, definition) = (
                    runs(self.max_repetition, buf.slice(..begin)),
                    runs(self.max_definition, buf.slice(begin..end)),
                );
                (repetition, definition, buf.slice(end..))
            }
        };
        if let Some(levels) = repetition {
            count_highest(levels, self.max_repetition, count, false, is_second)?;
        }
        let present = match definition {
            Some(levels) => count_highest(
                levels,
                self.max_definition,
                count,
                special || is_second,
                is_second,
            )?,
            None => count,
        };
        if let Page::DataPageV2 { num_nulls, .. } = page
            && count.checked_sub(present) != usize::try_from(*num_nulls).ok()
        {
            return Err(Error::corrupt_data(format!(
                "a Parquet page says that it has {num_nulls} nulls, but it has {}",
                count.saturating_sub(present)
            )));
        }
        match encoding {
            Encoding::BYTE_STREAM_SPLIT => self.check_streams(&values, present),
            Encoding::DELTA_BYTE_ARRAY => self.check_prefixes(&values, count),
            Encoding::DELTA_LENGTH_BYTE_ARRAY => check_lengths(&values, count),
            _ => Ok(()),
        }
    }

    /// The most elements of lists that `rows` consecutive rows have in a page.
    pub fn most_elements(&self, page: &Page, rows: u64) -> Result<u64> {
        let count = page.num_values() as usize;
        let levels = match page {
            Page::DictionaryPage { .. } => return Ok(0),
            Page::DataPage {
                buf,
                rep_level_encoding,
                ..
            } => split_levels(buf, *rep_level_encoding, self.max_repetition, count)?.0,
            Page::DataPageV2 {
                buf,
                rep_levels_byte_len,
                ..
            } => buf
                .get(..*rep_levels_byte_len as usize)
                .map(|levels| PageLevels::Runs(buf.slice_ref(levels))),
        };
        // Levels that are packed without runs take bytes of the file.
        let Some(PageLevels::Runs(bytes)) = levels else {
            return Ok(count as u64);
        };
        let damaged = |_| Error::corrupt_data("the levels of a Parquet page are damaged");
        let width = u8::try_from(width(self.max_repetition)).unwrap_or(u8::MAX);
        let mut runs = HybridRleDecoder::new(bytes, width).map_err(damaged)?;
        let mut windows = RowWindows::new(rows);
        let mut unpacked = [0; LEVELS];
        let mut left = count;
        while left > 0 {
            left -= match runs.next_run(left).map_err(damaged)? {
                RleRun::Repeated(level, run) => {
                    windows.add(level, run as u64);
                    run
                }
                RleRun::BitPacked(run) => {
                    let unpacked = unpacked.get_mut(..run.min(LEVELS)).unwrap_or_default();
                    runs.unpack(unpacked);
                    for level in unpacked.iter() {
                        windows.add(*level, 1);
                    }
                    unpacked.len()
                }
            };
        }
        Ok(windows.most())
    }

    /// There are as many streams as a value has bytes, each with one byte of every value.
    fn check_streams(&self, bytes: &[u8], present: usize) -> Result<()> {
        let size = match self.physical {
            Physical::INT32 | Physical::FLOAT => 4,
            Physical::INT64 | Physical::DOUBLE => 8,
            Physical::FIXED_LEN_BYTE_ARRAY => self.length,
            _ => return Ok(()),
        };
        if present.checked_mul(size) == Some(bytes.len()) {
            return Ok(());
        }
        Err(Error::corrupt_data(format!(
            "a Parquet page has {present} values of {size} bytes and its byte streams have {} bytes",
            bytes.len()
        )))
    }

    /// The prefix that a value shares with the one before is no longer than that value.
    fn check_prefixes(&self, bytes: &[u8], count: usize) -> Result<()> {
        let (prefixes, rest) = delta_lengths(bytes, count)?;
        let (suffixes, rest) = delta_lengths(rest, count)?;
        if prefixes.len() != suffixes.len() {
            return Err(Error::corrupt_data(format!(
                "a Parquet page has {} prefixes and {} suffixes",
                prefixes.len(),
                suffixes.len()
            )));
        }
        let mut before = 0_u64;
        for (prefix, suffix) in prefixes.iter().zip(&suffixes) {
            if *prefix > before {
                return Err(Error::corrupt_data(format!(
                    "a Parquet page has a prefix of {prefix} bytes, and the value before has {before}"
                )));
            }
            before = prefix + suffix;
            if self.physical == Physical::FIXED_LEN_BYTE_ARRAY && before != self.length as u64 {
                return Err(Error::corrupt_data(format!(
                    "a Parquet page has a value of {before} bytes in a column of {} bytes",
                    self.length
                )));
            }
        }
        check_total_length(&suffixes, rest)
    }
}

/// Counts elements in windows of as many rows. As many consecutive rows as a window has are in two
/// windows at most.
struct RowWindows {
    rows: u64,
    /// Rows and elements of the current window.
    window: (u64, u64),
    /// Elements of the window before.
    before: u64,
    most: u64,
}

impl RowWindows {
    fn new(rows: u64) -> Self {
        Self {
            rows: rows.max(1),
            window: (0, 0),
            before: 0,
            most: 0,
        }
    }

    /// Adds elements of this repetition level; level 0 begins a row.
    fn add(&mut self, level: u32, mut count: u64) {
        if level > 0 {
            self.window.1 += count;
            return;
        }
        while count > 0 {
            if self.window.0 == self.rows {
                self.most = self.most();
                (self.before, self.window) = (self.window.1, (0, 0));
                // Windows of rows with one element each are alike.
                if count >= 2 * self.rows {
                    self.most = self.most.max(self.before + self.rows).max(2 * self.rows);
                    self.before = self.rows;
                    count %= self.rows;
                }
            }
            let some = count.min(self.rows - self.window.0);
            self.window.0 += some;
            self.window.1 += some;
            count -= some;
        }
    }

    fn most(&self) -> u64 {
        self.most.max(self.before + self.window.1)
    }
}

fn check_lengths(bytes: &[u8], count: usize) -> Result<()> {
    let (lengths, rest) = delta_lengths(bytes, count)?;
    check_total_length(&lengths, rest)
}

fn check_total_length(lengths: &[u64], bytes: &[u8]) -> Result<()> {
    // Each is below 2^31.
    if lengths.iter().sum::<u64>() > bytes.len() as u64 {
        Err(truncated_page_error())
    } else {
        Ok(())
    }
}

/// Bits of a level.
fn width(max: u32) -> usize {
    (u32::BITS - max.leading_zeros()) as usize
}

/// The levels at the beginning of a page V1, and the bytes after them.
fn split_levels(
    bytes: &Bytes,
    encoding: Encoding,
    max: u32,
    count: usize,
) -> Result<(Option<PageLevels>, Bytes)> {
    if max == 0 {
        return Ok((None, bytes.clone()));
    }
    #[allow(deprecated, reason = "old writers used it for levels")]
    let bit_packed = Encoding::BIT_PACKED;
    let (begin, length) = match encoding {
        Encoding::RLE => (
            4,
            bytes
                .first_chunk()
                .map(|size| u32::from_le_bytes(*size) as usize)
                .ok_or_else(truncated_page_error)?,
        ),
        other if other == bit_packed => (
            0,
            count
                .checked_mul(width(max))
                .ok_or_else(truncated_page_error)?
                .div_ceil(8),
        ),
        other => {
            return Err(Error::corrupt_data(format!(
                "the levels of a Parquet page are encoded as {other}"
            )));
        }
    };
    let end = length
        .checked_add(begin)
        .filter(|end| *end <= bytes.len())
        .ok_or_else(truncated_page_error)?;
    let levels = bytes.slice(begin..end);
    Ok((
        Some(if begin == 0 {
            PageLevels::Packed(levels)
        } else {
            PageLevels::Runs(levels)
        }),
        bytes.slice(end..),
    ))
}

/// Checks that none of `count` levels is above `max`, and with `is_exact`, that nothing follows
/// them; counts those equal to `max` on request.
fn count_highest(
    levels: PageLevels,
    max: u32,
    count: usize,
    counts: bool,
    is_exact: bool,
) -> Result<usize> {
    let damaged = |_| Error::corrupt_data("the levels of a Parquet page are damaged");
    let width = width(max);
    // A level has too few bits for a value above the maximum.
    let is_full = max == u32::MAX >> (u32::BITS as usize - width);
    let mut highest = 0;
    match levels {
        PageLevels::Runs(bytes) => {
            let mut runs = HybridRleDecoder::new(bytes, u8::try_from(width).unwrap_or(u8::MAX))
                .map_err(damaged)?;
            let mut unpacked = [0; LEVELS];
            let mut left = count;
            while left > 0 {
                left -= match runs.next_run(left).map_err(damaged)? {
                    RleRun::Repeated(level, _) if level > max => {
                        return Err(level_above(level, max));
                    }
                    RleRun::Repeated(level, run) => {
                        highest += if level == max { run } else { 0 };
                        run
                    }
                    RleRun::BitPacked(run) if is_full && !counts => {
                        runs.bits(run);
                        run
                    }
                    RleRun::BitPacked(run) => {
                        let unpacked = unpacked.get_mut(..run.min(LEVELS)).unwrap_or_default();
                        runs.unpack(unpacked);
                        highest += count_max_levels(unpacked, max)?;
                        unpacked.len()
                    }
                };
            }
            if is_exact && !runs.is_at_end() {
                return Err(Error::corrupt_data(
                    "bytes follow the levels of a Parquet page",
                ));
            }
        }
        PageLevels::Packed(bytes) if !is_full || counts => {
            let bit = |n: usize| {
                bytes
                    .get(n / 8)
                    .map_or(0, |byte| u32::from(byte >> (7 - n % 8) & 1))
            };
            for n in 0..count {
                let level = (0..width).fold(0, |level, b| level << 1 | bit(n * width + b));
                highest += count_max_levels(&[level], max)?;
            }
        }
        PageLevels::Packed(_) => {}
    }
    Ok(highest)
}

fn count_max_levels(levels: &[u32], max: u32) -> Result<usize> {
    match levels.iter().copied().max() {
        Some(level) if level > max => Err(level_above(level, max)),
        _ => Ok(levels.iter().filter(|level| **level == max).count()),
    }
}

/// Lengths encoded as `DELTA_BINARY_PACKED`, at most `most`, and the bytes after them.
fn delta_lengths(bytes: &[u8], most: usize) -> Result<(Vec<u64>, &[u8])> {
    let damaged = || Error::corrupt_data("the lengths in a Parquet page are damaged");
    let mut from = CompactProtocolReader::new(bytes);
    let lengths = decode_deltas(&mut from, most).ok_or_else(damaged)?;
    // A negative number is not a length.
    let lengths = lengths
        .iter()
        .map(|length| u64::try_from(*length).map_err(|_| damaged()))
        .collect::<Result<Vec<u64>>>()?;
    Ok((lengths, from.rest()))
}

fn decode_deltas(from: &mut CompactProtocolReader<'_>, most: usize) -> Option<Vec<i32>> {
    let mut natural = || usize::try_from(from.varint()?).ok();
    let (block, parts, total) = (natural()?, natural()?, natural()?);
    // Integers are decoded with 32 bits and wrap around.
    let mut last = from.integer()? as i32;
    let part = block
        .checked_div(parts)
        .filter(|part| *part > 0 && part % 8 == 0)?;
    if total > most {
        return None;
    }
    let mut out = Vec::with_capacity(total);
    if total > 0 {
        out.push(last);
    }
    let mut unpacked = [0; LEVELS];
    while out.len() < total {
        let least = from.integer()? as i32;
        for width in from.take(parts)? {
            let left = total - out.len();
            if left == 0 {
                // Parts without values have a width and no bytes.
                break;
            }
            let width = usize::from(*width);
            if width > WIDEST {
                return None;
            }
            // The last part may lack trailing bytes that no value needs.
            let stored = part.checked_mul(width)? / 8;
            let packed = from.take(stored.min(from.rest().len()))?;
            let wanted = left.min(part);
            if packed.len() < wanted.checked_mul(width)?.div_ceil(8) {
                return None;
            }
            let mut done = 0;
            while done < wanted {
                let some = unpacked.get_mut(..(wanted - done).next_multiple_of(8).min(LEVELS))?;
                unpack_groups(packed.get(done * width / 8..)?, width, some);
                for delta in some.iter().take(wanted - done) {
                    last = last.wrapping_add(least).wrapping_add(delta.cast_signed());
                    out.push(last);
                }
                done += some.len();
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_rows_have_more_elements_than_their_windows(
            rows in 1_u64..6,
            runs in prop::collection::vec((0_u32..2, 1_u64..40), 1..20),
        ) {
            let mut windows = RowWindows::new(rows);
            let mut lengths = vec![0];
            for (level, count) in &runs {
                windows.add(*level, *count);
                match (*level, lengths.last_mut()) {
                    (0, _) => lengths.extend(vec![1; *count as usize]),
                    (_, Some(last)) => *last += count,
                    _ => {}
                }
            }
            // The first is the rest of a row of the page before.
            let real = lengths
                .windows((rows as usize).min(lengths.len()))
                .map(|rows| rows.iter().sum::<u64>())
                .max()
                .unwrap_or(0);
            let total: u64 = lengths.iter().sum();
            prop_assert!((real..=total).contains(&windows.most()), "{real} {}", windows.most());
        }
    }

    fn column(message: &str) -> Arc<ColumnDescriptor> {
        let schema =
            parquet::schema::parser::parse_message_type(&format!("message m {{ {message} }}"))
                .unwrap();
        parquet::schema::types::SchemaDescriptor::new(Arc::new(schema)).column(0)
    }

    /// A page V1 of these bytes.
    fn page(bytes: Vec<u8>, num_values: u32, encoding: Encoding, levels: Encoding) -> Page {
        Page::DataPage {
            buf: bytes.into(),
            num_values,
            encoding,
            def_level_encoding: levels,
            rep_level_encoding: levels,
            statistics: None,
        }
    }

    /// Levels with their length before them.
    fn runs(bytes: &[u8]) -> Vec<u8> {
        [&u32::try_from(bytes.len()).unwrap().to_le_bytes(), bytes].concat()
    }

    fn answer(of: &ColumnDescriptor, page: &Page) -> String {
        PageCheck::new(of, true)
            .check(page)
            .map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn levels_above_the_columns_are_refused() {
        // Highest definition levels 1, 2 and 3; a struct in between makes them higher.
        let columns = [
            column("optional int32 a;"),
            column("optional group s { optional int32 a; }"),
            column("optional group s { optional group t { optional int32 a; } }"),
        ];
        for (max, of) in (1_u8..).zip(&columns) {
            for level in 0..6 {
                let same = page(runs(&[8 << 1, level]), 8, Encoding::PLAIN, Encoding::RLE);
                assert_eq!(
                    answer(of, &same).contains("above"),
                    level > max,
                    "{max} {level}"
                );
                let second = Page::DataPageV2 {
                    buf: vec![8 << 1, level].into(),
                    num_values: 8,
                    encoding: Encoding::PLAIN,
                    num_nulls: 0,
                    num_rows: 8,
                    def_levels_byte_len: 2,
                    rep_levels_byte_len: 0,
                    is_compressed: false,
                    statistics: None,
                };
                assert_eq!(
                    answer(of, &second).contains("above"),
                    level > max,
                    "{max} {level}"
                );
            }
        }
        // Packed: 0 1 2 2 1 0 0 2, then the same with a 3.
        let two = &columns[1];
        assert_eq!(
            answer(
                two,
                &page(
                    runs(&[0b11, 0b1010_0100, 0b1000_0001]),
                    8,
                    Encoding::PLAIN,
                    Encoding::RLE
                )
            ),
            "fine"
        );
        assert!(
            answer(
                two,
                &page(
                    runs(&[0b11, 0b1010_0100, 0b1100_0001]),
                    8,
                    Encoding::PLAIN,
                    Encoding::RLE
                )
            )
            .contains("level 3")
        );
        #[allow(deprecated, reason = "old writers used it for levels")]
        let packed = Encoding::BIT_PACKED;
        assert_eq!(
            answer(
                two,
                &page(vec![0b0001_1010, 0b0100_0010], 8, Encoding::PLAIN, packed)
            ),
            "fine"
        );
        assert!(
            answer(
                two,
                &page(vec![0b0001_1010, 0b0100_0011], 8, Encoding::PLAIN, packed)
            )
            .contains("level 3")
        );
        // Of lists both kinds of levels.
        let list =
            column("optional group l (LIST) { repeated group list { optional int32 element; } }");
        let levels = |repetition: u8, definition: u8| {
            [runs(&[4 << 1, repetition]), runs(&[4 << 1, definition])].concat()
        };
        assert_eq!(
            answer(
                &list,
                &page(levels(0, 3), 4, Encoding::PLAIN, Encoding::RLE)
            ),
            "fine"
        );
        assert!(
            answer(
                &list,
                &page(levels(2, 3), 4, Encoding::PLAIN, Encoding::RLE)
            )
            .contains("level 2")
        );
        assert!(
            answer(
                &list,
                &page(levels(1, 4), 4, Encoding::PLAIN, Encoding::RLE)
            )
            .contains("level 4")
        );
    }

    #[test]
    fn byte_streams_have_a_byte_of_every_value() {
        let required = column("required double a;");
        for (length, fits) in [
            (24, true),
            (23, false),
            (25, false),
            (16, false),
            (32, false),
            (0, false),
        ] {
            assert_eq!(
                answer(
                    &required,
                    &page(
                        vec![0; length],
                        3,
                        Encoding::BYTE_STREAM_SPLIT,
                        Encoding::RLE
                    )
                ) == "fine",
                fits,
                "{length}"
            );
        }
        // Eight levels, of which five are set.
        let optional = column("optional float a;");
        let of = |length: usize| {
            page(
                [runs(&[0b11, 0b0101_1101]), vec![0; length]].concat(),
                8,
                Encoding::BYTE_STREAM_SPLIT,
                Encoding::RLE,
            )
        };
        for (length, fits) in [(20, true), (32, false), (16, false), (19, false)] {
            assert_eq!(answer(&optional, &of(length)) == "fine", fits, "{length}");
        }
    }

    /// Numbers as `DELTA_BINARY_PACKED` with blocks of 128 in four parts of 32.
    fn packed(numbers: &[i32]) -> Vec<u8> {
        fn varint(out: &mut Vec<u8>, mut n: u64) {
            while n >= 0x80 {
                out.push((n & 0x7f) as u8 | 0x80);
                n >>= 7;
            }
            out.push(n as u8);
        }
        let zigzag = |n: i64| (n << 1 ^ n >> 63).cast_unsigned();
        let mut out = Vec::new();
        varint(&mut out, 128);
        varint(&mut out, 4);
        varint(&mut out, numbers.len() as u64);
        varint(
            &mut out,
            zigzag(numbers.first().copied().unwrap_or(0).into()),
        );
        let deltas: Vec<i32> = numbers
            .windows(2)
            .map(|pair| pair[1].wrapping_sub(pair[0]))
            .collect();
        for block in deltas.chunks(128) {
            let least = *block.iter().min().unwrap();
            varint(&mut out, zigzag(least.into()));
            let parts: Vec<Vec<u32>> = block
                .chunks(32)
                .map(|part| {
                    part.iter()
                        .map(|delta| delta.wrapping_sub(least).cast_unsigned())
                        .collect()
                })
                .collect();
            let width = |part: &[u32]| {
                32 - part
                    .iter()
                    .fold(0, |all, delta| all | delta)
                    .leading_zeros() as usize
            };
            out.extend((0..4).map(|n| parts.get(n).map_or(0, |part| width(part) as u8)));
            for part in &parts {
                let mut bits = vec![0_u8; 4 * width(part)];
                for (n, delta) in part.iter().enumerate() {
                    for bit in (0..width(part)).filter(|bit| delta >> bit & 1 == 1) {
                        let at = n * width(part) + bit;
                        bits[at / 8] |= 1 << (at % 8);
                    }
                }
                out.extend(bits);
            }
        }
        out
    }

    #[test]
    fn prefixes_are_of_the_value_before() {
        let text = column("required byte_array a;");
        let of = |prefixes: &[i32], suffixes: &[i32], bytes: usize| {
            let count = u32::try_from(prefixes.len()).unwrap();
            answer(
                &text,
                &page(
                    [packed(prefixes), packed(suffixes), vec![b'x'; bytes]].concat(),
                    count,
                    Encoding::DELTA_BYTE_ARRAY,
                    Encoding::RLE,
                ),
            )
        };
        assert_eq!(of(&[0, 3, 2, 5], &[3, 0, 3, 1], 7), "fine");
        assert!(of(&[0, 4, 2, 5], &[3, 0, 3, 1], 7).contains("prefix of 4 bytes"));
        assert!(
            of(&[1, 3], &[3, 0], 7).contains("prefix of 1 bytes"),
            "there is no value before the first"
        );
        assert!(of(&[0, -1], &[3, 0], 7).contains("damaged"));
        assert!(of(&[0, 3], &[3, -2], 7).contains("damaged"));
        assert!(of(&[0, 3], &[3], 7).contains("2 prefixes and 1 suffixes"));
        assert!(of(&[0, 3, 2, 5], &[3, 0, 3, 1], 6).contains("ends before"));
        let fixed = column("required fixed_len_byte_array(4) a;");
        let of = |prefixes: &[i32], suffixes: &[i32]| {
            answer(
                &fixed,
                &page(
                    [packed(prefixes), packed(suffixes), vec![0; 20]].concat(),
                    3,
                    Encoding::DELTA_BYTE_ARRAY,
                    Encoding::RLE,
                ),
            )
        };
        assert_eq!(of(&[0, 3, 4], &[4, 1, 0]), "fine");
        assert!(of(&[0, 3, 4], &[4, 1, 1]).contains("value of 5 bytes"));
    }

    #[test]
    fn lengths_are_within_the_page() {
        let text = column("required byte_array a;");
        let of = |lengths: &[i32], bytes: usize, count: u32| {
            answer(
                &text,
                &page(
                    [packed(lengths), vec![b'x'; bytes]].concat(),
                    count,
                    Encoding::DELTA_LENGTH_BYTE_ARRAY,
                    Encoding::RLE,
                ),
            )
        };
        assert_eq!(of(&[3, 0, 4], 7, 3), "fine");
        assert!(of(&[3, 0, 5], 7, 3).contains("ends before"));
        assert!(of(&[3, -3, 7], 7, 3).contains("damaged"));
        assert!(
            of(&[3, 0, 4], 7, 2).contains("damaged"),
            "more lengths than values"
        );
    }

    proptest! {
        #[test]
        fn lengths_come_back(numbers in prop::collection::vec(any::<i32>().prop_map(|n| n >> (n & 31)), 0..300), rest in prop::collection::vec(any::<u8>(), 0..9)) {
            let bytes = [packed(&numbers), rest.clone()].concat();
            let mut from = CompactProtocolReader::new(&bytes);
            prop_assert_eq!(decode_deltas(&mut from, numbers.len()), Some(numbers));
            prop_assert_eq!(from.rest(), rest.as_slice());
        }

        #[test]
        fn any_bytes_end_in_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..80), count in 0..200_u32, which in 0..4_usize, encoding in 0..4_usize) {
            let of = column(["required double a;", "optional byte_array a;", "optional group s { optional float a; }", "repeated fixed_len_byte_array(3) a;"][which]);
            let encoding = [Encoding::PLAIN, Encoding::BYTE_STREAM_SPLIT, Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY][encoding];
            let _ = PageCheck::new(&of, true).check(&page(bytes, count, encoding, Encoding::RLE));
        }
    }
}
