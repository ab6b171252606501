"""Tables in S3 and behind plain HTTP servers: the same answers as on a local disk, few requests, clear errors."""

import logging
import os
import pathlib
import pickle
import re
import threading
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import deltalake
import obstore
import obstore.exceptions
import obstore.store
import pyarrow as pa
import pytest

import servers
from conformance import corpus
from deltafast import DeltaTable, _core, exceptions
from support import same_rows
from tablekit import log

CORPUS = {
    "classic checkpoint": "deltars-simple_table_with_checkpoint",
    "classic checkpoint, commits gone": "deltars-issue_1374",
    "multi-part checkpoint, vectors": "kernelrs-v1-multi-part-partitioned-struct-stats-only",
    "json checkpoint with sidecars": "deltars-checkpoint-v2-table",
    "parquet checkpoint with sidecars": "kernelrs-v2-checkpoints-parquet-with-last-checkpoint",
    "classic v2 checkpoint": "kernelrs-v2-classic-checkpoint-parquet",
    "deletion vectors": "deltars-table_with_deletion_logs",
    "column mapping": "golden-data-reader-timestamp_ntz-name-mode",
    "column mapping, partitioned": "deltars-table_with_partitioning_mapping",
    "encoded folders": "deltars-delta-0.8.0-special-partition",
    "spaces, signs and percent": "golden-hive.deltatbl-special-chars-in-partition-column",
    "percent in names": "kernelrs-cdf-table-partitioned",
}
ODD = ["%20", "a b", "100%", "x:y", "ü", "=", "a=b", "a/b", "a+b", "#?&", "~!*'()", "日本", "", None]


def odd_partitions(folder):
    """Partition values that have to be escaped, in the folders that a real writer makes of them."""
    rows = pa.table({"id": range(len(ODD)), "p": ODD})
    deltalake.write_deltalake(folder, rows, partition_by=["p"])


def odd_names(folder):
    """File names that hold these characters as they are; the log has them percent-encoded."""
    table = log.Table(folder)
    names = ["p=ü/a b.parquet", "p=x:y/%20.parquet", "p=%3D/a+b=c.parquet", "p==/#1.parquet", "p=?/é&~!*'().parquet"]
    adds = [
        table.ids(name, n * 10, n * 10 + 10, add_partitionValues={"p": name.split("/")[0][2:]})
        for n, name in enumerate(names)
    ]
    columns = [*log.ID_NAME, ("p", "string")]
    table.commit(0, log.protocol(), log.metadata(columns, partition_by=["p"]), *adds[:3])
    table.commit(1, *adds[3:])


def summarised(folder):
    """A checkpoint with a hint, two commits after it and a version checksum of the newest version."""
    table = log.basic(folder, 5)
    table.checkpoint(2)
    table.last_checkpoint(2)
    table.crc(4)


def cleaned_up(folder):
    """A checkpoint at 3 and the commits after it; those before are gone."""
    table = log.basic(folder, 6)
    table.checkpoint(3)
    table.last_checkpoint(3)
    table.drop_commits(0, 2)


def many_parts(folder):
    table = log.basic(folder, 4)
    table.checkpoint(2, parts=3)
    table.last_checkpoint(2, parts=3)
    table.drop_commits(0, 2)


MADE = {make.__name__: make for make in [odd_partitions, odd_names, summarised, cleaned_up, many_parts]}


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    """The folder of each table, by name. Tests only read them."""
    by_name = {table["name"]: table for table in corpus.manifest()["tables"]}
    found = {name: corpus.root() / by_name[table]["path"] for name, table in CORPUS.items()}
    for name, make in MADE.items():
        found[name] = tmp_path_factory.mktemp("made") / name
        make(found[name])
    return found


NAMES = [*CORPUS, *MADE]


def facts(table):
    """All that a handle says and that does not depend on the place or on files' times."""
    adds = pa.table(table.get_add_actions())
    return {
        "version": table.version(),
        "schema": table.schema().to_json(),
        "protocol": table.protocol(),
        "metadata": table.metadata(),
        "adds": sorted(map(repr, adds.to_pylist())),
        "partitions": sorted(map(repr, table.partitions())),
        "history": [{k: v for k, v in commit.items() if k != "timestamp"} for commit in table.history()],
        "tombstones": sorted(map(repr, pa.table(table.tombstones()).to_pylist())),
        "count": table.count(),
    }


def same_table(found, expected):
    assert facts(found) == facts(expected)
    same_rows(found.to_pyarrow_table(), expected.to_pyarrow_table())


