package io.deltafast.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.runtime.AbstractFunction1;

/** Reads a file. */
final class FileReader extends AbstractFunction1<Object, Object> implements Serializable {
  private static final long serialVersionUID = 1;

  @SuppressWarnings("serial") // Spark's are serializable.
  private final Function1<PartitionedFile, ?> plain;

  @SuppressWarnings("serial") // Spark's are serializable.
  private final Function1<PartitionedFile, ?> positioned;

  private final int position;
  private final StructType required;
  private final StructType partition;
  private final boolean batches;
  private final boolean hasStrings;
  private final boolean countsOnly;
  private final boolean readsAll;

  /**
   * `plain` reads the columns `required`; `positioned` (null without deletion vectors) also reads,
   * in column `position`, each row's position in its file, as an additional last column if it is
   * not among the required ones. `hasStrings`: batches get a `StringVector` for each column of
   * strings. `countsOnly`: only the number of rows is needed. `readsAll`: no filter makes the
   * readers skip rows.
   */
  FileReader(
      Function1<PartitionedFile, ?> plain,
      Function1<PartitionedFile, ?> positioned,
      int position,
      StructType required,
      StructType partition,
      boolean batches,
      boolean hasStrings,
      boolean countsOnly,
      boolean readsAll) {
    this.plain = plain;
    this.positioned = positioned;
    this.position = position;
    this.required = required;
    this.partition = partition;
    this.batches = batches;
    this.hasStrings = hasStrings;
    this.countsOnly = countsOnly;
    this.readsAll = readsAll;
  }

  @Override
  public Object apply(Object partitionedFile) {
    PartitionedFile file = (PartitionedFile) partitionedFile;
    Map<String, Object> constants = file.otherConstantMetadataColumnValues();
    if (countsOnly && constants.contains("deltafast.rows")) {
      // A file that is read in splits is counted with its first one.
      long rows = file.start() == 0 ? ((Long) constants.apply("deltafast.rows")).longValue() : 0;
      return new ConstantRows(rows, partition, file.partitionValues(), batches);
    }
    Iterator<?> read = liveRows(file, constants);
    return hasStrings ? new StringBatches(read) : read;
  }

  private Iterator<?> liveRows(PartitionedFile file, Map<String, Object> constants) {
    if (!constants.contains("deltafast.deleted")) {
      return (Iterator<?>) plain.apply(file);
    }
    long[][] vectors = (long[][]) ((Broadcast<?>) constants.apply("deltafast.deleted")).value();
    long[] words = vectors[((Integer) constants.apply("deltafast.number")).intValue()];
    if (batches && readsAll && file.start() == 0) {
      // The rows from the first one on, even if the end of the file belongs to other splits.
      return new LiveBatches((Iterator<?>) plain.apply(file), words, -1, false);
    }
    Iterator<?> rows = (Iterator<?>) positioned.apply(file);
    boolean isAdded = position == required.length();
    return batches
        ? new LiveBatches(rows, words, position, isAdded)
        : new LiveRows(rows, words, position, isAdded ? projection() : null);
  }

  /** Removes the column with the row's position. */
  private UnsafeProjection projection() {
    List<Expression> columns = new ArrayList<>();
    for (int i = 0; i < required.length(); i++) {
      columns.add(new BoundReference(i, required.fields()[i].dataType(), true));
    }
    for (int i = 0; i < partition.length(); i++) {
      columns.add(new BoundReference(position + 1 + i, partition.fields()[i].dataType(), true));
    }
    return UnsafeProjection.create(SparkInternals.seqOf(columns));
  }
}
