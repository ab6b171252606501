//! libFuzzer calls `deltafast_fuzz::readers::checkpoint`.
#![no_main]

deltafast_fuzz::target!(checkpoint);
