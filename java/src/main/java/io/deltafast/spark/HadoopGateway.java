package io.deltafast.spark;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.viewfs.ViewFileSystem;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.web.WebHdfsFileSystem;
import org.apache.hadoop.ipc.RemoteException;

/**
 * Hadoop's file systems for the core, which connects over the loopback interface;
 * `src/store/hadoop.rs` is the client.
 *
 * <p>It runs in the driver. A connection first presents the secret, then carries one request after
 * another; what a request has begun and not finished is undone when the connection ends. Numbers
 * are big-endian; strings and blocks are preceded by their length.
 */
public final class HadoopGateway implements Runnable {
  private static final int CHUNK_BYTES = 1 << 20;
  private static final int FAILED_STREAM = -1;
  private static final int OK = 0,
      MISSING = 1,
      DENIED = 2,
      UNSUPPORTED = 3,
      FAILED = 4,
      SHORT = 5,
      UNKNOWN = 6,
      WRONG = 7,
      REFUSED = 8;

  /**
   * Option of createFile() and path capability of file systems whose conditional put takes effect
   * on close.
   */
  private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";

  private final ServerSocket server;
  private final byte[] secret;
  private final ClassLoader loader;
  private final Map<String, Object> configurations = new HashMap<>();
  private final Map<String, Object> opened = new HashMap<>();

  /** Null in the gateway itself, else the connection that is served. */
  private final Socket socket;

  private final HadoopGateway gateway;

  private HadoopGateway(ClassLoader loader) throws IOException {
    this.server = new ServerSocket(0, 256, InetAddress.getByAddress(new byte[] {127, 0, 0, 1}));
    byte[] random = new byte[32];
    new SecureRandom().nextBytes(random);
    StringBuilder hex = new StringBuilder();
    for (byte value : random) {
      hex.append(String.format("%02x", value));
    }
    this.secret = hex.toString().getBytes(StandardCharsets.UTF_8);
    this.loader = loader;
    this.socket = null;
    this.gateway = this;
  }

  /** Starts a gateway whose threads have a class loader. */
  public static HadoopGateway start(ClassLoader loader) throws IOException {
    HadoopGateway gateway = new HadoopGateway(loader);
    gateway.startThread(gateway, "deltafast-gateway");
    return gateway;
  }

  private HadoopGateway(HadoopGateway gateway, Socket socket) {
    this.server = null;
    this.secret = null;
    this.loader = gateway.loader;
    this.socket = socket;
    this.gateway = gateway;
  }

