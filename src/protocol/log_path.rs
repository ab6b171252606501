//! Names of the files in `_delta_log`: string -> [`LogFile`].
//!
//! Files with any other name are ignored: temporary files, hidden files, other tools' files.
//!
//! Protocol: "File Types" (delta log entries, checkpoints, log compaction, version checksum).

/// The folder of the log, below the table's root.
pub const LOG_DIR: &str = "_delta_log";
/// The hint file.
pub const LAST_CHECKPOINT: &str = "_delta_log/_last_checkpoint";
/// The folder of checkpoint sidecars.
pub const SIDECAR_DIR: &str = "_delta_log/_sidecars";
/// The folder of staged commits, which a catalog ratifies.
pub const STAGED_DIR: &str = "_delta_log/_staged_commits";

/// The kind of a file in the log, from its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogFile {
    /// `n.json`
    Commit(i64),
    /// `x.y.compacted.json`
    Compacted(i64, i64),
    /// `n.checkpoint.parquet`: V1 or V2
    Classic(i64),
    /// `n.checkpoint.o.p.parquet`: part o (from 1) of p
    Part(i64, u32, u32),
    /// `n.checkpoint.uuid.json` (true) or `.parquet` (false)
    Uuid(i64, bool),
    /// `n.crc`
    Checksum(i64),
}

impl LogFile {
    /// Parses a file name (without its folder).
    ///
    /// ```
    /// use deltafast::protocol::log_path::LogFile;
    ///
    /// assert_eq!(LogFile::parse("00000000000000000007.json"), Some(LogFile::Commit(7)));
    /// let part = LogFile::parse("00000000000000000010.checkpoint.0000000001.0000000002.parquet");
    /// assert_eq!(part, Some(LogFile::Part(10, 1, 2)));
    /// assert_eq!(LogFile::parse("7.json"), None);
    /// ```
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (version, rest) = name.split_once('.')?;
        let version = number(version, 20)?;
        let parts: Vec<&str> = rest.split('.').collect();
        match parts.as_slice() {
            ["json"] => Some(Self::Commit(version)),
            ["crc"] => Some(Self::Checksum(version)),
            [end, "compacted", "json"] => {
                let end = number(end, 20)?;
                (end >= version).then_some(Self::Compacted(version, end))
            }
            ["checkpoint", "parquet"] => Some(Self::Classic(version)),
            ["checkpoint", _, "parquet"] => Some(Self::Uuid(version, false)),
            ["checkpoint", _, "json"] => Some(Self::Uuid(version, true)),
            ["checkpoint", part, of, "parquet"] => {
                let (part, of) = (
                    u32::try_from(number(part, 10)?).ok()?,
                    u32::try_from(number(of, 10)?).ok()?,
                );
                (1..=of)
                    .contains(&part)
                    .then_some(Self::Part(version, part, of))
            }
            _ => None,
        }
    }

    /// The version that the file belongs to; the last one of a compaction.
    #[must_use]
    pub fn version(&self) -> i64 {
        match self {
            Self::Commit(v)
            | Self::Compacted(_, v)
            | Self::Classic(v)
            | Self::Part(v, ..)
            | Self::Uuid(v, _)
            | Self::Checksum(v) => *v,
        }
    }
}

fn number(text: &str, digits: usize) -> Option<i64> {
    (text.len() == digits && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

/// `n.json`, below the table's root.
#[must_use]
pub fn commit(version: i64) -> String {
    format!("{LOG_DIR}/{version:020}.json")
}

/// `n.crc`, below the table's root.
#[must_use]
pub fn checksum(version: i64) -> String {
    format!("{LOG_DIR}/{version:020}.crc")
}

/// `n.checkpoint.parquet`, below the table's root.
#[must_use]
pub fn classic_checkpoint(version: i64) -> String {
    format!("{LOG_DIR}/{version:020}.checkpoint.parquet")
}

/// `n.checkpoint.o.p.parquet`: part `part` (from 1) of `of`, below the table's root.
#[must_use]
pub fn checkpoint_part(version: i64, part: u32, of: u32) -> String {
    format!("{LOG_DIR}/{version:020}.checkpoint.{part:010}.{of:010}.parquet")
}

/// `n.checkpoint.uuid.json` or `.parquet`, below the table's root.
#[must_use]
pub fn uuid_checkpoint(version: i64, uuid: &str, json: bool) -> String {
    format!(
        "{LOG_DIR}/{version:020}.checkpoint.{uuid}.{}",
        if json { "json" } else { "parquet" }
    )
}

/// `x.y.compacted.json`, below the table's root.
#[must_use]
pub fn compaction(first: i64, last: i64) -> String {
    format!("{LOG_DIR}/{first:020}.{last:020}.compacted.json")
}

/// `n.uuid.json`: a staged commit's name in [`STAGED_DIR`].
#[must_use]
pub fn staged(version: i64, uuid: &str) -> String {
    format!("{version:020}.{uuid}.json")
}

/// The version in the name of a staged commit.
#[must_use]
pub fn staged_version(name: &str) -> Option<i64> {
    let (version, rest) = name.split_once('.')?;
    let uuid = rest.strip_suffix(".json")?;
    (!uuid.is_empty() && !uuid.contains('.')).then(|| number(version, 20))?
}

/// The version in a commit's path: published (`…/n.json`) or staged
/// (`…/_staged_commits/n.uuid.json`).
#[must_use]
pub fn commit_version(path: &str) -> Option<i64> {
    let name = path.rsplit('/').next()?;
    let (version, rest) = name.split_once('.')?;
    rest.ends_with("json").then(|| number(version, 20))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_name_is_known() {
        let v = "00000000000000000010";
        let cases = [
            (format!("{v}.json"), Some(LogFile::Commit(10))),
            (format!("{v}.crc"), Some(LogFile::Checksum(10))),
            (
                format!("00000000000000000004.{v}.compacted.json"),
                Some(LogFile::Compacted(4, 10)),
            ),
            (
                format!("{v}.checkpoint.parquet"),
                Some(LogFile::Classic(10)),
            ),
            (
                format!("{v}.checkpoint.0000000002.0000000003.parquet"),
                Some(LogFile::Part(10, 2, 3)),
            ),
            (
                format!("{v}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"),
                Some(LogFile::Uuid(10, true)),
            ),
            (
                format!("{v}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"),
                Some(LogFile::Uuid(10, false)),
            ),
            (
                format!("{v}.checkpoint.0000000004.0000000003.parquet"),
                None,
            ),
            ("_last_checkpoint".to_owned(), None),
            (format!(".{v}.json.crc"), None),
            (format!("{v}.json.tmp"), None),
            ("10.json".to_owned(), None),
            ("99999999999999999999.json".to_owned(), None),
        ];
        for (name, expected) in cases {
            assert_eq!(LogFile::parse(&name), expected, "{name}");
        }
        assert_eq!(staged_version(&staged(10, "abc")), Some(10));
        assert_eq!(
            [
                staged_version(&format!("{v}.json")),
                staged_version("10.abc.json"),
                staged_version(&format!("{v}.abc.crc"))
            ],
            [None; 3]
        );
        assert_eq!(
            commit_version(&format!("s3://b/t/_delta_log/_staged_commits/{v}.abc.json")),
            Some(10)
        );
    }
}
