package io.deltafast.spark;

import java.util.NoSuchElementException;
import scala.collection.Iterator;

/** What remains of the rows or batches of a reader without deleted rows. */
abstract class LiveIterator extends ReaderIterator {
  private Object next;

  LiveIterator(Iterator<?> reader) {
    super(reader);
  }

  /** What remains of one row or batch; null if nothing does. */
  abstract Object withoutDeleted(Object read);

  @Override
  public boolean hasNext() {
    while (next == null && reader.hasNext()) {
      next = withoutDeleted(reader.next());
    }
    return next != null;
  }

  @Override
  public Object next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    Object out = next;
    next = null;
    return out;
  }
}
