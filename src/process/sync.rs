//! The means by which threads wait for each other or race, under one name, so that the models of
//! `crates/models` can put a checker's own in their place.

pub(crate) use std::sync::atomic::{AtomicPtr, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
