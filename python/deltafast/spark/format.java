package deltafast;
// include shared.java

import java.io.Serializable;
import java.util.ArrayList;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.FileSourceConstantMetadataStructField$;
import org.apache.spark.sql.catalyst.expressions.FileSourceGeneratedMetadataStructField$;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.vectorized.ColumnVectorUtils;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.AbstractIterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * Spark's Parquet reader, extended to skip the rows that a file's deletion vector deletes. It runs on the executors.
 *
 * The constants of a file come with it, from `DeltafastFileIndex`: `deltafast.deleted`, a broadcast of bitmaps (a bit for each
 * deleted row, by its position in the file), `deltafast.number`, the number of the file's bitmap, and `deltafast.rows`, the
 * number of rows that are not deleted; for tables with row tracking also `base_row_id` and `default_row_commit_version`. A file
 * is not opened if no column of it is read.
 */
public class DeltafastFormat extends ParquetFileFormat implements java.util.function.Supplier {
  private final boolean hasVectors;
  private final String ids;
  private final String versions;
  private final boolean isCompleted;

  /** `ids` and `versions`: the columns that materialize row ids and commit versions; empty without row tracking. */
  public DeltafastFormat(String hasVectors, String ids, String versions) {
    this(hasVectors.equals("true"), ids, versions, false);
  }

  private DeltafastFormat(boolean hasVectors, String ids, String versions, boolean isCompleted) {
    this.hasVectors = hasVectors;
    this.ids = ids;
    this.versions = versions;
    this.isCompleted = isCompleted;
  }

  /** The same format for a plan that completes row ids and commit versions; null if this is that format. */
  public Object get() {
    return isCompleted ? null : new DeltafastFormat(hasVectors, ids, versions, true);
  }

  /** With row tracking also its metadata columns, as in delta-spark; `DeltafastTracking` completes their values. */
  public Seq metadataSchemaFields() {
    ArrayList fields = new ArrayList(CollectionConverters.asJava(super.metadataSchemaFields()));
    if (!ids.isEmpty()) {
      fields.add(FileSourceGeneratedMetadataStructField$.MODULE$.apply("row_id", ids, DataTypes.LongType, true));
      fields.add(FileSourceConstantMetadataStructField$.MODULE$.apply("base_row_id", DataTypes.LongType, true));
      fields.add(FileSourceConstantMetadataStructField$.MODULE$.apply("default_row_commit_version", DataTypes.LongType, true));
      fields.add(FileSourceGeneratedMetadataStructField$.MODULE$.apply("row_commit_version", versions, DataTypes.LongType, true));
    }
    return SparkInternals.seqOf(fields);
  }

  /** Only if rows can be moved within the column vectors of all types. */
  public boolean supportBatch(SparkSession session, StructType schema) {
    return super.supportBatch(session, schema) && (!hasVectors || RowMover.isMovable(schema));
  }

  public scala.Function1 buildReaderWithPartitionValues(SparkSession session, StructType data, StructType partition, StructType required,
      Seq filters, Map options, Configuration configuration) {
    checkCompleted(data, required);
    scala.Function1 plain = super.buildReaderWithPartitionValues(session, data, partition, required, filters, options,
        new Configuration(configuration));
    boolean batches = "true".equals(options.getOrElse(FileFormat$.MODULE$.OPTION_RETURNING_BATCH(), new FalseDefault()));
    boolean countsOnly = required.length() == 0 && filters.isEmpty();
    if (!hasVectors) {
      return countsOnly ? new Reader(plain, null, 0, required, partition, batches, true, true) : plain;
    }
    // Spark's readers provide the row's position in the file, also if they skip row groups and pages; but they box it.
    String position = ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME();
    StructType withPosition = required.getFieldIndex(position).isEmpty() ? required.add(position, DataTypes.LongType) : required;
    scala.Function1 positioned = super.buildReaderWithPartitionValues(session, data, partition, withPosition, filters, options,
        new Configuration(configuration));
    return new Reader(plain, positioned, withPosition.fieldIndex(position), required, partition, batches, countsOnly, filters.isEmpty());
  }

  /** Rejects row ids and commit versions that no rule completes: they would silently be null. */
  private void checkCompleted(StructType data, StructType required) {
    String[] columns = new String[] {ids, versions};
    for (int i = 0; i < columns.length; i++) {
      boolean isRequired = !required.getFieldIndex(columns[i]).isEmpty() && data.getFieldIndex(columns[i]).isEmpty();
      if (isRequired && !isCompleted) {
        throw new IllegalStateException("this session cannot return row_id and row_commit_version of _metadata yet: read any table that "
            + "tracks rows with deltafast in it first");
      }
    }
  }

