//! MERGE: rows of a source, matched with rows of a table by a condition, change, delete and add rows.
//!
//! In steps, since expressions are bound and keys are joined outside of the core: [`Merge::plan`] settles the table's schema
//! and says what is to be bound; [`Merge::read`] reads the source, once, and learns what of the table can match; an engine
//! joins [`Joining::source_keys`] with [`Joining::target_keys`]; [`Joining::run`] takes the pairs, lets the clauses decide,
//! writes and commits. Then either deletion vectors mark rows, whose new values are added beside, or files are copied.
//!
//! Protocol: "Deletion Vectors", "Change Data Files", "Row Tracking". Figures and parameters are delta-spark's, but that a row
//! that several rows match is no error as long as one of them alone has a clause.
//! Cost: the source once; the columns of the keys of files that may match; of matched rows the columns that conditions need;
//! with vectors all columns of rows that change, without them all rows of files that have any. Memory: 12 bytes a matched
//! row, and the source as far as it does not go to a temporary file.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt32Array};
use arrow_cast::cast;
use arrow_schema::{DataType as Arrow, Field, Schema, SchemaRef};
use arrow_select::filter::{filter, filter_record_batch};
use arrow_select::take::take_record_batch;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::change::millis;
use super::clauses::{
    BY_SOURCE, Clause, ClausePlan, Deed, Editor, Entry, Inserter, NO_ROW, SOURCE, TARGET, combined, decide, exprs, needed, projected, replaced_by_all,
};
use super::files::{Orphans, add_new};
use super::join::{Equality, KeyColumn, Known};
use super::predicate::joined;
use super::rerun::{is_about_rows, newest};
use super::spool::{Limits, Spool};
use super::target::{Encoding, Rows, Target, change_file, changed};
use super::vectors::{self, Marked};
use super::write::{SchemaMode, WriteOptions, settled};
use super::{auto_compact, check_changeable, check_writable};
use crate::command::{self, Choices, Done, listed};
use crate::commit::adds::{all, live};
use crate::commit::{Operation, Transaction};
use crate::dv::Positions;
use crate::error::{Error, Result};
use crate::exec::{Cancel, Progress, Source, lanes, memory_limit, parallelism};
use crate::expr::{Bound, Expr, Function};
use crate::parse::mask;
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::{Action, Add};
use crate::protocol::schema::{StructField, StructType, TextLayout};
use crate::scan::{self, Batches, Chosen, Lens, MetadataColumn, ScanRequest};
use crate::snapshot::Snapshot;
use crate::write::bindings::{self, Demands};
use crate::write::cast::Columns;
use crate::write::{Written, write};

/// How to merge.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MergeOptions {
    /// How new files are made.
    pub encoding: Encoding,
    /// How it is committed.
    pub choices: Choices,
    /// Bytes of the source that stay in memory.
    pub max_spill_size: Option<u64>,
    /// Bytes of temporary files.
    pub max_temp_directory_size: Option<u64>,
    /// How often it is run again on the newest version after another writer changed rows that it read.
    pub max_reruns: u32,
}

/// What is to be done, bound.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergePlan {
    /// The condition, as the caller wrote it.
    pub on: String,
    /// Its equalities of something of the table and something of the source.
    pub equalities: Vec<EqualityPlan>,
    /// Its part over the table's columns alone.
    pub target_only: Option<Value>,
    /// Its part over the source's columns alone.
    pub source_only: Option<Value>,
    /// The rest, over the structs `target` and `source`.
    pub residual: Option<Value>,
    /// Clauses for matched rows, over these structs.
    pub matched: Vec<ClausePlan>,
    /// Clauses for rows of the source that match none, over the source's columns.
    pub not_matched: Vec<ClausePlan>,
    /// Clauses for rows of the table that none matches, over the table's columns.
    pub by_source: Vec<ClausePlan>,
    /// The table's demands.
    pub demands: Demands,
}

/// An equality of a [`MergePlan`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EqualityPlan {
    /// Over the table's columns.
    pub target: Value,
    /// Over the source's.
    pub source: Value,
    /// Whether null equals null.
    pub null_safe: bool,
}

impl MergePlan {
    pub(super) fn equalities(&self) -> Result<Vec<Equality>> {
        let tree = |value: &Value| Bound::from_json(&value.to_string());
        let equality = |plan: &EqualityPlan| Ok(Equality { target: tree(&plan.target)?, source: tree(&plan.source)?, null_safe: plan.null_safe });
        self.equalities.iter().map(equality).collect()
    }

    /// As `commitInfo` has them.
    pub(super) fn parameters(&self) -> Value {
        let clauses = |plans: &[ClausePlan]| {
            let one = |plan: &ClausePlan| {
                let mut out = Map::new();
                out.extend(plan.condition.as_ref().map(|condition| ("predicate".to_owned(), Value::from(condition.sql.as_str()))));
                out.insert("actionType".to_owned(), plan.deed.name().into());
                Value::Object(out)
            };
            Value::String(Value::Array(plans.iter().map(one).collect()).to_string())
        };
        json!({
            "predicate": listed(std::slice::from_ref(&self.on)),
            "matchedPredicates": clauses(&self.matched),
            "notMatchedPredicates": clauses(&self.not_matched),
            "notMatchedBySourcePredicates": clauses(&self.by_source),
        })
    }
}

/// A merge whose table is settled.
#[derive(Debug, Clone)]
pub struct Merge {
    pub(super) snapshot: Snapshot,
    options: MergeOptions,
    source: StructType,
    /// The table after the merge.
    pub(super) target: Target,
    is_changed: bool,
    demands: Demands,
    pub(super) started: Instant,
}

/// Rows of a batch of the source at most.
const BATCH_ROWS: usize = 64 << 10;
/// Pairs that are looked at together where no key joins them.
const PAIRS: usize = 128 << 10;

