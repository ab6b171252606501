package io.deltafast.spark;

import java.util.Arrays;
import java.util.Collections;
import java.util.function.LongSupplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Optimizer rule: replaces the row count of a whole table by the number from its log, without a
 * job.
 *
 * <p>Spark plans a task for about thirty files, however little each has to do. Other relations are
 * not changed.
 */
public final class RowCountRule extends OptimizerRule<LogicalPlan> {
  /** Adds the rule to a session, if it is not there yet. */
  public static void addRule(SparkSession session) {
    SparkInternals.addRule(session, new RowCountRule());
  }

  @Override
  LogicalPlan optimize(LogicalPlan plan) {
    TreeNode<?> replaced = plan.transformDown(new CountReplacement());
    return (LogicalPlan) replaced;
  }

  /** Replaces an aggregate by its result. */
  static final class CountReplacement extends PlanReplacement<LogicalPlan> {
    @Override
    LogicalPlan replacement(LogicalPlan node) {
      if (!(node instanceof Aggregate) || !isRowCount((Aggregate) node)) {
        return null;
      }
      Aggregate aggregate = (Aggregate) node;
      LongSupplier source = rowCount(aggregate.child());
      long rows = source == null ? -1 : source.getAsLong();
      if (rows < 0) {
        return null;
      }
      Object[] values = new Object[aggregate.aggregateExpressions().size()];
      Arrays.fill(values, Long.valueOf(rows));
      InternalRow row = new GenericInternalRow(values);
      return new LocalRelation(
          aggregate.output(),
          SparkInternals.seqOf(Collections.singletonList(row)),
          false,
          Option.empty());
    }
  }

  /** Whether an aggregate only counts rows. */
  private static boolean isRowCount(Aggregate aggregate) {
    // The count of a stream is that of all its batches, which Spark keeps as state.
    if (aggregate.isStreaming()) {
      return false;
    }
    if (!aggregate.groupingExpressions().isEmpty() || aggregate.aggregateExpressions().isEmpty()) {
      return false;
    }
    for (NamedExpression column : CollectionConverters.asJava(aggregate.aggregateExpressions())) {
      Expression expression = column instanceof Alias ? ((Alias) column).child() : null;
      if (!(expression instanceof AggregateExpression)) {
        return false;
      }
      AggregateExpression count = (AggregateExpression) expression;
      if (count.isDistinct()
          || count.filter().isDefined()
          || !(count.aggregateFunction() instanceof Count)) {
        return false;
      }
      for (Expression value : CollectionConverters.asJava(count.aggregateFunction().children())) {
        if (!(value instanceof Literal) || ((Literal) value).value() == null) {
          return false;
        }
      }
    }
    return true;
  }

  /**
   * The source of the row count of a plan that is a table of deltafast, possibly projected; null
   * for other plans.
   */
  private static LongSupplier rowCount(LogicalPlan plan) {
    LogicalPlan child = plan;
    while (child instanceof Project) {
      child = ((Project) child).child();
    }
    HadoopFsRelation relation = SparkInternals.fileRelation(child);
    Object index = relation == null ? null : relation.location();
    return index instanceof LongSupplier && SparkInternals.isOfClass(index, "DeltaFileIndex")
        ? (LongSupplier) index
        : null;
  }
}
