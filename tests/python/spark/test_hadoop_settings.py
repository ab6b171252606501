"""Hadoop's settings of stores, as its documentation has them, and what the core is told."""

from __future__ import annotations

import json
import pathlib

import pytest

from deltafast.exceptions import InvalidArgumentError
from deltafast.spark._session import credentials
from deltafast.spark._session.storage import place_of

KEYS = {"fs.s3a.access.key": "k", "fs.s3a.secret.key": "s"}
#: What Hadoop says where nobody has said anything.
DEFAULTS = {
    "fs.s3a.aws.credentials.provider": "\n  org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider,\n"
    "  org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider,\n"
    "  software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider,\n"
    "  org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider\n",
    "fs.s3a.path.style.access": "false",
    "fs.s3a.connection.ssl.enabled": "true",
    "fs.s3a.accesspoint.required": "false",
    "fs.gs.auth.type": "COMPUTE_ENGINE",
    "fs.azure.authorization": "false",
    "hadoop.security.credential.clear-text-fallback": "true",
}
GATEWAY = {"hadoop_gateway": "127.0.0.1:1", "hadoop_gateway_secret": "x", "hadoop_gateway_configuration": "c"}


class Settings:
    """A session without Spark."""

    def __init__(
        self, held: dict[str, str] | None = None, home: str | None = None, *, via_hadoop: bool = False
    ) -> None:
        self.held, self._home, self.via_hadoop = DEFAULTS | (held or {}), home, via_hadoop

    def hadoop(self, prefix: str) -> dict[str, str]:
        return {key: value for key, value in self.held.items() if key.startswith(prefix)}

    def home(self) -> str | None:
        return self._home

    def gateway(self, path: str) -> dict[str, str]:
        return GATEWAY


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AZURE_FEDERATED_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def s3(settings: dict[str, str], bucket: str = "b") -> dict[str, str] | None:
    return credentials.s3(DEFAULTS | settings, bucket)


def provider(*names: str) -> dict[str, str]:
    return {"fs.s3a.aws.credentials.provider": ",".join(names)}


def test_keys_of_s3_and_those_of_a_bucket():
    plain = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    assert s3({}) == {}
    assert s3(KEYS) == plain
    session = KEYS | {"fs.s3a.session.token": "t"}
    assert s3(session) == plain | {"AWS_SESSION_TOKEN": "t"}
    # The simple class does not look at the token.
    assert s3(session | provider("org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider")) == plain
    own = {f"fs.s3a.bucket.b.{key.removeprefix('fs.s3a.')}": f"own {value}" for key, value in KEYS.items()}
    assert s3(KEYS | own) == {"AWS_ACCESS_KEY_ID": "own k", "AWS_SECRET_ACCESS_KEY": "own s"}
    assert s3(KEYS | own, "other") == plain
    # A dot is part of a bucket's name, and no other bucket's.
    assert s3(KEYS | {"fs.s3a.bucket.b.c.access.key": "not"}) == plain


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",), {"AWS_SKIP_SIGNATURE": "true"}),
        (("com.amazonaws.auth.AnonymousAWSCredentials",), {"AWS_SKIP_SIGNATURE": "true"}),
        (("org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",), {}),
        (("software.amazon.awssdk.auth.credentials.ContainerCredentialsProvider",), {}),
        (("com.amazonaws.auth.WebIdentityTokenCredentialsProvider",), {}),
        (("com.amazonaws.auth.DefaultAWSCredentialsProviderChain",), {}),
        (("org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider",), None),
        (("org.apache.hadoop.fs.s3a.auth.ProfileAWSCredentialsProvider",), None),
        (("com.example.Vended",), None),
        (("org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider", "com.example.Vended"), None),
    ],
)
def test_classes_that_the_core_can_do_without_and_others(names, expected):
    assert s3(provider(*names)) == expected


