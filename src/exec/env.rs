//! Clock, sleep and randomness as values, so that tests can replace them and replay a run.

use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::random;

/// The environment of code: clock, sleep and randomness.
pub trait RuntimeEnv: Debug + Send + Sync {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;
    /// Waits.
    fn sleep(&self, time: Duration);
    /// 64 random bits.
    fn random(&self) -> u64;

    /// A random UUID as a string.
    fn uuid(&self) -> String {
        random::uuid_of(self.random(), self.random())
    }
}

/// The system's clock: milliseconds since the epoch.
#[must_use]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// The real clock, sleep and randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEnv;

impl RuntimeEnv for SystemEnv {
    fn now_ms(&self) -> i64 {
        now_ms()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn random(&self) -> u64 {
        random::random()
    }
}
