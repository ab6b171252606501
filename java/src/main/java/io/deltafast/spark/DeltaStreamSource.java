package io.deltafast.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * A table as the source of a streaming query: Python plans each batch in the driver, and Spark's
 * own reader reads it.
 */
public final class DeltaStreamSource implements Source, SupportsTriggerAvailableNow {
  private final StreamPlanner planner;
  private final String table;

  public DeltaStreamSource(StreamPlanner planner, String table) {
    this.planner = planner;
    this.table = table;
  }

  @Override
  public StructType schema() {
    return planner.schema();
  }

  /** Spark calls {@link #latestOffset} instead. */
  @Override
  public Option<Offset> getOffset() {
    throw new UnsupportedOperationException();
  }

  /** The options of the stream limit a batch, not Spark. */
  @Override
  public ReadLimit getDefaultReadLimit() {
    return new OptionsLimit();
  }

  @Override
  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
    FormatFailure failure = new FormatFailure();
    boolean isLimited = !(limit instanceof ReadAllAvailable);
    String position = planner.nextPosition(start == null ? "" : start.json(), isLimited, failure);
    failure.raise();
    return new StreamOffset(position);
  }

  @Override
  public void prepareForTriggerAvailableNow() {
    FormatFailure failure = new FormatFailure();
    planner.stopAtNewest(failure);
    failure.raise();
  }

  @Override
  public Dataset<Row> getBatch(Option<Offset> start, Offset end) {
    FormatFailure failure = new FormatFailure();
    Object begin = start.isEmpty() ? null : start.get();
    Dataset<Row> rows =
        planner.batch(begin == null ? "" : ((Offset) begin).json(), end.json(), failure);
    failure.raise();
    org.apache.spark.sql.classic.Dataset<Row> batch =
        (org.apache.spark.sql.classic.Dataset<Row>) rows;
    TreeNode<?> plan = batch.queryExecution().analyzed().transformDown(new StreamingLeaves());
    return org.apache.spark.sql.classic.Dataset.ofRows(batch.sparkSession(), (LogicalPlan) plan);
  }

  /** Spark calls it when the next batch is planned. */
  @Override
  public void commit(Offset end) {
    FormatFailure failure = new FormatFailure();
    planner.finish(end.json(), failure);
    failure.raise();
  }

  @Override
  public void stop() {}

  /** The description of the source in the progress of the query, as delta-spark gives it. */
  @Override
  public String toString() {
    return "DeltaSource[" + table + "]";
  }

  /** The limits that the options of the stream set. */
  static final class OptionsLimit implements ReadLimit {}

  /** A position in the table. */
  static final class StreamOffset extends Offset {
    private final String json;

    StreamOffset(String json) {
      this.json = json;
    }

    @Override
    public String json() {
      return json;
    }
  }

  /** Marks the relations of a batch as parts of a stream, which Spark requires. */
  static final class StreamingLeaves extends PlanReplacement<LogicalPlan> {
    @Override
    LogicalPlan replacement(LogicalPlan node) {
      if (node.isStreaming() || !node.children().isEmpty()) {
        return null;
      }
      Object[] arguments = SparkInternals.argumentsOf(node);
      boolean isMarked = false;
      for (int i = 0; i < arguments.length; i++) {
        if (node.productElementName(i).equals("isStreaming")) {
          arguments[i] = Boolean.TRUE;
          isMarked = true;
        }
      }
      try {
        return isMarked ? (LogicalPlan) SparkInternals.copyOf(node, arguments) : null;
      } catch (ReflectiveOperationException error) {
        throw new RuntimeException(error);
      }
    }
  }
}
