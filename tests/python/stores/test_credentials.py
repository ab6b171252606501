"""Credentials of a provider: asked for once, renewed before they expire, in no message."""

import base64
import hashlib
import json
import os
import pathlib
import pickle
import re
import sys
import threading
import time
import traceback
import types
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import duckdb
import pyarrow as pa
import pytest

import servers
from deltafast import DeltaTable, convert_to_deltalake, write_deltalake
from deltafast._credentials import aws_profile, azure_identity
from deltafast._credentials import provider as provider_calls
from deltafast.credentials import AwsProfile, AzureIdentity, FabricNotebook, GoogleAuth
from deltafast.exceptions import DeltaError, InvalidArgumentError, MissingLibraryError, StorageError
from expiring_keys import LIFE, KeyServer, options


@pytest.fixture(scope="module")
def running():
    with servers.s3() as s3, KeyServer(s3.port).running() as server:
        yield server


@pytest.fixture
def server(running):
    running.forget()
    yield running
    running.forget()


@pytest.fixture
def url(request):
    return f"s3://bucket/{re.sub(r'[^a-z0-9]+', '-', request.node.name.lower())}"


def test_a_table_lives_longer_than_its_credentials(server, url):
    def provider():
        return server.issue()

    given = {"storage_options": options(server), "credential_provider": provider}
    end = time.monotonic() + 2.2 * LIFE
    table = DeltaTable.create(url, {"id": "long"}, **given)
    number = 0
    while time.monotonic() < end:
        number += 1
        write_deltalake(table, {"id": [number]}, mode="append")
        write_deltalake(url, {"id": [-number]}, mode="append", **given)
        table.update_incremental()
        assert table.count() == 2 * number
    table.optimize.compact()
    assert DeltaTable(url, **given).count() == table.count("id > 0") * 2
    assert DeltaTable.is_deltatable(url, **given)
    assert server.refused == []
    # All that has the same provider has the same credentials.
    assert 3 <= server.issued <= 6


def test_credentials_are_renewed_within_a_stream(server, url):
    given = {"storage_options": options(server), "credential_provider": server.issue}
    for number in range(4):
        write_deltalake(url, {"id": pa.array(range(number * 1000, number * 1000 + 1000))}, mode="append", **given)
    issued = server.issued
    table = DeltaTable(url, **given)
    rows = []
    for batch in table.scan(batch_size=500):
        rows += pa.record_batch(batch)["id"].to_pylist()
        time.sleep(LIFE / 4)
    assert sorted(rows) == list(range(4000))
    # Another engine pulls the rows from threads of its own.
    time.sleep(LIFE)
    assert duckdb.from_arrow(table).aggregate("sum(id)").fetchall() == [(sum(range(4000)),)]
    assert server.issued > issued
    assert server.refused == []


def test_many_threads_ask_once(server, url):
    calls = []

    def provider():
        calls.append(threading.get_ident())
        time.sleep(0.2)
        return server.issue(60)

    given = {"storage_options": options(server), "credential_provider": provider}
    write_deltalake(url, {"id": [1]}, **given)
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: DeltaTable(url, **given).count(), range(16)))
    assert counts == [1] * 16
    assert len(calls) == 1


@pytest.mark.proof
def test_valid_credentials_are_used_while_the_provider_fails(server, url):
    is_broken = False
    ends = []

    def provider():
        if is_broken:
            message = "the service is away"
            raise OSError(message)
        key = server.issue(3 * LIFE)
        ends.append(time.time() + 3 * LIFE)
        return key

    given = {"storage_options": options(server), "credential_provider": provider}
    write_deltalake(url, {"id": [1]}, **given)
    is_broken = True
    # Renewed a fifth of their life before they expire.
    time.sleep(ends[0] - 3 * LIFE / 5 - time.time())
    table = DeltaTable(url, **given)
    assert table.count() == 1
    time.sleep(max(0, ends[0] - time.time()))
    with pytest.raises(StorageError, match="the credential provider failed with OSError: the service is away"):
        table.update_incremental()
    is_broken = False
    table.update_incremental()
    assert table.to_pyarrow_table()["id"].to_pylist() == [1]


