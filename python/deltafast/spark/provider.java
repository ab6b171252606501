package deltafast;
// include shared.java

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.Map;

import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
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
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.sources.SchemaRelationProvider;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The format `delta` of a session: reads and writes go to Python, which returns frames over Spark's own reader.
 *
 * A frame that only scans files becomes that scan's relation; any other is executed as it is, with the columns and the filters
 * that Spark pushes down. Inserted rows go to Python, too.
 */
public class DeltafastProvider
    implements DataSourceRegister, RelationProvider, SchemaRelationProvider, CreatableRelationProvider, FileFormat {
  private static volatile java.util.function.Function python;

  /** Sets the callback that plans and commits, for every instance; null for none. */
  public void setPython(java.util.function.Function function) {
    python = function;
  }

  static Object callPython(Object[] request) {
    java.util.function.Function function = python;
    if (function == null) {
      throw SparkInternals.raiseAnalysisException("deltafast.spark.enable was taken back in this session: format(\"delta\") is not there");
    }
    Object answer = function.apply(request);
    if (answer instanceof String) {
      String text = (String) answer;
      if (text.startsWith("wrong:")) {
        throw SparkInternals.raiseAnalysisException(text.substring(6));
      }
      if (text.startsWith("conflict:")) {
        String[] parts = text.split(":", 3);
        org.apache.spark.unsafe.Platform.throwException(conflictException(parts[1], parts[2]));
      }
      if (text.startsWith("failed:")) {
        throw new RuntimeException(text.substring(7));
      }
    }
    return answer;
  }

  /** An exception of `conflicts.java`, which is in a jar of its own. */
  private static Throwable conflictException(String name, String message) {
    try {
      Class kind = Thread.currentThread().getContextClassLoader().loadClass("io.delta.exceptions." + name);
      return (Throwable) kind.getConstructor(new Class[] {String.class}).newInstance(new Object[] {message});
    } catch (Exception error) {
      return new RuntimeException(name + ": " + message);
    }
  }

  public String shortName() {
    return "delta";
  }

  /** Spark resolves delta.`path` in its SQL to a table only for a file format; it requests a relation first. */
  public scala.Option inferSchema(org.apache.spark.sql.SparkSession session, scala.collection.immutable.Map options, scala.collection.immutable.Seq files) {
    throw new UnsupportedOperationException();
  }

  public OutputWriterFactory prepareWrite(org.apache.spark.sql.SparkSession session, Job job, scala.collection.immutable.Map options, StructType schema) {
    throw new UnsupportedOperationException();
  }

  public BaseRelation createRelation(SQLContext context, scala.collection.immutable.Map options) {
    return relation(context, options);
  }

  /** The schema that a catalog stores is ignored: the log has it. */
  public BaseRelation createRelation(SQLContext context, scala.collection.immutable.Map options, StructType schema) {
    return relation(context, options);
  }

  public BaseRelation createRelation(SQLContext context, SaveMode mode, scala.collection.immutable.Map options, Dataset rows) {
    callPython(new Object[] {"write", context.sparkSession(), CollectionConverters.asJava(options), mode.name(), rows});
    return relation(context, options);
  }

  private static BaseRelation relation(SQLContext context, scala.collection.immutable.Map options) {
    Map javaOptions = CollectionConverters.asJava(options);
    Dataset frame = (Dataset) callPython(new Object[] {"read", context.sparkSession(), javaOptions});
    org.apache.spark.sql.classic.Dataset rows = (org.apache.spark.sql.classic.Dataset) frame;
    HadoopFsRelation scan = fileScan(rows.queryExecution().optimizedPlan());
    // Columns in the table's order: if the files contain the partition columns, Spark uses that order.
    if (scan != null && scan.schema().length() == rows.schema().length()) {
      return new FileScanRelation(scan, rows.schema());
    }
    return new FrameRelation(context, javaOptions, rows);
  }

  /** The scan of a plan that only scans files; null for any other plan. */
  private static HadoopFsRelation fileScan(LogicalPlan plan) {
    if (plan instanceof Project) {
      Iterator it = CollectionConverters.asJava(((Project) plan).projectList()).iterator();
      while (it.hasNext()) {
        if (!(it.next() instanceof AttributeReference)) {
          return null;
        }
      }
      plan = ((Project) plan).child();
    }
    return SparkInternals.fileRelation(plan);
  }

  /** Drops cached relations of tables of the session's catalog, so that the next query reads their newest version. */
  public void dropCachedRelations(Object catalog) throws Exception {
    Field[] fields = SessionCatalog.class.getDeclaredFields();
    for (int i = 0; i < fields.length; i++) {
      if (fields[i].getName().equals("tableRelationCache")) {
        fields[i].setAccessible(true);
        org.sparkproject.guava.cache.Cache cache = (org.sparkproject.guava.cache.Cache) fields[i].get(catalog);
        ArrayList keys = new ArrayList();
        for (Iterator it = cache.asMap().entrySet().iterator(); it.hasNext();) {
          Map.Entry entry = (Map.Entry) it.next();
          if (entry.getValue() instanceof LogicalRelation) {
            Object relation = ((LogicalRelation) entry.getValue()).relation();
            if (relation instanceof FileScanRelation || relation instanceof FrameRelation) {
              keys.add(entry.getKey());
            }
          }
        }
        cache.invalidateAll(keys);
      }
    }
  }

  static void insert(SQLContext context, Map options, Dataset rows, boolean overwrite) {
    callPython(new Object[] {"write", context.sparkSession(), options, overwrite ? "Overwrite" : "Append", rows});
  }

  /** Makes a table at the catalog's default location a managed one, whose files are deleted with its name. */
  public void makeManaged(org.apache.spark.sql.classic.SparkSession session, String name) throws Exception {
    SessionCatalog catalog = session.sessionState().catalog();
    TableIdentifier identifier = session.sessionState().sqlParser().parseTableIdentifier(name);
    CatalogTable table = catalog.getTableMetadata(identifier);
    if (!new Path(catalog.defaultTablePath(identifier)).equals(new Path(table.location()))) {
      return;
    }
    alter(catalog, table, new String[] {"tableType"}, new Object[] {CatalogTableType.MANAGED()});
  }

  /** Changes a table of the catalog whose files were converted to a Delta table; its schema comes from the log. */
  public void convertToDelta(org.apache.spark.sql.classic.SparkSession session, String name) throws Exception {
    SessionCatalog catalog = session.sessionState().catalog();
    CatalogTable table = catalog.getTableMetadata(session.sessionState().sqlParser().parseTableIdentifier(name));
    alter(catalog, table, new String[] {"provider", "schema", "partitionColumnNames"},
        new Object[] {scala.Option.apply("delta"), new StructType(), SparkInternals.seqOf(new ArrayList())});
    catalog.refreshTable(table.identifier());
  }

  private static void alter(SessionCatalog catalog, CatalogTable table, String[] names, Object[] values) throws Exception {
    Object[] arguments = SparkInternals.argumentsOf(table);
    for (int i = 0; i < arguments.length; i++) {
      for (int n = 0; n < names.length; n++) {
        if (table.productElementName(i).equals(names[n])) {
          arguments[i] = values[n];
        }
      }
    }
    Object altered = SparkInternals.copyOf(table, arguments);
    if (altered != null) {
      catalog.alterTable((CatalogTable) altered);
    }
  }

  /** A scan of files into which Spark cannot insert: see `DeltafastFileIndex.rootPaths`. */
  public static class FileScanRelation extends HadoopFsRelation {
    public FileScanRelation(HadoopFsRelation scan, StructType schema) {
      super(scan.location(), scan.partitionSchema(), schema, scan.bucketSpec(), batchReader(scan.fileFormat()), scan.options(),
          scan.sparkSession());
    }

    /** The reader of batches: the optimizer may have replaced it by `DeltafastRows`, but a query may need other columns. */
    private static FileFormat batchReader(FileFormat format) {
      return SparkInternals.isOfClass(format, "DeltafastRows") ? (FileFormat) ((java.util.function.Supplier) format).get() : format;
    }
  }

  /** Any other frame. */
  public static class FrameRelation extends BaseRelation implements PrunedFilteredScan, InsertableRelation {
    private final SQLContext context;
    private final Map options;
    private final org.apache.spark.sql.classic.Dataset frame;

    public FrameRelation(SQLContext context, Map options, org.apache.spark.sql.classic.Dataset frame) {
      this.context = context;
      this.options = options;
      this.frame = frame;
    }

    public SQLContext sqlContext() {
      return context;
    }

    /** The table's location. */
    public String path() {
      for (Iterator it = options.entrySet().iterator(); it.hasNext();) {
        Map.Entry entry = (Map.Entry) it.next();
        if (((String) entry.getKey()).equalsIgnoreCase("path")) {
          return (String) entry.getValue();
        }
      }
      return null;
    }

    public StructType schema() {
      return frame.schema();
    }

    public boolean needConversion() {
      return false;
    }

    public long sizeInBytes() {
      return frame.queryExecution().optimizedPlan().stats().sizeInBytes().longValue();
    }

    public RDD buildScan(String[] columns, Filter[] filters) {
      Dataset rows = frame;
      for (int i = 0; i < filters.length; i++) {
        Column condition = conditionOf(filters[i]);
        if (condition != null) {
          rows = rows.filter(condition);
        }
      }
      Column[] selected = new Column[columns.length];
      for (int i = 0; i < columns.length; i++) {
        selected[i] = columnOf(columns[i]);
      }
      rows = rows.select(selected);
      Object out = ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().toRdd();
      return (RDD) out;
    }

    public void insert(Dataset rows, boolean overwrite) {
      DeltafastProvider.insert(context, options, rows, overwrite);
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
        return columnOf(((GreaterThanOrEqual) filter).attribute()).geq(((GreaterThanOrEqual) filter).value());
      }
      if (filter instanceof LessThan) {
        return columnOf(((LessThan) filter).attribute()).lt(((LessThan) filter).value());
      }
      if (filter instanceof LessThanOrEqual) {
        return columnOf(((LessThanOrEqual) filter).attribute()).leq(((LessThanOrEqual) filter).value());
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
}
