package io.deltafast.spark;

import java.util.Arrays;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The strings of a column vector of Spark's reader. An entry of a dictionary is decoded once for a
 * batch; Spark copies its bytes for each row that has it.
 */
final class StringVector extends ColumnVector {
  /** Entries that are kept, as many as Spark reads rows at once by default. */
  private static final int KEPT_ENTRIES = 4096;

  private final WritableColumnVector column;
  private final UTF8String[] entries = new UTF8String[KEPT_ENTRIES];

  /** The entry of each row; null if the values of the batch are not of a dictionary. */
  private WritableColumnVector ids;

  private boolean hasNull;

  StringVector(WritableColumnVector column) {
    super(column.dataType());
    this.column = column;
  }

  /** Must be called for each batch: another one has another dictionary. */
  void setBatch() {
    if (ids != null) {
      Arrays.fill(entries, null);
    }
    ids = column.hasDictionary() ? column.getDictionaryIds() : null;
    hasNull = column.hasNull();
  }

  @Override
  public UTF8String getUTF8String(int row) {
    if (ids == null) {
      return column.getUTF8String(row);
    }
    if (isNullAt(row)) {
      return null;
    }
    int id = ids.getDictId(row);
    if (id >= KEPT_ENTRIES) {
      return column.getUTF8String(row);
    }
    UTF8String entry = entries[id];
    if (entry == null) {
      entry = column.getUTF8String(row);
      entries[id] = entry;
    }
    return entry;
  }

  @Override
  public byte[] getBinary(int row) {
    return column.getBinary(row);
  }

  @Override
  public boolean hasNull() {
    return hasNull;
  }

  @Override
  public int numNulls() {
    return column.numNulls();
  }

  @Override
  public boolean isNullAt(int row) {
    return hasNull && column.isNullAt(row);
  }

  @Override
  public void close() {
    column.close();
  }

  /** The reader uses its vectors for all batches. */
  @Override
  public void closeIfFreeable() {
    column.closeIfFreeable();
  }

  @Override
  public boolean getBoolean(int row) {
    throw unsupported();
  }

  @Override
  public byte getByte(int row) {
    throw unsupported();
  }

  @Override
  public short getShort(int row) {
    throw unsupported();
  }

  @Override
  public int getInt(int row) {
    throw unsupported();
  }

  @Override
  public long getLong(int row) {
    throw unsupported();
  }

  @Override
  public float getFloat(int row) {
    throw unsupported();
  }

  @Override
  public double getDouble(int row) {
    throw unsupported();
  }

  @Override
  public ColumnarArray getArray(int row) {
    throw unsupported();
  }

  @Override
  public ColumnarMap getMap(int row) {
    throw unsupported();
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    throw unsupported();
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    throw unsupported();
  }

  private static UnsupportedOperationException unsupported() {
    return new UnsupportedOperationException("the column has strings");
  }
}
