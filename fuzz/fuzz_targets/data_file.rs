//! libFuzzer calls `deltafast_fuzz::readers::data_file`.
#![no_main]

deltafast_fuzz::target!(data_file);
