//! Values <-> text exactly as Spark's casts write and read them.
//!
//! Rejected: arrow-cast's text conversions, which differ in number formats (`1e10`), in what they
//! read (`2024-3-1`, `1.`, blanks) and in time zones.

pub mod datetime;
pub mod number;
