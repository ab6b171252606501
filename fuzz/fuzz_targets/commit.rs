//! libFuzzer calls `deltafast_fuzz::readers::commit`.
#![no_main]

deltafast_fuzz::target!(commit);
