package io.deltafast.spark;

import java.util.Map;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.sources.PrunedFilteredScan;
import org.apache.spark.sql.types.StructType;

/** Any other frame. */
public final class FrameRelation extends BaseRelation
    implements PrunedFilteredScan, InsertableRelation {
  private final SQLContext context;
  private final Map<String, String> options;
  private final Dataset<Row> frame;

  public FrameRelation(SQLContext context, Map<String, String> options, Dataset<Row> frame) {
    this.context = context;
    this.options = options;
    this.frame = frame;
  }

  @Override
  public SQLContext sqlContext() {
    return context;
  }

  /** The table's location. */
  public String path() {
    return DeltaProvider.pathOf(options);
  }

  /** The plan of the rows. */
  LogicalPlan plan() {
    return queryExecution(frame).analyzed();
  }

  /** Equal relations have equal rows, so that Spark finds those that it has cached. */
  @Override
  public boolean equals(Object object) {
    if (!(object instanceof FrameRelation)) {
      return false;
    }
    FrameRelation other = (FrameRelation) object;
    return options.equals(other.options) && plan().sameResult(other.plan());
  }

  @Override
  public int hashCode() {
    return options.hashCode();
  }

  @Override
  public StructType schema() {
    return frame.schema();
  }

  @Override
  public boolean needConversion() {
    return false;
  }

  @Override
  public long sizeInBytes() {
    return queryExecution(frame).optimizedPlan().stats().sizeInBytes().longValue();
  }

  @Override
  public RDD<Row> buildScan(String[] columns, Filter[] filters) {
    Dataset<Row> rows = frame;
    for (Filter filter : filters) {
      Column condition = conditionOf(filter);
      if (condition != null) {
        rows = rows.filter(condition);
      }
    }
    Column[] selected = new Column[columns.length];
    for (int i = 0; i < columns.length; i++) {
      selected[i] = columnOf(columns[i]);
    }
    rows = rows.select(selected);
    return rowsOf(queryExecution(rows));
  }

  private static QueryExecution queryExecution(Dataset<Row> frame) {
    return ((org.apache.spark.sql.classic.Dataset<Row>) frame).queryExecution();
  }

  /** The rows of a plan, which Spark takes as they are: see {@link #needConversion}. */
  @SuppressWarnings("unchecked")
  private static RDD<Row> rowsOf(QueryExecution plan) {
    return (RDD<Row>) (RDD<?>) plan.toRdd();
  }

  @Override
  public void insert(Dataset<Row> rows, boolean overwrite) {
    DeltaProvider.write(context, options, overwrite ? SaveMode.Overwrite : SaveMode.Append, rows);
  }

  private static Column columnOf(String name) {
    return functions.col("`" + name.replace("`", "``") + "`");
  }

  /** A filter as a column; null if it is not supported, since Spark filters again. */
  private static Column conditionOf(Filter filter) {
    if (filter instanceof And) {
      Column left = conditionOf(((And) filter).left());
      Column right = conditionOf(((And) filter).right());
      return left == null ? right : right == null ? left : left.and(right);
    }
    if (filter instanceof Or) {
      Column left = conditionOf(((Or) filter).left());
      Column right = conditionOf(((Or) filter).right());
      return left == null || right == null ? null : left.or(right);
    }
    if (filter instanceof EqualTo) {
      return columnOf(((EqualTo) filter).attribute()).equalTo(((EqualTo) filter).value());
    }
    if (filter instanceof GreaterThan) {
      return columnOf(((GreaterThan) filter).attribute()).gt(((GreaterThan) filter).value());
    }
    if (filter instanceof GreaterThanOrEqual) {
      return columnOf(((GreaterThanOrEqual) filter).attribute())
          .geq(((GreaterThanOrEqual) filter).value());
    }
    if (filter instanceof LessThan) {
      return columnOf(((LessThan) filter).attribute()).lt(((LessThan) filter).value());
    }
    if (filter instanceof LessThanOrEqual) {
      return columnOf(((LessThanOrEqual) filter).attribute())
          .leq(((LessThanOrEqual) filter).value());
    }
    if (filter instanceof In) {
      return columnOf(((In) filter).attribute()).isin(((In) filter).values());
    }
    if (filter instanceof IsNull) {
      return columnOf(((IsNull) filter).attribute()).isNull();
    }
    if (filter instanceof IsNotNull) {
      return columnOf(((IsNotNull) filter).attribute()).isNotNull();
    }
    return null;
  }
}
