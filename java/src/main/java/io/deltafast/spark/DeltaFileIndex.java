package io.deltafast.spark;

import java.io.File;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.LongSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The file index of one version of a table, as Spark's planner uses it. It runs in the driver only.
 * For a frame that follows its table it is updated to the newest version for each query.
 *
 * <p>The files come as an Arrow stream: path in the log, size, time, whether the newest version has
 * removed it, number of rows, number of its deletion vector, its base row id and default row commit
 * version, then the typed values of the partition columns. Filters on these are evaluated here,
 * exactly, since Spark drops them; other filters are sent to the core as SQL, which answers with
 * one character per file. If there are very many files, none is listed in advance: for each query
 * the core lists those that can match its filters.
 *
 * <p>The constants that `ParquetFormat` needs are passed with each file.
 */
public final class DeltaFileIndex implements FileIndex, LongSupplier {
  private final String root;
  private final StructType partition;
  private final Configuration configuration;
  private final SparkContext context;
  private volatile long version;
  private volatile long size;
  private DeletionVectors vectors;

  /** All files, or null if they are listed for each query. */
  private FileList all;

  private FilePlanner planner;
  private boolean follows;

  /**
   * The id of the table; empty if the index has only some files of the version, null if unknown.
   */
  private volatile String tableId;

  /**
   * Whether a query has updated the version, so that Spark may have cached rows of an older one.
   */
  private volatile boolean isUpdated;

  /** The filters of the last listing, and its result. */
  private String listedFilters;

  private FileList listedFiles;

  /**
   * `stream` is the file that lists all files; if empty, the core lists those that a query needs.
   * `deleted` is the file with the deletion vectors; empty if there are none or a join removes
   * deleted rows.
   */
  public DeltaFileIndex(
      String root,
      long version,
      StructType partition,
      String stream,
      long size,
      Configuration configuration,
      String deleted,
      SparkContext context) {
    this.root = root;
    this.version = version;
    this.partition = partition;
    this.size = size;
    this.configuration = configuration;
    this.context = context;
    vectors = new DeletionVectors(deleted);
    all = stream.isEmpty() ? null : new FileList(root, partition, stream, vectors);
  }

  /**
   * The frame of the physical columns and of the constants; `reader` reads the files, or Spark's
   * own reader if it is null, with `options` unless they are null.
   */
  public Dataset<Row> frame(
      SparkSession session,
      StructType columns,
      FileFormat reader,
      java.util.Map<String, String> options) {
    HadoopFsRelation relation =
        new HadoopFsRelation(
            this,
            partition,
            columns,
            Option.empty(),
            reader == null ? new ParquetFileFormat() : reader,
            options == null
                ? Map$.MODULE$.empty()
                : Map$.MODULE$.from(CollectionConverters.asScala(options)),
            session);
    return session.baseRelationToDataFrame(relation);
  }

  /** Sets the planner; `follows` makes each later query see the newest version. */
  public void setPlanner(FilePlanner planner, boolean follows) {
    this.planner = planner;
    this.follows = follows;
  }

  /** Whether each query reads the newest version of the table at a location. */
  boolean followsTable(Path location) {
    return follows && location.equals(new Path(root));
  }

  /** Updates the version, whatever query runs. */
  synchronized void updateToNewest() {
    updateVersion("");
  }

  /** Declares that Spark has no cached rows of older versions. */
  void forgetOlderVersions() {
    isUpdated = false;
  }

  /** Asks the core for a newer version; within one query the version does not change. */
  private void updateVersion() {
    String execution = follows ? context.getLocalProperty("spark.sql.execution.id") : null;
    updateVersion(execution == null ? "" : execution);
  }

  private void updateVersion(String execution) {
    long newest = follows ? planner.newerVersion(execution) : FilePlanner.UNCHANGED;
    if (newest == FilePlanner.UNCHANGED) {
      return;
    }
    isUpdated = true;
    if (newest == FilePlanner.FAILED) {
      throw SparkInternals.raiseAnalysisException(planner.failure());
    }
    String newerFiles = planner.newerFiles();
    String newerVectors = planner.newerVectors();
    try {
      vectors = new DeletionVectors(newerVectors);
      all = newerFiles.isEmpty() ? null : new FileList(root, partition, newerFiles, vectors);
      listedFilters = null;
      size = planner.newerSize();
      version = newest;
      tableId = null;
    } finally {
      for (String file : new String[] {newerFiles, newerVectors}) {
        if (!file.isEmpty()) {
          new File(file).delete();
        }
      }
    }
  }

