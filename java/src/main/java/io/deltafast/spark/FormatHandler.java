package io.deltafast.spark;

import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** Reads and writes tables for the format `delta`; Python implements it. Threads share it. */
public interface FormatHandler {
  /** The frame of the table that a reader's options name; null if `failure` was set. */
  Dataset<Row> read(SparkSession session, Map<String, String> options, FormatFailure failure);

  /** Describes the table at a location in `description`; false if it cannot be read. */
  boolean describe(SparkSession session, String location, TableDescription description);

  /** Writes rows to the table that a writer's options name, unless it sets `failure`. */
  void write(
      SparkSession session,
      Map<String, String> options,
      String mode,
      Dataset<Row> rows,
      FormatFailure failure);
}
