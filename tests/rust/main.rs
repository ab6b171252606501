//! Tests of the crate from outside, one binary.

#![allow(clippy::too_many_lines, reason = "a test is read from top to bottom")]

mod commit;
mod fuzz;
#[path = "../../fuzz/src/readers.rs"]
mod fuzz_readers;
mod fuzz_trees;
mod ops;
mod schedule;
mod tables;
