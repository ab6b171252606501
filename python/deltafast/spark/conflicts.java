package io.delta.exceptions;

/** Conflicts as programs on the JVM catch them, by delta-spark's names; the message describes the conflicting commit. */
public class DeltaConcurrentModificationException extends java.util.ConcurrentModificationException {
  public DeltaConcurrentModificationException(String message) {
    super(message);
  }
}

public class ConcurrentAppendException extends DeltaConcurrentModificationException {
  public ConcurrentAppendException(String message) {
    super(message);
  }
}

public class ConcurrentDeleteDeleteException extends DeltaConcurrentModificationException {
  public ConcurrentDeleteDeleteException(String message) {
    super(message);
  }
}

public class ConcurrentDeleteReadException extends DeltaConcurrentModificationException {
  public ConcurrentDeleteReadException(String message) {
    super(message);
  }
}

public class ConcurrentTransactionException extends DeltaConcurrentModificationException {
  public ConcurrentTransactionException(String message) {
    super(message);
  }
}

public class ConcurrentWriteException extends DeltaConcurrentModificationException {
  public ConcurrentWriteException(String message) {
    super(message);
  }
}

public class MetadataChangedException extends DeltaConcurrentModificationException {
  public MetadataChangedException(String message) {
    super(message);
  }
}

public class ProtocolChangedException extends DeltaConcurrentModificationException {
  public ProtocolChangedException(String message) {
    super(message);
  }
}
