package io.deltafast.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import scala.collection.Iterator;

/** Single rows; `projection` is null if they are returned unchanged. */
final class LiveRows extends LiveIterator {
  private final long[] words;
  private final int position;
  private final UnsafeProjection projection;

  LiveRows(Iterator<?> reader, long[] words, int position, UnsafeProjection projection) {
    super(reader);
    this.words = words;
    this.position = position;
    this.projection = projection;
  }

  @Override
  Object withoutDeleted(Object read) {
    InternalRow row = (InternalRow) read;
    if (DeletionBitmap.isDeleted(words, row.getLong(position))) {
      return null;
    }
    return projection == null ? row : projection.apply(row);
  }
}
