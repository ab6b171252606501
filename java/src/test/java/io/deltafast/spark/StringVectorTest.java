package io.deltafast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.Dictionary;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.junit.jupiter.api.Test;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

class StringVectorTest {
  /** The entry of an id is a prefix with that number; counts how often one is decoded. */
  private static final class CountingDictionary implements Dictionary {
    private final String prefix;
    private int decoded;

    CountingDictionary(String prefix) {
      this.prefix = prefix;
    }

    @Override
    public byte[] decodeToBinary(int id) {
      decoded++;
      return (prefix + id).getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public int decodeToInt(int id) {
      throw new UnsupportedOperationException();
    }

    @Override
    public long decodeToLong(int id) {
      throw new UnsupportedOperationException();
    }

    @Override
    public float decodeToFloat(int id) {
      throw new UnsupportedOperationException();
    }

    @Override
    public double decodeToDouble(int id) {
      throw new UnsupportedOperationException();
    }
  }

  private static void setDictionary(OnHeapColumnVector column, Dictionary dictionary, int... ids) {
    WritableColumnVector rows = column.reserveDictionaryIds(ids.length);
    for (int i = 0; i < ids.length; i++) {
      rows.putInt(i, ids[i]);
    }
    column.setDictionary(dictionary);
  }

  @Test
  void anEntryIsDecodedOncePerBatch() {
    try (OnHeapColumnVector column = new OnHeapColumnVector(4, DataTypes.StringType)) {
      CountingDictionary dictionary = new CountingDictionary("a");
      setDictionary(column, dictionary, 2, 5, 2, 2);
      StringVector strings = new StringVector(column);
      strings.setBatch();
      assertEquals("a2", strings.getUTF8String(0).toString());
      assertEquals("a5", strings.getUTF8String(1).toString());
      assertSame(strings.getUTF8String(0), strings.getUTF8String(3));
      assertEquals(2, dictionary.decoded);
      assertEquals("a5", new String(strings.getBinary(1), StandardCharsets.UTF_8));
    }
  }

  @Test
  void anotherBatchHasAnotherDictionary() {
    try (OnHeapColumnVector column = new OnHeapColumnVector(2, DataTypes.StringType)) {
      StringVector strings = new StringVector(column);
      setDictionary(column, new CountingDictionary("a"), 1, 0);
      strings.setBatch();
      assertEquals("a1", strings.getUTF8String(0).toString());
      setDictionary(column, new CountingDictionary("b"), 1, 0);
      strings.setBatch();
      assertEquals("b1", strings.getUTF8String(0).toString());
      column.setDictionary(null);
      column.putByteArray(0, "plain".getBytes(StandardCharsets.UTF_8));
      strings.setBatch();
      assertEquals("plain", strings.getUTF8String(0).toString());
    }
  }

  @Test
  void idsOfNullsAreNotDecoded() {
    try (OnHeapColumnVector column = new OnHeapColumnVector(2, DataTypes.StringType)) {
      CountingDictionary dictionary = new CountingDictionary("a");
      setDictionary(column, dictionary, -1, 3);
      column.putNull(0);
      StringVector strings = new StringVector(column);
      strings.setBatch();
      assertTrue(strings.hasNull());
      assertEquals(1, strings.numNulls());
      assertTrue(strings.isNullAt(0));
      assertNull(strings.getUTF8String(0));
      assertEquals("a3", strings.getUTF8String(1).toString());
      assertEquals(1, dictionary.decoded);
    }
  }

  @Test
  void entriesBehindTheKeptOnesAreDecodedForEachRow() {
    try (OnHeapColumnVector column = new OnHeapColumnVector(3, DataTypes.StringType)) {
      CountingDictionary dictionary = new CountingDictionary("a");
      setDictionary(column, dictionary, 4095, 4096, 4096);
      StringVector strings = new StringVector(column);
      strings.setBatch();
      assertSame(strings.getUTF8String(0), strings.getUTF8String(0));
      assertEquals("a4096", strings.getUTF8String(1).toString());
      assertNotSame(strings.getUTF8String(1), strings.getUTF8String(2));
      assertEquals(1 + 3, dictionary.decoded);
    }
  }

  @Test
  void vectorsOfTheReaderStayOpenBetweenBatches() {
    try (OnHeapColumnVector column = new OnHeapColumnVector(1, DataTypes.StringType)) {
      setDictionary(column, new CountingDictionary("a"), 7);
      StringVector strings = new StringVector(column);
      strings.setBatch();
      strings.closeIfFreeable();
      assertEquals("a7", strings.getUTF8String(0).toString());
    }
  }

  @Test
  void onlyStringsOfTheReaderAreReplaced() {
    try (OnHeapColumnVector text = new OnHeapColumnVector(2, DataTypes.StringType);
        OnHeapColumnVector number = new OnHeapColumnVector(2, DataTypes.LongType);
        ConstantColumnVector constant = new ConstantColumnVector(2, DataTypes.StringType)) {
      setDictionary(text, new CountingDictionary("a"), 1, 0);
      ColumnarBatch batch = new ColumnarBatch(new ColumnVector[] {text, number, constant}, 2);
      Iterator<?> reader = CollectionConverters.asScala(List.of(batch, batch)).iterator();
      StringBatches batches = new StringBatches(reader);
      ColumnarBatch first = (ColumnarBatch) batches.next();
      assertEquals("a1", first.column(0).getUTF8String(0).toString());
      assertSame(number, first.column(1));
      assertSame(constant, first.column(2));
      batch.setNumRows(1);
      setDictionary(text, new CountingDictionary("b"), 1);
      ColumnarBatch second = (ColumnarBatch) batches.next();
      assertEquals(1, second.numRows());
      assertEquals("b1", second.column(0).getUTF8String(0).toString());
    }
  }
}