impl Merge {
    /// Settles what the table will be. `evolving` are the columns of the source that may add to the schema, `lacking` the
    /// table's columns that a new row may lack.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for tables that this release cannot write, [`Error::SchemaMismatch`] for columns that cannot be
    /// added.
    pub fn plan(snapshot: &Snapshot, source: StructType, evolving: &[String], lacking: &[String], options: MergeOptions) -> Result<Self> {
        check_writable(snapshot)?;
        let asking = StructType { fields: source.fields.iter().filter(|field| evolving.contains(&field.name)).cloned().collect() };
        let merging = WriteOptions { schema_mode: Some(SchemaMode::Merge), ..WriteOptions::default() };
        let (protocol, metadata) = settled(snapshot, &asking, &merging)?;
        let is_changed = metadata != *snapshot.metadata() || protocol != *snapshot.protocol();
        let schema = if is_changed { StructType::parse(&metadata.schema_string)? } else { snapshot.schema().clone() };
        let lacks = |field: &StructField| lacking.contains(&field.name) || snapshot.schema().field(&field.name).is_none();
        let demands = Demands::of(&protocol, &metadata, &schema, lacks)?;
        let encoding = options.encoding.clone();
        let target = Target { protocol, metadata, schema, encoding };
        Ok(Self { snapshot: snapshot.clone(), options, source, target, is_changed, demands, started: Instant::now() })
    }

    /// What is to be bound, against [`Merge::schema`].
    #[must_use]
    pub fn demands(&self) -> &Demands {
        &self.demands
    }

    /// The table's schema after the merge.
    #[must_use]
    pub fn schema(&self) -> &StructType {
        &self.target.schema
    }

    /// Reads the source.
    ///
    /// # Errors
    /// [`Error::Invalid`] for rows that cannot be kept, an append-only table, clauses that are none; what the source says.
    pub fn read(self, plan: &MergePlan, rows: impl Iterator<Item = Result<RecordBatch>>, cancel: &Cancel) -> Result<Joining> {
        let clauses = Clauses::of(plan)?;
        if clauses.changes() {
            check_changeable(&self.snapshot)?;
        }
        let bound = |value: &Option<Value>| value.as_ref().map(|value| Bound::from_json(&value.to_string())).transpose();
        let equalities = plan.equalities()?;
        let (target_only, source_only, residual) = (bound(&plan.target_only)?, bound(&plan.source_only)?, bound(&plan.residual)?);
        self.check_identities(&clauses)?;
        let rules = plan.demands.rules(&self.demands, self.identities()?)?;
        let spool = Arc::new(self.spool(rows, cancel)?);
        let key = if equalities.is_empty() { None } else { Some(KeyColumn::new(&equalities)?) };
        let mut known = Known::new(&equalities, spool.len().into())?;
        if let Some(key) = &key {
            for n in 0..spool.batches() {
                cancel.check()?;
                let batch = chosen(&spool.batch(n, None)?, source_only.as_ref())?;
                let (columns, key, usable) = key.make(equalities.iter().map(|equality| &equality.source), &batch)?;
                known.note(&columns, &key, &usable)?;
            }
        }
        let can_match = spool.len() > 0 && (key.is_none() || known.rows > 0);
        let reads = self.reads(target_only.as_ref(), &known, &equalities, can_match)?;
        let files = looked_at(&self.snapshot, &clauses, reads.as_ref(), can_match, cancel)?;
        let read_time = self.started.elapsed();
        let known = Arc::new(known);
        Ok(Joining {
            merge: self,
            plan: plan.clone(),
            clauses,
            rules,
            spool,
            equalities,
            key,
            known,
            source_only,
            residual,
            reads,
            can_match,
            files,
            read_time,
            tried: 0,
        })
    }

    /// What the table is from now on, where that changes.
    pub(super) fn changed_metadata(&self) -> Option<Metadata> {
        self.is_changed.then(|| self.target.metadata.clone())
    }

    /// True for every row of the table that can match.
    pub(super) fn reads(&self, target_only: Option<&Bound>, known: &Known, equalities: &[Equality], can_match: bool) -> Result<Option<Bound>> {
        let bounds = if can_match { known.predicate(equalities)? } else { Some(Expr::boolean(Some(false))) };
        let parts: Vec<Expr> = target_only.filter(|_| can_match).map(|bound| bound.expr.clone()).into_iter().chain(bounds).collect();
        let zone = self.snapshot.options().zone;
        Ok(if parts.is_empty() { None } else { Some(Bound { expr: joined(Function::And, parts)?, ansi: true, zone }) })
    }

    /// Identity columns; rows that stay give their own values, so who may not give any was looked at before.
    fn identities(&self) -> Result<Vec<crate::write::rules::Identity>> {
        let mut all = bindings::identities(&self.target.protocol, &self.target.schema)?;
        for identity in &mut all {
            identity.allow_explicit = true;
        }
        Ok(all)
    }