def versions(folder):
    """The versions that local files can be opened at."""
    newest = DeltaTable(folder).version()
    for version in range(newest + 1):
        try:
            DeltaTable(folder, version=version)
        except exceptions.VersionNotFoundError:
            continue
        yield version


def shown(error):
    return [str(error), repr(error), repr(error.__dict__), *traceback.format_exception_only(error)]


# --- S3 --------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def s3():
    with servers.s3() as bucket:
        yield bucket


@pytest.fixture(scope="session")
def uploaded(s3, tables):
    """The S3 URL of each table; its key holds odd characters, too."""
    urls = {}

    def upload(name):
        if name not in urls:
            urls[name] = s3.upload(tables[name], f"some tables/ü=1/{name}")
        return urls[name]

    return upload


@pytest.fixture(scope="session")
def running_proxy(s3):
    with servers.Proxy(s3.port).running() as proxy:
        yield proxy


@pytest.fixture
def proxy(running_proxy):
    running_proxy.forget()
    yield running_proxy
    running_proxy.forget()


@pytest.fixture
def summarised_url(s3, tables):
    """A short key without odd characters, for the tests that look at requests."""
    return s3.upload(tables["summarised"], "summarised")


@pytest.mark.parametrize("name", NAMES)
def test_a_table_in_s3_is_the_same_as_on_disk(s3, uploaded, tables, name):
    same_table(DeltaTable(uploaded(name), storage_options=s3.options()), DeltaTable(tables[name]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "cleaned_up",
        *(
            pytest.param(name, marks=pytest.mark.proof)
            for name in ("classic checkpoint", "json checkpoint with sidecars", "deletion vectors")
        ),
    ],
)
def test_every_version_in_s3_is_the_same_as_on_disk(s3, uploaded, tables, name):
    kept = list(versions(tables[name]))
    assert len(kept) > 1
    moving = DeltaTable(uploaded(name), storage_options=s3.options())
    for version in kept:
        opened = DeltaTable(uploaded(name), version=version, storage_options=s3.options())
        same_rows(opened.to_pyarrow_table(), DeltaTable(tables[name], version=version).to_pyarrow_table())
        moving.load_as_version(version)
        assert facts(moving) == facts(opened)


def test_a_version_in_s3_that_does_not_exist_is_refused(s3, uploaded):
    for version in (99, 0):
        with pytest.raises(exceptions.VersionNotFoundError, match=str(version)):
            DeltaTable(uploaded("cleaned_up"), version=version, storage_options=s3.options())


@pytest.mark.parametrize("name", ["encoded folders", "odd_partitions", "odd_names"])
def test_predicates_and_uris_know_odd_paths(s3, uploaded, tables, name):
    there, here = DeltaTable(uploaded(name), storage_options=s3.options()), DeltaTable(tables[name])
    column = here.metadata().partition_columns[0]
    for value in {row[column] for row in here.to_pyarrow_table().select([column]).to_pylist()}:
        # Hive's empty and null folders are one.
        filters = [(column, "=", value)] if value else f"{column} is null"
        same_rows(there.to_pyarrow_table(filters=filters), here.to_pyarrow_table(filters=filters))
    uris = there.file_uris()
    assert len(uris) == len(here.file_uris())
    assert all(uri.startswith("s3://") for uri in uris)


def test_a_pickle_of_a_table_in_s3_reopens_it(s3, uploaded, tables):
    table = DeltaTable(uploaded("deletion vectors"), storage_options=s3.options())
    same_table(pickle.loads(pickle.dumps(table)), DeltaTable(tables["deletion vectors"]))


def test_a_new_commit_in_s3_is_found(s3, tmp_path):
    table = log.basic(tmp_path / "growing", 2)
    url = s3.upload(table.folder, "growing")
    handle = DeltaTable(url, storage_options=s3.options())
    assert (handle.version(), handle.count()) == (1, 20)
    table.commit(2, table.ids("part-2.parquet", 20, 30))
    s3.upload(table.folder, "growing")
    handle.update_incremental()
    assert (handle.version(), handle.count()) == (2, 30)
    same_table(handle, DeltaTable(table.folder))


def long_log(folder, versions):
    table = log.Table(folder / "long")
    table.commit(0, log.protocol(), log.metadata(), table.ids("part-0.parquet", 0, 10))
    for version in range(1, versions):
        table.commit(version, {"txn": {"appId": "app", "version": version}})
    return table.folder


