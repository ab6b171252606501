package io.deltafast.spark;

import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Moves rows within the column vectors of Spark's reader, which it resets for each batch. */
final class RowMover {
  private RowMover() {}

  /** Whether `PhysicalKind` knows a type and its nested types. */
  static boolean isMovable(DataType type) {
    if (type instanceof StructType) {
      StructField[] fields = ((StructType) type).fields();
      for (int i = 0; i < fields.length; i++) {
        if (!isMovable(fields[i].dataType())) {
          return false;
        }
      }
      return true;
    }
    return PhysicalKind.of(type) >= 0;
  }

  /**
   * Moves the value at `kept[i]` to `i`, for each `i` from `first` on. Values only move to the
   * front, so none is lost.
   */
  static void move(ColumnVector vector, int[] kept, int first, int end) {
    if (!(vector instanceof WritableColumnVector) || ((WritableColumnVector) vector).isAllNull()) {
      return;
    }
    WritableColumnVector column = (WritableColumnVector) vector;
    if (column.hasNull()) {
      moveNulls(column, kept, first, end);
    }
    if (column.hasDictionary()) {
      moveInts(column.getDictionaryIds(), kept, first, end);
      return;
    }
    switch (PhysicalKind.of(column.dataType())) {
      case PhysicalKind.STRUCT:
        for (int i = 0; i < column.getNumChildren(); i++) {
          move(column.getChild(i), kept, first, end);
        }
        return;
      case PhysicalKind.BOOLEAN:
        for (int i = first; i < end; i++) {
          column.putBoolean(i, column.getBoolean(kept[i]));
        }
        return;
      case PhysicalKind.BYTE:
        for (int i = first; i < end; i++) {
          column.putByte(i, column.getByte(kept[i]));
        }
        return;
      case PhysicalKind.SHORT:
        for (int i = first; i < end; i++) {
          column.putShort(i, column.getShort(kept[i]));
        }
        return;
      case PhysicalKind.INT:
        moveInts(column, kept, first, end);
        return;
      case PhysicalKind.LONG:
        moveLongs(column, kept, first, end);
        return;
      case PhysicalKind.FLOAT:
        for (int i = first; i < end; i++) {
          column.putFloat(i, column.getFloat(kept[i]));
        }
        return;
      case PhysicalKind.DOUBLE:
        moveDoubles(column, kept, first, end);
        return;
      case PhysicalKind.BYTES:
      case PhysicalKind.ARRAY:
        moveArrays(column, kept, first, end);
        return;
      default:
        throw new IllegalStateException(
            "deltafast cannot move values of type " + column.dataType());
    }
  }

  // Separate loops, which the JIT compiler optimizes well.

  private static void moveNulls(WritableColumnVector column, int[] kept, int first, int end) {
    for (int i = first; i < end; i++) {
      if (column.isNullAt(kept[i])) {
        column.putNull(i);
      } else {
        column.putNotNull(i);
      }
    }
  }

  private static void moveInts(WritableColumnVector column, int[] kept, int first, int end) {
    for (int i = first; i < end; i++) {
      column.putInt(i, column.getInt(kept[i]));
    }
  }

  private static void moveLongs(WritableColumnVector column, int[] kept, int first, int end) {
    for (int i = first; i < end; i++) {
      column.putLong(i, column.getLong(kept[i]));
    }
  }

  private static void moveDoubles(WritableColumnVector column, int[] kept, int first, int end) {
    for (int i = first; i < end; i++) {
      column.putDouble(i, column.getDouble(kept[i]));
    }
  }

  private static void moveArrays(WritableColumnVector column, int[] kept, int first, int end) {
    for (int i = first; i < end; i++) {
      column.putArray(i, column.getArrayOffset(kept[i]), column.getArrayLength(kept[i]));
    }
  }
}
