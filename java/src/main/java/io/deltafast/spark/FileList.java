package io.deltafast.spark;

import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructType;

/** Files with their constants, and whether the newest version has removed them. */
final class FileList {
  private static final long BLOCK_BYTES = 134217728L;

  /** Number of columns of the stream before the partition columns. */
  private static final int FILE_COLUMNS = 8;

  final FileStatus[] files;
  final boolean[] removed;
  final InternalRow[] values;

  /**
   * The number of rows that are not deleted, and the number of the deletion vector; -1 if unknown
   * or if there is none.
   */
  final long[] rows;

  final int[] vectors;

  /** The base row id and the default row commit version; -1 without row tracking. */
  final long[] ids;

  final long[] versions;
  final DeletionVectors deleted;

  FileList(String root, StructType partition, String stream, DeletionVectors deleted) {
    this.deleted = deleted;
    InternalRow[] listed = ArrowRows.read(stream);
    files = new FileStatus[listed.length];
    removed = new boolean[files.length];
    values = new InternalRow[files.length];
    rows = new long[files.length];
    vectors = new int[files.length];
    ids = new long[files.length];
    versions = new long[files.length];
    for (int i = 0; i < files.length; i++) {
      InternalRow row = listed[i];
      files[i] =
          new FileStatus(
              row.getLong(1),
              false,
              1,
              BLOCK_BYTES,
              row.getLong(2),
              DeltaFileIndex.filePath(root, row.getUTF8String(0).toString()));
      removed[i] = row.getBoolean(3);
      rows[i] = row.isNullAt(4) ? -1 : row.getLong(4);
      vectors[i] = row.isNullAt(5) ? -1 : row.getInt(5);
      ids[i] = row.isNullAt(6) ? -1 : row.getLong(6);
      versions[i] = row.isNullAt(7) ? -1 : row.getLong(7);
      Object[] constants = new Object[partition.length()];
      for (int j = 0; j < constants.length; j++) {
        constants[j] =
            row.isNullAt(FILE_COLUMNS + j)
                ? null
                : row.get(FILE_COLUMNS + j, partition.fields()[j].dataType());
      }
      values[i] = new GenericInternalRow(constants);
    }
  }
}
