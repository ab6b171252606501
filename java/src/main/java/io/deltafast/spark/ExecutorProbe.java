package io.deltafast.spark;

import org.apache.spark.api.java.function.Function;

/** A function that an executor can only run if it can load a class of this package. */
public final class ExecutorProbe implements Function<Object, Object> {
  private static final long serialVersionUID = 1;
  private final String name;

  public ExecutorProbe(String name) {
    this.name = name;
  }

  @Override
  public Object call(Object of) throws ClassNotFoundException {
    return Class.forName(name, true, getClass().getClassLoader()).getName();
  }
}
