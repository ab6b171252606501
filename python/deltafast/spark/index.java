package deltafast;
// include shared.java

import java.io.FileInputStream;
import java.io.InputStream;
import java.net.URI;
import java.net.URLDecoder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The file index of one version of a table, as Spark's planner uses it. It runs in the driver only. For a frame that follows its
 * table it is updated to the newest version for each query.
 *
 * The files come as an Arrow stream: path in the log, size, time, whether the newest version has removed it, number of rows,
 * number of its deletion vector, its base row id and default row commit version, then the typed values of the partition columns.
 * Filters on these are evaluated here, exactly, since Spark drops them; other filters are sent to the core as SQL, which answers
 * with one character per file. If there are very many files, none is listed in advance: for each query the core lists those that
 * can match its filters.
 *
 * The constants that `DeltafastFormat` needs are passed with each file.
 */
public class DeltafastFileIndex implements FileIndex, java.util.function.LongSupplier {
  private static final long BLOCK_BYTES = 134217728L;
  /** Number of columns of the stream before the partition columns. */
  private static final int FILE_COLUMNS = 8;
  /** Number of words of deletion vectors (4 MiB) that are broadcast together. */
  private static final int GROUP_WORDS = 1 << 19;
  private final String root;
  private final StructType partition;
  private final Configuration configuration;
  private final SparkContext context;
  private volatile String version;
  private volatile long size;
  private DeletionVectors vectors;
  /** All files, or null if they are listed for each query. */
  private FileList all;
  private java.util.function.Function core;
  private boolean follows;
  /** The filters of the last listing, and its result. */
  private String listedFilters;
  private FileList listedFiles;

  /** Deletion vectors by their numbers, in groups, and the first number of each group. */
  static class DeletionVectors {
    final long[][][] groups;
    final int[] starts;
    final Broadcast[] broadcasts;

    /** `stream` is the file that holds them; empty if there are none or a join removes deleted rows. */
    DeletionVectors(String stream) {
      ArrayList complete = new ArrayList();
      ArrayList group = new ArrayList();
      ArrayList begins = new ArrayList();
      int words = 0;
      List list = stream.isEmpty() ? new ArrayList() : rows(stream);
      for (int i = 0; i < list.size(); i++) {
        long[] vector = ((InternalRow) list.get(i)).getArray(0).toLongArray();
        if (group.isEmpty()) {
          begins.add(Integer.valueOf(i));
        }
        group.add(vector);
        words += vector.length;
        if (words >= GROUP_WORDS || i == list.size() - 1) {
          complete.add(group.toArray(new long[0][]));
          group.clear();
          words = 0;
        }
      }
      groups = (long[][][]) complete.toArray(new long[0][][]);
      starts = new int[groups.length];
      for (int i = 0; i < starts.length; i++) {
        starts[i] = ((Integer) begins.get(i)).intValue();
      }
      broadcasts = new Broadcast[groups.length];
    }

    /** The group of a number. */
    int groupOf(int number) {
      int found = Arrays.binarySearch(starts, number);
      return found < 0 ? -found - 2 : found;
    }

    /** A group, broadcast to the executors that need a vector of it. */
    synchronized Broadcast broadcastOf(int group, SparkContext context) {
      if (broadcasts[group] == null) {
        broadcasts[group] = context.broadcast(groups[group], scala.reflect.ClassTag$.MODULE$.apply(long[][].class));
      }
      return broadcasts[group];
    }
  }

  /** Files with their constants, and whether the newest version has removed them. */
  static class FileList {
    final FileStatus[] files;
    final boolean[] removed;
    final InternalRow[] values;
    /** The number of rows that are not deleted, and the number of the deletion vector; -1 if unknown or if there is none. */
    final long[] rows;
    final int[] vectors;
    /** The base row id and the default row commit version; -1 without row tracking. */
    final long[] ids;
    final long[] versions;
    final DeletionVectors deleted;

