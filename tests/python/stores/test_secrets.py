"""No credential appears in a message, a repr or a traceback."""

import logging
import socket
import traceback

import pytest

from deltafast import DeltaError, DeltaTable

SECRETS = {
    "s3://bucket/table": {
        "aws_access_key_id": "AKIASECRETID",
        "aws_secret_access_key": "SECRETSECRETKEY",
        "aws_session_token": "SECRETSESSION",
        "aws_region": "eu-west-1",
        "aws_endpoint": "http://127.0.0.1:PORT",
        "allow_http": "true",
    },
    "az://container/table": {
        "azure_storage_account_name": "account",
        "azure_storage_account_key": "U0VDUkVUU0VDUkVUS0VZ",
        "azure_storage_endpoint": "http://127.0.0.1:PORT",
        "allow_http": "true",
    },
    "http://SECRETUSER:SECRETWORD@127.0.0.1:PORT/table?sig=SECRETSIGNATURE": {"allow_http": "true"},
}
HIDDEN = ("SECRET", "U0VDUkVU")


@pytest.fixture(scope="module")
def closed_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.mark.parametrize("uri", SECRETS, ids=lambda uri: uri.split(":")[0])
def test_an_unreachable_store_gives_no_secret_away(uri, closed_port, caplog):
    caplog.set_level(logging.DEBUG, "deltafast")
    options = {key: value.replace("PORT", str(closed_port)) for key, value in SECRETS[uri].items()}
    options |= {"max_retries": "0", "retry_timeout": "1s"}
    with pytest.raises(DeltaError) as caught:
        DeltaTable(uri.replace("PORT", str(closed_port)), storage_options=options)
    error = caught.value
    shown = [str(error), repr(error), repr(error.__dict__), *traceback.format_exception_only(error)]
    requests = [record for record in caplog.records if hasattr(record, "request")]
    assert [record.request["error"] for record in requests] == ["Connect"] * len(requests)
    assert requests
    shown += [text for record in requests for text in (record.getMessage(), repr(vars(record)))]
    assert not [text for text in shown for secret in HIDDEN if secret in text]
