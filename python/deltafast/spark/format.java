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
 * Spark's Parquet reader, which leaves out the rows that a file's deletion vector deletes. It runs on the executors.
 *
 * What is known of a file comes with it, from `DeltafastFileIndex`: `deltafast.deleted`, a broadcast of bitmaps (a bit for each
 * deleted row, by its place in the file), `deltafast.number`, which of them is the file's, and `deltafast.rows`, how many rows it
 * has without them; of tables that track rows `base_row_id` and `default_row_commit_version`. Where no column is wanted a file is
 * not opened at all.
 */
public class DeltafastFormat extends ParquetFileFormat implements java.util.function.Supplier {
  private final boolean hasVectors;
  private final String ids;
  private final String versions;
  private final boolean isCompleted;

  /** `ids` and `versions`: the columns that hold the ids and commit versions of rows that moved; empty where rows are not tracked. */
  public DeltafastFormat(String hasVectors, String ids, String versions) {
    this(hasVectors.equals("true"), ids, versions, false);
  }

  private DeltafastFormat(boolean hasVectors, String ids, String versions, boolean isCompleted) {
    this.hasVectors = hasVectors;
    this.ids = ids;
    this.versions = versions;
    this.isCompleted = isCompleted;
  }

  /** The same, for a plan that completes ids and commit versions of rows; null where it is that. */
  public Object get() {
    return isCompleted ? null : new DeltafastFormat(hasVectors, ids, versions, true);
  }

  /** Of tables that track rows also what is known of these, as delta-spark has it; `DeltafastTracking` completes it. */
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

  /** Only where rows can be moved within the vectors of every type. */
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
    // Which row of the file a row is: Spark's readers know it, also where they skip row groups and pages; but they box each number.
    int place = required.getFieldIndex(ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME()).isEmpty() ? required.length() : -1;
    StructType wider = place < 0 ? required : required.add(ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME(), DataTypes.LongType);
    scala.Function1 placed = super.buildReaderWithPartitionValues(session, data, partition, wider, filters, options,
        new Configuration(configuration));
    return new Reader(plain, placed, wider.fieldIndex(ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME()), required, partition, batches,
        nothing, filters.isEmpty());
  }

  /** Ids and commit versions that nobody completes are null, which would be no error. */
  private void checkCompleted(StructType data, StructType required) {
    String[] columns = new String[] {ids, versions};
    for (int i = 0; i < columns.length; i++) {
      boolean isAsked = !required.getFieldIndex(columns[i]).isEmpty() && data.getFieldIndex(columns[i]).isEmpty();
      if (isAsked && !isCompleted) {
        throw new IllegalStateException("this session cannot tell row_id and row_commit_version of _metadata yet: read any table that "
            + "tracks rows with deltafast in it first");
      }
    }
  }

  /** What an option is that is not given. */
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
     * `plain` reads the columns `required`, `placed` (null: there are no vectors) these and, at `place`, each row's place in its
     * file, which is one too many where it comes after the others. `nothing`: only the number of rows matters. `all`: no filter
     * makes the readers skip rows.
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
        // A file that is read in parts is counted with its first.
        return new Repeated(file.start() == 0 ? ((Long) known.apply("deltafast.rows")).longValue() : 0, partition, file.partitionValues(),
            batches);
      }
      if (!known.contains("deltafast.deleted")) {
        return plain.apply(file);
      }
      long[][] vectors = (long[][]) ((Broadcast) known.apply("deltafast.deleted")).value();
      long[] words = vectors[((Integer) known.apply("deltafast.number")).intValue()];
      if (batches && all && file.start() == 0) {
        // The rows from the first one on, whatever is left to others at the end.
        return new Batches((scala.collection.Iterator) plain.apply(file), words, -1, false);
      }
      scala.collection.Iterator rows = (scala.collection.Iterator) placed.apply(file);
      boolean isAdded = place == required.length();
      return batches ? (Object) new Batches(rows, words, place, isAdded) : new Rows(rows, words, place, isAdded ? projection() : null);
    }

    /** Leaves out the place of a row. */
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

  /** Rows of a reader, and its end. */
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

  /** As many rows as a file has, with the values that they have in common. */
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

  /** Batches whose deleted rows are overwritten by those that follow. */
  static class Batches extends Closing {
    private final long[] words;
    private final int place;
    private final boolean isAdded;
    private ColumnarBatch from;
    private ColumnarBatch to;
    private int[] kept = new int[0];
    private ColumnarBatch next;
    private long row;

    /** `place`: which column says each row's place in the file; -1 where the rows are all there are, from the first one on. */
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

    /** Moves the rows that are not deleted to the front: how many they are. */
    private int kept(ColumnarBatch batch) {
      int rows = batch.numRows();
      if (rows == 0) {
        return 0;
      }
      ColumnVector places = place < 0 ? null : batch.column(place);
      long start = places == null ? row : places.getLong(0);
      row = start + rows;
      // Nothing was skipped: look at 64 rows at once.
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

  /** Rows one by one; `projection` is null where they are to stay as they are. */
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
    /** Whether a row is deleted; beyond the last word none is. */
    static boolean isDeleted(long[] words, long row) {
      int word = (int) (row >>> 6);
      return word < words.length && (words[word] >>> row & 1) != 0;
    }

    /** The first deleted row of a batch whose rows follow each other in the file. */
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

    /** The rows of such a batch that are not deleted, from `first` on, behind as many: how many there are. */
    static int kept(long[] words, long start, int first, int rows, int[] kept) {
      int count = first;
      for (int i = first; i < rows; i++) {
        kept[count] = i;
        count += isDeleted(words, start + i) ? 0 : 1;
      }
      return count;
    }

    /** The same of any batch. */
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

  /** Moves rows within the vectors that Spark's reader fills, which begin anew with each batch. */
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

    /** How a vector holds values of a type; -1 where that is not known. */
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

    /** Whether `kind` knows a type and what is within it. */
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

    /** Moves values to `first` and on: the one at `kept[i]` to `i`. They only go to the front, so none is lost. */
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

    // A loop of its own each, which Java compiles well.

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

/** What an executor can run that has these classes. */
public class DeltafastProbe implements org.apache.spark.api.java.function.Function {
  public Object call(Object of) {
    return Boolean.valueOf(new DeltafastFormat("true", "", "").equals(of));
  }
}