  /** The default of an option. */
  static class FalseDefault extends scala.runtime.AbstractFunction0 {
    public Object apply() {
      return "false";
    }
  }

  /** Reads a file. */
  static class Reader extends AbstractFunction1 implements Serializable {
    private final scala.Function1 plain;
    private final scala.Function1 positioned;
    private final int position;
    private final StructType required;
    private final StructType partition;
    private final boolean batches;
    private final boolean countsOnly;
    private final boolean readsAll;

    /**
     * `plain` reads the columns `required`; `positioned` (null without deletion vectors) also reads, in column `position`, each
     * row's position in its file, as an additional last column if it is not among the required ones. `countsOnly`: only the
     * number of rows is needed. `readsAll`: no filter makes the readers skip rows.
     */
    Reader(scala.Function1 plain, scala.Function1 positioned, int position, StructType required, StructType partition, boolean batches,
        boolean countsOnly, boolean readsAll) {
      this.plain = plain;
      this.positioned = positioned;
      this.position = position;
      this.required = required;
      this.partition = partition;
      this.batches = batches;
      this.countsOnly = countsOnly;
      this.readsAll = readsAll;
    }

    public Object apply(Object partitionedFile) {
      PartitionedFile file = (PartitionedFile) partitionedFile;
      Map constants = file.otherConstantMetadataColumnValues();
      if (countsOnly && constants.contains("deltafast.rows")) {
        // A file that is read in splits is counted with its first one.
        long rows = file.start() == 0 ? ((Long) constants.apply("deltafast.rows")).longValue() : 0;
        return new ConstantRows(rows, partition, file.partitionValues(), batches);
      }
      if (!constants.contains("deltafast.deleted")) {
        return plain.apply(file);
      }
      long[][] vectors = (long[][]) ((Broadcast) constants.apply("deltafast.deleted")).value();
      long[] words = vectors[((Integer) constants.apply("deltafast.number")).intValue()];
      if (batches && readsAll && file.start() == 0) {
        // The rows from the first one on, even if the end of the file belongs to other splits.
        return new LiveBatches((scala.collection.Iterator) plain.apply(file), words, -1, false);
      }
      scala.collection.Iterator rows = (scala.collection.Iterator) positioned.apply(file);
      boolean isAdded = position == required.length();
      return batches ? (Object) new LiveBatches(rows, words, position, isAdded)
          : new LiveRows(rows, words, position, isAdded ? projection() : null);
    }

    /** Removes the column with the row's position. */
    private UnsafeProjection projection() {
      ArrayList columns = new ArrayList();
      for (int i = 0; i < required.length(); i++) {
        columns.add(new BoundReference(i, required.fields()[i].dataType(), true));
      }
      for (int i = 0; i < partition.length(); i++) {
        columns.add(new BoundReference(position + 1 + i, partition.fields()[i].dataType(), true));
      }
      return UnsafeProjection.create(SparkInternals.seqOf(columns));
    }
  }

  /** What remains of the rows or batches of a reader without deleted rows. */
  abstract static class LiveIterator extends ReaderIterator {
    private Object next;

    LiveIterator(scala.collection.Iterator reader) {
      super(reader);
    }

    /** What remains of one row or batch; null if nothing does. */
    abstract Object withoutDeleted(Object read);

    public boolean hasNext() {
      while (next == null && reader.hasNext()) {
        next = withoutDeleted(reader.next());
      }
      return next != null;
    }

    public Object next() {
      if (!hasNext()) {
        throw new java.util.NoSuchElementException();
      }
      Object out = next;
      next = null;
      return out;
    }
  }

  /** The number of rows of a file, with its constants as their values. */
  static class ConstantRows extends AbstractIterator {
    private static final int MAX_BATCH_ROWS = 1 << 20;
    private final StructType partition;
    private final InternalRow values;
    private final boolean batches;
    private final InternalRow row;
    private long left;

    ConstantRows(long rows, StructType partition, InternalRow values, boolean batches) {
      this.left = rows;
      this.partition = partition;
      this.values = values;
      this.batches = batches;
      this.row = batches ? null : UnsafeProjection.create(partition).apply(values);
    }

    public boolean hasNext() {
      return left > 0;
    }