    FileList(String root, StructType partition, String stream, DeletionVectors deleted) {
      this.deleted = deleted;
      List list = rows(stream);
      files = new FileStatus[list.size()];
      removed = new boolean[files.length];
      values = new InternalRow[files.length];
      rows = new long[files.length];
      vectors = new int[files.length];
      ids = new long[files.length];
      versions = new long[files.length];
      for (int i = 0; i < files.length; i++) {
        InternalRow row = (InternalRow) list.get(i);
        files[i] = new FileStatus(row.getLong(1), false, 1, BLOCK_BYTES, row.getLong(2), filePath(root, row.getUTF8String(0).toString()));
        removed[i] = row.getBoolean(3);
        rows[i] = row.isNullAt(4) ? -1 : row.getLong(4);
        vectors[i] = row.isNullAt(5) ? -1 : row.getInt(5);
        ids[i] = row.isNullAt(6) ? -1 : row.getLong(6);
        versions[i] = row.isNullAt(7) ? -1 : row.getLong(7);
        Object[] constants = new Object[partition.length()];
        for (int j = 0; j < constants.length; j++) {
          constants[j] = row.isNullAt(FILE_COLUMNS + j) ? null : row.get(FILE_COLUMNS + j, partition.fields()[j].dataType());
        }
        values[i] = new GenericInternalRow(constants);
      }
    }
  }

  /**
   * `stream` is the file that lists all files; if empty, the core lists those that a query needs. `deleted` is the file with the
   * deletion vectors; empty if there are none or a join removes deleted rows.
   */
  public DeltafastFileIndex(String root, String version, StructType partition, String stream, String size, Configuration configuration,
      String deleted, SparkContext context) {
    this.root = root;
    this.version = version;
    this.partition = partition;
    this.size = Long.parseLong(size);
    this.configuration = configuration;
    this.context = context;
    vectors = new DeletionVectors(deleted);
    all = stream.isEmpty() ? null : new FileList(root, partition, stream, vectors);
  }

  /** Sets the callback that selects files by statistics, or lists them. */
  public void setCore(java.util.function.Function core) {
    this.core = core;
  }

  /** Makes each later query see the newest version. */
  public void follow() {
    follows = true;
  }

  /** Asks the core for a newer version; within one query the version does not change. */
  private void updateVersion() {
    if (!follows) {
      return;
    }
    String query = context.getLocalProperty("spark.sql.execution.id");
    String newest = (String) core.apply("@" + (query == null ? "" : query));
    if (newest.isEmpty()) {
      return;
    }
    checkAnswer(newest);
    // Two files, each of which may be empty: the files and the deletion vectors; then bytes and version.
    String[] parts = newest.split("\n", -1);
    try {
      vectors = new DeletionVectors(parts[1]);
      all = parts[0].isEmpty() ? null : new FileList(root, partition, parts[0], vectors);
      listedFilters = null;
      size = Long.parseLong(parts[2]);
      version = parts[3];
    } finally {
      for (int i = 0; i < 2; i++) {
        if (!parts[i].isEmpty()) {
          new java.io.File(parts[i]).delete();
        }
      }
    }
  }

  /** Raises the error that an answer of the core holds, if it does. */
  private static void checkAnswer(String answer) {
    if (answer.startsWith("!")) {
      throw SparkInternals.raiseAnalysisException(answer.substring(1));
    }
  }

  /** The number of rows according to the log; -1 if the log does not have it. */
  public synchronized long getAsLong() {
    updateVersion();
    if (all == null) {
      String rows = (String) core.apply("#");
      return rows.isEmpty() ? -1 : Long.parseLong(rows);
    }
    long rows = 0;
    for (int i = 0; i < all.rows.length; i++) {
      if (all.rows[i] < 0) {
        return -1;
      }
      rows += all.rows[i];
    }
    return rows;
  }

  /** The files that can match filters, each of which is preceded by its length; for an index without a list. */
  private synchronized FileList list(String filters) {
    if (all != null) {
      return all;
    }
    if (!filters.equals(listedFilters)) {
      String file = (String) core.apply(filters);
      checkAnswer(file);
      try {
        listedFiles = new FileList(root, partition, file, vectors);
        listedFilters = filters;
      } finally {
        new java.io.File(file).delete();
      }
    }
    return listedFiles;
  }

  /** Reads the rows of an Arrow stream from a file. */
  static List rows(String file) {
    ArrayList out = new ArrayList();
    try {
      InputStream in = new FileInputStream(file);
      RootAllocator allocator = new RootAllocator(Long.MAX_VALUE);
      ArrowStreamReader reader = new ArrowStreamReader(in, allocator);
      try {
        VectorSchemaRoot batch = reader.getVectorSchemaRoot();
        while (reader.loadNextBatch()) {
          List vectors = batch.getFieldVectors();
          ColumnVector[] columns = new ColumnVector[vectors.size()];
          for (int i = 0; i < columns.length; i++) {
            columns[i] = new ArrowColumnVector((FieldVector) vectors.get(i));
          }
          Iterator it = new ColumnarBatch(columns, batch.getRowCount()).rowIterator();
          while (it.hasNext()) {
            out.add(((InternalRow) it.next()).copy());
          }
        }
      } finally {
        reader.close();
        allocator.close();
        in.close();
      }
    } catch (java.io.IOException error) {
      throw new RuntimeException("the list of files cannot be read: " + error.getMessage(), error);
    }
    return out;
  }

