package io.deltafast.spark;

import java.util.function.Supplier;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.types.StructType;

/** A scan of files into which Spark cannot insert: see `DeltaFileIndex.rootPaths`. */
public final class FileScanRelation extends HadoopFsRelation {
  private static final long serialVersionUID = 1;

  public FileScanRelation(HadoopFsRelation scan, StructType schema) {
    super(
        scan.location(),
        scan.partitionSchema(),
        schema,
        scan.bucketSpec(),
        batchReader(scan.fileFormat()),
        scan.options(),
        scan.sparkSession());
  }

  /**
   * The reader of batches: the optimizer may have replaced it by `RowFormat`, but a query may need
   * other columns.
   */
  private static FileFormat batchReader(FileFormat format) {
    return SparkInternals.isOfClass(format, "RowFormat")
        ? (FileFormat) ((Supplier<?>) format).get()
        : format;
  }
}
