package deltafast;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Supplier;

import org.apache.spark.sql.ExperimentalMethods;
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
import org.apache.spark.sql.classic.SparkSession;
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
  public static void put(Object session) {
    ExperimentalMethods methods = ((SparkSession) session).experimental();
    ArrayList rules = new ArrayList(CollectionConverters.asJava(methods.extraOptimizations()));
    for (Iterator it = rules.iterator(); it.hasNext();) {
      if (it.next() instanceof DeltafastTracking) {
        return;
      }
    }
    rules.add(new DeltafastTracking());
    methods.extraOptimizations_$eq(CollectionConverters.asScala((List) rules).toSeq());
  }

  public TreeNode apply(TreeNode plan) {
    return ((LogicalPlan) plan).transformUp(new Told());
  }

  /** Replaces a relation from which they are read by the same one and a projection that completes them. */
  static class Told extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return asked(node) != null;
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      AttributeReference asked = asked(node);
      if (asked == null) {
        return otherwise.apply(node);
      }
      LogicalRelation relation = (LogicalRelation) node;
      HadoopFsRelation files = (HadoopFsRelation) relation.relation();
      FileFormat format = (FileFormat) ((Supplier) files.fileFormat()).get();
      HadoopFsRelation completed = new HadoopFsRelation(files.location(), files.partitionSchema(), files.dataSchema(),
          files.bucketSpec(), format, files.options(), files.sparkSession());
      AttributeReference read = read(format, asked);
      ArrayList columns = new ArrayList();
      ArrayList output = new ArrayList();
      for (Iterator it = CollectionConverters.asJava(relation.output()).iterator(); it.hasNext();) {
        Attribute column = (Attribute) it.next();
        boolean isIt = column.exprId().equals(asked.exprId());
        columns.add(isIt ? read : column);
        output.add(isIt ? (Object) told(asked, read) : column);
      }
      return new Project(seq(output), copied(relation, completed, seq(columns)));
    }
  }

  /** The column `_metadata` of a relation of deltafast with row ids or commit versions; null if it has none or is completed. */
  private static AttributeReference asked(Object node) {
    Object relation = node instanceof LogicalRelation ? ((LogicalRelation) node).relation() : null;
    Object format = relation instanceof HadoopFsRelation ? ((HadoopFsRelation) relation).fileFormat() : null;
    // The class of the reader is compiled separately, and is a different one in each release of deltafast.
    boolean isOurs = format instanceof Supplier && format.getClass().getSimpleName().equals("DeltafastFormat");
    if (!isOurs || ((Supplier) format).get() == null) {
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
  private static AttributeReference read(FileFormat format, AttributeReference asked) {
    StructType fields = (StructType) asked.dataType();
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
    return new AttributeReference(asked.name(), fields, asked.nullable(), asked.metadata(), NamedExpression$.MODULE$.newExprId(),
        asked.qualifier());
  }

  /** The completed column, under its original id. */
  private static Alias told(AttributeReference asked, AttributeReference read) {
    StructField[] fields = ((StructType) asked.dataType()).fields();
    ArrayList values = new ArrayList();
    for (int i = 0; i < fields.length; i++) {
      String name = fields[i].name();
      Expression value = field(read, name);
      if (name.equals(ROW_ID)) {
        value = first(value, new Add(field(read, "base_row_id"), field(read, "row_index")));
      } else if (name.equals(COMMIT_VERSION)) {
        value = first(value, field(read, "default_row_commit_version"));
      }
      values.add(Literal$.MODULE$.apply(name));
      values.add(value);
    }
    return new Alias(new CreateNamedStruct(seq(values)), asked.name(), asked.exprId(), asked.qualifier(), Option.apply(asked.metadata()),
        seq(new ArrayList()));
  }

  private static Expression first(Expression value, Expression other) {
    ArrayList both = new ArrayList();
    both.add(value);
    both.add(other);
    return new Coalesce(seq(both));
  }

  private static Expression field(AttributeReference of, String name) {
    return new GetStructField(of, ((StructType) of.dataType()).fieldIndex(name), Option.apply(name));
  }

  private static Seq seq(List of) {
    return CollectionConverters.asScala(of).toSeq();
  }

  /** A copy of a relation with other files and columns, its first parameters; their number differs between releases of Spark. */
  private static LogicalPlan copied(LogicalRelation relation, HadoopFsRelation files, Seq columns) {
    Object[] parameters = new Object[relation.productArity()];
    for (int i = 0; i < parameters.length; i++) {
      parameters[i] = i == 0 ? (Object) files : i == 1 ? columns : relation.productElement(i);
    }
    java.lang.reflect.Method[] methods = LogicalRelation.class.getMethods();
    try {
      for (int i = 0; i < methods.length; i++) {
        if (methods[i].getName().equals("copy") && methods[i].getParameterCount() == parameters.length) {
          return (LogicalPlan) methods[i].invoke(relation, parameters);
        }
      }
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
    throw new IllegalStateException("this Spark makes no relation of another");
  }
}
