package io.deltafast.spark;

import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructType;

/** Plans streams that read tables; Python implements it. Threads share it. */
public interface StreamHandler {
  /** The columns of a stream that reads a table; null if `failure` was set. */
  StructType streamSchema(SparkSession session, Map<String, String> options, FormatFailure failure);

  /**
   * The planner of a stream that reads a table; null if `failure` was set. `checkpoint` is the
   * folder of the source in the checkpoint of the query.
   */
  StreamPlanner streamPlanner(
      SparkSession session, Map<String, String> options, String checkpoint, FormatFailure failure);
}
