//! libFuzzer calls `deltafast_fuzz::readers::expression`.
#![no_main]

deltafast_fuzz::target!(expression);
