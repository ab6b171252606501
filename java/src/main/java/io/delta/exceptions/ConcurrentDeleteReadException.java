package io.delta.exceptions;

/** A conflict, by delta-spark's name; see {@link DeltaConcurrentModificationException}. */
public class ConcurrentDeleteReadException extends DeltaConcurrentModificationException {
  private static final long serialVersionUID = 1;

  public ConcurrentDeleteReadException(String message) {
    super(message);
  }
}
