package io.deltafast.spark;

import com.google.cloud.hadoop.util.AccessTokenProvider;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Constructor;
import java.time.Instant;
import org.apache.hadoop.conf.Configuration;

/**
 * {@link TableCredentials} for the Google Cloud Storage connector, which asks for a token before
 * the one that it has expires.
 */
@SuppressWarnings("cast") // Janino ignores type arguments.
public final class GoogleTableCredentials implements AccessTokenProvider {
  private Configuration settings;
  private TableCredentials credentials;

  @Override
  public void setConf(Configuration settings) {
    this.settings = settings;
    credentials = TableCredentials.of(settings);
  }

  @Override
  public Configuration getConf() {
    return settings;
  }

  @Override
  public AccessToken getAccessToken() {
    String token;
    long expiresAt;
    // Both of one answer.
    synchronized (credentials) {
      try {
        token = (String) credentials.current().get(TableCredentials.TOKEN);
      } catch (IOException error) {
        throw new UncheckedIOException(error.getMessage(), error);
      }
      expiresAt = credentials.expiresAt();
    }
    if (token == null) {
      String message = "the catalog gives no token of Google Cloud Storage for a table there";
      throw new UncheckedIOException(message, new IOException(message));
    }
    return accessToken(token, expiresAt);
  }

  /** Does nothing: {@link #getAccessToken} asks when it must. */
  @Override
  public void refresh() {}

  /** Release 2 of the connector takes the end in milliseconds, release 3 an instant. */
  private static AccessToken accessToken(String token, long expiresAt) {
    Constructor<?> made = AccessToken.class.getConstructors()[0];
    boolean takesInstant = made.getParameterTypes()[1] == Instant.class;
    Object end = takesInstant ? Instant.ofEpochMilli(expiresAt) : Long.valueOf(expiresAt);
    try {
      return (AccessToken) made.newInstance(token, end);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException("this release of the connector is not known", error);
    }
  }
}
