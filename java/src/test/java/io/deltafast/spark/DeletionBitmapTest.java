package io.deltafast.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class DeletionBitmapTest {
  private static final long[] WORDS = {1L << 3 | 1L << 63, 0, 1L};

  @Test
  void rowsAfterTheLastWordAreNotDeleted() {
    assertTrue(DeletionBitmap.isDeleted(WORDS, 3));
    assertTrue(DeletionBitmap.isDeleted(WORDS, 63));
    assertTrue(DeletionBitmap.isDeleted(WORDS, 128));
    assertFalse(DeletionBitmap.isDeleted(WORDS, 129));
    assertFalse(DeletionBitmap.isDeleted(WORDS, 1L << 40));
  }

  @Test
  void theFirstDeletedRowIsFoundAcrossWords() {
    assertEquals(3, DeletionBitmap.firstDeleted(WORDS, 0, 100));
    assertEquals(59, DeletionBitmap.firstDeleted(WORDS, 4, 100));
    assertEquals(64, DeletionBitmap.firstDeleted(WORDS, 64, 100));
    assertEquals(10, DeletionBitmap.firstDeleted(WORDS, 129, 10));
    assertEquals(3, DeletionBitmap.firstDeleted(WORDS, 0, 3));
  }

  @Test
  void liveRowsAreListedFromTheFirstDeletedOne() {
    int[] kept = new int[8];
    int count = DeletionBitmap.liveRows(WORDS, 0, 3, 8, kept);
    assertEquals(7, count);
    assertArrayEquals(new int[] {4, 5, 6, 7}, Arrays.copyOfRange(kept, 3, count));
  }

  @Test
  void liveRowsAreThoseThatAreNotDeletedInAnyWord() {
    for (long start : new long[] {0, 1, 60, 63, 64, 100, 127, 190, 1L << 40}) {
      for (int rows : new int[] {1, 63, 64, 65, 200}) {
        for (int first = 0; first <= Math.min(rows, 70); first += 7) {
          int[] kept = new int[rows];
          int count = DeletionBitmap.liveRows(WORDS, start, first, rows, kept);
          int[] expected =
              IntStream.range(first, rows)
                  .filter(row -> !DeletionBitmap.isDeleted(WORDS, start + row))
                  .toArray();
          assertArrayEquals(expected, Arrays.copyOfRange(kept, first, count));
        }
      }
    }
  }
}
