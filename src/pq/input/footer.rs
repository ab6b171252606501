//! Footers: [`StoreObject`] -> [`ParquetFooter`], and a small cache of them.
//!
//! One request reads the last 64 KiB, which hold the metadata of most files; a second one fetches
//! the rest. A wrong file size in the log shows when the file does not end in `PAR1` at that size;
//! the store is then asked for the size. The bytes that were read of the file's end are handed on,
//! so that a small file costs one request in all.
//!
//! `ARROW:schema` is ignored: it is a hint of the writer, and Delta's schema decides. Size
//! statistics are skipped. Limits: metadata of up to 256 MiB, or more if the memory limit allows
//! it, and no longer than the file; a schema at most 256 levels deep, which is more than
//! [`MOST_NESTED_TYPES`] have.
//!
//! [`MOST_NESTED_TYPES`]: crate::protocol::schema::MOST_NESTED_TYPES

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::file::metadata::{
    ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy,
};
use rustc_hash::FxHashMap;

use super::bounds_check::drop_invalid_statistics;
use crate::error::{Error, Result};
use crate::exec::decode_limit;
use crate::pq::decoder_errors::{catch_decoder_panic, decode_error};
use crate::pq::input::header_check::schema_depth;
use crate::process::ProcessMutex;
use crate::store::StoreObject;

/// Bytes of a file's end that are read first.
const GUESS: u64 = 64 << 10;
/// The longest metadata that is read whatever the memory limit.
const METADATA_LIMIT: u64 = 256 << 20;
/// The greatest depth of a schema that is read.
const DEPTH_LIMIT: usize = 256;
/// Length and magic number at the end of every file.
const TAIL: u64 = 8;

/// A file's metadata.
#[derive(Debug)]
pub struct ParquetFooter {
    /// The metadata as decoded by the `parquet` crate.
    pub(in crate::pq) metadata: ParquetMetaData,
    /// The file's true size.
    pub(in crate::pq) size: u64,
    /// Length of the serialized metadata, a measure of its memory.
    serialized_bytes: usize,
}

impl ParquetFooter {
    /// Rows in the file.
    #[must_use]
    pub fn num_rows(&self) -> u64 {
        self.metadata
            .row_groups()
            .iter()
            .map(|group| u64::try_from(group.num_rows()).unwrap_or(0))
            .sum()
    }

    /// A value of the footer's key-value metadata.
    #[must_use]
    pub fn key_value(&self, key: &str) -> Option<&str> {
        self.metadata
            .file_metadata()
            .key_value_metadata()?
            .iter()
            .find(|pair| pair.key == key)?
            .value
            .as_deref()
    }
}

/// The last bytes of a file, from `start` on.
#[derive(Debug, Clone)]
pub(in crate::pq) struct FileTail {
    pub start: u64,
    pub bytes: Bytes,
}

impl FileTail {
    /// The serialized metadata, if these bytes contain it.
    pub fn metadata(&self) -> Option<&[u8]> {
        let (rest, tail) = self.bytes.split_last_chunk::<8>()?;
        let [a, b, c, d, ..] = *tail;
        rest.get(
            rest.len()
                .checked_sub(u32::from_le_bytes([a, b, c, d]) as usize)?..,
        )
    }

    /// The bytes of `range`, if these bytes contain them.
    pub fn get(&self, range: &Range<u64>) -> Option<Bytes> {
        let from = usize::try_from(range.start.checked_sub(self.start)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(self.start)?).ok()?;
        (from <= to && to <= self.bytes.len()).then(|| self.bytes.slice(from..to))
    }
}

/// Reads the footer of `file`.
///
/// # Errors
/// [`Error::Corrupt`] names the file and what is wrong with it; [`Error::NotFound`],
/// [`Error::Storage`].
pub fn read_footer(file: &StoreObject) -> Result<Arc<ParquetFooter>> {
    read_with_tail(file).map(|(footer, _)| footer)
}

/// The same, with the bytes of the file's end that were read.
pub(in crate::pq) fn read_with_tail(file: &StoreObject) -> Result<(Arc<ParquetFooter>, FileTail)> {
    catch_decoder_panic(&file.path, || {
        let Some(claimed) = file.size else {
            return read_sized(file, file.size()?);
        };
        match read_sized(file, claimed) {
            // Either the file is damaged or the given size is wrong. A missing file stays an error.
            Err(error) if !error.is_not_found() => match file.store.head(&file.path) {
                Ok(meta) if meta.size != claimed => read_sized(file, meta.size),
                Err(missing) if missing.is_not_found() => Err(missing),
                _ => Err(error),
            },
            result => result,
        }
    })
}