def test_a_log_of_more_than_a_page_is_listed_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "20")
    with servers.s3() as s3:
        url = s3.upload(long_log(tmp_path, 70), "long")
        with servers.Proxy(s3.port).running() as proxy:
            options = s3.options(aws_endpoint_url=proxy.url)
            handle = DeltaTable(url, storage_options=options)
            assert (handle.version(), handle.count(), handle.transaction_version("app")) == (69, 10, 69)
            assert sum("continuation-token" in request for request in proxy.requests) >= 3


@pytest.mark.proof
def test_a_log_of_more_than_the_usual_page_is_listed_to_its_end(s3, tmp_path):
    handle = DeltaTable(s3.upload(long_log(tmp_path, 1200), "long"), storage_options=s3.options())
    assert (handle.version(), handle.count(), handle.transaction_version("app")) == (1199, 10, 1199)


@pytest.mark.parametrize("key", ["aws_endpoint_url", "AWS_ENDPOINT_URL", "endpoint", "endpoint_url", "aws_endpoint"])
def test_the_endpoint_has_the_names_that_others_give_it(s3, summarised_url, key):
    options = s3.options()
    options[key] = options.pop("aws_endpoint_url")
    assert DeltaTable(summarised_url, storage_options=options).count() == 50


def test_keys_have_short_and_upper_case_names(s3, summarised_url):
    options = {
        "ENDPOINT": s3.endpoint,
        "ACCESS_KEY_ID": "someone",
        "SECRET_ACCESS_KEY": "something",
        "REGION": "eu-west-1",
        "AWS_ALLOW_HTTP": "true",
        # Others' layers; not the store's business.
        "AWS_S3_LOCKING_PROVIDER": "dynamodb",
        "aws_s3_allow_unsafe_rename": "true",
    }
    assert DeltaTable(summarised_url, storage_options=options).count() == 50


def test_the_scheme_s3a_is_the_same(s3, summarised_url):
    url = summarised_url.replace("s3://", "s3a://")
    assert DeltaTable(url, storage_options=s3.options()).to_pyarrow_table().num_rows == 50


