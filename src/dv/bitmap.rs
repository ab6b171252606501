//! Sets of row positions: serialized 64-bit Roaring bitmaps <-> [`RoaringBitmapArray`] -> masks of
//! rows to keep.
//!
//! The serialized containers (sorted 16-bit lists, 8 KiB bitmaps, runs) are kept in their
//! serialized form, so that decoding is little more than checking and copying, and a mask is made
//! from whole words where the container has them. Rejected: the `roaring` crate's `RoaringTreemap`,
//! whose containers are not accessible: a mask would be built position by position. Its format is
//! the same; the tests compare the two.
//!
//! Protocol: "Deletion Vector Format". Everything read is checked: keys ascend, values ascend,
//! cardinalities are correct, nothing refers beyond the bytes, and no more is allocated than the
//! bytes can hold.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, Buffer};

use crate::error::{Error, Result, invariant};

/// Magic number of the portable format, which the protocol prescribes.
const PORTABLE: u32 = 1_681_511_377;
/// Magic number of delta-spark's older format: no keys, but one bitmap for each key from 0 on,
/// preceded by its size.
const NATIVE: u32 = 1_681_511_376;
/// First word of a 32-bit bitmap without runs.
const COOKIE: u32 = 12_346;
/// First half-word of a 32-bit bitmap with runs.
const RUN_COOKIE: u32 = 12_347;
/// Bitmaps with runs have container offsets from this many containers on.
const OFFSETS_FROM: usize = 4;
/// The longest container that is a list.
const LIST_LIMIT: usize = 4096;
/// Values in a container.
const SPAN: u64 = 1 << 16;
const WORDS: usize = 1024;

/// A container of up to 65,536 consecutive positions.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RoaringContainer {
    /// Ascending.
    List(Box<[u16]>),
    /// One bit per position, and the number of set bits.
    Bits(Box<[u64; WORDS]>, u32),
    /// First and last of each run, ascending.
    Runs(Box<[(u16, u16)]>),
}

/// A set of positions.
#[derive(Debug, Clone, Default)]
pub struct RoaringBitmapArray {
    /// By position / 65,536, ascending.
    containers: Vec<(u64, RoaringContainer)>,
    len: u64,
}

impl PartialEq for RoaringBitmapArray {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl Eq for RoaringBitmapArray {}

/// A reader of bytes from the front.
struct BitmapReader<'a>(&'a [u8]);

fn truncated_error() -> Error {
    Error::corrupt_data("the bitmap ends too early")
}

impl<'a> BitmapReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(truncated_error)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self
            .0
            .split_first_chunk::<N>()
            .ok_or_else(truncated_error)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}

impl RoaringContainer {
    fn len(&self) -> u64 {
        match self {
            Self::List(values) => values.len() as u64,
            Self::Bits(_, count) => u64::from(*count),
            Self::Runs(runs) => runs
                .iter()
                .map(|(first, last)| u64::from(last - first) + 1)
                .sum(),
        }
    }

    /// A list or a bitmap, depending on `cardinality`.
    fn read_plain(input: &mut BitmapReader<'_>, cardinality: usize) -> Result<Self> {
        if cardinality > LIST_LIMIT {
            let mut words = Box::new([0; WORDS]);
            let (from, _) = input.take(WORDS * 8)?.as_chunks::<8>();
            let mut count = 0;
            for (to, from) in words.iter_mut().zip(from) {
                *to = u64::from_le_bytes(*from);
                count += to.count_ones();
            }
            if count as usize != cardinality {
                return Err(Error::corrupt_data(format!(
                    "a bitmap container has {count} values and claims {cardinality}"
                )));
            }
            return Ok(Self::Bits(words, count));
        }
        let (from, _) = input.take(cardinality * 2)?.as_chunks::<2>();
        let values: Box<[u16]> = from.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        if !values.is_sorted_by(|a, b| a < b) {
            return Err(Error::corrupt_data(
                "the values of a bitmap container do not ascend",
            ));
        }
        Ok(Self::List(values))
    }

