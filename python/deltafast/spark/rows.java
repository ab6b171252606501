package deltafast;
// include shared.java

import java.io.Serializable;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.function.Supplier;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionOperation;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.WriteFiles;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * A reader of batches that converts them to rows. Spark would build each row value by value; here a column's values are written
 * to many rows at once. The rows are identical to the byte. It runs on the executors.
 *
 * Its type is not that of a Parquet reader, since Spark would copy all rows of such a reader again.
 */
public class DeltafastRows implements FileFormat, DataSourceRegister, Supplier, Serializable {
  private final FileFormat format;

  public DeltafastRows(FileFormat format) {
    this.format = format;
  }

  /** Adds the rule that uses it to a session, if it is not there yet. */
  public static void addRule(Object session) {
    SparkInternals.addRule(session, new DeltafastRowsRule());
  }

  public Option inferSchema(SparkSession session, Map options, Seq files) {
    return format.inferSchema(session, options, files);
  }

  public OutputWriterFactory prepareWrite(SparkSession session, Job job, Map options, StructType schema) {
    return format.prepareWrite(session, job, options, schema);
  }

  public boolean supportBatch(SparkSession session, StructType schema) {
    return false;
  }

  public boolean isSplitable(SparkSession session, Map options, Path path) {
    return format.isSplitable(session, options, path);
  }

  public Seq metadataSchemaFields() {
    return format.metadataSchemaFields();
  }

  public Map fileConstantMetadataExtractors() {
    return format.fileConstantMetadataExtractors();
  }

  public Function1 buildReaderWithPartitionValues(SparkSession session, StructType data, StructType partition, StructType required,
      Seq filters, Map options, Configuration configuration) {
    StructType schema = required;
    for (int i = 0; i < partition.length(); i++) {
      schema = schema.add(partition.fields()[i]);
    }
    // Settings may have changed since the query was planned.
    boolean batches = format.supportBatch(session, schema);
    Map readerOptions = (Map) options.updated(FileFormat$.MODULE$.OPTION_RETURNING_BATCH(), String.valueOf(batches));
    Function1 reader = format.buildReaderWithPartitionValues(session, data, partition, required, filters, readerOptions, configuration);
    return new Reader(reader, batches ? null : schema);
  }

  /** The reader of batches. */
  public Object get() {
    return format;
  }

  public String shortName() {
    return ((DataSourceRegister) format).shortName();
  }

  public String toString() {
    return format.toString();
  }

  public boolean equals(Object other) {
    return other instanceof DeltafastRows && format.equals(((DeltafastRows) other).format);
  }

  public int hashCode() {
    return format.hashCode();
  }

  /** Reads a file. */
  static class Reader extends AbstractFunction1 implements Serializable {
    private final Function1 reader;
    private final StructType schema;

    /** `schema` of the rows that `reader` returns; null if it returns batches. */
    Reader(Function1 reader, StructType schema) {
      this.reader = reader;
      this.schema = schema;
    }

    public Object apply(Object file) {
      scala.collection.Iterator read = (scala.collection.Iterator) reader.apply(file);
      return schema == null ? (Object) new BatchRows(read) : new ProjectedRows(read, UnsafeProjection.create(schema));
    }
  }

  /** Rows that are built one by one. */
  static class ProjectedRows extends ReaderIterator {
    private final UnsafeProjection projection;

    ProjectedRows(scala.collection.Iterator reader, UnsafeProjection projection) {
      super(reader);
      this.projection = projection;
    }

    public boolean hasNext() {
      return reader.hasNext();
    }

    public Object next() {
      return projection.apply((InternalRow) reader.next());
    }
  }

