package io.deltafast.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;

/** {@link TableCredentials} for S3A, which asks for them before each request. */
@SuppressWarnings("cast") // Janino ignores type arguments.
public final class S3TableCredentials implements AwsCredentialsProvider {
  private final TableCredentials credentials;

  /** S3A calls it, for a bucket. */
  public S3TableCredentials(URI bucket, Configuration settings) {
    credentials = TableCredentials.of(settings);
  }

  @Override
  public AwsCredentials resolveCredentials() {
    Map<String, String> values;
    try {
      values = credentials.current();
    } catch (IOException error) {
      throw new UncheckedIOException(error.getMessage(), error);
    }
    String key = (String) values.get(TableCredentials.ACCESS_KEY);
    String secret = (String) values.get(TableCredentials.SECRET_KEY);
    if (key == null || secret == null) {
      String message = "the catalog gives no keys of S3 for a table in S3";
      throw new UncheckedIOException(message, new IOException(message));
    }
    String token = (String) values.get(TableCredentials.SESSION_TOKEN);
    return token == null || token.isEmpty()
        ? AwsBasicCredentials.create(key, secret)
        : AwsSessionCredentials.create(key, secret, token);
  }
}
