//! Canonical paths of data files in the log.
//!
//! The log holds URI-encoded paths, relative to the table or absolute. Two spellings of one file
//! must be one key: percent-encodings are decoded, and `/a`, `file:/a`, `file:///a` all become
//! `/a`.
//!
//! Protocol: "Add File and Remove File" (`path`). Cost: nothing for the usual path, which is its
//! own canonical form.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::error::{Error, Result};

/// The canonical form of `path`.
///
/// ```
/// use deltafast::protocol::data_path::canonical;
///
/// assert_eq!(canonical("day=2024-01-01/a%20b.parquet")?, "day=2024-01-01/a b.parquet");
/// assert_eq!(canonical("file:///data/a.parquet")?, "/data/a.parquet");
/// # Ok::<(), deltafast::error::Error>(())
/// ```
///
/// # Errors
/// [`Error::Corrupt`] when the decoded bytes are not UTF-8 or the path is empty.
pub fn canonical(path: &str) -> Result<Cow<'_, str>> {
    if path.is_empty() {
        return Err(Error::corrupt("a file action has an empty path"));
    }
    if !needs_canonicalization(path.as_bytes()) {
        return Ok(Cow::Borrowed(path));
    }
    let decoded = percent_decode_str(path)
        .decode_utf8()
        .map_err(|_| Error::corrupt(format!("the path `{path}` does not decode to UTF-8")))?;
    if decoded.contains('\0') {
        return Err(Error::corrupt(format!(
            "the path `{path}` holds a zero byte"
        )));
    }
    let Some(rest) = decoded.strip_prefix("file:") else {
        return Ok(decoded);
    };
    let absolute = match rest.strip_prefix("//") {
        Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
        None => rest,
    };
    if !absolute.starts_with('/') {
        return Ok(decoded);
    }
    Ok(Cow::Owned(format!("/{}", absolute.trim_start_matches('/'))))
}

/// Whether the canonical form may differ from the path: it has an encoding, a scheme, or a zero
/// byte.
#[must_use]
pub fn needs_canonicalization(path: &[u8]) -> bool {
    memchr::memchr2(b'%', 0, path).is_some() || path.starts_with(b"file:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_file_are_one_key() {
        for spelling in [
            "/a/b c",
            "file:/a/b c",
            "file:///a/b c",
            "file:///a/b%20c",
            "/a/b%20c",
            "file://localhost/a/b%20c",
        ] {
            assert_eq!(canonical(spelling).unwrap(), "/a/b c", "{spelling}");
        }
        assert_eq!(canonical("p=a%3Ab/x.parquet").unwrap(), "p=a:b/x.parquet");
        assert_eq!(canonical("s3://b/a%25b").unwrap(), "s3://b/a%b");
        assert!(matches!(canonical("x.parquet").unwrap(), Cow::Borrowed(_)));
    }

    #[test]
    fn undecodable_paths_are_corrupt() {
        assert!(canonical("%ff").is_err());
        assert!(canonical("a%00b").is_err());
        assert!(canonical("").is_err());
    }
}
