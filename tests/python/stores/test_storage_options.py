"""Storage options: every documented name, odd values, mistyped names, missing credentials, redirects."""

import base64
import contextlib
import http.server
import json
import os
import socket
import threading
import time

import pyarrow as pa
import pytest

import servers
from deltafast import DeltaTable, DeltaWarning, InvalidArgumentError, StorageError, write_deltalake

CLIENT = {
    "allow_http": "true",
    "allow_invalid_certificates": "false",
    "connect_timeout": "5s",
    "default_content_type": "application/octet-stream",
    "disable_system_certificates": "false",
    "http1_only": "true",
    "http2_keep_alive_interval": "10s",
    "http2_keep_alive_timeout": "10s",
    "http2_keep_alive_while_idle": "false",
    "http2_max_frame_size": "16384",
    "http2_only": "false",
    "pool_idle_timeout": "15 seconds",
    "pool_max_idle_per_host": "4",
    "proxy_excludes": "127.0.0.1",
    "randomize_addresses": "false",
    "read_timeout": "1m 30s",
    "timeout": "30",
    "user_agent": "me/1.0",
    # Of deltalake.
    "max_retries": "0",
    "retry_timeout": "10s",
    "backoff_config.init_backoff": "1ms",
    "backoff_config.max_backoff": "1ms",
    "backoff_config.base": "2",
    "OBJECT_STORE_CONCURRENCY_LIMIT": "10",
    "MOUNT_ALLOW_UNSAFE_RENAME": "true",
    "allow_unsafe_rename": "true",
}
S3 = {
    "access_key_id": "id",
    "secret_access_key": "key",
    "default_region": "eu-west-1",
    "region": "eu-west-1",
    "bucket": "bucket",
    "bucket_name": "bucket",
    "endpoint": "URL",
    "endpoint_url": "URL",
    "endpoint_url_sts": "URL",
    "session_token": "token",
    "token": "token",
    "virtual_hosted_style_request": "false",
    "s3_express": "false",
    "imdsv1_fallback": "true",
    "metadata_endpoint": "URL",
    "unsigned_payload": "true",
    "checksum_algorithm": "sha256",
    "container_credentials_relative_uri": "/get",
    "container_credentials_full_uri": "URL/get",
    "container_authorization_token_file": "FILE",
    "web_identity_token_file": "FILE",
    "role_arn": "arn:aws:iam::123456789012:role/mine",
    "role_session_name": "session",
    "skip_signature": "true",
    "copy_if_not_exists": "multipart",
    "conditional_put": "etag",
    "disable_tagging": "true",
    "disable_bulk_delete": "true",
    "request_payer": "requester",
    "sse_kms_key_id": "id",
    "sse_bucket_key_enabled": "true",
    "server_side_encryption": "AES256",
    "sse_customer_key_base64": base64.b64encode(b"0" * 32).decode(),
}
S3_ALONE = {
    "aws_endpoint_url_s3": "URL",
    "AWS_STS_ENDPOINT": "URL",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT": "URL",
    "AWS_EC2_METADATA_V1_DISABLED": "true",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_EC2_METADATA_TIMEOUT": "100",
    "AWS_S3_ADDRESSING_STYLE": "path",
    "AWS_S3_LOCKING_PROVIDER": "dynamodb",
    "s3_locking_provider": "none",
    "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
    "DELTA_DYNAMO_TABLE_NAME": "delta_log",
    "DELTA_DYNAMO_BILLING_MODE": "x",
    "DELTA_DYNAMO_MAX_ELAPSED_REQUEST_TIME": "x",
    "AWS_ENDPOINT_URL_DYNAMODB": "URL",
    "AWS_REGION_DYNAMODB": "eu-west-1",
    "AWS_ACCESS_KEY_ID_DYNAMODB": "id",
    "AWS_SECRET_ACCESS_KEY_DYNAMODB": "key",
    "AWS_SESSION_TOKEN_DYNAMODB": "token",
    "AWS_S3_POOL_IDLE_TIMEOUT_SECONDS": "15",
    "AWS_STS_POOL_IDLE_TIMEOUT_SECONDS": "15",
    "AWS_S3_GET_INTERNAL_SERVER_ERROR_RETRIES": "3",
    "AWS_FORCE_CREDENTIAL_LOAD": "true",
}
KEY = base64.b64encode(b"key").decode()
AZURE = (
    dict.fromkeys(
        [
            "azure_storage_account_key",
            "azure_storage_access_key",
            "azure_storage_master_key",
            "access_key",
            "account_key",
            "master_key",
        ],
        KEY,
    )
    | dict.fromkeys(["azure_storage_account_name", "account_name"], "account")
    | dict.fromkeys(["azure_storage_client_id", "azure_client_id", "client_id"], "id")
    | dict.fromkeys(["azure_storage_client_secret", "azure_client_secret", "client_secret"], "secret")
    | dict.fromkeys(["azure_storage_tenant_id", "azure_tenant_id", "tenant_id"], "tenant")
    | dict.fromkeys(["azure_storage_authority_id", "azure_authority_id", "authority_id"], "tenant")
    | dict.fromkeys(["azure_storage_authority_host", "azure_authority_host", "authority_host"], "URL")
    | dict.fromkeys(["azure_storage_sas_key", "azure_storage_sas_token", "sas_key", "sas_token"], "?sv=1&sig=2%3D")
    | dict.fromkeys(["azure_storage_token", "bearer_token", "token"], "token")
    | dict.fromkeys(["azure_storage_use_emulator", "object_store_use_emulator", "use_emulator"], "false")
    | dict.fromkeys(["azure_storage_endpoint", "azure_endpoint", "endpoint"], "URL")
    | dict.fromkeys(
        [
            "azure_msi_endpoint",
            "azure_identity_endpoint",
            "identity_endpoint",
            "msi_endpoint",
            "azure_storage_msi_endpoint",
        ],
        "URL",
    )
    | dict.fromkeys(["azure_object_id", "object_id", "azure_storage_object_id"], "id")
    | dict.fromkeys(["azure_msi_resource_id", "msi_resource_id", "azure_storage_msi_resource_id"], "id")
    | dict.fromkeys(["azure_federated_token_file", "federated_token_file"], "FILE")
    | dict.fromkeys(["azure_use_fabric_endpoint", "use_fabric_endpoint", "AZURE_STORAGE_USE_FABRIC_ENDPOINT"], "true")
    | dict.fromkeys(["azure_use_azure_cli", "use_azure_cli", "AZURE_STORAGE_USE_AZURE_CLI"], "false")
    | dict.fromkeys(["azure_skip_signature", "skip_signature", "AZURE_STORAGE_SKIP_SIGNATURE"], "true")
    | dict.fromkeys(["azure_container_name", "container_name", "AZURE_STORAGE_CONTAINER_NAME"], "container")
    | dict.fromkeys(["azure_disable_tagging", "disable_tagging", "AZURE_STORAGE_DISABLE_TAGGING"], "true")
    | dict.fromkeys(["azure_fabric_token_service_url", "fabric_token_service_url"], "URL")
    | dict.fromkeys(["azure_fabric_workload_host", "fabric_workload_host"], "host")
    | dict.fromkeys(["azure_fabric_session_token", "fabric_session_token"], "token")
    | dict.fromkeys(["azure_fabric_cluster_identifier", "fabric_cluster_identifier"], "id")
    | dict.fromkeys(["azure_credential_type", "credential_type"], "access_key")
    | dict.fromkeys(["azure_storage_encryption_key", "encryption_key"], base64.b64encode(b"0" * 32).decode())
)
GCS = {
    "service_account": "ACCOUNT",
    "service_account_path": "ACCOUNT",
    "service_account_key": "DOCUMENT",
    "bucket": "bucket",
    "bucket_name": "bucket",
    "base_url": "URL",
    "endpoint": "URL",
    "application_credentials": "ACCOUNT",
    "bearer_token": "token",
    "skip_signature": "true",
}
SERVICES = {
    "s3": (
        "s3://bucket/t",
        {"aws_access_key_id": "id", "aws_secret_access_key": "key", "aws_endpoint": "URL"},
        CLIENT
        | {f"aws_{key}": value for key, value in (S3 | CLIENT).items() if "." not in key and key.islower()}
        | S3
        | S3_ALONE,
    ),
    "azure": (
        "az://container/t",
        {"azure_storage_account_name": "account", "azure_storage_account_key": KEY, "azure_storage_endpoint": "URL"},
        CLIENT | AZURE,
    ),
    "gcs": (
        "gs://bucket/t",
        {"google_base_url": "URL", "google_skip_signature": "true"},
        CLIENT | {f"google_{key}": value for key, value in GCS.items()} | GCS,
    ),
}
#: Of deltafast and of deltalake alone, without a prefix.
UNPREFIXED = ("max_retries", "retry_timeout", "allow_unsafe_rename")
#: Another way to say the same.
SAME = [
    {"access_key_id", "aws_access_key_id"},
    {"secret_access_key", "aws_secret_access_key"},
    {"endpoint", "endpoint_url", "aws_endpoint", "aws_endpoint_url"},
]


