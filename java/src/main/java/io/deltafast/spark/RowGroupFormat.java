package io.deltafast.spark;

import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;

/**
 * Writes Parquet files that consist of the row groups of other files, as encoded.
 *
 * <p>The rows of a new file have two columns. `source` is the path of a file whose row groups are
 * copied, as the log names it; or, where `task` is not null, of a folder, of which the files of
 * this task are copied. The files have the same columns. The option `root` is the location of the
 * table. All else is as for Spark's own Parquet files: partitions, committers, attempts of tasks.
 */
@SuppressWarnings("cast") // Janino ignores type arguments.
public final class RowGroupFormat extends ParquetFileFormat {
  private static final long serialVersionUID = 1;

  @Override
  public OutputWriterFactory prepareWrite(
      SparkSession session, Job job, Map<String, String> options, StructType schema) {
    // Sets the committer.
    super.prepareWrite(session, job, options, schema);
    return new RowGroupWriterFactory((String) options.apply("root"));
  }
}
