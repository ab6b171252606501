//! libFuzzer calls `deltafast_fuzz::readers::deletion_vector`.
#![no_main]

deltafast_fuzz::target!(deletion_vector);
