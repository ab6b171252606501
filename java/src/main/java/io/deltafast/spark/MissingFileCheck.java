package io.deltafast.spark;

import java.io.IOException;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** Whether a file is missing; null if it exists, or if reading it will report the error. */
final class MissingFileCheck implements Callable<Path> {
  final Path path;
  final Configuration configuration;

  MissingFileCheck(Path path, Configuration configuration) {
    this.path = path;
    this.configuration = configuration;
  }

  @Override
  public Path call() {
    try {
      return path.getFileSystem(configuration).exists(path) ? null : path;
    } catch (IOException error) {
      return null;
    }
  }
}
