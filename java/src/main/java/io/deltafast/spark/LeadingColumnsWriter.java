package io.deltafast.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Writes one file of `LeadingColumnsFormat`. */
final class LeadingColumnsWriter extends OutputWriter {
  private final OutputWriter writer;
  private final UnsafeRow row;
  private final int bitmap;
  private final StructType leading;

  /** Null before it is needed. */
  private UnsafeProjection projection;

  LeadingColumnsWriter(OutputWriter writer, StructType leading) {
    this.writer = writer;
    this.row = new UnsafeRow(leading.length());
    this.bitmap = UnsafeRow.calculateBitSetWidthInBytes(leading.length());
    this.leading = leading;
  }

  @Override
  public String path() {
    return writer.path();
  }

  @Override
  public void write(InternalRow whole) {
    // An `UnsafeRow` begins with a bit for each column, in words; then come the columns.
    if (whole instanceof UnsafeRow
        && UnsafeRow.calculateBitSetWidthInBytes(whole.numFields()) == bitmap) {
      UnsafeRow all = (UnsafeRow) whole;
      row.pointTo(all.getBaseObject(), all.getBaseOffset(), all.getSizeInBytes());
      writer.write(row);
    } else {
      writer.write(projected(whole));
    }
  }

  @Override
  public void close() {
    writer.close();
  }

  private InternalRow projected(InternalRow whole) {
    if (projection == null) {
      List<Expression> columns = new ArrayList<>();
      StructField[] fields = leading.fields();
      for (int i = 0; i < fields.length; i++) {
        columns.add(new BoundReference(i, fields[i].dataType(), true));
      }
      projection = UnsafeProjection.create(SparkInternals.seqOf(columns));
    }
    return projection.apply(whole);
  }
}
