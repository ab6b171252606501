//! The content of a commit that was read, as far as it is compared later.

use crate::error::Result;
use crate::store::Store;
use std::hash::{DefaultHasher, Hasher};

/// The maximum number of bytes of a commit that are compared.
const COMPARED: u64 = 64 << 10;

/// The fingerprint of a commit that was read: its length, and a hash of its first [`COMPARED`]
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommitFingerprint {
    length: u64,
    hash: u64,
}

impl CommitFingerprint {
    pub(super) fn of(text: &[u8]) -> Self {
        let compared =
            usize::try_from(COMPARED).map_or(text, |most| text.get(..most).unwrap_or(text));
        Self::of_start(text.len() as u64, compared)
    }

    pub(super) fn of_start(length: u64, start: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(start);
        Self {
            length,
            hash: hasher.finish(),
        }
    }

    /// Whether the object at `path` has this content.
    pub(super) fn matches_object(self, store: &dyn Store, path: &str) -> Result<bool> {
        if self.length <= COMPARED {
            let (text, _) = store.get(path).wait()?;
            return Ok(Self::of(&text) == self);
        }
        if store.head(path)?.size != self.length {
            return Ok(false);
        }
        let start = store
            .get_ranges(path, std::iter::once(0..COMPARED).collect())
            .wait()?;
        Ok(start
            .first()
            .is_some_and(|start| Self::of_start(self.length, start) == self))
    }
}

#[cfg(test)]
mod tests {
    use super::super::identity::is_same_time;
    use super::*;

    #[test]
    pub(super) fn a_fingerprint_tells_contents_and_lengths_apart() {
        let long = vec![b'x'; 200_000];
        let other = [&long[..100_000], b"y", &long[100_001..]].concat();
        assert_eq!(CommitFingerprint::of(b"a"), CommitFingerprint::of(b"a"));
        assert_ne!(CommitFingerprint::of(b"a"), CommitFingerprint::of(b"b"));
        assert_ne!(
            CommitFingerprint::of(&long),
            CommitFingerprint::of(&long[..150_000])
        );
        assert_eq!(
            CommitFingerprint::of(&long),
            CommitFingerprint::of(&other),
            "what follows the first bytes is not compared"
        );
    }

    #[test]
    pub(super) fn times_agree_also_where_one_is_in_whole_seconds() {
        assert!(
            is_same_time(1_234_567, 1_234_567)
                && is_same_time(1_234_567, 1_234_000)
                && is_same_time(1_234_000, 1_234_567)
        );
        assert!(
            !is_same_time(1_234_567, 1_234_568)
                && !is_same_time(1_234_000, 1_235_000)
                && !is_same_time(0, 0)
        );
    }
}