    fn read_runs(input: &mut BitmapReader<'_>) -> Result<Self> {
        let count = usize::from(input.u16()?);
        let (from, _) = input.take(count * 4)?.as_chunks::<4>();
        let mut runs: Vec<(u16, u16)> = Vec::with_capacity(count);
        for [a, b, c, d] in from {
            let (first, more) = (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]));
            let last = first
                .checked_add(more)
                .ok_or_else(|| Error::corrupt_data("a run of a bitmap container is too long"))?;
            if runs.last().is_some_and(|(_, before)| *before >= first) {
                return Err(Error::corrupt_data(
                    "the runs of a bitmap container do not ascend",
                ));
            }
            runs.push((first, last));
        }
        Ok(Self::Runs(runs.into()))
    }

    /// Calls `each` with every maximal run of values in the container's representation.
    fn for_each_run(&self, mut each: impl FnMut(u64, u64)) {
        match self {
            Self::List(values) => values
                .iter()
                .for_each(|value| each(u64::from(*value), u64::from(*value) + 1)),
            Self::Runs(runs) => runs
                .iter()
                .for_each(|(first, last)| each(u64::from(*first), u64::from(*last) + 1)),
            Self::Bits(words, _) => {
                for (n, word) in (0..).step_by(64).zip(words.iter()) {
                    let mut left = *word;
                    while left != 0 {
                        let bit = u64::from(left.trailing_zeros());
                        each(n + bit, n + bit + 1);
                        left &= left - 1;
                    }
                }
            }
        }
    }

    /// The number of its values in `from..to`.
    fn count(&self, from: u64, to: u64) -> u64 {
        if from == 0 && to >= SPAN {
            return self.len();
        }
        match self {
            Self::List(values) => {
                let below =
                    |limit: u64| values.partition_point(|value| u64::from(*value) < limit) as u64;
                below(to) - below(from)
            }
            Self::Runs(runs) => runs
                .iter()
                .map(|(first, last)| {
                    (u64::from(*last) + 1)
                        .min(to)
                        .saturating_sub(u64::from(*first).max(from))
                })
                .sum(),
            Self::Bits(words, _) => (0..)
                .step_by(64)
                .zip(words.iter())
                .filter(|(n, _)| *n < to && *n + 64 > from)
                .map(|(n, word)| {
                    u64::from((word & bits_between(from.saturating_sub(n), to - n)).count_ones())
                })
                .sum(),
        }
    }

    /// The smaller of the list or bitmap form and the run form.
    fn optimized(self) -> Self {
        let mut runs: Vec<(u16, u16)> = Vec::new();
        let most = match &self {
            // A run takes four bytes.
            Self::List(values) => values.len() / 2,
            Self::Bits(..) => WORDS * 2,
            Self::Runs(_) => return self,
        };
        let mut too_many = false;
        self.for_each_run(|first, end| {
            let (Ok(first), Ok(last)) = (u16::try_from(first), u16::try_from(end - 1)) else {
                return;
            };
            let room = runs.len() < most;
            match runs.last_mut() {
                Some((_, before)) if before.checked_add(1) == Some(first) => *before = last,
                _ if room => runs.push((first, last)),
                _ => too_many = true,
            }
        });
        if too_many {
            self
        } else {
            Self::Runs(runs.into())
        }
    }
}

/// The bits `from..to` of a word; bounds beyond it are clamped.
fn bits_between(from: u64, to: u64) -> u64 {
    let below = |n: u64| if n >= 64 { u64::MAX } else { (1 << n) - 1 };
    below(to) & !below(from)
}

/// Clears bits `from..to` of `words`.
fn clear(words: &mut [u64], from: u64, to: u64) {
    let (Ok(first), Ok(last)) = (usize::try_from(from / 64), usize::try_from(to.div_ceil(64)))
    else {
        return;
    };
    let Some(touched) = words.get_mut(first..last) else {
        return;
    };
    for (start, word) in (from / 64 * 64..).step_by(64).zip(touched) {
        *word &= !bits_between(from.saturating_sub(start), to - start);
    }
}

