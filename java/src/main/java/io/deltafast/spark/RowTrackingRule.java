package io.deltafast.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.FileSourceMetadataAttribute$;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Optimizer rule: completes row ids and commit versions in `_metadata`. Files store only
 * materialized ones; the others are derived from the file's defaults and the row's position.
 */
public final class RowTrackingRule extends OptimizerRule<LogicalPlan> {
  private static final String ROW_ID = "row_id";
  private static final String COMMIT_VERSION = "row_commit_version";

  /** Adds the rule to a session, if it is not there yet. */
  public static void addRule(SparkSession session) {
    SparkInternals.addRule(session, new RowTrackingRule());
  }

  @Override
  LogicalPlan optimize(LogicalPlan plan) {
    TreeNode<?> replaced = plan.transformUp(new MetadataCompletion());
    return (LogicalPlan) replaced;
  }

  /**
   * Replaces a relation from which they are read by the same one and a projection that completes
   * them.
   */
  static final class MetadataCompletion extends PlanReplacement<LogicalPlan> {
    @Override
    LogicalPlan replacement(LogicalPlan node) {
      AttributeReference metadata = trackedMetadata(node);
      if (metadata == null) {
        return null;
      }
      LogicalRelation relation = (LogicalRelation) node;
      HadoopFsRelation files = (HadoopFsRelation) relation.relation();
      FileFormat format = (FileFormat) ((Supplier<?>) files.fileFormat()).get();
      AttributeReference stored = storedMetadata(format, metadata);
      List<AttributeReference> columns = new ArrayList<>();
      List<NamedExpression> output = new ArrayList<>();
      for (AttributeReference column : CollectionConverters.asJava(relation.output())) {
        boolean isMetadata = column.exprId().equals(metadata.exprId());
        columns.add(isMetadata ? stored : column);
        output.add(isMetadata ? completedMetadata(metadata, stored) : column);
      }
      LogicalPlan scan =
          withColumns(
              relation, SparkInternals.withFormat(files, format), SparkInternals.seqOf(columns));
      return new Project(SparkInternals.seqOf(output), scan);
    }
  }

  /**
   * The column `_metadata` of a relation of deltafast with row ids or commit versions; null if it
   * has none or is completed.
   */
  private static AttributeReference trackedMetadata(LogicalPlan node) {
    HadoopFsRelation files = SparkInternals.fileRelation(node);
    Object format = files == null ? null : files.fileFormat();
    boolean isDeltafast =
        format instanceof Supplier && SparkInternals.isOfClass(format, "ParquetFormat");
    if (!isDeltafast || ((Supplier<?>) format).get() == null) {
      return null;
    }
    for (AttributeReference column :
        CollectionConverters.asJava(((LogicalRelation) node).output())) {
      if (column.dataType() instanceof StructType
          && FileSourceMetadataAttribute$.MODULE$.unapply(column).isDefined()) {
        StructType fields = (StructType) column.dataType();
        boolean isTracked =
            !fields.getFieldIndex(ROW_ID).isEmpty()
                || !fields.getFieldIndex(COMMIT_VERSION).isEmpty();
        return isTracked ? column : null;
      }
    }
    return null;
  }

  /**
   * The column that is read, under a new id, with the fields that are needed for completion, which
   * Spark may have pruned.
   */
  private static AttributeReference storedMetadata(FileFormat format, AttributeReference metadata) {
    StructType fields = (StructType) metadata.dataType();
    Set<String> needed = new HashSet<>();
    if (!fields.getFieldIndex(ROW_ID).isEmpty()) {
      needed.add("base_row_id");
      needed.add("row_index");
    }
    if (!fields.getFieldIndex(COMMIT_VERSION).isEmpty()) {
      needed.add("default_row_commit_version");
    }
    for (StructField field : CollectionConverters.asJava(format.metadataSchemaFields())) {
      if (needed.contains(field.name()) && fields.getFieldIndex(field.name()).isEmpty()) {
        fields = fields.add(field);
      }
    }
    return new AttributeReference(
        metadata.name(),
        fields,
        metadata.nullable(),
        metadata.metadata(),
        NamedExpression$.MODULE$.newExprId(),
        metadata.qualifier());
  }

  /** The completed column, under its original id. */
  private static Alias completedMetadata(AttributeReference metadata, AttributeReference stored) {
    StructField[] fields = ((StructType) metadata.dataType()).fields();
    List<Expression> values = new ArrayList<>();
    for (StructField each : fields) {
      String name = each.name();
      Expression value = field(stored, name);
      if (name.equals(ROW_ID)) {
        value = coalesce(value, new Add(field(stored, "base_row_id"), field(stored, "row_index")));
      } else if (name.equals(COMMIT_VERSION)) {
        value = coalesce(value, field(stored, "default_row_commit_version"));
      }
      values.add(Literal$.MODULE$.apply(name));
      values.add(value);
    }
    return new Alias(
        new CreateNamedStruct(SparkInternals.seqOf(values)),
        metadata.name(),
        metadata.exprId(),
        metadata.qualifier(),
        Option.apply(metadata.metadata()),
        SparkInternals.seqOf(new ArrayList<>()));
  }

  private static Expression coalesce(Expression value, Expression other) {
    return new Coalesce(SparkInternals.seqOf(Arrays.asList(value, other)));
  }

  private static Expression field(AttributeReference struct, String name) {
    return new GetStructField(
        struct, ((StructType) struct.dataType()).fieldIndex(name), Option.apply(name));
  }

  /** A copy of a relation with other files and columns, which are its first parameters. */
  private static LogicalPlan withColumns(
      LogicalRelation relation, HadoopFsRelation files, Seq<AttributeReference> columns) {
    Object[] arguments = SparkInternals.argumentsOf(relation);
    arguments[0] = files;
    arguments[1] = columns;
    Object copy;
    try {
      copy = SparkInternals.copyOf(relation, arguments);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
    if (copy == null) {
      throw new IllegalStateException("this Spark makes no relation of another");
    }
    return (LogicalPlan) copy;
  }
}
