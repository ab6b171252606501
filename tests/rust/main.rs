//! Tests of the crate from outside, one binary.

mod commit;
mod fuzz;
mod fuzz_trees;
mod maintain;
mod schedule;
mod table;
mod tables;
