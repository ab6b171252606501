//! The files outside of the table's own store that may be read.

use percent_encoding::percent_decode_str;
use url::Url;

/// The files outside of the table's own store that a caller allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ExternalPaths {
    /// None.
    #[default]
    Refused,
    /// All.
    Allowed,
    /// Those in or below these folders: URLs, absolute paths, or paths relative to the table.
    Prefixes(Vec<String>),
}

impl ExternalPaths {
    /// `"true"`, `"false"`, or prefixes separated by commas.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "" | "false" => Self::Refused,
            "true" => Self::Allowed,
            list => Self::Prefixes(
                list.split(',')
                    .map(|p| p.trim().to_owned())
                    .filter(|p| !p.is_empty())
                    .collect(),
            ),
        }
    }

    /// Whether the file may be read; `root` is the URL of the table. Origins and whole segments of
    /// paths are compared.
    pub(super) fn allows(&self, file: &FileLocation, root: &str) -> bool {
        let covers = |prefix: &String| {
            let found = [
                prefix.clone(),
                percent_decode_str(prefix).decode_utf8_lossy().into_owned(),
            ]
            .map(|prefix| FileLocation::parse(&prefix, root));
            found.iter().flatten().any(|folder| {
                folder.origin == file.origin && file.segments.starts_with(&folder.segments)
            })
        };
        match self {
            Self::Refused => false,
            Self::Allowed => true,
            Self::Prefixes(prefixes) => prefixes.iter().any(covers),
        }
    }
}

/// The origin of a store: scheme, host and port, and the user or container before the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoreOrigin {
    scheme: String,
    user: String,
    host: String,
    port: Option<u16>,
}

impl StoreOrigin {
    /// `None` for an authority that parsers read in different ways.
    pub(super) fn parse(scheme: &str, authority: &str) -> Option<Self> {
        if authority.contains(|c: char| {
            c.is_whitespace() || c.is_control() || matches!(c, '\\' | '?' | '#' | '/')
        }) {
            return None;
        }
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "s3a" | "s3n" => "s3".to_owned(),
            "abfs" | "wasb" | "wasbs" => "abfss".to_owned(),
            other => other.to_owned(),
        };
        if scheme == "file" {
            let host = if authority.eq_ignore_ascii_case("localhost") {
                ""
            } else {
                authority
            };
            return Some(Self {
                scheme,
                user: String::new(),
                host: host.to_owned(),
                port: None,
            });
        }
        let url = Url::parse(&format!("{scheme}://{authority}/")).ok()?;
        // Two `@`, or one that is percent-encoded: parsers disagree about the start of the host.
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        if user.contains('@') {
            return None;
        }
        Some(Self {
            scheme,
            user: user.to_owned(),
            host: url.host_str().unwrap_or_default().to_owned(),
            port: url.port_or_known_default(),
        })
    }

    /// The origin of a URL.
    pub(super) fn of_url(url: &str) -> Option<Self> {
        let (scheme, rest) = scheme_of(url)?;
        Self::parse(scheme, rest.split('/').next().unwrap_or_default())
    }
}

/// A file or folder in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileLocation {
    pub(super) origin: StoreOrigin,
    pub(super) segments: Vec<String>,
}

impl FileLocation {
    /// `None` for paths that climb out of their store and URLs that are malformed.
    pub(super) fn new(origin: StoreOrigin, path: &str) -> Option<Self> {
        let inside = normalised(path)?;
        let segments = inside
            .split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        Some(Self { origin, segments })
    }

    /// A URL, an absolute path of a local disk, or a path relative to the table at `root`.
    pub(super) fn parse(text: &str, root: &str) -> Option<Self> {
        if let Some((scheme, rest)) = scheme_of(text) {
            let (authority, inside) = rest.split_once('/').unwrap_or((rest, ""));
            return Self::new(StoreOrigin::parse(scheme, authority)?, inside);
        }
        if text.starts_with('/') {
            return Self::new(StoreOrigin::parse("file", "")?, text);
        }
        Self::below(root, text)
    }

    /// A path relative to the table at `root`.
    pub(super) fn below(root: &str, path: &str) -> Option<Self> {
        let (_, rest) = scheme_of(root)?;
        let base = rest.split_once('/').map_or("", |(_, base)| base);
        let base = percent_decode_str(base).decode_utf8().ok()?;
        Self::new(StoreOrigin::of_url(root)?, &format!("{base}/{path}"))
    }
}

/// `scheme://rest` of a URL.
pub(super) fn scheme_of(path: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = path.split_once("://")?;
    let is_scheme = scheme.len() > 1
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    is_scheme.then_some((scheme, rest))
}

/// `path` without `.`, `..` and empty parts; `None` when it climbs out.
pub(super) fn normalised(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "file:///data/my%20table/";

    fn allowed(prefixes: &str, file: &str) -> bool {
        FileLocation::parse(file, ROOT)
            .is_some_and(|file| ExternalPaths::parse(prefixes).allows(&file, ROOT))
    }

    #[test]
    fn origins_are_compared_as_origins() {
        for file in [
            "http://good:9000/a/x",
            "http://GOOD:9000/a/x",
            "http://good:9000//a/./x",
        ] {
            assert!(allowed("http://good:9000/a", file), "{file}");
        }
        for file in [
            "http://good:9000@evil/a/x",
            "http://good:9000/@evil/x",
            "http://evil/http://good:9000/a/x",
            "http://good:9000\\@evil/a/x",
            "http://good:9000?@evil/a/x",
            "http://good:9000#@evil/a/x",
            "http://user@good:9000/a/x",
            "http://a@b@good:9000/a/x",
            "http://good:90001/a/x",
            "http://good:900/a/x",
            "http://good/a/x",
            "https://good:9000/a/x",
            "http://good:9000.evil/a/x",
        ] {
            assert!(!allowed("http://good:9000/a", file), "{file}");
        }
        assert!(
            allowed("http://h", "http://h:80/x")
                && allowed("https://h:443/", "https://h/x")
                && !allowed("http://h:443", "https://h/x")
        );
        assert!(
            allowed("s3://b", "s3a://b/x")
                && !allowed("s3://b", "s3://b2/x")
                && !allowed("s3://b", "gs://b/x")
        );
        assert!(allowed(
            "abfss://c@acct.dfs.core.windows.net",
            "abfs://c@acct.dfs.core.windows.net/x"
        ));
        assert!(!allowed(
            "abfss://c@acct.dfs.core.windows.net",
            "abfss://other@acct.dfs.core.windows.net/x"
        ));
    }

    #[test]
    fn paths_are_compared_by_whole_segments() {
        assert!(
            allowed("/data/shared", "/data/shared/x") && allowed("/data/shared/", "/data/shared/x")
        );
        assert!(
            allowed("/data/shared", "file:///data/shared/x")
                && allowed("file:///data/shared", "/data/shared/x")
        );
        assert!(
            allowed("s3://b/my%20files", "s3://b/my files/x")
                && allowed("s3://b/100%25", "s3://b/100%/x")
        );
        assert!(allowed("../shared", "../shared/x") && allowed("/data/shared", "../shared/x"));
        for file in [
            "/data/shared-private/x",
            "/data/shared/../private/x",
            "../shared-private/x",
            "../shared/../private/x",
            "/data",
            "../../../../x",
        ] {
            assert!(
                !allowed("/data/shared, ../shared, s3://b/ok", file),
                "{file}"
            );
        }
        assert!(
            !allowed("s3://b/ok", "s3://b/ok/../secret/x")
                && !allowed("s3://b/ok", "s3://b/okay/x")
        );
    }
}
