package io.deltafast.spark;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;

/**
 * The session's catalog with time travel: older versions of its Delta tables, and of those that are
 * named by delta.`path`.
 *
 * <p>The name is the same in all releases of deltafast.
 */
public final class DeltafastCatalog extends DelegatingCatalogExtension {
  @Override
  public Table loadTable(Identifier name, String version) throws NoSuchTableException {
    Table found = at(name, "versionAsOf", version);
    return found == null ? super.loadTable(name, version) : found;
  }

  /** The timestamp is in microseconds since 1970 in UTC. */
  @Override
  public Table loadTable(Identifier name, long timestamp) throws NoSuchTableException {
    Instant instant = Instant.EPOCH.plus(timestamp, ChronoUnit.MICROS);
    Table found = at(name, "timestampAsOf", instant.toString());
    return found == null ? super.loadTable(name, timestamp) : found;
  }

  private Table at(Identifier name, String option, String value) throws NoSuchTableException {
    Table table = CatalogTables.isPath(name) ? CatalogTables.ofPath(name) : loadTable(name);
    return CatalogTables.withOption(table, option, value);
  }
}