@pytest.fixture
def clean(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    return monkeypatch


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """What the placeholders above stand for."""
    folder = tmp_path_factory.mktemp("values")
    account = {
        "client_email": "me@x",
        "private_key": "",
        "private_key_id": "",
        "disable_oauth": True,
        "type": "service_account",
        "gcs_base_url": "",
    }
    (folder / "account.json").write_text(json.dumps(account))
    (folder / "token").write_text("token")
    return {
        "URL": f"http://127.0.0.1:{servers.closed_port()}",
        "FILE": str(folder / "token"),
        "ACCOUNT": str(folder / "account.json"),
        "DOCUMENT": json.dumps(account, indent=1),
    }


def filled(options, values):
    def of(value):
        name = next((name for name in values if value.startswith(name)), None)
        return value if name is None else values[name] + value.removeprefix(name)

    return {key: of(value) for key, value in options.items()}


@pytest.mark.parametrize("service", SERVICES)
def test_every_documented_option_is_taken(service, values, clean):
    url, base, options = SERVICES[service]
    base = filled(base | {"allow_http": "true", "max_retries": "0", "retry_timeout": "1s"}, values)
    refused = {}
    for key, value in filled(options, values).items():
        if any(
            key.removeprefix(prefix) in UNPREFIXED for prefix in ("aws_", "google_", "azure_") if key.startswith(prefix)
        ):
            continue
        for spelling in (key, key.upper()):
            given = {name: held for name, held in base.items() if not _same(name, spelling)} | {spelling: value}
            try:
                DeltaTable(url, storage_options=given)
            except StorageError:
                continue  # nobody listens
            except Exception as error:  # noqa: BLE001 - reported together
                refused[spelling] = f"{type(error).__name__}: {error}"
    # What needs a key that is real, or more than one option.
    needs_more = ("service_account", "application_credentials", "sse_kms_key_id", "sse_customer_key_base64")
    left = {key: text for key, text in refused.items() if not key.lower().endswith(needs_more)}
    assert left == {}
    assert all("is not known" not in text and "is not a URL" not in text for text in refused.values())


def _same(one, other):
    one, other = one.lower(), other.lower()
    for prefix in ("aws_", "azure_storage_", "azure_", "google_"):
        one, other = one.removeprefix(prefix), other.removeprefix(prefix)
    return (
        one == other
        or {one, other} <= {"endpoint", "endpoint_url", "base_url"}
        or {one, other}
        <= {
            "account_key",
            "access_key",
            "master_key",
        }
    )


class Recorder(http.server.BaseHTTPRequestHandler):
    """Notes requests and answers as it is told."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        self.server.seen.append((self.command, self.path, dict(self.headers), body))
        status, headers, *body = self.server.reply(self.command, self.path)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(sum(map(len, body))))
        self.end_headers()
        self.wfile.write(b"".join(body))

    def log_message(self, *_):
        pass


for method in ("GET", "HEAD", "PUT", "POST", "DELETE", "CONNECT"):
    setattr(Recorder, f"do_{method}", Recorder.answer)


def empty_bucket(_, path):
    """What S3 says of a bucket without objects."""
    if "list-type=2" in path:
        return 200, {}, b"<ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated></ListBucketResult>"
    return 404, {}


@contextlib.contextmanager
def server(reply):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as running:
        running.daemon_threads = True
        running.seen, running.reply = [], reply
        running.url = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "option", ["use_fabric_endpoint", "AZURE_STORAGE_USE_FABRIC_ENDPOINT", "azure_use_fabric_endpoint", None]
)
def test_onelake_is_reached_by_its_own_host(option, clean):
    with server(lambda *_: (403, {})) as proxy:
        options = {"account_name": "onelake", "bearer_token": "t", "proxy_url": proxy.url, "max_retries": "0"}
        if option is None:
            clean.setenv("AZURE_STORAGE_USE_FABRIC_ENDPOINT", "true")
        else:
            options[option] = "true"
        with pytest.raises(StorageError):
            DeltaTable("az://workspace/lakehouse.Lakehouse/Tables/t", storage_options=options)
        assert {path for _, path, _, _ in proxy.seen} == {"onelake.blob.fabric.microsoft.com:443"}


def test_the_host_of_a_bucket_has_its_name_in_it(clean):
    with server(lambda *_: (403, {})) as proxy:
        options = {"aws_access_key_id": "i", "aws_secret_access_key": "k", "aws_region": "eu-west-1"}
        options |= {"proxy_url": proxy.url, "max_retries": "0", "AWS_S3_ADDRESSING_STYLE": "virtual"}
        with pytest.raises(StorageError):
            DeltaTable("s3://bucket/t", storage_options=options)
        assert {path for _, path, _, _ in proxy.seen} == {"bucket.s3.eu-west-1.amazonaws.com:443"}


# --- values ----------------------------------------------------------------------------------------


SECRET = "hush-hush"


def s3_options(url, **more):
    options = {"aws_access_key_id": "id", "aws_secret_access_key": SECRET, "aws_region": "eu-west-1"}
    return options | {"aws_endpoint": url, "allow_http": "true", "max_retries": "0", "retry_timeout": "1s"} | more


@pytest.mark.parametrize("end", ["\n", "\r\n", " ", "\t"])
def test_a_line_end_behind_a_credential_is_not_part_of_it(end, clean):
    with server(empty_bucket) as store:
        keys = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_region", "aws_endpoint")
        options = s3_options(store.url, aws_session_token="token")
        with_end = {key: value + end if key in keys else value for key, value in options.items()}
        assert not DeltaTable.is_deltatable("s3://bucket/t", with_end)
        for name in keys:
            clean.setenv(name.upper(), with_end.pop(name))
        assert not DeltaTable.is_deltatable("s3://bucket/t", with_end)
        assert {headers["x-amz-security-token"] for _, _, headers, _ in store.seen} == {"token"}
        assert all("Credential=id/" in headers["authorization"] for _, _, headers, _ in store.seen)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("aws_secret_access_key", f"{SECRET}\n{SECRET}"),
        ("aws_access_key_id", f"{SECRET}\0"),
        ("aws_session_token", f"{SECRET}\x7f{SECRET}"),
        ("aws_session_token", f"{SECRET}é"),
        ("aws_region", f"{SECRET}@x"),
        ("aws_endpoint", SECRET),
        ("allow_http", SECRET),
        ("aws_skip_signature", SECRET),
        ("timeout", SECRET),
        ("retry_timeout", SECRET),
        ("max_retries", SECRET),
        ("pool_max_idle_per_host", SECRET),
        ("proxy_url", f"user:{SECRET}@host"),
        ("aws_secret_access_key", None),
        ("aws_secret_access_key", SECRET.encode()),
        ("aws_secret_access_key", {"value": SECRET}),
        ("aws_secret_access_key", [SECRET]),
    ],
)
def test_an_odd_value_is_refused_by_the_name_of_its_option(name, value, clean):
    for operation in (
        DeltaTable,
        lambda url, storage_options: write_deltalake(url, pa.table({"i": [1]}), storage_options=storage_options),
    ):
        with pytest.raises(InvalidArgumentError, match=f"storage option `{name}`") as caught:
            operation("s3://bucket/t", storage_options=s3_options("http://127.0.0.1:1", **{name: value}))
        assert SECRET not in repr(caught.value) + repr(caught.value.__dict__)


@pytest.mark.parametrize(
    "options", [f"aws_secret_access_key={SECRET}", [("aws_secret_access_key", SECRET)], {5: SECRET}]
)
def test_options_of_another_type_are_not_shown(options):
    with pytest.raises(InvalidArgumentError, match=r"storage.options") as caught:
        DeltaTable("s3://bucket/t", storage_options=options)
    assert SECRET not in repr(caught.value)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("az://c/t", {"account_name": "a", "azure_storage_account_key": SECRET}),
        ("az://c/t", {"account_name": "a", "azure_storage_sas_token": SECRET}),
        ("az://c/t", {"account_name": "a", "azure_credential_type": SECRET}),
        ("az://c/t", {"account_name": "a", "account_key": KEY, "azure_storage_encryption_key": SECRET}),
        ("s3://b/t", {"aws_access_key_id": "i", "aws_secret_access_key": "k", "aws_checksum_algorithm": SECRET}),
        ("s3://b/t", {"aws_access_key_id": SECRET}),
        ("gs://b/t", {"google_service_account_key": json.dumps(SECRET)}),
        ("gs://b/t", {"google_service_account_key": SECRET}),
    ],
)
def test_what_the_client_refuses_is_not_shown(url, options, clean):
    with pytest.raises(InvalidArgumentError, match="cannot use") as caught:
        DeltaTable(url, storage_options=options)
    assert SECRET not in repr(caught.value)


def test_a_mistyped_option_is_warned_of_with_the_nearest_name(tmp_path):
    write_deltalake(tmp_path / "t", pa.table({"i": [1]}))
    with pytest.warns(
        DeltaWarning, match=r"`aws_acess_key_id` is not known .* did you mean `aws_access_key_id`\?"
    ) as said:
        DeltaTable(tmp_path / "t", storage_options={"aws_acess_key_id": SECRET, "aws_region": "x"})
    assert len(said) == 1
    assert SECRET not in str(said[0].message)
    assert said[0].filename == __file__


# --- no credentials --------------------------------------------------------------------------------


@contextlib.contextmanager
def silent():
    """A port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["closed", "silent", "other cloud", "off"])
