package io.deltafast.spark;

import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;

/**
 * The session's catalog with the columns that the logs of its Delta tables have, and with time
 * travel: older versions of these tables, and of those that are named by delta.`path`.
 *
 * <p>The name is the same in all releases of deltafast.
 */
public final class DeltafastCatalog extends DelegatingCatalogExtension {
  @Override
  public Table loadTable(Identifier name) throws NoSuchTableException {
    return CatalogTables.described(super.loadTable(name));
  }

  @Override
  public Table loadTable(Identifier name, String version) throws NoSuchTableException {
    Table found = CatalogTables.withOption(entry(name), "versionAsOf", version);
    return found == null ? super.loadTable(name, version) : found;
  }

  /** The timestamp is in microseconds since 1970 in UTC. */
  @Override
  public Table loadTable(Identifier name, long timestamp) throws NoSuchTableException {
    Table found = CatalogTables.atTimestamp(entry(name), timestamp);
    return found == null ? super.loadTable(name, timestamp) : found;
  }

  private Table entry(Identifier name) throws NoSuchTableException {
    return CatalogTables.isPath(name) ? CatalogTables.ofPath(name) : loadTable(name);
  }
}
