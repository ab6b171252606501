package io.deltafast.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.vectorized.ColumnVectorUtils;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.AbstractIterator;

/** The number of rows of a file, with its constants as their values. */
final class ConstantRows extends AbstractIterator<Object> {
  private static final int MAX_BATCH_ROWS = 1 << 20;
  private final StructType partition;
  private final InternalRow values;
  private final boolean batches;
  private final InternalRow row;
  private long left;

  ConstantRows(long rows, StructType partition, InternalRow values, boolean batches) {
    this.left = rows;
    this.partition = partition;
    this.values = values;
    this.batches = batches;
    this.row = batches ? null : UnsafeProjection.create(partition).apply(values);
  }

  @Override
  public boolean hasNext() {
    return left > 0;
  }

  @Override
  public Object next() {
    if (!batches) {
      left--;
      return row;
    }
    int rows = (int) Math.min(left, MAX_BATCH_ROWS);
    left -= rows;
    ColumnVector[] columns = new ColumnVector[partition.length()];
    for (int i = 0; i < columns.length; i++) {
      ConstantColumnVector column =
          new ConstantColumnVector(rows, partition.fields()[i].dataType());
      ColumnVectorUtils.populate(column, values, i);
      columns[i] = column;
    }
    return new ColumnarBatch(columns, rows);
  }
}