  /** The rows of batches; each is overwritten by later ones, as Spark's are. */
  static class BatchRows extends ReaderIterator {
    /** Bytes of rows that are built together: they fit into the cache of a CPU core. */
    private static final int CHUNK_BYTES = 1 << 18;
    private Column[] columns = new Column[0];
    private UnsafeRow row = new UnsafeRow(0);
    private int fixed;
    /** Number of rows of the batch, their sizes in bytes, and the rows that are built: from `begin` to `end`, next `next`. */
    private int rows;
    private int[] sizes = new int[0];
    private int begin;
    private int end;
    private int next;
    private byte[] bytes = new byte[0];
    /** The offset of each row in `bytes`, and of its next value of variable size. */
    private int[] starts = new int[0];
    private int[] ends = new int[0];

    BatchRows(scala.collection.Iterator reader) {
      super(reader);
    }

    public boolean hasNext() {
      while (next == end) {
        if (end == rows) {
          if (!reader.hasNext()) {
            return false;
          }
          setBatch((ColumnarBatch) reader.next());
        }
        buildRows();
      }
      return true;
    }

    public Object next() {
      if (!hasNext()) {
        throw new java.util.NoSuchElementException();
      }
      row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + starts[next - begin], sizes[next]);
      next++;
      return row;
    }

    private void setBatch(ColumnarBatch batch) {
      if (columns.length != batch.numCols()) {
        columns = new Column[batch.numCols()];
        for (int i = 0; i < columns.length; i++) {
          columns[i] = new Column(i, columns.length, batch.column(i).dataType());
        }
        row = new UnsafeRow(columns.length);
        fixed = UnsafeRow.calculateBitSetWidthInBytes(columns.length) + 8 * columns.length;
      }
      rows = batch.numRows();
      begin = 0;
      end = 0;
      next = 0;
      if (sizes.length < rows) {
        sizes = new int[rows];
      }
      Arrays.fill(sizes, 0, rows, fixed);
      for (int i = 0; i < columns.length; i++) {
        columns[i].setVector(batch.column(i), rows, sizes);
      }
    }

