package io.deltafast.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/** What a statement is: a query, one that changes tables, or one of Spark's in other words. */
public final class StatementReading {
  private Dataset<Row> query;
  private String columns;
  private String text;

  /** Sets the rows of a statement that only reads. */
  public void setQuery(Dataset<Row> rows) {
    query = rows;
  }

  /** Sets a statement that changes tables, with the columns of its result as JSON. */
  public void setCommand(String statement, String schema) {
    text = statement;
    columns = schema;
  }

  /** Sets the text of a statement that Spark runs. */
  public void setText(String statement) {
    text = statement;
  }

  Dataset<Row> query() {
    return query;
  }

  String columns() {
    return columns;
  }

  String text() {
    return text;
  }
}
