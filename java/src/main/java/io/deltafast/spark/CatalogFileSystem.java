package io.deltafast.spark;

import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * The files of one table of Unity Catalog, in a store, with the credentials of the catalog.
 *
 * <p>Hadoop caches file systems by scheme, bucket and user, but each table has credentials of its
 * own. So this one is not cached by Hadoop, and shares the file system that it stands for with all
 * others of the same table.
 */
@SuppressWarnings("cast") // Janino ignores type arguments.
public final class CatalogFileSystem extends FilterFileSystem {
  private static final int MOST_OPEN = 100;
  private static final int FIRST = 16;
  private static final float LOAD = 0.75f;

  /** In the order in which they were last used. */
  private static final LinkedHashMap<List<String>, FileSystem> OPEN =
      new LinkedHashMap<>(FIRST, LOAD, true);

  @Override
  public void initialize(URI uri, Configuration settings) throws IOException {
    fs = shared(uri, settings);
    super.initialize(uri, settings);
  }

  /** The shared file system stays open: others use it. */
  @Override
  public void close() {
    processDeleteOnExit();
  }

  private static FileSystem shared(URI uri, Configuration settings) throws IOException {
    List<String> key = new ArrayList<>();
    key.add(uri.getScheme() + "://" + uri.getAuthority());
    key.add(UserGroupInformation.getCurrentUser().getUserName());
    for (Map.Entry<String, String> entry : TableCredentials.settingsOf(settings).entrySet()) {
      key.add(entry.getKey() + "=" + entry.getValue());
    }
    synchronized (OPEN) {
      FileSystem found = (FileSystem) OPEN.get(key);
      if (found == null) {
        found = opened(uri, settings);
        OPEN.put(key, found);
        if (OPEN.size() > MOST_OPEN) {
          // A reader may still have it, so it is not closed.
          OPEN.remove(OPEN.keySet().iterator().next());
        }
      }
      return found;
    }
  }

  private static FileSystem opened(URI uri, Configuration settings) throws IOException {
    Configuration own = new Configuration(settings);
    String scheme = uri.getScheme();
    String name = settings.get(TableCredentials.PREFIX + "file.system." + scheme, "");
    // By their names: their interfaces are in the jars for the stores, which Spark itself lacks.
    String library = CatalogFileSystem.class.getPackageName() + ".";
    own.set("fs." + scheme + ".impl", name);
    if (scheme.equals("s3a")) {
      String provider = library + "S3TableCredentials";
      // The settings of a bucket take precedence.
      own.set("fs.s3a.aws.credentials.provider", provider);
      own.set("fs.s3a.bucket." + uri.getHost() + ".aws.credentials.provider", provider);
    } else if (scheme.equals("gs")) {
      setGoogle(own, library + "GoogleTableCredentials");
    } else {
      String provider = library + "AzureTableCredentials";
      for (String suffix : new String[] {"", "." + uri.getHost()}) {
        own.set("fs.azure.account.auth.type" + suffix, "SAS");
        own.set("fs.azure.sas.token.provider.type" + suffix, provider);
      }
    }
    FileSystem made;
    try {
      made = (FileSystem) ReflectionUtils.newInstance(own.getClassByName(name), own);
    } catch (ClassNotFoundException error) {
      throw new IOException("the class " + name + " for " + scheme + " is missing", error);
    }
    made.initialize(uri, own);
    return made;
  }

  /** Both releases 2 and 3 of the connector, whose names differ. */
  private static void setGoogle(Configuration own, String provider) {
    // Hadoop 3.5 gives sizes such as 64m to its own client, which takes no token; the connector
    // takes bytes.
    for (String name : own.getPropsWithPrefix("fs.gs.").keySet()) {
      if (own.get("fs.gs." + name, "").matches("[0-9]+[kmg]")) {
        own.setLong("fs.gs." + name, own.getLongBytes("fs.gs." + name, 0));
      }
    }
    // The session's own service account is not for this table.
    for (String name : own.getPropsWithPrefix("fs.gs.auth.").keySet()) {
      own.unset("fs.gs.auth." + name);
    }
    own.set("fs.gs.auth.access.token.provider.impl", provider);
    own.set("fs.gs.auth.type", "ACCESS_TOKEN_PROVIDER");
    own.set("fs.gs.auth.access.token.provider", provider);
  }
}