    pub(super) fn check_identities(&self, clauses: &Clauses) -> Result<()> {
        let identities = bindings::identities(&self.target.protocol, &self.target.schema)?;
        for clause in clauses.matched.iter().chain(&clauses.not_matched).chain(&clauses.by_source) {
            for name in clause.values.iter().filter_map(|(path, _)| path.first()) {
                match identities.iter().find(|identity| identity.column == *name) {
                    Some(_) if clause.deed == Deed::Update => {
                        return Err(Error::invalid("an identity column cannot be updated: its values are the table's to give; leave it out").at_column(name));
                    }
                    Some(identity) if !identity.allow_explicit => {
                        return Err(Error::invalid("new rows give values for an identity column that is GENERATED ALWAYS; leave it out").at_column(name));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn spool(&self, rows: impl Iterator<Item = Result<RecordBatch>>, cancel: &Cancel) -> Result<Spool> {
        let fields: Vec<Field> = self.source.fields.iter().map(|field| field.to_arrow(TextLayout::Plain).with_nullable(true)).collect();
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let memory = match self.options.max_spill_size {
            Some(bytes) => bytes,
            None => memory_limit()? / 2,
        };
        let mut spool = Spool::new(Arc::clone(&schema), Limits { memory, file: self.options.max_temp_directory_size });
        let zone = self.options.encoding.zone()?;
        for batch in rows {
            cancel.check()?;
            let batch = batch?;
            let columns = Columns::find(batch.schema_ref(), &self.source)?;
            let mut start = 0;
            while start < batch.num_rows() {
                let slice = batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start));
                start += slice.num_rows();
                let plain = |(array, field): (Option<ArrayRef>, &Arc<Field>)| -> Result<ArrayRef> {
                    let array = array.ok_or_else(|| Error::invalid("a batch of the source lacks a column").at_column(field.name()))?;
                    Ok(if array.data_type() == field.data_type() { array } else { cast(&array, field.data_type())? })
                };
                let arrays = columns.cast(&slice, &self.source, zone)?.into_iter().zip(schema.fields()).map(plain).collect::<Result<Vec<_>>>()?;
                spool.push(RecordBatch::try_new(Arc::clone(&schema), arrays)?)?;
            }
        }
        Ok(spool)
    }
}

/// The files of the table that a merge looks at.
pub(super) fn looked_at(snapshot: &Snapshot, clauses: &Clauses, reads: Option<&Bound>, can_match: bool, cancel: &Cancel) -> Result<Vec<Add>> {
    match (reads, clauses.by_source.is_empty()) {
        (Some(_), true) if !can_match => Ok(Vec::new()),
        (Some(predicate), true) => {
            let lens = Lens::new(snapshot, vec![predicate.clone()]);
            live(snapshot, cancel, |batch| lens.matching(batch))
        }
        _ => all(snapshot, cancel),
    }
}

/// The rows for which a predicate is true, all without one.
fn chosen(batch: &RecordBatch, predicate: Option<&Bound>) -> Result<RecordBatch> {
    match predicate {
        None => Ok(batch.clone()),
        Some(predicate) => Ok(filter_record_batch(batch, &predicate.filter_mask(batch)?)?),
    }
}

#[derive(Debug, Clone)]
pub(super) struct Clauses {
    pub matched: Vec<Clause>,
    pub not_matched: Vec<Clause>,
    pub by_source: Vec<Clause>,
}

impl Clauses {
    pub(super) fn of(plan: &MergePlan) -> Result<Self> {
        let out = Self { matched: Clause::of(&plan.matched)?, not_matched: Clause::of(&plan.not_matched)?, by_source: Clause::of(&plan.by_source)? };
        if out.matched.is_empty() && out.not_matched.is_empty() && out.by_source.is_empty() {
            return Err(Error::invalid("a MERGE needs at least one WHEN clause"));
        }
        Ok(out)
    }

    /// Whether rows that are there may change.
    pub(super) fn changes(&self) -> bool {
        !self.matched.is_empty() || !self.by_source.is_empty()
    }

    /// Whether it does not matter which of several rows matches a row of the table.
    pub(super) fn takes_many(&self) -> bool {
        matches!(self.matched.as_slice(), [Clause { deed: Deed::Delete, condition: None, .. }]) || self.matched.is_empty()
    }
}

/// How a try to merge ended.
#[derive(Debug)]
pub enum Tried {
    /// It is done.
    Done(Box<Done>),
    /// Another writer changed rows that it read: the same on the newest version, whose keys are to be joined anew.
    Lost(Box<Joining>),
}

/// A merge that waits for the pairs of rows that match.
#[derive(Debug, Clone)]
pub struct Joining {
    merge: Merge,
    plan: MergePlan,
    clauses: Clauses,
    rules: crate::write::rules::Rules,
    spool: Arc<Spool>,
    equalities: Vec<Equality>,
    key: Option<KeyColumn>,
    known: Arc<Known>,
    source_only: Option<Bound>,
    residual: Option<Bound>,
    /// True for every row of the table that can match.
    reads: Option<Bound>,
    can_match: bool,
    /// Files that are looked at.
    files: Vec<Add>,
    read_time: Duration,
    /// How often it was run before.
    tried: u32,
}

/// Names of the columns of keys and pairs.
const KEY: &str = "key";
const FILE: &str = "file";
const ROW: &str = "row";
const SOURCE_ROW: &str = "source_row";

impl Joining {
    /// Files that are looked at.
    #[must_use]
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Whether an engine is to join keys; otherwise [`Joining::run`] needs no pairs.
    #[must_use]
    pub fn needs_join(&self) -> bool {
        self.key.is_some() && self.can_match && !self.files.is_empty()
    }

    /// The source's keys: `key`, and `source_row` int64.
    ///
    /// # Errors
    /// [`Error::Internal`] where there is no join.
    pub fn source_keys(&self) -> Result<Batches> {
        let key = self.key.clone().ok_or_else(|| Error::internal("there is nothing to join"))?;
        let fields = vec![Field::new(KEY, key.data_type(), false), Field::new(SOURCE_ROW, Arrow::Int64, false)];
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let (spool, equalities, source_only, out) = (Arc::clone(&self.spool), self.equalities.clone(), self.source_only.clone(), Arc::clone(&schema));
        let batches = (0..self.spool.batches()).map(move |n| {
            let batch = spool.batch(n, None)?;
            let start = i64::from(spool.start(n));
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(start..start + batch.num_rows() as i64));
            let (batch, numbers) = match &source_only {
                None => (batch, numbers),
                Some(predicate) => {
                    let held = predicate.filter_mask(&batch)?;
                    (filter_record_batch(&batch, &held)?, filter(&numbers, &held)?)
                }
            };
            let (_, key, usable) = key.make(equalities.iter().map(|equality| &equality.source), &batch)?;
            Ok(RecordBatch::try_new(Arc::clone(&out), vec![filter(&key, &usable)?, filter(&numbers, &usable)?])?)
        });
        Ok(Batches { schema, batches: Box::new(batches), progress: Progress::default() })
    }

    /// The keys of rows of the table that may match: `key`, `file` int32, `row` int64.
    ///
    /// # Errors
    /// As [`scan::scan`].
    pub fn target_keys(&self, cancel: &Cancel) -> Result<Batches> {
        let key = self.key.clone().ok_or_else(|| Error::internal("there is nothing to join"))?;
        let fields = vec![Field::new(KEY, key.data_type(), false), Field::new(FILE, Arrow::Int32, false), Field::new(ROW, Arrow::Int64, false)];
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let names: BTreeSet<&str> = self.equalities.iter().flat_map(|equality| equality.target.column_names()).collect();
        let request = ScanRequest { predicate: self.reads.clone(), ..self.scan(names.into_iter().map(str::to_owned).collect(), None, cancel) };
        let scanned = scan::scan(&self.merge.snapshot, &request)?;
        let (equalities, known, out) = (self.equalities.clone(), Arc::clone(&self.known), Arc::clone(&schema));
        let keys = move |batch: RecordBatch| -> Result<RecordBatch> {
            let (_, key, usable) = key.make(equalities.iter().map(|equality| &equality.target), &batch)?;
            let usable = known.may_match(&key, &usable)?;
            let (file, row) = places(&batch)?;
            Ok(RecordBatch::try_new(Arc::clone(&out), vec![filter(&key, &usable)?, filter(&file, &usable)?, filter(&row, &usable)?])?)
        };
        Ok(Batches { schema, batches: Box::new(on_pool(scanned.batches, keys, cancel)), progress: scanned.progress })
    }

    /// A scan of the files, in whose batches the number of the file and the position in it stand last.
    fn scan(&self, columns: Vec<String>, chosen: Option<Chosen>, cancel: &Cancel) -> ScanRequest {
        let files = self.files.iter().map(|add| add.path.clone()).collect();
        let metadata = vec![MetadataColumn::FileNumber, MetadataColumn::RowIndex];
        ScanRequest { columns: Some(columns), metadata, ..Rows { files, predicate: None, chosen }.scan(cancel) }
    }

    /// Decides, writes and commits. `pairs` are the rows of the join of both keys: `file`, `row` and `source_row`.
    ///
    /// # Errors
    /// [`Error::Invalid`] where several rows of the source would change one row of the table; as [`Transaction::commit`]. No
    /// file of it is left behind then, unless nobody knows whether it was committed.
    pub fn run(self, pairs: Option<impl Iterator<Item = Result<RecordBatch>>>, cancel: &Cancel) -> Result<Tried> {
        let again = (self.tried < self.merge.options.max_reruns).then(|| self.clone());
        match (self.run_once(pairs, cancel), again) {
            (Err(lost), Some(again)) if is_about_rows(&lost) => match again.on_newest(cancel)? {
                Some(again) => Ok(Tried::Lost(Box::new(again))),
                None => Err(lost),
            },
            (done, _) => Ok(Tried::Done(Box::new(done?))),
        }
    }

    /// The same on the newest version; `None` where the table is another than it was.
    fn on_newest(mut self, cancel: &Cancel) -> Result<Option<Self>> {
        let Some(snapshot) = newest(&self.merge.snapshot, &mut self.merge.options.choices, self.tried, cancel)? else { return Ok(None) };
        self.files = looked_at(&snapshot, &self.clauses, self.reads.as_ref(), self.can_match, cancel)?;
        self.merge.snapshot = snapshot;
        self.tried += 1;
        Ok(Some(self))
    }

    fn run_once(self, pairs: Option<impl Iterator<Item = Result<RecordBatch>>>, cancel: &Cancel) -> Result<Done> {
        if pairs.is_none() && self.needs_join() {
            return Err(Error::internal("the pairs of a join are missing"));
        }
        let mut entries: Vec<Vec<Entry>> = vec![Vec::new(); self.files.len()];
        match pairs {
            Some(pairs) => take_pairs(pairs, &mut entries, cancel)?,
            None if self.key.is_none() && self.can_match => self.compare_all(&mut entries, cancel)?,
            None => {}
        }
        self.decide(&mut entries, cancel)?;
        let mut read: BTreeSet<usize> = BTreeSet::new();
        let mut matched = vec![false; if self.clauses.not_matched.is_empty() { 0 } else { self.spool.len() as usize }];
        for (file, entries) in entries.iter().enumerate() {
            if !entries.is_empty() {
                read.insert(file);
            }
            for entry in entries {
                if let Some(slot) = matched.get_mut(entry.source as usize) {
                    *slot = true;
                }
            }
        }
        self.settle_many(&mut entries)?;
        self.decide_by_source(&mut entries, cancel)?;
        for entries in &mut entries {
            entries.retain(|entry| entry.action != 0);
        }
        self.write(entries, matched, read, cancel)
    }

    /// Pairs of all rows for which the rest of the condition is true, where no key joins them.
    fn compare_all(&self, entries: &mut [Vec<Entry>], cancel: &Cancel) -> Result<()> {
        const MOST: usize = 1 << 28;
        let columns: Vec<String> = needed(self.residual.iter(), TARGET).into_iter().collect();
        let of_source = needed(self.residual.iter(), SOURCE);
        let request = ScanRequest { predicate: self.reads.clone(), ..self.scan(columns.clone(), None, cancel) };
        let (places_of_source, mut found) = (self.source_places(&of_source), 0_usize);
        for batch in scan::scan(&self.merge.snapshot, &request)?.batches {
            let batch = batch?;
            let (file, index) = places(&batch)?;
            let file = file.as_primitive::<Int32Type>().values().first().copied();
            let index = index.as_primitive::<Int64Type>();
            let target = batch.project(&(0..columns.len()).collect::<Vec<_>>())?;
            let Some(out) = file.and_then(|file| entries.get_mut(usize::try_from(file).ok()?)) else { continue };
            for n in 0..self.spool.batches() {
                cancel.check()?;
                let whole = self.spool.batch(n, None)?;
                let eligible: Vec<u32> = match &self.source_only {
                    None => (0..whole.num_rows() as u32).collect(),
                    Some(predicate) => predicate.filter_mask(&whole)?.values().set_indices().map(|row| row as u32).collect(),
                };
                let source = whole.project(&places_of_source)?;
                let step = (PAIRS / eligible.len().max(1)).max(1);
                for from in (0..target.num_rows()).step_by(step) {
                    let rows = from..(from + step).min(target.num_rows());
                    let left: Vec<u32> = rows.clone().flat_map(|row| std::iter::repeat_n(row as u32, eligible.len())).collect();
                    let right: Vec<u32> = rows.flat_map(|_| eligible.iter().copied()).collect();
                    let held = match &self.residual {
                        None => mask(vec![true; left.len()]),
                        Some(residual) => {
                            let target = take_record_batch(&target, &UInt32Array::from(left.clone()))?;
                            let source = take_record_batch(&source, &UInt32Array::from(right.clone()))?;
                            residual.filter_mask(&combined(&target, &source)?)?
                        }
                    };
                    for pair in held.values().set_indices() {
                        let (Some(left), Some(right)) = (left.get(pair), right.get(pair)) else { continue };
                        out.push(Entry { row: position(index.value(*left as usize))?, source: self.spool.start(n) + right, action: 0 });
                        found += 1;
                    }
                    if found > MOST {
                        return Err(Error::unsupported(
                            "the condition of the MERGE matches more than 268 million pairs of rows; give it an equality of a column of the target and one of the source",
                        ));
                    }
                }
            }
        }
        for entries in entries {
            entries.sort_unstable_by_key(|entry| (entry.row, entry.source));
        }
        Ok(())
    }

    fn source_places(&self, names: &BTreeSet<String>) -> Vec<usize> {
        names.iter().filter_map(|name| self.merge.source.fields.iter().position(|field| field.name == *name)).collect()
    }

    /// Drops pairs for which the rest of the condition is not true; gives the others the clause that takes them.
    fn decide(&self, entries: &mut [Vec<Entry>], cancel: &Cancel) -> Result<()> {
        let residual = self.residual.as_ref().filter(|_| self.key.is_some());
        let conditions = exprs(&self.clauses.matched, false);
        let used: Vec<&Bound> = residual.into_iter().chain(conditions).collect();
        if used.is_empty() {
            let action = u8::from(!self.clauses.matched.is_empty());
            entries.iter_mut().flatten().for_each(|entry| entry.action = action);
            return Ok(());
        }
        let of_target = needed(used.iter().copied(), TARGET);
        let of_source = self.source_places(&needed(used.iter().copied(), SOURCE));
        let look = |target: &RecordBatch, pairs: &mut [Entry]| -> Result<()> {
            let sources: Vec<u32> = pairs.iter().map(|entry| entry.source).collect();
            let mut rows = combined(target, &self.spool.take(&sources, &of_source)?)?;
            let mut held: Option<BooleanArray> = None;
            if let Some(residual) = residual {
                let found = residual.filter_mask(&rows)?;
                rows = filter_record_batch(&rows, &found)?;
                held = Some(found);
            }
            let mut taken = decide(&self.clauses.matched, &rows)?.into_iter();
            for (n, entry) in pairs.iter_mut().enumerate() {
                entry.action = match &held {
                    Some(held) if !held.value(n) => DROPPED,
                    _ => taken.next().unwrap_or(0),
                };
            }
            Ok(())
        };
        if of_target.is_empty() {
            let schema: SchemaRef = Arc::new(Schema::empty());
            for pairs in entries.iter_mut().flat_map(|entries| entries.chunks_mut(PAIRS)) {
                cancel.check()?;
                let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(pairs.len()));
                look(&RecordBatch::try_new_with_options(Arc::clone(&schema), Vec::new(), &options)?, pairs)?;
            }
        } else {
            let chosen = Chosen::Only(Arc::new(self.positions(entries, |_| true)?));
            let columns: Vec<String> = of_target.iter().cloned().collect();
            for batch in scan::scan(&self.merge.snapshot, &self.scan(columns, Some(chosen), cancel))?.batches {
                let batch = batch?;
                let (file, index) = places(&batch)?;
                let file = file.as_primitive::<Int32Type>().values().first().copied();
                let index = index.as_primitive::<Int64Type>().values();
                let (Some(entries), Some(first), Some(last)) =
                    (file.and_then(|file| entries.get_mut(usize::try_from(file).ok()?)), index.first(), index.last())
                else {
                    continue;
                };
                let from = entries.partition_point(|entry| i64::from(entry.row) < *first);
                let to = entries.partition_point(|entry| i64::from(entry.row) <= *last);
                let target = projected(&batch, &of_target)?;
                let mut at = 0_usize;
                for pairs in entries.get_mut(from..to).unwrap_or_default().chunks_mut(PAIRS) {
                    let mut rows = Vec::with_capacity(pairs.len());
                    for entry in pairs.iter() {
                        while index.get(at).is_some_and(|index| *index < i64::from(entry.row)) {
                            at += 1;
                        }
                        if index.get(at) != Some(&i64::from(entry.row)) {
                            return Err(Error::internal("a matched row is not where it was"));
                        }
                        rows.push(at as u32);
                    }
                    look(&take_record_batch(&target, &UInt32Array::from(rows))?, pairs)?;
                }
            }
        }
        for entries in entries {
            entries.retain(|entry| entry.action != DROPPED);
        }
        Ok(())
    }

    /// Rows of files for which `choose` is true, by path.
    fn positions(&self, entries: &[Vec<Entry>], choose: impl Fn(&Entry) -> bool) -> Result<HashMap<String, Positions>> {
        let mut out = HashMap::new();
        for (add, entries) in self.files.iter().zip(entries) {
            let mut rows: Vec<u64> = entries.iter().filter(|entry| choose(entry)).map(|entry| u64::from(entry.row)).collect();
            rows.dedup();
            if !rows.is_empty() {
                out.insert(add.path.clone(), Positions::from_ascending(rows)?);
            }
        }
        Ok(out)
    }

    /// Leaves one pair for each row of the table.
    fn settle_many(&self, entries: &mut [Vec<Entry>]) -> Result<()> {
        let takes_many = self.clauses.takes_many();
        for (add, entries) in self.files.iter().zip(entries) {
            let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
            for entry in entries.iter() {
                match kept.last_mut().filter(|last| last.row == entry.row) {
                    None => kept.push(*entry),
                    Some(_) if entry.action == 0 || takes_many => {}
                    Some(last) if last.action == 0 => *last = *entry,
                    Some(_) => {
                        return Err(Error::invalid(format!(
                            "several rows of the source match row {} of `{}`, and a clause takes more than one of them (duplicate relevant WHEN MATCHED rows): \
                             which one counts is not said; make the source's keys unique, or the clauses' conditions narrower",
                            entry.row, add.path
                        )));
                    }
                }
            }
            *entries = kept;
        }
        Ok(())
    }

    /// Adds the rows that no row of the source matches and that a clause takes.
    fn decide_by_source(&self, entries: &mut [Vec<Entry>], cancel: &Cancel) -> Result<()> {
        let clauses = &self.clauses.by_source;
        if clauses.is_empty() {
            return Ok(());
        }
        let mut names: Vec<String> = exprs(clauses, false).flat_map(Bound::column_names).map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        let mut any = clauses.iter().map(|clause| clause.condition.as_ref()).collect::<Option<Vec<_>>>();
        let predicate = match any.as_mut().and_then(|any| any.first().copied().map(|first| (first, any))) {
            None => None,
            Some((first, any)) => Some(first.with(joined(Function::Or, any.iter().map(|bound| bound.expr.clone()).collect())?)),
        };
        // It prunes only: it could fail for rows that are matched.
        let request = ScanRequest { predicate, filter_rows: false, ..self.scan(names.clone(), None, cancel) };
        let columns: Vec<usize> = (0..names.len()).collect();
        let mut more: Vec<Vec<Entry>> = vec![Vec::new(); entries.len()];
        for batch in scan::scan(&self.merge.snapshot, &request)?.batches {
            let batch = batch?;
            let (file, index) = places(&batch)?;
            let file = file.as_primitive::<Int32Type>().values().first().and_then(|file| usize::try_from(*file).ok());
            let index = index.as_primitive::<Int64Type>().values();
            let Some((known, out)) = file.and_then(|file| Some((entries.get(file)?, more.get_mut(file)?))) else { continue };
            let mut at = index.first().map_or(0, |first| known.partition_point(|entry| i64::from(entry.row) < *first));
            let open = index.iter().map(|row| {
                while known.get(at).is_some_and(|entry| i64::from(entry.row) < *row) {
                    at += 1;
                }
                known.get(at).is_none_or(|entry| i64::from(entry.row) != *row)
            });
            let open: Vec<bool> = open.collect();
            let rows: Vec<i64> = index.iter().zip(&open).filter(|(_, open)| **open).map(|(row, _)| *row).collect();
            let batch = filter_record_batch(&batch.project(&columns)?, &mask(open))?;
            for (row, taken) in rows.into_iter().zip(decide(clauses, &batch)?) {
                if taken > 0 {
                    out.push(Entry { row: position(row)?, source: NO_ROW, action: BY_SOURCE + taken - 1 });
                }
            }
        }
        for (entries, more) in entries.iter_mut().zip(more) {
            entries.extend(more);
            entries.sort_unstable_by_key(|entry| entry.row);
        }
        Ok(())
    }

    /// The clause that an entry is for.
    fn clause(&self, action: u8) -> Option<&Clause> {
        if action >= BY_SOURCE {
            self.clauses.by_source.get(usize::from(action - BY_SOURCE))
        } else {
            self.clauses.matched.get(usize::from(action).checked_sub(1)?)
        }
    }

    fn write(self, entries: Vec<Vec<Entry>>, matched: Vec<bool>, mut read: BTreeSet<usize>, cancel: &Cancel) -> Result<Done> {
        let scanned = self.merge.started.elapsed();
        let is_update = |entry: &Entry| self.clause(entry.action).is_some_and(|clause| clause.deed == Deed::Update);
        let mut figures = Figures::default();
        for entry in entries.iter().flatten() {
            *match (is_update(entry), entry.action >= BY_SOURCE) {
                (true, false) => &mut figures.updated,
                (true, true) => &mut figures.updated_by_source,
                (false, false) => &mut figures.deleted,
                (false, true) => &mut figures.deleted_by_source,
            } += 1;
        }
        read.extend(entries.iter().enumerate().filter(|(_, entries)| !entries.is_empty()).map(|(file, _)| file));
        let touched: Vec<Add> = self.files.iter().zip(&entries).filter(|(_, entries)| !entries.is_empty()).map(|(add, _)| add.clone()).collect();
        let gone = Arc::new(self.positions(&entries, |_| true)?);
        let deleted = Arc::new(self.positions(&entries, |entry| !is_update(entry))?);
        let updated = Arc::new(self.positions(&entries, is_update)?);
        let updates = entries.iter().map(|entries| entries.iter().filter(|entry| is_update(entry)).copied().collect()).collect();
        drop(entries);
        let (snapshot, target) = (&self.merge.snapshot, &self.merge.target);
        let mut orphans = Orphans::new(snapshot.stores().root());
        let mut actions: Vec<Action> = Vec::new();
        let inserter = Arc::new(Inserter::new(Arc::clone(&self.spool), self.clauses.not_matched.clone(), matched));
        let mut request = target.request(self.rules.clone(), cancel)?;
        // With vectors all rows that come change; copied files also have others.
        let unread = if target.has_vectors() {
            replaced_by_all(snapshot.schema(), &self.clauses.matched, &self.clauses.by_source, &self.rules.generated)
        } else {
            BTreeSet::new()
        };
        let read_columns = snapshot.schema().fields.iter().enumerate().filter(|(n, _)| !unread.contains(n)).map(|(_, field)| field.name.clone());
        let mut scanning = self.scan(read_columns.collect(), None, cancel);
        let of_place = std::mem::take(&mut scanning.metadata);
        target.keep_ids(snapshot, &mut request, &mut scanning)?;
        scanning.metadata.extend(of_place.iter().copied());
        let editor = |updates: Vec<Vec<Entry>>, hidden: Vec<String>, unread: BTreeSet<usize>| Editor {
            spool: Arc::clone(&self.spool),
            source: self.merge.source.clone(),
            before: snapshot.schema().clone(),
            after: target.schema.clone(),
            matched: self.clauses.matched.clone(),
            by_source: self.clauses.by_source.clone(),
            generated: self.rules.generated.clone(),
            zone: request.zone,
            updates,
            hidden,
            needs: needed(exprs(&self.clauses.matched, true), SOURCE),
            unread,
        };
        let with_feed = target.has_feed() && !touched.is_empty();
        // Without updates an editor only drops the columns that say where a row was, and adds those that are new.
        let of_feed = with_feed.then(|| (editor(Vec::new(), Vec::new(), BTreeSet::new()), editor(Vec::clone(&updates), Vec::new(), BTreeSet::new())));
        // The rows that are written: of files that are copied all that stay, else those that change.
        let (mut marked, updates) = if target.has_vectors() {
            scanning.chosen = Some(Chosen::Only(Arc::clone(&updated)));
            (vectors::mark(snapshot, touched.clone(), &gone, &mut orphans, cancel)?, updates)
        } else {
            let present = |add: &Add| add.num_records().map(|rows| rows - add.deletion_vector.as_ref().map_or(0, |vector| vector.cardinality));
            let stays = |add: &Add| deleted.get(&add.path).is_none_or(|rows| i64::try_from(rows.len()).ok() != present(add));
            let copied = self.files.iter().zip(updates).filter(|(add, _)| gone.contains_key(&add.path) && stays(add));
            let (files, updates): (Vec<String>, Vec<Vec<Entry>>) = copied.map(|(add, updates)| (add.path.clone(), updates)).unzip();
            scanning.files = Some(files);
            scanning.chosen = Some(Chosen::Without(Arc::clone(&deleted)));
            (Marked::ended(&touched), updates)
        };
        let edited = editor(updates, request.hidden.clone(), unread);
        actions.extend(std::mem::take(&mut marked.actions));
        let inserted = Arc::new(AtomicU64::new(0));
        let kept = if touched.is_empty() { None } else { Some(on_pool(scan::scan(snapshot, &scanning)?.batches, move |batch| edited.edit(&batch), cancel)) };
        let rows = kept.into_iter().flatten().chain(inserts(&inserter, Some(Arc::clone(&inserted)), cancel));
        let written = write(snapshot.stores().root(), &request, rows)?;
        orphans.add(&written.files);
        let changes = match of_feed {
            Some((same, editor)) => self.feed([&deleted, &updated], same, editor, &inserter, cancel)?,
            None => Written::default(),
        };
        orphans.add(&changes.files);
        figures.inserted = inserted.load(Ordering::Relaxed);
        figures.source = self.spool.len().into();
        let times = [self.merge.started.elapsed(), scanned, self.read_time];
        let metrics = figures.metrics(&written, changes.files.len(), &marked, times);
        let mut operation = command::operation("MERGE", self.plan.parameters(), metrics);
        let mut metadata = self.merge.changed_metadata();
        if !written.identities.is_empty() {
            operation.identity_only = metadata.is_none();
            metadata = Some(target.marked(&written.identities));
        }
        actions.extend(written.files.into_iter().map(|file| Action::Add(add_new(file))));
        actions.extend(changes.files.into_iter().map(|file| Action::Cdc(change_file(file))));
        let ending = Ending {
            merge: &self.merge,
            clauses: &self.clauses,
            reads: self.reads.as_ref(),
            read: read.iter().filter_map(|file| self.files.get(*file)).map(|add| add.path.as_str()).collect(),
            touches: !touched.is_empty(),
            operation,
            metadata,
            actions,
        };
        ending.commit(orphans, cancel)
    }

    /// Writes the changes, told row by row.
    fn feed(
        &self,
        [deleted, updated]: [&Arc<HashMap<String, Positions>>; 2],
        same: Editor,
        editor: Editor,
        inserter: &Arc<Inserter>,
        cancel: &Cancel,
    ) -> Result<Written> {
        let (snapshot, target) = (&self.merge.snapshot, &self.merge.target);
        let columns: Vec<String> = snapshot.schema().fields.iter().map(|field| field.name.clone()).collect();
        let scanned = |rows: &Arc<HashMap<String, Positions>>| {
            let request = self.scan(columns.clone(), Some(Chosen::Only(Arc::clone(rows))), cancel);
            scan::scan(snapshot, &request).map(|scanned| scanned.batches)
        };
        let same = Arc::new(same);
        let untouched = |kind: &'static str| {
            let same = Arc::clone(&same);
            move |batch: RecordBatch| changed(&same.edit(&batch)?, kind)
        };
        let of_deleted = on_pool(scanned(deleted)?, untouched("delete"), cancel);
        let before = on_pool(scanned(updated)?, untouched("update_preimage"), cancel);
        let after = on_pool(scanned(updated)?, move |batch| changed(&editor.edit(&batch)?, "update_postimage"), cancel);
        let added = inserts(inserter, None, cancel).map(|batch| changed(&batch?, "insert"));
        // Values of identity columns are given in the same order as to the rows themselves.
        let request = target.feed_request(self.rules.clone(), cancel)?;
        write(snapshot.stores().root(), &request, of_deleted.chain(before).chain(after).chain(added))
    }
}