    /** Builds the next rows of the batch. */
    private void buildRows() {
      begin = end;
      long size = 0;
      while (end < rows && (end == begin || size + sizes[end] <= CHUNK_BYTES)) {
        if (sizes[end] < 0) {
          throw new UnsupportedOperationException("a row of more than 2 GiB");
        }
        size += sizes[end];
        end++;
      }
      int count = end - begin;
      if (starts.length < count) {
        starts = new int[count];
        ends = new int[count];
      }
      int at = 0;
      for (int i = 0; i < count; i++) {
        starts[i] = at;
        ends[i] = at + fixed;
        at += sizes[begin + i];
      }
      if (bytes.length < at) {
        bytes = new byte[at];
      } else {
        Arrays.fill(bytes, 0, at, (byte) 0);
      }
      for (int i = 0; i < columns.length; i++) {
        columns[i].put(begin, count, bytes, starts, ends);
      }
    }
  }

  /** Writes a column's values to rows, which are zero before. */
  static class Column {
    /** Kinds in addition to `PhysicalKind`: decimals of up to 9 digits, integers in a vector and longs in a row, and of more than 18. */
    private static final int SMALL_DECIMAL = 10;
    private static final int LARGE_DECIMAL = 11;
    /** Bytes that are reserved for a large decimal. */
    private static final int LARGE_DECIMAL_BYTES = 16;

    private final int kind;
    private final boolean isString;
    /** Offsets and masks in a row: the word with this column's null bit, the bit, the column's own word. */
    private final long word;
    private final long bit;
    private final long field;
    private ColumnVector vector;
    private boolean hasNull;
    private boolean isNull;
    /** The value of a constant column. */
    private byte[] constant;
    /** Values of the batch's dictionary by number; those of an earlier batch have a smaller batch number. */
    private byte[][] dictionary = new byte[0][];
    private int[] batchNumbers = new int[0];
    private int batchNumber;

    Column(int ordinal, int columns, DataType type) {
      kind = rowKind(type);
      isString = !(type instanceof BinaryType);
      word = Platform.BYTE_ARRAY_OFFSET + (ordinal >> 6 << 3);
      bit = 1L << ordinal;
      field = Platform.BYTE_ARRAY_OFFSET + UnsafeRow.calculateBitSetWidthInBytes(columns) + 8 * ordinal;
    }

    /** How a row stores values of a type; -1 for nested types. */
    static int rowKind(DataType type) {
      int kind = PhysicalKind.of(type);
      if (type instanceof DecimalType) {
        return kind == PhysicalKind.INT ? SMALL_DECIMAL : kind == PhysicalKind.BYTES ? LARGE_DECIMAL : kind;
      }
      return kind == PhysicalKind.STRUCT || kind == PhysicalKind.ARRAY ? -1 : kind;
    }

    /** Starts another batch, and adds to the rows' sizes. */
    void setVector(ColumnVector column, int rows, int[] sizes) {
      vector = column;
      hasNull = column.hasNull();
      boolean isConstant = column instanceof ConstantColumnVector;
      isNull = hasNull && (isConstant || ((WritableColumnVector) column).isAllNull());
      constant = null;
      if (kind == LARGE_DECIMAL) {
        for (int i = 0; i < rows; i++) {
          sizes[i] += LARGE_DECIMAL_BYTES;
        }
      } else if (kind == PhysicalKind.BYTES && !isNull) {
        if (isConstant) {
          constant = isString ? column.getUTF8String(0).getBytes() : column.getBinary(0);
          for (int i = 0; i < rows; i++) {
            sizes[i] += padded(constant.length);
          }
        } else if (((WritableColumnVector) column).hasDictionary()) {
          batchNumber++;
          addDictionarySizes((WritableColumnVector) column, rows, sizes);
        } else {
          addSizes((WritableColumnVector) column, hasNull, rows, sizes);
        }
      }
    }

    private static int padded(int length) {
      return (length + 7) & ~7;
    }

    private static void addSizes(WritableColumnVector column, boolean hasNull, int rows, int[] sizes) {
      for (int i = 0; i < rows; i++) {
        if (!hasNull || !column.isNullAt(i)) {
          sizes[i] += padded(column.getArrayLength(i));
        }
      }
    }

    private void addDictionarySizes(WritableColumnVector column, int rows, int[] sizes) {
      WritableColumnVector ids = column.getDictionaryIds();
      for (int i = 0; i < rows; i++) {
        if (!hasNull || !column.isNullAt(i)) {
          int id = ids.getDictId(i);
          if (id >= batchNumbers.length) {
            int most = Math.max(2 * batchNumbers.length, id + 64);
            dictionary = (byte[][]) Arrays.copyOf(dictionary, most);
            batchNumbers = Arrays.copyOf(batchNumbers, most);
          }
          if (batchNumbers[id] != batchNumber) {
            batchNumbers[id] = batchNumber;
            dictionary[id] = column.getBinary(i);
          }
          sizes[i] += padded(dictionary[id].length);
        }
      }
    }

    /** Writes the values of `count` rows of the batch to rows that begin at `starts`, and advances `ends` by their sizes. */
    void put(int begin, int count, byte[] bytes, int[] starts, int[] ends) {
      if (hasNull) {
        putNulls(begin, count, bytes, starts);
      }
      if (kind == LARGE_DECIMAL) {
        putDecimals(begin, count, bytes, starts, ends);
        return;
      }
      if (isNull) {
        return;
      }
      if (constant != null) {
        for (int i = 0; i < count; i++) {
          put(constant, Platform.BYTE_ARRAY_OFFSET, constant.length, bytes, starts[i], ends, i);
        }
        return;
      }
      if (vector instanceof ConstantColumnVector) {
        putConstants(fixedWord(0), count, bytes, starts, field);
        return;
      }
      WritableColumnVector column = (WritableColumnVector) vector;
      switch (kind) {
        case PhysicalKind.INT:
          putInts(column, hasNull, begin, count, bytes, starts, field);
          return;
        case PhysicalKind.LONG:
          putLongs(column, hasNull, begin, count, bytes, starts, field);
          return;
        case PhysicalKind.DOUBLE:
          putDoubles(column, hasNull, begin, count, bytes, starts, field);
          return;
        case PhysicalKind.BYTES:
          if (column.hasDictionary()) {
            putDictionaryValues(column, begin, count, bytes, starts, ends);
          } else {
            putStrings(column, begin, count, bytes, starts, ends);
          }
          return;
        default:
          for (int i = 0; i < count; i++) {
            if (!hasNull || !column.isNullAt(begin + i)) {
              Platform.putLong(bytes, starts[i] + field, fixedWord(begin + i));
            }
          }
      }
    }

    /** A value of a fixed size as a word of a row. */
    private long fixedWord(int row) {
      switch (kind) {
        case PhysicalKind.BOOLEAN:
          return vector.getBoolean(row) ? 1 : 0;
        case PhysicalKind.BYTE:
          return vector.getByte(row) & 0xffL;
        case PhysicalKind.SHORT:
          return vector.getShort(row) & 0xffffL;
        case PhysicalKind.INT:
          return vector.getInt(row) & 0xffffffffL;
        case SMALL_DECIMAL:
          return vector.getInt(row);
        case PhysicalKind.LONG:
          return vector.getLong(row);
        case PhysicalKind.FLOAT:
          return Float.floatToRawIntBits(vector.getFloat(row)) & 0xffffffffL;
        case PhysicalKind.DOUBLE:
          return Double.doubleToRawLongBits(vector.getDouble(row));
        default:
          throw new IllegalStateException("deltafast cannot make rows of type " + vector.dataType());
      }
    }

    private void putNulls(int begin, int count, byte[] bytes, int[] starts) {
      for (int i = 0; i < count; i++) {
        if (isNull || vector.isNullAt(begin + i)) {
          Platform.putLong(bytes, starts[i] + word, Platform.getLong(bytes, starts[i] + word) | bit);
        }
      }
    }

    // Separate loops, which the JIT compiler optimizes well.

    private static void putConstants(long value, int count, byte[] bytes, int[] starts, long field) {
      for (int i = 0; i < count; i++) {
        Platform.putLong(bytes, starts[i] + field, value);
      }
    }

    private static void putInts(WritableColumnVector column, boolean hasNull, int begin, int count, byte[] bytes, int[] starts, long field) {
      for (int i = 0; i < count; i++) {
        if (!hasNull || !column.isNullAt(begin + i)) {
          Platform.putInt(bytes, starts[i] + field, column.getInt(begin + i));
        }
      }
    }

    private static void putLongs(WritableColumnVector column, boolean hasNull, int begin, int count, byte[] bytes, int[] starts, long field) {
      for (int i = 0; i < count; i++) {
        if (!hasNull || !column.isNullAt(begin + i)) {
          Platform.putLong(bytes, starts[i] + field, column.getLong(begin + i));
        }
      }
    }

    private static void putDoubles(WritableColumnVector column, boolean hasNull, int begin, int count, byte[] bytes, int[] starts,
        long field) {
      for (int i = 0; i < count; i++) {
        if (!hasNull || !column.isNullAt(begin + i)) {
          Platform.putDouble(bytes, starts[i] + field, column.getDouble(begin + i));
        }
      }
    }

    /** Values of a dictionary. */
    private void putDictionaryValues(WritableColumnVector column, int begin, int count, byte[] bytes, int[] starts, int[] ends) {
      WritableColumnVector ids = column.getDictionaryIds();
      for (int i = 0; i < count; i++) {
        if (!hasNull || !column.isNullAt(begin + i)) {
          byte[] value = dictionary[ids.getDictId(begin + i)];
          put(value, Platform.BYTE_ARRAY_OFFSET, value.length, bytes, starts[i], ends, i);
        }
      }
    }

    private void putStrings(WritableColumnVector column, int begin, int count, byte[] bytes, int[] starts, int[] ends) {
      int first = 0;
      while (first < count && hasNull && column.isNullAt(begin + first)) {
        first++;
      }
      if (first == count) {
        return;
      }
      // All values are located in one buffer.
      UTF8String firstValue = column.getUTF8String(begin + first);
      Object from = firstValue.getBaseObject();
      long offset = firstValue.getBaseOffset() - column.getArrayOffset(begin + first);
      for (int i = first; i < count; i++) {
        if (!hasNull || !column.isNullAt(begin + i)) {
          put(from, offset + column.getArrayOffset(begin + i), column.getArrayLength(begin + i), bytes, starts[i], ends, i);
        }
      }
    }

    /** Writes a value of variable size to row `i`. */
    private void put(Object from, long offset, int length, byte[] bytes, int start, int[] ends, int i) {
      int at = ends[i];
      Platform.putLong(bytes, start + field, (long) (at - start) << 32 | length);
      copy(from, offset, length, bytes, Platform.BYTE_ARRAY_OFFSET + at);
      ends[i] = at + padded(length);
    }

    /** Large decimals, with the minimal number of bytes that Java's BigInteger has. */
    private void putDecimals(int begin, int count, byte[] bytes, int[] starts, int[] ends) {
      DecimalType type = (DecimalType) vector.dataType();
      for (int i = 0; i < count; i++) {
        int at = ends[i];
        byte[] value = null;
        if (!isNull && !vector.isNullAt(begin + i)) {
          value = vector.getDecimal(begin + i, type.precision(), type.scale()).toJavaBigDecimal().unscaledValue().toByteArray();
          copy(value, Platform.BYTE_ARRAY_OFFSET, value.length, bytes, Platform.BYTE_ARRAY_OFFSET + at);
        }
        Platform.putLong(bytes, starts[i] + field, (long) (at - starts[i]) << 32 | (value == null ? 0 : value.length));
        ends[i] = at + LARGE_DECIMAL_BYTES;
      }
    }

    /** Copies bytes: for short values a call of copyMemory is slower than a loop. */
    private static void copy(Object from, long offset, int length, byte[] bytes, long to) {
      if (length > 64) {
        Platform.copyMemory(from, offset, bytes, to, length);
      } else if (length >= 8) {
        int last = length - 8;
        for (int i = 0; i < last; i += 8) {
          Platform.putLong(bytes, to + i, Platform.getLong(from, offset + i));
        }
        Platform.putLong(bytes, to + last, Platform.getLong(from, offset + last));
      } else {
        for (int i = 0; i < length; i++) {
          Platform.putByte(bytes, to + i, Platform.getByte(from, offset + i));
        }
      }
    }
  }
}

