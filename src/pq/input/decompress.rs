//! Codecs: the stored bytes of a page -> exactly as many as it announces.

use std::cell::RefCell;
use std::io::Read;

use parquet::basic::CompressionCodec;

use crate::error::{Error, Result};
use deltafast_snappy as snappy;

/// Codecs that are decompressed here.
#[derive(Debug, Clone, Copy)]
pub(in crate::pq) enum PageDecompressor {
    Snappy,
    Zstd,
    Gzip,
    Brotli,
}

thread_local! {
    /// A decoder takes as much memory as a page.
    static ZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

impl PageDecompressor {
    /// The decompressor for pages of `codec`, if it is supported here.
    pub fn from_codec(codec: CompressionCodec) -> Option<Self> {
        match codec {
            CompressionCodec::SNAPPY => Some(Self::Snappy),
            CompressionCodec::ZSTD => Some(Self::Zstd),
            CompressionCodec::GZIP => Some(Self::Gzip),
            CompressionCodec::BROTLI => Some(Self::Brotli),
            _ => None,
        }
    }

    /// Decompresses `stored` into `out`, which it must fill.
    pub fn decompress_into(self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let wanted = out.len();
        // The number of bytes, as far as known: one more than wanted means too many.
        let length = match self {
            // A page without values may have no bytes at all.
            _ if wanted == 0 => 0,
            Self::Snappy => match snappy::decompressed_size(stored).map_err(damaged)? {
                length if length == wanted => snappy::decompress(stored, out)
                    .map(|()| length)
                    .map_err(damaged)?,
                other => other,
            },
            Self::Zstd => ZSTD.with_borrow_mut(|decoder| {
                let decoder = match decoder {
                    Some(decoder) => decoder,
                    None => decoder.insert(zstd::bulk::Decompressor::new().map_err(damaged)?),
                };
                decoder.decompress_to_buffer(stored, out).map_err(damaged)
            })?,
            Self::Gzip => {
                fill_from(&mut flate2::read::MultiGzDecoder::new(stored), out).map_err(damaged)?
            }
            Self::Brotli => {
                fill_from(&mut brotli::Decompressor::new(stored, 4096), out).map_err(damaged)?
            }
        };
        expect(length, wanted)
    }
}

fn damaged(error: impl std::fmt::Display) -> Error {
    let text = error.to_string();
    Error::library_without_memory(&text).unwrap_or_else(|| {
        Error::corrupt_data(format!("a Parquet page cannot be decompressed: {text}"))
    })
}

fn expect(length: usize, wanted: usize) -> Result<()> {
    if length == wanted {
        return Ok(());
    }
    let most = if length > wanted { "more" } else { "fewer" };
    Err(Error::corrupt_data(format!(
        "a Parquet page expands to {most} bytes than the {wanted} that it announces"
    )))
}

/// Fills `out` and checks for further bytes: returns the bytes read, one more than requested if
/// there are any.
fn fill_from(from: &mut impl Read, out: &mut [u8]) -> std::io::Result<usize> {
    let mut read = 0;
    while let Some(rest) = out.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => return Ok(read),
            Ok(count) => read += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read + from.read(&mut [0])?)
}
