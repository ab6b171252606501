//! Addresses of tables: classification as URL or local path, and their form in messages.

use std::path::PathBuf;

use url::Url;

use crate::error::{CallOption, Error, ErrorCode, Result};

/// Supported schemes.
pub const SCHEMES: [&str; 12] = [
    "s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https", "file", "memory",
];

/// An address that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableAddress {
    /// A path of a local disk, with `~` expanded.
    Path(PathBuf),
    /// A URL with one of the known schemes.
    Url(Url),
}

/// The scheme of a URL: the part before `:/`, or a known scheme before `:` alone. One letter is a
/// drive.
fn scheme_of(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once(':')?;
    let well_formed = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let known = || SCHEMES.iter().any(|name| scheme.eq_ignore_ascii_case(name));
    (well_formed && (rest.starts_with('/') || known())).then_some(scheme)
}

/// Whether an address is meant as a URL, usable or not, and not as a local path.
#[must_use]
pub fn is_url(address: &str) -> bool {
    let address = address.trim();
    // `s 3://…`, `"s3://…`, `://…`: mistyped URLs, not paths.
    let malformed = || {
        address
            .split_once("://")
            .is_some_and(|(before, _)| !before.contains(['/', '\\']) && before.chars().count() != 1)
    };
    scheme_of(address).is_some() || malformed()
}

/// Expands `~` in a local path; returns a URL unchanged.
///
/// # Errors
/// [`Error::Invalid`] where there is no such home folder.
pub fn expand(address: &str) -> Result<String> {
    let Some(rest) = address.strip_prefix('~').filter(|_| !is_url(address)) else {
        return Ok(address.to_owned());
    };
    let below = match rest.strip_prefix(std::path::is_separator) {
        Some(below) => below,
        None if rest.is_empty() => "",
        None => {
            return Err(Error::invalid(format!(
                "the home folder of another user is not looked up: write the path of `{address}`, or `./{address}` for a folder of that name"
            )));
        }
    };
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let home = home.ok_or_else(|| Error::invalid(format!("`{address}` has no meaning here: the home folder is not known; set HOME, or write the path")))?;
    let home = home
        .to_str()
        .ok_or_else(|| Error::invalid("the path of the home folder is not UTF-8"))?;
    let below = below.trim_start_matches(std::path::is_separator);
    Ok(if below.is_empty() {
        home.to_owned()
    } else {
        format!("{}/{below}", home.trim_end_matches('/'))
    })
}

impl TableAddress {
    /// Parses an address. An address with a scheme is a URL of that scheme or an error, never a
    /// folder of that name.
    ///
    /// # Errors
    /// [`Error::Invalid`] for addresses that cannot be used.
    pub fn parse(address: &str) -> Result<Self> {
        if address.trim().is_empty() {
            return Err(Error::invalid("the table's location is empty"));
        }
        if is_url(address) {
            return parse_url(address).map(Self::Url);
        }
        expand(address).map(|path| Self::Path(PathBuf::from(path)))
    }
}

fn parse_url(address: &str) -> Result<Url> {
    let bad = |why: &str| Error::invalid(format!("not a usable URL: {}: {why}", safe(address)));
    if address.trim().len() != address.len() || address.chars().any(char::is_control) {
        return Err(bad(
            "it has white space around it or control characters, such as a line end, in it",
        ));
    }
    let scheme = scheme_of(address)
        .ok_or_else(|| bad("it must begin with a scheme, as in `s3://bucket/table`"))?;
    let rest = address.split_once(':').map_or("", |(_, rest)| rest);
    let scheme = scheme.to_ascii_lowercase();
    if !SCHEMES.contains(&scheme.as_str()) {
        return Err(Error::invalid(format!(
            "there is no store for the scheme `{scheme}` of {}; known schemes are {}; for anything else pass a file system of fsspec, obstore or pyarrow as {}",
            safe(address),
            SCHEMES.join(", "),
            CallOption::Store
        ))
        .with_code(
            ErrorCode::UnknownStoreScheme,
            &[("scheme", &scheme), ("address", &safe(address))],
        ));
    }
    let may_lack_authority = matches!(scheme.as_str(), "file" | "memory");
    if !(rest.starts_with("//") || may_lack_authority && rest.starts_with('/')) {
        return Err(bad(&format!(
            "it must begin with `{scheme}://`; a pathlib.Path drops one slash, so give URLs as strings"
        )));
    }
    let url = Url::parse(address).map_err(|error| bad(&error.to_string()))?;
    let is_http = matches!(scheme.as_str(), "http" | "https");
    if url.fragment().is_some() || (url.query().is_some() && !is_http) {
        return Err(bad(&format!(
            "a `?` or `#` in a path must be written `%3F` or `%23`; credentials are given in {}",
            CallOption::StorageOptions
        )));
    }
    if matches!(scheme.as_str(), "file" | "memory") || is_http {
        return Ok(url);
    }
    let host = url.host_str().unwrap_or_default();
    if host.is_empty() {
        return Err(bad("it names no bucket or container"));
    }
    if url.port().is_some() {
        return Err(bad(
            "the port belongs in the option that names the service's endpoint",
        ));
    }
    let has_container = matches!(scheme.as_str(), "az" | "abfs" | "abfss");
    if url.password().is_some() || (!has_container && !url.username().is_empty()) {
        return Err(bad(&format!(
            "credentials are given in {}, not in the URL",
            CallOption::StorageOptions
        )));
    }
    if !host
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
    {
        return Err(bad(
            "the name of the bucket or container has characters that no such name has",
        ));
    }
    Ok(url)
}

