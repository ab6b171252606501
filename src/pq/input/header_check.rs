//! A minimal reader of Thrift's compact protocol that checks Parquet headers before the full parser
//! reads them.
//!
//! The `parquet` crate builds the schema tree by recursion and allocates what a page header
//! announces. Both numbers come from the file, and a stack overflow or a failed allocation cannot
//! be caught. So the schema's depth and each page's sizes are read here first, without recursion
//! and without allocation; everything else is skipped.

/// A position in compact-protocol bytes. Every method returns `None` where the bytes end or are
/// invalid.
pub(in crate::pq) struct CompactProtocolReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Levels of nested values; real metadata needs six.
const NESTING: usize = 16;

impl<'a> CompactProtocolReader<'a> {
    pub(in crate::pq) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// The next `count` bytes.
    pub(in crate::pq) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let from = self.at;
        self.advance(count as u64)?;
        self.bytes.get(from..self.at)
    }

    /// The remaining bytes.
    pub(in crate::pq) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn advance(&mut self, count: u64) -> Option<()> {
        let to = self.at.checked_add(usize::try_from(count).ok()?)?;
        if to > self.bytes.len() {
            return None;
        }
        self.at = to;
        Some(())
    }

    pub(in crate::pq) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(in crate::pq) fn integer(&mut self) -> Option<i64> {
        let raw = self.varint()?;
        Some((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    /// The next field's type and id; type [`STOP`] at the end of a struct.
    fn field(&mut self, last: &mut i64) -> Option<(u8, i64)> {
        let head = self.byte()?;
        if head == STOP {
            return Some((STOP, 0));
        }
        let delta = i64::from(head >> 4);
        *last = if delta == 0 {
            self.integer()?
        } else {
            last.checked_add(delta)?
        };
        Some((head & 0x0f, *last))
    }

    /// Element type and count of a list.
    fn list(&mut self) -> Option<(u8, u64)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 {
            self.varint()?
        } else {
            u64::from(head >> 4)
        };
        // Every element takes a byte at least, so a count beyond the remaining bytes is false.
        (count <= self.bytes.len().saturating_sub(self.at) as u64).then_some((head & 0x0f, count))
    }

    /// Skips a value. `element` is true for a list's elements, whose booleans take a byte; a
    /// field's booleans take none.
    fn skip(&mut self, kind: u8, element: bool, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE if element => self.advance(1),
            TRUE | FALSE => Some(()),
            BYTE => self.advance(1),
            I16 | I32 | I64 => self.varint().map(|_| ()),
            DOUBLE => self.advance(8),
            UUID => self.advance(16),
            BINARY => {
                let length = self.varint()?;
                self.advance(length)
            }
            LIST | SET => {
                let (kind, count) = self.list()?;
                (0..count).try_for_each(|_| self.skip(kind, true, depth))
            }
            MAP => {
                let count = self.varint()?;
                if count == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.skip(kinds >> 4, true, depth)?;
                    self.skip(kinds & 0x0f, true, depth)
                })
            }
            STRUCT => {
                let mut last = 0;
                loop {
                    match self.field(&mut last)? {
                        (STOP, _) => return Some(()),
                        (kind, _) => self.skip(kind, false, depth)?,
                    }
                }
            }
            _ => None,
        }
    }

    fn i32(&mut self) -> Option<i32> {
        i32::try_from(self.integer()?).ok()
    }

    /// The first leaf whose name in a `RowGroup` differs from the schema. The outer `None` means
    /// that the bytes cannot be read.
    #[allow(clippy::option_option)]
    fn renamed_in_group(&mut self, leaves: &[&[String]]) -> Option<Option<usize>> {
        let (mut renamed, mut last) = (None, 0);
        loop {
            match self.field(&mut last)? {
                (STOP, _) => return Some(renamed),
                (LIST, 1) => {
                    let (STRUCT, chunks) = self.list()? else {
                        return None;
                    };
                    for n in 0..usize::try_from(chunks).ok()? {
                        if !self.chunk_has_name(leaves.get(n).copied().unwrap_or_default())? {
                            renamed = renamed.or(Some(n));
                        }
                    }
                }
                (kind, _) => self.skip(kind, false, NESTING)?,
            }
        }
    }

    /// Whether a `ColumnChunk` has this name, if it has any.
    fn chunk_has_name(&mut self, leaf: &[String]) -> Option<bool> {
        let (mut same, mut last) = (true, 0);
        loop {
            match self.field(&mut last)? {
                (STOP, _) => return Some(same),
                (STRUCT, 3) => {
                    let mut last = 0;
                    loop {
                        match self.field(&mut last)? {
                            (STOP, _) => break,
                            (LIST, 3) => same &= self.is_path(leaf)?,
                            (kind, _) => self.skip(kind, false, NESTING)?,
                        }
                    }
                }
                (kind, _) => self.skip(kind, false, NESTING)?,
            }
        }
    }

    /// Whether a list of strings is this path.
    fn is_path(&mut self, path: &[String]) -> Option<bool> {
        let (BINARY, parts) = self.list()? else {
            return None;
        };
        let mut same = usize::try_from(parts) == Ok(path.len());
        for n in 0..usize::try_from(parts).ok()? {
            let length = usize::try_from(self.varint()?).ok()?;
            let part = self.bytes.get(self.at..self.at.checked_add(length)?)?;
            self.at += length;
            same &= path.get(n).is_some_and(|name| name.as_bytes() == part);
        }
        Some(same)
    }
}