/// A pair for which the rest of the condition is not true.
const DROPPED: u8 = 255;

/// Rows by what became of them.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// Rows of the source.
    pub source: u64,
    pub updated: u64,
    pub updated_by_source: u64,
    pub deleted: u64,
    pub deleted_by_source: u64,
    pub inserted: u64,
}

impl Figures {
    /// As `commitInfo` has them: so long it took, so long until rows were found, so long until the source was read.
    pub(super) fn metrics(&self, written: &Written, changes: usize, marked: &Marked, [whole, scanned, read]: [Duration; 3]) -> Value {
        let (updated, deleted) = (self.updated + self.updated_by_source, self.deleted + self.deleted_by_source);
        json!({
            "numSourceRows": self.source,
            "numTargetRowsInserted": self.inserted,
            "numTargetRowsUpdated": updated,
            "numTargetRowsDeleted": deleted,
            "numTargetRowsMatchedUpdated": self.updated,
            "numTargetRowsMatchedDeleted": self.deleted,
            "numTargetRowsNotMatchedBySourceUpdated": self.updated_by_source,
            "numTargetRowsNotMatchedBySourceDeleted": self.deleted_by_source,
            "numTargetRowsCopied": written.rows.saturating_sub(self.inserted + updated),
            "numOutputRows": written.rows,
            "numTargetFilesAdded": written.files.len(),
            "numTargetFilesRemoved": marked.ended,
            "numTargetBytesAdded": written.files.iter().map(|file| file.size).sum::<u64>(),
            "numTargetBytesRemoved": marked.ended_bytes,
            "numTargetChangeFilesAdded": changes,
            "numTargetDeletionVectorsAdded": marked.added,
            "numTargetDeletionVectorsRemoved": marked.removed,
            "numTargetDeletionVectorsUpdated": marked.updated,
            "executionTimeMs": millis(whole),
            "materializeSourceTimeMs": millis(read),
            "scanTimeMs": millis(scanned.saturating_sub(read)),
            "rewriteTimeMs": millis(whole.saturating_sub(scanned)),
        })
    }
}

