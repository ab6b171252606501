package io.deltafast.spark;

import org.apache.spark.unsafe.Platform;

/** The error of one call of Python; Java raises it again in the query's thread. */
public final class FormatFailure {
  private boolean isInvalid;
  private String conflict;
  private String message;
  private Throwable cause;

  /** Sets an error of Spark's own, which is raised as it is. */
  public void setCause(Throwable error) {
    cause = error;
  }

  /** Sets an error of the query or of the table, which becomes an AnalysisException. */
  public void setInvalid(String text) {
    message = text;
    isInvalid = true;
  }

  /** Sets a conflict, whose class in `io.delta.exceptions` is `name`. */
  public void setConflict(String name, String text) {
    message = text;
    conflict = name;
  }

  /** Sets any other error. */
  public void setFailed(String text) {
    message = text;
  }

  boolean isSet() {
    return cause != null || message != null;
  }

  /** Raises the error, if there is one. */
  void raise() {
    if (cause != null) {
      Platform.throwException(cause);
    }
    if (message == null) {
      return;
    }
    if (isInvalid) {
      throw SparkInternals.raiseAnalysisException(message);
    }
    Platform.throwException(conflict == null ? new RuntimeException(message) : conflictException());
  }

  /** A session can have these classes from the jar of another release. */
  private Throwable conflictException() {
    try {
      Class<?> kind =
          Thread.currentThread()
              .getContextClassLoader()
              .loadClass("io.delta.exceptions." + conflict);
      return (Throwable) kind.getConstructor(String.class).newInstance(message);
    } catch (ReflectiveOperationException error) {
      return new RuntimeException(conflict + ": " + message);
    }
  }
}
