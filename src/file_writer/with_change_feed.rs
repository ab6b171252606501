//! Writing rows twice: as data files, and as change data files.
//!
//! Protocol: "Change Data Files". Cost: one pass over the rows, each encoded twice.

use std::sync::Arc;

use arrow_array::{RecordBatch, StringArray};
use arrow_schema::{DataType as Arrow, Field, Schema};
use crossbeam_channel::{Receiver, bounded};

use super::{WriteOutput, WriteRequest, write};
use crate::error::{Error, Result};
use crate::exec::panic_error;
use crate::protocol::schema::{DataType, StructField};
use crate::store::Store;

/// The column of change data with the type of a change.
const KIND: &str = "_change_type";

impl WriteRequest {
    /// The same request for change data files. Every change has a type, so that the column is
    /// required in these files.
    #[must_use]
    pub fn for_change_data(mut self) -> Self {
        self.schema
            .fields
            .push(StructField::new(KIND, DataType::String, false));
        self.hidden.push(KIND.to_owned());
        self.change_data = true;
        self
    }
}

/// The batch as changes of one type.
///
/// # Errors
/// Errors of Arrow.
pub fn with_change_type(batch: &RecordBatch, kind: &str) -> Result<RecordBatch> {
    let mut fields: Vec<Arc<Field>> = batch.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(KIND, Arrow::Utf8, false)));
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(StringArray::from(vec![kind; batch.num_rows()])));
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

/// Writes rows as data, and once more as change data for inserts. Either may fail alone: the files
/// of the other are written then.
///
/// # Errors
/// [`Error::Resource`] if no thread can be started.
pub fn write_with_change_data(
    store: &Arc<dyn Store>,
    request: &WriteRequest,
    rows: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
) -> Result<[Result<WriteOutput>; 2]> {
    let mut feed = request.clone().for_change_data();
    feed.cancel = request.cancel.child();
    let (stop, root) = (feed.cancel.clone(), Arc::clone(store));
    let (data, copy) = tee(rows)?;
    let inserts = move || {
        write(
            &root,
            &feed,
            copy.into_iter()
                .map(|batch: Result<RecordBatch>| with_change_type(&batch?, "insert")),
        )
    };
    let writer = std::thread::Builder::new()
        .name("deltafast-feed".to_owned())
        .spawn(inserts)
        .map_err(|e| Error::no_thread(&e))?;
    let written = write(store, request, data.into_iter());
    if written.is_err() {
        stop.cancel();
    }
    let inserted = writer
        .join()
        .map_err(|panic| panic_error("the writer of changes", &*panic))?;
    Ok([written, inserted])
}

/// The number of batches that wait for the slower of two readers.
const WAITING: usize = 4;

/// One end of a tee.
type TeeReceiver = Receiver<Result<RecordBatch>>;

/// Two streams of the same batches. The source is read by a thread of its own, as long as either
/// stream is read.
fn tee(
    source: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
) -> Result<(TeeReceiver, TeeReceiver)> {
    let ((left, data), (right, copy)) = (bounded(WAITING), bounded(WAITING));
    let pump = move || {
        for batch in source {
            let failed = batch.is_err();
            let sent = (left.send(batch.clone()), right.send(batch));
            if failed || matches!(sent, (Err(_), Err(_))) {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("deltafast-tee".to_owned())
        .spawn(pump)
        .map_err(|e| Error::no_thread(&e))?;
    Ok((data, copy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::{ArrayRef, Int64Array};

    fn batch(ids: &[i64]) -> RecordBatch {
        RecordBatch::try_from_iter(vec![(
            "id",
            Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef,
        )])
        .unwrap()
    }

    #[test]
    fn changes_say_what_happened_behind_the_columns() {
        let told = with_change_type(&batch(&[1, 2]), "insert").unwrap();
        assert_eq!(
            told.schema()
                .fields()
                .iter()
                .map(|f| f.name().as_str())
                .collect::<Vec<_>>(),
            ["id", KIND]
        );
        let texts: &StringArray = told.column(1).as_string();
        assert!(texts.iter().all(|text| text == Some("insert")));
        assert!(!told.schema().field(1).is_nullable());
    }

    #[test]
    fn both_ends_of_a_tee_see_everything_and_its_error() {
        let rows = (0..20).map(|n| {
            if n == 19 {
                Err(Error::invalid("end"))
            } else {
                Ok(batch(&[n]))
            }
        });
        let (data, copy) = tee(rows).unwrap();
        let reader = std::thread::spawn(move || {
            copy.into_iter()
                .map(|b| b.map_or(-1, |b| b.num_rows() as i64))
                .collect::<Vec<_>>()
        });
        let seen: Vec<i64> = data
            .into_iter()
            .map(|b| b.map_or(-1, |b| b.num_rows() as i64))
            .collect();
        assert_eq!((seen.len(), seen[19]), (20, -1));
        assert_eq!(reader.join().unwrap(), seen);
    }

    #[test]
    fn a_tee_goes_on_for_the_reader_that_is_left() {
        let (data, copy) = tee((0..50).map(|n| Ok(batch(&[n])))).unwrap();
        drop(data);
        assert_eq!(copy.into_iter().count(), 50);
    }
}
