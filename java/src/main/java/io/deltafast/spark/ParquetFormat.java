package io.deltafast.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.FileSourceConstantMetadataStructField$;
import org.apache.spark.sql.catalyst.expressions.FileSourceGeneratedMetadataStructField$;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's Parquet reader, extended to skip the rows that a file's deletion vector deletes. It runs
 * on the executors.
 *
 * <p>The constants of a file come with it, from `DeltaFileIndex`: `deltafast.deleted`, a broadcast
 * of bitmaps (a bit for each deleted row, by its position in the file), `deltafast.number`, the
 * number of the file's bitmap, and `deltafast.rows`, the number of rows that are not deleted; for
 * tables with row tracking also `base_row_id` and `default_row_commit_version`. A file is not
 * opened if no column of it is read.
 */
public final class ParquetFormat extends ParquetFileFormat implements Supplier<FileFormat> {
  private static final long serialVersionUID = 1;

  /** The option of readers whose batches have only Spark's own column vectors. */
  static final String WRITABLE_VECTORS = "deltafast.writableVectors";

  /**
   * Bytes of a buffer for column chunks. Of larger ones, each may start a concurrent marking of the
   * heap: G1 has a limit of half a region, 512 KiB in heaps of up to 2 GiB.
   */
  private static final int BUFFER_BYTES = 1 << 18;

  private final boolean hasVectors;
  private final boolean isLocal;
  private final String ids;
  private final String versions;
  private final boolean isCompleted;

  /**
   * `isLocal`: the files are on local disks. `ids` and `versions`: the columns that materialize row
   * ids and commit versions; empty without row tracking.
   */
  public ParquetFormat(boolean hasVectors, boolean isLocal, String ids, String versions) {
    this(hasVectors, isLocal, ids, versions, false);
  }

  private ParquetFormat(
      boolean hasVectors, boolean isLocal, String ids, String versions, boolean isCompleted) {
    this.hasVectors = hasVectors;
    this.isLocal = isLocal;
    this.ids = ids;
    this.versions = versions;
    this.isCompleted = isCompleted;
  }

  /**
   * The same format for a plan that completes row ids and commit versions; null if this is that
   * format.
   */
  @Override
  public FileFormat get() {
    return isCompleted ? null : new ParquetFormat(hasVectors, isLocal, ids, versions, true);
  }

  /**
   * With row tracking also its metadata columns, as in delta-spark; `RowTrackingRule` completes
   * their values.
   */
  @Override
  public Seq<StructField> metadataSchemaFields() {
    List<StructField> fields =
        new ArrayList<>(CollectionConverters.asJava(super.metadataSchemaFields()));
    if (!ids.isEmpty()) {
      fields.add(
          FileSourceGeneratedMetadataStructField$.MODULE$.apply(
              "row_id", ids, DataTypes.LongType, true));
      fields.add(
          FileSourceConstantMetadataStructField$.MODULE$.apply(
              "base_row_id", DataTypes.LongType, true));
      fields.add(
          FileSourceConstantMetadataStructField$.MODULE$.apply(
              "default_row_commit_version", DataTypes.LongType, true));
      fields.add(
          FileSourceGeneratedMetadataStructField$.MODULE$.apply(
              "row_commit_version", versions, DataTypes.LongType, true));
    }
    return SparkInternals.seqOf(fields);
  }

  /** Spark's own regards all formats of Parquet files as equal. */
  @Override
  public boolean equals(Object object) {
    if (!(object instanceof ParquetFormat)) {
      return false;
    }
    ParquetFormat other = (ParquetFormat) object;
    return hasVectors == other.hasVectors
        && isLocal == other.isLocal
        && isCompleted == other.isCompleted
        && ids.equals(other.ids)
        && versions.equals(other.versions);
  }

  @Override
  public int hashCode() {
    return getClass().hashCode();
  }

  /** Only if rows can be moved within the column vectors of all types. */
  @Override
  public boolean supportBatch(SparkSession session, StructType schema) {
    return super.supportBatch(session, schema) && (!hasVectors || RowMover.isMovable(schema));
  }

  /** The classes of a batch's columns, to which generated code casts them. */
  @Override
  @SuppressWarnings("cast") // Janino ignores type arguments.
  public Option<Seq<String>> vectorTypes(
      StructType required, StructType partition, SQLConf settings) {
    Seq<String> all = (Seq<String>) super.vectorTypes(required, partition, settings).get();
    List<String> types = new ArrayList<>(CollectionConverters.asJava(all));
    for (int i = 0; i < required.length(); i++) {
      if (required.fields()[i].dataType() instanceof StringType) {
        types.set(i, ColumnVector.class.getName());
      }
    }
    return Option.apply(SparkInternals.seqOf(types));
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
    checkCompleted(data, required);
    Function1<PartitionedFile, Iterator<InternalRow>> plain =
        super.buildReaderWithPartitionValues(
            session, data, partition, required, filters, options, withBuffers(configuration));
    String batchOption = FileFormat$.MODULE$.OPTION_RETURNING_BATCH();
    boolean batches = options.contains(batchOption) && "true".equals(options.apply(batchOption));
    boolean countsOnly = required.length() == 0 && filters.isEmpty();
    boolean hasStrings = batches && hasStrings(required) && !options.contains(WRITABLE_VECTORS);
    if (!hasVectors) {
      return countsOnly || hasStrings
          ? SparkInternals.fileReader(
              new FileReader(
                  plain, null, 0, required, partition, batches, hasStrings, countsOnly, true))
          : plain;
    }
    // Spark's readers provide the row's position in the file, also if they skip row groups and
    // pages; but they box it.
    String position = ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME();
    StructType withPosition =
        required.getFieldIndex(position).isEmpty()
            ? required.add(position, DataTypes.LongType)
            : required;
    Function1<PartitionedFile, Iterator<InternalRow>> positioned =
        super.buildReaderWithPartitionValues(
            session, data, partition, withPosition, filters, options, withBuffers(configuration));
    return SparkInternals.fileReader(
        new FileReader(
            plain,
            positioned,
            withPosition.fieldIndex(position),
            required,
            partition,
            batches,
            hasStrings,
            countsOnly,
            filters.isEmpty()));
  }

  /** A copy of a configuration with small buffers, unless it has settings of its own. */
  private Configuration withBuffers(Configuration configuration) {
    Configuration copy = new Configuration(configuration);
    copy.setIfUnset("parquet.read.allocation.size", String.valueOf(BUFFER_BYTES));
    if (isLocal) {
      // A vectored read has one buffer for consecutive chunks; it is meant for remote storage.
      copy.setIfUnset("parquet.hadoop.vectored.io.enabled", "false");
    }
    return copy;
  }

  private static boolean hasStrings(StructType schema) {
    for (int i = 0; i < schema.length(); i++) {
      if (schema.fields()[i].dataType() instanceof StringType) {
        return true;
      }
    }
    return false;
  }

  /** Rejects row ids and commit versions that no rule completes: they would silently be null. */
  private void checkCompleted(StructType data, StructType required) {
    for (String column : new String[] {ids, versions}) {
      boolean isRequired =
          !required.getFieldIndex(column).isEmpty() && data.getFieldIndex(column).isEmpty();
      if (isRequired && !isCompleted) {
        throw new IllegalStateException(
            "this session cannot return row_id and row_commit_version of _metadata yet: read any"
                + " table that tracks rows with deltafast in it first");
      }
    }
  }
}