class PolarsPair:
    """A provider in the form of Polars' ones."""

    def __init__(self, server):
        self._server = server

    def __call__(self):
        key = self._server.issue(60)
        names = {"access_key_id": "aws_access_key_id", "secret_access_key": "aws_secret_access_key"}
        names |= {"token": "aws_session_token"}
        return {names[name]: key[name] for name in names}, int(key["expires_at"].timestamp())


def forms(server):
    async def coroutine():
        return server.issue(60)

    return {
        "function": lambda: server.issue(60),
        "coroutine": coroutine,
        "pair of Polars": PolarsPair(server),
        "without an end": lambda: {**server.issue(60), "expires_at": None},
    }


@pytest.mark.parametrize("form", forms(None))
def test_providers_have_several_forms(server, url, form):
    given = {"storage_options": options(server), "credential_provider": forms(server)[form]}
    write_deltalake(url, {"id": [1]}, **given)
    assert DeltaTable(url, **given).to_pyarrow_dataset().to_table()["id"].to_pylist() == [1]
    assert server.refused == []


def test_a_folder_is_converted(server, url):
    given = {"storage_options": options(server), "credential_provider": lambda: server.issue(60)}
    write_deltalake(url, {"id": [1]}, **given)
    with pytest.raises(InvalidArgumentError, match="is a table"):
        convert_to_deltalake(url, **given)
    assert server.refused == []


_OF_PICKLE = {}


def provider_of_pickle():
    return _OF_PICKLE["server"].issue(60)


def test_a_provider_is_a_part_of_pickles(server, url):
    _OF_PICKLE["server"] = server
    given = {"storage_options": options(server), "credential_provider": provider_of_pickle}
    write_deltalake(url, {"id": [1]}, **given)
    table = pickle.loads(pickle.dumps(DeltaTable(url, **given)))
    assert table.count() == 1
    assert table.history()[0]["operation"] == "WRITE"


def _raises():
    message = "no role for you"
    raise PermissionError(message)