  /** A small table from an Arrow stream in a file. */
  public static Object frame(Object session, StructType schema, String file) {
    scala.collection.immutable.Seq output = DataTypeUtils.toAttributes(schema);
    scala.collection.immutable.Seq rows = SparkInternals.seqOf(rows(file));
    LocalRelation plan = new LocalRelation(output, rows, false, scala.Option.empty());
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows((org.apache.spark.sql.classic.SparkSession) session, plan);
  }

  /** The location of a file whose path in the log is `path`, which is URI-encoded. */
  static Path filePath(String root, String path) {
    try {
      String decoded = URLDecoder.decode(path.replace("+", "%2B"), "UTF-8");
      if (path.startsWith("/")) {
        return new Path(decoded);
      }
      if (path.matches("[A-Za-z][A-Za-z0-9+.-]*:/.*")) {
        return new Path(new URI(path));
      }
      return new Path(root + "/" + decoded);
    } catch (Exception error) {
      throw new RuntimeException("the log names a file by an invalid path: " + path, error);
    }
  }

  /** Two paths, so that nothing is ever written below them: INSERT into a relation with one root would write unlogged files. */
  public scala.collection.immutable.Seq rootPaths() {
    ArrayList paths = new ArrayList();
    paths.add(new Path(root));
    paths.add(new Path(root + "/_delta_log"));
    return SparkInternals.seqOf(paths);
  }

  public synchronized String[] inputFiles() {
    updateVersion();
    FileStatus[] files = list("").files;
    String[] out = new String[files.length];
    for (int i = 0; i < out.length; i++) {
      out[i] = files[i].getPath().toUri().toString();
    }
    return out;
  }

  public void refresh() {}

  public long sizeInBytes() {
    return size;
  }

  public StructType partitionSchema() {
    return partition;
  }

  public boolean equals(Object other) {
    return this == other;
  }

  public int hashCode() {
    return System.identityHashCode(this);
  }

  // The core's results refer to the files that were listed last: the version must not change in between.
  public synchronized scala.collection.immutable.Seq listFiles(scala.collection.immutable.Seq partitionFilters,
      scala.collection.immutable.Seq dataFilters) {
    Object[] exact = CollectionConverters.asJava(partitionFilters).toArray();
    Object[] others = CollectionConverters.asJava(dataFilters).toArray();
    updateVersion();
    updateRemoved();
    FileList listed = list(all == null ? toSql(exact) + toSql(others) : "");
    FileStatus[] files = listed.files;
    InternalRow[] values = listed.values;
    boolean[] keep = new boolean[files.length];
    Arrays.fill(keep, true);
    for (int k = 0; k < exact.length; k++) {
      pruneByPartition((Expression) exact[k], values, keep);
    }
    if (all != null && core != null && others.length > 0) {
      pruneByStatistics(toSql(others), keep);
    }
    ArrayList removed = new ArrayList();
    LinkedHashMap groups = new LinkedHashMap();
    for (int i = 0; i < files.length; i++) {
      if (keep[i]) {
        if (listed.removed[i]) {
          removed.add(new MissingFileCheck(files[i].getPath(), configuration));
        }
        ArrayList group = (ArrayList) groups.get(values[i]);
        if (group == null) {
          group = new ArrayList();
          groups.put(values[i], group);
        }
        group.add(new FileStatusWithMetadata(files[i], fileConstants(listed, i)));
      }
    }
    checkExist(removed);
    ArrayList out = new ArrayList();
    for (Iterator it = groups.entrySet().iterator(); it.hasNext();) {
      Map.Entry group = (Map.Entry) it.next();
      out.add(new PartitionDirectory((InternalRow) group.getKey(), SparkInternals.seqOf((List) group.getValue())));
    }
    return SparkInternals.seqOf(out);
  }

