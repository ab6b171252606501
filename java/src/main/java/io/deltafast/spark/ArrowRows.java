package io.deltafast.spark;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Small tables that Python passes as Arrow streams in files. */
public final class ArrowRows {
  private ArrowRows() {}

  /** A small table as a frame whose rows are in the plan. */
  public static Dataset<Row> frame(SparkSession session, StructType schema, String file) {
    LocalRelation plan =
        new LocalRelation(
            attributes(schema),
            SparkInternals.seqOf(Arrays.asList(read(file))),
            false,
            Option.empty());
    return Dataset$.MODULE$.ofRows(session, plan);
  }

  private static Seq<Attribute> attributes(StructType schema) {
    List<Attribute> out = new ArrayList<>();
    for (Attribute column : CollectionConverters.asJava(DataTypeUtils.toAttributes(schema))) {
      out.add(column);
    }
    return SparkInternals.seqOf(out);
  }

  /** Reads the rows of a stream. */
  static InternalRow[] read(String file) {
    List<InternalRow> out = new ArrayList<>();
    try {
      InputStream stream = new FileInputStream(file);
      RootAllocator allocator = new RootAllocator(Long.MAX_VALUE);
      ArrowStreamReader reader = new ArrowStreamReader(stream, allocator);
      try {
        VectorSchemaRoot batch = reader.getVectorSchemaRoot();
        while (reader.loadNextBatch()) {
          addRows(batch, out);
        }
      } finally {
        reader.close();
        allocator.close();
        stream.close();
      }
    } catch (IOException error) {
      throw new RuntimeException("the list of files cannot be read: " + error.getMessage(), error);
    }
    InternalRow[] rows = new InternalRow[out.size()];
    out.toArray(rows);
    return rows;
  }

  private static void addRows(VectorSchemaRoot batch, List<InternalRow> out) {
    List<ColumnVector> columns = new ArrayList<>();
    for (FieldVector vector : batch.getFieldVectors()) {
      columns.add(new ArrowColumnVector(vector));
    }
    ColumnVector[] vectors = new ColumnVector[columns.size()];
    columns.toArray(vectors);
    Iterator<?> rows = new ColumnarBatch(vectors, batch.getRowCount()).rowIterator();
    while (rows.hasNext()) {
      out.add(((InternalRow) rows.next()).copy());
    }
  }
}
