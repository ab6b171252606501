//! libFuzzer calls `deltafast_fuzz::readers::last_checkpoint`.
#![no_main]

deltafast_fuzz::target!(last_checkpoint);