fn read_sized(file: &StoreObject, size: u64) -> Result<(Arc<ParquetFooter>, FileTail)> {
    if size < TAIL + 4 {
        return Err(Error::corrupt_data(format!(
            "not a Parquet file: it has only {size} bytes"
        )));
    }
    let fetch = |range: Range<u64>| -> Result<Bytes> {
        let wanted = range.end - range.start;
        let bytes = file
            .store
            .get_ranges(&file.path, vec![range])
            .wait()?
            .pop()
            .unwrap_or_default();
        if bytes.len() as u64 == wanted {
            Ok(bytes)
        } else {
            Err(Error::corrupt_data("the file is shorter than the log says"))
        }
    };
    let mut end = FileTail {
        start: size.saturating_sub(GUESS),
        bytes: Bytes::new(),
    };
    end.bytes = fetch(end.start..size)?;
    let Some((_, tail)) = end.bytes.split_last_chunk::<8>() else {
        return Err(Error::corrupt_data("not a Parquet file: too short"));
    };
    let [a, b, c, d, magic @ ..] = *tail;
    match &magic {
        b"PAR1" => {}
        b"PARE" => {
            return Err(Error::unsupported(
                "the Parquet file is encrypted, which is not supported",
            ));
        }
        _ => {
            return Err(Error::corrupt_data(
                "not a Parquet file, or cut short: it does not end in PAR1",
            ));
        }
    }
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    if length > size - TAIL - 4 {
        return Err(Error::corrupt_data(format!(
            "the Parquet footer claims {length} bytes of metadata in a file of {size} bytes"
        )));
    }
    let limit = METADATA_LIMIT.max(decode_limit()? / DECODED as u64);
    if length > limit {
        return Err(Error::over_memory_limit(
            "the metadata in the Parquet footer",
            length,
            limit,
        ));
    }
    let range = size - TAIL - length..size - TAIL;
    let bytes = match end.get(&range) {
        Some(bytes) => bytes,
        None => {
            let before = fetch(range.start..end.start)?;
            let mut all = Vec::with_capacity(before.len() + end.bytes.len());
            all.extend_from_slice(&before);
            all.extend_from_slice(&end.bytes);
            end = FileTail {
                start: range.start,
                bytes: all.into(),
            };
            end.get(&range)
                .ok_or_else(|| Error::internal("the footer is not in the bytes read for it"))?
        }
    };
    Ok((Arc::new(decode(&bytes, size)?), end))
}

fn decode(bytes: &[u8], size: u64) -> Result<ParquetFooter> {
    match schema_depth(bytes) {
        Some(depth) if depth <= DEPTH_LIMIT => {}
        Some(depth) => {
            return Err(Error::corrupt_data(format!(
                "the Parquet schema is nested {depth} deep, more than the limit of {DEPTH_LIMIT}"
            )));
        }
        None => {
            return Err(Error::corrupt_data(
                "the Parquet footer's metadata is damaged",
            ));
        }
    }
    let options =
        ParquetMetaDataOptions::new().with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
    let metadata = match ParquetMetaDataReader::decode_metadata_with_options(bytes, Some(&options))
    {
        Ok(metadata) => metadata,
        Err(error) => {
            // Rows can be read without statistics, and perhaps only these are damaged.
            let options = options.with_column_stats_policy(ParquetStatisticsPolicy::SkipAll);
            ParquetMetaDataReader::decode_metadata_with_options(bytes, Some(&options))
                .map_err(|_| decode_error(error))?
        }
    };
    for (n, group) in metadata.row_groups().iter().enumerate() {
        if group.num_rows() < 0
            || group.num_columns() != metadata.file_metadata().schema_descr().num_columns()
        {
            return Err(Error::corrupt_data(format!(
                "the Parquet footer's row group {n} has {} rows and {} columns",
                group.num_rows(),
                group.num_columns()
            )));
        }
    }
    Ok(ParquetFooter {
        metadata: drop_invalid_statistics(metadata, bytes)?,
        size,
        serialized_bytes: bytes.len(),
    })
}

/// Recently read footers, by file and size. A data file never changes, so no entry is ever stale.
#[derive(Debug)]
pub struct FooterCache {
    inner: ProcessMutex<FooterCacheState>,
    limit: usize,
}

#[derive(Debug, Default)]
struct FooterCacheState {
    footers: FxHashMap<(String, u64), Arc<ParquetFooter>>,
    /// Keys by age, oldest first.
    order: VecDeque<(String, u64)>,
    serialized_bytes: usize,
}

/// Decoded metadata takes several times the memory of its bytes.
const DECODED: usize = 4;

