package io.deltafast.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.FileNotFoundException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LocalCheckpointFilesTest {
  @TempDir java.nio.file.Path folder;

  private final Configuration settings = new Configuration();
  private Path root;
  private CheckpointFileManager files;

  @BeforeEach
  void open() throws Exception {
    root = new Path(folder.toUri().toString() + "/a b/offsets");
    files = new LocalCheckpointFiles(root, settings);
  }

  private void write(CheckpointFileManager files, String name, String text, boolean replaces)
      throws Exception {
    try (CheckpointFileManager.CancellableFSDataOutputStream file =
        files.createAtomic(new Path(root, name), replaces)) {
      file.write(text.getBytes(StandardCharsets.UTF_8));
      // Nothing is there before it is closed.
      if (!replaces) {
        assertFalse(files.exists(new Path(root, name)));
      }
    }
  }

  private static String read(CheckpointFileManager files, Path path) throws Exception {
    try (var file = files.open(path)) {
      return new String(file.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  private String[] names() throws Exception {
    FileStatus[] found = files.list(root);
    String[] names = new String[found.length];
    for (int i = 0; i < found.length; i++) {
      names[i] = found[i].getPath().getName();
    }
    Arrays.sort(names);
    return names;
  }

  @Test
  void filesAreCreatedReplacedAndDeleted() throws Exception {
    assertEquals(root.toUri().getPath(), files.createCheckpointDirectory().toUri().getPath());
    assertTrue(files.isLocal());
    write(files, "0", "first", false);
    write(files, "0", "second", true);
    assertEquals("second", read(files, new Path(root, "0")));
    write(files, "deep/er/1", "x", true);
    files.mkdirs(new Path(root, "empty"));
    assertArrayEquals(new String[] {"0", "deep", "empty"}, names());
    assertEquals(
        1, files.list(root, path -> path.getName().equals("0")).length, "names are filtered");
    files.delete(new Path(root, "0"));
    files.delete(new Path(root, "deep"));
    files.delete(new Path(root, "missing"));
    assertArrayEquals(new String[] {"empty"}, names());
    assertThrows(FileNotFoundException.class, () -> files.open(new Path(root, "0")));
    assertThrows(FileNotFoundException.class, () -> files.list(new Path(root, "missing")));
  }

  @Test
  void ofTwoThatCreateAFileOneFails() throws Exception {
    CheckpointFileManager.CancellableFSDataOutputStream one =
        files.createAtomic(new Path(root, "0"), false);
    CheckpointFileManager.CancellableFSDataOutputStream two =
        files.createAtomic(new Path(root, "0"), false);
    one.write('1');
    two.write('2');
    two.close();
    assertThrows(FileAlreadyExistsException.class, one::close);
    one.close();
    assertEquals("2", read(files, new Path(root, "0")));
    assertArrayEquals(new String[] {"0"}, names());
  }

  @Test
  void aCancelledFileIsNotThere() throws Exception {
    CheckpointFileManager.CancellableFSDataOutputStream file =
        files.createAtomic(new Path(root, "0"), true);
    file.write('1');
    file.cancel();
    file.close();
    assertArrayEquals(new String[0], names());
  }

  @Test
  void sparksOwnClassReadsTheFilesAndTheOtherWayRound() throws Exception {
    CheckpointFileManager theirs = new FileContextBasedCheckpointFileManager(root, settings);
    theirs.createCheckpointDirectory();
    write(theirs, "0", "theirs", false);
    assertTrue(new File(folder.toFile(), "a b/offsets/.0.crc").exists());
    assertEquals("theirs", read(files, new Path(root, "0")));
    // Their checksum does not outlive the file that it is of.
    write(files, "0", "ours", true);
    assertEquals("ours", read(theirs, new Path(root, "0")));
    assertFalse(Files.exists(folder.resolve("a b/offsets/.0.crc")));
    write(theirs, "1", "again", false);
    files.delete(new Path(root, "1"));
    assertEquals(1, theirs.list(root).length);
  }

  @Test
  void anotherFileSystemKeepsSparksOwnClass() throws Exception {
    settings.set(CheckpointSetting.KEY, LocalCheckpointFiles.class.getName());
    // Nothing is connected to.
    CheckpointFileManager other =
        new LocalCheckpointFiles(new Path("hdfs://127.0.0.1:1/checkpoint"), settings);
    assertFalse(other.isLocal());
    other.close();
  }
}
