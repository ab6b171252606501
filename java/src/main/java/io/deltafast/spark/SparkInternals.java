package io.deltafast.spark;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.unsafe.Platform;
import scala.Function1;
import scala.Option;
import scala.Product;
import scala.collection.Iterator;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Access to Spark's plans and errors. */
final class SparkInternals {
  /** The package of all releases of this library; each release has a package of its own below. */
  private static final String LIBRARY = "io.deltafast.spark.";

  private SparkInternals() {}

  /** Adds an optimizer rule to a session, if it has none of this class yet. */
  static void addRule(SparkSession session, Rule<LogicalPlan> rule) {
    ExperimentalMethods methods = session.experimental();
    List<Rule<LogicalPlan>> rules =
        new ArrayList<>(CollectionConverters.asJava(methods.extraOptimizations()));
    for (Rule<LogicalPlan> other : rules) {
      if (other.getClass() == rule.getClass()) {
        return;
      }
    }
    rules.add(rule);
    methods.extraOptimizations_$eq(seqOf(rules));
  }

  static <T> Seq<T> seqOf(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }

  /** Whether an object is of a class of deltafast, of which each release has its own. */
  static boolean isOfClass(Object object, String name) {
    return object != null
        && object.getClass().getName().startsWith(LIBRARY)
        && object.getClass().getSimpleName().equals(name);
  }

  /** The file relation of a plan that is nothing but one; null for other plans. */
  static HadoopFsRelation fileRelation(LogicalPlan plan) {
    if (!(plan instanceof LogicalRelation)) {
      return null;
    }
    Object relation = ((LogicalRelation) plan).relation();
    return relation instanceof HadoopFsRelation ? (HadoopFsRelation) relation : null;
  }

  /** The same file relation with another reader. */
  static HadoopFsRelation withFormat(HadoopFsRelation files, FileFormat format) {
    return copyOf(files, files.location(), format);
  }

  /** The same file relation over other files of the table. */
  static HadoopFsRelation withFiles(HadoopFsRelation files, FileIndex index) {
    return copyOf(files, index, files.fileFormat());
  }

  /** A relation of a plan with other files; the relation itself if this Spark cannot copy it. */
  static LogicalRelation withRelation(LogicalRelation relation, HadoopFsRelation files) {
    Object[] arguments = argumentsOf(relation);
    arguments[0] = files;
    Object copy = null;
    try {
      copy = copyOf(relation, arguments);
    } catch (ReflectiveOperationException error) {
      // Spark reads the files as they are.
    }
    return copy == null ? relation : (LogicalRelation) copy;
  }

  private static HadoopFsRelation copyOf(
      HadoopFsRelation files, FileIndex index, FileFormat format) {
    return new HadoopFsRelation(
        index,
        files.partitionSchema(),
        files.dataSchema(),
        files.bucketSpec(),
        format,
        files.options(),
        files.sparkSession());
  }

  /** The options of a reader with one more, or with another value of it. */
  @SuppressWarnings("unchecked")
  static scala.collection.immutable.Map<String, String> withOption(
      scala.collection.immutable.Map<String, String> options, String name, String value) {
    return (scala.collection.immutable.Map<String, String>)
        (scala.collection.immutable.Map<?, ?>) options.updated(name, value);
  }

  /** A function of a file as Spark's planner takes it. */
  @SuppressWarnings("unchecked")
  static Function1<PartitionedFile, Iterator<InternalRow>> fileReader(Function1<?, ?> function) {
    return (Function1<PartitionedFile, Iterator<InternalRow>>) function;
  }

  /**
   * The constructor arguments of an object of a case class; their number differs between releases
   * of Spark.
   */
  static Object[] argumentsOf(Product object) {
    Object[] arguments = new Object[object.productArity()];
    for (int i = 0; i < arguments.length; i++) {
      arguments[i] = object.productElement(i);
    }
    return arguments;
  }

  /**
   * A copy of an object of a case class with other constructor arguments; null if its class has no
   * such method.
   */
  static Object copyOf(Object object, Object[] arguments) throws ReflectiveOperationException {
    for (Method method : object.getClass().getMethods()) {
      if (method.getName().equals("copy")
          && method.getParameterTypes().length == arguments.length) {
        return method.invoke(object, arguments);
      }
    }
    return null;
  }

  /** A copy of an object of a case class in which some fields have other values. */
  static Object copyWith(Product object, String[] names, Object[] values) {
    Object[] arguments = argumentsOf(object);
    for (int i = 0; i < arguments.length; i++) {
      for (int n = 0; n < names.length; n++) {
        if (object.productElementName(i).equals(names[n])) {
          arguments[i] = values[n];
        }
      }
    }
    try {
      return copyOf(object, arguments);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  /**
   * Raises an AnalysisException, as Spark does for an invalid query or table; PySpark shows it as
   * one line. Never returns.
   */
  static RuntimeException raiseAnalysisException(String message) {
    Throwable error =
        new AnalysisException(
            message,
            Option.empty(),
            Option.empty(),
            Option.empty(),
            Option.empty(),
            Map$.MODULE$.empty(),
            new QueryContext[0]);
    Platform.throwException(error);
    return null;
  }
}
