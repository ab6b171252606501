//! deltafast: Delta Lake tables of any size.

pub mod error;
pub mod protocol;
