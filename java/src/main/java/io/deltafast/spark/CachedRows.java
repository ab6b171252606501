package io.deltafast.spark;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CachedData;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** The rows that Spark has cached of tables: those of frames, views and tables of a catalog. */
public final class CachedRows {
  private CachedRows() {}

  /**
   * Drops the cached rows that depend on the newest version of a table, which has changed; the next
   * query that needs them caches them again. Rows of older versions stay.
   */
  public static void refresh(SparkSession session, String root)
      throws ReflectiveOperationException {
    CacheManager manager = session.sharedState().cacheManager();
    if (manager.isEmpty()) {
      return;
    }
    Path location = new Path(root);
    List<LogicalPlan> dependents = new ArrayList<>();
    List<DeltaFileIndex> indexes = new ArrayList<>();
    for (LogicalPlan plan : cachedPlans(manager)) {
      int before = indexes.size();
      addIndexes(plan, location, indexes);
      if (indexes.size() > before) {
        dependents.add(plan);
      }
    }
    for (DeltaFileIndex index : indexes) {
      index.updateToNewest();
    }
    recache(manager, session, dependents);
    for (DeltaFileIndex index : indexes) {
      index.forgetOlderVersions();
    }
  }

  /**
   * Drops the rows of some plans, then plans them again: while one is planned, none may use the old
   * rows of another. Spark's public methods select plans one by one.
   */
  private static void recache(
      CacheManager manager, SparkSession session, List<LogicalPlan> dependents)
      throws ReflectiveOperationException {
    for (Method method : CacheManager.class.getDeclaredMethods()) {
      if (method.getName().equals("recacheByCondition")) {
        method.setAccessible(true);
        method.invoke(manager, session, new PlanCondition(dependents));
        return;
      }
    }
    throw new NoSuchMethodException("CacheManager.recacheByCondition");
  }

  /** Whether cached rows are those of one of some plans. */
  static final class PlanCondition extends AbstractFunction1<Object, Object> {
    private final List<LogicalPlan> plans;

    PlanCondition(List<LogicalPlan> plans) {
      this.plans = plans;
    }

    @Override
    public Object apply(Object cached) {
      for (LogicalPlan plan : plans) {
        if (plan == ((CachedData) cached).plan()) {
          return Boolean.TRUE;
        }
      }
      return Boolean.FALSE;
    }
  }

  private static List<LogicalPlan> cachedPlans(CacheManager manager)
      throws ReflectiveOperationException {
    Field field = CacheManager.class.getDeclaredField("cachedData");
    field.setAccessible(true);
    List<LogicalPlan> plans = new ArrayList<>();
    for (Object cached : CollectionConverters.asJava((Seq<?>) field.get(manager))) {
      plans.add(((CachedData) cached).plan());
    }
    return plans;
  }

  /** Adds the indexes of a plan, and of its subqueries, that follow the table at a location. */
  private static void addIndexes(LogicalPlan plan, Path location, List<DeltaFileIndex> indexes) {
    for (Object leaf : CollectionConverters.asJava(plan.collectLeaves())) {
      Object relation =
          leaf instanceof LogicalRelation ? ((LogicalRelation) leaf).relation() : null;
      if (relation instanceof FrameRelation) {
        addIndexes(((FrameRelation) relation).plan(), location, indexes);
      }
      Object index =
          relation instanceof HadoopFsRelation ? ((HadoopFsRelation) relation).location() : null;
      if (index instanceof DeltaFileIndex && ((DeltaFileIndex) index).followsTable(location)) {
        indexes.add((DeltaFileIndex) index);
      }
    }
    for (Object subquery : CollectionConverters.asJava(plan.subqueriesAll())) {
      addIndexes((LogicalPlan) subquery, location, indexes);
    }
  }
}
