package io.deltafast.spark;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.sources.SchemaRelationProvider;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.sparkproject.guava.cache.Cache;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The format `delta` of a session: reads and writes go to Python, which returns frames over Spark's
 * own reader.
 *
 * <p>A frame that only scans files becomes that scan's relation; any other is executed as it is,
 * with the columns and the filters that Spark pushes down. Inserted rows go to Python, too.
 */
public final class DeltaProvider extends DeltaStreamProvider
    implements DataSourceRegister,
        RelationProvider,
        SchemaRelationProvider,
        CreatableRelationProvider,
        FileFormat {
  private static volatile FormatHandler handler;

  /** Sets the object that plans and commits, for every instance; null for none. */
  public void setHandler(FormatHandler newHandler) {
    handler = newHandler;
  }

  private static FormatHandler currentHandler() {
    FormatHandler current = handler;
    checkEnabled(current);
    return current;
  }

  @Override
  public String shortName() {
    return "delta";
  }

  /**
   * Spark resolves delta.`path` in its SQL to a table only for a file format; it requests a
   * relation first.
   */
  @Override
  public Option<StructType> inferSchema(
      SparkSession session,
      scala.collection.immutable.Map<String, String> options,
      Seq<FileStatus> files) {
    throw new UnsupportedOperationException();
  }

  @Override
  public OutputWriterFactory prepareWrite(
      SparkSession session,
      Job job,
      scala.collection.immutable.Map<String, String> options,
      StructType schema) {
    throw new UnsupportedOperationException();
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, scala.collection.immutable.Map<String, String> options) {
    return relation(context, options);
  }

  /** The schema that a catalog stores is ignored: the log has it. */
  @Override
  public BaseRelation createRelation(
      SQLContext context,
      scala.collection.immutable.Map<String, String> options,
      StructType schema) {
    return relation(context, options);
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context,
      SaveMode mode,
      scala.collection.immutable.Map<String, String> options,
      Dataset<Row> rows) {
    write(context, CollectionConverters.asJava(options), mode, rows);
    return relation(context, options);
  }

  /** Spark accepts no variants otherwise; types that tables cannot have are refused in Python. */
  @Override
  public boolean supportsDataType(DataType type) {
    return true;
  }

  /** The location of the table that options name. */
  static String pathOf(Map<String, String> options) {
    for (Map.Entry<?, ?> entry : options.entrySet()) {
      if (((String) entry.getKey()).equalsIgnoreCase("path")) {
        return (String) entry.getValue();
      }
    }
    return null;
  }

  private static BaseRelation relation(
      SQLContext context, scala.collection.immutable.Map<String, String> options) {
    Map<String, String> javaOptions = CollectionConverters.asJava(options);
    FormatFailure failure = new FormatFailure();
    Dataset<Row> rows = currentHandler().read(context.sparkSession(), javaOptions, failure);
    failure.raise();
    HadoopFsRelation scan =
        fileScan(
            ((org.apache.spark.sql.classic.Dataset<Row>) rows).queryExecution().optimizedPlan());
    // Columns in the table's order: if the files contain the partition columns, Spark uses that
    // order.
    if (scan != null && scan.schema().length() == rows.schema().length()) {
      return new FileScanRelation(scan, rows.schema());
    }
    return new FrameRelation(context, javaOptions, rows);
  }

  /**
   * Describes the table at a location; false if it cannot be read, or the format is not enabled.
   */
  static boolean describe(String location, TableDescription description) {
    FormatHandler current = handler;
    return current != null && current.describe(SparkSession.active(), location, description);
  }

  /** The scan of a plan that only scans files; null for any other plan. */
  private static HadoopFsRelation fileScan(LogicalPlan plan) {
    if (!(plan instanceof Project)) {
      return SparkInternals.fileRelation(plan);
    }
    Project project = (Project) plan;
    for (NamedExpression column : CollectionConverters.asJava(project.projectList())) {
      if (!(column instanceof AttributeReference)) {
        return null;
      }
    }
    return SparkInternals.fileRelation(project.child());
  }

  /**
   * Drops cached relations of tables of the session's catalog, so that the next query reads their
   * newest version.
   */
  public void dropCachedRelations(SessionCatalog catalog) throws Exception {
    for (Field field : SessionCatalog.class.getDeclaredFields()) {
      if (field.getName().equals("tableRelationCache")) {
        field.setAccessible(true);
        Cache<?, ?> cache = (Cache<?, ?>) field.get(catalog);
        List<Object> keys = new ArrayList<>();
        for (Map.Entry<?, ?> entry : cache.asMap().entrySet()) {
          if (isOurs(entry.getValue())) {
            keys.add(entry.getKey());
          }
        }
        cache.invalidateAll(keys);
      }
    }
  }

  private static boolean isOurs(Object plan) {
    Object relation = plan instanceof LogicalRelation ? ((LogicalRelation) plan).relation() : null;
    return relation instanceof FileScanRelation || relation instanceof FrameRelation;
  }

  static void write(
      SQLContext context, Map<String, String> options, SaveMode mode, Dataset<Row> rows) {
    FormatFailure failure = new FormatFailure();
    currentHandler().write(context.sparkSession(), options, mode.name(), rows, failure);
    failure.raise();
  }

  /**
   * Makes a table at the catalog's default location a managed one, whose files are deleted with its
   * name.
   */
  public void makeManaged(org.apache.spark.sql.classic.SparkSession session, String name)
      throws Exception {
    SessionCatalog catalog = session.sessionState().catalog();
    TableIdentifier identifier = identifierOf(session, name);
    CatalogTable table = catalog.getTableMetadata(identifier);
    if (!new Path(catalog.defaultTablePath(identifier)).equals(new Path(table.location()))) {
      return;
    }
    alter(catalog, table, new String[] {"tableType"}, new Object[] {CatalogTableType.MANAGED()});
  }

  /**
   * Changes a table of the catalog whose files were converted to a Delta table; its schema comes
   * from the log.
   */
  public void convertToDelta(org.apache.spark.sql.classic.SparkSession session, String name)
      throws Exception {
    SessionCatalog catalog = session.sessionState().catalog();
    CatalogTable table = catalog.getTableMetadata(identifierOf(session, name));
    alter(
        catalog,
        table,
        new String[] {"provider", "schema", "partitionColumnNames"},
        new Object[] {
          Option.apply("delta"), new StructType(), SparkInternals.seqOf(new ArrayList<>())
        });
    catalog.refreshTable(table.identifier());
  }

  /** Takes the columns of a new table out of its entry in the catalog: the log has them. */
  public void forgetColumns(org.apache.spark.sql.classic.SparkSession session, String name)
      throws Exception {
    SessionCatalog catalog = session.sessionState().catalog();
    CatalogTable table = catalog.getTableMetadata(identifierOf(session, name));
    if (!table.schema().isEmpty()) {
      alter(
          catalog,
          table,
          new String[] {"schema", "partitionColumnNames"},
          new Object[] {new StructType(), SparkInternals.seqOf(new ArrayList<>())});
    }
  }

  /**
   * The identifier of a table of the session's catalog, whose name may begin with the catalog's.
   */
  private static TableIdentifier identifierOf(
      org.apache.spark.sql.classic.SparkSession session, String name) throws Exception {
    Object[] parts =
        CollectionConverters.asJava(
                session.sessionState().sqlParser().parseMultipartIdentifier(name))
            .toArray();
    String table = (String) parts[parts.length - 1];
    String database = parts.length > 1 ? (String) parts[parts.length - 2] : null;
    return new TableIdentifier(table, Option.apply(database));
  }

  private static void alter(
      SessionCatalog catalog, CatalogTable table, String[] names, Object[] values) {
    Object altered = SparkInternals.copyWith(table, names, values);
    if (altered != null) {
      catalog.alterTable((CatalogTable) altered);
    }
  }
}
