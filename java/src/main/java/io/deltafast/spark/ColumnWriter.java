package io.deltafast.spark;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Writes a column's values to rows, which are zero before. */
final class ColumnWriter {
  /**
   * Kinds in addition to `PhysicalKind`: decimals of up to 9 digits, integers in a vector and longs
   * in a row, and of more than 18.
   */
  private static final int SMALL_DECIMAL = 10;

  private static final int LARGE_DECIMAL = 11;

  /** Bytes that are reserved for a large decimal. */
  private static final int LARGE_DECIMAL_BYTES = 16;

  private final int kind;
  private final boolean isString;

  /**
   * Offsets and masks in a row: the word with this column's null bit, the bit, the column's own
   * word.
   */
  private final long word;

  private final long bit;
  private final long field;
  private ColumnVector vector;
  private boolean hasNull;
  private boolean isNull;

  /** The value of a constant column. */
  private byte[] constant;

  /**
   * Values of the batch's dictionary by number; those of an earlier batch have a smaller batch
   * number.
   */
  private byte[][] dictionary = new byte[0][];

  private int[] batchNumbers = new int[0];
  private int batchNumber;

  ColumnWriter(int ordinal, int columns, DataType type) {
    kind = rowKind(type);
    isString = !(type instanceof BinaryType);
    word = Platform.BYTE_ARRAY_OFFSET + (ordinal >> 6 << 3);
    bit = 1L << ordinal;
    field =
        Platform.BYTE_ARRAY_OFFSET + UnsafeRow.calculateBitSetWidthInBytes(columns) + 8 * ordinal;
  }

  /** How a row stores values of a type; -1 for nested types. */
  static int rowKind(DataType type) {
    int kind = PhysicalKind.of(type);
    if (type instanceof DecimalType) {
      return kind == PhysicalKind.INT
          ? SMALL_DECIMAL
          : kind == PhysicalKind.BYTES ? LARGE_DECIMAL : kind;
    }
    return kind == PhysicalKind.STRUCT || kind == PhysicalKind.ARRAY ? -1 : kind;
  }

  /** Starts another batch, and adds to the rows' sizes. */
  void setVector(ColumnVector column, int rows, int[] sizes) {
    vector = column;
    hasNull = column.hasNull();
    boolean isConstant = column instanceof ConstantColumnVector;
    isNull = hasNull && (isConstant || ((WritableColumnVector) column).isAllNull());
    constant = null;
    if (kind == LARGE_DECIMAL) {
      for (int i = 0; i < rows; i++) {
        sizes[i] += LARGE_DECIMAL_BYTES;
      }
    } else if (kind == PhysicalKind.BYTES && !isNull) {
      if (isConstant) {
        constant = isString ? column.getUTF8String(0).getBytes() : column.getBinary(0);
        for (int i = 0; i < rows; i++) {
          sizes[i] += padded(constant.length);
        }
      } else if (((WritableColumnVector) column).hasDictionary()) {
        batchNumber++;
        addDictionarySizes((WritableColumnVector) column, rows, sizes);
      } else {
        addSizes((WritableColumnVector) column, hasNull, rows, sizes);
      }
    }
  }

  private static int padded(int length) {
    return (length + 7) & ~7;
  }

  private static void addSizes(
      WritableColumnVector column, boolean hasNull, int rows, int[] sizes) {
    for (int i = 0; i < rows; i++) {
      if (!hasNull || !column.isNullAt(i)) {
        sizes[i] += padded(column.getArrayLength(i));
      }
    }
  }

  private void addDictionarySizes(WritableColumnVector column, int rows, int[] sizes) {
    WritableColumnVector ids = column.getDictionaryIds();
    for (int i = 0; i < rows; i++) {
      if (!hasNull || !column.isNullAt(i)) {
        int id = ids.getDictId(i);
        if (id >= batchNumbers.length) {
          int most = Math.max(2 * batchNumbers.length, id + 64);
          byte[][] longer = new byte[most][];
          System.arraycopy(dictionary, 0, longer, 0, dictionary.length);
          dictionary = longer;
          batchNumbers = Arrays.copyOf(batchNumbers, most);
        }
        if (batchNumbers[id] != batchNumber) {
          batchNumbers[id] = batchNumber;
          dictionary[id] = column.getBinary(i);
        }
        sizes[i] += padded(dictionary[id].length);
      }
    }
  }