  private void startThread(Runnable work, String name) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.setContextClassLoader(loader);
    thread.start();
  }

  /** The port, the secret and the id of a configuration; equal configurations have the same id. */
  public String register(Configuration configuration) throws Exception {
    Map<String, String> sorted = new TreeMap<>();
    for (Map.Entry<?, ?> entry : configuration) {
      String key = (String) entry.getKey();
      if (!key.startsWith("spark.") || key.startsWith("spark.deltafast.")) {
        sorted.put(key, (String) entry.getValue());
      }
    }
    byte[] digest =
        MessageDigest.getInstance("SHA-256")
            .digest(sorted.toString().getBytes(StandardCharsets.UTF_8));
    String id = new java.math.BigInteger(1, digest).toString(16);
    synchronized (configurations) {
      if (!configurations.containsKey(id)) {
        configurations.put(id, new Configuration(configuration));
      }
    }
    return "127.0.0.1:"
        + server.getLocalPort()
        + "\n"
        + new String(secret, StandardCharsets.UTF_8)
        + "\n"
        + id;
  }

  /** The folder to which relative paths refer, with scheme and authority. */
  public String home(Configuration configuration) throws IOException {
    FileSystem files = FileSystem.get(configuration);
    return files.makeQualified(files.getWorkingDirectory()).toString();
  }

  @Override
  public void run() {
    if (socket != null) {
      serve();
      return;
    }
    while (!server.isClosed()) {
      try {
        startThread(new HadoopGateway(this, server.accept()), "deltafast-gateway-connection");
      } catch (IOException e) {
        // A failed connection does not stop the gateway.
      }
    }
  }

  // --- connections -------------------------------------------------------------------------------

  private DataInputStream in;
  private DataOutputStream out;
  private Configuration configuration;
  private FileSystem files;
  private String scheme;
  private String authority;

  private void serve() {
    try {
      socket.setTcpNoDelay(true);
      in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), 1 << 16));
      out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream(), 1 << 16));
      int length = in.readInt();
      byte[] presented = new byte[Math.max(0, Math.min(length, 256))];
      in.readFully(presented);
      if (!MessageDigest.isEqual(presented, gateway.secret)) {
        return;
      }
      while (true) {
        int operation = in.read();
        if (operation < 0) {
          return;
        }
        answerRequest(operation);
        out.flush();
      }
    } catch (Throwable e) {
      // The client sees that the connection is closed.
    } finally {
      try {
        socket.close();
      } catch (IOException e) {
        // It is closed already.
      }
    }
  }

  private byte[] readBytes() throws IOException {
    byte[] bytes = new byte[in.readInt()];
    in.readFully(bytes);
    return bytes;
  }

  private String readString() throws IOException {
    return new String(readBytes(), StandardCharsets.UTF_8);
  }

  private void writeString(String text) throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    out.writeInt(bytes.length);
    out.write(bytes);
  }

  private Path path(String path) {
    return new Path(scheme, authority.isEmpty() ? null : authority, path);
  }

  private void answerRequest(int operation) throws IOException {
    String id = readString();
    scheme = readString();
    authority = readString();
    String first = readString();
    // The whole request is read before it is executed, so that an error leaves the connection
    // usable.
    String after = operation == 'L' ? readString() : null;
    boolean risk = (operation == 'P' || operation == 'U') && in.readBoolean();
    boolean essential = (operation == 'P' || operation == 'U') && in.readBoolean();
    byte[] bytes = operation == 'P' ? readBytes() : null;
    long[] ranges = null;
    if (operation == 'R') {
      ranges = new long[2 * in.readInt()];
      for (int i = 0; i < ranges.length; i++) {
        ranges[i] = in.readLong();
      }
    }
    String[] paths = null;
    if (operation == 'D') {
      paths = new String[in.readInt()];
      for (int i = 0; i < paths.length; i++) {
        paths[i] = readString();
      }
    }
    Throwable wrong = null;
    Path path = null;
    try {
      path = path(first);
      files = fileSystem(id);
    } catch (Throwable e) {
      wrong = e;
    }
    if (operation == 'U') {
      upload(path, risk, essential, wrong);
      return;
    }
    try {
      if (wrong != null) {
        throw wrong;
      }
      switch (operation) {
        case 'L':
          list(path, after);
          break;
        case 'H':
          head(path);
          break;
        case 'G':
          get(path);
          break;
        case 'R':
          ranges(path, ranges);
          break;
        case 'P':
          put(path, bytes, risk, essential);
          break;
        case 'D':
          delete(path, paths);
          break;
        case 'X':
          removeFolder(path);
          break;
        default:
          throw new IOException("no such request: " + operation);
      }
    } catch (ConnectionLostException e) {
      throw e;
    } catch (Throwable e) {
      writeError(e);
    }
  }

  /** The connection cannot be used any more. */
  static final class ConnectionLostException extends IOException {
    private static final long serialVersionUID = 1;

    ConnectionLostException(Throwable cause) {
      super(cause);
    }
  }

  /** The outcome of the request is unknown. */
  static final class OutcomeUnknownException extends IOException {
    private static final long serialVersionUID = 1;

    OutcomeUnknownException(Throwable cause) {
      super(cause);
    }
  }

  private static Throwable unwrapRemote(Throwable error) {
    return error instanceof RemoteException
        ? ((RemoteException) error).unwrapRemoteException()
        : error;
  }

  private void writeError(Throwable given) throws IOException {
    boolean isUnknown = given instanceof OutcomeUnknownException;
    Throwable error = unwrapRemote(isUnknown ? given.getCause() : given);
    while (error.getClass() == RuntimeException.class && error.getCause() != null) {
      error = error.getCause();
    }
    int kind = FAILED;
    String name = error.getClass().getSimpleName();
    if (error instanceof FileNotFoundException
        || error instanceof java.nio.file.NoSuchFileException) {
      kind = MISSING;
    } else if (name.equals("AccessControlException")
        || error instanceof java.nio.file.AccessDeniedException) {
      kind = DENIED;
    } else if (error instanceof EOFException) {
      kind = SHORT;
    } else if (error instanceof UnsupportedOperationException) {
      kind = UNSUPPORTED;
    } else if (name.equals("UnsupportedFileSystemException")
        || error instanceof ClassNotFoundException
        || error instanceof java.net.UnknownHostException) {
      kind = WRONG;
    }
    out.writeByte(!isUnknown ? kind : kind == DENIED ? REFUSED : UNKNOWN);
    String message = error.getMessage();
    String line = message == null ? "" : message.trim().split("\n", 2)[0];
    writeString(
        message == null ? name : kind == UNSUPPORTED || kind == WRONG ? line : name + ": " + line);
  }

  // --- file systems ------------------------------------------------------------------------------

  private FileSystem fileSystem(String id) throws Exception {
    synchronized (gateway.configurations) {
      configuration = (Configuration) gateway.configurations.get(id);
    }
    if (configuration == null) {
      throw new IOException(
          "the driver has forgotten the settings of Hadoop; open the table again");
    }
    URI uri = new URI(scheme, authority.isEmpty() ? null : authority, "/", null, null);
    FileSystem found;
    if (configuration.getBoolean("fs." + scheme + ".impl.disable.cache", false)) {
      String key = id + " " + uri;
      synchronized (gateway.opened) {
        found = (FileSystem) gateway.opened.get(key);
        if (found == null) {
          found = FileSystem.get(uri, configuration);
          gateway.opened.put(key, found);
        }
      }
    } else {
      found = FileSystem.get(uri, configuration);
    }
    // Checksum files next to the data files are unknown to other writers.
    return found instanceof ChecksumFileSystem
        ? ((ChecksumFileSystem) found).getRawFileSystem()
        : found;
  }

  // --- reading -----------------------------------------------------------------------------------

  private void list(Path folder, String after) throws IOException {
    RemoteIterator<?> found;
    boolean more;
    try {
      found = files.listStatusIterator(folder);
      more = found.hasNext();
    } catch (FileNotFoundException e) {
      found = null;
      more = false;
    }
    out.writeByte(OK);
    try {
      while (more) {
        FileStatus status = (FileStatus) found.next();
        String name = status.getPath().getName();
        boolean link =
            status.isDirectory()
                && files instanceof RawLocalFileSystem
                && Files.isSymbolicLink(file(status.getPath()).toPath());
        if (name.compareTo(after) > 0
            && !link
            && !status.getPath().toUri().getPath().equals(folder.toUri().getPath())) {
          out.writeByte(status.isDirectory() ? 2 : 1);
          writeString(name);
          out.writeLong(status.getLen());
          out.writeLong(status.getModificationTime());
        }
        more = found.hasNext();
      }
      out.writeByte(0);
    } catch (Throwable e) {
      out.writeByte(255);
      writeError(e);
    }
  }

  private FileStatus file(Path path, FileStatus status) throws IOException {
    if (status.isDirectory()) {
      throw new IOException("is not a regular file");
    }
    return status;
  }

  private void head(Path path) throws IOException {
    FileStatus status = file(path, files.getFileStatus(path));
    out.writeByte(OK);
    out.writeLong(status.getLen());
    out.writeLong(status.getModificationTime());
  }

  private void get(Path path) throws IOException {
    FileStatus status = file(path, files.getFileStatus(path));
    FSDataInputStream source = files.open(path);
    try {
      out.writeByte(OK);
      out.writeLong(status.getModificationTime());
      try {
        byte[] chunk = new byte[(int) Math.max(1, Math.min(CHUNK_BYTES, status.getLen()))];
        int count = source.read(chunk, 0, chunk.length);
        while (count >= 0) {
          sendChunk(chunk, count);
          count = source.read(chunk, 0, chunk.length);
        }
        out.writeInt(0);
      } catch (Throwable e) {
        failStream(e);
      }
    } finally {
      source.close();
    }
  }

  private void ranges(Path path, long[] ranges) throws IOException {
    FSDataInputStream source = files.open(path);
    try {
      out.writeByte(OK);
      try {
        byte[] chunk = null;
        for (int i = 0; i < ranges.length; i += 2) {
          long at = ranges[i];
          while (at < ranges[i + 1]) {
            int wanted = (int) Math.min(CHUNK_BYTES, ranges[i + 1] - at);
            if (chunk == null || chunk.length < wanted) {
              chunk = new byte[wanted];
            }
            source.readFully(at, chunk, 0, wanted);
            sendChunk(chunk, wanted);
            at += wanted;
          }
        }
        out.writeInt(0);
      } catch (Throwable e) {
        failStream(e);
      }
    } finally {
      source.close();
    }
  }

  /** Reports an error in the middle of a file, unless the connection is lost. */
  private void failStream(Throwable error) throws IOException {
    if (error instanceof ConnectionLostException) {
      throw (ConnectionLostException) error;
    }
    out.writeInt(FAILED_STREAM);
    writeError(error);
  }

  private void sendChunk(byte[] chunk, int count) throws IOException {
    try {
      if (count > 0) {
        out.writeInt(count);
        out.write(chunk, 0, count);
      }
    } catch (IOException e) {
      throw new ConnectionLostException(e);
    }
  }

  // --- writing -----------------------------------------------------------------------------------

  /**
   * The way in which this file system creates a complete file if it does not exist: `rename`, which
   * does not replace; `link`; `conditional` or `create`, whose files appear when they are closed.
   */
  private String putMethod(FileSystem files, Path path, boolean risk) throws IOException {
    String scheme = files.getUri().getScheme();
    String configured = configuration.get("spark.deltafast.commit." + scheme, "");
    if (configured.equals("rename") || configured.equals("create")) {
      return configured;
    }
    if (files instanceof RawLocalFileSystem) {
      return "link";
    }
    if (files instanceof DistributedFileSystem
        || files instanceof WebHdfsFileSystem
        || scheme.startsWith("abfs")
        || scheme.startsWith("wasb")
        || scheme.equals("adl")) {
      return "rename";
    }
    if (scheme.equals("gs")) {
      return "create";
    }
    if (files.hasPathCapability(path, CONDITIONAL)) {
      return "conditional";
    }
    if (risk) {
      return "risk";
    }
    throw new UnsupportedOperationException(
        "Hadoop's file system for "
            + scheme
            + ":// ("
            + files.getClass().getSimpleName()
            + ") is not known to make a file only where there is none, so commits are not safe in"
            + " it; if its rename never replaces a file set spark.deltafast.commit."
            + scheme
            + " to rename, if its create without overwrite does that set it to create, and if there"
            + " is only ever one writer use the option allow_unsafe_rename");
  }

  /**
   * The location of a file that is to be created, in the file system of its `viewfs` mount, and the
   * method.
   */
  static class PutTarget {
    final Path path;
    final String method;

    PutTarget(Path path, String method) {
      this.path = path;
      this.method = method;
    }
  }

  /** Resolves the path of a file that is to be created, and creates its folder. */
  private PutTarget putTarget(Path path, boolean risk) throws IOException {
    // Unsupported file systems are rejected before a folder is created; behind a mount only
    // afterwards.
    String method = files instanceof ViewFileSystem ? null : putMethod(files, path, risk);
    Path resolved = resolveMount(path);
    return new PutTarget(resolved, method == null ? putMethod(files, resolved, risk) : method);
  }

  /** A path resolved to the file system of its `viewfs` mount; creates its folder. */
  private Path resolveMount(Path path) throws IOException {
    Path folder = path.getParent();
    files.mkdirs(folder);
    if (!(files instanceof ViewFileSystem)) {
      return path;
    }
    Path real = new Path(files.resolvePath(folder), new Path(null, null, path.getName()));
    files = real.getFileSystem(configuration);
    return real;
  }

  private File file(Path path) {
    return ((RawLocalFileSystem) files).pathToFile(path);
  }

  private Path temporaryPath(Path path, boolean hidden) {
    String name = (hidden ? "." : "") + path.getName() + "." + UUID.randomUUID() + ".tmp";
    URI uri = path.toUri();
    String folder = path.getParent().toUri().getPath();
    return new Path(
        uri.getScheme(), uri.getAuthority(), folder + (folder.endsWith("/") ? "" : "/") + name);
  }

  private void sync(FSDataOutputStream stream, boolean essential) throws IOException {
    if (essential && (files instanceof RawLocalFileSystem || stream.hasCapability("hsync"))) {
      stream.hsync();
    }
  }

  /** Gives a file its final name; false if the name exists. */
  private boolean publish(Path staged, Path path, String method, boolean replace)
      throws IOException {
    if (method.equals("link")) {
      if (replace) {
        Files.move(
            file(staged).toPath(),
            file(path).toPath(),
            new java.nio.file.CopyOption[] {
              StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING
            });
        return true;
      }
      try {
        Files.createLink(file(path).toPath(), file(staged).toPath());
        return true;
      } catch (java.nio.file.FileAlreadyExistsException e) {
        return false;
      } catch (IOException e) {
        throw new OutcomeUnknownException(e);
      }
    }
    try {
      if (files instanceof DistributedFileSystem || files instanceof WebHdfsFileSystem) {
        Options.Rename[] options =
            new Options.Rename[] {replace ? Options.Rename.OVERWRITE : Options.Rename.NONE};
        if (files instanceof DistributedFileSystem) {
          ((DistributedFileSystem) files).rename(staged, path, options);
        } else {
          ((WebHdfsFileSystem) files).rename(staged, path, options);
        }
        return true;
      }
      if (replace) {
        files.delete(path, false);
      }
      if (files.rename(staged, path)) {
        return true;
      }
    } catch (IOException e) {
      if (!replace && unwrapRemote(e) instanceof FileAlreadyExistsException) {
        return false;
      }
      throw new OutcomeUnknownException(e);
    }
    try {
      if (!replace && files.exists(path)) {
        return false;
      }
    } catch (IOException e) {
      throw new OutcomeUnknownException(e);
    }
    throw new OutcomeUnknownException(new IOException("it could not be renamed to its name"));
  }

  private void put(Path given, byte[] bytes, boolean risk, boolean essential) throws IOException {
    if (files.exists(given)) {
      // An optimization only: the conditional put below decides.
      answerPut(false);
      return;
    }
    PutTarget target = putTarget(given, risk);
    Path path = target.path;
    if (target.method.equals("create") || target.method.equals("conditional")) {
      answerPut(createDirectly(path, bytes, target.method));
      return;
    }
    Path staged = temporaryPath(path, true);
    boolean created = false;
    try {
      FSDataOutputStream stream = files.create(staged, false);
      try {
        stream.write(bytes);
        sync(stream, essential);
      } finally {
        stream.close();
      }
      created = publish(staged, path, target.method, false);
    } finally {
      if (!created || target.method.equals("link")) {
        deleteTemporary(staged);
      }
    }
    answerPut(created);
  }

  private void answerPut(boolean created) throws IOException {
    out.writeByte(OK);
    out.writeBoolean(created);
  }

  /** Deletes a temporary file; one that remains belongs to no table. */
  private void deleteTemporary(Path path) {
    try {
      files.delete(path, false);
    } catch (Throwable e) {
      // It remains.
    }
  }

  private boolean createDirectly(Path path, byte[] bytes, String method) throws IOException {
    FSDataOutputStream stream;
    try {
      stream = method.equals("create") ? files.create(path, false) : createConditionally(path);
    } catch (FileAlreadyExistsException e) {
      return false;
    } catch (IOException e) {
      throw new OutcomeUnknownException(e);
    }
    // A stream gets all bytes or is never closed: closing it would publish a partial file.
    try {
      stream.write(bytes);
      stream.close();
    } catch (IOException e) {
      if (e instanceof FileAlreadyExistsException
          || e.getClass().getSimpleName().equals("RemoteFileChangedException")) {
        return false;
      }
      throw new OutcomeUnknownException(e);
    }
    return true;
  }

  private FSDataOutputStream createConditionally(Path path) throws IOException {
    FSDataOutputStreamBuilder<?, ?> builder = files.createFile(path);
    builder.must(CONDITIONAL, true);
    builder.recursive();
    Object stream = builder.build();
    return (FSDataOutputStream) stream;
  }

  /**
   * Reads blocks until an empty one, which ends the file, or a length of -1 or the end of the
   * connection, which abort it.
   */
  private void upload(Path given, boolean risk, boolean essential, Throwable wrong)
      throws IOException {
    FSDataOutputStream stream = null;
    Path path = given, staged = null;
    String method = null;
    boolean finished = false, renamed = false;
    try {
      if (wrong == null) {
        try {
          // A derived file may be replaced, so that it can be written where no commit is safe.
          PutTarget target = putTarget(given, risk || !essential);
          path = target.path;
          method = target.method;
          boolean direct =
              method.equals("create") || method.equals("conditional") || method.equals("risk");
          staged = direct ? path : temporaryPath(path, !essential);
          stream = files.create(staged, !essential);
        } catch (Throwable e) {
          wrong = e;
        }
      }
      // An error is reported at once: the client waits for this before it sends.
      if (wrong != null) {
        writeError(wrong);
        return;
      }
      out.writeByte(OK);
      out.flush();
      byte[] chunk = new byte[CHUNK_BYTES];
      long size = 0;
      int left = in.readInt();
      while (left > 0) {
        size += left;
        while (left > 0) {
          int count = Math.min(left, chunk.length);
          in.readFully(chunk, 0, count);
          if (wrong == null) {
            try {
              stream.write(chunk, 0, count);
            } catch (Throwable e) {
              wrong = e;
            }
          }
          left -= count;
        }
        left = in.readInt();
      }
      if (left < 0) {
        return;
      }
      try {
        if (wrong != null) {
          throw wrong;
        }
        sync(stream, essential);
        stream.close();
        finished = true;
        if (staged != path && !publish(staged, path, method, !essential)) {
          throw new IOException("there is a file already, which is never replaced");
        }
        renamed = !"link".equals(method);
        out.writeByte(OK);
        out.writeLong(size);
        out.writeLong(System.currentTimeMillis());
      } catch (Throwable e) {
        writeError(e);
      }
    } finally {
      if (stream != null && !finished) {
        abortUpload(stream, staged);
      } else if (staged != null && staged != path && !renamed) {
        deleteTemporary(staged);
      }
    }
  }

  private void abortUpload(FSDataOutputStream stream, Path staged) {
    try {
      if (stream.hasCapability("fs.capability.outputstream.abortable")) {
        stream.abort();
      }
      stream.close();
    } catch (Throwable e) {
      // The file is deleted below, if it exists.
    }
    deleteTemporary(staged);
  }

  // --- deleting ----------------------------------------------------------------------------------

  /** Fails for a local file that is reached through a symbolic link below the root. */
  private void checkInside(Path root, Path path) throws IOException {
    if (!(files instanceof RawLocalFileSystem)) {
      return;
    }
    File top = file(root);
    for (File folder = file(path).getParentFile();
        folder != null && !folder.equals(top);
        folder = folder.getParentFile()) {
      if (Files.isSymbolicLink(folder.toPath())) {
        throw new IOException("a folder on its way is a link, which is not followed");
      }
    }
  }

  private void delete(Path root, String[] paths) throws IOException {
    out.writeByte(OK);
    for (int i = 0; i < paths.length; i++) {
      try {
        Path path = path(paths[i]);
        checkInside(root, path);
        if (!files.delete(path, false) && files.exists(path)) {
          throw new IOException("it could not be deleted");
        }
        out.writeByte(OK);
      } catch (FileNotFoundException e) {
        out.writeByte(OK);
      } catch (Throwable e) {
        writeError(e);
      }
    }
  }

  private void removeFolder(Path folder) throws IOException {
    try {
      if (!files.listStatusIterator(folder).hasNext()) {
        files.delete(folder, false);
      }
    } catch (FileNotFoundException e) {
      // It does not exist any more.
    } catch (IOException e) {
      if (files.listStatusIterator(folder).hasNext()) {
        // It is not empty any more.
      } else {
        throw e;
      }
    }
    out.writeByte(OK);
  }
}