/// A merge that is done but for its commit.
pub(super) struct Ending<'a> {
    pub merge: &'a Merge,
    pub clauses: &'a Clauses,
    pub reads: Option<&'a Bound>,
    /// Paths of the files that had rows which matched.
    pub read: Vec<&'a str>,
    /// Whether rows that were there changed.
    pub touches: bool,
    pub operation: Operation,
    pub metadata: Option<Metadata>,
    pub actions: Vec<Action>,
}

impl Ending<'_> {
    /// Commits; where nothing changes there is nothing to do.
    pub(super) fn commit(mut self, orphans: Orphans, cancel: &Cancel) -> Result<Done> {
        let (merge, choices) = (self.merge, &self.merge.options.choices);
        if self.actions.is_empty() && self.metadata.is_none() {
            return Ok(Done { metrics: self.operation.metrics, ..Done::unchanged(&merge.snapshot) });
        }
        self.operation.row_ids_preserved = self.touches.then(|| merge.target.tracks_rows());
        let mut transaction = Transaction::new(&merge.snapshot);
        match self.reads {
            Some(predicate) if self.clauses.by_source.is_empty() => transaction.read_rows(predicate.clone()),
            _ => transaction.read_whole_table(),
        }
        transaction.read_files(self.read)?;
        if merge.is_changed {
            transaction.push(Action::Protocol(merge.target.protocol.clone()));
        }
        transaction.extend(self.metadata.map(|metadata| Action::MetaData(Box::new(metadata))));
        transaction.extend(self.actions);
        let grown = transaction.partitions();
        let done = command::commit(transaction, self.operation, choices, cancel);
        if matches!(done, Ok(_) | Err(Error::CommitUnknown { .. })) {
            orphans.keep();
        }
        done.map(|done| auto_compact::follow(done, &grown, choices, cancel))
    }
}

