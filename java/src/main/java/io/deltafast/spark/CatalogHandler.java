package io.deltafast.spark;

import org.apache.spark.sql.SparkSession;

/** Asks a server of Unity Catalog; Python implements it. Threads share it. */
public interface CatalogHandler {
  /** The location of a table; null if it does not exist, or if `failure` was set. */
  String location(
      SparkSession session, String catalog, String schema, String table, FormatFailure failure);

  /** The names of the schemas of a catalog, one on each line; null if `failure` was set. */
  String schemas(SparkSession session, String catalog, FormatFailure failure);

  /**
   * The names of the tables of a schema, one on each line; null if it does not exist, or if
   * `failure` was set.
   */
  String tables(SparkSession session, String catalog, String schema, FormatFailure failure);

  /** Drops a table; false if it does not exist, or if `failure` was set. */
  boolean drop(
      SparkSession session, String catalog, String schema, String table, FormatFailure failure);

  /** Renames a table within its schema, unless it sets `failure`. */
  void rename(
      SparkSession session,
      String catalog,
      String schema,
      String table,
      String newName,
      FormatFailure failure);
}