/// The depth of the schema tree in a serialized `FileMetaData`; `None` where the bytes are not a
/// `FileMetaData`.
///
/// The tree is a flat list in which each group says how many children follow.
pub(in crate::pq) fn schema_depth(metadata: &[u8]) -> Option<usize> {
    let mut skim = CompactProtocolReader::new(metadata);
    let mut last = 0;
    loop {
        match skim.field(&mut last)? {
            (STOP, _) => return None,
            (LIST, 2) => break,
            (kind, _) => skim.skip(kind, false, NESTING)?,
        }
    }
    let (STRUCT, elements) = skim.list()? else {
        return None;
    };
    let mut deepest = 0;
    let mut open: Vec<i32> = Vec::new();
    for n in 0..elements {
        let mut children = 0;
        let mut last = 0;
        loop {
            match skim.field(&mut last)? {
                (STOP, _) => break,
                (I32, 5) => children = skim.i32()?,
                (kind, _) => skim.skip(kind, false, NESTING)?,
            }
        }
        while open.last() == Some(&0) {
            open.pop();
        }
        if let Some(rest) = open.last_mut() {
            *rest -= 1;
        }
        deepest = deepest.max(open.len() + 1);
        // Memory is allocated for as many children as are announced, so they must exist.
        if u64::try_from(children).ok()? > elements - n - 1 {
            return None;
        }
        if children > 0 {
            open.push(children);
        }
    }
    Some(deepest)
}

/// The first leaf of the schema whose name differs in the `path_in_schema` of some column chunk.
pub(in crate::pq) fn renamed_column(metadata: &[u8], leaves: &[&[String]]) -> Option<usize> {
    let mut skim = CompactProtocolReader::new(metadata);
    let mut last = 0;
    let mut renamed = None;
    loop {
        match skim.field(&mut last)? {
            (STOP, _) => return renamed,
            (LIST, 4) => {
                let (STRUCT, groups) = skim.list()? else {
                    return None;
                };
                for _ in 0..groups {
                    renamed = renamed.or(skim.renamed_in_group(leaves)?);
                }
            }
            (kind, _) => skim.skip(kind, false, NESTING)?,
        }
    }
}