  /**
   * Writes the values of `count` rows of the batch to rows that begin at `starts`, and advances
   * `ends` by their sizes.
   */
  void put(int begin, int count, byte[] bytes, int[] starts, int[] ends) {
    if (hasNull) {
      putNulls(begin, count, bytes, starts);
    }
    if (kind == LARGE_DECIMAL) {
      putDecimals(begin, count, bytes, starts, ends);
      return;
    }
    if (isNull) {
      return;
    }
    if (constant != null) {
      for (int i = 0; i < count; i++) {
        put(constant, Platform.BYTE_ARRAY_OFFSET, constant.length, bytes, starts[i], ends, i);
      }
      return;
    }
    if (vector instanceof ConstantColumnVector) {
      putConstants(fixedWord(0), count, bytes, starts, field);
      return;
    }
    WritableColumnVector column = (WritableColumnVector) vector;
    switch (kind) {
      case PhysicalKind.INT:
        putInts(column, hasNull, begin, count, bytes, starts, field);
        return;
      case PhysicalKind.LONG:
        putLongs(column, hasNull, begin, count, bytes, starts, field);
        return;
      case PhysicalKind.DOUBLE:
        putDoubles(column, hasNull, begin, count, bytes, starts, field);
        return;
      case PhysicalKind.BYTES:
        if (column.hasDictionary()) {
          putDictionaryValues(column, begin, count, bytes, starts, ends);
        } else {
          putStrings(column, begin, count, bytes, starts, ends);
        }
        return;
      default:
        for (int i = 0; i < count; i++) {
          if (!hasNull || !column.isNullAt(begin + i)) {
            Platform.putLong(bytes, starts[i] + field, fixedWord(begin + i));
          }
        }
    }
  }

  /** A value of a fixed size as a word of a row. */
  private long fixedWord(int row) {
    switch (kind) {
      case PhysicalKind.BOOLEAN:
        return vector.getBoolean(row) ? 1 : 0;
      case PhysicalKind.BYTE:
        return vector.getByte(row) & 0xffL;
      case PhysicalKind.SHORT:
        return vector.getShort(row) & 0xffffL;
      case PhysicalKind.INT:
        return vector.getInt(row) & 0xffffffffL;
      case SMALL_DECIMAL:
        return vector.getInt(row);
      case PhysicalKind.LONG:
        return vector.getLong(row);
      case PhysicalKind.FLOAT:
        return Float.floatToRawIntBits(vector.getFloat(row)) & 0xffffffffL;
      case PhysicalKind.DOUBLE:
        return Double.doubleToRawLongBits(vector.getDouble(row));
      default:
        throw new IllegalStateException("deltafast cannot make rows of type " + vector.dataType());
    }
  }

  private void putNulls(int begin, int count, byte[] bytes, int[] starts) {
    for (int i = 0; i < count; i++) {
      if (isNull || vector.isNullAt(begin + i)) {
        Platform.putLong(bytes, starts[i] + word, Platform.getLong(bytes, starts[i] + word) | bit);
      }
    }
  }

  // Separate loops, which the JIT compiler optimizes well.

  private static void putConstants(long value, int count, byte[] bytes, int[] starts, long field) {
    for (int i = 0; i < count; i++) {
      Platform.putLong(bytes, starts[i] + field, value);
    }
  }

  private static void putInts(
      WritableColumnVector column,
      boolean hasNull,
      int begin,
      int count,
      byte[] bytes,
      int[] starts,
      long field) {
    for (int i = 0; i < count; i++) {
      if (!hasNull || !column.isNullAt(begin + i)) {
        Platform.putInt(bytes, starts[i] + field, column.getInt(begin + i));
      }
    }
  }

