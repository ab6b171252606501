package deltafast;
// include shared.java

import java.util.ArrayList;
import java.util.Iterator;
import java.util.function.Supplier;

import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.FileSourceMetadataAttribute$;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Optimizer rule: completes row ids and commit versions in `_metadata`. Files store only materialized ones; the others are
 * derived from the file's defaults and the row's position.
 */
public class DeltafastTracking extends Rule {
  private static final String ROW_ID = "row_id";
  private static final String COMMIT_VERSION = "row_commit_version";

  /** Adds the rule to a session, if it is not there yet. */
  public static void addRule(Object session) {
    SparkInternals.addRule(session, new DeltafastTracking());
  }

  public TreeNode apply(TreeNode plan) {
    return ((LogicalPlan) plan).transformUp(new MetadataCompletion());
  }

  /** Replaces a relation from which they are read by the same one and a projection that completes them. */
  static class MetadataCompletion extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return trackedMetadata(node) != null;
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      AttributeReference metadata = trackedMetadata(node);
      if (metadata == null) {
        return otherwise.apply(node);
      }
      LogicalRelation relation = (LogicalRelation) node;
      HadoopFsRelation files = (HadoopFsRelation) relation.relation();
      FileFormat format = (FileFormat) ((Supplier) files.fileFormat()).get();
      AttributeReference stored = storedMetadata(format, metadata);
      ArrayList columns = new ArrayList();
      ArrayList output = new ArrayList();
      for (Iterator it = CollectionConverters.asJava(relation.output()).iterator(); it.hasNext();) {
        Attribute column = (Attribute) it.next();
        boolean isMetadata = column.exprId().equals(metadata.exprId());
        columns.add(isMetadata ? stored : column);
        output.add(isMetadata ? (Object) completedMetadata(metadata, stored) : column);
      }
      LogicalPlan scan = withColumns(relation, SparkInternals.withFormat(files, format), SparkInternals.seqOf(columns));
      return new Project(SparkInternals.seqOf(output), scan);
    }
  }

  /** The column `_metadata` of a relation of deltafast with row ids or commit versions; null if it has none or is completed. */
  private static AttributeReference trackedMetadata(Object node) {
    HadoopFsRelation files = SparkInternals.fileRelation(node);
    Object format = files == null ? null : files.fileFormat();
    boolean isDeltafast = format instanceof Supplier && SparkInternals.isOfClass(format, "DeltafastFormat");
    if (!isDeltafast || ((Supplier) format).get() == null) {
      return null;
    }
    for (Iterator it = CollectionConverters.asJava(((LogicalRelation) node).output()).iterator(); it.hasNext();) {
      AttributeReference column = (AttributeReference) it.next();
      if (column.dataType() instanceof StructType && FileSourceMetadataAttribute$.MODULE$.unapply(column).isDefined()) {
        StructType fields = (StructType) column.dataType();
        boolean isTracked = !fields.getFieldIndex(ROW_ID).isEmpty() || !fields.getFieldIndex(COMMIT_VERSION).isEmpty();
        return isTracked ? column : null;
      }
    }
    return null;
  }

  /** The column that is read, under a new id, with the fields that are needed for completion, which Spark may have pruned. */
  private static AttributeReference storedMetadata(FileFormat format, AttributeReference metadata) {
    StructType fields = (StructType) metadata.dataType();
    ArrayList needed = new ArrayList();
    if (!fields.getFieldIndex(ROW_ID).isEmpty()) {
      needed.add("base_row_id");
      needed.add("row_index");
    }
    if (!fields.getFieldIndex(COMMIT_VERSION).isEmpty()) {
      needed.add("default_row_commit_version");
    }
    for (Iterator it = CollectionConverters.asJava(format.metadataSchemaFields()).iterator(); it.hasNext();) {
      StructField field = (StructField) it.next();
      if (needed.contains(field.name()) && fields.getFieldIndex(field.name()).isEmpty()) {
        fields = fields.add(field);
      }
    }
    return new AttributeReference(metadata.name(), fields, metadata.nullable(), metadata.metadata(),
        NamedExpression$.MODULE$.newExprId(), metadata.qualifier());
  }

  /** The completed column, under its original id. */
  private static Alias completedMetadata(AttributeReference metadata, AttributeReference stored) {
    StructField[] fields = ((StructType) metadata.dataType()).fields();
    ArrayList values = new ArrayList();
    for (int i = 0; i < fields.length; i++) {
      String name = fields[i].name();
      Expression value = field(stored, name);
      if (name.equals(ROW_ID)) {
        value = coalesce(value, new Add(field(stored, "base_row_id"), field(stored, "row_index")));
      } else if (name.equals(COMMIT_VERSION)) {
        value = coalesce(value, field(stored, "default_row_commit_version"));
      }
      values.add(Literal$.MODULE$.apply(name));
      values.add(value);
    }
    return new Alias(new CreateNamedStruct(SparkInternals.seqOf(values)), metadata.name(), metadata.exprId(), metadata.qualifier(),
        Option.apply(metadata.metadata()), SparkInternals.seqOf(new ArrayList()));
  }

  private static Expression coalesce(Expression value, Expression other) {
    ArrayList both = new ArrayList();
    both.add(value);
    both.add(other);
    return new Coalesce(SparkInternals.seqOf(both));
  }

  private static Expression field(AttributeReference struct, String name) {
    return new GetStructField(struct, ((StructType) struct.dataType()).fieldIndex(name), Option.apply(name));
  }

  /** A copy of a relation with other files and columns, which are its first parameters. */
  private static LogicalPlan withColumns(LogicalRelation relation, HadoopFsRelation files, Seq columns) {
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