  /** The number of rows according to the log; -1 if the log does not have it. */
  @Override
  public synchronized long getAsLong() {
    updateVersion();
    if (all == null) {
      return planner.rowCount();
    }
    long rows = 0;
    for (long ofFile : all.rows) {
      if (ofFile < 0) {
        return -1;
      }
      rows += ofFile;
    }
    return rows;
  }

  /** The files that can match filters; for an index without a list, the core lists them. */
  private synchronized FileList list(String filters) {
    if (all != null) {
      return all;
    }
    if (!filters.equals(listedFilters)) {
      String file = planner.listFiles(filters);
      if (file == null) {
        throw SparkInternals.raiseAnalysisException(planner.failure());
      }
      try {
        listedFiles = new FileList(root, partition, file, vectors);
        listedFilters = filters;
      } finally {
        new File(file).delete();
      }
    }
    return listedFiles;
  }

  /** The location of a file whose path in the log is `path`, which is URI-encoded. */
  static Path filePath(String root, String path) {
    try {
      String decoded = URLDecoder.decode(path.replace("+", "%2B"), StandardCharsets.UTF_8);
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

  /**
   * Two paths, so that nothing is ever written below them: INSERT into a relation with one root
   * would write unlogged files.
   */
  public Seq<Path> rootPaths() {
    List<Path> paths = new ArrayList<>();
    paths.add(new Path(root));
    paths.add(new Path(root + "/_delta_log"));
    return SparkInternals.seqOf(paths);
  }

  @Override
  public synchronized String[] inputFiles() {
    updateVersion();
    FileStatus[] files = list("").files;
    String[] out = new String[files.length];
    for (int i = 0; i < out.length; i++) {
      out[i] = files[i].getPath().toUri().toString();
    }
    return out;
  }

  @Override
  public void refresh() {}

  @Override
  public long sizeInBytes() {
    return size;
  }

  @Override
  public StructType partitionSchema() {
    return partition;
  }

  /**
   * Indexes of one version of a table are equal: Spark then reads its files once for a self join,
   * and finds the rows that it has cached. The version can change, so that it is not in the hash.
   */
  @Override
  public boolean equals(Object object) {
    if (this == object) {
      return true;
    }
    if (!(object instanceof DeltaFileIndex)) {
      return false;
    }
    DeltaFileIndex other = (DeltaFileIndex) object;
    return root.equals(other.root)
        && version == other.version
        && follows == other.follows
        && !isUpdated
        && !other.isUpdated
        && !tableId().isEmpty()
        && tableId().equals(other.tableId());
  }

  @Override
  public int hashCode() {
    return root.hashCode();
  }

  private String tableId() {
    if (tableId == null) {
      tableId = planner == null ? "" : planner.tableId();
    }
    return tableId;
  }

  // The core's results refer to the files that were listed last: the version must not change in
  // between.
  @Override
  public synchronized Seq<PartitionDirectory> listFiles(
      Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    List<Expression> exact = CollectionConverters.asJava(partitionFilters);
    List<Expression> others = CollectionConverters.asJava(dataFilters);
    updateVersion();
    updateRemoved();
    FileList listed = list(all == null ? toSql(exact) + toSql(others) : "");
    boolean[] keep = select(listed, exact, others);
    List<MissingFileCheck> removed = new ArrayList<>();
    Map<InternalRow, Object> groups = new LinkedHashMap<>();
    for (int i = 0; i < keep.length; i++) {
      if (keep[i]) {
        if (listed.removed[i]) {
          removed.add(new MissingFileCheck(listed.files[i].getPath(), configuration));
        }
        FileGroup group = (FileGroup) groups.get(listed.values[i]);
        if (group == null) {
          group = new FileGroup(listed.values[i]);
          groups.put(listed.values[i], group);
        }
        group.files.add(new FileStatusWithMetadata(listed.files[i], fileConstants(listed, i)));
      }
    }
    checkExist(removed);
    List<PartitionDirectory> out = new ArrayList<>();
    for (Object group : groups.values()) {
      out.add(((FileGroup) group).directory());
    }
    return SparkInternals.seqOf(out);
  }

  /** The files that filters select, as `listFiles` does. */
  synchronized List<FileStatus> selectedFiles(List<Expression> exact, List<Expression> others) {
    updateVersion();
    FileList listed = list(all == null ? toSql(exact) + toSql(others) : "");
    boolean[] keep = select(listed, exact, others);
    List<FileStatus> selected = new ArrayList<>();
    for (int i = 0; i < keep.length; i++) {
      if (keep[i]) {
        selected.add(listed.files[i]);
      }
    }
    return selected;
  }

  /** Which of the listed files filters select. */
  private boolean[] select(FileList listed, List<Expression> exact, List<Expression> others) {
    boolean[] keep = new boolean[listed.files.length];
    Arrays.fill(keep, true);
    for (Expression filter : exact) {
      pruneByPartition(filter, listed.values, keep);
    }
    if (all != null && planner != null && !others.isEmpty()) {
      pruneByStatistics(toSql(others), keep);
    }
    return keep;
  }

  /** The files with the same partition values. */
  private static final class FileGroup {
    final InternalRow values;
    final List<FileStatusWithMetadata> files = new ArrayList<>();

    FileGroup(InternalRow values) {
      this.values = values;
    }

    PartitionDirectory directory() {
      return new PartitionDirectory(values, SparkInternals.seqOf(files));
    }
  }

  /** The constants of a file that the reader needs: see `ParquetFormat`. */
  private scala.collection.immutable.Map<String, Object> fileConstants(FileList listed, int i) {
    Map<String, Object> constants = new HashMap<>();
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
      constants.put(
          "deltafast.number", Integer.valueOf(listed.vectors[i] - listed.deleted.starts[group]));
    }
    return Map$.MODULE$.from(CollectionConverters.asScala(constants));
  }

  private void pruneByPartition(Expression filter, InternalRow[] values, boolean[] keep) {
    Seq<Attribute> references = filter.references().toSeq();
    int[] ordinals = new int[references.length()];
    int next = 0;
    for (Attribute attribute : CollectionConverters.asJava(references)) {
      ordinals[next++] = partition.fieldIndex(attribute.name());
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
  private static String toSql(List<Expression> filters) {
    StringBuilder joined = new StringBuilder();
    for (Expression filter : filters) {
      try {
        String sql = filter.sql();
        joined.append(sql.length()).append(':').append(sql);
      } catch (RuntimeException error) {
        // It has no SQL form, so the core cannot evaluate it; files are kept.
      }
    }
    return joined.toString();
  }

  private void pruneByStatistics(String filters, boolean[] keep) {
    String mayMatch = planner.matchingFiles(filters);
    for (int i = 0; i < keep.length && mayMatch.length() == keep.length; i++) {
      keep[i] = keep[i] && mayMatch.charAt(i) != '0';
    }
  }

  /** Asks the core which files newer versions have removed; it skips that for a recent list. */
  private synchronized void updateRemoved() {
    String removed = planner == null ? "" : planner.removedFiles();
    if (all == null && !removed.isEmpty()) {
      listedFilters = null;
    }
    for (int i = 0;
        all != null && removed.length() == all.removed.length && i < removed.length();
        i++) {
      all.removed[i] = removed.charAt(i) != '0';
    }
  }

  /** Checks files that newer versions have removed: a vacuum may have deleted them. */
  private void checkExist(List<MissingFileCheck> checks) {
    if (checks.isEmpty()) {
      return;
    }
    Object missing = null;
    ExecutorService pool = Executors.newFixedThreadPool(Math.min(32, checks.size()));
    try {
      for (Future<Path> check : pool.invokeAll(checks)) {
        missing = missing == null ? check.get() : missing;
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
      throw SparkInternals.raiseAnalysisException(
          "version "
              + version
              + " of the Delta table at "
              + root
              + " cannot be read any more: its data file "
              + missing
              + " is gone, as a vacuum has it; read a newer version");
    }
  }

  @Override
  public String toString() {
    return "deltafast[" + root + ", version " + version + "]";
  }
}
