//! Tests of the commands.

mod maintain;
mod write;
