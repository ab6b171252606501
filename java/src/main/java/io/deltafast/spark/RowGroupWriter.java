package io.deltafast.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.parquet.io.SeekableInputStream;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.package$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;

/** Writes one file of `RowGroupFormat`. */
@SuppressWarnings("cast") // Janino ignores type arguments.
final class RowGroupWriter extends OutputWriter {
  /** Without it, Spark takes the dates of a file for those of the session's calendar. */
  private static final String VERSION_KEY = "org.apache.spark.version";

  /** Length of the bounds in page indexes, which are copied as they are. */
  private static final int INDEX_LENGTH = 64;

  /** The names that Spark gives to the files of a task. */
  private static final Pattern TASK_FILE = Pattern.compile("part-(\\d+)-.*\\.parquet");

  private final String root;
  private final String path;
  private final Configuration configuration;

  /** Null before the first file is copied. */
  private ParquetFileWriter writer;

  private List<ColumnDescriptor> columns;
  private boolean isComplete = true;

  RowGroupWriter(String root, String path, Configuration configuration) {
    this.root = root;
    this.path = path;
    this.configuration = configuration;
  }

  @Override
  public String path() {
    return path;
  }

  @Override
  public void write(InternalRow row) {
    // Until the last row group is copied, the file has no footer, and is not to get one.
    isComplete = false;
    Path source = DeltaFileIndex.filePath(root, row.getUTF8String(0).toString());
    try {
      if (row.isNullAt(1)) {
        copyFile(source);
      } else {
        copyTask(source, row.getInt(1));
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    isComplete = true;
  }

  @Override
  public void close() {
    try {
      if (writer != null && isComplete) {
        writer.end(Collections.singletonMap(VERSION_KEY, package$.MODULE$.SPARK_VERSION()));
      } else if (writer != null) {
        writer.close();
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** Copies the files of a task; a task without rows wrote none. */
  private void copyTask(Path folder, int task) throws IOException {
    FileStatus[] found = folder.getFileSystem(configuration).listStatus(folder);
    Arrays.sort(found);
    for (FileStatus file : found) {
      String name = file.getPath().getName();
      Matcher matcher = TASK_FILE.matcher(name);
      if (matcher.matches()) {
        if (Integer.parseInt(matcher.group(1)) == task) {
          copyFile(file.getPath());
        }
      } else if (name.endsWith(".parquet")) {
        throw new IOException(
            "deltafast cannot join " + file.getPath() + ": its name does not begin with its task");
      }
    }
  }

  private void copyFile(Path file) throws IOException {
    HadoopInputFile input = HadoopInputFile.fromPath(file, configuration);
    // Other options load Hadoop's default configuration again for each file. Janino does not know
    // the names of resources of a try statement.
    ParquetFileReader reader =
        ParquetFileReader.open(input, HadoopReadOptions.builder(configuration).build());
    try {
      copyGroups(reader, input);
    } finally {
      reader.close();
    }
  }

  private void copyGroups(ParquetFileReader reader, HadoopInputFile input) throws IOException {
    open(reader.getFooter().getFileMetaData().getSchema());
    List<BlockMetaData> groups = reader.getFooter().getBlocks();
    SeekableInputStream stream = input.newStream();
    try {
      for (int i = 0; i < groups.size(); i++) {
        copyGroup((BlockMetaData) groups.get(i), reader, stream);
      }
    } finally {
      stream.close();
    }
  }

  private void open(MessageType schema) throws IOException {
    if (writer == null) {
      columns = schema.getColumns();
      writer =
          new ParquetFileWriter(
              HadoopOutputFile.fromPath(new Path(path), configuration),
              schema,
              ParquetFileWriter.Mode.CREATE,
              ParquetWriter.DEFAULT_BLOCK_SIZE,
              0,
              INDEX_LENGTH,
              Integer.MAX_VALUE,
              false);
      writer.start();
    }
  }

  private void copyGroup(BlockMetaData group, ParquetFileReader reader, SeekableInputStream stream)
      throws IOException {
    writer.startBlock(group.getRowCount());
    List<ColumnChunkMetaData> chunks = group.getColumns();
    for (int i = 0; i < chunks.size(); i++) {
      ColumnChunkMetaData chunk = (ColumnChunkMetaData) chunks.get(i);
      writer.appendColumnChunk(
          (ColumnDescriptor) columns.get(i),
          stream,
          chunk,
          reader.readBloomFilter(chunk),
          reader.readColumnIndex(chunk),
          reader.readOffsetIndex(chunk));
    }
    writer.endBlock();
  }
}
