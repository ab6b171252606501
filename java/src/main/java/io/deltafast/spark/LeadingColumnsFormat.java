package io.deltafast.spark;

import java.util.Arrays;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;

/**
 * Writes Parquet files with the leading columns of the rows only, as many as the option `columns`
 * says.
 *
 * <p>Rows that were sorted by a column that is not written need no projection, which would copy
 * them.
 */
@SuppressWarnings("cast") // Janino ignores type arguments.
public final class LeadingColumnsFormat extends ParquetFileFormat {
  private static final long serialVersionUID = 1;

  @Override
  public OutputWriterFactory prepareWrite(
      SparkSession session, Job job, Map<String, String> options, StructType schema) {
    int columns = Integer.parseInt((String) options.apply("columns"));
    StructField[] fields = (StructField[]) Arrays.copyOf(schema.fields(), columns);
    StructType leading = new StructType(fields);
    OutputWriterFactory writers = super.prepareWrite(session, job, options, leading);
    return new LeadingColumnsWriterFactory(writers, leading);
  }
}