@pytest.fixture
def no_aws(monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    return monkeypatch


def test_credentials_and_endpoint_come_from_the_environment(s3, summarised_url, no_aws):
    no_aws.setenv("AWS_ACCESS_KEY_ID", "someone-else")
    no_aws.setenv("AWS_SECRET_ACCESS_KEY", "something")
    no_aws.setenv("AWS_REGION", "eu-west-1")
    no_aws.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    no_aws.setenv("AWS_ALLOW_HTTP", "true")
    assert DeltaTable(summarised_url).count() == 50
    assert DeltaTable.is_deltatable(summarised_url)


def test_options_win_over_the_environment(s3, summarised_url, proxy, no_aws):
    no_aws.setenv("AWS_ENDPOINT_URL", f"http://{servers.HOST}:{servers.closed_port()}")
    no_aws.setenv("AWS_ACCESS_KEY_ID", "someone-else")
    assert DeltaTable(summarised_url, storage_options=s3.options(aws_endpoint_url=proxy.url)).count() == 50
    assert proxy.requests


# --- S3: the number of requests --------------------------------------------------------------------


def test_opening_behind_a_checkpoint_costs_at_most_four_requests(s3, summarised_url, proxy):
    table = DeltaTable(summarised_url, storage_options=s3.options(aws_endpoint_url=proxy.url))
    assert table.version() == 4
    assert table.schema().fields[0].name == "id"
    table.metadata(), table.protocol(), table.timestamp()
    assert len(proxy.requests) <= 4, proxy.requests


@pytest.mark.parametrize(
    "name", ["deletion vectors", "json checkpoint with sidecars", "multi-part checkpoint, vectors"]
)
def test_opening_what_spark_wrote_costs_at_most_four_requests(s3, uploaded, proxy, name):
    DeltaTable(uploaded(name), storage_options=s3.options(aws_endpoint_url=proxy.url))
    assert len(proxy.requests) <= 4, proxy.requests


def test_refreshing_with_nothing_new_costs_at_most_two_requests(s3, summarised_url, proxy):
    table = DeltaTable(summarised_url, storage_options=s3.options(aws_endpoint_url=proxy.url))
    proxy.forget()
    table.update_incremental()
    assert table.version() == 4
    assert len(proxy.requests) <= 2, proxy.requests


def test_each_request_is_a_debug_line(s3, summarised_url, proxy, caplog):
    options = s3.options(aws_endpoint_url=proxy.url)
    caplog.set_level(logging.DEBUG, "deltafast")
    table = DeltaTable(summarised_url, storage_options=options)
    table.to_pyarrow_table()
    # Lines about requests of rows that another library pulls come with the next call.
    table.update_incremental()
    records = [record for record in caplog.records if hasattr(record, "request")]
    found = Counter((record.request["method"], urlsplit(record.request["url"]).path) for record in records)
    assert found == Counter((request.split()[0], urlsplit(request.split()[1]).path) for request in proxy.requests)
    listing, *_ = [record.request for record in records if "list-type=2" in record.request["url"]]
    assert "prefix=summarised" in listing["url"]
    assert (listing["status"], listing["error"], listing["sent_bytes"]) == (200, None, 0)
    assert all(record.request["elapsed_ms"] > 0 for record in records)
    pattern = r"request GET http://\S+/_delta_log/\S+( bytes=\S+)?: 20[06] in \d+\.\d ms, \d+ bytes received"
    assert any(re.fullmatch(pattern, record.getMessage()) for record in records)
    # Nothing is kept for a logger that does not listen.
    caplog.clear()
    caplog.set_level(logging.INFO, "deltafast")
    DeltaTable(summarised_url, storage_options=options)
    assert not caplog.records
    assert _core.take_requests() == {"records": [], "dropped": 0}


def test_what_was_read_is_not_asked_for_again(s3, summarised_url, proxy):
    table = DeltaTable(summarised_url, storage_options=s3.options(aws_endpoint_url=proxy.url))
    table.to_pyarrow_table()
    proxy.forget()
    table.version(), table.schema(), table.metadata(), table.protocol()
    assert proxy.requests == []


def test_sidecars_are_not_listed_with_the_log(s3, uploaded, tables, proxy):
    listed = []

    def watch(request, behind):
        answer = behind()
        if "list-type=2" in request:
            listed.extend(re.findall(rb"<Key>([^<]*)</Key>", answer.body))
        return answer

    proxy.disturb = watch
    name = "json checkpoint with sidecars"
    table = DeltaTable(uploaded(name), storage_options=s3.options(aws_endpoint_url=proxy.url))
    assert sorted(table.files()) == sorted(DeltaTable(tables[name]).files())
    assert listed
    assert not [key for key in listed if b"_sidecars/" in key]


@pytest.fixture(scope="module")
def fifty(s3, tmp_path_factory):
    """A table of fifty commits with a small file each, and its URL."""
    table = log.basic(tmp_path_factory.mktemp("fifty"), 50)
    return table, s3.upload(table.folder, "fifty")


@pytest.mark.parametrize("what", ["commits", "rows", "history"])
def test_many_requests_are_under_way_at_once(s3, fifty, proxy, what):
    under_way = most = 0
    lock = threading.Lock()

    def slow(_, behind):
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.05)
        answer = behind()
        with lock:
            under_way -= 1
        return answer

    local, url = fifty
    options = s3.options(aws_endpoint_url=proxy.url)
    if what == "commits":
        proxy.disturb = slow
    table = DeltaTable(url, storage_options=options)
    assert len(table.files()) == 50
    proxy.disturb = slow
    if what == "rows":
        same_rows(table.to_pyarrow_table(), DeltaTable(local.folder).to_pyarrow_table())
    elif what == "history":
        assert len(table.history()) == 50
    # More than any number of processors that tests run on asks for, fewer than a service would refuse.
    assert 16 <= most <= 64


def test_nothing_is_ever_written(s3, uploaded, proxy):
    table = DeltaTable(uploaded("deletion vectors"), storage_options=s3.options(aws_endpoint_url=proxy.url))
    facts(table)
    table.to_pyarrow_table()
    assert {request.split()[0] for request in proxy.requests} <= {"GET", "HEAD"}


# --- S3: what goes wrong ---------------------------------------------------------------------------


def test_an_empty_place_in_s3_is_no_table(s3, summarised_url):
    with pytest.raises(exceptions.TableNotFoundError, match="s3://bucket/nothing"):
        DeltaTable("s3://bucket/nothing", storage_options=s3.options())
    assert not DeltaTable.is_deltatable("s3://bucket/nothing", storage_options=s3.options())
    assert DeltaTable.is_deltatable(summarised_url, storage_options=s3.options())


def test_a_neighbour_whose_name_begins_alike_is_not_the_table(s3, summarised_url):
    with pytest.raises(exceptions.TableNotFoundError):
        DeltaTable(summarised_url[:-1], storage_options=s3.options())


def test_a_missing_bucket_is_named(s3):
    with pytest.raises((exceptions.TableNotFoundError, exceptions.StorageError), match=r"NoSuchBucket|no such bucket"):
        DeltaTable("s3://no-bucket/table", storage_options=s3.options())


