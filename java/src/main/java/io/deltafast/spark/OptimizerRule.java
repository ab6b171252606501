package io.deltafast.spark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * A rule of Spark's optimizer.
 *
 * <p>`P` is always {@link LogicalPlan}. It is a parameter since Janino makes no bridge methods, so
 * that `apply` must have the erased signature of Spark's class.
 */
abstract class OptimizerRule<P extends TreeNode<?>> extends Rule<P> {
  /** The plan that replaces a plan, or the plan itself. */
  abstract LogicalPlan optimize(LogicalPlan plan);

  @Override
  @SuppressWarnings("unchecked")
  public P apply(P plan) {
    TreeNode<?> node = plan;
    TreeNode<?> optimized = optimize((LogicalPlan) node);
    return (P) optimized;
  }
}
