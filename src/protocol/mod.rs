//! The nouns of the Delta protocol: pure data, no input or output.
//!
//! Names follow the protocol text; each file's doc names the section it stands for.

pub mod schema;
