package io.deltafast.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import org.apache.hadoop.conf.Configuration;

/**
 * Requests of executors to a server of Unity Catalog: authorization, repetition, and errors in one
 * line without tokens.
 */
@SuppressWarnings("cast") // Janino ignores type arguments.
final class CatalogClient {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);
  private static final int REPEATS = 5;
  private static final long FIRST_WAIT_MS = 200;
  private static final long LONGEST_WAIT_MS = 60_000;

  /** A token of OAuth is renewed so long before it expires, or a fifth of its life before. */
  private static final long MARGIN_MS = 60_000;

  private static final int LONGEST_TEXT = 300;
  private static final ObjectMapper JSON = new ObjectMapper();

  /** One for all tables: it has a thread. */
  private static final HttpClient HTTP = HttpClient.newBuilder().connectTimeout(TIMEOUT).build();

  private final String server;
  private final String fixedToken;
  private final String clientId;
  private final String clientSecret;
  private final String tokenUrl;
  private final String scope;
  private String token;
  private long renewAt;

  CatalogClient(Configuration settings) {
    server = setting(settings, "server");
    fixedToken = setting(settings, "token");
    clientId = setting(settings, "oauth.client.id");
    clientSecret = setting(settings, "oauth.client.secret");
    tokenUrl = setting(settings, "oauth.token.url");
    scope = setting(settings, "oauth.scope");
  }

  private static String setting(Configuration settings, String name) {
    return settings.get(TableCredentials.PREFIX + name, "");
  }

  /**
   * The JSON of an answer.
   *
   * @param path the path below the API, with parameters
   * @param body the JSON of the request; null for a GET
   */
  JsonNode call(String path, String body) throws IOException {
    long wait = FIRST_WAIT_MS;
    boolean hasRenewed = false;
    for (int left = REPEATS; ; left--) {
      HttpResponse<String> answer;
      try {
        answer = send(request(path, body));
      } catch (InterruptedIOException error) {
        throw error;
      } catch (IOException error) {
        if (left == 0) {
          throw new IOException(
              "the catalog " + server + " does not answer " + path + ": " + error.getMessage());
        }
        pause(wait);
        wait *= 2;
        continue;
      }
      int status = answer.statusCode();
      if (status < 300) {
        return JSON.readTree((String) answer.body());
      }
      if (status == 401 && !clientId.isEmpty() && !hasRenewed) {
        hasRenewed = true;
        forgetToken();
        continue;
      }
      boolean isLater = status == 429 || status == 500 || (status >= 502 && status <= 504);
      if (left == 0 || !isLater) {
        throw new IOException(
            "the catalog "
                + server
                + " answers "
                + path
                + " with status "
                + status
                + reason(answer));
      }
      pause(asked(answer, wait));
      wait *= 2;
    }
  }

  private HttpRequest request(String path, String body) throws IOException {
    HttpRequest.Builder made =
        HttpRequest.newBuilder(URI.create(server + "/" + path)).timeout(TIMEOUT);
    made.header("Accept", "application/json");
    String bearer = bearer();
    if (!bearer.isEmpty()) {
      made.header("Authorization", "Bearer " + bearer);
    }
    if (body != null) {
      made.header("Content-Type", "application/json");
      made.POST(HttpRequest.BodyPublishers.ofString(body));
    }
    return made.build();
  }

  private HttpResponse<String> send(HttpRequest request) throws IOException {
    try {
      return (HttpResponse<String>) HTTP.send(request, HttpResponse.BodyHandlers.ofString());
    } catch (InterruptedException error) {
      throw interrupted();
    }
  }

  private synchronized String bearer() throws IOException {
    if (clientId.isEmpty()) {
      return fixedToken;
    }
    if (token == null || System.currentTimeMillis() >= renewAt) {
      JsonNode found = newToken();
      token = at(found, "access_token").asText();
      long life = at(found, "expires_in").asLong(3600) * 1000;
      renewAt = System.currentTimeMillis() + life - Math.min(MARGIN_MS, life / 5);
    }
    return token;
  }

  private synchronized void forgetToken() {
    token = null;
  }

  private JsonNode newToken() throws IOException {
    String fields =
        "grant_type=client_credentials&scope=" + URLEncoder.encode(scope, StandardCharsets.UTF_8);
    byte[] pair = (clientId + ":" + clientSecret).getBytes(StandardCharsets.UTF_8);
    HttpRequest.Builder made = HttpRequest.newBuilder(URI.create(tokenUrl)).timeout(TIMEOUT);
    made.header("Authorization", "Basic " + Base64.getEncoder().encodeToString(pair));
    made.header("Content-Type", "application/x-www-form-urlencoded");
    made.POST(HttpRequest.BodyPublishers.ofString(fields));
    HttpResponse<String> answer = send(made.build());
    if (answer.statusCode() != 200) {
      throw new IOException(
          tokenUrl
              + " gives no token to the client "
              + clientId
              + ": status "
              + answer.statusCode());
    }
    return JSON.readTree((String) answer.body());
  }

  /** A field; Janino takes the method of the class for that of its interface. */
  static JsonNode at(JsonNode node, String name) {
    return (JsonNode) node.path(name);
  }

  /** What the server says of a refusal. */
  private static String reason(HttpResponse<String> answer) {
    try {
      JsonNode said = JSON.readTree((String) answer.body());
      said = said.has("error") ? at(said, "error") : said;
      String kind = at(said, "type").asText(at(said, "error_code").asText(""));
      String text = at(said, "message").asText("").split("\n", 2)[0];
      String what = (kind + " " + text).trim();
      what = what.length() > LONGEST_TEXT ? what.substring(0, LONGEST_TEXT) : what;
      return what.isEmpty() ? "" : ": " + what;
    } catch (JsonProcessingException error) {
      return "";
    }
  }

  private static long asked(HttpResponse<String> answer, long usual) {
    try {
      String seconds = (String) answer.headers().firstValue("Retry-After").orElse("");
      return seconds.isEmpty()
          ? usual
          : Math.min((long) (Double.parseDouble(seconds) * 1000), LONGEST_WAIT_MS);
    } catch (NumberFormatException error) {
      return usual;
    }
  }

  private static void pause(long ms) throws IOException {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException error) {
      throw interrupted();
    }
  }

  /** The error of a task that is cancelled. */
  private static InterruptedIOException interrupted() {
    Thread.currentThread().interrupt();
    return new InterruptedIOException("the request to the catalog was interrupted");
  }
}
