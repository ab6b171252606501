package io.deltafast.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.StructType;
import scala.Product;
import scala.collection.Iterable;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction2;

/**
 * Spark's parser, before which Python reads each statement: those of Delta's SQL become commands
 * and queries of deltafast.
 *
 * <p>It is a proxy, since the methods of the interface differ between releases of Spark.
 */
public final class StatementParser implements InvocationHandler {
  /** The beginning of statements that are not read by Python, which it also knows. */
  private static final String MARK = "/* Spark's own */ ";

  private static final String NO_COLUMNS = new StructType().json();

  /** The methods that parse a statement. */
  private static final List<String> PLANS = Arrays.asList("parsePlan", "parsePlanWithParameters");

  private static volatile StatementHandler handler;
  private final SparkSession session;
  private final ParserInterface parser;

  private StatementParser(SparkSession session, ParserInterface parser) {
    this.session = session;
    this.parser = parser;
  }

  /** Sets the object that reads and runs statements, for every session; null for none. */
  public static void setHandler(StatementHandler newHandler) {
    handler = newHandler;
  }

  /** The parser with Python before it. */
  public static ParserInterface before(SparkSession session, ParserInterface parser) {
    if (isOurs(parser)) {
      return parser;
    }
    return (ParserInterface)
        Proxy.newProxyInstance(
            StatementParser.class.getClassLoader(),
            new Class<?>[] {ParserInterface.class},
            new StatementParser(session, parser));
  }

  /** Sets the parser of a running session, and of those that are derived from it. */
  public static void install(org.apache.spark.sql.classic.SparkSession session) throws Exception {
    SessionState state = session.sessionState();
    if (isOurs(state.sqlParser())) {
      return;
    }
    Field field = SessionState.class.getDeclaredField("sqlParser");
    field.setAccessible(true);
    field.set(state, before(session, state.sqlParser()));
    session.extensions().injectParser(new ParserExtension<>());
  }

  private static boolean isOurs(ParserInterface parser) {
    return Proxy.isProxyClass(parser.getClass())
        && Proxy.getInvocationHandler(parser) instanceof StatementParser;
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    Object first = arguments == null ? null : arguments[0];
    StatementHandler current = handler;
    if (first instanceof String && ((String) first).startsWith(MARK)) {
      arguments[0] = ((String) first).substring(MARK.length());
    } else if (current != null && PLANS.contains(method.getName())) {
      LogicalPlan plan = read(current, (String) first, arguments);
      if (plan != null) {
        return plan;
      }
    }
    try {
      return method.invoke(parser, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }

  /** The plan of a statement; null if it is Spark's own, as it is. */
  private LogicalPlan read(StatementHandler current, String text, Object[] arguments)
      throws ParseException {
    String parameters =
        arguments.length > 1 ? jsonOf(((Product) arguments[1]).productElement(0)) : "";
    StatementReading reading = new StatementReading();
    FormatFailure failure = new FormatFailure();
    current.read(session, text, parameters, reading, failure);
    if (failure.isSet()) {
      return new StatementCommand(text, NO_COLUMNS, failure);
    }
    if (reading.query() != null) {
      return ((org.apache.spark.sql.classic.Dataset<Row>) reading.query())
          .queryExecution()
          .analyzed();
    }
    if (reading.columns() != null) {
      return new StatementCommand(reading.text(), reading.columns(), failure);
    }
    return reading.text() == null ? null : parser.parsePlan(reading.text());
  }

  /** Parameters, which are a map or a sequence of expressions, in SQL as JSON. */
  private static String jsonOf(Object parameters) {
    if (((Iterable<?>) parameters).isEmpty()) {
      return "";
    }
    Object values;
    if (parameters instanceof scala.collection.Map) {
      Map<Object, Object> named = new HashMap<>();
      for (Map.Entry<?, ?> entry :
          CollectionConverters.asJava((scala.collection.Map<?, ?>) parameters).entrySet()) {
        named.put(entry.getKey(), ((Expression) entry.getValue()).sql());
      }
      values = named;
    } else {
      List<String> positional = new ArrayList<>();
      for (Object value : CollectionConverters.asJava((scala.collection.Seq<?>) parameters)) {
        positional.add(((Expression) value).sql());
      }
      values = positional;
    }
    try {
      return new ObjectMapper().writeValueAsString(values);
    } catch (JsonProcessingException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Runs a statement that changes tables, and returns its result. */
  static List<Row> rowsOf(SparkSession session, String text) {
    StatementHandler current = handler;
    DeltaStreamProvider.checkEnabled(current);
    FormatFailure failure = new FormatFailure();
    Dataset<Row> rows = current.run(session, text, failure);
    failure.raise();
    return rows.columns().length == 0 ? new ArrayList<>() : rows.collectAsList();
  }

  /**
   * Puts Python before the parser of a new session.
   *
   * <p>The type parameters stand for the session and the parser; Janino makes no bridge methods, so
   * that `apply` must have the erased signature of Scala's class.
   */
  public static final class ParserExtension<S, P> extends AbstractFunction2<S, P, P> {
    @Override
    @SuppressWarnings("unchecked")
    public P apply(S session, P parser) {
      Object before = before((SparkSession) session, (ParserInterface) parser);
      return (P) before;
    }
  }
}
