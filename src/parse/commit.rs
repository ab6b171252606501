//! Commit files: JSON lines -> columns of file actions, and the other actions.
//!
//! A line goes straight into views of the text: no struct, no copy, no allocation for an `add` of
//! the usual form. Statistics stay in the text, still escaped, until they are needed. Large files
//! are split at newlines and parsed in pieces, on all cores.
//!
//! Protocol: "Delta Log Entries", "Actions". Cost: one pass; 24 bytes per value in addition to the
//! text itself.

use std::ops::Range;

use arrow_array::builder::{BooleanBufferBuilder, BooleanBuilder, Int32Builder, Int64Builder};
use arrow_array::{Array, Int64Array};
use bytes::Bytes;

use super::batch::{DvColumns, FileActionProjection, FileBatch, StatsColumn};
use super::cursor::{JsonCursor, JsonSyntaxError, StringSpan, unescape};
use super::json_lines;
use super::views::{JsonStringViewBuilder, StringViewError, Utf8BufferSlice};
use crate::error::{Error, Result};
use crate::protocol::action::{self, DomainMetadata, Metadata, Protocol, SetTransaction, Sidecar};

/// The actions to parse of a commit; the others are skipped.
#[derive(Debug, Clone, Default)]
pub struct ActionSelection {
    /// Adds, with these columns.
    pub adds: Option<FileActionProjection>,
    /// Removes, with these columns.
    pub removes: Option<FileActionProjection>,
    /// Change data files, with these columns.
    pub cdc: Option<FileActionProjection>,
    /// Protocol and metadata.
    pub protocol_and_metadata: bool,
    /// Application transactions and domains.
    pub transactions_and_domains: bool,
    /// Commit information, as JSON text.
    pub info: bool,
    /// Sidecars, in the manifests of V2 checkpoints.
    pub sidecars: bool,
}

impl ActionSelection {
    /// The actions that hold the changes of a commit: all file actions, with these columns, and
    /// the metadata.
    #[must_use]
    pub fn of_changes(columns: &FileActionProjection) -> Self {
        Self {
            adds: Some(columns.clone()),
            removes: Some(columns.clone()),
            cdc: Some(columns.clone()),
            protocol_and_metadata: true,
            ..Self::default()
        }
    }
}

/// Actions other than file actions.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum NonFileAction {
    /// `protocol`
    Protocol(Protocol),
    /// `metaData`
    Metadata(Box<Metadata>),
    /// `txn`
    Txn(SetTransaction),
    /// `domainMetadata`
    Domain(DomainMetadata),
    /// `commitInfo`, its JSON text
    CommitInfo(String),
    /// `sidecar`
    Sidecar(Sidecar),
}

/// The actions of a piece of a commit.
#[derive(Debug)]
pub struct ParsedActions {
    /// `add`
    pub adds: FileBatch,
    /// `remove`
    pub removes: FileBatch,
    /// `cdc`
    pub cdc: FileBatch,
    /// All other requested actions, in order.
    pub non_file_actions: Vec<NonFileAction>,
    /// For each given mark, the number of actions before it.
    pub actions_before_mark: Vec<u32>,
}

/// Parses the lines of `text[piece]`. `marks` are ascending positions at which lines begin; see
/// [`ParsedActions::marks`].
///
/// # Errors
/// [`Error::Corrupt`] with the line, counted from the text's beginning. The caller names file and
/// version.
pub fn parse(
    text: &Bytes,
    piece: Range<usize>,
    take: &ActionSelection,
    marks: &[usize],
) -> Result<ParsedActions> {
    json_lines::check_is_text(text.get(piece.clone()).unwrap_or_default())?;
    let viewed = Utf8BufferSlice::new(text, piece.clone()).map_err(|error| match error {
        StringViewError::NotUtf8(at) => {
            let line = memchr::memchr_iter(b'\n', text.get(..at).unwrap_or_default()).count();
            Error::corrupt("not UTF-8").at_line(line as u64 + 1)
        }
        StringViewError::TooLong => Error::corrupt(format!(
            "the text has {} bytes; at most 4 GiB are read at once",
            text.len()
        )),
    })?;
    let mut parser = CommitParser::new(take, &viewed);
    let mut cursor = JsonCursor::new(text.get(..piece.end).unwrap_or_default(), piece.start);
    let mut orders = Vec::with_capacity(marks.len());
    while cursor.at() < piece.end {
        let start = cursor.at();
        while marks.get(orders.len()).is_some_and(|mark| *mark <= start) {
            orders.push(parser.order);
        }
        if let Err(failure) = parser.line(&mut cursor) {
            let line = memchr::memchr_iter(b'\n', text.get(..start).unwrap_or_default()).count()
                as u64
                + 1;
            return Err(match failure {
                CommitParseError::Json(what) => {
                    Error::corrupt(format!("not a JSON action: {what}"))
                }
                CommitParseError::Action(error) => error,
            }
            .at_line(line));
        }
    }
    orders.resize(marks.len(), parser.order);
    Ok(ParsedActions {
        actions_before_mark: orders,
        ..parser.finish(&viewed)
    })
}

