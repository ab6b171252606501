package io.delta.exceptions;

/** A conflict, by delta-spark's name; see {@link DeltaConcurrentModificationException}. */
public class ProtocolChangedException extends DeltaConcurrentModificationException {
  private static final long serialVersionUID = 1;

  public ProtocolChangedException(String message) {
    super(message);
  }
}
