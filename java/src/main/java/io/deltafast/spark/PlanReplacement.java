package io.deltafast.spark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * Replaces some nodes of a plan.
 *
 * <p>`P` is always {@link LogicalPlan}; see {@link OptimizerRule}.
 */
abstract class PlanReplacement<P> extends AbstractPartialFunction<P, P> {
  /** The plan that replaces a node; null to keep it. */
  abstract LogicalPlan replacement(LogicalPlan node);

  @Override
  public boolean isDefinedAt(P node) {
    Object plan = node;
    return replacement((LogicalPlan) plan) != null;
  }

  // Spark calls this method only.
  @Override
  @SuppressWarnings("unchecked")
  public <A extends P, B> B applyOrElse(A node, Function1<A, B> otherwise) {
    Object plan = node;
    Object replaced = replacement((LogicalPlan) plan);
    return replaced == null ? otherwise.apply(node) : (B) replaced;
  }
}