def test_the_first_class_that_finds_keys_counts(monkeypatch, tmp_path):
    simple = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    assert s3(KEYS | provider(simple, "com.example.Vended")) == keys
    assert s3(KEYS | provider("com.example.Vended", simple)) is None
    environment = "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"
    assert s3(KEYS | provider(environment, simple)) == keys
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the environment")
    assert s3(KEYS | provider(environment, simple)) == {}
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    chain = provider("software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider")
    (tmp_path / ".aws").mkdir()
    assert s3(chain) == {}
    (tmp_path / ".aws" / "credentials").touch()
    assert s3(chain) is None


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"endpoint": "s3.amazonaws.com"}, {}),
        ({"endpoint": "s3.amazonaws.com", "endpoint.region": "eu-west-1"}, {"AWS_REGION": "eu-west-1"}),
        ({"endpoint.region": "eu-west-1"}, {"AWS_REGION": "eu-west-1"}),
        (
            {"endpoint": "s3.eu-west-3.amazonaws.com", "path.style.access": "true"},
            {
                "AWS_REGION": "eu-west-3",
                "AWS_ENDPOINT_URL": "https://s3.eu-west-3.amazonaws.com",
                "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
            },
        ),
        (
            {"endpoint": "https://oss-cn-x.aliyuncs.com"},
            {"AWS_ENDPOINT_URL": "https://b.oss-cn-x.aliyuncs.com", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"},
        ),
        (
            {"endpoint": "minio:9000", "connection.ssl.enabled": "false", "path.style.access": "true"},
            {
                "AWS_ENDPOINT_URL": "http://minio:9000",
                "AWS_ALLOW_HTTP": "true",
                "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
            },
        ),
        (
            {"endpoint": "http://127.0.0.1:9000"},
            {
                "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
                "AWS_ALLOW_HTTP": "true",
                "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
            },
        ),
        (
            {"encryption.algorithm": "SSE-KMS", "encryption.key": "arn"},
            {"AWS_SERVER_SIDE_ENCRYPTION": "aws:kms", "AWS_SSE_KMS_KEY_ID": "arn"},
        ),
        (
            {"server-side-encryption-algorithm": "SSE-C", "server-side-encryption.key": "a2V5"},
            {"AWS_SERVER_SIDE_ENCRYPTION": "sse-c", "AWS_SSE_CUSTOMER_KEY_BASE64": "a2V5"},
        ),
        ({"requester.pays.enabled": "true"}, {"AWS_REQUEST_PAYER": "true"}),
        (
            {"proxy.host": "p", "proxy.port": "3128", "proxy.username": "u", "proxy.password": "@"},
            {"PROXY_URL": "http://u:%40@p:3128"},
        ),
        ({"encryption.algorithm": "CSE-KMS", "encryption.key": "arn"}, None),
        ({"accesspoint.arn": "arn"}, None),
        ({"delegation.token.binding": "com.example.Binding"}, None),
        ({"security.credential.provider.path": "jceks://x"}, None),
    ],
)
def test_where_s3_is_and_how_it_is_spoken_to(settings, expected):
    for prefix in ("fs.s3a.", "fs.s3a.bucket.b."):
        assert s3({prefix + key: value for key, value in settings.items()}) == expected


def test_keystores_are_read_by_hadoop():
    keystore = {"hadoop.security.credential.provider.path": "jceks://file/keys"}
    assert s3(keystore) is None
    assert s3(keystore | KEYS) is not None
    assert credentials.azure(keystore, HOST) is None


HOST = "c@a.dfs.core.windows.net"
ACCOUNT = {"azure_storage_account_name": "a"}


