//! The columnar form of file actions, the same for commits and checkpoints.

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, StringViewArray, StructArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_select::filter::{FilterBuilder, FilterPredicate};

use crate::error::Result;
use crate::protocol::commit_line::DeletionVectorDescriptor;

/// The wanted columns of file actions, in addition to path and deletion vector, which are the key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileActionProjection {
    /// Physical names of partition columns.
    pub partition: Vec<String>,
    /// Statistics, as JSON text or as the checkpoint's struct.
    pub stats: bool,
    /// Statistics as JSON text if there is any, even if the checkpoint's struct exists too.
    pub stats_text: bool,
    /// Physical paths of the leaves whose statistics are wanted; of the checkpoint's struct only
    /// these are read.
    pub leaves: Vec<Vec<String>>,
    /// `tags`, as JSON text.
    pub tags: bool,
    /// `modificationTime` (`deletionTimestamp` of removes).
    pub time: bool,
    /// `baseRowId`, `defaultRowCommitVersion`.
    pub row_ids: bool,
    /// `dataChange`.
    pub data_change: bool,
    /// `clusteringProvider`.
    pub clustering: bool,
    /// Rows of a checkpoint that are decoded at once; by default the number that is read fastest.
    pub batch_rows: Option<usize>,
}

/// Deletion vector descriptors; null where a file has none.
#[derive(Debug, Clone)]
pub struct DvColumns {
    /// The rows that have one.
    pub present: BooleanBuffer,
    /// `u`, `i` or `p`.
    pub storage_type: StringViewArray,
    /// Its location, or the inline vector.
    pub path_or_inline: StringViewArray,
    /// Start in its file.
    pub offset: Int32Array,
    /// Size in bytes.
    pub size_in_bytes: Int32Array,
    /// Number of rows that it deletes.
    pub cardinality: Int64Array,
}

/// Statistics of a batch in their original form.
#[derive(Debug, Clone)]
pub enum StatsColumn {
    /// JSON text.
    Json(StringViewArray),
    /// JSON text inside a JSON string, escapes unresolved.
    EscapedJson(StringViewArray),
    /// The checkpoint's `stats_parsed`.
    Parsed(StructArray),
}

impl DvColumns {
    fn none(rows: usize) -> Self {
        Self {
            present: BooleanBuffer::new_unset(rows),
            storage_type: StringViewArray::new_null(rows),
            path_or_inline: StringViewArray::new_null(rows),
            offset: Int32Array::new_null(rows),
            size_in_bytes: Int32Array::new_null(rows),
            cardinality: Int64Array::new_null(rows),
        }
    }
}

/// `add`, `remove` or `cdc` actions in columns. All columns have the same length.
#[derive(Debug, Clone)]
pub struct FileBatch {
    /// As in the log: JSON escapes resolved, URI encoding kept.
    pub path: StringViewArray,
    /// `None` when no row has a deletion vector.
    pub dv: Option<DvColumns>,
    /// One column for each wanted partition column; a missing key is null.
    pub partition: Vec<StringViewArray>,
    /// Size in bytes; null where the log does not have it.
    pub size: Int64Array,
    /// See [`FileActionProjection::time`].
    pub time: Option<Int64Array>,
    /// See [`FileActionProjection::stats`].
    pub stats: Option<StatsColumn>,
    /// See [`FileActionProjection::tags`].
    pub tags: Option<StringViewArray>,
    /// See [`FileActionProjection::row_ids`]; `None` also where no row has one.
    pub base_row_id: Option<Int64Array>,
    /// See [`FileActionProjection::row_ids`]; `None` also where no row has one.
    pub default_row_commit_version: Option<Int64Array>,
    /// See [`FileActionProjection::data_change`].
    pub data_change: Option<BooleanArray>,
    /// See [`FileActionProjection::clustering`].
    pub clustering: Option<StringViewArray>,
    /// Positions of the rows among all actions of their log file, where the order matters.
    pub order: Vec<u32>,
}