/// Bytes of a bloom filter, header and bits, from its header; `None` where `bytes` does not hold a
/// whole header.
pub(in crate::pq) fn bloom_length(bytes: &[u8]) -> Option<u64> {
    let mut skim = CompactProtocolReader::new(bytes);
    let (mut bits, mut last) = (None, 0);
    loop {
        match skim.field(&mut last)? {
            (STOP, _) => break,
            (I32, 1) => bits = Some(skim.i32()?),
            (kind, _) => skim.skip(kind, false, NESTING)?,
        }
    }
    Some(skim.at as u64 + u64::try_from(bits?).ok()?)
}

/// The header of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pq) struct PageHead {
    /// Length of the header itself.
    pub length: usize,
    /// The kind of page.
    pub kind: PageKind,
    /// Bytes after the header.
    pub compressed: u64,
    /// Bytes once decompressed.
    pub uncompressed: u64,
    /// CRC-32 of the bytes after the header.
    pub checksum: Option<u32>,
    /// The details in the header of its kind.
    pub details: PageDetails,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pq) enum PageKind {
    Data,
    DataV2,
    Dictionary,
    /// Index pages and unknown ones, which readers skip.
    Other,
}

/// The numbers in the header of one kind of page; those of other kinds stay zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::pq) struct PageDetails {
    /// Values (levels) in it, nulls included.
    pub values: u32,
    pub encoding: i32,
    pub definition_encoding: i32,
    pub repetition_encoding: i32,
    pub nulls: u32,
    pub rows: u32,
    pub definition_length: u32,
    pub repetition_length: u32,
    /// Whether the rest of a page V2 is stored uncompressed.
    pub is_plain: bool,
}

/// Reads a page header; `None` where `bytes` does not hold a whole one, where a number is negative,
/// or where a required field is missing or has another type. (No checksum covers the header, and
/// readers of Thrift skip a field whose type they do not expect: a flipped bit in the type of
/// `encoding` would leave its default, another encoding.)
pub(in crate::pq) fn page_head(bytes: &[u8]) -> Option<PageHead> {
    let mut skim = CompactProtocolReader::new(bytes);
    let (mut kind, mut compressed, mut uncompressed, mut checksum) = (None, None, None, None);
    let mut details = None;
    let mut last = 0;
    loop {
        match skim.field(&mut last)? {
            (STOP, _) => break,
            (I32, 1) => kind = Some(skim.i32()?),
            (I32, 2) => uncompressed = Some(skim.i32()?),
            (I32, 3) => compressed = Some(skim.i32()?),
            (I32, 4) => checksum = Some(skim.i32()?.cast_unsigned()),
            (STRUCT, which @ (5 | 7 | 8)) => {
                details = Some((which, PageDetails::read(&mut skim, which)?));
            }
            (_, 1..=5 | 7 | 8) => return None,
            (kind, _) => skim.skip(kind, false, NESTING)?,
        }
    }
    let (kind, details) = match (kind?, details) {
        (0, Some((5, details))) => (PageKind::Data, details),
        (2, Some((7, details))) => (PageKind::Dictionary, details),
        (3, Some((8, details))) => (PageKind::DataV2, details),
        (0 | 2 | 3, _) => return None,
        _ => (PageKind::Other, PageDetails::default()),
    };
    Some(PageHead {
        length: skim.at,
        kind,
        compressed: u64::try_from(compressed?).ok()?,
        uncompressed: u64::try_from(uncompressed?).ok()?,
        checksum,
        details,
    })
}

/// Number of the field of a page header that holds the checksum.
const CHECKSUM: u8 = 4;

