//! A slot for a value that threads create without waiting for each other: the first one stays.

use super::sync::{AtomicPtr, Ordering};

/// The slot's value if it `is_usable`, otherwise one that `make` creates. Where threads create one
/// at once, they all get the first; the others are dropped. A value that is not usable is replaced
/// and not freed.
///
/// # Safety
/// The pointers in the slot are null or from `Box::into_raw`, and nobody frees them as long as the
/// slot is shared.
///
/// # Errors
/// Those of `make`.
pub(crate) unsafe fn value_or_make<T, E>(
    slot: &AtomicPtr<T>,
    is_usable: impl Fn(&T) -> bool,
    make: impl FnOnce() -> Result<T, E>,
) -> Result<&T, E> {
    let usable = |known: *mut T| {
        // SAFETY: null, or a box that is not freed as long as the slot is borrowed.
        unsafe { known.as_ref() }.filter(|value| is_usable(value))
    };
    let mut known = slot.load(Ordering::Acquire);
    if let Some(value) = usable(known) {
        return Ok(value);
    }
    let made = Box::into_raw(Box::new(make()?));
    while let Err(other) = slot.compare_exchange(known, made, Ordering::AcqRel, Ordering::Acquire) {
        if let Some(value) = usable(other) {
            // SAFETY: no other thread has seen `made`.
            drop(unsafe { Box::from_raw(made) });
            return Ok(value);
        }
        known = other;
    }
    // SAFETY: `made` is from `Box::into_raw` and now stays.
    Ok(unsafe { &*made })
}
