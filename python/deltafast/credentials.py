"""Credential providers: functions that return short-lived credentials, called again before these expire.

`credential_provider=` of `DeltaTable`, `write_deltalake`, `DeltaTable.create` and others takes a function without
arguments, which may be async. It returns a dict as the providers of obstore do, which are accepted as they are, or the
pair of Polars' providers: a dict, and the expiry in seconds since the epoch.

| store | keys of the dict |
|---|---|
| S3 | `access_key_id`, `secret_access_key`, `token` (of a session) |
| Azure | one of `access_key`, `sas_token` (a query string or pairs), `token` (a bearer token) |
| Google Cloud Storage | `token` (a bearer token) |

`expires_at` is a datetime with a time zone, or None for credentials that do not expire. Names with the prefixes and
suffixes of storage options (`aws_session_token`, `azure_storage_sas_token`, `bearer_token`) are accepted, too.

A provider is called from a thread of deltafast: five minutes before its credentials expire, or a fifth of their life
before if that is shorter; once for all threads and all tables with the same provider, also in the middle of a long
upload. While it fails, the old credentials are used as long as they are valid. It is a part of pickles.

Without a provider the environment, `storage_options`, and the services of the machine give the credentials. Where
these say nothing, what botocore, azure-identity and google-auth find is used, if they are installed: `AwsProfile`,
`AzureIdentity`, `GoogleAuth`. In a notebook of Microsoft Fabric it is the notebook's identity: `FabricNotebook`.

Examples:
    >>> def provider():                                                          # doctest: +SKIP
    ...     found = boto3.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="job")["Credentials"]
    ...     return {
    ...         "access_key_id": found["AccessKeyId"],
    ...         "secret_access_key": found["SecretAccessKey"],
    ...         "token": found["SessionToken"],
    ...         "expires_at": found["Expiration"],
    ...     }
    >>> table = DeltaTable("s3://bucket/events", credential_provider=provider)    # doctest: +SKIP
"""

from deltafast._credentials.aws_profile import AwsProfile
from deltafast._credentials.azure_identity import AzureIdentity
from deltafast._credentials.fabric_notebook import FabricNotebook
from deltafast._credentials.google_auth import GoogleAuth
from deltafast._credentials.provider import CredentialProvider, Credentials

__all__ = ["AwsProfile", "AzureIdentity", "CredentialProvider", "Credentials", "FabricNotebook", "GoogleAuth"]
