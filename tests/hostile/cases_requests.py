"""Requests that a table cannot answer, and secrets that must not be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tablekit import log

from .generate import case, either, error, rows

if TYPE_CHECKING:
    import pathlib

ALL = range(30)
USER, PASSWORD, TOKEN = "AKIAUSERUSERUSERUSER", "hunter2-hunter2", "sv=2024&sig=c2VjcmV0c2VjcmV0"
SECRETS = (PASSWORD, "c2VjcmV0c2VjcmV0")


@case("version_too_high", error("VersionNotFoundError", "99", "2"), version=99)
def _(folder: pathlib.Path) -> None:
    """A version that does not exist yet: the message names it and the newest."""
    log.basic(folder)


@case("version_negative", error("VersionNotFoundError|InvalidArgumentError", "-1"), version=-1)
def _(folder: pathlib.Path) -> None:
    """A negative version."""
    log.basic(folder)


@case("version_largest", error("VersionNotFoundError|InvalidArgumentError"), version=9223372036854775807)
def _(folder: pathlib.Path) -> None:
    """The largest version there can be."""
    log.basic(folder)


@case("time_before_the_first_commit", error("VersionNotFoundError|InvalidArgumentError"), do="at_time", milliseconds=0)
def _(folder: pathlib.Path) -> None:
    """A timestamp before the table was made."""
    log.basic(folder)


@case("time_of_the_far_future", either(None), do="at_time", milliseconds=253402300799000)
def _(folder: pathlib.Path) -> None:
    """A timestamp after the last commit."""
    log.basic(folder)


@case("column_unknown", error("DeltaError", "nowhere"), do="columns", columns=["id", "nowhere"])
def _(folder: pathlib.Path) -> None:
    """A column that the table lacks."""
    log.basic(folder)


for _name, _sql, _text in [
    ("unknown_column", "nowhere = 1", "nowhere"),
    ("unknown_function", "no_such_function(id) = 1", "no_such_function"),
    ("syntax", "id >= ", ""),
    ("two_statements", "id = 1; drop table x", ""),
    ("subquery", "id in (select 1)", ""),
    ("deep", "(" * 5_000 + "id = 1" + ")" * 5_000, ""),
    ("deep_not", "not " * 20_000 + "id = 1", ""),
    ("number_too_large", "id = " + "9" * 5_000, ""),
    ("division_by_zero", "1 / (id - id) = 1", ""),
]:

    @case(
        f"filter_{_name}",
        either([], "DeltaError", _text)
        if _name in {"deep", "deep_not", "number_too_large"}
        else error("DeltaError", _text),
        do="filter",
        sql=_sql,
    )
    def _(folder: pathlib.Path) -> None:
        """A filter that cannot be evaluated."""
        log.basic(folder)


@case(
    "filter_of_many_values", rows(range(20)), do="filter", sql="id in (" + ",".join(map(str, range(-20_000, 20))) + ")"
)
def _(folder: pathlib.Path) -> None:
    """A list of 20,000 values."""
    log.basic(folder)


# Change data feed.


def _feed(folder: pathlib.Path, file: pa.Table | bytes | None, path: str = "_change_data/cdc.parquet") -> log.Table:
    """Write a table with a change file of this content."""
    table = log.basic(folder, 2, configuration={"delta.enableChangeDataFeed": "true"})
    size = 10
    if isinstance(file, pa.Table):
        size = table.data(path, file)["add"]["size"]
    elif file is not None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(file)
    cdc = {"cdc": {"path": path, "partitionValues": {}, "size": size, "dataChange": False}}
    table.commit(2, cdc, log.remove("part-1.parquet"))
    return table


_CHANGE = pa.table({"id": pa.array([1], pa.int64()), "name": ["a"], "_change_type": ["delete"]})


@case("feed_right", rows([1]), do="changes", start=2, end=2)
def _(folder: pathlib.Path) -> None:
    """A good change file: the control of the cases below."""
    _feed(folder, _CHANGE)


@case("feed_file_missing", error("DataFileNotFoundError", "cdc.parquet"), do="changes", start=2, end=2)
def _(folder: pathlib.Path) -> None:
    """The change file is missing."""
    _feed(folder, None)


@case("feed_file_garbage", error("CorruptDataError", "cdc.parquet"), do="changes", start=2, end=2)
def _(folder: pathlib.Path) -> None:
    """The change file is garbage."""
    _feed(folder, b"garbage" * 100)


@case(
    "feed_file_without_type",
    error("CorruptDataError|SchemaMismatchError", "_change_type"),
    do="changes",
    start=2,
    end=2,
)
def _(folder: pathlib.Path) -> None:
    """The change file has no `_change_type`."""
    _feed(folder, _CHANGE.drop_columns(["_change_type"]))


@case("feed_file_climbs_out", error("DeltaError", "outside"), do="changes", start=2, end=2)
def _(folder: pathlib.Path) -> None:
    """The change file's path leaves the table."""
    _feed(folder, _CHANGE, "../outside/cdc.parquet")


