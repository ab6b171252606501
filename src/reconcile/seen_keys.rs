//! The keys of the actions read so far, and the newest state of each.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap};

use crate::error::{Error, Result, shown};
use crate::parse::{FileBatch, mask};
use crate::protocol::data_path;

/// The state of a file after an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileActionState {
    /// The file is live.
    Added,
    /// The file was removed.
    Removed,
}

/// Returns a fingerprint unchanged: it is a hash already.
#[derive(Debug, Clone, Copy, Default)]
struct FingerprintHashBuilder;

#[derive(Default)]
struct IdentityHasher(u64);

impl std::hash::Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
}

impl BuildHasher for FingerprintHashBuilder {
    type Hasher = IdentityHasher;

    fn build_hasher(&self) -> IdentityHasher {
        IdentityHasher::default()
    }
}

/// Keys of logical files and the newest state of each.
#[derive(Debug, Default, Clone)]
pub struct SeenFileKeys {
    seeds: (DefaultHashBuilder, DefaultHashBuilder),
    keys: HashMap<u128, (i64, FileActionState), FingerprintHashBuilder>,
}

impl SeenFileKeys {
    /// An empty set with the seeds of another one, so that their fingerprints are comparable.
    #[must_use]
    pub fn with_same_seeds(other: &Self) -> Self {
        Self {
            seeds: other.seeds.clone(),
            keys: HashMap::default(),
        }
    }

    /// The keys seen so far.
    pub fn keys(&self) -> impl Iterator<Item = u128> + '_ {
        self.keys.keys().copied()
    }

    /// The fingerprint of a row's key.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a path that cannot be decoded.
    #[inline]
    pub fn key(&self, batch: &FileBatch, row: usize) -> Result<u128> {
        let path = batch.path.value(row);
        let canonical = if data_path::needs_canonicalization(path.as_bytes()) || path.is_empty() {
            data_path::canonical(path)?
        } else {
            path.into()
        };
        let dv = if batch.dv.is_some() {
            batch.dv_unique_id(row)
        } else {
            None
        };
        let hash = |seed: &DefaultHashBuilder| seed.hash_one((canonical.as_bytes(), dv.as_deref()));
        Ok((u128::from(hash(&self.seeds.0)) << 64) | u128::from(hash(&self.seeds.1)))
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether the set contains the key.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: u128) -> bool {
        self.keys.contains_key(&key)
    }

    /// Records an action; returns true if it is the newest of its file. Actions must be given
    /// newest first.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for an add and a remove of one logical file in one commit, unless
    /// `aggregated`, where later lines are newer.
    #[inline]
    pub fn record(
        &mut self,
        key: u128,
        version: i64,
        verdict: FileActionState,
        aggregated: bool,
        path: &str,
    ) -> Result<bool> {
        match self.keys.entry(key) {
            hashbrown::hash_map::Entry::Vacant(entry) => {
                entry.insert((version, verdict));
                Ok(true)
            }
            hashbrown::hash_map::Entry::Occupied(entry) => {
                let (at, first) = *entry.get();
                if at == version && first != verdict && !aggregated {
                    return Err(Error::corrupt(format!("the commit both adds and removes the file `{}` with the same deletion vector", shown(path)))
                        .at_version(version));
                }
                Ok(false)
            }
        }
    }

    /// The rows whose keys are not in the set.
    ///
    /// # Errors
    /// As [`SeenFileKeys::key`].
    pub fn filter_unseen(&self, batch: FileBatch) -> Result<FileBatch> {
        if self.is_empty() {
            return Ok(batch);
        }
        let keep = (0..batch.len())
            .map(|row| self.key(&batch, row).map(|key| !self.contains(key)))
            .collect::<Result<Vec<bool>>>()?;
        batch.filter(&mask(keep))
    }

    /// Reserves memory for `keys` more keys.
    pub fn reserve(&mut self, keys: usize) {
        self.keys.reserve(keys);
    }
}