/** Optimizer rule: reads a table with `DeltafastRows` where only its rows are needed. */
public class DeltafastRowsRule extends Rule {
  public TreeNode apply(TreeNode plan) {
    // A row's words are written in the byte order of this machine.
    return ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN ? new PlanVisitor(true).replaceScans((LogicalPlan) plan) : plan;
  }

  /** Traverses a plan, with whether rows of it are needed. */
  static class PlanVisitor extends AbstractFunction1 {
    private final boolean needsRows;

    PlanVisitor(boolean needsRows) {
      this.needsRows = needsRows;
    }

    public Object apply(Object plan) {
      return replaceScans((LogicalPlan) plan);
    }

    LogicalPlan replaceScans(LogicalPlan plan) {
      if (needsRows && isScan(plan)) {
        return (LogicalPlan) plan.transformUp(new RowReaderReplacement());
      }
      boolean takesRows = plan instanceof Command || plan instanceof WriteFiles || plan instanceof RepartitionOperation;
      return (LogicalPlan) plan.mapChildren(new PlanVisitor(takesRows || needsRows && plan instanceof Union));
    }
  }

  /** Whether a plan is only the scan of a table of deltafast, with columns from which rows can be built. */
  private static boolean isScan(LogicalPlan plan) {
    LogicalPlan child = plan;
    ArrayList filters = new ArrayList();
    while (child instanceof Project || child instanceof Filter) {
      if (child instanceof Filter) {
        filters.add(((Filter) child).condition());
      } else if (!selectsColumns((Project) child)) {
        return false;
      }
      child = (LogicalPlan) child.children().head();
    }
    HadoopFsRelation files = SparkInternals.fileRelation(child);
    if (files == null || !SparkInternals.isOfClass(files.fileFormat(), "DeltafastFormat")) {
      return false;
    }
    List partitionColumns = Arrays.asList(files.partitionSchema().fieldNames());
    for (Iterator it = filters.iterator(); it.hasNext();) {
      if (!isPartitionFilter(partitionColumns, (Expression) it.next())) {
        return false;
      }
    }
    StructType schema = plan.schema();
    for (int i = 0; i < schema.length(); i++) {
      if (DeltafastRows.Column.rowKind(schema.fields()[i].dataType()) < 0) {
        return false;
      }
    }
    return selectsOutput(plan, child, partitionColumns) && files.fileFormat().supportBatch(files.sparkSession(), schema);
  }

