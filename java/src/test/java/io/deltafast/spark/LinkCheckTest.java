package io.deltafast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LinkCheckTest {
  private static final String BEFORE =
      "package other; public class Dependency { public int old; "
          + "public static void removed() {} public long changed(int value) { return value; } }";
  private static final String USER =
      "package user; public class User { static long use(other.Dependency it) { %s } }";

  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(
      strings = {
        "DeltaFileIndex",
        "DeltaProvider",
        "HadoopGateway",
        "ParquetFormat",
        "RowFormat",
        "RowCountRule",
        "FileSelectionRule",
        "RowTrackingRule",
        "ArrowRows",
        "ExecutorProbe"
      })
  void theClassesFitThisSpark(String name) {
    assertEquals(
        "", LinkCheck.firstError("io.deltafast.spark." + name, getClass().getClassLoader()));
  }

  @Test
  void whatDidNotChangeIsNoError() throws Exception {
    assertEquals("", errorAfter("return it.changed(1) + it.old;", BEFORE));
  }

  @Test
  void aRemovedMethodIsNamed() throws Exception {
    String error =
        errorAfter(
            "other.Dependency.removed(); return 1;", "package other; public class Dependency {}");
    assertTrue(error.startsWith("java.lang.NoSuchMethodError: other.Dependency.removed"), error);
  }

  @Test
  void aChangedResultIsNamed() throws Exception {
    String after =
        "package other; public class Dependency { public int changed(int value) { return value; }"
            + " }";
    String error = errorAfter("return it.changed(1);", after);
    assertTrue(error.startsWith("java.lang.NoSuchMethodError: other.Dependency.changed"), error);
  }

  @Test
  void aRemovedFieldIsNamed() throws Exception {
    String error = errorAfter("return it.old;", "package other; public class Dependency {}");
    assertTrue(error.startsWith("java.lang.NoSuchFieldError: other.Dependency.old"), error);
  }

  @Test
  void aRemovedClassIsNamed() throws Exception {
    String error = errorAfter("return it.old;", "package other; public class Another {}");
    assertTrue(error.contains("other.Dependency") || error.contains("other/Dependency"), error);
  }

  /** The error of a class that was compiled against one class and runs with another. */
  private String errorAfter(String body, String dependency) throws Exception {
    compile("before", BEFORE, "other/" + nameOf(BEFORE));
    compile("user", String.format(USER, body), "user/User");
    compile("after", dependency, "other/" + nameOf(dependency));
    URL[] classPath = {
      folder.resolve("user").toUri().toURL(), folder.resolve("after").toUri().toURL()
    };
    try (URLClassLoader loader = new URLClassLoader(classPath, null)) {
      return LinkCheck.firstError("user.User", loader);
    }
  }

  private static String nameOf(String source) {
    return source.contains("class Another") ? "Another" : "Dependency";
  }

  private void compile(String out, String source, String name) throws Exception {
    Path file = folder.resolve(out + "-sources").resolve(name + ".java");
    Files.createDirectories(file.getParent());
    Files.writeString(file, source);
    String[] arguments = {
      "-d",
      folder.resolve(out).toString(),
      "-cp",
      folder.resolve("before").toString(),
      file.toString()
    };
    assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments));
  }
}
