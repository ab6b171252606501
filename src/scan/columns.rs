//! Mapping of logical columns to their names in the log and back.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::parse::stats::{StatsLeafColumn, has_bounds};
use crate::process::RaceOnce;
use crate::protocol::schema::{DataType, StructField, StructType};
use crate::snapshot::Snapshot;

/// The leaf columns of a table's data files that can have statistics.
#[derive(Default)]
pub struct LeafColumns {
    /// Logical path of each.
    pub logical: Vec<Vec<String>>,
    /// Physical path and type of each.
    pub physical: Vec<StatsLeafColumn>,
    /// Positions by logical path, made when one is first asked for.
    positions: RaceOnce<FxHashMap<Vec<String>, usize>>,
}

/// All leaves except those of partition columns, arrays and maps.
#[must_use]
pub fn leaves(snapshot: &Snapshot) -> LeafColumns {
    with_null_counts(snapshot).only(|leaf| leaf.data_type.is_primitive())
}

/// The same with arrays, maps and variants, whose nulls are counted too. These are not used for
/// pruning: writers count differently.
#[must_use]
pub fn with_null_counts(snapshot: &Snapshot) -> LeafColumns {
    let mut out = LeafColumns::default();
    let partition = &snapshot.metadata().partition_columns;
    let fields = snapshot
        .schema()
        .fields
        .iter()
        .filter(|f| !partition.contains(&f.name));
    for field in fields {
        collect(snapshot, field, &mut Vec::new(), &mut Vec::new(), &mut out);
    }
    out
}

fn collect(
    snapshot: &Snapshot,
    field: &StructField,
    logical: &mut Vec<String>,
    physical: &mut Vec<String>,
    out: &mut LeafColumns,
) {
    logical.push(field.name.clone());
    physical.push(snapshot.physical_name(field).to_owned());
    match &field.data_type {
        DataType::Struct(inner) => {
            for field in &inner.fields {
                collect(snapshot, field, logical, physical, out);
            }
        }
        leaf => {
            out.logical.push(logical.clone());
            // Bounds of collated strings are not in byte order.
            let bounds = has_bounds(leaf) && !field.is_collated();
            out.physical.push(StatsLeafColumn {
                path: physical.clone(),
                data_type: leaf.clone(),
                bounds,
            });
        }
    }
    logical.pop();
    physical.pop();
}

impl Clone for LeafColumns {
    fn clone(&self) -> Self {
        Self {
            logical: self.logical.clone(),
            physical: self.physical.clone(),
            ..Self::default()
        }
    }
}

impl std::fmt::Debug for LeafColumns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.physical.fmt(f)
    }
}

impl LeafColumns {
    /// Position of the leaf at a logical path.
    #[must_use]
    pub fn position(&self, path: &[String]) -> Option<usize> {
        let positions = self
            .positions
            .get_or_make(|| self.logical.iter().cloned().zip(0..).collect());
        positions.get(path).copied()
    }

    /// Only those of these columns, or below them.
    #[must_use]
    pub fn below<'a>(&self, columns: impl IntoIterator<Item = &'a [String]>) -> Self {
        let columns: FxHashSet<&[String]> = columns.into_iter().collect();
        self.filter(|leaf| {
            (1..=leaf.len()).any(|n| leaf.get(..n).is_some_and(|path| columns.contains(path)))
        })
    }

    /// Only those for which `keep` is true.
    #[must_use]
    pub fn filter(&self, keep: impl Fn(&[String]) -> bool) -> Self {
        let both = self
            .logical
            .iter()
            .zip(&self.physical)
            .filter(|(logical, _)| keep(logical));
        let (logical, physical) = both.map(|(l, p)| (l.clone(), p.clone())).unzip();
        Self {
            logical,
            physical,
            ..Self::default()
        }
    }

    fn only(self, keep: impl Fn(&StatsLeafColumn) -> bool) -> Self {
        let (logical, physical) = self
            .logical
            .into_iter()
            .zip(self.physical)
            .filter(|(_, leaf)| keep(leaf))
            .unzip();
        Self {
            logical,
            physical,
            ..Self::default()
        }
    }
}

/// The column of this name, exact case first.
pub(super) fn find<'a>(schema: &'a StructType, name: &str) -> Option<&'a StructField> {
    schema.field(name)
}
