package io.deltafast.spark;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** What a table's log says of it; Python sets it. */
public final class TableDescription {
  private StructType schema = new StructType();
  private List<String> partitionColumns = Collections.emptyList();
  private String comment;

  /**
   * Sets the columns in Spark's JSON, the names of the partition columns, and the comment or null.
   */
  public void set(String schemaJson, String[] partitions, String newComment) {
    schema = (StructType) DataType.fromJson(schemaJson);
    partitionColumns = Arrays.asList(partitions);
    comment = newComment;
  }

  StructType schema() {
    return schema;
  }

  List<String> partitionColumns() {
    return partitionColumns;
  }

  String comment() {
    return comment;
  }
}
