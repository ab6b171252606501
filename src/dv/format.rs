//! Location and framing of a deletion vector's bytes: version byte, big-endian sizes, CRC-32.
//!
//! Vectors that are close together in one file are fetched as one range; the version byte is
//! checked when the range begins near enough to the file's start to include it at no cost.

use std::ops::Range;

use bytes::Bytes;

use crate::dv::bitmap::RoaringBitmapArray;
use crate::dv::z85;
use crate::error::{Error, Result};
use crate::protocol::commit_line::DeletionVectorDescriptor;
use crate::store::{PendingResult, StoreObject};

/// The file's format version, its first byte.
const VERSION: u8 = 1;
/// Vectors are joined into one range across gaps up to this.
const GAP: u64 = 64 << 10;
/// The longest joined range.
const JOINED: u64 = 16 << 20;
/// Bytes of the frame: size before the data, checksum after it.
const FRAME: u64 = 8;
/// Characters of a UUID in Z85.
const UUID_LENGTH: usize = 20;

/// The location of a deletion vector's file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DvPath {
    /// Below the table's root: a plain path without encoding.
    InTable(String),
    /// As in the log, in the form of an `add`'s path.
    Given(String),
}

/// The file of a vector; `None` for one in the log.
pub(super) fn path(descriptor: &DeletionVectorDescriptor) -> Result<Option<DvPath>> {
    let text = &descriptor.path_or_inline_dv;
    match descriptor.storage_type.as_str() {
        "i" => Ok(None),
        "p" => Ok(Some(DvPath::Given(text.clone()))),
        "u" => {
            let split = text
                .len()
                .checked_sub(UUID_LENGTH)
                .and_then(|at| text.split_at_checked(at));
            let (prefix, uuid) =
                split.ok_or_else(|| Error::corrupt_data("its UUID is too short"))?;
            let uuid = z85::decode(uuid)
                .ok()
                .and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
            let uuid = uuid.ok_or_else(|| Error::corrupt_data("its UUID is not Z85"))?;
            let name = format!("deletion_vector_{}.bin", hyphenated(&uuid));
            Ok(Some(DvPath::InTable(if prefix.is_empty() {
                name
            } else {
                format!("{prefix}/{name}")
            })))
        }
        other => Err(Error::unsupported(format!(
            "deletion vectors of storage type `{other}` are not supported"
        ))),
    }
}