  private static void putLongs(
      WritableColumnVector column,
      boolean hasNull,
      int begin,
      int count,
      byte[] bytes,
      int[] starts,
      long field) {
    for (int i = 0; i < count; i++) {
      if (!hasNull || !column.isNullAt(begin + i)) {
        Platform.putLong(bytes, starts[i] + field, column.getLong(begin + i));
      }
    }
  }

  private static void putDoubles(
      WritableColumnVector column,
      boolean hasNull,
      int begin,
      int count,
      byte[] bytes,
      int[] starts,
      long field) {
    for (int i = 0; i < count; i++) {
      if (!hasNull || !column.isNullAt(begin + i)) {
        Platform.putDouble(bytes, starts[i] + field, column.getDouble(begin + i));
      }
    }
  }

  /** Values of a dictionary. */
  private void putDictionaryValues(
      WritableColumnVector column, int begin, int count, byte[] bytes, int[] starts, int[] ends) {
    WritableColumnVector ids = column.getDictionaryIds();
    for (int i = 0; i < count; i++) {
      if (!hasNull || !column.isNullAt(begin + i)) {
        byte[] value = dictionary[ids.getDictId(begin + i)];
        put(value, Platform.BYTE_ARRAY_OFFSET, value.length, bytes, starts[i], ends, i);
      }
    }
  }

  private void putStrings(
      WritableColumnVector column, int begin, int count, byte[] bytes, int[] starts, int[] ends) {
    int first = 0;
    while (first < count && hasNull && column.isNullAt(begin + first)) {
      first++;
    }
    if (first == count) {
      return;
    }
    // All values are located in one buffer.
    UTF8String firstValue = column.getUTF8String(begin + first);
    Object from = firstValue.getBaseObject();
    long offset = firstValue.getBaseOffset() - column.getArrayOffset(begin + first);
    for (int i = first; i < count; i++) {
      if (!hasNull || !column.isNullAt(begin + i)) {
        put(
            from,
            offset + column.getArrayOffset(begin + i),
            column.getArrayLength(begin + i),
            bytes,
            starts[i],
            ends,
            i);
      }
    }
  }

  /** Writes a value of variable size to row `i`. */
  private void put(
      Object from, long offset, int length, byte[] bytes, int start, int[] ends, int i) {
    int at = ends[i];
    Platform.putLong(bytes, start + field, (long) (at - start) << 32 | length);
    copy(from, offset, length, bytes, Platform.BYTE_ARRAY_OFFSET + at);
    ends[i] = at + padded(length);
  }

  /** Large decimals, with the minimal number of bytes that Java's BigInteger has. */
  private void putDecimals(int begin, int count, byte[] bytes, int[] starts, int[] ends) {
    DecimalType type = (DecimalType) vector.dataType();
    for (int i = 0; i < count; i++) {
      int at = ends[i];
      byte[] value = null;
      if (!isNull && !vector.isNullAt(begin + i)) {
        value =
            vector
                .getDecimal(begin + i, type.precision(), type.scale())
                .toJavaBigDecimal()
                .unscaledValue()
                .toByteArray();
        copy(
            value,
            Platform.BYTE_ARRAY_OFFSET,
            value.length,
            bytes,
            Platform.BYTE_ARRAY_OFFSET + at);
      }
      Platform.putLong(
          bytes,
          starts[i] + field,
          (long) (at - starts[i]) << 32 | (value == null ? 0 : value.length));
      ends[i] = at + LARGE_DECIMAL_BYTES;
    }
  }

  /** Copies bytes: for short values a call of copyMemory is slower than a loop. */
  private static void copy(Object from, long offset, int length, byte[] bytes, long to) {
    if (length > 64) {
      Platform.copyMemory(from, offset, bytes, to, length);
    } else if (length >= 8) {
      int last = length - 8;
      for (int i = 0; i < last; i += 8) {
        Platform.putLong(bytes, to + i, Platform.getLong(from, offset + i));
      }
      Platform.putLong(bytes, to + last, Platform.getLong(from, offset + last));
    } else {
      for (int i = 0; i < length; i++) {
        Platform.putByte(bytes, to + i, Platform.getByte(from, offset + i));
      }
    }
  }
}
