//! libFuzzer calls `deltafast_fuzz::readers::statistics`.
#![no_main]

deltafast_fuzz::target!(statistics);
