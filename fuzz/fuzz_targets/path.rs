//! libFuzzer calls `deltafast_fuzz::readers::path`.
#![no_main]

deltafast_fuzz::target!(path);
