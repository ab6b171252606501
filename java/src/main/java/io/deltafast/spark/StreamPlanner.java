package io.deltafast.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;

/**
 * Plans the batches of one streaming query; Python implements it.
 *
 * <p>Positions are JSON strings, which Spark stores in the checkpoint of the query; an empty string
 * is the position of a query that has not begun.
 */
public interface StreamPlanner {
  /** The columns of the batches. */
  StructType schema();

  /**
   * The end of the batch that begins at `start`; `start` itself if there are no new rows.
   * `isLimited` applies the limits of a batch. The result is null if `failure` was set.
   */
  String nextPosition(String start, boolean isLimited, FormatFailure failure);

  /** The rows between two positions; null if `failure` was set. */
  Dataset<Row> batch(String start, String end, FormatFailure failure);

  /** Called after the batch that ends at `end`; `failure` stops the query. */
  void finish(String end, FormatFailure failure);

  /** Ends the query at the version that is the newest now, unless it sets `failure`. */
  void stopAtNewest(FormatFailure failure);
}