    public Object next() {
      if (!batches) {
        left--;
        return row;
      }
      int rows = (int) Math.min(left, MAX_BATCH_ROWS);
      left -= rows;
      ColumnVector[] columns = new ColumnVector[partition.length()];
      for (int i = 0; i < columns.length; i++) {
        ConstantColumnVector column = new ConstantColumnVector(rows, partition.fields()[i].dataType());
        ColumnVectorUtils.populate(column, values, i);
        columns[i] = column;
      }
      return new ColumnarBatch(columns, rows);
    }
  }

  /** Batches in which the remaining rows are moved over the deleted ones. */
  static class LiveBatches extends LiveIterator {
    private final long[] words;
    private final int position;
    private final boolean isAdded;
    private ColumnarBatch source;
    private ColumnarBatch result;
    private int[] kept = new int[0];
    private long row;

    /** `position`: the column with each row's position in the file; -1 if the batches hold all rows from the first one on. */
    LiveBatches(scala.collection.Iterator reader, long[] words, int position, boolean isAdded) {
      super(reader);
      this.words = words;
      this.position = position;
      this.isAdded = isAdded;
    }

    Object withoutDeleted(Object read) {
      ColumnarBatch batch = (ColumnarBatch) read;
      if (batch != source) {
        source = batch;
        result = isAdded ? withoutPosition(batch) : batch;
      }
      int rows = moveLiveRows(batch);
      if (rows == 0) {
        return null;
      }
      result.setNumRows(rows);
      return result;
    }

    private ColumnarBatch withoutPosition(ColumnarBatch batch) {
      ColumnVector[] columns = new ColumnVector[batch.numCols() - 1];
      for (int i = 0; i < columns.length; i++) {
        columns[i] = batch.column(i < position ? i : i + 1);
      }
      return new ColumnarBatch(columns);
    }

    /** Moves the rows that are not deleted to the front and returns their number. */
    private int moveLiveRows(ColumnarBatch batch) {
      int rows = batch.numRows();
      if (rows == 0) {
        return 0;
      }
      ColumnVector positions = position < 0 ? null : batch.column(position);
      long start = positions == null ? row : positions.getLong(0);
      row = start + rows;
      // No row was skipped: test 64 rows at once.
      boolean dense = positions == null || positions.getLong(rows - 1) - start == rows - 1;
      int first = dense ? Bitmap.firstDeleted(words, start, rows) : Bitmap.firstDeleted(words, positions, rows);
      if (first == rows) {
        return rows;
      }
      if (kept.length < rows) {
        kept = new int[rows];
      }
      int count = dense ? Bitmap.liveRows(words, start, first, rows, kept) : Bitmap.liveRows(words, positions, first, rows, kept);
      if (count > 0) {
        for (int i = 0; i < result.numCols(); i++) {
          RowMover.move(result.column(i), kept, first, count);
        }
      }
      return count;
    }
  }

  /** Single rows; `projection` is null if they are returned unchanged. */
  static class LiveRows extends LiveIterator {
    private final long[] words;
    private final int position;
    private final UnsafeProjection projection;

    LiveRows(scala.collection.Iterator reader, long[] words, int position, UnsafeProjection projection) {
      super(reader);
      this.words = words;
      this.position = position;
      this.projection = projection;
    }

    Object withoutDeleted(Object read) {
      InternalRow row = (InternalRow) read;
      if (Bitmap.isDeleted(words, row.getLong(position))) {
        return null;
      }
      return projection == null ? row : projection.apply(row);
    }
  }

  /** The bitmap of a file. */
  static class Bitmap {
    /** Whether a row is deleted; after the last word no row is. */
    static boolean isDeleted(long[] words, long row) {
      int word = (int) (row >>> 6);
      return word < words.length && (words[word] >>> row & 1) != 0;
    }

    /** The first deleted row of a batch whose rows are consecutive in the file. */
    static int firstDeleted(long[] words, long start, int rows) {
      long end = start + rows;
      long row = start;
      while (row < end && row >>> 6 < words.length) {
        long word = words[(int) (row >>> 6)] >>> row;
        if (word != 0) {
          return (int) Math.min(rows, row + Long.numberOfTrailingZeros(word) - start);
        }
        row = (row | 63) + 1;
      }
      return rows;
    }

    /** Writes the rows of such a batch from `first` on that are not deleted to `kept`, from `first` on; returns the new count. */
    static int liveRows(long[] words, long start, int first, int rows, int[] kept) {
      int count = first;
      for (int i = first; i < rows; i++) {
        kept[count] = i;
        count += isDeleted(words, start + i) ? 0 : 1;
      }
      return count;
    }