BAD = {
    "no function": ("word", "credential_provider must be a function without arguments, not a str"),
    "an exception": (_raises, "the credential provider failed with PermissionError: no role for you"),
    "no dict": (lambda: "word", "the credential provider must return a dict, not a str"),
    "no key": (lambda: {"token": "HIDDEN"}, "the credential provider gave no `access_key_id`, which S3 needs"),
    "a number": (
        lambda: {"access_key_id": 123456789, "secret_access_key": "HIDDEN"},
        "`access_key_id` of the credential provider must be a string, not a int",
    ),
    "no zone": (
        lambda: {"access_key_id": "HIDDEN", "secret_access_key": "HIDDEN", "expires_at": datetime(2100, 1, 1)},  # noqa: DTZ001
        "`expires_at` of the credential provider must have a time zone",
    ),
    "no date": (
        lambda: {"access_key_id": "HIDDEN", "secret_access_key": "HIDDEN", "expires_at": "soon"},
        "`expires_at` of the credential provider must be a datetime, not a str",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_one_line_without_secrets(server, url, name):
    provider, text = BAD[name]
    with pytest.raises(DeltaError, match=re.escape(text)) as caught:
        DeltaTable(url, storage_options=options(server), credential_provider=provider)
    error = caught.value
    shown = [str(error), repr(error), repr(error.__dict__), *traceback.format_exception_only(error)]
    assert not [text for text in shown if "HIDDEN" in text or "123456789" in text]
    assert "\n" not in str(error)
    assert server.requests == server.refused == []


def test_the_option_of_the_core_is_not_for_users(url):
    with pytest.raises(InvalidArgumentError, match="give `credential_provider`"):
        DeltaTable(url, storage_options={"credential_source": "1000000"})


@pytest.fixture
def aws_files(tmp_path, monkeypatch, running):
    """Write `~/.aws/config`, and let no other source of credentials be there."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    aws_profile._session.cache_clear()
    provider_calls._known_source.cache_clear()

    def write(text: str) -> None:
        (tmp_path / "config").write_text(text)

    return write


def keys_of(server):
    key = server.issue(60)
    return {
        "aws_access_key_id": key["access_key_id"],
        "aws_secret_access_key": "SECRET",
        "aws_session_token": key["token"],
    }


def ini(title, values):
    return f"[{title}]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())


def without_region(server):
    return {key: value for key, value in options(server).items() if key != "aws_region"}


@pytest.mark.parametrize("named", ["option", "variable", "default", "provider"])
def test_profiles_of_aws_are_read(server, url, aws_files, named, monkeypatch):
    title = "default" if named == "default" else "profile work"
    aws_files(ini(title, keys_of(server) | {"region": "eu-west-1"}))
    given = {"storage_options": without_region(server)}
    if named == "option":
        given["storage_options"] |= {"aws_profile": "work"}
    elif named == "variable":
        monkeypatch.setenv("AWS_PROFILE", "work")
    elif named == "provider":
        given = {"storage_options": options(server), "credential_provider": AwsProfile("work")}
    write_deltalake(url, {"id": [1]}, **given)
    table = DeltaTable(url, **given)
    assert table.to_pyarrow_dataset().to_table()["id"].to_pylist() == [1]
    assert pickle.loads(pickle.dumps(table)).count() == 1
    assert server.refused == []


def test_a_process_gives_credentials_that_are_renewed(server, url, aws_files, tmp_path):
    class Issuer(servers.Server):
        def answer(self, method, target, headers, body):
            key = server.issue()
            found = {"Version": 1, "AccessKeyId": key["access_key_id"], "SecretAccessKey": "SECRET"}
            # botocore renews credentials a quarter of an hour before they end, but takes them as they are at first.
            found |= {"SessionToken": key["token"], "Expiration": key["expires_at"].isoformat()}
            return servers.Answer(200, {}, json.dumps(found).encode())

    with Issuer().running() as issuer:
        program = f"import urllib.request; print(urllib.request.urlopen({issuer.url!r}).read().decode())"
        script = tmp_path / "issue.py"
        script.write_text(program)
        aws_files(ini("profile work", {"credential_process": f"{sys.executable} {script}", "region": "eu-west-1"}))
        given = {"storage_options": without_region(server) | {"aws_profile": "work"}}
        write_deltalake(url, {"id": [1]}, **given)
        table = DeltaTable(url, **given)
        time.sleep(LIFE)
        write_deltalake(table, {"id": [2]}, mode="append")
        assert table.count() == 2
    assert server.issued >= 2
    assert server.refused == []


class PortalServer(servers.Server):
    """The portal of AWS IAM Identity Center, which gives those who have logged in the credentials of a role."""

    def __init__(self, keys):
        super().__init__()
        self._keys = keys

    def answer(self, method, target, headers, body):
        """Answer `GetRoleCredentials`."""
        self.requests.append(f"{method} {target}")
        if {name.lower(): value for name, value in headers.items()}.get("x-amz-sso_bearer_token") != "LOGIN":
            return servers.Answer(401, {"x-amzn-ErrorType": "UnauthorizedException"}, b"{}")
        key = self._keys.issue()
        given = {"accessKeyId": key["access_key_id"], "secretAccessKey": "SECRET", "sessionToken": key["token"]}
        given["expiration"] = round(key["expires_at"].timestamp() * 1000)
        return servers.Answer(
            200, {"Content-Type": "application/json"}, json.dumps({"roleCredentials": given}).encode()
        )


def test_a_login_by_sso_gives_credentials_that_are_renewed(server, url, aws_files, tmp_path, monkeypatch):
    start = "https://example.awsapps.com/start"
    names = {"start_url": start, "region": "eu-west-1", "account_id": "123456789012", "role_name": "tables"}
    aws_files(ini("profile work", {f"sso_{name}": value for name, value in names.items()} | {"region": "eu-west-1"}))
    # The files of `aws sso login`, which botocore looks for in the home folder that it saw when it was imported.
    monkeypatch.setattr("botocore.credentials.SSOProvider._SSO_TOKEN_CACHE_DIR", str(tmp_path))
    login = {"startUrl": start, "region": "eu-west-1", "accessToken": "LOGIN", "expiresAt": "2099-01-01T00:00:00Z"}
    name = hashlib.sha1(start.encode(), usedforsecurity=False).hexdigest()
    (tmp_path / f"{name}.json").write_text(json.dumps(login))
    with PortalServer(server).running() as portal:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SSO", portal.url)
        given = {"storage_options": without_region(server) | {"aws_profile": "work"}}
        write_deltalake(url, {"id": [1]}, **given)
        table = DeltaTable(url, **given)
        time.sleep(LIFE)
        write_deltalake(table, {"id": [2]}, mode="append")
        assert table.count() == 2
    assert len(portal.requests) >= 2
    assert all("role_name=tables" in request for request in portal.requests)
    assert server.refused == []


@pytest.mark.parametrize("where", ["profile", "option"])
def test_roles_are_assumed(server, url, aws_files, monkeypatch, where):
    server.foreign = "ASIA"
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://{servers.HOST}:{server._port}")
    base = ini("profile base", keys_of(server))
    role = "arn:aws:iam::123456789012:role/tables"
    given = {"storage_options": options(server)}
    if where == "profile":
        aws_files(base + ini("profile role", {"role_arn": role, "source_profile": "base"}))
        given["storage_options"] |= {"aws_profile": "role"}
    else:
        aws_files(base)
        given["storage_options"] |= {"aws_profile": "base", "aws_s3_assume_role_arn": role}
    write_deltalake(url, {"id": [1]}, **given)
    assert DeltaTable(url, **given).count() == 1
    assert server.refused == []


def test_keys_in_options_and_environment_win(server, url, aws_files, monkeypatch):
    aws_files(ini("default", {"aws_access_key_id": "WRONG", "aws_secret_access_key": "WRONG"}))
    keys = keys_of(server)
    write_deltalake(url, {"id": [1]}, storage_options=options(server) | keys)
    for name, value in keys.items():
        monkeypatch.setenv(name.upper(), value)
    assert DeltaTable(url, storage_options=options(server)).count() == 1
    assert server.refused == []


def test_a_profile_that_cannot_be_used_is_one_line(server, url, aws_files, monkeypatch):
    aws_files(ini("profile work", {"region": "eu-west-1"}))
    given = without_region(server)
    with pytest.raises(InvalidArgumentError, match=r"The config profile \(none\) could not be found"):
        DeltaTable(url, storage_options=given | {"aws_profile": "none"})
    with pytest.raises(StorageError, match=r"no credentials for the profile work; it tried .*shared-credentials-file"):
        DeltaTable(url, storage_options=given | {"aws_profile": "work"})
    monkeypatch.setitem(sys.modules, "botocore", None)
    with pytest.raises(MissingLibraryError, match=r"the profile work of AWS needs botocore, .* pip install botocore"):
        DeltaTable(url, storage_options=given | {"aws_profile": "work"})


def test_azure_identity_without_an_identity_names_what_it_tried(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("AZURE_", "IDENTITY_", "MSI_"))]:
        monkeypatch.delenv(name)
    azure_identity._default_credential.cache_clear()
    provider_calls._known_source.cache_clear()
    text = r"no credentials are given .give `azure_storage_account_key`, .* it tried EnvironmentCredential, Work"
    with pytest.raises(StorageError, match=text) as caught:
        DeltaTable("az://container/t", storage_options={"azure_storage_account_name": "account"})
    assert "\n" not in str(caught.value)
    azure_identity._default_credential.cache_clear()


def test_azure_takes_keys_and_signatures():
    cache = pathlib.Path(servers.__file__).parent / ".cache"
    with servers.azure(servers.azurite(cache)) as azure:
        plain = {key: value for key, value in azure.options().items() if key != "azure_storage_account_key"}
        url = f"az://{azure.container}/credentials"
        given = {"storage_options": plain, "credential_provider": lambda: {"access_key": azure.key}}
        write_deltalake(url, {"id": [1]}, **given)
        assert DeltaTable(url, **given).count() == 1
        wrong = {"storage_options": plain, "credential_provider": lambda: {"access_key": "HIDDEN%"}}
        with pytest.raises(DeltaError, match="`access_key` of the credential provider is not base64") as caught:
            DeltaTable(url, **wrong)
        assert "HIDDEN" not in str(caught.value)


def test_google_takes_tokens():
    with servers.Gcs().running() as gcs:
        plain = {key: value for key, value in gcs.options().items() if key != "google_bearer_token"}
        given = {"storage_options": plain, "credential_provider": lambda: {"token": gcs.token, "expires_at": None}}
        write_deltalake("gs://bucket/credentials", {"id": [1]}, **given)
        assert DeltaTable("gs://bucket/credentials", **given).count() == 1


class _Recorder(servers.Server):
    """A store without objects, and a token service; it keeps the tokens that requests bring."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[str] = []
        self.issued = 0

    def answer(self, method, target, headers, body):
        given = {name.lower(): value for name, value in headers.items()}
        if "/token" in target:
            self.issued += 1
            life = int(time.time()) + 3600
            found = {"access_token": f"T{self.issued}", "expires_on": life, "expires_in": 3600, "token_type": "Bearer"}
            return servers.Answer(200, {"Content-Type": "application/json"}, json.dumps(found).encode())
        self.tokens.append(given.get("authorization", ""))
        return servers.Answer(404, {}, b"")


@pytest.mark.parametrize("is_named", [False, True])
def test_azure_identity_finds_a_managed_identity(monkeypatch, is_named):
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    azure_identity._default_credential.cache_clear()
    provider_calls._known_source.cache_clear()
    with _Recorder().running() as recorder:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{recorder.url}/token")
        monkeypatch.setenv("IDENTITY_HEADER", "secret")
        given = {"azure_storage_account_name": "account", "azure_storage_endpoint": f"{recorder.url}/account"}
        options = given | {"allow_http": "true", "max_retries": "0"}
        provider = AzureIdentity() if is_named else None
        for _ in range(2):
            with pytest.raises(DeltaError):
                DeltaTable("az://container/t", storage_options=options, credential_provider=provider)
    assert recorder.issued == 1
    assert set(recorder.tokens) == {"Bearer T1"}
    azure_identity._default_credential.cache_clear()


def jwt(claims):
    """Return a web token with claims and no signature."""
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, claims))
    return ".".join((*parts, "signature"))


