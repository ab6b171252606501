//! How many columns of a Parquet file an Arrow type takes.

use arrow_schema::DataType as Arrow;

/// Number of leaf columns of a type.
pub(super) fn leaf_count(data_type: &Arrow) -> usize {
    match data_type {
        Arrow::Struct(fields) => fields
            .iter()
            .map(|field| leaf_count(field.data_type()))
            .sum(),
        Arrow::List(field) | Arrow::Map(field, _) => leaf_count(field.data_type()),
        _ => 1,
    }
}
