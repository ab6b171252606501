//! External text in messages: made safe to show, without credentials.

use std::fmt;

/// External text, made safe to show: one line, no control characters, truncated, userinfo and
/// signed query strings of URLs removed.
pub(super) struct RedactedText<'a>(pub(super) &'a str);

impl fmt::Display for RedactedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(self.0))
    }
}

/// The longest piece of external text in a message.
const SHOWN_LIMIT: usize = 400;

/// `text` for a message: one line, control characters replaced, truncated, URLs without
/// credentials.
#[must_use]
pub fn shown(text: &str) -> String {
    let text = redact(text);
    let mut out = String::with_capacity(text.len().min(SHOWN_LIMIT + 4));
    for (n, c) in text.chars().enumerate() {
        if n >= SHOWN_LIMIT {
            out.push('…');
            break;
        }
        out.push(match c {
            '\n' | '\r' | '\t' => ' ',
            c if c.is_control() || is_invisible(c) => '\u{fffd}',
            c => c,
        });
    }
    out
}

/// Characters that change the display of the text around them or are not seen: those of the
/// categories Cf, Zl and Zp.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Removes `user:password@` and the query string from every `scheme://…` in `text`.
fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = after
            .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ')' | '>' | ','))
            .unwrap_or(after.len());
        let (url, tail) = after.split_at(end);
        let (mut authority, mut path) = url.split_at(url.find('/').unwrap_or(url.len()));
        let mut host = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let has_no_port = |host: &str| {
            host.rsplit_once(':').is_some_and(|(_, port)| {
                !port.ends_with(']') && !port.bytes().all(|b| b.is_ascii_digit())
            })
        };
        if has_no_port(host) {
            // A password that contains a slash, or a password without a host after it.
            match url.rsplit_once('@') {
                Some((_, rest)) => {
                    (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                    host = authority;
                }
                None => host = host.split_once(':').map_or(host, |(name, _)| name),
            }
        }
        out.push_str(host);
        out.push_str(path.split_once('?').map_or(path, |(path, _)| path));
        rest = tail;
    }
    out.push_str(rest);
    out
}