/// Estimates the number of adds in a text of this many bytes.
#[must_use]
pub fn estimated_adds(bytes: u64) -> u64 {
    bytes / 256
}

enum CommitParseError {
    Json(JsonSyntaxError),
    Action(Error),
}

impl From<JsonSyntaxError> for CommitParseError {
    fn from(what: JsonSyntaxError) -> Self {
        Self::Json(what)
    }
}

struct CommitParser<'a> {
    take: &'a ActionSelection,
    adds: Option<FileActionBuilders<'a>>,
    removes: Option<FileActionBuilders<'a>>,
    cdc: Option<FileActionBuilders<'a>>,
    non_file_actions: Vec<NonFileAction>,
    order: u32,
}

impl<'a> CommitParser<'a> {
    fn new(take: &'a ActionSelection, text: &Utf8BufferSlice) -> Self {
        let files = |wanted: &'a Option<FileActionProjection>| {
            wanted
                .as_ref()
                .map(|wanted| FileActionBuilders::new(wanted, text))
        };
        Self {
            take,
            adds: files(&take.adds),
            removes: files(&take.removes),
            cdc: files(&take.cdc),
            non_file_actions: Vec::new(),
            order: 0,
        }
    }

    fn line(&mut self, cursor: &mut JsonCursor<'_>) -> Result<(), CommitParseError> {
        cursor.skip_blanks();
        if cursor.consume_literal(b"\n") || cursor.peek().is_none() {
            return Ok(());
        }
        if !cursor.consume(b'{') {
            return Err(CommitParseError::Json("expected `{`"));
        }
        let mut failure = None;
        if !cursor.consume(b'}') {
            loop {
                let key = cursor.key()?;
                let name = cursor.name(key)?;
                if let Err(error) = self.action(cursor, &name) {
                    failure.get_or_insert(error);
                    break;
                }
                if cursor.consume(b',') {
                    continue;
                }
                if cursor.consume(b'}') {
                    break;
                }
                return Err(CommitParseError::Json("expected `,` or `}`"));
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        cursor.skip_blanks();
        if cursor.peek().is_none() || cursor.consume_literal(b"\n") {
            Ok(())
        } else {
            Err(CommitParseError::Json("text after the end of the action"))
        }
    }

    fn action(&mut self, cursor: &mut JsonCursor<'_>, name: &[u8]) -> Result<(), CommitParseError> {
        self.order = self.order.saturating_add(1);
        let files = match name {
            b"add" => self.adds.as_mut(),
            b"remove" => self.removes.as_mut(),
            b"cdc" => self.cdc.as_mut(),
            _ => return self.parse_non_file_action(cursor, name),
        };
        match files {
            Some(files) => files.action(cursor, self.order, name == b"add"),
            None => cursor
                .skip_value()
                .map(|_| ())
                .map_err(CommitParseError::Json),
        }
    }

    fn parse_non_file_action(
        &mut self,
        cursor: &mut JsonCursor<'_>,
        name: &[u8],
    ) -> Result<(), CommitParseError> {
        let (start, end) = cursor.skip_value()?;
        let body = std::str::from_utf8(cursor.text().get(start..end).unwrap_or_default())
            .unwrap_or_default();
        if body == "null" {
            return Ok(());
        }
        let take = self.take;
        let single = match name {
            b"protocol" if take.protocol_and_metadata => {
                action::from_json("protocol", body).map(NonFileAction::Protocol)
            }
            b"metaData" if take.protocol_and_metadata => {
                action::from_json("metaData", body).map(|m| NonFileAction::Metadata(Box::new(m)))
            }
            b"txn" if take.transactions_and_domains => {
                action::from_json("txn", body).map(NonFileAction::Txn)
            }
            b"domainMetadata" if take.transactions_and_domains => {
                action::from_json("domainMetadata", body).map(NonFileAction::Domain)
            }
            b"commitInfo" if take.info => Ok(NonFileAction::CommitInfo(body.to_owned())),
            b"sidecar" if take.sidecars => {
                action::from_json("sidecar", body).map(NonFileAction::Sidecar)
            }
            _ => return Ok(()),
        };
        self.non_file_actions
            .push(single.map_err(CommitParseError::Action)?);
        Ok(())
    }

    fn finish(self, text: &Utf8BufferSlice) -> ParsedActions {
        let empty = FileActionProjection::default();
        let finish = |files: Option<FileActionBuilders<'_>>| {
            files
                .unwrap_or_else(|| FileActionBuilders::new(&empty, text))
                .finish()
        };
        ParsedActions {
            adds: finish(self.adds),
            removes: finish(self.removes),
            cdc: finish(self.cdc),
            non_file_actions: self.non_file_actions,
            actions_before_mark: Vec::new(),
        }
    }
}

