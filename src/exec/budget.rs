//! The byte budget: a limit on the bytes that are decoded ahead of their consumers, over all
//! streams of the process.
//!
//! A lane that finds the budget spent parks once it has produced an item, so every stream makes
//! progress, however many are open: memory is the budget and one item per lane. The budget is
//! `DELTAFAST_MEMORY_LIMIT` (bytes, or with a unit: `512MB`, `2GiB`, all powers of 1024), else a
//! quarter of the machine's memory or of the control group's limit, whichever is smaller.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::process::{PerProcess, RaceOnce};

/// The assumed memory of a machine whose memory is unknown.
const UNKNOWN: u64 = 4 << 30;

static WAITING: PerProcess<AtomicU64> = PerProcess::new();

/// Bytes that may be decoded ahead.
///
/// # Errors
/// [`Error::Invalid`] for a `DELTAFAST_MEMORY_LIMIT` that is not a number of bytes.
pub fn memory_limit() -> Result<u64> {
    static LIMIT: RaceOnce<Result<u64>> = RaceOnce::new();
    let limit = LIMIT.get_or_make(|| match std::env::var("DELTAFAST_MEMORY_LIMIT") {
        Ok(text) => parse(&text).ok_or_else(|| {
            Error::invalid(format!(
                "`DELTAFAST_MEMORY_LIMIT` is `{text}`; give bytes, or a number like `512MB`"
            ))
        }),
        Err(_) => Ok(memory() / 4),
    });
    limit.clone()
}

fn parse(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit
        .trim_start()
        .trim_end_matches('b')
        .trim_end_matches('i')
    {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// The memory that this process may use.
fn memory() -> u64 {
    let kilobytes = |line: &str| {
        line.strip_prefix("MemTotal:")?
            .trim()
            .strip_suffix("kB")?
            .trim()
            .parse::<u64>()
            .ok()
    };
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| text.lines().find_map(kilobytes))
        .map_or(UNKNOWN, |kb| kb.saturating_mul(1024));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    // `0::/path` in version 2, `4:memory:/path` in version 1; inside a container the path may be
    // the one outside of it.
    let files = groups.lines().filter_map(|line| {
        match line.splitn(3, ':').collect::<Vec<_>>().as_slice() {
            [_, "", path] => Some(("/sys/fs/cgroup", *path, "memory.max")),
            [_, "memory", path] => Some(("/sys/fs/cgroup/memory", *path, "memory.limit_in_bytes")),
            _ => None,
        }
    });
    let limits = files
        .flat_map(|(root, path, name)| [format!("{root}{path}/{name}"), format!("{root}/{name}")]);
    limits
        .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok())
        .fold(machine, u64::min)
}

/// Bytes that wait for a consumer, until this is dropped.
pub(super) struct BudgetGuard(Option<(&'static AtomicU64, u64)>);

impl BudgetGuard {
    /// Reserves `bytes` of the budget, which may be exceeded.
    pub(super) fn new(bytes: u64) -> Self {
        if bytes == 0 {
            return Self(None);
        }
        Self(
            WAITING
                .get(|| Ok::<_, Error>(AtomicU64::new(0)))
                .ok()
                .map(|waiting| {
                    waiting.fetch_add(bytes, Ordering::Relaxed);
                    (waiting, bytes)
                }),
        )
    }

    /// Whether the budget is exhausted.
    pub(super) fn is_last(&self) -> bool {
        self.0.as_ref().is_some_and(|(waiting, _)| {
            waiting.load(Ordering::Relaxed) >= memory_limit().unwrap_or(UNKNOWN / 4)
        })
    }
}

impl Drop for BudgetGuard {
    fn drop(&mut self) {
        if let Some((waiting, bytes)) = &self.0 {
            waiting.fetch_sub(*bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_with_and_without_units() {
        for (text, bytes) in [
            ("1000", 1000),
            ("512MB", 512 << 20),
            ("2 GiB", 2 << 30),
            ("64k", 64 << 10),
            ("1T", 1 << 40),
            (" 7b ", 7),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "MB",
            "-1",
            "1.5GB",
            "12 parsecs",
            "99999999999999999999",
            "99999999T",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_machine_has_memory() {
        assert!(memory() > 64 << 20);
        assert!(memory_limit().unwrap() > 0);
    }
}