def test_a_notebook_in_fabric_has_its_own_identity(monkeypatch):
    """Fabric's library was not to be had: this one answers as its documentation says."""
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    provider_calls._known_source.cache_clear()
    audiences = []
    expiry = int(time.time()) + 3600

    def token(audience):
        audiences.append(audience)
        return jwt({"exp": expiry})

    library = types.ModuleType("notebookutils")
    library.credentials = types.SimpleNamespace(getToken=token)
    monkeypatch.setitem(sys.modules, "notebookutils", library)
    assert FabricNotebook()() == {"token": jwt({"exp": expiry}), "expires_at": expiry}
    with _Recorder().running() as recorder:
        given = {"azure_storage_account_name": "account", "azure_storage_endpoint": f"{recorder.url}/account"}
        with pytest.raises(DeltaError):
            DeltaTable("az://container/t", storage_options=given | {"allow_http": "true", "max_retries": "0"})
    assert audiences == ["storage", "storage"]
    assert set(recorder.tokens) == {f"Bearer {jwt({'exp': expiry})}"}
    provider_calls._known_source.cache_clear()


@pytest.mark.parametrize("token", ["word", "a.b.c", jwt({}), jwt([1]), jwt({"exp": "soon"})])
def test_a_token_need_not_say_when_it_expires(token, monkeypatch):
    library = types.ModuleType("notebookutils")
    library.credentials = types.SimpleNamespace(getToken=lambda _: token)
    monkeypatch.setitem(sys.modules, "notebookutils", library)
    assert FabricNotebook()() == {"token": token, "expires_at": None}


