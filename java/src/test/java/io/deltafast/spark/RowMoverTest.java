package io.deltafast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

class RowMoverTest {
  @Test
  void valuesAndNullsMoveToTheFront() {
    try (OnHeapColumnVector column = new OnHeapColumnVector(4, DataTypes.LongType)) {
      column.putLong(0, 10);
      column.putNull(1);
      column.putLong(2, 30);
      column.putNull(3);
      RowMover.move(column, new int[] {0, 2, 3}, 1, 3);
      assertEquals(10, column.getLong(0));
      assertEquals(30, column.getLong(1));
      assertFalse(column.isNullAt(1));
      assertTrue(column.isNullAt(2));
    }
  }

  @Test
  void stringsMoveWithoutTheirBytes() {
    try (OnHeapColumnVector column = new OnHeapColumnVector(3, DataTypes.StringType)) {
      for (int i = 0; i < 3; i++) {
        column.putByteArray(i, ("value " + i).getBytes());
      }
      RowMover.move(column, new int[] {1, 2}, 0, 2);
      assertEquals("value 1", column.getUTF8String(0).toString());
      assertEquals("value 2", column.getUTF8String(1).toString());
    }
  }

  @Test
  void nestedTypesAreMovable() {
    StructType nested =
        new StructType()
            .add("list", DataTypes.createArrayType(DataTypes.LongType))
            .add("decimal", DataTypes.createDecimalType(30, 2));
    assertTrue(RowMover.isMovable(new StructType().add("nested", nested)));
  }
}
