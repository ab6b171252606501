package io.deltafast.spark;

import java.util.Collections;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.execution.command.RunnableCommand;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Enumeration;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/** A statement that changes tables or has failed, in a plan: Python runs it when Spark does. */
public final class StatementCommand extends LogicalPlan implements RunnableCommand {
  private static final long serialVersionUID = 1;
  private final String statement;
  private final String columns;
  private final FormatFailure failure;
  private final transient Seq<Attribute> result;

  /**
   * Spark copies a node by its constructor.
   *
   * @param statement the statement
   * @param columns the columns of its result, as JSON
   * @param failure why it cannot run; a parser cannot raise most exceptions
   */
  @SuppressWarnings("unchecked")
  public StatementCommand(String statement, String columns, FormatFailure failure) {
    this.statement = statement;
    this.columns = columns;
    this.failure = failure;
    StructType schema = (StructType) DataType.fromJson(columns);
    result = (Seq<Attribute>) (Seq<?>) DataTypeUtils.toAttributes(schema);
  }

  @Override
  public Seq<Row> run(SparkSession session) {
    failure.raise();
    return SparkInternals.seqOf(StatementParser.rowsOf(session, statement));
  }

  @Override
  public Seq<Attribute> output() {
    return result;
  }

  @Override
  public Seq<LogicalPlan> children() {
    return SparkInternals.seqOf(Collections.emptyList());
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return this;
  }

  @Override
  public Map<String, SQLMetric> metrics() {
    return Map$.MODULE$.empty();
  }

  @Override
  public Seq<Enumeration.Value> nodePatterns() {
    return SparkInternals.seqOf(Collections.singletonList(TreePattern$.MODULE$.COMMAND()));
  }

  /** Scala's trait sets its value here; it is that of {@link #nodePatterns}. */
  @Override
  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      Seq<Enumeration.Value> patterns) {}

  @Override
  public int productArity() {
    return 3;
  }

  @Override
  public Object productElement(int index) {
    if (index == 2) {
      return failure;
    }
    return index == 0 ? statement : columns;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof StatementCommand;
  }

  @Override
  public boolean equals(Object other) {
    return this == other;
  }

  @Override
  public int hashCode() {
    return System.identityHashCode(this);
  }

  @Override
  public String simpleString(int maxFields) {
    return "StatementCommand " + statement.trim();
  }
}
