package io.delta.exceptions;

/**
 * Conflicts as programs on the JVM catch them, by delta-spark's names; the message describes the
 * conflicting commit.
 */
public class DeltaConcurrentModificationException
    extends java.util.ConcurrentModificationException {
  private static final long serialVersionUID = 1;

  public DeltaConcurrentModificationException(String message) {
    super(message);
  }
}
