//! libFuzzer calls `deltafast_fuzz::readers::schema`.
#![no_main]

deltafast_fuzz::target!(schema);