def test_s3_without_credentials_says_so_and_soon(kind, clean):
    with silent() as quiet, server(lambda *_: (404, {})) as other:
        closed = f"http://127.0.0.1:{servers.closed_port()}"
        options = {
            "aws_metadata_endpoint": {"closed": closed, "silent": quiet, "other cloud": other.url, "off": quiet}[kind]
        }
        if kind == "off":
            clean.setenv("AWS_EC2_METADATA_DISABLED", "true")
        begun = time.monotonic()
        with pytest.raises(
            StorageError, match=r"no credentials for s3://bucket/t/_delta_log: .*aws_access_key_id.*skip_signature"
        ):
            DeltaTable("s3://bucket/t", storage_options=options)
        assert time.monotonic() - begun < 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["closed", "silent"])
def test_azure_without_credentials_says_so_and_soon(kind, clean):
    with silent() as quiet:
        closed = f"http://127.0.0.1:{servers.closed_port()}"
        options = {"account_name": "a", "azure_msi_endpoint": {"closed": closed, "silent": quiet}[kind] + "/msi/token"}
        begun = time.monotonic()
        with pytest.raises(StorageError, match=r"no credentials for az://c/t/.*azure_storage_account_key"):
            DeltaTable("az://c/t", storage_options=options)
        assert time.monotonic() - begun < 10


