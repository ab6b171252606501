package deltafast;

import java.io.Closeable;
import java.io.IOException;
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
import org.apache.spark.sql.catalyst.types.PhysicalDataType$;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.vectorized.ColumnVectorUtils;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
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
 * The facts about a file come with it, from `DeltafastFileIndex`: `deltafast.deleted`, a broadcast of bitmaps (a bit for each
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
    return CollectionConverters.asScala((java.util.List) fields).toSeq();
  }

  /** Only if rows can be moved within the column vectors of all types. */
  public boolean supportBatch(SparkSession session, StructType schema) {
    return super.supportBatch(session, schema) && (!hasVectors || Moving.isMovable(schema));
  }

  public scala.Function1 buildReaderWithPartitionValues(SparkSession session, StructType data, StructType partition, StructType required,
      Seq filters, Map options, Configuration configuration) {
    checkCompleted(data, required);
    scala.Function1 plain = super.buildReaderWithPartitionValues(session, data, partition, required, filters, options,
        new Configuration(configuration));
    boolean batches = "true".equals(options.getOrElse(FileFormat$.MODULE$.OPTION_RETURNING_BATCH(), new No()));
    boolean nothing = required.length() == 0 && filters.isEmpty();
    if (!hasVectors) {
      return nothing ? new Reader(plain, null, 0, required, partition, batches, true, true) : plain;
    }
    // Spark's readers provide the row's position in the file, also if they skip row groups and pages; but they box it.
    int place = required.getFieldIndex(ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME()).isEmpty() ? required.length() : -1;
    StructType wider = place < 0 ? required : required.add(ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME(), DataTypes.LongType);
    scala.Function1 placed = super.buildReaderWithPartitionValues(session, data, partition, wider, filters, options,
        new Configuration(configuration));
    return new Reader(plain, placed, wider.fieldIndex(ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME()), required, partition, batches,
        nothing, filters.isEmpty());
  }

  /** Rejects row ids and commit versions that no rule completes: they would silently be null. */
  private void checkCompleted(StructType data, StructType required) {
    String[] columns = new String[] {ids, versions};
    for (int i = 0; i < columns.length; i++) {
      boolean isAsked = !required.getFieldIndex(columns[i]).isEmpty() && data.getFieldIndex(columns[i]).isEmpty();
      if (isAsked && !isCompleted) {
        throw new IllegalStateException("this session cannot return row_id and row_commit_version of _metadata yet: read any table that "
            + "tracks rows with deltafast in it first");
      }
    }
  }

  /** The default of an option. */
  static class No extends scala.runtime.AbstractFunction0 {
    public Object apply() {
      return "false";
    }
  }

  /** Reads a file. */
  static class Reader extends AbstractFunction1 implements Serializable {
    private final scala.Function1 plain;
    private final scala.Function1 placed;
    private final int place;
    private final StructType required;
    private final StructType partition;
    private final boolean batches;
    private final boolean nothing;
    private final boolean all;

    /**
     * `plain` reads the columns `required`; `placed` (null without deletion vectors) also reads, at `place`, each row's position
     * in its file, as an additional last column if it is not among the required ones. `nothing`: only the number of rows is
     * needed. `all`: no filter makes the readers skip rows.
     */
    Reader(scala.Function1 plain, scala.Function1 placed, int place, StructType required, StructType partition, boolean batches,
        boolean nothing, boolean all) {
      this.plain = plain;
      this.placed = placed;
      this.place = place;
      this.required = required;
      this.partition = partition;
      this.batches = batches;
      this.nothing = nothing;
      this.all = all;
    }

    public Object apply(Object of) {
      PartitionedFile file = (PartitionedFile) of;
      Map known = file.otherConstantMetadataColumnValues();
      if (nothing && known.contains("deltafast.rows")) {
        // A file that is read in splits is counted with its first one.
        return new Repeated(file.start() == 0 ? ((Long) known.apply("deltafast.rows")).longValue() : 0, partition, file.partitionValues(),
            batches);
      }
      if (!known.contains("deltafast.deleted")) {
        return plain.apply(file);
      }
      long[][] vectors = (long[][]) ((Broadcast) known.apply("deltafast.deleted")).value();
      long[] words = vectors[((Integer) known.apply("deltafast.number")).intValue()];
      if (batches && all && file.start() == 0) {
        // The rows from the first one on, even if the end of the file belongs to other splits.
        return new Batches((scala.collection.Iterator) plain.apply(file), words, -1, false);
      }
      scala.collection.Iterator rows = (scala.collection.Iterator) placed.apply(file);
      boolean isAdded = place == required.length();
      return batches ? (Object) new Batches(rows, words, place, isAdded) : new Rows(rows, words, place, isAdded ? projection() : null);
    }

    /** Removes the column with the row's position. */
    private UnsafeProjection projection() {
      ArrayList columns = new ArrayList();
      for (int i = 0; i < required.length(); i++) {
        columns.add(new BoundReference(i, required.fields()[i].dataType(), true));
      }
      for (int i = 0; i < partition.length(); i++) {
        columns.add(new BoundReference(place + 1 + i, partition.fields()[i].dataType(), true));
      }
      return UnsafeProjection.create(CollectionConverters.asScala(columns).toSeq());
    }
  }

  /** Rows of a reader that is closed at the end. */
  abstract static class Closing extends AbstractIterator implements Closeable {
    protected final scala.collection.Iterator of;

    Closing(scala.collection.Iterator of) {
      this.of = of;
    }

    public void close() throws IOException {
      if (of instanceof Closeable) {
        ((Closeable) of).close();
      }
    }
  }

  /** The number of rows of a file, with its constants as their values. */
  static class Repeated extends AbstractIterator {
    private static final int MOST = 1 << 20;
    private final StructType partition;
    private final InternalRow values;
    private final boolean batches;
    private final InternalRow row;
    private long left;

    Repeated(long rows, StructType partition, InternalRow values, boolean batches) {
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
      int rows = (int) Math.min(left, MOST);
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
  static class Batches extends Closing {
    private final long[] words;
    private final int place;
    private final boolean isAdded;
    private ColumnarBatch from;
    private ColumnarBatch to;
    private int[] kept = new int[0];
    private ColumnarBatch next;
    private long row;

    /** `place`: the column with each row's position in the file; -1 if the batches hold all rows from the first one on. */
    Batches(scala.collection.Iterator of, long[] words, int place, boolean isAdded) {
      super(of);
      this.words = words;
      this.place = place;
      this.isAdded = isAdded;
    }

    public boolean hasNext() {
      while (next == null && of.hasNext()) {
        ColumnarBatch batch = (ColumnarBatch) of.next();
        if (batch != from) {
          from = batch;
          to = isAdded ? without(batch) : batch;
        }
        int rows = kept(batch);
        if (rows > 0) {
          to.setNumRows(rows);
          next = to;
        }
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

    private ColumnarBatch without(ColumnarBatch batch) {
      ColumnVector[] columns = new ColumnVector[batch.numCols() - 1];
      for (int i = 0; i < columns.length; i++) {
        columns[i] = batch.column(i < place ? i : i + 1);
      }
      return new ColumnarBatch(columns);
    }

    /** Moves the rows that are not deleted to the front and returns their number. */
    private int kept(ColumnarBatch batch) {
      int rows = batch.numRows();
      if (rows == 0) {
        return 0;
      }
      ColumnVector places = place < 0 ? null : batch.column(place);
      long start = places == null ? row : places.getLong(0);
      row = start + rows;
      // No row was skipped: test 64 rows at once.
      boolean dense = places == null || places.getLong(rows - 1) - start == rows - 1;
      int first = dense ? Bitmap.first(words, start, rows) : Bitmap.first(words, places, rows);
      if (first == rows) {
        return rows;
      }
      if (kept.length < rows) {
        kept = new int[rows];
      }
      int count = dense ? Bitmap.kept(words, start, first, rows, kept) : Bitmap.kept(words, places, first, rows, kept);
      if (count > 0) {
        for (int i = 0; i < to.numCols(); i++) {
          Moving.move(to.column(i), kept, first, count);
        }
      }
      return count;
    }
  }

  /** Single rows; `projection` is null if they are returned unchanged. */
  static class Rows extends Closing {
    private final long[] words;
    private final int place;
    private final UnsafeProjection projection;
    private InternalRow next;

    Rows(scala.collection.Iterator of, long[] words, int place, UnsafeProjection projection) {
      super(of);
      this.words = words;
      this.place = place;
      this.projection = projection;
    }

    public boolean hasNext() {
      while (next == null && of.hasNext()) {
        InternalRow row = (InternalRow) of.next();
        if (!Bitmap.isDeleted(words, row.getLong(place))) {
          next = projection == null ? row : projection.apply(row);
        }
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

  /** The bitmap of a file. */
  static class Bitmap {
    /** Whether a row is deleted; after the last word no row is. */
    static boolean isDeleted(long[] words, long row) {
      int word = (int) (row >>> 6);
      return word < words.length && (words[word] >>> row & 1) != 0;
    }

    /** The first deleted row of a batch whose rows are consecutive in the file. */
    static int first(long[] words, long start, int rows) {
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
    static int kept(long[] words, long start, int first, int rows, int[] kept) {
      int count = first;
      for (int i = first; i < rows; i++) {
        kept[count] = i;
        count += isDeleted(words, start + i) ? 0 : 1;
      }
      return count;
    }

    /** The same for any batch. */
    static int kept(long[] words, ColumnVector places, int first, int rows, int[] kept) {
      int count = first;
      for (int i = first; i < rows; i++) {
        kept[count] = i;
        count += isDeleted(words, places.getLong(i)) ? 0 : 1;
      }
      return count;
    }

    /** The first deleted row of any batch. */
    static int first(long[] words, ColumnVector places, int rows) {
      int i = 0;
      while (i < rows && !isDeleted(words, places.getLong(i))) {
        i++;
      }
      return i;
    }
  }

  /** Moves rows within the column vectors of Spark's reader, which it resets for each batch. */
  static class Moving {
    private static final int STRUCT = 0;
    private static final int BOOLEAN = 1;
    private static final int BYTE = 2;
    private static final int SHORT = 3;
    private static final int INT = 4;
    private static final int LONG = 5;
    private static final int FLOAT = 6;
    private static final int DOUBLE = 7;
    private static final int ARRAY = 8;

    /** How a vector stores values of a type; -1 if that is unknown. */
    static int kind(DataType type) {
      if (type instanceof DecimalType) {
        return DecimalType.is32BitDecimalType(type) ? INT : DecimalType.is64BitDecimalType(type) ? LONG : ARRAY;
      }
      String name = PhysicalDataType$.MODULE$.apply(type).getClass().getSimpleName();
      return name.startsWith("PhysicalStruct") || name.startsWith("PhysicalVariant") || name.startsWith("PhysicalCalendarInterval") ? STRUCT
          : name.startsWith("PhysicalBoolean") ? BOOLEAN
          : name.startsWith("PhysicalByte") ? BYTE
          : name.startsWith("PhysicalShort") ? SHORT
          : name.startsWith("PhysicalInteger") ? INT
          : name.startsWith("PhysicalLong") ? LONG
          : name.startsWith("PhysicalFloat") ? FLOAT
          : name.startsWith("PhysicalDouble") ? DOUBLE
          : name.startsWith("PhysicalString") || name.startsWith("PhysicalBinary") || name.startsWith("PhysicalArray")
              || name.startsWith("PhysicalMap") ? ARRAY : -1;
    }

    /** Whether `kind` supports a type and its nested types. */
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
      return kind(type) >= 0;
    }

    /** Moves the value at `kept[i]` to `i`, for each `i` from `first` on. Values only move to the front, so none is lost. */
    static void move(ColumnVector of, int[] kept, int first, int end) {
      if (!(of instanceof WritableColumnVector) || ((WritableColumnVector) of).isAllNull()) {
        return;
      }
      WritableColumnVector column = (WritableColumnVector) of;
      if (column.hasNull()) {
        nulls(column, kept, first, end);
      }
      if (column.hasDictionary()) {
        ints(column.getDictionaryIds(), kept, first, end);
        return;
      }
      switch (kind(column.dataType())) {
        case STRUCT:
          for (int i = 0; i < column.getNumChildren(); i++) {
            move(column.getChild(i), kept, first, end);
          }
          return;
        case BOOLEAN:
          for (int i = first; i < end; i++) {
            column.putBoolean(i, column.getBoolean(kept[i]));
          }
          return;
        case BYTE:
          for (int i = first; i < end; i++) {
            column.putByte(i, column.getByte(kept[i]));
          }
          return;
        case SHORT:
          for (int i = first; i < end; i++) {
            column.putShort(i, column.getShort(kept[i]));
          }
          return;
        case INT:
          ints(column, kept, first, end);
          return;
        case LONG:
          longs(column, kept, first, end);
          return;
        case FLOAT:
          for (int i = first; i < end; i++) {
            column.putFloat(i, column.getFloat(kept[i]));
          }
          return;
        case DOUBLE:
          doubles(column, kept, first, end);
          return;
        case ARRAY:
          arrays(column, kept, first, end);
          return;
        default:
          throw new IllegalStateException("deltafast cannot move values of type " + column.dataType());
      }
    }

    // Separate loops, which the JIT compiler optimizes well.

    private static void nulls(WritableColumnVector column, int[] kept, int first, int end) {
      for (int i = first; i < end; i++) {
        if (column.isNullAt(kept[i])) {
          column.putNull(i);
        } else {
          column.putNotNull(i);
        }
      }
    }

    private static void ints(WritableColumnVector column, int[] kept, int first, int end) {
      for (int i = first; i < end; i++) {
        column.putInt(i, column.getInt(kept[i]));
      }
    }

    private static void longs(WritableColumnVector column, int[] kept, int first, int end) {
      for (int i = first; i < end; i++) {
        column.putLong(i, column.getLong(kept[i]));
      }
    }

    private static void doubles(WritableColumnVector column, int[] kept, int first, int end) {
      for (int i = first; i < end; i++) {
        column.putDouble(i, column.getDouble(kept[i]));
      }
    }

    private static void arrays(WritableColumnVector column, int[] kept, int first, int end) {
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
