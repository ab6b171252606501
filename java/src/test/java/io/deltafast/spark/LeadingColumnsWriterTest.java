package io.deltafast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LeadingColumnsWriterTest {
  private static final class RowCollector extends OutputWriter {
    private final List<InternalRow> rows = new ArrayList<>();
    private boolean isClosed;

    @Override
    public String path() {
      return "here";
    }

    @Override
    public void write(InternalRow row) {
      rows.add(row.copy());
    }

    @Override
    public void close() {
      isClosed = true;
    }
  }

  /** A string, numbers and a null. */
  private static StructType schema(int columns) {
    StructField[] fields = new StructField[columns];
    for (int i = 0; i < columns; i++) {
      fields[i] =
          DataTypes.createStructField(
              "c" + i, i == 0 ? DataTypes.StringType : DataTypes.LongType, true);
    }
    return new StructType(fields);
  }

  private static InternalRow row(int columns) {
    Object[] values = new Object[columns];
    for (int i = 0; i < columns; i++) {
      values[i] = i == 0 ? UTF8String.fromString("a string of some length") : (Object) (long) i;
    }
    values[1] = null;
    return new GenericInternalRow(values);
  }

  private static void check(InternalRow whole, int leading) {
    RowCollector found = new RowCollector();
    LeadingColumnsWriter writer = new LeadingColumnsWriter(found, schema(leading));
    writer.write(whole);
    writer.write(whole);
    writer.close();
    InternalRow expected = UnsafeProjection.create(schema(leading)).apply(row(leading)).copy();
    assertEquals(2, found.rows.size());
    for (InternalRow row : found.rows) {
      assertEquals(leading, row.numFields());
      assertEquals(expected.toSeq(schema(leading)), row.toSeq(schema(leading)));
    }
    assertTrue(found.isClosed);
    assertEquals("here", writer.path());
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 61, 62, 63, 64, 65, 127, 128})
  void columnsAfterTheLeadingOnesAreNotWritten(int leading) {
    for (int more : new int[] {0, 1, 2, 3}) {
      InternalRow row = row(leading + more);
      check(UnsafeProjection.create(schema(leading + more)).apply(row), leading);
    }
  }

  @Test
  void rowsOfOtherClassesAreProjected() {
    check(row(7), 5);
  }
}