/// The last columns of a batch: the number of its file, and positions in it.
fn places(batch: &RecordBatch) -> Result<(ArrayRef, ArrayRef)> {
    let [.., file, row] = batch.columns() else { return Err(Error::internal("a scan gave no positions")) };
    if file.data_type() != &Arrow::Int32 || row.data_type() != &Arrow::Int64 {
        return Err(Error::internal("a scan gave no positions"));
    }
    Ok((Arc::clone(file), Arc::clone(row)))
}

fn position(row: i64) -> Result<u32> {
    u32::try_from(row).map_err(|_| Error::unsupported("a data file of more than 4,294,967,295 rows cannot be merged into"))
}

/// Takes over what an engine found.
fn take_pairs(pairs: impl Iterator<Item = Result<RecordBatch>>, entries: &mut [Vec<Entry>], cancel: &Cancel) -> Result<()> {
    for batch in pairs {
        cancel.check()?;
        let batch = batch?;
        let column = |name: &str| -> Result<Int64Array> {
            let array = batch.column_by_name(name).ok_or_else(|| Error::internal(format!("the pairs of a join have no `{name}`")))?;
            let array = cast(array, &Arrow::Int64)?;
            Ok(array.as_primitive::<Int64Type>().clone())
        };
        let (files, rows, sources) = (column(FILE)?, column(ROW)?, column(SOURCE_ROW)?);
        for ((file, row), source) in files.values().iter().zip(rows.values()).zip(sources.values()) {
            let slot = usize::try_from(*file).ok().and_then(|file| entries.get_mut(file));
            let slot = slot.ok_or_else(|| Error::internal("a pair of a join is of a file that there is not"))?;
            let source = u32::try_from(*source).map_err(|_| Error::internal("a pair of a join is of a row that there is not"))?;
            slot.push(Entry { row: position(*row)?, source, action: 0 });
        }
    }
    for entries in entries {
        entries.sort_unstable_by_key(|entry| (entry.row, entry.source));
    }
    Ok(())
}

