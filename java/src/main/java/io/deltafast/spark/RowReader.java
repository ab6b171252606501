package io.deltafast.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** Reads a file. */
final class RowReader extends AbstractFunction1<Object, Object> implements Serializable {
  private static final long serialVersionUID = 1;

  @SuppressWarnings("serial") // Spark's are serializable.
  private final Function1<PartitionedFile, ?> reader;

  private final StructType schema;

  /** `schema` of the rows that `reader` returns; null if it returns batches. */
  RowReader(Function1<PartitionedFile, ?> reader, StructType schema) {
    this.reader = reader;
    this.schema = schema;
  }

  @Override
  public Object apply(Object file) {
    Iterator<?> read = (Iterator<?>) reader.apply((PartitionedFile) file);
    return schema == null
        ? new BatchRows(read)
        : new ProjectedRows(read, UnsafeProjection.create(schema));
  }
}