impl FooterCache {
    /// A cache of about `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            inner: ProcessMutex::default(),
            limit,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FooterCacheState> {
        self.inner.lock()
    }

    /// The footer of `file`, read unless cached, and the file's end if it was read.
    pub(in crate::pq) fn get(
        &self,
        file: &StoreObject,
    ) -> Result<(Arc<ParquetFooter>, Option<FileTail>)> {
        let key = file.size.map(|size| (file.url(), size));
        if let Some(key) = &key
            && let Some(footer) = self.lock().footers.get(key)
        {
            return Ok((Arc::clone(footer), None));
        }
        let (footer, end) = read_with_tail(file)?;
        if let Some(key) = key
            && footer.serialized_bytes * DECODED <= self.limit / 4
        {
            let mut inner = self.lock();
            inner.serialized_bytes += footer.serialized_bytes * DECODED;
            inner.order.push_back(key.clone());
            if let Some(known) = inner.footers.insert(key, Arc::clone(&footer)) {
                inner.serialized_bytes = inner
                    .serialized_bytes
                    .saturating_sub(known.serialized_bytes * DECODED);
            }
            while inner.serialized_bytes > self.limit {
                let Some(oldest) = inner.order.pop_front() else {
                    break;
                };
                if let Some(gone) = inner.footers.remove(&oldest) {
                    inner.serialized_bytes = inner
                        .serialized_bytes
                        .saturating_sub(gone.serialized_bytes * DECODED);
                }
            }
        }
        Ok((footer, Some(end)))
    }
}

impl Default for FooterCache {
    fn default() -> Self {
        Self::new(64 << 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pq::tests::{file_of, ints, write};

    #[test]
    fn a_wrong_size_in_the_log_is_asked_for_again() {
        let bytes = write(&ints(100), None);
        let mut file = file_of(&bytes);
        for wrong in [12, bytes.len() as u64 - 1, bytes.len() as u64 + 1, 1 << 40] {
            file.size = Some(wrong);
            assert_eq!(read_footer(&file).unwrap().num_rows(), 100, "{wrong}");
        }
    }

    #[test]
    fn truncated_and_foreign_files_are_named() {
        let bytes = write(&ints(100), None);
        for bad in [
            &bytes[..bytes.len() - 5],
            &bytes[..20],
            b"PAR1",
            b"",
            b"no parquet at all, but some text",
        ] {
            let error = read_footer(&file_of(bad)).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains("f.parquet"), "{error}");
        }
    }

    #[test]
    fn a_lying_footer_length_is_an_error() {
        let mut bytes = write(&ints(100), None);
        let at = bytes.len() - 8;
        for lie in [u32::MAX, 0x7fff_ffff, 100_000, 0, 7] {
            bytes[at..at + 4].copy_from_slice(&lie.to_le_bytes());
            assert!(
                matches!(
                    read_footer(&file_of(&bytes)).unwrap_err(),
                    Error::Corrupt { .. }
                ),
                "{lie}"
            );
        }
    }

    #[test]
    fn a_bottomless_schema_does_not_exhaust_the_stack() {
        for depth in [300, 16_000] {
            let metadata = crate::pq::input::header_check::tests::metadata(
                &[vec![1; depth], vec![0]].concat(),
            );
            let mut bytes = b"PAR1".to_vec();
            bytes.extend(&metadata);
            bytes.extend((metadata.len() as u32).to_le_bytes());
            bytes.extend(b"PAR1");
            let error = read_footer(&file_of(&bytes)).unwrap_err();
            assert!(error.to_string().contains("deep"), "{error}");
        }
    }

    #[test]
    fn every_flipped_bit_of_a_footer_is_survived() {
        let bytes = write(&ints(10), None);
        let length = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap())
            as usize;
        for at in bytes.len() - 8 - length..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                let _ = read_footer(&file_of(&bad));
            }
        }
    }

    #[test]
    fn the_cache_knows_files_by_name_and_size_and_keeps_to_its_limit() {
        let file = file_of(&write(&ints(100), None));
        let cache = FooterCache::default();
        assert!(cache.get(&file).unwrap().1.is_some());
        assert!(cache.get(&file).unwrap().1.is_none());
        let weight = cache.lock().serialized_bytes;
        assert_eq!(
            weight,
            cache.get(&file).unwrap().0.serialized_bytes * DECODED
        );
        let small = FooterCache::new(weight * 4);
        for n in 1..50 {
            small.get(&file_of(&write(&ints(n), None))).unwrap();
        }
        assert!(small.lock().serialized_bytes <= weight * 4 && small.lock().footers.len() >= 2);
    }
}
