package io.deltafast.spark;

import java.io.Serializable;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * A reader of batches that converts them to rows. Spark would build each row value by value; here a
 * column's values are written to many rows at once. The rows are identical to the byte. It runs on
 * the executors.
 *
 * <p>Its type is not that of a Parquet reader, since Spark would copy all rows of such a reader
 * again.
 */
public final class RowFormat
    implements FileFormat, DataSourceRegister, Supplier<FileFormat>, Serializable {
  private static final long serialVersionUID = 1;

  @SuppressWarnings("serial") // Spark's are serializable.
  private final FileFormat format;

  public RowFormat(FileFormat format) {
    this.format = format;
  }

  /** Adds the rule that uses it to a session, if it is not there yet. */
  public static void addRule(org.apache.spark.sql.classic.SparkSession session) {
    SparkInternals.addRule(session, new RowFormatRule());
  }

  @Override
  public Option<StructType> inferSchema(
      SparkSession session, Map<String, String> options, Seq<FileStatus> files) {
    return format.inferSchema(session, options, files);
  }

  @Override
  public OutputWriterFactory prepareWrite(
      SparkSession session, Job job, Map<String, String> options, StructType schema) {
    return format.prepareWrite(session, job, options, schema);
  }

  @Override
  public boolean supportBatch(SparkSession session, StructType schema) {
    return false;
  }

  @Override
  public boolean isSplitable(SparkSession session, Map<String, String> options, Path path) {
    return format.isSplitable(session, options, path);
  }

  @Override
  public Seq<StructField> metadataSchemaFields() {
    return format.metadataSchemaFields();
  }

  @Override
  public Map<String, Function1<PartitionedFile, Object>> fileConstantMetadataExtractors() {
    return format.fileConstantMetadataExtractors();
  }

  @Override
  public Function1<PartitionedFile, Iterator<InternalRow>> buildReaderWithPartitionValues(
      SparkSession session,
      StructType data,
      StructType partition,
      StructType required,
      Seq<Filter> filters,
      Map<String, String> options,
      Configuration configuration) {
    StructType schema = required;
    for (int i = 0; i < partition.length(); i++) {
      schema = schema.add(partition.fields()[i]);
    }
    // Settings may have changed since the query was planned.
    boolean batches = format.supportBatch(session, schema);
    Map<String, String> readerOptions =
        SparkInternals.withOption(
            SparkInternals.withOption(options, ParquetFormat.WRITABLE_VECTORS, "true"),
            FileFormat$.MODULE$.OPTION_RETURNING_BATCH(),
            String.valueOf(batches));
    Function1<PartitionedFile, Iterator<InternalRow>> reader =
        format.buildReaderWithPartitionValues(
            session, data, partition, required, filters, readerOptions, configuration);
    return SparkInternals.fileReader(new RowReader(reader, batches ? null : schema));
  }

  /** The reader of batches. */
  @Override
  public FileFormat get() {
    return format;
  }

  @Override
  public String shortName() {
    return ((DataSourceRegister) format).shortName();
  }

  @Override
  public String toString() {
    return format.toString();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof RowFormat && format.equals(((RowFormat) other).format);
  }

  @Override
  public int hashCode() {
    return format.hashCode();
  }
}