impl RoaringBitmapArray {
    /// Number of positions in the set.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Approximate bytes of the set in memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        let of = |container: &RoaringContainer| match container {
            RoaringContainer::List(values) => values.len() * 2,
            RoaringContainer::Bits(..) => WORDS * 8,
            RoaringContainer::Runs(runs) => runs.len() * 4,
        };
        self.containers
            .iter()
            .map(|(_, container)| of(container) + size_of::<(u64, RoaringContainer)>())
            .sum()
    }

    /// The set of these positions, which must ascend.
    ///
    /// ```
    /// use deltafast::dv::RoaringBitmapArray;
    ///
    /// let deleted = RoaringBitmapArray::from_ascending([0, 3, 1 << 33])?;
    /// assert!(deleted.contains(3) && !deleted.contains(4));
    /// assert_eq!(deleted.count(0..4), 2);
    /// let stored = deleted.serialize();
    /// assert_eq!(RoaringBitmapArray::deserialize(&stored)?.iter().collect::<Vec<_>>(), [0, 3, 1 << 33]);
    /// # Ok::<(), deltafast::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Internal`] if they do not.
    pub fn from_ascending(positions: impl IntoIterator<Item = u64>) -> Result<Self> {
        let mut set = Self::default();
        let mut values: Vec<u16> = Vec::new();
        let mut key = 0;
        let mut last = None;
        for position in positions {
            invariant!(
                last.is_none_or(|last| last < position),
                "the positions of a deletion vector do not ascend"
            );
            last = Some(position);
            if position / SPAN != key {
                set.push_values(key, &values);
                values.clear();
                key = position / SPAN;
            }
            values.push((position % SPAN) as u16);
        }
        set.push_values(key, &values);
        Ok(set)
    }

    fn push_values(&mut self, key: u64, values: &[u16]) {
        if values.is_empty() {
            return;
        }
        let container = if values.len() > LIST_LIMIT {
            let mut words = Box::new([0_u64; WORDS]);
            for value in values {
                if let Some(word) = words.get_mut(usize::from(*value) / 64) {
                    *word |= 1 << (value % 64);
                }
            }
            RoaringContainer::Bits(words, values.len() as u32)
        } else {
            RoaringContainer::List(values.into())
        };
        self.push(key, container);
    }

    fn push(&mut self, key: u64, container: RoaringContainer) {
        self.len += container.len();
        self.containers.push((key, container));
    }

    /// The set of positions whose bit in `bits` is set; bit 0 is position `start`, a multiple of
    /// 65,536.
    #[must_use]
    pub fn from_bits(start: u64, bits: &BooleanBuffer) -> Self {
        Self::from_ascending(bits.set_indices().map(|n| start + n as u64)).unwrap_or_default()
    }

    /// The positions, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.containers.iter().flat_map(|(key, container)| {
            let base = key * SPAN;
            let mut values = Vec::with_capacity(container.len() as usize);
            container.for_each_run(|first, end| values.extend(base + first..base + end));
            values
        })
    }

    /// The last position.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        let (key, container) = self.containers.last()?;
        let mut last = None;
        container.for_each_run(|_, end| last = Some(key * SPAN + end - 1));
        last
    }

    /// Whether `position` is in the set.
    #[must_use]
    pub fn contains(&self, position: u64) -> bool {
        self.count(position..position.saturating_add(1)) == 1
    }

    /// The containers that touch `range`, each with the position of its first value.
    fn overlapping_containers(
        &self,
        range: &Range<u64>,
    ) -> impl Iterator<Item = (u64, &RoaringContainer)> {
        let end = range.end.div_ceil(SPAN);
        let from = self
            .containers
            .partition_point(|(key, _)| *key < range.start / SPAN);
        self.containers
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(move |(key, _)| *key < end)
            .map(|(key, container)| (key * SPAN, container))
    }

    /// The number of positions in `range`.
    #[must_use]
    pub fn count(&self, range: Range<u64>) -> u64 {
        self.overlapping_containers(&range)
            .map(|(base, container)| {
                container.count(range.start.saturating_sub(base), range.end - base)
            })
            .sum()
    }

    /// One bit per position of `range`, set where the position is *not* in the set; `None` if no
    /// position of the range is in the set.
    #[must_use]
    pub fn live_row_mask(&self, range: Range<u64>) -> Option<BooleanBuffer> {
        let rows = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        let mut touched = self.overlapping_containers(&range).peekable();
        touched.peek()?;
        let mut words = vec![u64::MAX; rows.div_ceil(64)];
        let mut any = false;
        for (base, container) in touched {
            let (from, to) = (
                range.start.saturating_sub(base),
                (range.end - base).min(SPAN),
            );
            // The position of the container's value 0 in the mask; negative where the range begins
            // later.
            let shift = base.cast_signed() - range.start.cast_signed();
            match container {
                RoaringContainer::Bits(bits, _) => {
                    any |= clear_bits(&mut words, bits, shift, from, to);
                }
                RoaringContainer::List(values) => {
                    let at = |limit: u64| values.partition_point(|value| u64::from(*value) < limit);
                    for value in values.get(at(from)..at(to)).unwrap_or_default() {
                        let position = (i64::from(*value) + shift) as usize;
                        if let Some(word) = words.get_mut(position / 64) {
                            *word &= !(1 << (position % 64));
                        }
                        any = true;
                    }
                }
                RoaringContainer::Runs(runs) => {
                    let skipped = runs.partition_point(|(_, last)| u64::from(*last) < from);
                    for (first, last) in runs
                        .get(skipped..)
                        .unwrap_or_default()
                        .iter()
                        .take_while(|(first, _)| u64::from(*first) < to)
                    {
                        let (first, end) =
                            (u64::from(*first).max(from), (u64::from(*last) + 1).min(to));
                        clear(
                            &mut words,
                            first.wrapping_add_signed(shift),
                            end.wrapping_add_signed(shift),
                        );
                        any = true;
                    }
                }
            }
        }
        any.then(|| BooleanBuffer::new(Buffer::from_vec(words), 0, rows))
    }

    /// The union of two sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut out = Self::default();
        let (mut left, mut right) = (
            self.containers.iter().peekable(),
            other.containers.iter().peekable(),
        );
        loop {
            match (left.peek(), right.peek()) {
                (Some((a, one)), Some((b, two))) if a == b => {
                    let mut words = Box::new([0_u64; WORDS]);
                    // Clearing a bit in the complement sets it.
                    for container in [one, two] {
                        container.for_each_run(|from, to| {
                            let (first, last) = ((from / 64) as usize, to.div_ceil(64) as usize);
                            for (start, word) in (from / 64 * 64..)
                                .step_by(64)
                                .zip(words.get_mut(first..last).unwrap_or_default())
                            {
                                *word |= bits_between(from.saturating_sub(start), to - start);
                            }
                        });
                    }
                    let count: u32 = words.iter().map(|word| word.count_ones()).sum();
                    let union = RoaringContainer::Bits(words, count);
                    if count as usize > LIST_LIMIT {
                        out.push(*a, union);
                    } else {
                        let mut values = Vec::with_capacity(count as usize);
                        union.for_each_run(|value, _| values.push(value as u16));
                        out.push_values(*a, &values);
                    }
                    left.next();
                    right.next();
                }
                (Some((a, one)), other) if other.is_none_or(|(b, _)| a < b) => {
                    out.push(*a, one.clone());
                    left.next();
                }
                (_, Some((b, two))) => {
                    out.push(*b, two.clone());
                    right.next();
                }
                _ => return out,
            }
        }
    }

    /// Reads the serialized form: magic number and bitmaps.
    ///
    /// # Errors
    /// [`Error::Corrupt`] describes the damage.
    pub fn deserialize(bytes: &[u8]) -> Result<Self> {
        let mut input = BitmapReader(bytes);
        let mut set = Self::default();
        let magic = input.array()?;
        match u32::from_le_bytes(magic) {
            PORTABLE => {
                let mut before = None;
                for _ in 0..input.u64()? {
                    let key = input.u32()?;
                    if key > i32::MAX as u32 {
                        return Err(Error::corrupt_data(format!(
                            "a bitmap key has its highest bit set: {key}"
                        )));
                    }
                    if before.is_some_and(|before| before >= key) {
                        return Err(Error::corrupt_data("the keys of a bitmap do not ascend"));
                    }
                    before = Some(key);
                    set.read_bucket(u64::from(key), &mut input)?;
                }
            }
            // The protocol's own inline example has these numbers in big-endian order.
            other if other == NATIVE || other == NATIVE.swap_bytes() => {
                let number = if other == NATIVE {
                    u32::from_le_bytes
                } else {
                    u32::from_be_bytes
                };
                let count = number(input.array()?);
                if count > i32::MAX as u32 {
                    return Err(Error::corrupt_data("a negative number of bitmaps"));
                }
                for key in 0..count {
                    let size = number(input.array()?) as usize;
                    let mut bucket = BitmapReader(input.take(size)?);
                    set.read_bucket(u64::from(key), &mut bucket)?;
                    if !bucket.0.is_empty() {
                        return Err(Error::corrupt_data(
                            "a bitmap is shorter than its size says",
                        ));
                    }
                }
            }
            other => {
                return Err(Error::corrupt_data(format!(
                    "the magic number is {other}, not {PORTABLE}"
                )));
            }
        }
        if !input.0.is_empty() {
            return Err(Error::corrupt_data(format!(
                "{} bytes follow the bitmap",
                input.0.len()
            )));
        }
        Ok(set)
    }

    /// Reads a 32-bit bitmap of values with the high bits `high`.
    fn read_bucket(&mut self, high: u64, input: &mut BitmapReader<'_>) -> Result<()> {
        let cookie = input.u32()?;
        let (count, runs) = if cookie == COOKIE {
            (input.u32()? as usize, &[][..])
        } else if cookie & 0xffff == RUN_COOKIE {
            let count = (cookie >> 16) as usize + 1;
            (count, input.take(count.div_ceil(8))?)
        } else {
            return Err(Error::corrupt_data(format!(
                "a bitmap begins with {cookie}"
            )));
        };
        if count > WORDS * 64 {
            return Err(Error::corrupt_data(format!(
                "a bitmap claims {count} containers"
            )));
        }
        let (heads, _) = input.take(count * 4)?.as_chunks::<4>();
        if runs.is_empty() || count >= OFFSETS_FROM {
            // The offsets of the containers, which are redundant.
            input.take(count * 4)?;
        }
        let mut before = None;
        for (n, [a, b, c, d]) in heads.iter().enumerate() {
            let key = u16::from_le_bytes([*a, *b]);
            if before.is_some_and(|before| before >= key) {
                return Err(Error::corrupt_data(
                    "the container keys of a bitmap do not ascend",
                ));
            }
            before = Some(key);
            let cardinality = usize::from(u16::from_le_bytes([*c, *d])) + 1;
            let is_run = runs.get(n / 8).is_some_and(|bits| bits >> (n % 8) & 1 == 1);
            let container = if is_run {
                RoaringContainer::read_runs(input)?
            } else {
                RoaringContainer::read_plain(input, cardinality)?
            };
            if container.len() != cardinality as u64 {
                return Err(Error::corrupt_data(format!(
                    "a bitmap container has {} values and claims {cardinality}",
                    container.len()
                )));
            }
            self.push(high * SPAN + u64::from(key), container);
        }
        Ok(())
    }

    /// The serialized form: magic number and bitmaps, each container in its smallest form.
    #[must_use]
    pub fn serialize(&self) -> Vec<u8> {
        let buckets: Vec<&[(u64, RoaringContainer)]> = self
            .containers
            .chunk_by(|(a, _), (b, _)| a / SPAN == b / SPAN)
            .collect();
        let mut out = PORTABLE.to_le_bytes().to_vec();
        out.extend((buckets.len() as u64).to_le_bytes());
        for bucket in buckets {
            let high = bucket.first().map_or(0, |(key, _)| key / SPAN);
            out.extend((high as u32).to_le_bytes());
            write_bucket(&mut out, bucket);
        }
        out
    }
}

