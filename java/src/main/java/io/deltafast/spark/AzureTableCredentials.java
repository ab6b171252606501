package io.deltafast.spark;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.azurebfs.extensions.SASTokenProvider;

/** {@link TableCredentials} for ABFS, which asks for a signature before it expires. */
@SuppressWarnings("cast") // Janino ignores type arguments.
public final class AzureTableCredentials implements SASTokenProvider {
  private TableCredentials credentials;

  @Override
  public void initialize(Configuration settings, String account) {
    credentials = TableCredentials.of(settings);
  }

  @Override
  public String getSASToken(String account, String container, String path, String operation)
      throws IOException {
    String signature = (String) credentials.current().get(TableCredentials.SIGNATURE);
    if (signature == null) {
      throw new IOException("the catalog gives no signature of Azure for a table in Azure");
    }
    return signature.startsWith("?") ? signature.substring(1) : signature;
  }
}
