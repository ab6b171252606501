package io.deltafast.spark;

import org.apache.spark.sql.vectorized.ColumnVector;

/** The bitmap of a file. */
final class DeletionBitmap {
  private DeletionBitmap() {}

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

  /**
   * Writes the rows of such a batch from `first` on that are not deleted to `kept`, from `first`
   * on; returns the new count.
   */
  static int liveRows(long[] words, long start, int first, int rows, int[] kept) {
    int count = first;
    int i = first;
    while (i < rows) {
      long row = start + i;
      int word = (int) (row >>> 6);
      int end = (int) Math.min(rows, i + 64 - (row & 63));
      long deleted = word < words.length ? words[word] >>> row : 0;
      for (; i < end; i++) {
        kept[count] = i;
        count += (int) (~deleted & 1);
        deleted >>>= 1;
      }
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
