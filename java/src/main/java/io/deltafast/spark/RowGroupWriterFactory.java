package io.deltafast.spark;

import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructType;

/** Makes the writers of a task of `RowGroupFormat`. */
final class RowGroupWriterFactory extends OutputWriterFactory {
  private static final long serialVersionUID = 1;
  private final String root;

  RowGroupWriterFactory(String root) {
    this.root = root;
  }

  @Override
  public String getFileExtension(TaskAttemptContext context) {
    return ".parquet";
  }

  @Override
  public OutputWriter newInstance(String path, StructType schema, TaskAttemptContext context) {
    return new RowGroupWriter(root, path, context.getConfiguration());
  }
}
