package io.deltafast.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.reflect.ClassTag$;

/** Deletion vectors by their numbers, in groups, and the first number of each group. */
final class DeletionVectors {
  /** Number of words of deletion vectors (4 MiB) that are broadcast together. */
  private static final int GROUP_WORDS = 1 << 19;

  final long[][][] groups;
  final int[] starts;
  private final Broadcast<?>[] broadcasts;

  /** `stream` holds them; it is empty if there are none or a join removes deleted rows. */
  DeletionVectors(String stream) {
    List<long[][]> complete = new ArrayList<>();
    List<long[]> group = new ArrayList<>();
    InternalRow[] rows = stream.isEmpty() ? new InternalRow[0] : ArrowRows.read(stream);
    int[] begins = new int[rows.length];
    int words = 0;
    for (int i = 0; i < rows.length; i++) {
      long[] vector = rows[i].getArray(0).toLongArray();
      if (group.isEmpty()) {
        begins[complete.size()] = i;
      }
      group.add(vector);
      words += vector.length;
      if (words >= GROUP_WORDS || i == rows.length - 1) {
        long[][] vectors = new long[group.size()][];
        group.toArray(vectors);
        complete.add(vectors);
        group.clear();
        words = 0;
      }
    }
    groups = new long[complete.size()][][];
    complete.toArray(groups);
    starts = Arrays.copyOf(begins, groups.length);
    broadcasts = new Broadcast<?>[groups.length];
  }

  /** The group of a number. */
  int groupOf(int number) {
    int found = Arrays.binarySearch(starts, number);
    return found < 0 ? -found - 2 : found;
  }

  /** A group, broadcast to the executors that need a vector of it. */
  synchronized Broadcast<?> broadcastOf(int group, SparkContext context) {
    if (broadcasts[group] == null) {
      broadcasts[group] = context.broadcast(groups[group], ClassTag$.MODULE$.apply(long[][].class));
    }
    return broadcasts[group];
  }
}
