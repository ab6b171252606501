package io.delta.exceptions;

/** A conflict, by delta-spark's name; see {@link DeltaConcurrentModificationException}. */
public class ConcurrentDeleteDeleteException extends DeltaConcurrentModificationException {
  private static final long serialVersionUID = 1;

  public ConcurrentDeleteDeleteException(String message) {
    super(message);
  }
}
