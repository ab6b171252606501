package io.deltafast.spark;

import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructType;

/** Makes the writers of a task of `LeadingColumnsFormat`. */
final class LeadingColumnsWriterFactory extends OutputWriterFactory {
  private static final long serialVersionUID = 1;

  @SuppressWarnings("serial") // Spark's are serializable.
  private final OutputWriterFactory writers;

  private final StructType leading;

  LeadingColumnsWriterFactory(OutputWriterFactory writers, StructType leading) {
    this.writers = writers;
    this.leading = leading;
  }

  @Override
  public String getFileExtension(TaskAttemptContext context) {
    return writers.getFileExtension(context);
  }

  @Override
  public OutputWriter newInstance(String path, StructType schema, TaskAttemptContext context) {
    return new LeadingColumnsWriter(writers.newInstance(path, leading, context), leading);
  }
}
