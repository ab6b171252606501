package io.deltafast.spark;

import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;

/** Streams that read tables, planned by Python. */
public class DeltaStreamProvider implements StreamSourceProvider {
  private static volatile StreamHandler streamHandler;

  /** Sets the object that plans streams, for every instance; null for none. */
  public void setStreamHandler(StreamHandler newHandler) {
    streamHandler = newHandler;
  }

  private static StreamHandler currentStreamHandler() {
    StreamHandler current = streamHandler;
    checkEnabled(current);
    return current;
  }

  /** Raises an error if the handler is null, as it is after `disable`. */
  static void checkEnabled(Object handler) {
    if (handler == null) {
      throw SparkInternals.raiseAnalysisException(
          "deltafast.spark.enable was taken back in this session: format(\"delta\") is not there");
    }
  }

  /** Chooses the class for checkpoint files of the streams of a session. */
  public void chooseCheckpointFiles(SparkSession session) {
    CheckpointSetting.chooseFor(session);
  }

  /** A schema that the program gives has been compared with the table's. */
  @Override
  public Tuple2<String, StructType> sourceSchema(
      SQLContext context, Option<StructType> schema, String provider, Map<String, String> options) {
    FormatFailure failure = new FormatFailure();
    StructType columns =
        currentStreamHandler()
            .streamSchema(context.sparkSession(), CollectionConverters.asJava(options), failure);
    failure.raise();
    CheckpointSetting.chooseFor(context.sparkSession());
    return new Tuple2<String, StructType>("delta", columns);
  }

  @Override
  public Source createSource(
      SQLContext context,
      String metadata,
      Option<StructType> schema,
      String provider,
      Map<String, String> options) {
    FormatFailure failure = new FormatFailure();
    java.util.Map<String, String> given = CollectionConverters.asJava(options);
    StreamPlanner planner =
        currentStreamHandler().streamPlanner(context.sparkSession(), given, metadata, failure);
    failure.raise();
    return new DeltaStreamSource(planner, DeltaProvider.pathOf(given));
  }
}
