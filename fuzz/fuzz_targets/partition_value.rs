//! libFuzzer calls `deltafast_fuzz::readers::partition_value`.
#![no_main]

deltafast_fuzz::target!(partition_value);
