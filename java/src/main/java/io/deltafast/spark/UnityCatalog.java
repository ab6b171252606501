package io.deltafast.spark;

import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A catalog of Unity Catalog: its tables are read and changed by names of three parts.
 *
 * <p>The name of the class is the same in all releases of deltafast.
 */
public final class UnityCatalog implements TableCatalog, SupportsNamespaces {
  private String name;

  @Override
  public void initialize(String catalog, CaseInsensitiveStringMap options) {
    name = catalog;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Table loadTable(Identifier table) throws NoSuchTableException {
    String location = CatalogRequests.location(name, table);
    if (location == null) {
      throw new NoSuchTableException(table);
    }
    return CatalogTables.ofCatalog(name, table, location);
  }

  @Override
  public Table loadTable(Identifier table, String version) throws NoSuchTableException {
    return CatalogTables.withOption(loadTable(table), "versionAsOf", version);
  }

  /** The timestamp is in microseconds since 1970 in UTC. */
  @Override
  public Table loadTable(Identifier table, long timestamp) throws NoSuchTableException {
    return CatalogTables.atTimestamp(loadTable(table), timestamp);
  }

  @Override
  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    String[] tables = namespace.length == 1 ? CatalogRequests.tables(name, namespace[0]) : null;
    if (tables == null) {
      throw new NoSuchNamespaceException(namespace);
    }
    Identifier[] names = new Identifier[tables.length];
    for (int i = 0; i < tables.length; i++) {
      names[i] = Identifier.of(namespace, tables[i]);
    }
    return names;
  }

  @Override
  public boolean dropTable(Identifier table) {
    return CatalogRequests.drop(name, table);
  }

  @Override
  public void renameTable(Identifier table, Identifier renamed) throws NoSuchTableException {
    if (!Arrays.equals(table.namespace(), renamed.namespace())) {
      throw new UnsupportedOperationException("Unity Catalog renames tables within their schema");
    }
    if (CatalogRequests.location(name, table) == null) {
      throw new NoSuchTableException(table);
    }
    CatalogRequests.rename(name, table, renamed.name());
  }

  @Override
  public Table alterTable(Identifier table, TableChange... changes) {
    throw new UnsupportedOperationException(
        name + "." + table + " is changed by statements of Delta only");
  }

  @Override
  public String[][] listNamespaces() {
    String[] schemas = CatalogRequests.schemas(name);
    String[][] namespaces = new String[schemas.length][];
    for (int i = 0; i < schemas.length; i++) {
      namespaces[i] = new String[] {schemas[i]};
    }
    return namespaces;
  }

  @Override
  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length == 0) {
      return listNamespaces();
    }
    loadNamespaceMetadata(namespace);
    return new String[0][];
  }

  @Override
  public boolean namespaceExists(String[] namespace) {
    return namespace.length == 1
        && Arrays.asList(CatalogRequests.schemas(name)).contains(namespace[0]);
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace)
      throws NoSuchNamespaceException {
    if (!namespaceExists(namespace)) {
      throw new NoSuchNamespaceException(namespace);
    }
    return Collections.emptyMap();
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata) {
    throw schemasAreTheServers();
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    throw schemasAreTheServers();
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    throw schemasAreTheServers();
  }

  private UnsupportedOperationException schemasAreTheServers() {
    return new UnsupportedOperationException(
        "schemas of " + name + " are created and dropped in the server, not by Spark");
  }
}
