package io.deltafast.spark;

import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * A file index within a query whose filters are known: its size is that of the files that they
 * select, by which Spark chooses how to join.
 */
public final class SelectedFileIndex implements FileIndex {
  private final DeltaFileIndex index;
  private final List<Expression> partitionFilters;
  private final List<Expression> dataFilters;
  private final String[] files;
  private final long size;

  SelectedFileIndex(
      DeltaFileIndex index, List<Expression> partitionFilters, List<Expression> dataFilters) {
    this.index = index;
    this.partitionFilters = partitionFilters;
    this.dataFilters = dataFilters;
    List<FileStatus> selected = index.selectedFiles(partitionFilters, dataFilters);
    files = new String[selected.size()];
    long bytes = 0;
    int next = 0;
    for (FileStatus file : selected) {
      files[next++] = file.getPath().toUri().toString();
      bytes += file.getLen();
    }
    size = bytes;
  }

  /** The planner passes the filters of the query again, with those of joins. */
  @Override
  public Seq<PartitionDirectory> listFiles(Seq<Expression> partitions, Seq<Expression> data) {
    return index.listFiles(partitions, data);
  }

  @Override
  public Seq<Path> rootPaths() {
    return index.rootPaths();
  }

  @Override
  public String[] inputFiles() {
    Object copy = Arrays.copyOf(files, files.length);
    return (String[]) copy;
  }

  @Override
  public void refresh() {}

  @Override
  public long sizeInBytes() {
    return size;
  }

  @Override
  public StructType partitionSchema() {
    return index.partitionSchema();
  }

  @Override
  public boolean equals(Object object) {
    if (!(object instanceof SelectedFileIndex)) {
      return false;
    }
    SelectedFileIndex other = (SelectedFileIndex) object;
    return index.equals(other.index)
        && sql(partitionFilters).equals(sql(other.partitionFilters))
        && sql(dataFilters).equals(sql(other.dataFilters));
  }

  @Override
  public int hashCode() {
    return index.hashCode();
  }

  private static String sql(List<Expression> filters) {
    StringBuilder text = new StringBuilder();
    for (Expression filter : filters) {
      text.append(filter.sql()).append(';');
    }
    return text.toString();
  }

  @Override
  public String toString() {
    return index.toString();
  }
}
