//! A store of one file, for tests of readers.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, NotFoundKind, Result};
use crate::store::{ObjectMeta, PendingResult, Store, StoreObject};

/// A store of one file.
#[derive(Debug)]
pub(crate) struct Memory {
    pub url: &'static str,
    pub bytes: Bytes,
}

impl Memory {
    fn range(bytes: &Bytes, range: &std::ops::Range<u64>) -> Result<Bytes> {
        if range.start > range.end || range.end > bytes.len() as u64 {
            return Err(Error::corrupt_data("out of range"));
        }
        Ok(bytes.slice(range.start as usize..range.end as usize))
    }
}

impl Store for Memory {
    fn url(&self) -> &str {
        self.url
    }

    fn list_from(&self, _: &str, _: &str) -> Result<Vec<ObjectMeta>> {
        Ok(Vec::new())
    }

    fn head(&self, path: &str) -> Result<ObjectMeta> {
        Ok(ObjectMeta {
            path: path.to_owned(),
            size: self.bytes.len() as u64,
            modified_ms: 0,
        })
    }

    fn get(&self, _: &str) -> PendingResult<(Bytes, ObjectMeta)> {
        PendingResult::lazy(|| Err(Error::not_found(NotFoundKind::Object, "no")))
    }

    fn get_ranges(&self, _: &str, ranges: Vec<std::ops::Range<u64>>) -> PendingResult<Vec<Bytes>> {
        let bytes = self.bytes.clone();
        PendingResult::lazy(move || {
            ranges
                .iter()
                .map(|range| Self::range(&bytes, range))
                .collect()
        })
    }
}

/// A file with these bytes in a store that is treated as remote.
pub(crate) fn file_of(bytes: &[u8]) -> StoreObject {
    file_in("memory:///", bytes)
}

/// A file of these bytes in a store at `url`.
pub(crate) fn file_in(url: &'static str, bytes: &[u8]) -> StoreObject {
    StoreObject {
        store: Arc::new(Memory {
            url,
            bytes: Bytes::copy_from_slice(bytes),
        }),
        path: "f.parquet".to_owned(),
        size: Some(bytes.len() as u64),
    }
}
