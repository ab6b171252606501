//! Expressions: the functions that there are, values of constants, evaluation over streams.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{Field, Schema, SchemaRef};
use pyo3::prelude::*;
use serde_json::Value;

use super::arrow::{ArrowStream, import_stream};
use super::error::to_python;
use super::values::{BoundArgument, FromPython, IntoPython};
use crate::exec::ProgressCounter;
use crate::expr::{self, DataTypeJson, Function, SqlFunction, eval};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::schema::{DataType, StringLayout};
use crate::scan::BatchStream;

/// The names of all functions that a bound expression can call.
#[pyfunction]
pub(super) fn function_names() -> Vec<&'static str> {
    Function::ALL
        .iter()
        .map(|function| function.name())
        .collect()
}

/// The functions of SQL that each mean one function of the core, with their parameters.
#[pyfunction]
pub(super) fn sql_functions() -> IntoPython<Vec<SqlFunction>> {
    IntoPython(expr::sql_functions())
}

/// Casts constants as `try_cast` does: values and results are those of literals in a tree.
#[pyfunction]
#[pyo3(signature = (values, source, target, zone, exact=false))]
pub(super) fn cast_constants(
    py: Python<'_>,
    values: FromPython<Vec<Value>>,
    source: FromPython<DataTypeJson>,
    target: FromPython<DataTypeJson>,
    zone: &str,
    exact: bool,
) -> PyResult<IntoPython<Vec<Value>>> {
    let cast_all = || {
        let source = DataType::from_json(&source.0)?;
        let target = DataType::from_json(&target.0)?;
        eval::cast_constants(
            &values.0,
            &source,
            &target,
            TimeZoneSpec::parse(zone)?,
            exact,
        )
    };
    cast_all().map(IntoPython).map_err(|e| to_python(py, &e))
}

/// Evaluates a typed expression tree over every batch of a stream: one column, `value`.
#[pyfunction]
pub(super) fn evaluate(tree: BoundArgument, stream: &Bound<'_, PyAny>) -> PyResult<ArrowStream> {
    let bound = tree.0;
    let reader = import_stream(stream)?;
    let nullable = Field::new(
        "value",
        bound.data_type().to_arrow(StringLayout::Plain),
        true,
    );
    let schema: SchemaRef = Arc::new(Schema::new(vec![nullable]));
    let out = Arc::clone(&schema);
    let batches = reader.map(move |batch| {
        let value = bound.evaluate(&batch?)?;
        let value = if value.data_type() == out.field(0).data_type() {
            value
        } else {
            cast(&value, out.field(0).data_type())?
        };
        Ok(RecordBatch::try_new(Arc::clone(&out), vec![value])?)
    });
    Ok(ArrowStream::new(
        BatchStream {
            schema,
            batches: Box::new(batches),
            progress: ProgressCounter::default(),
        },
        false,
    ))
}