@case(
    "feed_file_of_another_type",
    error("CorruptDataError|SchemaMismatchError", "cdc.parquet"),
    do="changes",
    start=2,
    end=2,
)
def _(folder: pathlib.Path) -> None:
    """The change file's `id` is text."""
    _feed(folder, _CHANGE.set_column(0, "id", pa.array(["one"])))


@case("feed_not_enabled", error("ChangeDataNotRecordedError"), do="changes", start=0, end=2)
def _(folder: pathlib.Path) -> None:
    """The feed was never on."""
    log.basic(folder)


@case("feed_backwards", error("DeltaError"), do="changes", start=2, end=0)
def _(folder: pathlib.Path) -> None:
    """The range is backwards."""
    _feed(folder, _CHANGE)


@case("feed_beyond_the_end", error("DeltaError", "99"), do="changes", start=99, end=100)
def _(folder: pathlib.Path) -> None:
    """The range starts after the newest version."""
    _feed(folder, _CHANGE)


# Secrets.

_KEYS = {
    "AWS_ACCESS_KEY_ID": USER,
    "AWS_SECRET_ACCESS_KEY": PASSWORD,
    "AWS_SESSION_TOKEN": PASSWORD,
    "AWS_REGION": "us-east-1",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_ALLOW_HTTP": "true",
    "max_retries": "0",
    "connect_timeout": "1s",
    "timeout": "2s",
}
for _name, _address, _options in [
    ("s3_keys", "s3://bucket/table", _KEYS),
    (
        "s3_endpoint_with_password",
        "s3://bucket/table",
        _KEYS | {"AWS_ENDPOINT_URL": f"http://user:{PASSWORD}@127.0.0.1:9"},
    ),
    ("s3_address_with_password", f"s3://{USER}:{PASSWORD}@bucket/table", _KEYS),
    ("s3_option_misspelt", "s3://bucket/table", _KEYS | {"AWS_SECRET_ACCES_KEY": PASSWORD}),
    ("s3_endpoint_invalid", "s3://bucket/table", _KEYS | {"AWS_ENDPOINT_URL": f"{PASSWORD}"}),
    ("s3_region_invalid", "s3://bucket/table", _KEYS | {"AWS_REGION": f"{PASSWORD}"}),
    (
        "azure_key",
        "abfss://c@account.dfs.core.windows.net/t",
        {
            "AZURE_STORAGE_ACCOUNT_KEY": PASSWORD,
            "AZURE_ENDPOINT": "http://127.0.0.1:9",
            "allow_http": "true",
            "max_retries": "0",
        },
    ),
    (
        "azure_signature",
        "abfss://c@account.dfs.core.windows.net/t",
        {
            "AZURE_STORAGE_SAS_TOKEN": TOKEN,
            "AZURE_ENDPOINT": "http://127.0.0.1:9",
            "allow_http": "true",
            "max_retries": "0",
        },
    ),
    ("gcs_account", "gs://bucket/table", {"GOOGLE_SERVICE_ACCOUNT_KEY": '{"private_key":"' + PASSWORD + '"}'}),
    (
        "web_address_with_password",
        f"http://user:{PASSWORD}@127.0.0.1:9/table",
        {"max_retries": "0", "timeout": "2s", "allow_http": "true"},
    ),
    (
        "web_address_with_signature",
        f"http://127.0.0.1:9/table?{TOKEN}",
        {"max_retries": "0", "timeout": "2s", "allow_http": "true"},
    ),
    ("unknown_scheme_with_password", f"warp://user:{PASSWORD}@host/table", {}),
]:

    @case(f"secret_in_{_name}", error("DeltaError"), seconds=20.0, secrets=SECRETS, storage_options=_options)
    def _(folder: pathlib.Path, address: str = _address) -> str:
        """A store that cannot be reached: the error tells no secret."""
        assert folder.exists()
        return address


for _name, _path in [
    ("web_path", f"https://user:{PASSWORD}@example.com/x.parquet"),
    ("web_path_with_signature", f"https://example.com/x.parquet?{TOKEN}"),
    ("s3_path", f"s3://{USER}:{PASSWORD}@bucket/x.parquet"),
    ("azure_path", f"abfss://c@account.dfs.core.windows.net/x.parquet?{TOKEN}"),
]:

    @case(f"secret_in_{_name}_of_the_log", error("DeltaError", "x.parquet"), secrets=SECRETS)
    def _(folder: pathlib.Path, path: str = _path) -> None:
        """A foreign path in the log with a password in it."""
        log.basic(folder).commit(3, log.add(path, 5))
