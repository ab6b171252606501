package io.delta.exceptions;

/** A conflict, by delta-spark's name; see {@link DeltaConcurrentModificationException}. */
public class ConcurrentAppendException extends DeltaConcurrentModificationException {
  private static final long serialVersionUID = 1;

  public ConcurrentAppendException(String message) {
    super(message);
  }
}