# --- redirects -------------------------------------------------------------------------------------


CREDENTIALS = {
    "s3": (
        "s3://bucket/t",
        {
            "aws_access_key_id": "id",
            "aws_secret_access_key": "key",
            "aws_session_token": "SECRET",
            "aws_endpoint": "URL",
        },
    ),
    "azure": (
        "az://container/t",
        {"account_name": "a", "azure_storage_sas_token": "sv=1&sig=SECRET", "azure_storage_endpoint": "URL"},
    ),
    "gcs": ("gs://bucket/t", {"google_bearer_token": "SECRET", "google_base_url": "URL"}),
    "http": ("http://user:SECRET@HOST/t", {}),
}


@pytest.mark.parametrize("service", CREDENTIALS)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_credentials_do_not_follow_a_redirect_to_another_origin(service, status, clean):
    with server(lambda *_: (404, {})) as other:
        with server(lambda _, path: (status, {"Location": f"{other.url}{path}"})) as store:
            url, options = CREDENTIALS[service]
            options = {key: value.replace("URL", store.url) for key, value in options.items()}
            options |= {"allow_http": "true", "max_retries": "0", "retry_timeout": "1s"}
            url = url.replace("HOST", store.url.partition("://")[2])
            with pytest.raises(StorageError, match="redirect to another origin is not followed") as caught:
                DeltaTable(url, storage_options=options)
            assert "SECRET" not in repr(caught.value)
            if service != "http":
                with pytest.raises(StorageError):
                    write_deltalake(url, pa.table({"i": [1]}), storage_options=options)
            assert store.seen
        assert other.seen == []


