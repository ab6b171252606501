package io.deltafast.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;

/**
 * The credentials that Unity Catalog gives for one table, for all threads of a process. They are
 * asked for again before they expire.
 *
 * <p>Settings of Hadoop name the server and the table. The driver sets them in the options of the
 * relations that read and write the table, so that they apply to these only.
 */
@SuppressWarnings("cast") // Janino ignores type arguments.
final class TableCredentials {
  /** The prefix of the settings. */
  static final String PREFIX = "fs.deltafast.";

  /** Names of the credentials, as in the Delta API. */
  static final String ACCESS_KEY = "s3.access-key-id",
      SECRET_KEY = "s3.secret-access-key",
      SESSION_TOKEN = "s3.session-token",
      SIGNATURE = "azure.sas-token",
      TOKEN = "gcs.oauth-token";

  /** They are renewed so long before they expire, or a fifth of their life before. */
  private static final long MARGIN_MS = 300_000;

  private static final Map<Map<String, String>, TableCredentials> KNOWN = new HashMap<>();

  private final CatalogClient client;
  private final String path;
  private final String id;
  private final String location;
  private final String operation;
  private Map<String, String> values;
  private long expiresAt;
  private long renewAt;

  private TableCredentials(Configuration settings) {
    client = new CatalogClient(settings);
    path = settings.get(PREFIX + "credentials.path", "");
    id = settings.get(PREFIX + "table.id", "");
    location = settings.get(PREFIX + "table.location", "");
    operation = settings.get(PREFIX + "operation", "READ");
  }

  /** The settings of a table among those of Hadoop. */
  static Map<String, String> settingsOf(Configuration settings) {
    return new TreeMap<>(settings.getPropsWithPrefix(PREFIX));
  }

  /** The credentials of the table that the settings name, one object for equal settings. */
  static TableCredentials of(Configuration settings) {
    Map<String, String> own = settingsOf(settings);
    synchronized (KNOWN) {
      TableCredentials found = (TableCredentials) KNOWN.get(own);
      if (found == null) {
        found = new TableCredentials(settings);
        KNOWN.put(own, found);
      }
      return found;
    }
  }

  /** The credentials by their names; they are valid for a while. */
  synchronized Map<String, String> current() throws IOException {
    long now = System.currentTimeMillis();
    if (values == null || now >= renewAt) {
      try {
        load(now);
      } catch (IOException error) {
        // A server that is away for a while is no reason to stop while they are valid.
        if (values == null || now >= expiresAt) {
          throw error;
        }
      }
    }
    return values;
  }

  /** When the credentials that were given last expire, in milliseconds since the epoch. */
  synchronized long expiresAt() {
    return expiresAt;
  }

  private void load(long now) throws IOException {
    if (path.isEmpty()) {
      loadByTablesApi();
    } else {
      loadByDeltaApi();
    }
    long life = Math.max(0, expiresAt - now);
    renewAt = expiresAt - Math.min(MARGIN_MS, life / 5);
  }

  private void loadByDeltaApi() throws IOException {
    String place = folder(location);
    JsonNode best = null;
    int length = -1;
    JsonNode all = CatalogClient.at(client.call(path, null), "storage-credentials");
    for (int i = 0; i < all.size(); i++) {
      JsonNode each = (JsonNode) all.get(i);
      String prefix = folder(CatalogClient.at(each, "prefix").asText());
      if (place.startsWith(prefix) && prefix.length() > length) {
        best = each;
        length = prefix.length();
      }
    }
    if (best == null) {
      throw new IOException("the credentials of the catalog do not cover " + location);
    }
    Map<String, String> found = new HashMap<>();
    for (String name : new String[] {ACCESS_KEY, SECRET_KEY, SESSION_TOKEN, SIGNATURE, TOKEN}) {
      JsonNode value = CatalogClient.at(CatalogClient.at(best, "config"), name);
      if (value.isTextual()) {
        found.put(name, value.asText());
      }
    }
    values = found;
    expiresAt = CatalogClient.at(best, "expiration-time-ms").asLong(Long.MAX_VALUE);
  }

  private void loadByTablesApi() throws IOException {
    ObjectNode body = JsonNodeFactory.instance.objectNode();
    body.put("table_id", id).put("operation", operation);
    JsonNode answer = client.call("temporary-table-credentials", body.toString());
    Map<String, String> found = new HashMap<>();
    JsonNode keys = CatalogClient.at(answer, "aws_temp_credentials");
    if (keys.isObject()) {
      found.put(ACCESS_KEY, CatalogClient.at(keys, "access_key_id").asText());
      found.put(SECRET_KEY, CatalogClient.at(keys, "secret_access_key").asText());
      found.put(SESSION_TOKEN, CatalogClient.at(keys, "session_token").asText(""));
    }
    JsonNode signature =
        CatalogClient.at(CatalogClient.at(answer, "azure_user_delegation_sas"), "sas_token");
    if (signature.isTextual()) {
      found.put(SIGNATURE, signature.asText());
    }
    JsonNode token = CatalogClient.at(CatalogClient.at(answer, "gcp_oauth_token"), "oauth_token");
    if (token.isTextual()) {
      found.put(TOKEN, token.asText());
    }
    values = found;
    expiresAt = CatalogClient.at(answer, "expiration_time").asLong(Long.MAX_VALUE);
  }

  private static String folder(String url) {
    return url.endsWith("/") ? url : url + "/";
  }
}
