package io.deltafast.spark;

import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.unsafe.Platform;

/**
 * Checkpoint files of streams: on a local disk they are written by Java itself, elsewhere by
 * Spark's own class.
 *
 * <p>Spark's class makes Hadoop start processes for each file on a local disk, which takes longer
 * than a small batch. The files are the same, without Hadoop's checksums. A file that must not
 * exist is created atomically, which Hadoop does not guarantee there.
 */
public final class LocalCheckpointFiles implements CheckpointFileManager {
  /** Null unless the checkpoint is on a local disk. */
  private final RawLocalFileSystem disk;

  /** Null if the checkpoint is on a local disk. */
  private final CheckpointFileManager other;

  private final Path folder;

  /** Spark calls it. */
  public LocalCheckpointFiles(Path folder, Configuration settings) throws IOException {
    this.folder = folder;
    URI uri = folder.getFileSystem(settings).makeQualified(folder).toUri();
    if ("file".equals(uri.getScheme())) {
      disk = new RawLocalFileSystem();
      disk.initialize(uri, settings);
      other = null;
    } else {
      Configuration own = new Configuration(settings);
      own.unset(CheckpointSetting.KEY);
      disk = null;
      other = CheckpointFileManager.create(folder, own);
    }
  }

  @Override
  public CheckpointFileManager.CancellableFSDataOutputStream createAtomic(
      Path path, boolean overwriteIfPossible) {
    if (other != null) {
      return other.createAtomic(path, overwriteIfPossible);
    }
    java.nio.file.Path target = fileOf(path);
    String name = "." + target.getFileName() + "." + UUID.randomUUID() + ".tmp";
    java.nio.file.Path temporary = target.resolveSibling(name);
    try {
      Files.createDirectories(target.getParent());
      // Not a channel, which the interruption of a query would close.
      OutputStream content = new FileOutputStream(temporary.toFile());
      return new NewFile(new BufferedOutputStream(content), temporary, target, overwriteIfPossible);
    } catch (IOException error) {
      throw raised(error);
    }
  }

  @Override
  public FSDataInputStream open(Path path) {
    try {
      return other != null ? other.open(path) : disk.open(path);
    } catch (IOException error) {
      throw raised(error);
    }
  }

  @Override
  public FileStatus[] list(Path path, PathFilter filter) {
    try {
      return other != null ? other.list(path, filter) : disk.listStatus(path, filter);
    } catch (IOException error) {
      throw raised(error);
    }
  }

  @Override
  public void mkdirs(Path path) {
    if (other != null) {
      other.mkdirs(path);
      return;
    }
    try {
      Files.createDirectories(fileOf(path));
    } catch (IOException error) {
      throw raised(error);
    }
  }

  @Override
  public boolean exists(Path path) {
    return other != null ? other.exists(path) : Files.exists(fileOf(path));
  }

  @Override
  public void delete(Path path) {
    if (other != null) {
      other.delete(path);
      return;
    }
    try {
      disk.delete(path, true);
      Files.deleteIfExists(checksumOf(fileOf(path)));
    } catch (IOException error) {
      throw raised(error);
    }
  }

  @Override
  public boolean isLocal() {
    return other == null || other.isLocal();
  }

  @Override
  public Path createCheckpointDirectory() {
    if (other != null) {
      return other.createCheckpointDirectory();
    }
    mkdirs(folder);
    return disk.makeQualified(folder);
  }

  @Override
  public void close() {
    if (other != null) {
      other.close();
    }
  }

  private java.nio.file.Path fileOf(Path path) {
    return disk.pathToFile(path).toPath();
  }

  /** Raises an error that Spark's interface does not declare, and that Spark catches. */
  private static RuntimeException raised(IOException error) {
    Platform.throwException(error);
    return null;
  }

  /** Hadoop's checksum of a file, which is wrong after the file is replaced without Hadoop. */
  private static java.nio.file.Path checksumOf(java.nio.file.Path file) {
    return file.resolveSibling("." + file.getFileName() + ".crc");
  }

  /** A file that is there when it is closed, and not at all if it is cancelled. */
  private static final class NewFile extends CheckpointFileManager.CancellableFSDataOutputStream {
    private final java.nio.file.Path temporary;
    private final java.nio.file.Path target;
    private final boolean replaces;
    private boolean isEnded;

    NewFile(
        OutputStream content,
        java.nio.file.Path temporary,
        java.nio.file.Path target,
        boolean replaces)
        throws IOException {
      super(content);
      this.temporary = temporary;
      this.target = target;
      this.replaces = replaces;
    }

    @Override
    public synchronized void close() throws IOException {
      if (isEnded) {
        return;
      }
      isEnded = true;
      try {
        super.close();
        publish();
      } finally {
        Files.deleteIfExists(temporary);
      }
    }

    @Override
    public synchronized void cancel() {
      if (isEnded) {
        return;
      }
      isEnded = true;
      try {
        try {
          super.close();
        } finally {
          Files.deleteIfExists(temporary);
        }
      } catch (IOException error) {
        throw raised(error);
      }
    }

    private void publish() throws IOException {
      Files.deleteIfExists(checksumOf(target));
      if (replaces) {
        move();
        return;
      }
      try {
        Files.createLink(target, temporary);
      } catch (java.nio.file.FileAlreadyExistsException error) {
        throw exists(error);
      } catch (FileSystemException | UnsupportedOperationException error) {
        // A disk without links.
        if (Files.exists(target)) {
          throw exists(error);
        }
        move();
      }
    }

    private void move() throws IOException {
      Files.move(
          temporary, target, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    private IOException exists(Exception cause) {
      IOException error = new FileAlreadyExistsException(target + " exists already");
      error.initCause(cause);
      return error;
    }
  }
}
