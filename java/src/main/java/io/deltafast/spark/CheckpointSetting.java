package io.deltafast.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.Utils;

/** The setting of a session that names the class for checkpoint files of its streams. */
final class CheckpointSetting {
  static final String KEY = "spark.sql.streaming.checkpointFileManagerClass";

  private CheckpointSetting() {}

  /**
   * Sets {@link LocalCheckpointFiles}, unless the session has another class already.
   *
   * <p>It is named only: Spark 4.0 lacks its interface. Executors in other processes need not have
   * it, so a session with such executors is left as it is.
   */
  static void chooseFor(SparkSession session) {
    if (!session.sparkContext().isLocal() || session.conf().contains(KEY)) {
      return;
    }
    String name = CheckpointSetting.class.getPackageName() + ".LocalCheckpointFiles";
    try {
      // The loader by which Spark will find it.
      Class.forName(name, true, Utils.getContextOrSparkClassLoader());
    } catch (ClassNotFoundException error) {
      return;
    } catch (LinkageError error) {
      return;
    }
    session.conf().set(KEY, name);
  }
}