  private static boolean selectsColumns(Project project) {
    for (Iterator it = CollectionConverters.asJava(project.projectList()).iterator(); it.hasNext();) {
      if (!(it.next() instanceof Attribute)) {
        return false;
      }
    }
    return true;
  }

  /** Whether a filter is evaluated completely by selecting files. */
  private static boolean isPartitionFilter(List partitionColumns, Expression filter) {
    for (Iterator it = CollectionConverters.asJava(filter.references().toSeq()).iterator(); it.hasNext();) {
      if (!partitionColumns.contains(((Attribute) it.next()).name())) {
        return false;
      }
    }
    return filter.deterministic() && !SubqueryExpression$.MODULE$.hasSubquery(filter);
  }

  /** Whether a plan selects the output of a scan: columns of files in their order, then all constants of files. */
  private static boolean selectsOutput(LogicalPlan plan, LogicalPlan relation, List partitionColumns) {
    List selected = columnIds(plan.output(), null);
    List expected = columnIds(relation.output(), partitionColumns);
    List constants = new ArrayList(columnIds(relation.output(), null));
    constants.removeAll(expected);
    expected.retainAll(selected);
    expected.addAll(constants);
    return expected.equals(selected);
  }

  /** The ids of columns, without those of some names. */
  private static List columnIds(Seq columns, List excluded) {
    ArrayList ids = new ArrayList();
    for (Iterator it = CollectionConverters.asJava(columns).iterator(); it.hasNext();) {
      Attribute column = (Attribute) it.next();
      if (excluded == null || !excluded.contains(column.name())) {
        ids.add(column.exprId());
      }
    }
    return ids;
  }

  /** Replaces a relation by the same one, read as rows. */
  static class RowReaderReplacement extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return node instanceof LogicalRelation;
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (!isDefinedAt(node)) {
        return otherwise.apply(node);
      }
      LogicalRelation relation = (LogicalRelation) node;
      HadoopFsRelation files = (HadoopFsRelation) relation.relation();
      Object[] arguments = SparkInternals.argumentsOf(relation);
      arguments[0] = SparkInternals.withFormat(files, new DeltafastRows(files.fileFormat()));
      Object copy = null;
      try {
        copy = SparkInternals.copyOf(relation, arguments);
      } catch (ReflectiveOperationException error) {
        // Spark makes the rows instead.
      }
      return copy == null ? relation : copy;
    }
  }
}

/** A function that an executor can only run if it has these classes. */
public class DeltafastRowsProbe implements org.apache.spark.api.java.function.Function {
  public Object call(Object of) {
    return Boolean.valueOf(new DeltafastRows(null).equals(of));
  }
}