fn write_bucket(out: &mut Vec<u8>, bucket: &[(u64, RoaringContainer)]) {
    let containers: Vec<(u16, RoaringContainer)> = bucket
        .iter()
        .map(|(key, container)| ((key % SPAN) as u16, container.clone().optimized()))
        .collect();
    let start = out.len();
    let with_runs = containers
        .iter()
        .any(|(_, container)| matches!(container, RoaringContainer::Runs(_)));
    if with_runs {
        out.extend((RUN_COOKIE | (containers.len() as u32 - 1) << 16).to_le_bytes());
        for eight in containers.chunks(8) {
            out.push(
                eight
                    .iter()
                    .enumerate()
                    .map(|(n, (_, container))| {
                        u8::from(matches!(container, RoaringContainer::Runs(_))) << n
                    })
                    .sum(),
            );
        }
    } else {
        out.extend(COOKIE.to_le_bytes());
        out.extend((containers.len() as u32).to_le_bytes());
    }
    for (key, container) in &containers {
        out.extend(key.to_le_bytes());
        out.extend(((container.len() - 1) as u16).to_le_bytes());
    }
    if !with_runs || containers.len() >= OFFSETS_FROM {
        let mut offset = out.len() - start + containers.len() * 4;
        for (_, container) in &containers {
            out.extend((offset as u32).to_le_bytes());
            offset += match container {
                RoaringContainer::List(values) => values.len() * 2,
                RoaringContainer::Bits(..) => WORDS * 8,
                RoaringContainer::Runs(runs) => 2 + runs.len() * 4,
            };
        }
    }
    for (_, container) in &containers {
        match container {
            RoaringContainer::List(values) => values
                .iter()
                .for_each(|value| out.extend(value.to_le_bytes())),
            RoaringContainer::Bits(words, _) => {
                words.iter().for_each(|word| out.extend(word.to_le_bytes()));
            }
            RoaringContainer::Runs(runs) => {
                out.extend((runs.len() as u16).to_le_bytes());
                for (first, last) in runs {
                    out.extend(first.to_le_bytes());
                    out.extend((last - first).to_le_bytes());
                }
            }
        }
    }
}

