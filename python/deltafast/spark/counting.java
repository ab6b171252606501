package deltafast;
// include shared.java

import java.util.ArrayList;
import java.util.Iterator;
import java.util.function.LongSupplier;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Optimizer rule: replaces the row count of a whole table by the number from its log, without a job.
 *
 * Spark plans a task for about thirty files, however little each has to do. Other relations are not changed.
 */
public class DeltafastCounting extends Rule {
  /** Adds the rule to a session, if it is not there yet. */
  public static void addRule(Object session) {
    SparkInternals.addRule(session, new DeltafastCounting());
  }

  public TreeNode apply(TreeNode plan) {
    return ((LogicalPlan) plan).transformDown(new CountReplacement());
  }

  /** Replaces an aggregate by its result. */
  static class CountReplacement extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return node instanceof Aggregate && isRowCount((Aggregate) node) && rowCount(((Aggregate) node).child()) != null;
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      long rows = isDefinedAt(node) ? rowCount(((Aggregate) node).child()).getAsLong() : -1;
      if (rows < 0) {
        return otherwise.apply(node);
      }
      Aggregate aggregate = (Aggregate) node;
      Object[] values = new Object[aggregate.aggregateExpressions().size()];
      java.util.Arrays.fill(values, Long.valueOf(rows));
      ArrayList result = new ArrayList();
      result.add(new GenericInternalRow(values));
      return new LocalRelation(aggregate.output(), SparkInternals.seqOf(result), false, scala.Option.empty());
    }
  }

  /** Whether an aggregate only counts rows. */
  private static boolean isRowCount(Aggregate aggregate) {
    if (!aggregate.groupingExpressions().isEmpty() || aggregate.aggregateExpressions().isEmpty()) {
      return false;
    }
    for (Iterator it = CollectionConverters.asJava(aggregate.aggregateExpressions()).iterator(); it.hasNext();) {
      Object column = it.next();
      Expression expression = column instanceof Alias ? ((Alias) column).child() : null;
      if (!(expression instanceof AggregateExpression)) {
        return false;
      }
      AggregateExpression count = (AggregateExpression) expression;
      if (count.isDistinct() || count.filter().isDefined() || !(count.aggregateFunction() instanceof Count)) {
        return false;
      }
      for (Iterator each = CollectionConverters.asJava(count.aggregateFunction().children()).iterator(); each.hasNext();) {
        Object value = each.next();
        if (!(value instanceof Literal) || ((Literal) value).value() == null) {
          return false;
        }
      }
    }
    return true;
  }

  /** The source of the row count of a plan that is a table of deltafast, possibly projected; null for other plans. */
  private static LongSupplier rowCount(LogicalPlan plan) {
    while (plan instanceof Project) {
      plan = ((Project) plan).child();
    }
    HadoopFsRelation relation = SparkInternals.fileRelation(plan);
    Object index = relation == null ? null : relation.location();
    return index instanceof LongSupplier && SparkInternals.isOfClass(index, "DeltafastFileIndex") ? (LongSupplier) index : null;
  }
}
