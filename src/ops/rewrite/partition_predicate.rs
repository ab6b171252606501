//! Predicates that operations build: the rows that another predicate does not select, the rows of
//! some partitions.

use arrow_array::{ArrayRef, BooleanArray, StringViewArray};
use arrow_row::{RowConverter, SortField};

use crate::error::{Error, Result, ResultExt};
use crate::expr::{BoundExpr, Expr, Function, Scalar};
use crate::file_writer::WrittenDataFile;
use crate::parse::{FileBatch, mask};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::partition_value;
use crate::protocol::schema::{DataType, StructField};
use crate::snapshot::Snapshot;

/// True for the rows for which `predicate` is false or null.
pub(in crate::ops) fn not_true(predicate: &BoundExpr) -> Result<BoundExpr> {
    let held = Expr::call(
        Function::EqualNullSafe,
        vec![predicate.expr.clone(), Expr::boolean(Some(true))],
        DataType::Boolean,
    )?;
    Ok(predicate.with(Expr::call(Function::Not, vec![held], DataType::Boolean)?))
}

/// The maximum number of partitions or keys that are listed individually.
pub(in crate::ops) const NAMED: usize = 1000;

/// Some partitions of a table, compared by the meaning of their values: writers format the same
/// timestamp in several ways.
pub(in crate::ops) struct PartitionSet {
    fields: Vec<StructField>,
    zone: TimeZoneSpec,
    converter: RowConverter,
    known: std::collections::HashSet<Vec<u8>>,
    /// The values of each partition.
    values: Vec<Vec<Scalar>>,
}

impl PartitionSet {
    /// The partitions of files that were just written.
    pub(in crate::ops) fn of(snapshot: &Snapshot, files: &[WrittenDataFile]) -> Result<Self> {
        let fields: Vec<StructField> = snapshot.partition_fields().into_iter().cloned().collect();
        let types = fields.iter().map(|field| {
            field
                .data_type
                .to_arrow(crate::protocol::schema::StringLayout::Plain)
        });
        let converter = RowConverter::new(types.map(SortField::new).collect())?;
        let mut out = Self {
            fields,
            zone: snapshot.options().zone,
            converter,
            known: std::collections::HashSet::new(),
            values: Vec::new(),
        };
        let columns: Vec<StringViewArray> = out
            .fields
            .iter()
            .map(|field| {
                let name = snapshot.physical_name(field);
                files
                    .iter()
                    .map(|file| {
                        file.partition_values
                            .iter()
                            .find(|(known, _)| known == name)
                            .and_then(|(_, value)| value.as_deref())
                    })
                    .collect()
            })
            .collect();
        let typed = out.parse_partition_values(&columns)?;
        let rows = out.converter.convert_columns(&typed)?;
        for (n, row) in rows.iter().enumerate() {
            if out.known.insert(row.as_ref().to_vec()) {
                let values = typed.iter().map(|array| {
                    Scalar::of(array, n)
                        .ok_or_else(|| Error::internal("a partition value is not a scalar"))
                });
                out.values.push(values.collect::<Result<_>>()?);
            }
        }
        Ok(out)
    }

    fn parse_partition_values(&self, columns: &[StringViewArray]) -> Result<Vec<ArrayRef>> {
        self.fields
            .iter()
            .zip(columns)
            .map(|(field, values)| {
                partition_value::parse(values, &field.data_type, self.zone).at_column(&field.name)
            })
            .collect()
    }

    /// The rows of a batch of files that are in one of the partitions.
    pub(in crate::ops) fn matching_files(&self, batch: &FileBatch) -> Result<BooleanArray> {
        let typed = self.parse_partition_values(&batch.partition)?;
        let rows = self.converter.convert_columns(&typed)?;
        Ok(mask(
            rows.iter()
                .map(|row| self.known.contains(row.as_ref() as &[u8]))
                .collect(),
        ))
    }

    /// A predicate that is true for the rows of these partitions; `None` if they are too many to
    /// list.
    pub(in crate::ops) fn predicate(&self) -> Result<Option<BoundExpr>> {
        if self.values.len() > NAMED {
            return Ok(None);
        }
        let one = |values: &Vec<Scalar>| {
            let equal = self.fields.iter().zip(values).map(|(field, value)| {
                let column = Expr::Column {
                    path: vec![field.name.clone()],
                    data_type: field.data_type.clone(),
                };
                let value = Expr::Literal {
                    value: value.clone(),
                    data_type: field.data_type.clone(),
                };
                Expr::call(
                    Function::EqualNullSafe,
                    vec![column, value],
                    DataType::Boolean,
                )
            });
            combine_exprs(Function::And, equal.collect::<Result<_>>()?)
        };
        let expr = combine_exprs(
            Function::Or,
            self.values.iter().map(one).collect::<Result<_>>()?,
        )?;
        Ok(Some(BoundExpr {
            expr,
            ansi: true,
            zone: self.zone,
        }))
    }
}

/// Expressions combined with AND or OR.
pub(in crate::ops) fn combine_exprs(function: Function, mut args: Vec<Expr>) -> Result<Expr> {
    match args.len() {
        0 => Ok(Expr::boolean(Some(function == Function::And))),
        1 => args
            .pop()
            .ok_or_else(|| Error::internal("a list of one is empty")),
        _ => Expr::call(function, args, DataType::Boolean),
    }
}