/// Clears in `mask` the bits that are set in `from..to` of `bits`, shifted by `shift`. Returns
/// whether there were any.
fn clear_bits(mask: &mut [u64], bits: &[u64; WORDS], shift: i64, from: u64, to: u64) -> bool {
    let mut any = 0;
    for (start, word) in (0..)
        .step_by(64)
        .zip(bits.iter())
        .skip((from / 64) as usize)
        .take_while(|(start, _)| *start < to)
    {
        let word = word & bits_between(from.saturating_sub(start), to - start);
        if word == 0 {
            continue;
        }
        any |= word;
        // Bit 0 of this word is at position `at`, which may be up to 63 before the mask's
        // beginning.
        let at = start.cast_signed() + shift;
        let (index, offset) = (at.div_euclid(64), at.rem_euclid(64).cast_unsigned());
        let mut apply = |index: i64, word: u64| {
            if let Some(to) = usize::try_from(index)
                .ok()
                .and_then(|index| mask.get_mut(index))
            {
                *to &= !word;
            }
        };
        apply(index, word << offset);
        if offset > 0 {
            apply(index + 1, word >> (64 - offset));
        }
    }
    any != 0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use roaring::RoaringTreemap;

    use super::*;

    fn set(positions: &[u64]) -> RoaringBitmapArray {
        RoaringBitmapArray::from_ascending(positions.iter().copied()).unwrap()
    }

    /// Positions of all densities: lists, bitmaps and runs, under several high keys.
    fn arbitrary() -> impl Strategy<Value = BTreeSet<u64>> {
        let part = (
            0_u64..4,
            prop_oneof![Just(1_u64), Just(2), Just(7), Just(1000)],
            0_u64..200_000,
            0_u64..9000,
        );
        proptest::collection::vec(part, 0..6).prop_map(|parts| {
            parts
                .into_iter()
                .flat_map(|(high, step, start, count)| {
                    (0..count).map(move |n| (high << 32) + start + n * step)
                })
                .collect()
        })
    }

    fn treemap(bytes: &[u8]) -> RoaringTreemap {
        RoaringTreemap::deserialize_from(&bytes[4..]).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn sets_survive_the_round_trip_and_equal_the_roaring_crate(values in arbitrary()) {
            let set = RoaringBitmapArray::from_ascending(values.iter().copied()).unwrap();
            prop_assert_eq!(set.len(), values.len() as u64);
            let bytes = set.serialize();
            prop_assert_eq!(&RoaringBitmapArray::deserialize(&bytes).unwrap(), &set);
            let theirs = treemap(&bytes);
            prop_assert!(theirs.iter().eq(values.iter().copied()));
            let mut bytes = PORTABLE.to_le_bytes().to_vec();
            theirs.serialize_into(&mut bytes).unwrap();
            prop_assert!(RoaringBitmapArray::deserialize(&bytes).unwrap().iter().eq(values.iter().copied()));
        }

        #[test]
        fn masks_and_counts_equal_the_set(values in arbitrary(), start in 0_u64..300_000, high in 0_u64..3, rows in 0_u64..140_000) {
            let set = RoaringBitmapArray::deserialize(&RoaringBitmapArray::from_ascending(values.iter().copied()).unwrap().serialize()).unwrap();
            let range = (high << 32) + start..(high << 32) + start + rows;
            let inside: Vec<u64> = values.range(range.clone()).copied().collect();
            prop_assert_eq!(set.count(range.clone()), inside.len() as u64);
            match set.live_row_mask(range.clone()) {
                None => prop_assert!(inside.is_empty()),
                Some(mask) => {
                    prop_assert_eq!(mask.len() as u64, rows);
                    prop_assert!(!inside.is_empty());
                    let deleted: Vec<u64> = (0..rows).filter(|n| !mask.value(*n as usize)).map(|n| range.start + n).collect();
                    prop_assert_eq!(deleted, inside);
                }
            }
        }

        #[test]
        fn a_union_has_the_positions_of_both(a in arbitrary(), b in arbitrary()) {
            let one = RoaringBitmapArray::from_ascending(a.iter().copied()).unwrap();
            let two = RoaringBitmapArray::from_ascending(b.iter().copied()).unwrap();
            let union = one.union(&two);
            prop_assert!(union.iter().eq(a.union(&b).copied()));
            prop_assert_eq!(union.len(), a.union(&b).count() as u64);
        }

        #[test]
        fn garbage_is_an_error_and_never_a_panic(mut bytes: Vec<u8>, magic: bool) {
            if magic {
                bytes.splice(0..0, PORTABLE.to_le_bytes());
            }
            let _ = RoaringBitmapArray::deserialize(&bytes);
        }
    }

    #[test]
    fn every_flipped_bit_is_survived() {
        let values: Vec<u64> = (0..200)
            .chain((70_000..75_000).step_by(2))
            .chain(140_000..150_000)
            .chain([1 << 33])
            .collect();
        let bytes = set(&values).serialize();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                if let Ok(read) = RoaringBitmapArray::deserialize(&bad) {
                    assert_eq!(read.iter().count() as u64, read.len());
                }
            }
        }
        for length in 0..bytes.len() {
            assert!(RoaringBitmapArray::deserialize(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn lying_headers_allocate_nothing() {
        let mut bytes = PORTABLE.to_le_bytes().to_vec();
        bytes.extend(u64::MAX.to_le_bytes());
        assert!(RoaringBitmapArray::deserialize(&bytes).is_err());
        bytes.truncate(4);
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(COOKIE.to_le_bytes());
        bytes.extend(u32::MAX.to_le_bytes());
        assert!(RoaringBitmapArray::deserialize(&bytes).is_err());
    }

    #[test]
    fn the_highest_bit_of_a_key_must_be_zero() {
        let mut bytes = set(&[1 << 33]).serialize();
        assert!(RoaringBitmapArray::deserialize(&bytes).is_ok());
        bytes[15] = 0x80;
        assert!(
            RoaringBitmapArray::deserialize(&bytes)
                .unwrap_err()
                .to_string()
                .contains("highest bit")
        );
    }

    #[test]
    fn the_older_format_of_delta_spark_is_read() {
        let bucket = |bytes: &[u8]| bytes[16..].to_vec();
        let (one, two) = (
            bucket(&set(&[1, 5]).serialize()),
            bucket(&set(&[7]).serialize()),
        );
        let mut bytes = NATIVE.to_le_bytes().to_vec();
        bytes.extend(2_u32.to_le_bytes());
        for part in [one, two] {
            bytes.extend((part.len() as u32).to_le_bytes());
            bytes.extend(part);
        }
        assert_eq!(
            RoaringBitmapArray::deserialize(&bytes).unwrap(),
            set(&[1, 5, (1 << 32) + 7])
        );
    }

    #[test]
    fn an_inline_vector_of_the_reference_is_read() {
        // The example of delta-spark's own tests, in the portable format.
        let bytes =
            crate::dv::z85::decode("^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L")
                .unwrap();
        assert_eq!(
            RoaringBitmapArray::deserialize(&bytes).unwrap(),
            set(&[3, 4, 7, 11, 18, 29])
        );
    }

    #[test]
    fn an_empty_set_is_a_set() {
        let empty = RoaringBitmapArray::default();
        let read = RoaringBitmapArray::deserialize(&empty.serialize()).unwrap();
        assert!(read.is_empty() && read.live_row_mask(0..1000).is_none() && !read.contains(0));
    }
}
