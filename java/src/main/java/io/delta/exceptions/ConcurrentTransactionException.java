package io.delta.exceptions;

/** A conflict, by delta-spark's name; see {@link DeltaConcurrentModificationException}. */
public class ConcurrentTransactionException extends DeltaConcurrentModificationException {
  private static final long serialVersionUID = 1;

  public ConcurrentTransactionException(String message) {
    super(message);
  }
}