@pytest.mark.parametrize("suffix", ["", ".a.dfs.core.windows.net", ".c.a"])
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        ({"account.key": "k"}, {"azure_storage_account_key": "k"}),
        ({"account.auth.type": "SharedKey", "account.key": "k"}, {"azure_storage_account_key": "k"}),
        ({"account.auth.type": "SAS", "sas.fixed.token": "?sv=1&sig=x"}, {"azure_storage_sas_token": "sv=1&sig=x"}),
        ({"account.auth.type": "SAS", "sas.token.provider.type": "com.example.Vended"}, None),
        ({"account.auth.type": "Custom", "account.oauth.provider.type": "com.example.Vended"}, None),
        (
            {
                "account.auth.type": "OAuth",
                "account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
                "account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
                "account.oauth2.client.id": "i",
                "account.oauth2.client.secret": "s",
            },
            {
                "azure_storage_client_id": "i",
                "azure_storage_client_secret": "s",
                "azure_storage_tenant_id": "tenant",
            },
        ),
        (
            {
                "account.auth.type": "OAuth",
                "account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
                "account.oauth2.client.endpoint": "https://login.chinacloudapi.cn/tenant/oauth2/v2.0/token",
                "account.oauth2.client.id": "i",
                "account.oauth2.client.secret": "s",
            },
            {
                "azure_storage_client_id": "i",
                "azure_storage_client_secret": "s",
                "azure_storage_tenant_id": "tenant",
                "azure_storage_authority_host": "https://login.chinacloudapi.cn",
            },
        ),
        (
            {
                "account.auth.type": "OAuth",
                "account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider",
                "account.oauth2.client.id": "i",
            },
            {"azure_storage_client_id": "i"},
        ),
        (
            {
                "account.auth.type": "OAuth",
                "account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.WorkloadIdentityTokenProvider",
                "account.oauth2.client.id": "i",
                "account.oauth2.msi.tenant": "t",
                "account.oauth2.token.file": "/token",
            },
            {
                "azure_storage_client_id": "i",
                "azure_storage_tenant_id": "t",
                "azure_federated_token_file": "/token",
            },
        ),
        (
            {
                "account.auth.type": "OAuth",
                "account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.RefreshTokenBasedTokenProvider",
                "account.oauth2.refresh.token": "r",
            },
            None,
        ),
        ({"account.keyprovider": "org.apache.hadoop.fs.azurebfs.services.ShellDecryptionKeyProvider"}, None),
        ({"encryption.key.type": "client-provided-key", "account.key": "k"}, None),
    ],
)
def test_accounts_of_azure(settings, suffix, expected):
    found = credentials.azure({f"fs.azure.{key}{suffix}": value for key, value in settings.items()}, HOST)
    assert found == (None if expected is None else ACCOUNT | expected)


def test_what_is_nearest_wins_in_azure():
    key = "fs.azure.account.key"
    settings = {key: "all", f"{key}.a.dfs.core.windows.net": "account", f"{key}.b.dfs.core.windows.net": "other"}
    assert credentials.azure(settings, HOST) == ACCOUNT | {"azure_storage_account_key": "account"}
    assert credentials.azure({key: "k"}, "c@a.dfs.core.chinacloudapi.cn") is None


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        ({"auth.service.account.json.keyfile": "/key"}, {"google_service_account": "/key"}),
        (
            {"auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", "auth.service.account.json.keyfile": "/key"},
            {"google_service_account": "/key"},
        ),
        ({"auth.type": "UNAUTHENTICATED"}, {"google_skip_signature": "true"}),
        ({"auth.type": "APPLICATION_DEFAULT"}, {}),
        (
            {"storage.root.url": "http://localhost:4443/"},
            {"google_base_url": "http://localhost:4443", "allow_http": "true"},
        ),
        ({"auth.type": "ACCESS_TOKEN_PROVIDER", "auth.access.token.provider": "com.example.Vended"}, None),
        ({"auth.access.token.provider.impl": "com.example.Vended"}, None),
        ({"auth.type": "USER_CREDENTIALS"}, None),
        ({"auth.impersonation.service.account": "x@y"}, None),
        ({"auth.impersonation.service.account.for.user.me": "x@y"}, None),
        ({"encryption.key": "k"}, None),
    ],
)
def test_google(settings, expected):
    assert credentials.gcs({f"fs.gs.{key}": value for key, value in settings.items()}) == expected


