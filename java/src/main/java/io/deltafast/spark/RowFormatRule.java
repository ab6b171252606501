package io.deltafast.spark;

import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionOperation;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.WriteFiles;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** Optimizer rule: reads a table with `RowFormat` where only its rows are needed. */
public final class RowFormatRule extends OptimizerRule<LogicalPlan> {
  @Override
  LogicalPlan optimize(LogicalPlan plan) {
    // A row's words are written in the byte order of this machine.
    return ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN
        ? new PlanVisitor(true).replaceScans(plan)
        : plan;
  }

  /** Traverses a plan, with whether rows of it are needed. */
  static final class PlanVisitor extends AbstractFunction1<Object, Object> {
    private final boolean needsRows;

    PlanVisitor(boolean needsRows) {
      this.needsRows = needsRows;
    }

    @Override
    public Object apply(Object plan) {
      return replaceScans((LogicalPlan) plan);
    }

    /** This function as Spark's plans take it. */
    @SuppressWarnings("unchecked")
    private Function1<LogicalPlan, LogicalPlan> function() {
      return (Function1<LogicalPlan, LogicalPlan>) (Function1<?, ?>) this;
    }

    LogicalPlan replaceScans(LogicalPlan plan) {
      if (needsRows && isScan(plan)) {
        TreeNode<?> replaced = plan.transformUp(new RowReaderReplacement());
        return (LogicalPlan) replaced;
      }
      boolean takesRows =
          plan instanceof Command
              || plan instanceof WriteFiles
              || plan instanceof RepartitionOperation;
      TreeNode<?> visited =
          plan.mapChildren(
              new PlanVisitor(takesRows || needsRows && plan instanceof Union).function());
      return (LogicalPlan) visited;
    }
  }

  /**
   * Whether a plan is only the scan of a table of deltafast, with columns from which rows can be
   * built.
   */
  private static boolean isScan(LogicalPlan plan) {
    LogicalPlan child = plan;
    List<Expression> filters = new ArrayList<>();
    while (child instanceof Project || child instanceof Filter) {
      if (child instanceof Filter) {
        filters.add(((Filter) child).condition());
      } else if (!selectsColumns((Project) child)) {
        return false;
      }
      Seq<?> children = child.children();
      child = (LogicalPlan) children.head();
    }
    HadoopFsRelation files = SparkInternals.fileRelation(child);
    if (files == null || !SparkInternals.isOfClass(files.fileFormat(), "ParquetFormat")) {
      return false;
    }
    List<String> partitionColumns = Arrays.asList(files.partitionSchema().fieldNames());
    for (Expression filter : filters) {
      if (!isPartitionFilter(partitionColumns, filter)) {
        return false;
      }
    }
    StructType schema = plan.schema();
    for (int i = 0; i < schema.length(); i++) {
      if (ColumnWriter.rowKind(schema.fields()[i].dataType()) < 0) {
        return false;
      }
    }
    return selectsOutput(plan, child, partitionColumns)
        && files.fileFormat().supportBatch(files.sparkSession(), schema);
  }

  private static boolean selectsColumns(Project project) {
    for (NamedExpression column : CollectionConverters.asJava(project.projectList())) {
      if (!(column instanceof Attribute)) {
        return false;
      }
    }
    return true;
  }

  /** Whether a filter is evaluated completely by selecting files. */
  private static boolean isPartitionFilter(List<String> partitionColumns, Expression filter) {
    for (Attribute column : CollectionConverters.asJava(filter.references().toSeq())) {
      if (!partitionColumns.contains(column.name())) {
        return false;
      }
    }
    return filter.deterministic() && !SubqueryExpression$.MODULE$.hasSubquery(filter);
  }

  /**
   * Whether a plan selects the output of a scan: columns of files in their order, then all
   * constants of files.
   */
  private static boolean selectsOutput(
      LogicalPlan plan, LogicalPlan relation, List<String> partitionColumns) {
    List<ExprId> selected = columnIds(plan.output(), null);
    List<ExprId> expected = columnIds(relation.output(), partitionColumns);
    List<ExprId> constants = new ArrayList<>(columnIds(relation.output(), null));
    constants.removeAll(expected);
    expected.retainAll(selected);
    expected.addAll(constants);
    return expected.equals(selected);
  }

  /** The ids of columns, without those of some names. */
  private static List<ExprId> columnIds(Seq<Attribute> columns, List<String> excluded) {
    List<ExprId> ids = new ArrayList<>();
    for (Attribute column : CollectionConverters.asJava(columns)) {
      if (excluded == null || !excluded.contains(column.name())) {
        ids.add(column.exprId());
      }
    }
    return ids;
  }

  /** Replaces a relation by the same one, read as rows. */
  static final class RowReaderReplacement extends PlanReplacement<LogicalPlan> {
    @Override
    LogicalPlan replacement(LogicalPlan node) {
      if (!(node instanceof LogicalRelation)) {
        return null;
      }
      LogicalRelation relation = (LogicalRelation) node;
      HadoopFsRelation files = (HadoopFsRelation) relation.relation();
      return SparkInternals.withRelation(
          relation, SparkInternals.withFormat(files, new RowFormat(files.fileFormat())));
    }
  }
}