def test_google_auth_finds_application_default_credentials(monkeypatch, tmp_path):
    provider_calls._known_source.cache_clear()
    with servers.Gcs().running() as gcs, _Recorder().running() as recorder:
        # The kind of file with which other clouds and identity services sign on.
        subject = tmp_path / "subject"
        subject.write_text("word")
        account = {
            "type": "external_account",
            "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": f"{recorder.url}/token",
            "credential_source": {"file": str(subject)},
        }
        (tmp_path / "account.json").write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
        # google-auth asks a service for the project otherwise.
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project")
        gcs.token = "T1"
        plain = {key: value for key, value in gcs.options().items() if key != "google_bearer_token"}
        write_deltalake("gs://bucket/auth", {"id": [1]}, storage_options=plain)
        assert DeltaTable("gs://bucket/auth", storage_options=plain).count() == 1
        assert recorder.issued == 1
        gcs.token = "T2"
        assert DeltaTable("gs://bucket/auth", storage_options=plain, credential_provider=GoogleAuth()).count() == 1
    assert recorder.issued == 2


@pytest.mark.parametrize(
    ("provider", "library"),
    [
        (AzureIdentity(), "azure-identity, which is not installed: pip install"),
        (GoogleAuth(), "google-auth, which is not installed: pip install"),
        (FabricNotebook(), "a notebook in Microsoft Fabric"),
    ],
    ids=["azure", "google", "fabric"],
)
def test_a_missing_library_is_named(provider, library, monkeypatch):
    azure_identity._default_credential.cache_clear()
    provider_calls._known_source.cache_clear()
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    monkeypatch.setitem(sys.modules, "google.auth", None)
    url = "gs://bucket/t" if library.startswith("google-auth") else "az://container/t"
    options = {"azure_storage_account_name": "account"}
    with pytest.raises(StorageError, match=f"needs {library}"):
        DeltaTable(url, storage_options=options, credential_provider=provider)