impl FileBatch {
    /// Number of actions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.path.len()
    }

    /// Whether there are no actions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.path.is_empty()
    }

    /// The unique id of row `row`'s deletion vector.
    #[must_use]
    pub fn dv_unique_id(&self, row: usize) -> Option<String> {
        let dv = self.dv.as_ref().filter(|dv| dv.present.value(row))?;
        let (kind, path) = (dv.storage_type.value(row), dv.path_or_inline.value(row));
        Some(if dv.offset.is_valid(row) {
            format!("{kind}{path}@{}", dv.offset.value(row))
        } else {
            format!("{kind}{path}")
        })
    }

    /// Row `row`'s deletion vector.
    #[must_use]
    pub fn deletion_vector(&self, row: usize) -> Option<DeletionVectorDescriptor> {
        let dv = self.dv.as_ref().filter(|dv| dv.present.value(row))?;
        Some(DeletionVectorDescriptor {
            storage_type: dv.storage_type.value(row).to_owned(),
            path_or_inline_dv: dv.path_or_inline.value(row).to_owned(),
            offset: dv.offset.is_valid(row).then(|| dv.offset.value(row)),
            size_in_bytes: dv.size_in_bytes.value(row),
            cardinality: dv.cardinality.value(row),
        })
    }

    /// The rows for which `keep` is true.
    ///
    /// # Errors
    /// [`crate::error::Error::Internal`] for a mask of another length.
    pub fn filter(&self, keep: &BooleanArray) -> Result<Self> {
        if keep.true_count() == self.len() {
            return Ok(self.clone());
        }
        let filter = FilterBuilder::new(keep).optimize().build();
        let strings = |a: &StringViewArray| -> Result<StringViewArray> { take(&filter, a) };
        let dv = match &self.dv {
            Some(dv) => Some(DvColumns {
                present: take::<BooleanArray>(
                    &filter,
                    &BooleanArray::new(dv.present.clone(), None),
                )?
                .values()
                .clone(),
                storage_type: strings(&dv.storage_type)?,
                path_or_inline: strings(&dv.path_or_inline)?,
                offset: take(&filter, &dv.offset)?,
                size_in_bytes: take(&filter, &dv.size_in_bytes)?,
                cardinality: take(&filter, &dv.cardinality)?,
            })
            .filter(|dv| dv.present.count_set_bits() > 0),
            None => None,
        };
        let stats = match &self.stats {
            Some(StatsColumn::Json(a)) => Some(StatsColumn::Json(strings(a)?)),
            Some(StatsColumn::EscapedJson(a)) => Some(StatsColumn::EscapedJson(strings(a)?)),
            Some(StatsColumn::Parsed(a)) => Some(StatsColumn::Parsed(take(&filter, a)?)),
            None => None,
        };
        Ok(Self {
            path: strings(&self.path)?,
            dv,
            partition: self.partition.iter().map(strings).collect::<Result<_>>()?,
            size: take(&filter, &self.size)?,
            time: self.time.as_ref().map(|a| take(&filter, a)).transpose()?,
            stats,
            tags: self.tags.as_ref().map(strings).transpose()?,
            base_row_id: self
                .base_row_id
                .as_ref()
                .map(|a| take(&filter, a))
                .transpose()?,
            default_row_commit_version: self
                .default_row_commit_version
                .as_ref()
                .map(|a| take(&filter, a))
                .transpose()?,
            data_change: self
                .data_change
                .as_ref()
                .map(|a| take(&filter, a))
                .transpose()?,
            clustering: self.clustering.as_ref().map(strings).transpose()?,
            order: self
                .order
                .iter()
                .enumerate()
                .filter(|(row, _)| keep.value(*row))
                .map(|(_, order)| *order)
                .collect(),
        })
    }

    /// At most `len` rows from `start` on; nothing is copied.
    #[must_use]
    pub fn slice(&self, start: usize, len: usize) -> Self {
        let start = start.min(self.len());
        let len = len.min(self.len() - start);
        let strings = |a: &StringViewArray| a.slice(start, len);
        let ints = |a: &Int64Array| a.slice(start, len);
        let dv = self.dv.as_ref().map(|dv| DvColumns {
            present: dv.present.slice(start, len),
            storage_type: strings(&dv.storage_type),
            path_or_inline: strings(&dv.path_or_inline),
            offset: dv.offset.slice(start, len),
            size_in_bytes: dv.size_in_bytes.slice(start, len),
            cardinality: ints(&dv.cardinality),
        });
        let stats = self.stats.as_ref().map(|stats| match stats {
            StatsColumn::Json(a) => StatsColumn::Json(strings(a)),
            StatsColumn::EscapedJson(a) => StatsColumn::EscapedJson(strings(a)),
            StatsColumn::Parsed(a) => StatsColumn::Parsed(a.slice(start, len)),
        });
        Self {
            path: strings(&self.path),
            dv: dv.filter(|dv| dv.present.count_set_bits() > 0),
            partition: self.partition.iter().map(strings).collect(),
            size: ints(&self.size),
            time: self.time.as_ref().map(ints),
            stats,
            tags: self.tags.as_ref().map(strings),
            base_row_id: self.base_row_id.as_ref().map(ints),
            default_row_commit_version: self.default_row_commit_version.as_ref().map(ints),
            data_change: self.data_change.as_ref().map(|a| a.slice(start, len)),
            clustering: self.clustering.as_ref().map(strings),
            order: self.order.iter().skip(start).take(len).copied().collect(),
        }
    }

    /// Concatenates batches with the same columns.
    ///
    /// # Errors
    /// [`crate::error::Error::Internal`] for different columns.
    pub fn concat(all: &[&Self]) -> Result<Self> {
        let some =
            |pick: &dyn Fn(&Self) -> Option<StringViewArray>| -> Result<Option<StringViewArray>> {
                let arrays: Vec<StringViewArray> = all.iter().filter_map(|b| pick(b)).collect();
                if arrays.is_empty() {
                    Ok(None)
                } else {
                    join(&arrays).map(Some)
                }
            };
        // A column that only some batches have is null in the others.
        let ints = |pick: &dyn Fn(&Self) -> Option<Int64Array>| -> Result<Option<Int64Array>> {
            if all.iter().all(|b| pick(b).is_none()) {
                return Ok(None);
            }
            let arrays: Vec<Int64Array> = all
                .iter()
                .map(|b| pick(b).unwrap_or_else(|| Int64Array::new_null(b.len())))
                .collect();
            join(&arrays).map(Some)
        };
        let missing = || crate::error::Error::internal("a column of file actions is missing");
        let partitions = all.first().map_or(0, |b| b.partition.len());
        let dv = if all.iter().any(|b| b.dv.is_some()) {
            let columns: Vec<DvColumns> = all
                .iter()
                .map(|b| b.dv.clone().unwrap_or_else(|| DvColumns::none(b.len())))
                .collect();
            Some(DvColumns {
                present: join(
                    &columns
                        .iter()
                        .map(|d| BooleanArray::new(d.present.clone(), None))
                        .collect::<Vec<_>>(),
                )?
                .values()
                .clone(),
                storage_type: join(
                    &columns
                        .iter()
                        .map(|d| d.storage_type.clone())
                        .collect::<Vec<_>>(),
                )?,
                path_or_inline: join(
                    &columns
                        .iter()
                        .map(|d| d.path_or_inline.clone())
                        .collect::<Vec<_>>(),
                )?,
                offset: join(&columns.iter().map(|d| d.offset.clone()).collect::<Vec<_>>())?,
                size_in_bytes: join(
                    &columns
                        .iter()
                        .map(|d| d.size_in_bytes.clone())
                        .collect::<Vec<_>>(),
                )?,
                cardinality: join(
                    &columns
                        .iter()
                        .map(|d| d.cardinality.clone())
                        .collect::<Vec<_>>(),
                )?,
            })
        } else {
            None
        };
        Ok(Self {
            path: some(&|b| Some(b.path.clone()))?.ok_or_else(missing)?,
            dv,
            partition: (0..partitions)
                .map(|n| some(&|b| b.partition.get(n).cloned())?.ok_or_else(missing))
                .collect::<Result<_>>()?,
            size: ints(&|b| Some(b.size.clone()))?.ok_or_else(missing)?,
            time: ints(&|b| b.time.clone())?,
            stats: None,
            tags: some(&|b| b.tags.clone())?,
            base_row_id: ints(&|b| b.base_row_id.clone())?,
            default_row_commit_version: ints(&|b| b.default_row_commit_version.clone())?,
            data_change: None,
            clustering: some(&|b| b.clustering.clone())?,
            order: Vec::new(),
        })
    }
}

fn take<A: Array + Clone + 'static>(filter: &FilterPredicate, array: &A) -> Result<A> {
    let filtered: ArrayRef = filter.filter(array)?;
    filtered
        .as_any()
        .downcast_ref::<A>()
        .cloned()
        .ok_or_else(|| crate::error::Error::internal("a filter changed the type of its array"))
}

fn join<A: Array + Clone + 'static>(arrays: &[A]) -> Result<A> {
    let joined =
        arrow_select::concat::concat(&arrays.iter().map(|a| a as &dyn Array).collect::<Vec<_>>())?;
    joined
        .as_any()
        .downcast_ref::<A>()
        .cloned()
        .ok_or_else(|| crate::error::Error::internal("joining changed the type of an array"))
}

/// A mask from bits.
#[must_use]
pub fn mask(bits: Vec<bool>) -> BooleanArray {
    BooleanArray::new(BooleanBuffer::from(bits), None)
}

/// Validity of a column from bits, `None` when all are set.
#[must_use]
pub fn validity(bits: BooleanBuffer) -> Option<NullBuffer> {
    Some(NullBuffer::new(bits)).filter(|nulls| nulls.null_count() > 0)
}