    /** The same for any batch. */
    static int liveRows(long[] words, ColumnVector positions, int first, int rows, int[] kept) {
      int count = first;
      for (int i = first; i < rows; i++) {
        kept[count] = i;
        count += isDeleted(words, positions.getLong(i)) ? 0 : 1;
      }
      return count;
    }

    /** The first deleted row of any batch. */
    static int firstDeleted(long[] words, ColumnVector positions, int rows) {
      int i = 0;
      while (i < rows && !isDeleted(words, positions.getLong(i))) {
        i++;
      }
      return i;
    }
  }

  /** Moves rows within the column vectors of Spark's reader, which it resets for each batch. */
  static class RowMover {
    /** Whether `PhysicalKind` knows a type and its nested types. */
    static boolean isMovable(DataType type) {
      if (type instanceof StructType) {
        StructField[] fields = ((StructType) type).fields();
        for (int i = 0; i < fields.length; i++) {
          if (!isMovable(fields[i].dataType())) {
            return false;
          }
        }
        return true;
      }
      return PhysicalKind.of(type) >= 0;
    }

    /** Moves the value at `kept[i]` to `i`, for each `i` from `first` on. Values only move to the front, so none is lost. */
    static void move(ColumnVector vector, int[] kept, int first, int end) {
      if (!(vector instanceof WritableColumnVector) || ((WritableColumnVector) vector).isAllNull()) {
        return;
      }
      WritableColumnVector column = (WritableColumnVector) vector;
      if (column.hasNull()) {
        moveNulls(column, kept, first, end);
      }
      if (column.hasDictionary()) {
        moveInts(column.getDictionaryIds(), kept, first, end);
        return;
      }
      switch (PhysicalKind.of(column.dataType())) {
        case PhysicalKind.STRUCT:
          for (int i = 0; i < column.getNumChildren(); i++) {
            move(column.getChild(i), kept, first, end);
          }
          return;
        case PhysicalKind.BOOLEAN:
          for (int i = first; i < end; i++) {
            column.putBoolean(i, column.getBoolean(kept[i]));
          }
          return;
        case PhysicalKind.BYTE:
          for (int i = first; i < end; i++) {
            column.putByte(i, column.getByte(kept[i]));
          }
          return;
        case PhysicalKind.SHORT:
          for (int i = first; i < end; i++) {
            column.putShort(i, column.getShort(kept[i]));
          }
          return;
        case PhysicalKind.INT:
          moveInts(column, kept, first, end);
          return;
        case PhysicalKind.LONG:
          moveLongs(column, kept, first, end);
          return;
        case PhysicalKind.FLOAT:
          for (int i = first; i < end; i++) {
            column.putFloat(i, column.getFloat(kept[i]));
          }
          return;
        case PhysicalKind.DOUBLE:
          moveDoubles(column, kept, first, end);
          return;
        case PhysicalKind.BYTES:
        case PhysicalKind.ARRAY:
          moveArrays(column, kept, first, end);
          return;
        default:
          throw new IllegalStateException("deltafast cannot move values of type " + column.dataType());
      }
    }

    // Separate loops, which the JIT compiler optimizes well.

    private static void moveNulls(WritableColumnVector column, int[] kept, int first, int end) {
      for (int i = first; i < end; i++) {
        if (column.isNullAt(kept[i])) {
          column.putNull(i);
        } else {
          column.putNotNull(i);
        }
      }
    }

    private static void moveInts(WritableColumnVector column, int[] kept, int first, int end) {
      for (int i = first; i < end; i++) {
        column.putInt(i, column.getInt(kept[i]));
      }
    }

    private static void moveLongs(WritableColumnVector column, int[] kept, int first, int end) {
      for (int i = first; i < end; i++) {
        column.putLong(i, column.getLong(kept[i]));
      }
    }

    private static void moveDoubles(WritableColumnVector column, int[] kept, int first, int end) {
      for (int i = first; i < end; i++) {
        column.putDouble(i, column.getDouble(kept[i]));
      }
    }

    private static void moveArrays(WritableColumnVector column, int[] kept, int first, int end) {
      for (int i = first; i < end; i++) {
        column.putArray(i, column.getArrayOffset(kept[i]), column.getArrayLength(kept[i]));
      }
    }
  }
}

/** A function that an executor can only run if it has these classes. */
public class DeltafastProbe implements org.apache.spark.api.java.function.Function {
  public Object call(Object of) {
    return Boolean.valueOf(new DeltafastFormat("true", "", "").equals(of));
  }
}
