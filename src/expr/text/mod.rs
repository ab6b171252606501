//! Conversion between values and strings exactly as in Spark's casts.
//!
//! Rejected: arrow-cast's string conversions, which differ in number formats (`1e10`), in the input
//! that they accept (`2024-3-1`, `1.`, blanks) and in time zones.

pub(crate) mod datetime;
pub(crate) mod number;
