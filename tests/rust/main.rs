//! Tests of the crate from outside, one binary.

mod fuzz;
