package io.deltafast.spark;

import java.io.Closeable;
import java.io.IOException;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/** Rows or batches that are made from those of a reader, which is closed at the end. */
abstract class ReaderIterator extends AbstractIterator<Object> implements Closeable {
  protected final Iterator<?> reader;

  ReaderIterator(Iterator<?> reader) {
    this.reader = reader;
  }

  @Override
  public void close() throws IOException {
    if (reader instanceof Closeable) {
      ((Closeable) reader).close();
    }
  }
}