/// The canonical form of a UUID.
fn hyphenated(uuid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (n, byte) in uuid.iter().enumerate() {
        if matches!(n, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.extend(
            [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')),
        );
    }
    text
}

/// The bytes of a vector in the log.
pub(super) fn inline(descriptor: &DeletionVectorDescriptor) -> Result<Vec<u8>> {
    let mut bytes = z85::decode(&descriptor.path_or_inline_dv)
        .map_err(|e| Error::corrupt_data(e.to_string()))?;
    // Z85 pads to whole groups.
    match usize::try_from(descriptor.size_in_bytes) {
        Ok(size) if size <= bytes.len() && bytes.len() - size < 4 => bytes.truncate(size),
        _ => {
            return Err(Error::corrupt_data(format!(
                "it has {} bytes and the log says {}",
                bytes.len(),
                descriptor.size_in_bytes
            )));
        }
    }
    Ok(bytes)
}

/// Vectors of one file that are being fetched.
pub(super) struct DeletionVectorFetch {
    /// For each vector: its frame's range, and the index of the one of `ranges` that contains it.
    frames: Vec<(Range<u64>, usize)>,
    ranges: Vec<Range<u64>>,
    bytes: PendingResult<Vec<Bytes>>,
}

/// Starts to read the vectors of `file`.
pub(super) fn fetch(
    file: &StoreObject,
    descriptors: &[&DeletionVectorDescriptor],
) -> Result<DeletionVectorFetch> {
    let mut frames = Vec::with_capacity(descriptors.len());
    for descriptor in descriptors {
        let start = u64::try_from(descriptor.offset.unwrap_or(1))
            .ok()
            .filter(|start| *start > 0);
        let size = u64::try_from(descriptor.size_in_bytes).ok();
        let (Some(start), Some(size)) = (start, size) else {
            return Err(Error::corrupt_data(format!(
                "the log puts it at offset {} with {} bytes",
                descriptor.offset.unwrap_or(1),
                descriptor.size_in_bytes
            )));
        };
        frames.push((start..start + size + FRAME, 0));
    }
    let mut order: Vec<usize> = (0..frames.len()).collect();
    order.sort_unstable_by_key(|n| frames.get(*n).map(|(range, _)| range.start));
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for n in order {
        let Some((frame, joined)) = frames.get_mut(n) else {
            continue;
        };
        match ranges.last_mut() {
            Some(last)
                if frame.start <= last.end + GAP
                    && frame.end.max(last.end) - last.start <= JOINED =>
            {
                last.end = last.end.max(frame.end);
            }
            _ => ranges.push(if frame.start <= GAP {
                0..frame.end
            } else {
                frame.clone()
            }),
        }
        *joined = ranges.len() - 1;
    }
    let bytes = file.store.get_ranges(&file.path, ranges.clone());
    Ok(DeletionVectorFetch {
        frames,
        ranges,
        bytes,
    })
}

impl DeletionVectorFetch {
    /// Waits for the bytes and extracts the vectors' data from their frames.
    pub fn wait(self) -> Result<Vec<Bytes>> {
        let bytes = self.bytes.wait()?;
        if let (Some(range), Some(bytes)) = (self.ranges.first(), bytes.first())
            && range.start == 0
            && let Some(first) = bytes.first()
            && *first != VERSION
        {
            return Err(Error::corrupt_data(format!(
                "its file begins with {first}, not with the version {VERSION}"
            )));
        }
        self.frames
            .iter()
            .map(|(frame, joined)| {
                let (Some(range), Some(bytes)) = (self.ranges.get(*joined), bytes.get(*joined))
                else {
                    return Err(Error::internal("a range of deletion vectors was not read"));
                };
                read_frame(
                    bytes,
                    frame.start - range.start,
                    frame.end - frame.start - FRAME,
                )
            })
            .collect()
    }
}

/// The data of `size` bytes in the frame at `start`, if size and checksum are correct.
fn read_frame(bytes: &Bytes, start: u64, size: u64) -> Result<Bytes> {
    let early = || Error::corrupt_data("its file ends too early");
    let at = usize::try_from(start).map_err(|_| early())?;
    let (head, rest) = bytes
        .get(at..)
        .and_then(|from| from.split_first_chunk::<4>())
        .ok_or_else(early)?;
    let said = u64::from(u32::from_be_bytes(*head));
    if said != size {
        return Err(Error::corrupt_data(format!(
            "it has {said} bytes and the log says {size}"
        )));
    }
    let length = usize::try_from(size).map_err(|_| early())?;
    let (data, rest) = rest.split_at_checked(length).ok_or_else(early)?;
    let checksum = rest
        .first_chunk::<4>()
        .map(|bytes| u32::from_be_bytes(*bytes))
        .ok_or_else(early)?;
    let found = crc32fast::hash(data);
    if found != checksum {
        return Err(Error::corrupt_data(format!(
            "its CRC-32 is {found:#010x}, and {checksum:#010x} is stored"
        )));
    }
    Ok(bytes.slice_ref(data))
}

/// A file of vectors to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionVectorFile {
    /// Its path below the table's root.
    pub path: String,
    /// Its name in descriptors of storage type `u`.
    pub in_log: String,
}

impl DeletionVectorFile {
    /// The file with a UUID in its name.
    ///
    /// # Errors
    /// [`Error::Internal`] for a string that is not a UUID.
    pub fn new(uuid: &str) -> Result<Self> {
        let digits: Vec<u8> = uuid
            .chars()
            .filter_map(|c| c.to_digit(16))
            .filter_map(|digit| u8::try_from(digit).ok())
            .collect();
        let bytes: Vec<u8> = digits
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
            .collect();
        match <[u8; 16]>::try_from(bytes) {
            Ok(bytes) => Ok(Self {
                path: format!("deletion_vector_{}.bin", hyphenated(&bytes)),
                in_log: z85::encode(&bytes),
            }),
            Err(_) => Err(Error::internal(format!("`{uuid}` is not a UUID"))),
        }
    }
}

/// Writes several vectors into one file.
#[derive(Debug)]
pub struct DeletionVectorFileWriter {
    bytes: Vec<u8>,
}

/// The fields of a descriptor for a vector that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletionVectorExtent {
    /// The start of its frame.
    pub offset: i32,
    /// Bytes of its data.
    pub size_in_bytes: i32,
    /// Rows that it deletes.
    pub cardinality: i64,
}

