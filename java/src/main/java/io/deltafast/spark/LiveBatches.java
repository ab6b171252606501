package io.deltafast.spark;

import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.Iterator;

/** Batches in which the remaining rows are moved over the deleted ones. */
final class LiveBatches extends LiveIterator {
  private final long[] words;
  private final int position;
  private final boolean isAdded;
  private ColumnarBatch source;
  private ColumnarBatch result;
  private int[] kept = new int[0];
  private long row;

  /**
   * `position`: the column with each row's position in the file; -1 if the batches hold all rows
   * from the first one on.
   */
  LiveBatches(Iterator<?> reader, long[] words, int position, boolean isAdded) {
    super(reader);
    this.words = words;
    this.position = position;
    this.isAdded = isAdded;
  }

  @Override
  Object withoutDeleted(Object read) {
    ColumnarBatch batch = (ColumnarBatch) read;
    if (batch != source) {
      source = batch;
      result = isAdded ? withoutPosition(batch) : batch;
    }
    int rows = moveLiveRows(batch);
    if (rows == 0) {
      return null;
    }
    result.setNumRows(rows);
    return result;
  }

  private ColumnarBatch withoutPosition(ColumnarBatch batch) {
    ColumnVector[] columns = new ColumnVector[batch.numCols() - 1];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = batch.column(i < position ? i : i + 1);
    }
    return new ColumnarBatch(columns);
  }

  /** Moves the rows that are not deleted to the front and returns their number. */
  private int moveLiveRows(ColumnarBatch batch) {
    int rows = batch.numRows();
    if (rows == 0) {
      return 0;
    }
    ColumnVector positions = position < 0 ? null : batch.column(position);
    long start = positions == null ? row : positions.getLong(0);
    row = start + rows;
    // No row was skipped: test 64 rows at once.
    boolean dense = positions == null || positions.getLong(rows - 1) - start == rows - 1;
    int first =
        dense
            ? DeletionBitmap.firstDeleted(words, start, rows)
            : DeletionBitmap.firstDeleted(words, positions, rows);
    if (first == rows) {
      return rows;
    }
    if (kept.length < rows) {
      kept = new int[rows];
    }
    int count =
        dense
            ? DeletionBitmap.liveRows(words, start, first, rows, kept)
            : DeletionBitmap.liveRows(words, positions, first, rows, kept);
    if (count > 0) {
      for (int i = 0; i < result.numCols(); i++) {
        RowMover.move(result.column(i), kept, first, count);
      }
    }
    return count;
  }
}
