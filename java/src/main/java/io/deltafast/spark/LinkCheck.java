package io.deltafast.spark;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.Set;

/**
 * Checks that this Spark has all that the compiled classes use.
 *
 * <p>Java itself links a call when it is first executed, so that a method that a release of Spark
 * does not have would fail in the middle of a query. The check reads the constant pools of the
 * classes and resolves each class, method and field in them.
 */
public final class LinkCheck {
  private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();
  private static final int UTF8 = 1;
  private static final int INTEGER = 3;
  private static final int FLOAT = 4;
  private static final int LONG = 5;
  private static final int DOUBLE = 6;
  private static final int CLASS = 7;
  private static final int STRING = 8;
  private static final int FIELD = 9;
  private static final int METHOD = 10;
  private static final int INTERFACE_METHOD = 11;
  private static final int METHOD_HANDLE = 15;
  private static final int METHOD_TYPE = 16;

  private final ClassLoader loader;
  private final String library;
  private final Set<String> found = new HashSet<>();
  private final Deque<String> pending = new ArrayDeque<>();

  private LinkCheck(String name, ClassLoader loader) {
    this.loader = loader;
    library = name.substring(0, name.lastIndexOf('.') + 1);
    found.add(name);
    pending.add(name);
  }

  /**
   * The first link error of a class and of the classes of its package that it uses; empty if there
   * is none.
   */
  public static String firstError(String name, ClassLoader loader) {
    LinkCheck check = new LinkCheck(name, loader);
    try {
      while (!check.pending.isEmpty()) {
        check.checkClass(check.pending.poll());
      }
      return "";
    } catch (ReflectiveOperationException | LinkageError | TypeNotPresentException error) {
      return error.toString();
    } catch (IOException error) {
      return "";
    }
  }

  private void addClass(String name) {
    if (name.startsWith(library) && found.add(name)) {
      pending.add(name);
    }
  }

  private void checkClass(String name) throws IOException, ReflectiveOperationException {
    // Verifies the class, too.
    Class<?> kind = Class.forName(name, true, loader);
    if (!Modifier.isAbstract(kind.getModifiers())) {
      for (Method method : kind.getMethods()) {
        if (Modifier.isAbstract(method.getModifiers())) {
          throw new AbstractMethodError(method.toString());
        }
      }
    }
    try (InputStream code = loader.getResourceAsStream(name.replace('.', '/') + ".class")) {
      if (code != null) {
        checkConstants(new DataInputStream(code));
      }
    }
  }

  /** Resolves what the constant pool of a class file refers to. */
  private void checkConstants(DataInputStream code)
      throws IOException, ReflectiveOperationException {
    code.skipBytes(8);
    int count = code.readUnsignedShort();
    int[] tags = new int[count];
    int[] first = new int[count];
    int[] second = new int[count];
    String[] strings = new String[count];
    for (int i = 1; i < count; i++) {
      tags[i] = code.readUnsignedByte();
      switch (tags[i]) {
        case UTF8:
          strings[i] = code.readUTF();
          break;
        case LONG:
        case DOUBLE:
          code.readLong();
          // It takes two places.
          i++;
          break;
        case CLASS:
        case STRING:
        case METHOD_TYPE:
          first[i] = code.readUnsignedShort();
          break;
        case METHOD_HANDLE:
          first[i] = code.readUnsignedByte();
          second[i] = code.readUnsignedShort();
          break;
        case INTEGER:
        case FLOAT:
          code.readInt();
          break;
        default:
          first[i] = code.readUnsignedShort();
          second[i] = code.readUnsignedShort();
      }
    }
    for (int i = 1; i < count; i++) {
      if (tags[i] == CLASS) {
        String name = strings[first[i]].replace('/', '.');
        if (isChecked(name)) {
          Class.forName(name, false, loader);
          addClass(name);
        }
      } else if (tags[i] == FIELD || tags[i] == METHOD || tags[i] == INTERFACE_METHOD) {
        String owner = strings[first[first[i]]].replace('/', '.');
        if (isChecked(owner)) {
          String name = strings[first[second[i]]];
          String type = strings[second[second[i]]];
          checkMember(tags[i], Class.forName(owner, false, loader), name, type);
        }
      }
    }
  }

  /** Java's own classes are not checked, nor are arrays. */
  private static boolean isChecked(String name) {
    return !name.startsWith("java.") && !name.startsWith("[");
  }

  private void checkMember(int tag, Class<?> owner, String name, String type)
      throws ReflectiveOperationException {
    if (tag != FIELD && (tag == INTERFACE_METHOD) != owner.isInterface()) {
      throw new IncompatibleClassChangeError(owner.getName() + " is another kind of class");
    }
    MethodType descriptor =
        MethodType.fromMethodDescriptorString(tag == FIELD ? "()" + type : type, loader);
    if (name.equals("<init>")) {
      try {
        LOOKUP.findConstructor(owner, descriptor);
      } catch (IllegalAccessException error) {
        // It exists; only subclasses or its own package can call it.
      }
    } else if (!exists(tag, owner, name, descriptor, false)
        && !exists(tag, owner, name, descriptor, true)) {
      String signature = owner.getName() + "." + name + descriptor;
      throw tag == FIELD ? new NoSuchFieldError(signature) : new NoSuchMethodError(signature);
    }
  }

  private static boolean exists(
      int tag, Class<?> owner, String name, MethodType descriptor, boolean isStatic) {
    try {
      if (tag == FIELD && isStatic) {
        LOOKUP.findStaticGetter(owner, name, descriptor.returnType());
      } else if (tag == FIELD) {
        LOOKUP.findGetter(owner, name, descriptor.returnType());
      } else if (isStatic) {
        LOOKUP.findStatic(owner, name, descriptor);
      } else {
        LOOKUP.findVirtual(owner, name, descriptor);
      }
      return true;
    } catch (IllegalAccessException error) {
      // It exists, but only subclasses or its own package can access it.
      return true;
    } catch (NoSuchMethodException | NoSuchFieldException error) {
      return false;
    }
  }
}