def test_a_redirect_within_an_origin_is_followed(clean):
    def reply(_, path):
        return empty_bucket(_, path) if path.startswith("/moved") else (307, {"Location": f"/moved{path}"})

    with server(reply) as store:
        url, options = CREDENTIALS["s3"]
        options = {key: value.replace("URL", store.url) for key, value in options.items()} | {"allow_http": "true"}
        assert not DeltaTable.is_deltatable(url, options | {"max_retries": "0"})
        assert any(path.startswith("/moved") for _, path, _, _ in store.seen)


def test_a_table_behind_plain_http_may_be_redirected_where_nothing_is_given_away(clean):
    with server(lambda *_: (404, {})) as other:
        with server(lambda _, path: (302, {"Location": f"{other.url}{path}"})) as site:
            assert not DeltaTable.is_deltatable(f"{site.url}/t", {"max_retries": "0"})
        assert other.seen
        assert not [
            headers for _, _, headers, _ in other.seen if {"authorization", "referer"} & {n.lower() for n in headers}
        ]


def test_a_loop_of_redirects_ends(clean):
    with server(lambda _, path: (302, {"Location": path})) as site:
        with pytest.raises(StorageError, match="redirect"):
            DeltaTable(f"{site.url}/t", storage_options={"max_retries": "0"})
        assert len(site.seen) < 40
