package io.deltafast.spark;

import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.Iterator;

/** Batches of Spark's reader with a `StringVector` for each column of strings. */
final class StringBatches extends ReaderIterator {
  private ColumnarBatch source;
  private ColumnarBatch result;

  StringBatches(Iterator<?> reader) {
    super(reader);
  }

  @Override
  public boolean hasNext() {
    return reader.hasNext();
  }

  @Override
  public Object next() {
    ColumnarBatch batch = (ColumnarBatch) reader.next();
    if (batch != source) {
      source = batch;
      result = withStringVectors(batch);
    }
    for (int i = 0; i < result.numCols(); i++) {
      if (result.column(i) instanceof StringVector) {
        ((StringVector) result.column(i)).setBatch();
      }
    }
    result.setNumRows(batch.numRows());
    return result;
  }

  private static ColumnarBatch withStringVectors(ColumnarBatch batch) {
    ColumnVector[] columns = new ColumnVector[batch.numCols()];
    for (int i = 0; i < columns.length; i++) {
      ColumnVector column = batch.column(i);
      columns[i] =
          column instanceof WritableColumnVector && column.dataType() instanceof StringType
              ? new StringVector((WritableColumnVector) column)
              : column;
    }
    return new ColumnarBatch(columns);
  }
}
