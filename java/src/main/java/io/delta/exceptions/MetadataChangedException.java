package io.delta.exceptions;

/** A conflict, by delta-spark's name; see {@link DeltaConcurrentModificationException}. */
public class MetadataChangedException extends DeltaConcurrentModificationException {
  private static final long serialVersionUID = 1;

  public MetadataChangedException(String message) {
    super(message);
  }
}
