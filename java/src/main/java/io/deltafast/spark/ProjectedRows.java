package io.deltafast.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import scala.collection.Iterator;

/** Rows that are built one by one. */
final class ProjectedRows extends ReaderIterator {
  private final UnsafeProjection projection;

  ProjectedRows(Iterator<?> reader, UnsafeProjection projection) {
    super(reader);
    this.projection = projection;
  }

  @Override
  public boolean hasNext() {
    return reader.hasNext();
  }

  @Override
  public Object next() {
    return projection.apply((InternalRow) reader.next());
  }
}