/// Does something with each batch on the pool; the order stays.
fn on_pool(
    batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>,
    work: impl Fn(RecordBatch) -> Result<RecordBatch> + Send + Sync + 'static,
    cancel: &Cancel,
) -> impl Iterator<Item = Result<RecordBatch>> + Send + 'static {
    let work = Arc::new(work);
    let jobs = batches.map(move |batch: Result<RecordBatch>| {
        let work = Arc::clone(&work);
        Box::new(std::iter::once_with(move || work(batch?))) as Source<RecordBatch>
    });
    lanes(jobs, parallelism() + 1, 1, cancel)
}

/// The rows that are new to the table, counted.
fn inserts(inserter: &Arc<Inserter>, count: Option<Arc<AtomicU64>>, cancel: &Cancel) -> impl Iterator<Item = Result<RecordBatch>> + Send + 'static {
    let batches = if inserter.clauses.is_empty() { 0 } else { inserter.spool.batches() };
    let inserter = Arc::clone(inserter);
    let jobs = (0..batches).map(move |n| {
        let inserter = Arc::clone(&inserter);
        Box::new(std::iter::once_with(move || inserter.rows(n))) as Source<Vec<RecordBatch>>
    });
    let flat = lanes(jobs, parallelism() + 1, 1, cancel).flat_map(|found| match found {
        Ok(batches) => batches.into_iter().map(Ok).collect::<Vec<_>>(),
        Err(error) => vec![Err(error)],
    });
    flat.inspect(move |batch| {
        if let (Some(count), Ok(batch)) = (&count, batch) {
            count.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
        }
    })
}
