//! The metadata domain `delta.clustering`: the columns by which a table is clustered.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::protocol::action::DomainMetadata;
use crate::protocol::schema::{DataType, StructType};
use crate::snapshot::Snapshot;

/// The domain of the clustering columns.
pub(in crate::ops) const CLUSTERING: &str = "delta.clustering";

/// The domain that stores the clustering columns of a table, given by their paths.
pub(in crate::ops) fn clustering_domain(
    schema: &StructType,
    columns: &[Vec<String>],
) -> Result<DomainMetadata> {
    let physical_path = |path: &Vec<String>| {
        let mut fields = Some(schema);
        path.iter()
            .map(|name| {
                let field = fields
                    .and_then(|fields| fields.field(name))
                    .ok_or_else(|| {
                        Error::internal("a clustering column is not in the schema").at_column(name)
                    })?;
                fields = match &field.data_type {
                    DataType::Struct(inner) => Some(inner),
                    _ => None,
                };
                Ok(field.physical_name())
            })
            .collect::<Result<Vec<_>>>()
    };
    let paths = columns
        .iter()
        .map(physical_path)
        .collect::<Result<Vec<_>>>()?;
    let configuration =
        serde_json::json!({"clusteringColumns": paths, "domainName": CLUSTERING}).to_string();
    Ok(DomainMetadata {
        domain: CLUSTERING.to_owned(),
        configuration,
        removed: false,
    })
}

/// Logical paths of the clustering columns.
pub(in crate::ops) fn clustering_columns(snapshot: &Snapshot) -> Result<Vec<Vec<String>>> {
    let Some(domain) = snapshot.non_file_actions()?.domains.get(CLUSTERING) else {
        return Ok(Vec::new());
    };
    let parsed: Value = serde_json::from_str(&domain.configuration)
        .map_err(|e| Error::corrupt(format!("the domain `{CLUSTERING}` is not JSON: {e}")))?;
    let columns = parsed
        .get("clusteringColumns")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let logical = |path: &Value| {
        let mut schema = snapshot.schema().clone();
        let mut out = Vec::new();
        for part in path
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            let field = schema
                .fields
                .iter()
                .find(|field| snapshot.physical_name(field) == part)?
                .clone();
            out.push(field.name.clone());
            schema = match &field.data_type {
                DataType::Struct(inner) => inner.as_ref().clone(),
                _ => StructType::default(),
            };
        }
        Some(out)
    };
    Ok(columns.iter().filter_map(logical).collect())
}