#: Characters that no header can have, within a value.
_ODD = ["\n", "\r", "\r\nX: y", "\0", "\x1b", "\x7f", "\x85", "\u2028", "\xf6", "\U0001f600"]
#: The values of each service, of which one is the secret.
_VALUES = {
    "s3": [
        {"access_key_id": "SECRET", "secret_access_key": "b"},
        {"access_key_id": "a", "secret_access_key": "SECRET"},
        {"access_key_id": "a", "secret_access_key": "b", "token": "SECRET"},
    ],
    "az": [{"token": "SECRET"}, {"sas_token": "sv=1&sig=SECRET"}, {"access_key": "SECRET"}],
    "gs": [{"token": "SECRET"}],
}
_PLACES = {
    "s3": ("s3://bucket/t", {"aws_endpoint_url": "{url}", "aws_region": "r", "allow_http": "true"}),
    "az": ("az://container/t", {"azure_storage_account_name": "a", "azure_storage_endpoint": "{url}/a"}),
    "gs": ("gs://bucket/t", {"google_base_url": "{url}"}),
}


class Listening(servers.Server):
    """A store that has nothing."""

    def answer(self, method, target, headers, body):
        self.requests.append(f"{method} {target}")
        self.headers.append(headers)
        return servers.Answer(404, {}, b"")

    def __init__(self):
        super().__init__()
        self.headers = []


@pytest.fixture(scope="module")
def listening():
    with Listening().running() as server:
        yield server


@pytest.mark.parametrize("odd", _ODD, ids=ascii)
@pytest.mark.parametrize(
    ("service", "values"), [(service, values) for service, found in _VALUES.items() for values in found], ids=str
)
def test_values_of_a_provider_are_checked_as_those_of_options_are(listening, service, values, odd):
    place, given = _PLACES[service]
    given = {name: value.format(url=listening.url) for name, value in given.items()} | {"allow_http": "true"}
    given |= {"max_retries": "0"}
    found = {name: value.replace("SECRET", f"SEC{odd}RET") for name, value in values.items()}
    listening.forget()
    with pytest.raises(StorageError) as caught:
        DeltaTable(place, storage_options=given, credential_provider=lambda: found)
    name = next(name for name, value in values.items() if "SECRET" in value)
    assert f"`{name}` of the credential provider has a" in str(caught.value)
    assert "RET" not in "".join(traceback.format_exception(caught.value))
    assert listening.requests == []


@pytest.mark.parametrize("space", ["\n", "\r\n", " ", "\t"], ids=ascii)
def test_white_space_around_values_of_a_provider_is_left_out(listening, space):
    place, given = _PLACES["gs"]
    given = {name: value.format(url=listening.url) for name, value in given.items()}
    given |= {"allow_http": "true", "max_retries": "0"}
    listening.headers.clear()
    with pytest.raises(DeltaError):
        DeltaTable(place, storage_options=given, credential_provider=lambda: {"token": f"word{space}"})
    sent = {
        value for headers in listening.headers for name, value in headers.items() if name.lower() == "authorization"
    }
    assert sent == {"Bearer word"}
