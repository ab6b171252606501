package io.deltafast.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.spark.unsafe.Platform;

/**
 * Calls constructors and static methods of classes that Python has as objects.
 *
 * <p>Python finds neither by the name of the class, whose loader is not the one of its gateway. It
 * sends each call and each element of an array by itself, hence methods for each number of
 * arguments.
 */
public final class Invoker {
  public Object construct(Class<?> kind) {
    return created(kind);
  }

  public Object construct(Class<?> kind, Object a) {
    return created(kind, a);
  }

  public Object construct(Class<?> kind, Object a, Object b, Object c, Object d) {
    return created(kind, a, b, c, d);
  }

  public Object construct(
      Class<?> kind,
      Object a,
      Object b,
      Object c,
      Object d,
      Object e,
      Object f,
      Object g,
      Object h) {
    return created(kind, a, b, c, d, e, f, g, h);
  }

  public Object callStatic(Class<?> kind, String method, Object a) {
    return called(kind, method, a);
  }

  public Object callStatic(Class<?> kind, String method, Object a, Object b) {
    return called(kind, method, a, b);
  }

  public Object callStatic(Class<?> kind, String method, Object a, Object b, Object c) {
    return called(kind, method, a, b, c);
  }

  private static Object created(Class<?> kind, Object... arguments) {
    try {
      return kind.getConstructors()[0].newInstance(arguments);
    } catch (InvocationTargetException error) {
      Platform.throwException(error.getCause());
    } catch (ReflectiveOperationException error) {
      throw new RuntimeException(error);
    }
    return null;
  }

  private static Object called(Class<?> kind, String name, Object... arguments) {
    try {
      for (Method method : kind.getDeclaredMethods()) {
        if (method.getName().equals(name)) {
          return method.invoke(null, arguments);
        }
      }
      throw new NoSuchMethodException(kind.getName() + "." + name);
    } catch (InvocationTargetException error) {
      Platform.throwException(error.getCause());
    } catch (ReflectiveOperationException error) {
      throw new RuntimeException(error);
    }
    return null;
  }
}
