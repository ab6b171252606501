"""Hadoop's settings of S3A, ABFS and the Google Cloud Storage connector -> options of the core's own stores.

The keys are those that Hadoop and the connectors document. The result is None if credentials come from a class, a
keystore or a login that only Java supports: such a store is accessed through Hadoop.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["PREFIXES", "azure", "gcs", "gcs_without_credentials", "s3", "s3_without_credentials"]

#: Prefixes of the settings, for callers that pass them on.
PREFIXES: Final = ("fs.s3a.", "fs.azure.", "fs.gs.", "google.cloud.", "hadoop.security.credential.")

_KEYSTORES: Final = "hadoop.security.credential.provider.path"


def _is(value: str | None, default: bool = False) -> bool:
    return default if value is None else value.strip().lower() == "true"


def _class(name: str) -> str:
    """Return the name of a class without its package."""
    return name.strip().rpartition(".")[2].rpartition("$")[2]


# --- S3A -----------------------------------------------------------------------------------------

#: Providers that the core's own chain covers: the environment, a web identity, a container or a machine.
_FOUND_BY_THE_CORE: Final = (
    "IAMInstanceCredentialsProvider",
    "InstanceProfileCredentialsProvider",
    "SharedInstanceProfileCredentialsProvider",
    "ContainerCredentialsProvider",
    "EC2ContainerCredentialsProviderWrapper",
    "WebIdentityTokenFileCredentialsProvider",
    "WebIdentityTokenCredentialsProvider",
)
_CHAINS: Final = ("DefaultCredentialsProvider", "DefaultAWSCredentialsProviderChain")
_DEFAULT: Final = (
    "TemporaryAWSCredentialsProvider,SimpleAWSCredentialsProvider,EnvironmentVariableCredentialsProvider,"
    "IAMInstanceCredentialsProvider"
)
_ENCRYPTED: Final = {
    "AES256": "AES256",
    "SSE-S3": "AES256",
    "SSE-KMS": "aws:kms",
    "DSSE-KMS": "aws:kms:dsse",
    "SSE-C": "sse-c",
}
#: Settings with which only Hadoop can access a bucket.
_ONLY_HADOOP: Final = ("accesspoint.arn", "delegation.token.binding", "security.credential.provider.path")


def s3_without_credentials(settings: Mapping[str, str], bucket: str) -> dict[str, str]:
    """Return the options of a bucket but its credentials: endpoint, region, encryption, proxy.

    Args:
        settings: Settings of Hadoop, by their full names.
        bucket: The bucket.
    """
    given = _s3_settings(settings, bucket)
    found = _s3_endpoint(given, bucket) | (_s3_encryption(given) or {}) | (_s3_proxy(given) or {})
    return found | _s3_payer(given)


def s3(settings: Mapping[str, str], bucket: str) -> dict[str, str] | None:
    """Return the options of a bucket, whose own settings override those of all buckets.

    Args:
        settings: Settings of Hadoop, by their full names.
        bucket: The bucket.

    Returns:
        The options; None if only Hadoop can access it.
    """
    given = _s3_settings(settings, bucket)
    if any(given.get(key) for key in _ONLY_HADOOP) or (_KEYSTORES in settings and "secret.key" not in given):
        return None
    found = _s3_credentials(given)
    encrypted = _s3_encryption(given)
    proxy = _s3_proxy(given)
    if found is None or encrypted is None or proxy is None:
        return None
    return found | encrypted | proxy | _s3_endpoint(given, bucket) | _s3_payer(given)


def _s3_settings(settings: Mapping[str, str], bucket: str) -> dict[str, str]:
    """Return the settings of a bucket by their names without prefix."""
    given: dict[str, str] = {}
    for prefix in ("fs.s3a.", f"fs.s3a.bucket.{bucket}."):
        given |= {key[len(prefix) :]: value.strip() for key, value in settings.items() if key.startswith(prefix)}
    return {key: value for key, value in given.items() if value}


def _s3_payer(given: Mapping[str, str]) -> dict[str, str]:
    return {"AWS_REQUEST_PAYER": "true"} if _is(given.get("requester.pays.enabled")) else {}


def _s3_credentials(given: Mapping[str, str]) -> dict[str, str] | None:  # noqa: C901, PLR0911 - one line per class
    """Return the credentials of the first provider of the list that has some, in Hadoop's order."""
    key, secret, token = (given.get(name) for name in ("access.key", "secret.key", "session.token"))
    for text in re.split(r"[,\s]+", given.get("aws.credentials.provider", "") or _DEFAULT):
        name = _class(text)
        if name == "TemporaryAWSCredentialsProvider":
            if key and secret and token:
                return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": token}
        elif name in ("SimpleAWSCredentialsProvider", "BasicAWSCredentialsProvider"):
            if key and secret:
                return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}
        elif name in ("AnonymousAWSCredentialsProvider", "AnonymousAWSCredentials", "AnonymousCredentialsProvider"):
            return {"AWS_SKIP_SIGNATURE": "true"}
        elif name == "EnvironmentVariableCredentialsProvider":
            if os.environ.get("AWS_ACCESS_KEY_ID"):
                return {}
        elif name in _FOUND_BY_THE_CORE or (name in _CHAINS and not _has_profile()):
            return {}
        elif name:
            return None
    return {}