/// Builders of one kind of file action.
struct FileActionBuilders<'a> {
    wanted: &'a FileActionProjection,
    path: JsonStringViewBuilder,
    dv: DvBuilders,
    partition: Vec<JsonStringViewBuilder>,
    row_partition: Vec<Option<StringSpan>>,
    size: Int64Builder,
    time: Int64Builder,
    stats: JsonStringViewBuilder,
    tags: JsonStringViewBuilder,
    base_row_id: Int64Builder,
    commit_version: Int64Builder,
    data_change: BooleanBuilder,
    clustering: JsonStringViewBuilder,
    order: Vec<u32>,
}

struct DvBuilders {
    present: BooleanBufferBuilder,
    storage_type: JsonStringViewBuilder,
    path: JsonStringViewBuilder,
    offset: Int32Builder,
    size: Int32Builder,
    cardinality: Int64Builder,
}

#[derive(Default)]
struct DvDescriptorFields {
    storage_type: Option<StringSpan>,
    path: Option<StringSpan>,
    offset: Option<i64>,
    size: Option<i64>,
    cardinality: Option<i64>,
}

/// The fields of one file action, without its partition values.
#[derive(Default)]
struct FileActionFields {
    path: Option<StringSpan>,
    size: Option<i64>,
    /// The time of modification of an `add`, of deletion of a `remove`.
    time: Option<i64>,
    /// The JSON text, escaped.
    stats: Option<StringSpan>,
    /// Start and end of the JSON text.
    tags: Option<(usize, usize)>,
    base_row_id: Option<i64>,
    commit_version: Option<i64>,
    data_change: Option<bool>,
    clustering: Option<StringSpan>,
    dv: Option<DvDescriptorFields>,
}

impl FileActionFields {
    /// Parses an action, and its values of the partition columns `names` into `row_partition`;
    /// returns false for `null`.
    fn parse(
        &mut self,
        cursor: &mut JsonCursor<'_>,
        is_add: bool,
        names: &[String],
        row_partition: &mut [Option<StringSpan>],
    ) -> Result<bool, JsonSyntaxError> {
        cursor.object(|c, key| {
            match &*c.name(key)? {
                b"path" => self.path = c.opt_string()?,
                b"size" => self.size = c.opt_i64()?,
                b"partitionValues" => parse_partition_values(c, names, row_partition)?,
                b"modificationTime" if is_add => self.time = c.opt_i64()?,
                b"deletionTimestamp" if !is_add => self.time = c.opt_i64()?,
                b"stats" => self.stats = parse_stats(c)?,
                b"deletionVector" => self.dv = parse_dv_descriptor(c)?,
                b"tags" => self.tags = parse_tags(c)?,
                b"baseRowId" => self.base_row_id = c.opt_i64()?,
                b"defaultRowCommitVersion" => self.commit_version = c.opt_i64()?,
                b"dataChange" => self.data_change = c.opt_bool()?,
                b"clusteringProvider" => self.clustering = c.opt_string()?,
                _ => _ = c.skip_value()?,
            }
            Ok(())
        })
    }

