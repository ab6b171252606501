package io.deltafast.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;

/** The requests of {@link UnityCatalog}, which Python answers. */
public final class CatalogRequests {
  private static volatile CatalogHandler handler;

  private CatalogRequests() {}

  /** Sets the object that asks the server; null for none. */
  public static void setHandler(CatalogHandler newHandler) {
    handler = newHandler;
  }

  /** The location of a table; null if it does not exist. */
  public static String location(String catalog, Identifier table) {
    FormatFailure failure = new FormatFailure();
    String found = current().location(session(), catalog, schemaOf(table), table.name(), failure);
    failure.raise();
    return found;
  }

  /** The names of the schemas of a catalog. */
  public static String[] schemas(String catalog) {
    FormatFailure failure = new FormatFailure();
    String found = current().schemas(session(), catalog, failure);
    failure.raise();
    return lines(found);
  }

  /** The names of the tables of a schema; null if there is no such schema. */
  public static String[] tables(String catalog, String schema) {
    FormatFailure failure = new FormatFailure();
    String found = current().tables(session(), catalog, schema, failure);
    failure.raise();
    return found == null ? null : lines(found);
  }

  /** Drops a table; false if it does not exist. */
  public static boolean drop(String catalog, Identifier table) {
    FormatFailure failure = new FormatFailure();
    boolean dropped = current().drop(session(), catalog, schemaOf(table), table.name(), failure);
    failure.raise();
    return dropped;
  }

  /** Renames a table within its schema. */
  public static void rename(String catalog, Identifier table, String newName) {
    FormatFailure failure = new FormatFailure();
    current().rename(session(), catalog, schemaOf(table), table.name(), newName, failure);
    failure.raise();
  }

  private static String schemaOf(Identifier table) {
    return String.join(".", table.namespace());
  }

  private static String[] lines(String text) {
    return text.isEmpty() ? new String[0] : text.split("\n");
  }

  private static SparkSession session() {
    return SparkSession.active();
  }

  private static CatalogHandler current() {
    CatalogHandler found = handler;
    if (found == null) {
      throw SparkInternals.raiseAnalysisException(
          "tables of Unity Catalog need deltafast: call deltafast.spark.enable(spark,"
              + " catalogs=...)");
    }
    return found;
  }
}
