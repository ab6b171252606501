package io.deltafast.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * The extension of a session that is named in `spark.sql.extensions`: its parser gives statements
 * to Python, once `enable` is called.
 *
 * <p>The name is the same in all releases of deltafast; `enable` does the same for a session that
 * runs.
 */
public final class DeltafastExtension extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectParser(new StatementParser.ParserExtension<>());
    return BoxedUnit.UNIT;
  }
}
