//! The fuzz targets of deltafast in the layout of cargo-fuzz; `make libfuzzer` runs them.

pub mod readers;

/// A target that gives the inputs of libFuzzer to a reader.
#[macro_export]
macro_rules! target {
    ($reader:ident) => {
        static READER: std::sync::LazyLock<Box<dyn Fn(&[u8]) + Send + Sync>> =
            std::sync::LazyLock::new(|| Box::new($crate::readers::$reader()));

        libfuzzer_sys::fuzz_target!(|input: &[u8]| READER(input));
    };
}