/// The form of an address in messages, even if it is malformed: without the parts that may be a
/// password.
#[must_use]
pub fn safe(address: &str) -> String {
    let address = address.trim();
    let Some((scheme, rest)) = address.split_once(':').filter(|_| is_url(address)) else {
        return address.to_owned();
    };
    let bare = rest.trim_start_matches('/');
    let slashes = rest.strip_suffix(bare).unwrap_or_default();
    let bare = bare.rsplit_once('@').map_or(bare, |(_, after)| after);
    let bare = bare.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = bare.split_at(bare.find('/').unwrap_or(bare.len()));
    let authority = match authority.split_once(':') {
        Some((host, port)) if !port.bytes().all(|b| b.is_ascii_digit()) => format!("{host}:…"),
        _ => authority.to_owned(),
    };
    format!("{scheme}:{slashes}{authority}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_has_a_scheme_is_a_url_or_an_error() {
        for address in [
            "s3://my bucket/t",
            "gs://<bucket>/t",
            "s3://bucket:99999/t",
            "s3://bucket:9000/t",
            "abfss://c@acct:port/t",
            "abfss://c:secret@acct.dfs.core.windows.net/t",
            "s3://key:secret@bucket/t",
            "s3:///t",
            "s3:/bucket/t",
            "s3:bucket/t",
            "S3:bucket/t",
            "s3:\\bucket\\t",
            "file:t",
            "file:~/t",
            "file:///t#1",
            "s3://bucket/a?b",
            "s3://bucket/a#b",
            "s3://bucket/t\n",
            " s3://bucket/t",
            "s3://buck\tet/t",
            "s3://b%20t/t",
            "://bucket/t",
            "\"s3://bucket/t",
            "s 3://bucket/t",
            "hdfs://host/t",
            "gcs://bucket/t",
            "foo:/bar",
            "",
            " ",
        ] {
            let error = TableAddress::parse(address).unwrap_err();
            assert!(
                matches!(error, Error::Invalid { .. }) && !error.to_string().contains("secret"),
                "{address}: {error}"
            );
        }
        for address in [
            "s3://bucket/my table",
            "s3a://b.c-d_e/t",
            "az://c/t",
            "abfss://c@a.dfs.core.windows.net/t",
            "file:/t",
            "file:///t",
            "memory://m/t",
            "memory:///t",
        ] {
            assert!(
                matches!(TableAddress::parse(address).unwrap(), TableAddress::Url(_)),
                "{address}"
            );
        }
        for path in [
            "t",
            "/t",
            "./s3:/t",
            "/data/s3://t",
            "a:b",
            "2026-01-01T00:00/t",
            "C:/t",
            "C:\\t",
            "x/~",
        ] {
            assert_eq!(
                TableAddress::parse(path).unwrap(),
                TableAddress::Path(PathBuf::from(path))
            );
        }
    }

    #[test]
    fn a_tilde_is_the_home_folder() {
        let home = std::env::home_dir().unwrap();
        for (path, below) in [("~", ""), ("~/", ""), ("~/a/b", "a/b"), ("~//a", "a")] {
            let expected = if below.is_empty() {
                home.clone()
            } else {
                home.join(below)
            };
            assert_eq!(
                TableAddress::parse(path).unwrap(),
                TableAddress::Path(expected),
                "{path}"
            );
        }
        assert!(TableAddress::parse("~somebody/t").is_err());
        assert_eq!(expand("s3://b/~").unwrap(), "s3://b/~");
    }

    #[test]
    fn no_part_that_may_be_a_password_is_shown() {
        for (address, expected) in [
            ("s3://KEY:SEC/RET@bucket/t", "s3://bucket/t"),
            ("s3://KEY:SECRET/t", "s3://KEY:…/t"),
            ("http://u:p@h:9000/t?sig=1#2", "http://h:9000/t"),
            ("http://u:a b@h/t", "http://h/t"),
            ("file:/t", "file:/t"),
            ("/t@x", "/t@x"),
        ] {
            assert_eq!(safe(address), expected);
        }
    }
}
