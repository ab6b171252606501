package deltafast;

import java.io.Closeable;
import java.io.IOException;
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
import org.apache.spark.sql.ExperimentalMethods;
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
import org.apache.spark.sql.catalyst.types.PhysicalDataType$;
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
import scala.collection.AbstractIterator;
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
  private final FileFormat of;

  public DeltafastRows(FileFormat of) {
    this.of = of;
  }

  /** Adds the rule that uses it to a session, if it is not there yet. */
  public static void put(Object session) {
    ExperimentalMethods methods = ((org.apache.spark.sql.classic.SparkSession) session).experimental();
    ArrayList rules = new ArrayList(CollectionConverters.asJava(methods.extraOptimizations()));
    for (Iterator it = rules.iterator(); it.hasNext();) {
      if (it.next() instanceof DeltafastRowsRule) {
        return;
      }
    }
    rules.add(new DeltafastRowsRule());
    methods.extraOptimizations_$eq(CollectionConverters.asScala((List) rules).toSeq());
  }

  public Option inferSchema(SparkSession session, Map options, Seq files) {
    return of.inferSchema(session, options, files);
  }

  public OutputWriterFactory prepareWrite(SparkSession session, Job job, Map options, StructType schema) {
    return of.prepareWrite(session, job, options, schema);
  }

  public boolean supportBatch(SparkSession session, StructType schema) {
    return false;
  }

  public boolean isSplitable(SparkSession session, Map options, Path path) {
    return of.isSplitable(session, options, path);
  }

  public Seq metadataSchemaFields() {
    return of.metadataSchemaFields();
  }

  public Map fileConstantMetadataExtractors() {
    return of.fileConstantMetadataExtractors();
  }

  public Function1 buildReaderWithPartitionValues(SparkSession session, StructType data, StructType partition, StructType required,
      Seq filters, Map options, Configuration configuration) {
    StructType schema = required;
    for (int i = 0; i < partition.length(); i++) {
      schema = schema.add(partition.fields()[i]);
    }
    // Settings may have changed since the query was planned.
    boolean batches = of.supportBatch(session, schema);
    Map wanted = (Map) options.updated(FileFormat$.MODULE$.OPTION_RETURNING_BATCH(), String.valueOf(batches));
    Function1 reader = of.buildReaderWithPartitionValues(session, data, partition, required, filters, wanted, configuration);
    return new Reader(reader, batches ? null : schema);
  }

  /** The reader of batches. */
  public Object get() {
    return of;
  }

  public String shortName() {
    return ((DataSourceRegister) of).shortName();
  }

  public String toString() {
    return of.toString();
  }

  public boolean equals(Object other) {
    return other instanceof DeltafastRows && of.equals(((DeltafastRows) other).of);
  }

  public int hashCode() {
    return of.hashCode();
  }

  /** Reads a file. */
  static class Reader extends AbstractFunction1 implements Serializable {
    private final Function1 of;
    private final StructType schema;

    /** `schema` of the rows that `of` returns; null if it returns batches. */
    Reader(Function1 of, StructType schema) {
      this.of = of;
      this.schema = schema;
    }

    public Object apply(Object file) {
      scala.collection.Iterator read = (scala.collection.Iterator) of.apply(file);
      return schema == null ? (Object) new Rows(read) : new Made(read, UnsafeProjection.create(schema));
    }
  }

  /** Rows or batches of a reader that is closed at the end. */
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

  /** Rows that are built one by one. */
  static class Made extends Closing {
    private final UnsafeProjection projection;

    Made(scala.collection.Iterator of, UnsafeProjection projection) {
      super(of);
      this.projection = projection;
    }

    public boolean hasNext() {
      return of.hasNext();
    }

    public Object next() {
      return projection.apply((InternalRow) of.next());
    }
  }

  /** The rows of batches; each is overwritten by later ones, as Spark's are. */
  static class Rows extends Closing {
    /** Bytes of rows that are built together: they fit into the cache of a CPU core. */
    private static final int TOGETHER = 1 << 18;
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

    Rows(scala.collection.Iterator of) {
      super(of);
    }

    public boolean hasNext() {
      while (next == end) {
        if (end == rows) {
          if (!of.hasNext()) {
            return false;
          }
          take((ColumnarBatch) of.next());
        }
        make();
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

    private void take(ColumnarBatch batch) {
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
        columns[i].take(batch.column(i), rows, sizes);
      }
    }

    /** Builds the next rows of the batch. */
    private void make() {
      begin = end;
      long size = 0;
      while (end < rows && (end == begin || size + sizes[end] <= TOGETHER)) {
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
    private static final int BOOLEAN = 1;
    private static final int BYTE = 2;
    private static final int SHORT = 3;
    private static final int INT = 4;
    private static final int LONG = 5;
    private static final int FLOAT = 6;
    private static final int DOUBLE = 7;
    private static final int BYTES = 8;
    /** Decimals of up to 9 digits are integers in a vector and longs in a row; those of more than 18 are bytes. */
    private static final int SMALL = 9;
    private static final int DECIMAL = 10;
    /** Bytes that are reserved for a large decimal. */
    private static final int LARGE = 16;

    private final int kind;
    private final boolean isText;
    /** Offsets and masks in a row: the word with this column's null bit, the bit, the column's own word. */
    private final long word;
    private final long bit;
    private final long field;
    private ColumnVector of;
    private boolean hasNull;
    private boolean isNull;
    /** The value of a constant column. */
    private byte[] constant;
    /** Values of the batch's dictionary by number; those of an earlier batch have a smaller mark. */
    private byte[][] known = new byte[0][];
    private int[] marks = new int[0];
    private int mark;

    Column(int ordinal, int columns, DataType type) {
      kind = kind(type);
      isText = !(type instanceof BinaryType);
      word = Platform.BYTE_ARRAY_OFFSET + (ordinal >> 6 << 3);
      bit = 1L << ordinal;
      field = Platform.BYTE_ARRAY_OFFSET + UnsafeRow.calculateBitSetWidthInBytes(columns) + 8 * ordinal;
    }

    /** How a row stores values of a type; -1 for nested types. */
    static int kind(DataType type) {
      if (type instanceof DecimalType) {
        return DecimalType.is32BitDecimalType(type) ? SMALL : DecimalType.is64BitDecimalType(type) ? LONG : DECIMAL;
      }
      String name = PhysicalDataType$.MODULE$.apply(type).getClass().getSimpleName();
      return name.startsWith("PhysicalBoolean") ? BOOLEAN
          : name.startsWith("PhysicalByte") ? BYTE
          : name.startsWith("PhysicalShort") ? SHORT
          : name.startsWith("PhysicalInteger") ? INT
          : name.startsWith("PhysicalLong") ? LONG
          : name.startsWith("PhysicalFloat") ? FLOAT
          : name.startsWith("PhysicalDouble") ? DOUBLE
          : name.startsWith("PhysicalString") || name.startsWith("PhysicalBinary") ? BYTES : -1;
    }

    /** Starts another batch, and adds to the rows' sizes. */
    void take(ColumnVector column, int rows, int[] sizes) {
      of = column;
      hasNull = column.hasNull();
      boolean isConstant = column instanceof ConstantColumnVector;
      isNull = hasNull && (isConstant || ((WritableColumnVector) column).isAllNull());
      constant = null;
      if (kind == DECIMAL) {
        for (int i = 0; i < rows; i++) {
          sizes[i] += LARGE;
        }
      } else if (kind == BYTES && !isNull) {
        if (isConstant) {
          constant = isText ? column.getUTF8String(0).getBytes() : column.getBinary(0);
          for (int i = 0; i < rows; i++) {
            sizes[i] += padded(constant.length);
          }
        } else if (((WritableColumnVector) column).hasDictionary()) {
          mark++;
          named((WritableColumnVector) column, rows, sizes);
        } else {
          sized((WritableColumnVector) column, hasNull, rows, sizes);
        }
      }
    }

    private static int padded(int length) {
      return (length + 7) & ~7;
    }

    private static void sized(WritableColumnVector column, boolean hasNull, int rows, int[] sizes) {
      for (int i = 0; i < rows; i++) {
        if (!hasNull || !column.isNullAt(i)) {
          sizes[i] += padded(column.getArrayLength(i));
        }
      }
    }

    private void named(WritableColumnVector column, int rows, int[] sizes) {
      WritableColumnVector ids = column.getDictionaryIds();
      for (int i = 0; i < rows; i++) {
        if (!hasNull || !column.isNullAt(i)) {
          int id = ids.getDictId(i);
          if (id >= marks.length) {
            int most = Math.max(2 * marks.length, id + 64);
            known = (byte[][]) Arrays.copyOf(known, most);
            marks = Arrays.copyOf(marks, most);
          }
          if (marks[id] != mark) {
            marks[id] = mark;
            known[id] = column.getBinary(i);
          }
          sizes[i] += padded(known[id].length);
        }
      }
    }

    /** Writes the values of `count` rows of the batch to rows that begin at `starts`, and advances `ends` by their sizes. */
    void put(int begin, int count, byte[] bytes, int[] starts, int[] ends) {
      if (hasNull) {
        nulls(begin, count, bytes, starts);
      }
      if (kind == DECIMAL) {
        decimals(begin, count, bytes, starts, ends);
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
      if (of instanceof ConstantColumnVector) {
        constants(fixed(0), count, bytes, starts, field);
        return;
      }
      WritableColumnVector column = (WritableColumnVector) of;
      switch (kind) {
        case INT:
          ints(column, hasNull, begin, count, bytes, starts, field);
          return;
        case LONG:
          longs(column, hasNull, begin, count, bytes, starts, field);
          return;
        case DOUBLE:
          doubles(column, hasNull, begin, count, bytes, starts, field);
          return;
        case BYTES:
          if (column.hasDictionary()) {
            names(column, begin, count, bytes, starts, ends);
          } else {
            texts(column, begin, count, bytes, starts, ends);
          }
          return;
        default:
          for (int i = 0; i < count; i++) {
            if (!hasNull || !column.isNullAt(begin + i)) {
              Platform.putLong(bytes, starts[i] + field, fixed(begin + i));
            }
          }
      }
    }

    /** A value of a fixed size as a word of a row. */
    private long fixed(int row) {
      switch (kind) {
        case BOOLEAN:
          return of.getBoolean(row) ? 1 : 0;
        case BYTE:
          return of.getByte(row) & 0xffL;
        case SHORT:
          return of.getShort(row) & 0xffffL;
        case INT:
          return of.getInt(row) & 0xffffffffL;
        case SMALL:
          return of.getInt(row);
        case LONG:
          return of.getLong(row);
        case FLOAT:
          return Float.floatToRawIntBits(of.getFloat(row)) & 0xffffffffL;
        case DOUBLE:
          return Double.doubleToRawLongBits(of.getDouble(row));
        default:
          throw new IllegalStateException("deltafast cannot make rows of type " + of.dataType());
      }
    }

    private void nulls(int begin, int count, byte[] bytes, int[] starts) {
      for (int i = 0; i < count; i++) {
        if (isNull || of.isNullAt(begin + i)) {
          Platform.putLong(bytes, starts[i] + word, Platform.getLong(bytes, starts[i] + word) | bit);
        }
      }
    }

    // Separate loops, which the JIT compiler optimizes well.

    private static void constants(long value, int count, byte[] bytes, int[] starts, long field) {
      for (int i = 0; i < count; i++) {
        Platform.putLong(bytes, starts[i] + field, value);
      }
    }

    private static void ints(WritableColumnVector column, boolean hasNull, int begin, int count, byte[] bytes, int[] starts, long field) {
      for (int i = 0; i < count; i++) {
        if (!hasNull || !column.isNullAt(begin + i)) {
          Platform.putInt(bytes, starts[i] + field, column.getInt(begin + i));
        }
      }
    }

    private static void longs(WritableColumnVector column, boolean hasNull, int begin, int count, byte[] bytes, int[] starts, long field) {
      for (int i = 0; i < count; i++) {
        if (!hasNull || !column.isNullAt(begin + i)) {
          Platform.putLong(bytes, starts[i] + field, column.getLong(begin + i));
        }
      }
    }

    private static void doubles(WritableColumnVector column, boolean hasNull, int begin, int count, byte[] bytes, int[] starts,
        long field) {
      for (int i = 0; i < count; i++) {
        if (!hasNull || !column.isNullAt(begin + i)) {
          Platform.putDouble(bytes, starts[i] + field, column.getDouble(begin + i));
        }
      }
    }

    /** Values of a dictionary. */
    private void names(WritableColumnVector column, int begin, int count, byte[] bytes, int[] starts, int[] ends) {
      WritableColumnVector ids = column.getDictionaryIds();
      for (int i = 0; i < count; i++) {
        if (!hasNull || !column.isNullAt(begin + i)) {
          byte[] value = known[ids.getDictId(begin + i)];
          put(value, Platform.BYTE_ARRAY_OFFSET, value.length, bytes, starts[i], ends, i);
        }
      }
    }

    private void texts(WritableColumnVector column, int begin, int count, byte[] bytes, int[] starts, int[] ends) {
      int first = 0;
      while (first < count && hasNull && column.isNullAt(begin + first)) {
        first++;
      }
      if (first == count) {
        return;
      }
      // All values are located in one buffer.
      UTF8String one = column.getUTF8String(begin + first);
      Object from = one.getBaseObject();
      long offset = one.getBaseOffset() - column.getArrayOffset(begin + first);
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
    private void decimals(int begin, int count, byte[] bytes, int[] starts, int[] ends) {
      DecimalType type = (DecimalType) of.dataType();
      for (int i = 0; i < count; i++) {
        int at = ends[i];
        byte[] value = null;
        if (!isNull && !of.isNullAt(begin + i)) {
          value = of.getDecimal(begin + i, type.precision(), type.scale()).toJavaBigDecimal().unscaledValue().toByteArray();
          copy(value, Platform.BYTE_ARRAY_OFFSET, value.length, bytes, Platform.BYTE_ARRAY_OFFSET + at);
        }
        Platform.putLong(bytes, starts[i] + field, (long) (at - starts[i]) << 32 | (value == null ? 0 : value.length));
        ends[i] = at + LARGE;
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
    return ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN ? new Visit(true).of((LogicalPlan) plan) : plan;
  }

  /** Traverses a plan, with whether rows of it are needed. */
  static class Visit extends AbstractFunction1 {
    private final boolean wanted;

    Visit(boolean wanted) {
      this.wanted = wanted;
    }

    public Object apply(Object plan) {
      return of((LogicalPlan) plan);
    }

    LogicalPlan of(LogicalPlan plan) {
      if (wanted && isScan(plan)) {
        return (LogicalPlan) plan.transformUp(new Replaced());
      }
      boolean isRows = plan instanceof Command || plan instanceof WriteFiles || plan instanceof RepartitionOperation;
      return (LogicalPlan) plan.mapChildren(new Visit(isRows || wanted && plan instanceof Union));
    }
  }

  /** Whether a plan is only the scan of a table of deltafast, with columns from which rows can be built. */
  private static boolean isScan(LogicalPlan plan) {
    LogicalPlan child = plan;
    ArrayList filters = new ArrayList();
    while (child instanceof Project || child instanceof Filter) {
      if (child instanceof Filter) {
        filters.add(((Filter) child).condition());
      } else if (!isColumns((Project) child)) {
        return false;
      }
      child = (LogicalPlan) child.children().head();
    }
    Object relation = child instanceof LogicalRelation ? ((LogicalRelation) child).relation() : null;
    HadoopFsRelation files = relation instanceof HadoopFsRelation ? (HadoopFsRelation) relation : null;
    // The class of the reader is compiled separately, and is a different one in each release of deltafast.
    if (files == null || !files.fileFormat().getClass().getSimpleName().equals("DeltafastFormat")) {
      return false;
    }
    List parts = Arrays.asList(files.partitionSchema().fieldNames());
    for (Iterator it = filters.iterator(); it.hasNext();) {
      if (!isOf(parts, (Expression) it.next())) {
        return false;
      }
    }
    StructType schema = plan.schema();
    for (int i = 0; i < schema.length(); i++) {
      if (DeltafastRows.Column.kind(schema.fields()[i].dataType()) < 0) {
        return false;
      }
    }
    return isOutput(plan, child, parts) && files.fileFormat().supportBatch(files.sparkSession(), schema);
  }

  private static boolean isColumns(Project project) {
    for (Iterator it = CollectionConverters.asJava(project.projectList()).iterator(); it.hasNext();) {
      if (!(it.next() instanceof Attribute)) {
        return false;
      }
    }
    return true;
  }

  /** Whether a filter is evaluated completely by selecting files. */
  private static boolean isOf(List parts, Expression filter) {
    for (Iterator it = CollectionConverters.asJava(filter.references().toSeq()).iterator(); it.hasNext();) {
      if (!parts.contains(((Attribute) it.next()).name())) {
        return false;
      }
    }
    return filter.deterministic() && !SubqueryExpression$.MODULE$.hasSubquery(filter);
  }

  /** Whether a plan selects the output of a scan: columns of files in their order, then all constants of files. */
  private static boolean isOutput(LogicalPlan plan, LogicalPlan relation, List parts) {
    List wanted = numbers(plan.output(), null);
    List given = numbers(relation.output(), parts);
    List constants = new ArrayList(numbers(relation.output(), null));
    constants.removeAll(given);
    given.retainAll(wanted);
    given.addAll(constants);
    return given.equals(wanted);
  }

  /** The ids of columns, without those of some names. */
  private static List numbers(Seq columns, List but) {
    ArrayList numbers = new ArrayList();
    for (Iterator it = CollectionConverters.asJava(columns).iterator(); it.hasNext();) {
      Attribute column = (Attribute) it.next();
      if (but == null || !but.contains(column.name())) {
        numbers.add(column.exprId());
      }
    }
    return numbers;
  }

  /** Replaces a relation by the same one, read as rows. */
  static class Replaced extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return node instanceof LogicalRelation;
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (!isDefinedAt(node)) {
        return otherwise.apply(node);
      }
      LogicalRelation relation = (LogicalRelation) node;
      HadoopFsRelation files = (HadoopFsRelation) relation.relation();
      HadoopFsRelation rows = new HadoopFsRelation(files.location(), files.partitionSchema(), files.dataSchema(), files.bucketSpec(),
          new DeltafastRows(files.fileFormat()), files.options(), files.sparkSession());
      // The number of parameters differs between releases of Spark; the relation is the first.
      Object[] parameters = new Object[relation.productArity()];
      for (int i = 0; i < parameters.length; i++) {
        parameters[i] = i == 0 ? rows : relation.productElement(i);
      }
      java.lang.reflect.Method[] methods = LogicalRelation.class.getMethods();
      try {
        for (int i = 0; i < methods.length; i++) {
          if (methods[i].getName().equals("copy") && methods[i].getParameterCount() == parameters.length) {
            return methods[i].invoke(relation, parameters);
          }
        }
      } catch (ReflectiveOperationException error) {
        // Spark makes the rows instead.
      }
      return relation;
    }
  }
}

/** A function that an executor can only run if it has these classes. */
public class DeltafastRowsProbe implements org.apache.spark.api.java.function.Function {
  public Object call(Object of) {
    return Boolean.valueOf(new DeltafastRows(null).equals(of));
  }
}
