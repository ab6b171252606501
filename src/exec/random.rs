//! Random names, from the seeds that the operating system supplies for hash maps.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// 64 random bits; good enough to be unique, not for secrets.
#[must_use]
pub fn random() -> u64 {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    // The seed is drawn once per thread and a forked child inherits it: process id and time
    // distinguish the two.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.write_u128(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos()),
    );
    hasher.write_u64(DRAWN.fetch_add(1, Ordering::Relaxed));
    hasher.finish()
}

/// A random UUID (version 4) as a string.
#[must_use]
pub fn uuid() -> String {
    uuid_of(random(), random())
}

/// The UUID (version 4) from 128 bits, six of which are replaced.
#[must_use]
pub(super) fn uuid_of(high: u64, low: u64) -> String {
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        (low >> 48) & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_have_their_form_and_differ() {
        let all: std::collections::HashSet<String> = (0..10_000).map(|_| uuid()).collect();
        assert_eq!(all.len(), 10_000);
        for text in all {
            let lengths: Vec<usize> = text.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{text}");
            assert!(
                text.as_bytes()[14] == b'4' && b"89ab".contains(&text.as_bytes()[19]),
                "{text}"
            );
        }
    }
}