def test_a_key_of_google_that_stands_in_the_settings():
    key = "fs.gs.auth.service.account."
    settings = {f"{key}email": "x@y", f"{key}private.key.id": "i", f"{key}private.key": "-----\\nk"}
    found = credentials.gcs(settings)
    assert found is not None
    assert json.loads(found["google_service_account_key"]) == {
        "type": "service_account",
        "client_email": "x@y",
        "private_key": "-----\nk",
        "private_key_id": "i",
    }


@pytest.mark.parametrize("home", [None, "hdfs://nn:8020/user/me"])
@pytest.mark.parametrize(
    ("path", "hadoop", "uri"),
    [
        ("file:/a b", "file:/a b", "/a b"),
        ("file:///a%20b", "file:/a b", "/a b"),
        ("s3://b/t/", "s3a://b/t", "s3://b/t"),
        ("s3n://b/t", "s3a://b/t", "s3://b/t"),
        ("gs://b/x/../t", "gs://b/t", "gs://b/t"),
        ("hdfs://other/a%20b//c/", "hdfs://other/a%20b/c", "hdfs://other/a%20b/c"),
        ("abfss://c@a.dfs.core.windows.net", "abfss://c@a.dfs.core.windows.net", "abfss://c@a.dfs.core.windows.net"),
        (
            "wasbs://c@a.blob.core.windows.net/t",
            "wasbs://c@a.blob.core.windows.net/t",
            "wasbs://c@a.blob.core.windows.net/t",
        ),
    ],
)
def test_places_by_url(path, hadoop, uri, home):
    place = place_of(Settings(home=home), path)
    if uri.startswith("/"):
        uri = str(pathlib.Path(uri)) if home is None else pathlib.Path(uri).as_uri()
    assert (place.hadoop, place.uri) == (hadoop, uri)
    assert ("hadoop_gateway" in place.options) == uri.startswith(("hdfs", "wasbs"))
    # What a place is called, it is again.
    assert place_of(Settings(home=home), place.uri, place.options) == place


def test_paths_without_a_scheme_are_where_hadoop_looks_for_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert place_of(Settings(), "t/../u") == (f"file:{tmp_path}/u", str(tmp_path / "u"), {})
    away = Settings(home="hdfs://nn:8020/user/me")
    for path, expected in (
        ("t", "/user/me/t"),
        ("/t", "/t"),
        ("../t", "/user/t"),
        ("hdfs:///t", "/t"),
        ("hdfs:/t", "/t"),
    ):
        place = place_of(away, path)
        assert place == (f"hdfs://nn:8020{expected}", f"hdfs://nn:8020{expected}", GATEWAY)
        assert place.folder is None
    with pytest.raises(InvalidArgumentError, match="empty"):
        place_of(away, "")


def test_hadoop_is_the_way_where_it_is_asked_for_and_where_nothing_else_is():
    vended = {"fs.s3a.bucket.b.aws.credentials.provider": "com.example.Vended"}
    assert place_of(Settings(vended), "s3://b/t") == ("s3a://b/t", "s3a://b/t", GATEWAY)
    assert place_of(Settings(vended | KEYS), "s3://c/t").uri == "s3://c/t"
    # Who gives keys for the core's own store wants that.
    given = {"aws_access_key_id": "k"}
    assert place_of(Settings(vended), "s3://b/t", given) == ("s3a://b/t", "s3://b/t", given)
    risky = {"allow_unsafe_rename": "true"}
    assert place_of(Settings(vended), "s3://b/t", risky).options == GATEWAY | risky
    for settings, options in ((Settings(KEYS, via_hadoop=True), {}), (Settings(KEYS), {"via_hadoop": "true"})):
        assert place_of(settings, "s3a://b/t", options) == ("s3a://b/t", "s3a://b/t", GATEWAY)
        place = place_of(settings, "/t", options)
        assert (place.hadoop, place.uri, place.options) == ("file:/t", "file:///t", GATEWAY)
        assert place.folder == pathlib.Path("/t")
    assert place_of(Settings(KEYS, via_hadoop=True), "/t", {"via_hadoop": "false"}).options == {}
