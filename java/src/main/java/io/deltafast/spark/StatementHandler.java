package io.deltafast.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** Reads and runs statements of Delta's SQL; Python implements it. Threads share it. */
public interface StatementHandler {
  /**
   * Says in `reading` what a statement is, unless it is Spark's own or `failure` was set.
   *
   * @param parameters the values of its parameters in SQL as JSON, an object by name or an array;
   *     empty if it has none
   */
  void read(
      SparkSession session,
      String text,
      String parameters,
      StatementReading reading,
      FormatFailure failure);

  /** Runs a statement that changes tables, and returns its result; null if `failure` was set. */
  Dataset<Row> run(SparkSession session, String text, FormatFailure failure);
}