@pytest.mark.parametrize("retries", ["0", "1"])
def test_a_closed_port_is_an_error_within_seconds(s3, retries):
    endpoint = f"http://{servers.HOST}:{servers.closed_port()}"
    options = s3.options(
        aws_endpoint_url=endpoint,
        max_retries=retries,
        aws_access_key_id="AKIASECRET",
        aws_secret_access_key="SECRETKEY",
    )
    begun = time.monotonic()
    with pytest.raises(exceptions.StorageError, match="s3://bucket/table") as caught:
        DeltaTable("s3://bucket/table", storage_options=options)
    assert time.monotonic() - begun < 5
    assert not [text for text in shown(caught.value) if "SECRET" in text]


def test_a_password_in_the_endpoint_is_not_shown(s3):
    endpoint = f"http://SECRETUSER:SECRETWORD@{servers.HOST}:{servers.closed_port()}"
    with pytest.raises(exceptions.DeltaError) as caught:
        DeltaTable("s3://bucket/table", storage_options=s3.options(aws_endpoint_url=endpoint, max_retries="0"))
    assert not [text for text in shown(caught.value) if "SECRET" in text]


def test_plain_http_without_leave_says_which_option_gives_it(s3, no_aws):
    options = s3.options()
    del options["allow_http"]
    with pytest.raises(exceptions.DeltaError, match="allow_http"):
        DeltaTable("s3://bucket/table", storage_options=options)


