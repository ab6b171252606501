package io.deltafast.spark;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.codehaus.commons.compiler.util.resource.MapResourceCreator;
import org.codehaus.commons.compiler.util.resource.MapResourceFinder;
import org.codehaus.commons.compiler.util.resource.Resource;
import org.codehaus.commons.compiler.util.resource.ResourceFinder;
import org.codehaus.janino.ClassLoaderIClassLoader;
import org.codehaus.janino.Compiler;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Janino, which knows less of Java than `javac`, compiles the sources as in a driver. */
class JaninoTest {
  private static final Path SOURCES = Path.of(System.getProperty("deltafast.sources"));

  private static final String PACKAGE = "io.deltafast.spark";
  private static final String MOVED = "io.deltafast.janino";

  /** They are loaded from the jar only: Spark finds them by these names, or they come first. */
  private static final Set<String> LOADED =
      Set.of(
          "DeltafastCatalog",
          "DeltafastExtension",
          "LinkCheck",
          "LocalCheckpointFiles",
          "UnityCatalog");

  /** The sources by their paths, in another package, as in a driver. */
  private static final Map<String, byte[]> CONTENTS = new HashMap<>();

  @BeforeAll
  static void readSources() throws IOException {
    for (String source : sources()) {
      String content = Files.readString(SOURCES.resolve(source)).replace(PACKAGE, MOVED);
      CONTENTS.put(moved(source), content.getBytes(UTF_8));
    }
  }

  static List<String> sources() throws IOException {
    try (Stream<Path> found = Files.walk(SOURCES)) {
      return found
          .filter(path -> path.toString().endsWith(".java"))
          .map(path -> SOURCES.relativize(path).toString())
          .sorted()
          .toList();
    }
  }

  static List<String> compiled() throws IOException {
    return sources().stream().filter(path -> !LOADED.contains(nameOf(path))).toList();
  }

  @ParameterizedTest
  @MethodSource("compiled")
  void itCompilesEachSource(String path) {
    MapResourceFinder finder = new MapResourceFinder(CONTENTS);
    Compiler compiler = new Compiler();
    compiler.setIClassLoader(new ClassLoaderIClassLoader(getClass().getClassLoader()));
    compiler.setSourceFinder(finder);
    compiler.setClassFileFinder(ResourceFinder.EMPTY_RESOURCE_FINDER);
    compiler.setClassFileCreator(new MapResourceCreator(new HashMap<>()));
    assertDoesNotThrow(() -> compiler.compile(new Resource[] {finder.findResource(moved(path))}));
  }

  private static String moved(String path) {
    return path.replace(PACKAGE.replace('.', '/'), MOVED.replace('.', '/'));
  }

  private static String nameOf(String path) {
    return path.substring(path.lastIndexOf('/') + 1).replace(".java", "");
  }
}
