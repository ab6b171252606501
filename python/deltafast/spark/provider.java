package deltafast;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.Map;

import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.AnalysisException;
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

  static Object ask(Object[] request) {
    java.util.function.Function function = python;
    if (function == null) {
      throw wrong("deltafast.spark.enable was taken back in this session: format(\"delta\") is not there");
    }
    Object answer = function.apply(request);
    if (answer instanceof String) {
      String text = (String) answer;
      if (text.startsWith("wrong:")) {
        throw wrong(text.substring(6));
      }
      if (text.startsWith("conflict:")) {
        String[] parts = text.split(":", 3);
        throwIt(conflict(parts[1], parts[2]));
      }
      if (text.startsWith("failed:")) {
        throw new RuntimeException(text.substring(7));
      }
    }
    return answer;
  }

  /** Spark's exception for an invalid query or table. */
  static RuntimeException wrong(String message) {
    Object error = new AnalysisException(message, scala.Option.empty(), scala.Option.empty(), scala.Option.empty(), scala.Option.empty(),
        scala.collection.immutable.Map$.MODULE$.empty(), new org.apache.spark.QueryContext[0]);
    throwIt((Throwable) error);
    return null;
  }

  /** An exception of `conflicts.java`, which is in a jar of its own. */
  private static Throwable conflict(String name, String message) {
    try {
      Class kind = Thread.currentThread().getContextClassLoader().loadClass("io.delta.exceptions." + name);
      return (Throwable) kind.getConstructor(new Class[] {String.class}).newInstance(new Object[] {message});
    } catch (Exception error) {
      return new RuntimeException(name + ": " + message);
    }
  }

  private static void throwIt(Throwable error) {
    org.apache.spark.unsafe.Platform.throwException(error);
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
    ask(new Object[] {"write", context.sparkSession(), CollectionConverters.asJava(options), mode.name(), rows});
    return relation(context, options);
  }

  private static BaseRelation relation(SQLContext context, scala.collection.immutable.Map options) {
    Map given = CollectionConverters.asJava(options);
    Dataset frame = (Dataset) ask(new Object[] {"read", context.sparkSession(), given});
    org.apache.spark.sql.classic.Dataset rows = (org.apache.spark.sql.classic.Dataset) frame;
    HadoopFsRelation scan = scan(rows.queryExecution().optimizedPlan());
    // Columns in the table's order: if the files contain the partition columns, Spark uses that order.
    if (scan != null && scan.schema().length() == rows.schema().length()) {
      return new Files(scan, rows.schema());
    }
    return new Plan(context, given, rows);
  }

  /** The scan of a plan that only scans files; null for any other plan. */
  private static HadoopFsRelation scan(LogicalPlan plan) {
    if (plan instanceof Project) {
      Iterator it = CollectionConverters.asJava(((Project) plan).projectList()).iterator();
      while (it.hasNext()) {
        if (!(it.next() instanceof AttributeReference)) {
          return null;
        }
      }
      plan = ((Project) plan).child();
    }
    if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
      return (HadoopFsRelation) ((LogicalRelation) plan).relation();
    }
    return null;
  }

  /** Drops cached relations of tables of the session's catalog, so that the next query reads their newest version. */
  public void forget(Object catalog) throws Exception {
    Field[] fields = SessionCatalog.class.getDeclaredFields();
    for (int i = 0; i < fields.length; i++) {
      if (fields[i].getName().equals("tableRelationCache")) {
        fields[i].setAccessible(true);
        org.sparkproject.guava.cache.Cache cache = (org.sparkproject.guava.cache.Cache) fields[i].get(catalog);
        ArrayList ours = new ArrayList();
        for (Iterator it = cache.asMap().entrySet().iterator(); it.hasNext();) {
          Map.Entry entry = (Map.Entry) it.next();
          if (entry.getValue() instanceof LogicalRelation) {
            Object relation = ((LogicalRelation) entry.getValue()).relation();
            if (relation instanceof Files || relation instanceof Plan) {
              ours.add(entry.getKey());
            }
          }
        }
        cache.invalidateAll(ours);
      }
    }
  }

  static void insert(SQLContext context, Map options, Dataset rows, boolean overwrite) {
    ask(new Object[] {"write", context.sparkSession(), options, overwrite ? "Overwrite" : "Append", rows});
  }

  /** Makes a table at the catalog's default location a managed one, whose files are deleted with its name. */
  public void manage(org.apache.spark.sql.classic.SparkSession session, String name) throws Exception {
    SessionCatalog catalog = session.sessionState().catalog();
    TableIdentifier identifier = session.sessionState().sqlParser().parseTableIdentifier(name);
    CatalogTable table = catalog.getTableMetadata(identifier);
    if (!new Path(catalog.defaultTablePath(identifier)).equals(new Path(table.location()))) {
      return;
    }
    alter(catalog, table, new String[] {"tableType"}, new Object[] {CatalogTableType.MANAGED()});
  }

  /** Changes a table of the catalog whose files were converted to a Delta table; its schema comes from the log. */
  public void become(org.apache.spark.sql.classic.SparkSession session, String name) throws Exception {
    SessionCatalog catalog = session.sessionState().catalog();
    CatalogTable table = catalog.getTableMetadata(session.sessionState().sqlParser().parseTableIdentifier(name));
    alter(catalog, table, new String[] {"provider", "schema", "partitionColumnNames"},
        new Object[] {scala.Option.apply("delta"), new StructType(), CollectionConverters.asScala(new ArrayList()).toSeq()});
    catalog.refreshTable(table.identifier());
  }

  private static void alter(SessionCatalog catalog, CatalogTable table, String[] names, Object[] given) throws Exception {
    Object[] values = new Object[table.productArity()];
    for (int i = 0; i < values.length; i++) {
      values[i] = table.productElement(i);
      for (int n = 0; n < names.length; n++) {
        if (table.productElementName(i).equals(names[n])) {
          values[i] = given[n];
        }
      }
    }
    Method[] methods = CatalogTable.class.getMethods();
    for (int i = 0; i < methods.length; i++) {
      if (methods[i].getName().equals("copy") && methods[i].getParameterTypes().length == values.length) {
        catalog.alterTable((CatalogTable) methods[i].invoke(table, values));
      }
    }
  }

  /** A scan of files into which Spark cannot insert: see `DeltafastFileIndex.rootPaths`. */
  public static class Files extends HadoopFsRelation {
    public Files(HadoopFsRelation of, StructType schema) {
      super(of.location(), of.partitionSchema(), schema, of.bucketSpec(), batches(of.fileFormat()), of.options(), of.sparkSession());
    }

    /** The reader of batches: the optimizer may have replaced it by `DeltafastRows`, but a query may need other columns. */
    private static FileFormat batches(FileFormat of) {
      return of.getClass().getSimpleName().equals("DeltafastRows") ? (FileFormat) ((java.util.function.Supplier) of).get() : of;
    }
  }

  /** Any other frame. */
  public static class Plan extends BaseRelation implements PrunedFilteredScan, InsertableRelation {
    private final SQLContext context;
    private final Map given;
    private final org.apache.spark.sql.classic.Dataset frame;

    public Plan(SQLContext context, Map given, org.apache.spark.sql.classic.Dataset frame) {
      this.context = context;
      this.given = given;
      this.frame = frame;
    }

    public SQLContext sqlContext() {
      return context;
    }

    /** The table's location. */
    public String path() {
      for (Iterator it = given.entrySet().iterator(); it.hasNext();) {
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
        Column condition = column(filters[i]);
        if (condition != null) {
          rows = rows.filter(condition);
        }
      }
      Column[] chosen = new Column[columns.length];
      for (int i = 0; i < columns.length; i++) {
        chosen[i] = named(columns[i]);
      }
      rows = rows.select(chosen);
      Object out = ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().toRdd();
      return (RDD) out;
    }

    public void insert(Dataset rows, boolean overwrite) {
      DeltafastProvider.insert(context, given, rows, overwrite);
    }

    private static Column named(String name) {
      return functions.col("`" + name.replace("`", "``") + "`");
    }

    /** A filter as a column; null if it is not supported, since Spark filters again. */
    private static Column column(Filter filter) {
      if (filter instanceof And) {
        Column left = column(((And) filter).left());
        Column right = column(((And) filter).right());
        return left == null ? right : right == null ? left : left.and(right);
      }
      if (filter instanceof Or) {
        Column left = column(((Or) filter).left());
        Column right = column(((Or) filter).right());
        return left == null || right == null ? null : left.or(right);
      }
      if (filter instanceof EqualTo) {
        return named(((EqualTo) filter).attribute()).equalTo(((EqualTo) filter).value());
      }
      if (filter instanceof GreaterThan) {
        return named(((GreaterThan) filter).attribute()).gt(((GreaterThan) filter).value());
      }
      if (filter instanceof GreaterThanOrEqual) {
        return named(((GreaterThanOrEqual) filter).attribute()).geq(((GreaterThanOrEqual) filter).value());
      }
      if (filter instanceof LessThan) {
        return named(((LessThan) filter).attribute()).lt(((LessThan) filter).value());
      }
      if (filter instanceof LessThanOrEqual) {
        return named(((LessThanOrEqual) filter).attribute()).leq(((LessThanOrEqual) filter).value());
      }
      if (filter instanceof In) {
        return named(((In) filter).attribute()).isin(((In) filter).values());
      }
      if (filter instanceof IsNull) {
        return named(((IsNull) filter).attribute()).isNull();
      }
      if (filter instanceof IsNotNull) {
        return named(((IsNotNull) filter).attribute()).isNotNull();
      }
      return null;
    }
  }
}
