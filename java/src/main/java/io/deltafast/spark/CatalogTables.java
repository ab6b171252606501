package io.deltafast.spark;

import java.lang.reflect.Method;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat$;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTable$;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Entries of tables in the session's catalog; the constructors differ between releases of Spark.
 */
public final class CatalogTables {
  private static final String CATALOG = "spark_catalog";
  private static final String PROVIDER = "delta";

  private CatalogTables() {}

  /** Whether a name is that of a path, as in delta.`/path`. */
  public static boolean isPath(Identifier name) {
    String[] namespace = name.namespace();
    return namespace.length == 1
        && namespace[0].equalsIgnoreCase(PROVIDER)
        && new Path(name.name()).isAbsolute();
  }

  /** The entry of a table that no catalog holds. */
  public static Table ofPath(Identifier name) {
    return entry(
        new TableIdentifier(name.name(), Option.apply(PROVIDER), Option.apply(CATALOG)),
        name.name());
  }

  /** The entry of a table of another catalog than the session's. */
  public static Table ofCatalog(String catalog, Identifier name, String location) {
    String schema = String.join(".", name.namespace());
    return entry(
        new TableIdentifier(name.name(), Option.apply(schema), Option.apply(catalog)), location);
  }

  private static Table entry(TableIdentifier name, String location) {
    Object storage =
        SparkInternals.copyWith(
            CatalogStorageFormat$.MODULE$.empty(),
            new String[] {"locationUri"},
            new Object[] {Option.apply(new Path(location).toUri())});
    Object[] required = {
      name, CatalogTableType.EXTERNAL(), storage, new StructType(), Option.apply(PROVIDER)
    };
    return new V1Table(created(required));
  }

  private static CatalogTable created(Object[] required) {
    try {
      for (Method method : CatalogTable$.class.getMethods()) {
        if (!method.getName().equals("apply")
            || !method.getReturnType().equals(CatalogTable.class)) {
          continue;
        }
        Object[] arguments = new Object[method.getParameterTypes().length];
        System.arraycopy(required, 0, arguments, 0, required.length);
        for (int i = required.length; i < arguments.length; i++) {
          Method standard = CatalogTable$.class.getMethod("apply$default$" + (i + 1));
          arguments[i] = standard.invoke(CatalogTable$.MODULE$);
        }
        return (CatalogTable) method.invoke(CatalogTable$.MODULE$, arguments);
      }
      throw new NoSuchMethodException("CatalogTable.apply");
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  /**
   * The entry of a Delta table with the columns, the partition columns and the comment of its log;
   * another table, and one that cannot be read, unchanged.
   */
  public static Table described(Table table) {
    if (!(table instanceof V1Table)) {
      return table;
    }
    CatalogTable entry = ((V1Table) table).v1Table();
    if (!entry.provider().contains(PROVIDER) || entry.storage().locationUri().isEmpty()) {
      return table;
    }
    String location = new Path(entry.location()).toString();
    TableDescription description = new TableDescription();
    if (!DeltaProvider.describe(location, description)) {
      return table;
    }
    Object described =
        SparkInternals.copyWith(
            entry,
            new String[] {"schema", "comment"},
            new Object[] {description.schema(), Option.apply(description.comment())});
    return new DescribedTable((CatalogTable) described, description.partitionColumns());
  }

  /**
   * A table with partition columns, which an entry of the catalog can only have at the end of its
   * schema.
   */
  private static final class DescribedTable extends V1Table {
    private static final long serialVersionUID = 1;
    private final transient Transform[] partitioning;

    DescribedTable(CatalogTable entry, List<String> partitionColumns) {
      super(entry);
      partitioning = new Transform[partitionColumns.size()];
      int next = 0;
      for (String column : partitionColumns) {
        // A column whose name has dots is one part.
        partitioning[next++] = Expressions.identity("`" + column.replace("`", "``") + "`");
      }
    }

    @Override
    public Transform[] partitioning() {
      Object copy = Arrays.copyOf(partitioning, partitioning.length);
      return (Transform[]) copy;
    }
  }

  /** The entry of a Delta table at a timestamp, microseconds since 1970 in UTC; else null. */
  public static Table atTimestamp(Table table, long timestamp) {
    Instant instant = Instant.EPOCH.plus(timestamp, ChronoUnit.MICROS);
    return withOption(table, "timestampAsOf", instant.toString());
  }

  /**
   * The entry of a Delta table with an option for its reader, and with a name of its own, by which
   * Spark caches the relation; null for a table of another format.
   */
  public static Table withOption(Table table, String option, String value) {
    if (!(table instanceof V1Table)) {
      return null;
    }
    CatalogTable entry = ((V1Table) table).v1Table();
    if (!entry.provider().contains(PROVIDER)) {
      return null;
    }
    Object storage =
        SparkInternals.copyWith(
            entry.storage(),
            new String[] {"properties"},
            new Object[] {SparkInternals.withOption(entry.storage().properties(), option, value)});
    TableIdentifier old = entry.identifier();
    Object name =
        new TableIdentifier(
            old.table() + "@" + value,
            old.database(),
            old.catalog().isDefined() ? old.catalog() : Option.apply(CATALOG));
    return new V1Table(
        (CatalogTable)
            SparkInternals.copyWith(
                entry, new String[] {"identifier", "storage"}, new Object[] {name, storage}));
  }
}
