package io.deltafast.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Optimizer rule: selects the files of a table by the filters of the query, so that its estimates
 * are those of these files.
 *
 * <p>The files are selected once more when they are planned, with filters that joins add.
 */
public final class FileSelectionRule extends OptimizerRule<LogicalPlan> {
  /** Adds the rule to a session, if it is not there yet. */
  public static void addRule(SparkSession session) {
    SparkInternals.addRule(session, new FileSelectionRule());
  }

  @Override
  LogicalPlan optimize(LogicalPlan plan) {
    TreeNode<?> replaced = plan.transformUp(new SelectionReplacement());
    return (LogicalPlan) replaced;
  }

  /** Replaces a filtered relation by one of the selected files. */
  static final class SelectionReplacement extends PlanReplacement<LogicalPlan> {
    @Override
    LogicalPlan replacement(LogicalPlan node) {
      if (!(node instanceof Filter)) {
        return null;
      }
      Filter filter = (Filter) node;
      HadoopFsRelation files = SparkInternals.fileRelation(filter.child());
      if (files == null || !(files.location() instanceof DeltaFileIndex)) {
        return null;
      }
      Set<String> partitions = new HashSet<>(Arrays.asList(files.partitionSchema().fieldNames()));
      Set<String> columns = new HashSet<>(Arrays.asList(files.schema().fieldNames()));
      List<Expression> exact = new ArrayList<>();
      List<Expression> others = new ArrayList<>();
      split(filter.condition(), partitions, columns, exact, others);
      if (exact.isEmpty() && others.isEmpty()) {
        return null;
      }
      SelectedFileIndex selected =
          new SelectedFileIndex((DeltaFileIndex) files.location(), exact, others);
      LogicalRelation relation = (LogicalRelation) filter.child();
      return new Filter(
          filter.condition(),
          SparkInternals.withRelation(relation, SparkInternals.withFiles(files, selected)));
    }
  }

  /** Splits a condition into filters of partitions and others that can select files. */
  private static void split(
      Expression condition,
      Set<String> partitions,
      Set<String> columns,
      List<Expression> exact,
      List<Expression> others) {
    if (condition instanceof And) {
      split(((And) condition).left(), partitions, columns, exact, others);
      split(((And) condition).right(), partitions, columns, exact, others);
      return;
    }
    if (!condition.deterministic() || SubqueryExpression$.MODULE$.hasSubquery(condition)) {
      return;
    }
    Set<String> names = new HashSet<>();
    for (Attribute column : CollectionConverters.asJava(condition.references().toSeq())) {
      names.add(column.name());
    }
    if (!names.isEmpty() && partitions.containsAll(names)) {
      exact.add(unqualified(condition));
    } else if (!names.isEmpty() && columns.containsAll(names)) {
      others.add(unqualified(condition));
    }
  }

  /** The condition with the names of columns alone, as the core reads them. */
  private static Expression unqualified(Expression condition) {
    TreeNode<?> bare = condition.transform(new QualifierRemoval<Expression>());
    return (Expression) bare;
  }

  /**
   * Takes the name of the table from a column.
   *
   * <p>`P` is always {@link Expression}; see {@link OptimizerRule}.
   */
  static final class QualifierRemoval<P> extends AbstractPartialFunction<P, P> {
    @Override
    public boolean isDefinedAt(P node) {
      Object expression = node;
      return expression instanceof Attribute;
    }

    @Override
    @SuppressWarnings("unchecked")
    public <A extends P, B> B applyOrElse(A node, Function1<A, B> otherwise) {
      Object expression = node;
      Object bare =
          expression instanceof Attribute
              ? ((Attribute) expression).withQualifier(SparkInternals.seqOf(new ArrayList<>()))
              : null;
      return bare == null ? otherwise.apply(node) : (B) bare;
    }
  }
}
