package io.delta.exceptions;

/** A conflict, by delta-spark's name; see {@link DeltaConcurrentModificationException}. */
public class ConcurrentWriteException extends DeltaConcurrentModificationException {
  private static final long serialVersionUID = 1;

  public ConcurrentWriteException(String message) {
    super(message);
  }
}
