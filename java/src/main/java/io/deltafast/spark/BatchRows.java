package io.deltafast.spark;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import scala.collection.Iterator;

/** The rows of batches; each is overwritten by later ones, as Spark's are. */
final class BatchRows extends ReaderIterator {
  /** Bytes of rows that are built together: they fit into the cache of a CPU core. */
  private static final int CHUNK_BYTES = 1 << 18;

  private ColumnWriter[] columns = new ColumnWriter[0];
  private UnsafeRow row = new UnsafeRow(0);
  private int fixed;

  /**
   * Number of rows of the batch, their sizes in bytes, and the rows that are built: from `begin` to
   * `end`, next `next`.
   */
  private int rows;

  private int[] sizes = new int[0];
  private int begin;
  private int end;
  private int next;
  private byte[] bytes = new byte[0];

  /** The offset of each row in `bytes`, and of its next value of variable size. */
  private int[] starts = new int[0];

  private int[] ends = new int[0];

  BatchRows(Iterator<?> reader) {
    super(reader);
  }

  @Override
  public boolean hasNext() {
    while (next == end) {
      if (end == rows) {
        if (!reader.hasNext()) {
          return false;
        }
        setBatch((ColumnarBatch) reader.next());
      }
      buildRows();
    }
    return true;
  }

  @Override
  public Object next() {
    if (!hasNext()) {
      throw new java.util.NoSuchElementException();
    }
    row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + starts[next - begin], sizes[next]);
    next++;
    return row;
  }

  private void setBatch(ColumnarBatch batch) {
    if (columns.length != batch.numCols()) {
      columns = new ColumnWriter[batch.numCols()];
      for (int i = 0; i < columns.length; i++) {
        columns[i] = new ColumnWriter(i, columns.length, batch.column(i).dataType());
      }
      row = new UnsafeRow(columns.length);
      fixed = UnsafeRow.calculateBitSetWidthInBytes(columns.length) + 8 * columns.length;
    }
    rows = batch.numRows();
    begin = 0;
    end = 0;
    next = 0;
    if (sizes.length < rows) {
      sizes = new int[rows];
    }
    Arrays.fill(sizes, 0, rows, fixed);
    for (int i = 0; i < columns.length; i++) {
      columns[i].setVector(batch.column(i), rows, sizes);
    }
  }

  /** Builds the next rows of the batch. */
  private void buildRows() {
    begin = end;
    long size = 0;
    while (end < rows && (end == begin || size + sizes[end] <= CHUNK_BYTES)) {
      if (sizes[end] < 0) {
        throw new UnsupportedOperationException("a row of more than 2 GiB");
      }
      size += sizes[end];
      end++;
    }
    int count = end - begin;
    if (starts.length < count) {
      starts = new int[count];
      ends = new int[count];
    }
    int at = 0;
    for (int i = 0; i < count; i++) {
      starts[i] = at;
      ends[i] = at + fixed;
      at += sizes[begin + i];
    }
    if (bytes.length < at) {
      bytes = new byte[at];
    } else {
      Arrays.fill(bytes, 0, at, (byte) 0);
    }
    for (int i = 0; i < columns.length; i++) {
      columns[i].put(begin, count, bytes, starts, ends);
    }
  }
}