def _has_profile() -> bool:
    """Return whether the AWS SDK's chains would read a file with profiles, which the core does not read."""
    if os.environ.get("AWS_ACCESS_KEY_ID") or os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
        # The environment comes first.
        return False
    folder = Path("~/.aws").expanduser()
    return "AWS_PROFILE" in os.environ or (folder / "credentials").exists() or (folder / "config").exists()


def _s3_endpoint(given: Mapping[str, str], bucket: str) -> dict[str, str]:
    found: dict[str, str] = {}
    endpoint, region = given.get("endpoint", ""), given.get("endpoint.region")
    host = endpoint.partition("://")[2] if "://" in endpoint else endpoint
    if region is None:
        # As Hadoop does: s3.REGION.amazonaws.com, s3-REGION.amazonaws.com, ID.s3.REGION.vpce.amazonaws.com
        match = re.search(r"(?:^|\.)s3[.-]([a-z0-9-]+)\.(?:vpce\.)?amazonaws\.com(?:\.cn)?/?$", host)
        region = match[1] if match else None
    if region:
        found["AWS_REGION"] = region
    if not endpoint or host.rstrip("/") == "s3.amazonaws.com":
        # The endpoint is that of the region.
        return found
    scheme = endpoint.partition("://")[0] if "://" in endpoint else ""
    scheme = scheme or ("https" if _is(given.get("connection.ssl.enabled"), default=True) else "http")
    # An IP address has no subdomains, and a wildcard certificate does not cover a bucket name with dots.
    plain = re.fullmatch(r"(?:[\d.]+|\[.*\])(?::\d+)?/?", host) or ("." in bucket and scheme == "https")
    virtual = not plain and not _is(given.get("path.style.access"))
    found["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = str(virtual).lower()
    host = f"{bucket}.{host}" if virtual else host
    found["AWS_ENDPOINT_URL"] = f"{scheme}://{host}"
    if scheme == "http":
        found["AWS_ALLOW_HTTP"] = "true"
    return found


def _s3_encryption(given: Mapping[str, str]) -> dict[str, str] | None:
    algorithm = given.get("encryption.algorithm") or given.get("server-side-encryption-algorithm")
    key = given.get("encryption.key") or given.get("server-side-encryption.key")
    if not algorithm:
        return {}
    if algorithm.upper() not in _ENCRYPTED or given.get("encryption.context"):
        # Client-side encryption, or an encryption context: only Hadoop writes such objects.
        return None
    found = {"AWS_SERVER_SIDE_ENCRYPTION": _ENCRYPTED[algorithm.upper()]}
    if key:
        found["AWS_SSE_CUSTOMER_KEY_BASE64" if algorithm.upper() == "SSE-C" else "AWS_SSE_KMS_KEY_ID"] = key
    return found


def _s3_proxy(given: Mapping[str, str]) -> dict[str, str] | None:
    if not given.get("proxy.host"):
        return {}
    secure = _is(given.get("proxy.ssl.enabled"))
    port = given.get("proxy.port") or ("443" if _is(given.get("connection.ssl.enabled"), default=True) else "80")
    name, password = given.get("proxy.username"), given.get("proxy.password")
    if given.get("proxy.domain") or given.get("proxy.workstation"):
        return None
    user = f"{quote(name, safe='')}:{quote(password or '', safe='')}@" if name else ""
    return {"PROXY_URL": f"{'https' if secure else 'http'}://{user}{given['proxy.host']}:{port}"}


# --- ABFS ----------------------------------------------------------------------------------------

#: Host suffixes that the core supports.
_AZURE_HOSTS: Final = (".dfs.core.windows.net", ".blob.core.windows.net", ".dfs.fabric.microsoft.com")


def azure(settings: Mapping[str, str], netloc: str) -> dict[str, str] | None:  # noqa: PLR0911 - one line per kind
    """Return the options of a container, whose settings override those of its account, and these the global ones.

    Args:
        settings: Settings of Hadoop, by their full names.
        netloc: `container@account.dfs.core.windows.net`.

    Returns:
        The options; None if only Hadoop can access it.
    """
    container, _, host = netloc.rpartition("@")
    account = host.partition(".")[0]

    def setting(name: str) -> str | None:
        keys = [f"fs.azure.{name}.{container}.{account}", f"fs.azure.{name}.{container}.{host}"] if container else []
        keys += [f"fs.azure.{name}.{host}", f"fs.azure.{name}"]
        return next((settings[key].strip() for key in keys if settings.get(key, "").strip()), None)

    provider = setting("account.keyprovider")
    if "." in host and not host.endswith(_AZURE_HOSTS):
        return None
    if setting("encryption.key.type") or (provider and _class(provider) != "SimpleKeyProvider"):
        return None
    found = {"azure_storage_account_name": account}
    auth_type = (setting("account.auth.type") or "").lower()
    key, token = setting("account.key"), setting("sas.fixed.token")
    if auth_type == "oauth" or (not auth_type and not key and not token and setting("account.oauth2.client.id")):
        login = _azure_login(setting)
        return None if login is None else found | login
    if auth_type == "sas" or (not auth_type and not key and token):
        return found | {"azure_storage_sas_token": token.removeprefix("?")} if token else None
    if auth_type not in ("", "sharedkey"):
        return None
    if key:
        return found | {"azure_storage_account_key": key}
    return None if _KEYSTORES in settings or setting("security.credential.provider.path") else found


def _azure_login(setting: Callable[[str], str | None]) -> dict[str, str] | None:
    """Return the options of a login at the Microsoft identity platform."""
    client, secret = setting("account.oauth2.client.id"), setting("account.oauth2.client.secret")
    name = _class(setting("account.oauth.provider.type") or ("ClientCredsTokenProvider" if secret else ""))
    tenant = setting("account.oauth2.msi.tenant")
    found = {"azure_storage_client_id": client} if client else {}
    if name == "ClientCredsTokenProvider":
        # https://login.microsoftonline.com/TENANT/oauth2/token
        endpoint = urlsplit(setting("account.oauth2.client.endpoint") or "")
        tenant = endpoint.path.strip("/").partition("/")[0]
        if not (client and secret and tenant):
            return None
        found |= {"azure_storage_client_secret": secret, "azure_storage_tenant_id": tenant}
        if endpoint.netloc != "login.microsoftonline.com":
            found["azure_storage_authority_host"] = f"{endpoint.scheme}://{endpoint.netloc}"
        return found
    if name == "MsiTokenProvider":
        endpoint = setting("account.oauth2.msi.endpoint")
        return found | ({"azure_msi_endpoint": endpoint} if endpoint else {})
    if name == "WorkloadIdentityTokenProvider":
        file = setting("account.oauth2.token.file") or os.environ.get("AZURE_FEDERATED_TOKEN_FILE")
        found |= {"azure_federated_token_file": file} if file else {}
        return found | ({"azure_storage_tenant_id": tenant} if tenant else {})
    return None


# --- Google Cloud Storage ------------------------------------------------------------------------

#: Settings with which only the connector can access a bucket.
_ONLY_CONNECTOR: Final = (
    "auth.access.token.provider",
    "auth.access.token.provider.impl",
    "auth.impersonation.service.account",
    "auth.service.account.keyfile",
    "authorization.handler.impl",
    "delegation.token.binding",
    "encryption.key",
)
_GOOGLE_TYPES: Final = ("", "APPLICATION_DEFAULT", "COMPUTE_ENGINE", "SERVICE_ACCOUNT_JSON_KEYFILE", "UNAUTHENTICATED")


def gcs_without_credentials(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the options of all buckets but their credentials: the endpoint.

    Args:
        settings: Settings of Hadoop, by their full names.
    """
    base = (_gcs_setting(settings, "storage.root.url") or "").rstrip("/")
    found = {"google_base_url": base} if base and base != "https://storage.googleapis.com" else {}
    if base.startswith("http://"):
        found["allow_http"] = "true"
    return found


def _gcs_setting(settings: Mapping[str, str], name: str) -> str | None:
    return settings.get(f"fs.gs.{name}", "").strip() or settings.get(f"google.cloud.{name}", "").strip() or None


def gcs(settings: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of all buckets.

    Args:
        settings: Settings of Hadoop, by their full names.

    Returns:
        The options; None if only Hadoop can access them.
    """

    def setting(name: str) -> str | None:
        return _gcs_setting(settings, name)

    auth_type = (setting("auth.type") or "").upper()
    impersonated = any(key.startswith("fs.gs.auth.impersonation.service.account.for.") for key in settings)
    if auth_type not in _GOOGLE_TYPES or impersonated or any(setting(name) for name in _ONLY_CONNECTOR):
        return None
    found = gcs_without_credentials(settings)
    if auth_type == "UNAUTHENTICATED" or (not auth_type and _is(setting("auth.null.enable"))):
        return found | {"google_skip_signature": "true"}
    if auth_type == "APPLICATION_DEFAULT":
        return found
    # COMPUTE_ENGINE is also Hadoop's default.
    if file := setting("auth.service.account.json.keyfile"):
        return found | {"google_service_account": file}
    key, email = setting("auth.service.account.private.key"), setting("auth.service.account.email")
    if key and email:
        account = {
            "type": "service_account",
            "client_email": email,
            "private_key": key.replace("\\n", "\n"),
            "private_key_id": setting("auth.service.account.private.key.id") or "",
        }
        return found | {"google_service_account_key": json.dumps(account)}
    return None if _KEYSTORES in settings and email else found