    /// The path, after a check of the required fields.
    fn valid_path(&self, is_add: bool) -> Result<StringSpan> {
        let path = self
            .path
            .ok_or_else(|| Error::corrupt("a file action has no `path`"))?;
        if self.size.is_some_and(|size| size < 0) {
            return Err(Error::corrupt("a file action has a negative `size`"));
        }
        if is_add && self.size.is_none() {
            return Err(Error::corrupt("an `add` has no `size`"));
        }
        Ok(path)
    }
}

/// Parses partition values into the slots of the columns `names`, whose order most writers keep.
fn parse_partition_values(
    cursor: &mut JsonCursor<'_>,
    names: &[String],
    slots: &mut [Option<StringSpan>],
) -> Result<(), JsonSyntaxError> {
    let mut expected = 0;
    cursor.object(|c, key| {
        let value = c.opt_string_lossy()?;
        let name = c.slice(key);
        let at = match names.get(expected) {
            Some(next) if !key.escaped && next.as_bytes() == name => Some(expected),
            _ if key.escaped => {
                let name = unescape(name)?;
                names.iter().position(|p| *p == name)
            }
            _ => names.iter().position(|p| p.as_bytes() == name),
        };
        if let Some(at) = at {
            expected = at + 1;
            if let Some(slot) = slots.get_mut(at) {
                *slot = value;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Parses statistics; statistics that are not a string are unknown.
fn parse_stats(cursor: &mut JsonCursor<'_>) -> Result<Option<StringSpan>, JsonSyntaxError> {
    cursor.skip_blanks();
    if cursor.peek() == Some(b'"') {
        cursor.quoted_json().map(Some)
    } else {
        cursor.skip_value().map(|_| None)
    }
}

/// Parses tags as the start and end of their JSON text.
fn parse_tags(cursor: &mut JsonCursor<'_>) -> Result<Option<(usize, usize)>, JsonSyntaxError> {
    cursor.skip_blanks();
    if cursor.consume_null() {
        Ok(None)
    } else {
        cursor.skip_value().map(Some)
    }
}

/// Parses the descriptor of a deletion vector.
fn parse_dv_descriptor(
    cursor: &mut JsonCursor<'_>,
) -> Result<Option<DvDescriptorFields>, JsonSyntaxError> {
    let mut found = DvDescriptorFields::default();
    let is_object = cursor.object(|c, key| {
        match &*c.name(key)? {
            b"storageType" => found.storage_type = c.opt_string()?,
            b"pathOrInlineDv" => found.path = c.opt_string()?,
            b"offset" => found.offset = c.opt_i64()?,
            b"sizeInBytes" => found.size = c.opt_i64()?,
            b"cardinality" => found.cardinality = c.opt_i64()?,
            _ => _ = c.skip_value()?,
        }
        Ok(())
    })?;
    Ok(is_object.then_some(found))
}

impl<'a> FileActionBuilders<'a> {
    fn new(wanted: &'a FileActionProjection, text: &Utf8BufferSlice) -> Self {
        let views = || JsonStringViewBuilder::new(text);
        Self {
            wanted,
            path: views(),
            dv: DvBuilders {
                present: BooleanBufferBuilder::new(0),
                storage_type: views(),
                path: views(),
                offset: Int32Builder::new(),
                size: Int32Builder::new(),
                cardinality: Int64Builder::new(),
            },
            partition: wanted.partition.iter().map(|_| views()).collect(),
            row_partition: vec![None; wanted.partition.len()],
            size: Int64Builder::new(),
            time: Int64Builder::new(),
            stats: views(),
            tags: views(),
            base_row_id: Int64Builder::new(),
            commit_version: Int64Builder::new(),
            data_change: BooleanBuilder::new(),
            clustering: views(),
            order: Vec::new(),
        }
    }

    fn action(
        &mut self,
        cursor: &mut JsonCursor<'_>,
        order: u32,
        is_add: bool,
    ) -> Result<(), CommitParseError> {
        self.row_partition.fill(None);
        let mut fields = FileActionFields::default();
        let present = fields.parse(
            cursor,
            is_add,
            &self.wanted.partition,
            &mut self.row_partition,
        )?;
        if !present {
            return Ok(());
        }
        let path = fields
            .valid_path(is_add)
            .map_err(CommitParseError::Action)?;
        self.append(path, &fields)?;
        self.order.push(order);
        Ok(())
    }

    /// Appends the wanted fields of an action and its partition values.
    fn append(
        &mut self,
        path: StringSpan,
        fields: &FileActionFields,
    ) -> Result<(), CommitParseError> {
        let wanted = self.wanted;
        self.path.push(path)?;
        for (column, value) in self.partition.iter_mut().zip(&self.row_partition) {
            column.push_opt(*value)?;
        }
        self.size.append_option(fields.size);
        if wanted.time {
            self.time.append_option(fields.time);
        }
        if wanted.stats {
            match fields.stats {
                Some(span) => self.stats.push_raw(span.start, span.end)?,
                None => self.stats.push_null(),
            }
        }
        if wanted.tags {
            match fields.tags {
                Some((start, end)) => self.tags.push_raw(start, end)?,
                None => self.tags.push_null(),
            }
        }
        if wanted.row_ids {
            self.base_row_id.append_option(fields.base_row_id);
            self.commit_version.append_option(fields.commit_version);
        }
        if wanted.data_change {
            self.data_change.append_option(fields.data_change);
        }
        if wanted.clustering {
            self.clustering.push_opt(fields.clustering)?;
        }
        self.dv.push(fields.dv.as_ref(), self.path.len())
    }

    fn finish(mut self) -> FileBatch {
        let rows = self.path.len();
        let wanted = self.wanted;
        let row_id =
            |ids: Int64Array| Some(ids).filter(|ids| wanted.row_ids && ids.null_count() < rows);
        FileBatch {
            path: self.path.finish(),
            dv: self.dv.finish(rows),
            partition: self
                .partition
                .into_iter()
                .map(JsonStringViewBuilder::finish)
                .collect(),
            size: self.size.finish(),
            time: wanted.time.then(|| self.time.finish()),
            stats: wanted
                .stats
                .then(|| StatsColumn::EscapedJson(self.stats.finish())),
            tags: wanted.tags.then(|| self.tags.finish()),
            base_row_id: row_id(self.base_row_id.finish()),
            default_row_commit_version: row_id(self.commit_version.finish()),
            data_change: wanted.data_change.then(|| self.data_change.finish()),
            clustering: wanted.clustering.then(|| self.clustering.finish()),
            order: self.order,
        }
    }
}

impl DvBuilders {
    /// Appends the descriptor of the last of `rows` rows. Nothing is allocated until the first
    /// descriptor.
    fn push(
        &mut self,
        dv: Option<&DvDescriptorFields>,
        rows: usize,
    ) -> Result<(), CommitParseError> {
        let Some(dv) = dv else {
            if !self.present.is_empty() {
                self.null();
            }
            return Ok(());
        };
        while self.present.len() + 1 < rows {
            self.null();
        }
        let missing = |what: &str| {
            CommitParseError::Action(Error::corrupt(format!("a deletion vector has no `{what}`")))
        };
        let int = |value: Option<i64>, what: &str| {
            value.map(i32::try_from).transpose().map_err(|_| {
                CommitParseError::Action(Error::corrupt(format!(
                    "the `{what}` of a deletion vector is beyond 32 bits"
                )))
            })
        };
        self.present.append(true);
        self.storage_type
            .push(dv.storage_type.ok_or_else(|| missing("storageType"))?)?;
        self.path
            .push(dv.path.ok_or_else(|| missing("pathOrInlineDv"))?)?;
        self.offset.append_option(int(dv.offset, "offset")?);
        self.size
            .append_value(int(dv.size, "sizeInBytes")?.ok_or_else(|| missing("sizeInBytes"))?);
        self.cardinality
            .append_value(dv.cardinality.ok_or_else(|| missing("cardinality"))?);
        Ok(())
    }

    fn null(&mut self) {
        self.present.append(false);
        self.storage_type.push_null();
        self.path.push_null();
        self.offset.append_null();
        self.size.append_null();
        self.cardinality.append_null();
    }

    fn finish(mut self, rows: usize) -> Option<DvColumns> {
        if self.present.is_empty() {
            return None;
        }
        while self.present.len() < rows {
            self.null();
        }
        Some(DvColumns {
            present: self.present.finish(),
            storage_type: self.storage_type.finish(),
            path_or_inline: self.path.finish(),
            offset: self.offset.finish(),
            size_in_bytes: self.size.finish(),
            cardinality: self.cardinality.finish(),
        })
    }
}

/// Protocol and metadata of a commit, and its times, without parsing file actions: only lines that
/// begin with the requested names are parsed, and the last line, where a commit that was written in
/// part ends.
///
/// # Errors
/// [`Error::Corrupt`] with the line.
pub fn non_file_actions(text: &Bytes, take: &ActionSelection) -> Result<Vec<NonFileAction>> {
    json_lines::check_is_text(text)?;
    let mut out = Vec::new();
    let last = last_line_start(text);
    let mut start = 0;
    while start < text.len() {
        let rest = text.get(start..).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest).map_or(text.len(), |n| start + n + 1);
        let is_skipped = [&b"{\"add\":"[..], b"{\"remove\":", b"{\"cdc\":"]
            .iter()
            .any(|prefix| rest.starts_with(prefix))
            || (!take.info && rest.starts_with(b"{\"commitInfo\":"));
        if rest.first() != Some(&b'\n') && (start == last || !is_skipped) {
            out.extend(parse(text, start..end, take, &[])?.non_file_actions);
        }
        start = end;
    }
    Ok(out)
}

/// Whether a commit has no actions, as after a loss of power that left its file empty.
#[must_use]
pub fn is_blank(text: &[u8]) -> bool {
    text.trim_ascii().is_empty()
}

/// Checks the end of a commit, given its last bytes: that the last line is a whole one. `None` if
/// the bytes do not contain all of it.
///
/// # Errors
/// [`Error::Corrupt`] with the line.
pub fn check_tail(tail: &Bytes) -> Option<Result<()>> {
    let start = last_line_start(tail);
    if start == 0 {
        return None;
    }
    let parsed = parse(tail, start..tail.len(), &ActionSelection::default(), &[]);
    // The number of the line is not known.
    Some(
        parsed
            .map(|_| ())
            .map_err(|_| Error::corrupt("not a JSON action: the file ends within its last line")),
    )
}

/// Checks every line of a commit.
///
/// # Errors
/// [`Error::Corrupt`] with the line.
pub fn check_all(text: &Bytes) -> Result<()> {
    let files = Some(FileActionProjection::default());
    let take = ActionSelection {
        adds: files.clone(),
        removes: files.clone(),
        cdc: files,
        protocol_and_metadata: true,
        transactions_and_domains: true,
        ..ActionSelection::default()
    };
    parse(text, 0..text.len(), &take, &[]).map(|_| ())
}

/// The start of the last line that is not blank.
fn last_line_start(text: &[u8]) -> usize {
    let end = text.trim_ascii_end().len();
    memchr::memrchr(b'\n', text.get(..end).unwrap_or_default()).map_or(0, |newline| newline + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;

    fn wanted() -> ActionSelection {
        let files = Some(FileActionProjection {
            partition: vec!["p".into(), "q".into()],
            stats: true,
            stats_text: false,
            leaves: vec![],
            tags: true,
            time: true,
            row_ids: true,
            data_change: true,
            clustering: true,
            batch_rows: None,
        });
        ActionSelection {
            adds: files.clone(),
            removes: files.clone(),
            cdc: files,
            protocol_and_metadata: true,
            transactions_and_domains: true,
            info: true,
            sidecars: true,
        }
    }

    fn parse_all(text: &str) -> Result<ParsedActions> {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        parse(&bytes, 0..bytes.len(), &wanted(), &[])
    }

    #[test]
    fn file_actions_become_columns() {
        let parsed = parse_all(
            r#"{"commitInfo":{"operation":"WRITE"}}
{"add":{"path":"q=%2F/a\/b.parquet","partitionValues":{"q":"x\ny","p":null},"size":5,"modificationTime":7,"dataChange":true,"stats":"{\"numRecords\":3}","unknown":[{}]}}

{"add":{"path":"a-rather-long-name.parquet","partitionValues":{"p":"1","q":""},"size":6,"modificationTime":8,"dataChange":false,"deletionVector":{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":4,"sizeInBytes":40,"cardinality":6},"tags":{"a":"b"},"baseRowId":10,"defaultRowCommitVersion":2}}
{"remove":{"path":"r","deletionTimestamp":9,"dataChange":true}}
{"future":{"x":[1,2,{"y":"}"}]}}
{"txn":{"appId":"app","version":4}}"#,
        )
        .unwrap();
        let adds = &parsed.adds;
        assert_eq!(adds.len(), 2);
        assert_eq!(
            adds.path.iter().flatten().collect::<Vec<_>>(),
            ["q=%2F/a/b.parquet", "a-rather-long-name.parquet"]
        );
        assert_eq!(
            adds.partition[0].iter().collect::<Vec<_>>(),
            [None, Some("1")]
        );
        assert_eq!(
            adds.partition[1].iter().collect::<Vec<_>>(),
            [Some("x\ny"), Some("")]
        );
        assert_eq!(adds.dv_unique_id(0), None);
        assert_eq!(adds.dv_unique_id(1).unwrap(), "uab^-aqEH.-t@S}K{vb[*k^@4");
        assert_eq!(adds.tags.as_ref().unwrap().value(1), r#"{"a":"b"}"#);
        let Some(StatsColumn::EscapedJson(stats)) = &adds.stats else {
            panic!("escaped statistics")
        };
        assert_eq!(
            (stats.value(0), stats.is_null(1)),
            (r#"{\"numRecords\":3}"#, true)
        );
        assert_eq!(parsed.removes.time.as_ref().unwrap().value(0), 9);
        assert!(matches!(
            &parsed.non_file_actions[..],
            [
                NonFileAction::CommitInfo(_),
                NonFileAction::Txn(SetTransaction { version: 4, .. })
            ]
        ));
    }

    #[test]
    fn a_broken_line_is_named() {
        for (bad, what) in [
            (r#"{"add":{"path":"x"#, "does not end"),
            ("banana", "expected `{`"),
            (r#"{"add":{"size":1}}"#, "no `path`"),
            (
                r#"{"add":{"path":"x","size":99999999999999999999}}"#,
                "beyond 64 bits",
            ),
            (r#"{"add":{"path":"x","size":1}} x"#, "after the end"),
            (r#"{"metaData":{"id":1}}"#, "`metaData` is malformed"),
            ("{\"add\":{\"path\":\"x\ny\",\"size\":1}}", "on its line"),
        ] {
            let error = parse_all(&format!("{{\"commitInfo\":{{}}}}\r\n\n{bad}\n")).unwrap_err();
            assert!(
                error.is_corrupt()
                    && error.to_string().contains(what)
                    && error.context().unwrap().line == Some(3),
                "{bad}: {error}"
            );
        }
    }

    #[test]
    fn marks_tell_how_many_actions_came_before() {
        let text = Bytes::from_static(b"{\"add\":{\"path\":\"a\",\"size\":1}}\n{\"txn\":null}\n{\"add\":{\"path\":\"b\",\"size\":1}}");
        let parsed = parse(&text, 0..text.len(), &wanted(), &[0, 43]).unwrap();
        assert_eq!(
            (parsed.actions_before_mark, parsed.adds.order),
            (vec![0, 2], vec![1, 3])
        );
    }

    #[test]
    fn singles_do_not_look_into_file_actions() {
        let text = Bytes::from_static(
            b"{\"add\":{broken\n{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":2}}\n",
        );
        assert_eq!(
            non_file_actions(
                &text,
                &ActionSelection {
                    protocol_and_metadata: true,
                    ..ActionSelection::default()
                }
            )
            .unwrap()
            .len(),
            1
        );
    }
}