impl Default for DeletionVectorFileWriter {
    fn default() -> Self {
        Self {
            bytes: vec![VERSION],
        }
    }
}

impl DeletionVectorFileWriter {
    /// Adds a vector.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the file would exceed 2 GiB.
    pub fn push(&mut self, positions: &RoaringBitmapArray) -> Result<DeletionVectorExtent> {
        let data = positions.serialize();
        let too_big = |_| Error::invalid("a file of deletion vectors would outgrow 2 GiB");
        let offset = i32::try_from(self.bytes.len()).map_err(too_big)?;
        let size_in_bytes = i32::try_from(data.len()).map_err(too_big)?;
        let cardinality = i64::try_from(positions.len()).map_err(too_big)?;
        self.bytes.extend(size_in_bytes.to_be_bytes());
        self.bytes.extend(&data);
        self.bytes.extend(crc32fast::hash(&data).to_be_bytes());
        Ok(DeletionVectorExtent {
            offset,
            size_in_bytes,
            cardinality,
        })
    }

    /// Bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether no vector was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == 1
    }

    /// The file.
    #[must_use]
    pub fn finish(self) -> Bytes {
        self.bytes.into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{load, load_all};

    #[test]
    fn a_new_file_is_found_by_its_name_in_the_log() {
        let file = DeletionVectorFile::new("d2c639aa-8816-431a-aaf6-d3fe2512ff61").unwrap();
        assert_eq!(
            file.path,
            "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
        );
        let descriptor = DeletionVectorDescriptor {
            storage_type: "u".to_owned(),
            path_or_inline_dv: file.in_log,
            offset: Some(1),
            size_in_bytes: 1,
            cardinality: 1,
        };
        assert_eq!(path(&descriptor).unwrap(), Some(DvPath::InTable(file.path)));
        assert!(DeletionVectorFile::new("d2c6").is_err());
    }
    use super::*;
    use crate::dv::tests::file_of;

    fn descriptor(storage_type: &str, text: &str) -> DeletionVectorDescriptor {
        DeletionVectorDescriptor {
            storage_type: storage_type.to_owned(),
            path_or_inline_dv: text.to_owned(),
            offset: Some(4),
            size_in_bytes: 40,
            cardinality: 6,
        }
    }

    #[test]
    fn the_protocols_example_of_a_relative_path() {
        let example = descriptor("u", "ab^-aqEH.-t@S}K{vb[*k^");
        assert_eq!(
            path(&example).unwrap(),
            Some(DvPath::InTable(
                "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin".to_owned()
            ))
        );
        assert_eq!(example.unique_id(), "uab^-aqEH.-t@S}K{vb[*k^@4");
        let bare = descriptor("u", "^-aqEH.-t@S}K{vb[*k^");
        assert_eq!(
            path(&bare).unwrap(),
            Some(DvPath::InTable(
                "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin".to_owned()
            ))
        );
    }

    #[test]
    fn the_protocols_example_of_an_inline_vector() {
        let mut example = descriptor("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L");
        example.offset = None;
        let vector = load(&example, |_| Err(Error::internal("nothing to open"))).unwrap();
        assert_eq!(
            vector.positions().iter().collect::<Vec<_>>(),
            [3, 4, 7, 11, 18, 29]
        );
        assert_eq!(
            example.unique_id(),
            "iwi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
        );
        example.cardinality = 5;
        assert!(
            load(&example, |_| Err(Error::internal("")))
                .unwrap_err()
                .to_string()
                .contains("deletes 6 rows and the log says 5")
        );
    }

    #[test]
    fn unknown_storage_types_and_senseless_uuids_are_refused() {
        assert!(matches!(
            path(&descriptor("x", "")),
            Err(Error::Unsupported { .. })
        ));
        for bad in ["", "short", "^-aqEH.-t@S}K{vb[*k ", "ü-aqEH.-t@S}K{vb[*k"] {
            assert!(path(&descriptor("u", bad)).is_err(), "{bad}");
        }
    }

    fn three() -> (
        Vec<u8>,
        Vec<DeletionVectorDescriptor>,
        Vec<RoaringBitmapArray>,
    ) {
        let sets = vec![
            RoaringBitmapArray::from_ascending([1, 2, 3]).unwrap(),
            RoaringBitmapArray::from_ascending(0..100_000).unwrap(),
            RoaringBitmapArray::from_ascending((0..500_000).step_by(3)).unwrap(),
        ];
        let mut writer = DeletionVectorFileWriter::default();
        let descriptors = sets
            .iter()
            .map(|set| {
                let written = writer.push(set).unwrap();
                DeletionVectorDescriptor {
                    storage_type: "p".to_owned(),
                    path_or_inline_dv: "somewhere".to_owned(),
                    offset: Some(written.offset),
                    size_in_bytes: written.size_in_bytes,
                    cardinality: written.cardinality,
                }
            })
            .collect();
        (writer.finish().to_vec(), descriptors, sets)
    }

    #[test]
    fn vectors_of_one_file_are_read_together_and_in_any_order() {
        let (bytes, mut descriptors, mut sets) = three();
        descriptors.reverse();
        sets.reverse();
        let file = file_of(&bytes);
        let vectors = load_all(&descriptors, |_| Ok(file.clone())).unwrap();
        assert!(vectors.iter().map(|v| v.positions().clone()).eq(sets));
        assert_eq!(
            fetch(&file, &descriptors.iter().collect::<Vec<_>>())
                .unwrap()
                .ranges
                .len(),
            1
        );
    }

    #[test]
    fn damage_is_named() {
        let (bytes, descriptors, _) = three();
        let broken = |change: &dyn Fn(&mut Vec<u8>, &mut DeletionVectorDescriptor)| {
            let (mut bytes, mut descriptor) = (bytes.clone(), descriptors[0].clone());
            change(&mut bytes, &mut descriptor);
            let error = load(&descriptor, |_| Ok(file_of(&bytes))).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
            error.to_string()
        };
        assert!(broken(&|bytes, _| bytes[0] = 2).contains("version"));
        assert!(broken(&|bytes, _| bytes[5] ^= 1).contains("CRC-32"));
        assert!(broken(&|bytes, _| bytes[4] ^= 1).contains("the log says"));
        assert!(broken(&|_, descriptor| descriptor.size_in_bytes -= 1).contains("the log says"));
        assert!(broken(&|_, descriptor| descriptor.size_in_bytes = -1).contains("the log puts it"));
        assert!(
            broken(&|_, descriptor| descriptor.cardinality = 4)
                .contains("deletes 3 rows and the log says 4")
        );
        assert!(broken(&|bytes, _| bytes.truncate(20)).contains("f.parquet"));
        let frame = |bytes: &mut Vec<u8>| {
            bytes[5] = 0;
            let checksum = crc32fast::hash(&bytes[5..5 + descriptors[0].size_in_bytes as usize]);
            let at = 5 + descriptors[0].size_in_bytes as usize;
            bytes[at..at + 4].copy_from_slice(&checksum.to_be_bytes());
        };
        assert!(broken(&|bytes, _| frame(bytes)).contains("magic number"));
    }
}
