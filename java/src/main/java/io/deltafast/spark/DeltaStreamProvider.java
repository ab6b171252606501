package io.deltafast.spark;

import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;

/** Streams that read tables, planned by Python. */
public final class DeltaStreamProvider implements StreamSourceProvider {
  private static volatile StreamHandler handler;

  /** Sets the object that plans streams, for every instance. */
  public void setHandler(StreamHandler newHandler) {
    handler = newHandler;
  }

  /** A schema that the program gives has been compared with the table's. */
  @Override
  public Tuple2<String, StructType> sourceSchema(
      SQLContext context, Option<StructType> schema, String provider, Map<String, String> options) {
    return new Tuple2<String, StructType>("delta", columns(context, options));
  }

  private static StructType columns(SQLContext context, Map<String, String> options) {
    FormatFailure failure = new FormatFailure();
    StructType found =
        handler.streamSchema(context.sparkSession(), CollectionConverters.asJava(options), failure);
    failure.raise();
    return found;
  }

  @Override
  public Source createSource(
      SQLContext context,
      String metadata,
      Option<StructType> schema,
      String provider,
      Map<String, String> options) {
    StructType columns = columns(context, options);
    FormatFailure failure = new FormatFailure();
    java.util.Map<String, String> given = CollectionConverters.asJava(options);
    StreamPlanner planner = handler.streamPlanner(context.sparkSession(), given, failure);
    failure.raise();
    return new DeltaStreamSource(planner, columns, DeltaProvider.pathOf(given));
  }
}
