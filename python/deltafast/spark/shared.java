/** Access to Spark's plans and errors. This file is appended to the sources that include it: names are complete, not imported. */
class SparkInternals {
  /** Adds an optimizer rule to a session, if it has none of this class yet. */
  static void addRule(Object session, org.apache.spark.sql.catalyst.rules.Rule rule) {
    org.apache.spark.sql.ExperimentalMethods methods = ((org.apache.spark.sql.classic.SparkSession) session).experimental();
    java.util.ArrayList rules = new java.util.ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(methods.extraOptimizations()));
    for (java.util.Iterator it = rules.iterator(); it.hasNext();) {
      if (it.next().getClass() == rule.getClass()) {
        return;
      }
    }
    rules.add(rule);
    methods.extraOptimizations_$eq(seqOf(rules));
  }

  static scala.collection.immutable.Seq seqOf(java.util.List list) {
    return scala.jdk.javaapi.CollectionConverters.asScala(list).toSeq();
  }

  /** Whether an object is of a class of deltafast, which each source and each release compiles separately. */
  static boolean isOfClass(Object object, String name) {
    return object != null && object.getClass().getSimpleName().equals(name);
  }

  /** The file relation of a plan that is nothing but one; null for other plans. */
  static org.apache.spark.sql.execution.datasources.HadoopFsRelation fileRelation(Object plan) {
    if (!(plan instanceof org.apache.spark.sql.execution.datasources.LogicalRelation)) {
      return null;
    }
    Object relation = ((org.apache.spark.sql.execution.datasources.LogicalRelation) plan).relation();
    return relation instanceof org.apache.spark.sql.execution.datasources.HadoopFsRelation
        ? (org.apache.spark.sql.execution.datasources.HadoopFsRelation) relation : null;
  }

  /** The same file relation with another reader. */
  static org.apache.spark.sql.execution.datasources.HadoopFsRelation withFormat(
      org.apache.spark.sql.execution.datasources.HadoopFsRelation files, org.apache.spark.sql.execution.datasources.FileFormat format) {
    return new org.apache.spark.sql.execution.datasources.HadoopFsRelation(files.location(), files.partitionSchema(), files.dataSchema(),
        files.bucketSpec(), format, files.options(), files.sparkSession());
  }

  /** The constructor arguments of an object of a case class; their number differs between releases of Spark. */
  static Object[] argumentsOf(scala.Product object) {
    Object[] arguments = new Object[object.productArity()];
    for (int i = 0; i < arguments.length; i++) {
      arguments[i] = object.productElement(i);
    }
    return arguments;
  }

  /** A copy of an object of a case class with other constructor arguments; null if its class has no such method. */
  static Object copyOf(Object object, Object[] arguments) throws ReflectiveOperationException {
    java.lang.reflect.Method[] methods = object.getClass().getMethods();
    for (int i = 0; i < methods.length; i++) {
      if (methods[i].getName().equals("copy") && methods[i].getParameterTypes().length == arguments.length) {
        return methods[i].invoke(object, arguments);
      }
    }
    return null;
  }

  /** Raises an AnalysisException, as Spark does for an invalid query or table; PySpark shows it as one line. Never returns. */
  static RuntimeException raiseAnalysisException(String message) {
    Object error = new org.apache.spark.sql.AnalysisException(message, scala.Option.empty(), scala.Option.empty(),
        scala.Option.empty(), scala.Option.empty(), scala.collection.immutable.Map$.MODULE$.empty(), new org.apache.spark.QueryContext[0]);
    org.apache.spark.unsafe.Platform.throwException((Throwable) error);
    return null;
  }
}

/** Rows or batches that are made from those of a reader, which is closed at the end. */
abstract class ReaderIterator extends scala.collection.AbstractIterator implements java.io.Closeable {
  protected final scala.collection.Iterator reader;

  ReaderIterator(scala.collection.Iterator reader) {
    this.reader = reader;
  }

  public void close() throws java.io.IOException {
    if (reader instanceof java.io.Closeable) {
      ((java.io.Closeable) reader).close();
    }
  }
}

/** How Spark's column vectors store values of a type. */
class PhysicalKind {
  static final int STRUCT = 0;
  static final int BOOLEAN = 1;
  static final int BYTE = 2;
  static final int SHORT = 3;
  static final int INT = 4;
  static final int LONG = 5;
  static final int FLOAT = 6;
  static final int DOUBLE = 7;
  static final int BYTES = 8;
  static final int ARRAY = 9;

  /** The kind of a type; -1 if that is unknown. */
  static int of(org.apache.spark.sql.types.DataType type) {
    if (type instanceof org.apache.spark.sql.types.DecimalType) {
      return org.apache.spark.sql.types.DecimalType.is32BitDecimalType(type) ? INT
          : org.apache.spark.sql.types.DecimalType.is64BitDecimalType(type) ? LONG : BYTES;
    }
    String name = org.apache.spark.sql.catalyst.types.PhysicalDataType$.MODULE$.apply(type).getClass().getSimpleName();
    return name.startsWith("PhysicalStruct") || name.startsWith("PhysicalVariant") || name.startsWith("PhysicalCalendarInterval") ? STRUCT
        : name.startsWith("PhysicalBoolean") ? BOOLEAN
        : name.startsWith("PhysicalByte") ? BYTE
        : name.startsWith("PhysicalShort") ? SHORT
        : name.startsWith("PhysicalInteger") ? INT
        : name.startsWith("PhysicalLong") ? LONG
        : name.startsWith("PhysicalFloat") ? FLOAT
        : name.startsWith("PhysicalDouble") ? DOUBLE
        : name.startsWith("PhysicalString") || name.startsWith("PhysicalBinary") ? BYTES
        : name.startsWith("PhysicalArray") || name.startsWith("PhysicalMap") ? ARRAY : -1;
  }
}