/// The header of a page with the checksum of these stored bytes added, and the kind of page; `None`
/// where the header does not match the number of bytes, or has a checksum already.
pub(in crate::pq) fn with_checksum(header: &[u8], body: &[u8]) -> Option<(Vec<u8>, PageKind)> {
    let head = page_head(header)?;
    if head.length != header.len()
        || head.compressed != body.len() as u64
        || head.checksum.is_some()
    {
        return None;
    }
    let mut skim = CompactProtocolReader::new(header);
    let mut last = 0;
    let (begin, before, kind, id) = loop {
        let (begin, before) = (skim.at, last);
        let (kind, id) = skim.field(&mut last)?;
        if kind == STOP || id > CHECKSUM.into() {
            break (begin, before, kind, id);
        }
        skim.skip(kind, false, NESTING)?;
    };
    // A field's first byte holds the difference to the number of the field before it.
    let field = |from: i64, to: i64, kind: u8| {
        u8::try_from(to - from)
            .ok()
            .filter(|delta| (1..16).contains(delta))
            .map(|delta| delta << 4 | kind)
    };
    let mut out = Vec::with_capacity(header.len() + 6);
    out.extend_from_slice(header.get(..begin)?);
    out.push(field(before, CHECKSUM.into(), I32)?);
    let checksum = crc32fast::hash(body).cast_signed();
    let mut zigzag = (checksum << 1 ^ checksum >> 31).cast_unsigned();
    while zigzag >= 0x80 {
        out.push((zigzag & 0x7f) as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
    out.push(if kind == STOP {
        STOP
    } else {
        field(CHECKSUM.into(), id, kind)?
    });
    out.extend_from_slice(skim.rest());
    Some((out, head.kind))
}

/// Columns whose bounds differ in size from values of their type, by row group and leaf. `size`
/// returns the size of a leaf's values, if it is fixed.
pub(in crate::pq) fn missized_bound_columns(
    metadata: &[u8],
    size: impl Fn(usize) -> Option<u64>,
) -> Option<Vec<(usize, usize)>> {
    const BOUNDS: [i64; 4] = [1, 2, 5, 6];
    let mut out = Vec::new();
    let mut skim = CompactProtocolReader::new(metadata);
    let groups = skim.find_list(4)?;
    for group in 0..groups {
        let mut within = 0;
        loop {
            match skim.field(&mut within)? {
                (STOP, _) => break,
                (LIST, 1) => {
                    let (STRUCT, leaves) = skim.list()? else {
                        return None;
                    };
                    for leaf in 0..leaves {
                        let leaf = usize::try_from(leaf).ok()?;
                        let size = size(leaf);
                        let fits = skim.chunk_bounds(
                            |length| size.is_none_or(|size| size == length),
                            &BOUNDS,
                        )?;
                        if !fits {
                            out.push((usize::try_from(group).ok()?, leaf));
                        }
                    }
                }
                (kind, _) => skim.skip(kind, false, NESTING)?,
            }
        }
    }
    Some(out)
}

/// Whether the bounds in a `ColumnIndex` have `size` bytes, or none for a page of nulls.
pub(in crate::pq) fn is_valid_index(index: &[u8], size: u64) -> bool {
    let mut skim = CompactProtocolReader::new(index);
    let mut look = || {
        let mut last = 0;
        loop {
            match skim.field(&mut last)? {
                (STOP, _) => return Some(true),
                (LIST, 2 | 3) => {
                    let (BINARY, count) = skim.list()? else {
                        return None;
                    };
                    for _ in 0..count {
                        let length = skim.varint()?;
                        if length != 0 && length != size {
                            return Some(false);
                        }
                        skim.advance(length)?;
                    }
                }
                (kind, _) => skim.skip(kind, false, NESTING)?,
            }
        }
    };
    look().unwrap_or(false)
}

impl CompactProtocolReader<'_> {
    /// Moves to the structs of the list that is field `wanted` and returns their number; 0 where
    /// there is no such field.
    fn find_list(&mut self, wanted: i64) -> Option<u64> {
        let mut last = 0;
        loop {
            match self.field(&mut last)? {
                (STOP, _) => return Some(0),
                (LIST, id) if id == wanted => {
                    let (kind, count) = self.list()?;
                    return (kind == STRUCT || count == 0).then_some(count);
                }
                (kind, _) => self.skip(kind, false, NESTING)?,
            }
        }
    }

    /// Reads a `ColumnChunk` and returns whether the length of each bound in its statistics is
    /// right.
    fn chunk_bounds(&mut self, fits: impl Fn(u64) -> bool, bounds: &[i64]) -> Option<bool> {
        // The numbers of `meta_data` and, in it, of `statistics`.
        const PATH: [i64; 2] = [3, 12];
        let (mut all, mut depth, mut last) = (true, 0, 0);
        loop {
            match (depth, self.field(&mut last)?) {
                (0, (STOP, _)) => return Some(all),
                (_, (STOP, _)) => {
                    depth -= 1;
                    last = *PATH.get(depth)?;
                }
                (_, (STRUCT, id)) if PATH.get(depth) == Some(&id) => {
                    depth += 1;
                    last = 0;
                }
                (2, (BINARY, id)) if bounds.contains(&id) => {
                    let length = self.varint()?;
                    all &= fits(length);
                    self.advance(length)?;
                }
                (_, (kind, _)) => self.skip(kind, false, NESTING)?,
            }
        }
    }
}

impl PageDetails {
    /// `which` is the field of the page header: 5 data page, 7 dictionary page, 8 data page V2.
    fn read(skim: &mut CompactProtocolReader<'_>, which: i64) -> Option<Self> {
        let natural = |skim: &mut CompactProtocolReader<'_>| u32::try_from(skim.i32()?).ok();
        // Those of V2 end with the lengths of levels; `is_compressed` has a default.
        let required = match which {
            5 => 4,
            7 => 2,
            _ => 6,
        };
        let mut details = Self::default();
        let (mut last, mut seen) = (0, 0_u32);
        loop {
            let (kind, id) = skim.field(&mut last)?;
            match (which, (kind, id)) {
                (_, (STOP, _)) => break,
                (_, (I32, 1)) => details.values = natural(skim)?,
                (5 | 7, (I32, 2)) | (8, (I32, 4)) => details.encoding = skim.i32()?,
                (5, (I32, 3)) => details.definition_encoding = skim.i32()?,
                (5, (I32, 4)) => details.repetition_encoding = skim.i32()?,
                (8, (I32, 2)) => details.nulls = natural(skim)?,
                (8, (I32, 3)) => details.rows = natural(skim)?,
                (8, (I32, 5)) => details.definition_length = natural(skim)?,
                (8, (I32, 6)) => details.repetition_length = natural(skim)?,
                (8, (TRUE, 7)) => {}
                (8, (FALSE, 7)) => details.is_plain = true,
                (8, (_, 7)) => return None,
                (_, (_, id)) if (1..=required).contains(&id) => return None,
                _ => skim.skip(kind, false, NESTING)?,
            }
            if (1..=required).contains(&id) {
                seen |= 1 << id;
            }
        }
        (seen.count_ones() == required as u32).then_some(details)
    }
}

#[cfg(test)]
pub(in crate::pq) mod tests {
    use super::*;

    /// version = 1, then a list of schema elements {5: num_children}.
    pub(crate) fn metadata(children: &[i32]) -> Vec<u8> {
        let mut bytes = vec![0x15, 0x02, 0x19, 0xfc];
        bytes.extend([children.len() as u8 | 0x80, (children.len() >> 7) as u8]);
        for count in children {
            if *count > 0 {
                bytes.extend([0x55, (*count as u8) << 1]);
            }
            bytes.push(0);
        }
        bytes.push(0);
        bytes
    }

    #[test]
    fn the_depth_counts_groups_inside_groups() {
        assert_eq!(schema_depth(&metadata(&[2, 0, 0])), Some(2));
        assert_eq!(schema_depth(&metadata(&[2, 2, 0, 1, 0, 0])), Some(4));
        assert_eq!(
            schema_depth(&metadata(&[&[1; 99][..], &[0]].concat())),
            Some(100)
        );
    }

    #[test]
    fn more_children_than_elements_are_no_schema() {
        assert_eq!(schema_depth(&metadata(&[63, 0, 0])), None);
        assert_eq!(schema_depth(&metadata(&[2, 3, 0])), None);
    }

    #[test]
    fn truncated_or_senseless_bytes_are_no_header() {
        let whole = metadata(&[2, 0, 0]);
        for length in 0..whole.len() - 2 {
            assert_eq!(schema_depth(&whole[..length]), None, "{length}");
        }
        assert_eq!(page_head(&[]), None);
        assert_eq!(
            page_head(&[0x15, 0x00, 0x15, 0x01, 0x15, 0x02, 0x00]),
            None,
            "a negative size"
        );
        assert_eq!(page_head(&[0xff; 64]), None);
    }

    #[test]
    fn a_header_gets_its_checksum_between_its_fields() {
        // The header below with one byte less of a body, and one that ends after its sizes.
        let body = [7; 50];
        let checksum = crc32fast::hash(&body);
        for header in [
            DATA_PAGE.to_vec(),
            // An index page, with no details.
            vec![0x15, 0x02, 0x15, 0xc8, 0x01, 0x15, 0x64, 0x00],
        ] {
            let (with, _) = with_checksum(&header, &body).unwrap();
            let expected = PageHead {
                checksum: Some(checksum),
                length: with.len(),
                ..page_head(&header).unwrap()
            };
            assert_eq!(page_head(&with), Some(expected));
            assert_eq!(with_checksum(&with, &body), None, "it has one");
            assert_eq!(with_checksum(&header, &body[1..]), None, "another body");
        }
    }

    /// type 0, uncompressed 100, compressed 50, data_page_header { num_values 7, encoding 3,
    /// definition_level_encoding 3, repetition_level_encoding 3 }
    const DATA_PAGE: [u8; 18] = [
        0x15, 0x00, 0x15, 0xc8, 0x01, 0x15, 0x64, 0x2c, 0x15, 0x0e, 0x15, 0x06, 0x15, 0x06, 0x15,
        0x06, 0x00, 0x00,
    ];

    #[test]
    fn a_page_header_is_read() {
        let details = PageDetails {
            values: 7,
            encoding: 3,
            definition_encoding: 3,
            repetition_encoding: 3,
            ..PageDetails::default()
        };
        let head = PageHead {
            length: 18,
            kind: PageKind::Data,
            compressed: 50,
            uncompressed: 100,
            checksum: None,
            details,
        };
        assert_eq!(page_head(&[&DATA_PAGE[..], &[0xaa]].concat()), Some(head));
    }

    #[test]
    fn a_header_without_a_required_field_is_damaged() {
        // type 3, sizes, data_page_header_v2 { 7 values, 0 nulls, 7 rows, encoding 0, lengths 2
        // and 0, is_compressed false }
        let v2 = [
            0x15, 0x06, 0x15, 0xc8, 0x01, 0x15, 0x64, 0x5c, 0x15, 0x0e, 0x15, 0x00, 0x15, 0x0e,
            0x15, 0x00, 0x15, 0x04, 0x15, 0x00, 0x12, 0x00, 0x00,
        ];
        let dictionary = [
            0x15, 0x04, 0x15, 0xc8, 0x01, 0x15, 0x64, 0x4c, 0x15, 0x0e, 0x15, 0x00, 0x00, 0x00,
        ];
        for header in [&DATA_PAGE[..], &v2, &dictionary] {
            let whole = page_head(header).unwrap();
            assert_eq!(whole.details.values, 7);
            let fields = header.iter().enumerate();
            for (at, _) in fields.filter(|(_, byte)| **byte == 0x15) {
                // An `i16` where an `i32` belongs: the same bytes, which readers of Thrift skip.
                let mut other = header.to_vec();
                other[at] = 0x14;
                assert_eq!(page_head(&other), None, "type at {at} of {header:x?}");
                // The field before it left out.
                let mut shorter = header.to_vec();
                shorter[at] = 0x25;
                assert_eq!(page_head(&shorter), None, "number at {at} of {header:x?}");
            }
        }
        // Details of another kind of page.
        let mut other = dictionary.to_vec();
        other[1] = 0x00;
        assert_eq!(page_head(&other), None);
    }
}
