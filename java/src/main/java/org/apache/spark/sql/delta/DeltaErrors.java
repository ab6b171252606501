package org.apache.spark.sql.delta;

import org.apache.spark.QueryContext;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.AnalysisException;
import scala.Option;
import scala.collection.immutable.Map;

/**
 * Errors that delta-spark's Python tests create in the JVM, by its names and with its conditions:
 * they check which exceptions of PySpark the errors become.
 */
public final class DeltaErrors {
  private DeltaErrors() {}

  /** Returns the error of a column whose name contains characters that are not allowed. */
  public static Throwable invalidColumnName(String name) {
    return new InvalidColumnName(name);
  }

  /** Returns an error of an argument; delta-spark does not throw it either. */
  public static Throwable throwDeltaIllegalArgumentException() {
    return new UnrecognizedInvariant();
  }

  private static final class InvalidColumnName extends AnalysisException {
    private static final long serialVersionUID = 1;
    private static final String CONDITION = "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAME";

    InvalidColumnName(String name) {
      super(
          "[" + CONDITION + "] the column name `" + name + "` contains invalid characters",
          Option.empty(),
          Option.empty(),
          Option.empty(),
          Option.apply(CONDITION),
          new Map.Map1<>("columnName", name),
          new QueryContext[0]);
    }

    @Override
    public String getSqlState() {
      return "42K05";
    }
  }

  private static final class UnrecognizedInvariant extends IllegalArgumentException
      implements SparkThrowable {
    private static final long serialVersionUID = 1;
    private static final String CONDITION = "DELTA_UNRECOGNIZED_INVARIANT";

    UnrecognizedInvariant() {
      super("[" + CONDITION + "] the invariant is not supported by this release");
    }

    @Override
    public String getCondition() {
      return CONDITION;
    }

    @Override
    public String getSqlState() {
      return "56038";
    }
  }
}