DENIALS = {
    "key": (403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."),
    "signature": (403, "SignatureDoesNotMatch", "The request signature we calculated does not match."),
    "no leave": (403, "AccessDenied", "Access Denied"),
    "unknown": (401, "Unauthorized", "Who are you?"),
    "expired": (400, "ExpiredToken", "The provided token has expired."),
}


@pytest.mark.parametrize("case", DENIALS)
def test_refused_credentials_are_a_storage_error_without_them(s3, summarised_url, proxy, case):
    status, code, text = DENIALS[case]
    body = (
        f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{text}</Message>"
        "<AWSAccessKeyId>AKIASECRET</AWSAccessKeyId><StringToSign>AWS4 SECRETTEXT</StringToSign>"
        "<Token-0>SECRETTOKEN</Token-0></Error>"
    ).encode()
    proxy.disturb = lambda *_: servers.Answer(status, {"Content-Type": "application/xml"}, body)
    options = s3.options(aws_endpoint_url=proxy.url, aws_access_key_id="AKIASECRET", aws_session_token="SECRETTOKEN")
    with pytest.raises(exceptions.StorageError, match=code) as caught:
        DeltaTable(summarised_url, storage_options=options)
    assert not [text for text in shown(caught.value) if "SECRET" in text]


def fails_at_first(times):
    """A disturbance: each object and listing is answered with 503 so many times before it is given out."""
    left = {}

    def disturb(request, behind):
        left.setdefault(request, times)
        left[request] -= 1
        return servers.Answer(503, {}, b"<Error><Code>SlowDown</Code></Error>") if left[request] >= 0 else behind()

    return disturb


def test_a_throttled_request_is_repeated(s3, summarised_url, tables, proxy):
    proxy.disturb = fails_at_first(1)
    options = s3.options(aws_endpoint_url=proxy.url, max_retries="2")
    same_table(DeltaTable(summarised_url, storage_options=options), DeltaTable(tables["summarised"]))


def test_a_service_that_stays_down_is_a_storage_error(s3, summarised_url, proxy):
    proxy.disturb = fails_at_first(10)
    with pytest.raises(exceptions.StorageError, match=r"503|SlowDown"):
        DeltaTable(summarised_url, storage_options=s3.options(aws_endpoint_url=proxy.url, max_retries="0"))
    # A hint that cannot be read is ignored; the listing decides.
    assert len(proxy.requests) == 2


def breaks_off_once(chosen):
    """A disturbance: the first answer to each chosen request ends in its middle."""
    seen = set()

    def disturb(request, behind):
        answer = behind()
        if request in seen or not chosen(request) or len(answer.body) < 100:
            return answer
        seen.add(request)
        headers = {**answer.headers, "Content-Length": str(len(answer.body))}
        return answer._replace(headers=headers, body=answer.body[: len(answer.body) // 2])

    return disturb


def is_listing(request):
    return "list-type=2" in request


@pytest.mark.parametrize("listings", [False, True], ids=["objects", "listings"])
def test_a_body_that_breaks_off_is_fetched_again(s3, summarised_url, tables, proxy, listings):
    proxy.disturb = breaks_off_once(lambda request: is_listing(request) == listings)
    options = s3.options(aws_endpoint_url=proxy.url, max_retries="3")
    same_table(DeltaTable(summarised_url, storage_options=options), DeltaTable(tables["summarised"]))


@pytest.mark.parametrize("listings", [False, True], ids=["objects", "listings"])
def test_a_body_that_breaks_off_never_gives_other_rows(s3, summarised_url, tables, proxy, listings):
    proxy.disturb = breaks_off_once(lambda request: is_listing(request) == listings)
    options = s3.options(aws_endpoint_url=proxy.url, max_retries="0")
    try:
        rows = DeltaTable(summarised_url, storage_options=options).to_pyarrow_table()
    except exceptions.StorageError:
        return
    same_rows(rows, DeltaTable(tables["summarised"]).to_pyarrow_table())


def test_a_missing_data_file_is_named(s3, tmp_path):
    table = log.basic(tmp_path / "holes", 2)
    (table.folder / "part-1.parquet").unlink()
    handle = DeltaTable(s3.upload(table.folder, "holes"), storage_options=s3.options())
    with pytest.raises(exceptions.DataFileNotFoundError, match=r"part-1\.parquet"):
        handle.to_pyarrow_table()


def test_a_file_cut_short_is_an_error(s3, tmp_path):
    table = log.basic(tmp_path / "short", 1)
    file = table.folder / "part-0.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    handle = DeltaTable(s3.upload(table.folder, "short"), storage_options=s3.options())
    with pytest.raises((exceptions.CorruptDataError, exceptions.StorageError), match=r"part-0\.parquet"):
        handle.to_pyarrow_table()


def test_paths_out_of_the_bucket_are_refused(s3, tmp_path):
    table = log.basic(tmp_path / "outside", 1)
    table.commit(1, log.add("s3://other-bucket/x.parquet", 100))
    handle = DeltaTable(s3.upload(table.folder, "outside"), storage_options=s3.options())
    with pytest.raises(exceptions.StorageError, match="allow_external_paths"):
        handle.to_pyarrow_table()


def test_absolute_paths_in_the_same_bucket_are_read(s3, tmp_path):
    base = log.basic(tmp_path / "base", 1)
    s3.upload(base.folder, "of/base table")
    clone = log.Table(tmp_path / "clone")
    size = (base.folder / "part-0.parquet").stat().st_size
    adds = [log.add(f"s3://bucket/of/base%20table/part-{n}.parquet", size) for n in range(1)]
    clone.commit(0, log.protocol(), log.metadata(), *adds)
    handle = DeltaTable(s3.upload(clone.folder, "of/clone"), storage_options=s3.options())
    same_rows(handle.to_pyarrow_table(), DeltaTable(base.folder).to_pyarrow_table())


# --- Azure -----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def azure():
    with servers.azure(servers.azurite(pathlib.Path(servers.__file__).parent / ".cache")) as container:
        yield container


@pytest.fixture(scope="session")
def in_azure(azure, tables):
    """The Azure URL of each table."""
    urls = {}

    def upload(name):
        if name not in urls:
            urls[name] = azure.upload(tables[name], f"some tables/ü=1/{name}")
        return urls[name]

    return upload


@pytest.mark.parametrize("name", NAMES)
def test_a_table_in_azure_is_the_same_as_on_disk(azure, in_azure, tables, name):
    same_table(DeltaTable(in_azure(name), storage_options=azure.options()), DeltaTable(tables[name]))


@pytest.mark.parametrize("name", ["classic checkpoint", "cleaned_up"])
def test_every_version_in_azure_is_the_same_as_on_disk(azure, in_azure, tables, name):
    for version in versions(tables[name]):
        opened = DeltaTable(in_azure(name), version=version, storage_options=azure.options())
        same_rows(opened.to_pyarrow_table(), DeltaTable(tables[name], version=version).to_pyarrow_table())


def test_requests_to_azure_are_as_few(azure, in_azure):
    with servers.Proxy(azure.port).running() as proxy:
        options = azure.options(azure_storage_endpoint=f"{proxy.url}/{azure.account}")
        table = DeltaTable(in_azure("summarised"), storage_options=options)
        assert table.version() == 4
        assert len(proxy.requests) <= 4, proxy.requests
        proxy.forget()
        table.update_incremental()
        assert len(proxy.requests) <= 2, proxy.requests


def test_the_other_schemes_of_azure_lead_to_the_same_table(azure, in_azure):
    path = in_azure("summarised").removeprefix("az://container/")
    for url in (f"abfs://container/{path}", f"azure://container/{path}"):
        assert DeltaTable(url, storage_options=azure.options()).count() == 50


def test_short_names_of_the_options_work_in_azure(azure, in_azure):
    options = {
        "account_name": azure.account,
        "account_key": azure.key,
        "endpoint": azure.options()["azure_storage_endpoint"],
        "allow_http": "true",
    }
    assert DeltaTable(in_azure("summarised"), storage_options=options).count() == 50


def test_an_empty_place_in_azure_is_no_table(azure):
    with pytest.raises(exceptions.TableNotFoundError, match="nothing"):
        DeltaTable("az://container/nothing", storage_options=azure.options())


def test_a_missing_container_is_named(azure):
    with pytest.raises((exceptions.TableNotFoundError, exceptions.StorageError), match=r"no-container"):
        DeltaTable("az://no-container/table", storage_options=azure.options())


def test_a_wrong_account_key_is_a_storage_error_without_it(azure, in_azure):
    options = azure.options(azure_storage_account_key="U0VDUkVUU0VDUkVUS0VZ")
    with pytest.raises(exceptions.StorageError, match=r"access denied") as caught:
        DeltaTable(in_azure("summarised"), storage_options=options)
    assert not [text for text in shown(caught.value) if "U0VDUkVU" in text]


# --- GCS -------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def running_gcs():
    with servers.Gcs().running() as bucket:
        yield bucket


@pytest.fixture
def gcs(running_gcs):
    running_gcs.forget()
    yield running_gcs
    running_gcs.page = 1000


@pytest.fixture(scope="session")
def in_gcs(running_gcs, tables):
    """The GCS URL of each table."""
    urls = {}

    def upload(name):
        if name not in urls:
            urls[name] = running_gcs.upload(tables[name], f"some tables/ü=1/{name}")
        return urls[name]

    return upload


@pytest.mark.parametrize("name", NAMES)
def test_a_table_in_gcs_is_the_same_as_on_disk(gcs, in_gcs, tables, name):
    same_table(DeltaTable(in_gcs(name), storage_options=gcs.options()), DeltaTable(tables[name]))


@pytest.mark.parametrize("name", ["classic checkpoint", "cleaned_up"])
def test_every_version_in_gcs_is_the_same_as_on_disk(gcs, in_gcs, tables, name):
    for version in versions(tables[name]):
        opened = DeltaTable(in_gcs(name), version=version, storage_options=gcs.options())
        same_rows(opened.to_pyarrow_table(), DeltaTable(tables[name], version=version).to_pyarrow_table())


def test_a_listing_in_pages_is_read_to_its_end(gcs, in_gcs, tables):
    gcs.page = 2
    same_table(DeltaTable(in_gcs("summarised"), storage_options=gcs.options()), DeltaTable(tables["summarised"]))
    assert any("continuation-token" in request for request in gcs.requests)


def test_requests_to_gcs_are_as_few(gcs, in_gcs):
    table = DeltaTable(in_gcs("summarised"), storage_options=gcs.options())
    assert table.version() == 4
    assert len(gcs.requests) <= 4, gcs.requests
    gcs.forget()
    table.update_incremental()
    assert len(gcs.requests) <= 2, gcs.requests


def test_a_service_account_may_name_the_server(gcs, in_gcs):
    options = {"service_account_key": gcs.account(), "bearer_token": gcs.token, "allow_http": "true"}
    assert DeltaTable(in_gcs("summarised"), storage_options=options).count() == 50


def test_a_missing_place_or_bucket_in_gcs_is_named(gcs):
    with pytest.raises(exceptions.TableNotFoundError, match="nothing"):
        DeltaTable("gs://bucket/nothing", storage_options=gcs.options())
    with pytest.raises((exceptions.TableNotFoundError, exceptions.StorageError), match="no-bucket"):
        DeltaTable("gs://no-bucket/table", storage_options=gcs.options())


def test_a_wrong_token_is_a_storage_error_without_it(gcs, in_gcs):
    with pytest.raises(exceptions.StorageError) as caught:
        DeltaTable(in_gcs("summarised"), storage_options=gcs.options(google_bearer_token="SECRETSECRET"))
    assert not [text for text in shown(caught.value) if "SECRETSECRET" in text]


@pytest.fixture
def in_bucket(gcs):
    """The bucket as another client of the same protocol sees it."""
    return gcs.client()


def test_of_many_that_create_an_object_in_gcs_one_wins(gcs, in_bucket):
    """What commits rest on, and tests of commits on this server."""

    def create(number):
        try:
            obstore.put(in_bucket, "race/0.json", str(number).encode(), mode="create")
        except obstore.exceptions.AlreadyExistsError:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        won = [number for number in pool.map(create, range(8)) if number is not None]
    assert len(won) == 1
    assert bytes(obstore.get(in_bucket, "race/0.json").bytes()) == str(won[0]).encode()


def test_objects_in_gcs_are_replaced_listed_and_deleted(gcs, in_bucket):
    first = obstore.put(in_bucket, "kept/a", b"1")
    obstore.put(in_bucket, "kept/a", b"22", mode=first)
    with pytest.raises(obstore.exceptions.PreconditionError):
        obstore.put(in_bucket, "kept/a", b"3", mode=first)
    large = os.urandom(11 << 20)
    obstore.put(in_bucket, "kept/b/large", large, use_multipart=True, chunk_size=5 << 20)
    assert (
        bytes(obstore.get_range(in_bucket, "kept/b/large", start=10_000_000, length=100))
        == large[10_000_000:10_000_100]
    )
    assert [entry["size"] for entry in obstore.list(in_bucket, "kept").collect()] == [2, len(large)]
    assert [entry["path"] for entry in obstore.list(in_bucket, "kept", offset="kept/a").collect()] == ["kept/b/large"]
    shallow = obstore.list_with_delimiter(in_bucket, "kept")
    assert (shallow["common_prefixes"], len(shallow["objects"])) == (["kept/b"], 1)
    obstore.delete(in_bucket, ["kept/a", "kept/b/large"])
    with pytest.raises(FileNotFoundError):
        obstore.head(in_bucket, "kept/a")


# --- plain HTTP ------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def site_folder(tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    for name, table in tables.items():
        (folder / name).symlink_to(table)
    return folder


@pytest.fixture(scope="session")
def running_site(site_folder):
    with servers.Folder(site_folder).running() as site:
        yield site


@pytest.fixture
def site(running_site):
    running_site.forget()
    return running_site


@pytest.fixture(scope="session")
def plain_site(site_folder):
    """A server that knows no ranges."""
    with servers.Folder(site_folder, ranges=False).running() as site:
        yield site


def url_of(site, name):
    return f"{site.url}/{name.replace(' ', '%20').replace(',', '%2C')}"


@pytest.mark.parametrize("name", NAMES)
def test_a_table_over_http_is_the_same_as_on_disk(site, tables, name):
    same_table(DeltaTable(url_of(site, name)), DeltaTable(tables[name]))


@pytest.mark.parametrize("name", ["classic checkpoint", "summarised"])
def test_every_version_over_http_is_the_same_as_on_disk(site, tables, name):
    for version in versions(tables[name]):
        found, expected = DeltaTable(url_of(site, name), version=version), DeltaTable(tables[name], version=version)
        assert found.version() == version
        same_rows(found.to_pyarrow_table(), expected.to_pyarrow_table())


@pytest.mark.parametrize("name", ["summarised", "cleaned_up", "odd_names"])
def test_what_is_a_table_is_found_out_without_a_listing(site, name):
    assert DeltaTable.is_deltatable(url_of(site, name))
    assert not DeltaTable.is_deltatable(f"{site.url}/nothing")


def test_no_table_over_http_is_said_so(site):
    with pytest.raises(exceptions.TableNotFoundError, match="nothing"):
        DeltaTable(f"{site.url}/nothing")


def test_opening_over_http_asks_for_little(site):
    """The hint, the checkpoint, its commit, two after it, the end, the checksum, two commits or the checksum again."""
    assert DeltaTable(url_of(site, "summarised")).version() == 4
    assert len(site.requests) <= 9, site.requests


def test_refreshing_over_http_costs_at_most_two_requests(site):
    table = DeltaTable(url_of(site, "summarised"))
    site.forget()
    table.update_incremental()
    assert table.version() == 4
    assert len(site.requests) <= 2, site.requests


def test_an_http_server_that_is_not_there_is_a_storage_error():
    url = f"http://{servers.HOST}:{servers.closed_port()}/table"
    begun = time.monotonic()
    with pytest.raises(exceptions.StorageError):
        DeltaTable(url, storage_options={"max_retries": "1"})
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("name", ["odd_names", "summarised", "classic checkpoint", "deletion vectors"])
def test_a_server_without_ranges_gives_the_rows_or_says_so(plain_site, tables, name):
    try:
        table = DeltaTable(url_of(plain_site, name), storage_options={"max_retries": "0"})
        rows = table.to_pyarrow_table()
    except exceptions.StorageError as error:
        message = str(error)
        assert "range" in message.lower()
        assert plain_site.url in message
    else:
        same_rows(rows, DeltaTable(tables[name]).to_pyarrow_table())