  /** The constants of a file that the reader needs: see `DeltafastFormat`. */
  private scala.collection.immutable.Map fileConstants(FileList listed, int i) {
    java.util.HashMap constants = new java.util.HashMap();
    if (listed.rows[i] >= 0) {
      constants.put("deltafast.rows", Long.valueOf(listed.rows[i]));
    }
    if (listed.ids[i] >= 0) {
      constants.put("base_row_id", Long.valueOf(listed.ids[i]));
    }
    if (listed.versions[i] >= 0) {
      constants.put("default_row_commit_version", Long.valueOf(listed.versions[i]));
    }
    if (listed.vectors[i] >= 0) {
      int group = listed.deleted.groupOf(listed.vectors[i]);
      constants.put("deltafast.deleted", listed.deleted.broadcastOf(group, context));
      constants.put("deltafast.number", Integer.valueOf(listed.vectors[i] - listed.deleted.starts[group]));
    }
    return scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(constants));
  }

  private void pruneByPartition(Expression filter, InternalRow[] values, boolean[] keep) {
    scala.collection.immutable.Seq references = filter.references().toSeq();
    Object[] attributes = CollectionConverters.asJava(references).toArray();
    int[] ordinals = new int[attributes.length];
    for (int j = 0; j < ordinals.length; j++) {
      ordinals[j] = partition.fieldIndex(((Attribute) attributes[j]).name());
    }
    BasePredicate predicate = Predicate$.MODULE$.create(filter, references);
    for (int i = 0; i < values.length; i++) {
      if (keep[i]) {
        Object[] row = new Object[ordinals.length];
        for (int j = 0; j < row.length; j++) {
          row[j] = values[i].get(ordinals[j], partition.fields()[ordinals[j]].dataType());
        }
        keep[i] = predicate.eval(new GenericInternalRow(row));
      }
    }
  }

  /** Filters as SQL, each preceded by its length. */
  private static String toSql(Object[] filters) {
    StringBuilder joined = new StringBuilder();
    for (int k = 0; k < filters.length; k++) {
      try {
        String sql = ((Expression) filters[k]).sql();
        joined.append(sql.length()).append(':').append(sql);
      } catch (RuntimeException error) {
        // It has no SQL form, so the core cannot evaluate it; files are kept.
      }
    }
    return joined.toString();
  }

  private void pruneByStatistics(String filters, boolean[] keep) {
    String mayMatch = (String) core.apply(filters);
    for (int i = 0; i < keep.length && mayMatch.length() == keep.length; i++) {
      keep[i] = keep[i] && mayMatch.charAt(i) != '0';
    }
  }

  /** Asks the core which files newer versions have removed; it skips that for a recent list. */
  private synchronized void updateRemoved() {
    String removed = core == null ? "" : (String) core.apply("?");
    if (all == null && !removed.isEmpty()) {
      listedFilters = null;
    }
    for (int i = 0; all != null && removed.length() == all.removed.length && i < removed.length(); i++) {
      all.removed[i] = removed.charAt(i) != '0';
    }
  }

  /** Whether a file is missing; null if it exists, or if reading it will report the error. */
  static class MissingFileCheck implements Callable {
    final Path path;
    final Configuration configuration;

    MissingFileCheck(Path path, Configuration configuration) {
      this.path = path;
      this.configuration = configuration;
    }

    public Object call() {
      try {
        return path.getFileSystem(configuration).exists(path) ? null : path;
      } catch (java.io.IOException error) {
        return null;
      }
    }
  }

  /** Checks files that newer versions have removed: a vacuum may have deleted them. */
  private void checkExist(List checks) {
    if (checks.isEmpty()) {
      return;
    }
    Object missing = null;
    ExecutorService pool = Executors.newFixedThreadPool(Math.min(32, checks.size()));
    try {
      for (Iterator it = pool.invokeAll(checks).iterator(); it.hasNext() && missing == null;) {
        missing = ((Future) it.next()).get();
      }
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new RuntimeException(error);
    } catch (ExecutionException error) {
      throw new RuntimeException(error);
    } finally {
      pool.shutdownNow();
    }
    if (missing != null) {
      throw SparkInternals.raiseAnalysisException("version " + version + " of the Delta table at " + root
          + " cannot be read any more: its data file " + missing + " is gone, as a vacuum has it; read a newer version");
    }
  }

  public String toString() {
    return "deltafast[" + root + ", version " + version + "]";
  }
}
