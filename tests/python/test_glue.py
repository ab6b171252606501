"""Tables by their names in the AWS Glue Data Catalog: opened, registered, their columns kept."""

from __future__ import annotations

import pickle

import boto3
import pyarrow as pa
import pytest

import servers
from deltafast import DeltaTable, write_deltalake
from deltafast._catalog.rest_client import CatalogError
from deltafast.exceptions import (
    DeltaProtocolError,
    DeltaWarning,
    InvalidArgumentError,
    MissingLibraryError,
    TableNotFoundError,
)

NAME = "glue://sales.orders"


@pytest.fixture(scope="module")
def bucket():
    with servers.s3() as running:
        yield running


@pytest.fixture
def client(bucket):
    """AWS Glue with the database `sales`, which is empty."""
    keys = {"aws_access_key_id": "someone", "aws_secret_access_key": "something", "region_name": "eu-west-1"}
    glue = boto3.client("glue", endpoint_url=bucket.endpoint, **keys)
    glue.create_database(DatabaseInput={"Name": "sales", "LocationUri": "s3://bucket/warehouse/"})
    yield glue
    for table in glue.get_tables(DatabaseName="sales")["TableList"]:
        glue.delete_table(DatabaseName="sales", Name=table["Name"])
    glue.delete_database(Name="sales")
    servers.obstore.delete(bucket.client(), bucket.keys())


@pytest.fixture
def options(bucket):
    return bucket.options(glue_endpoint_url=bucket.endpoint)


def described(client, table="orders"):
    return client.get_table(DatabaseName="sales", Name=table)["Table"]


def columns(client):
    return [(column["Name"], column["Type"]) for column in described(client)["StorageDescriptor"]["Columns"]]


def registered(client, name, location, **more):
    table = {
        "Name": name,
        "StorageDescriptor": {"Location": location, "Columns": []},
        "Parameters": {"table_type": "DELTA"},
    }
    client.create_table(DatabaseName="sales", TableInput=table | more)


def test_a_new_table_is_registered(client, options, bucket):
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "day": pa.array([0, 1], pa.date32())})
    write_deltalake(NAME, rows, partition_by="day", storage_options=options)
    table = DeltaTable(NAME, storage_options=options)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [1, 2]
    assert table.table_uri == "s3://bucket/warehouse/orders/"
    found = described(client)
    assert (found["TableType"], found["Parameters"]["table_type"]) == ("EXTERNAL_TABLE", "DELTA")
    assert columns(client) == [("id", "bigint"), ("day", "date")]
    assert DeltaTable(found["StorageDescriptor"]["Location"], storage_options=bucket.options()).count() == 2
    write_deltalake(NAME, {"id": [3], "day": [None]}, mode="append", storage_options=options)
    assert DeltaTable(NAME, version=0, storage_options=options).count() == 2
    assert pickle.loads(pickle.dumps(table)).version() == 0
    made = DeltaTable.create("glue://sales.made", {"id": "long"}, storage_options=options)
    assert made.version() == 0
    assert described(client, "made")["StorageDescriptor"]["Location"] == "s3://bucket/warehouse/made"


def test_columns_are_kept(client, options):
    write_deltalake(NAME, {"id": [1]}, storage_options=options)
    given = {"storage_options": options, "mode": "append", "schema_mode": "merge"}
    write_deltalake(NAME, {"id": [2], "state": ["new"]}, **given)
    assert columns(client) == [("id", "bigint"), ("state", "string")]
    table = DeltaTable(NAME, storage_options=options)
    nested = pa.schema([("tags", pa.map_(pa.string(), pa.list_(pa.struct([("a", pa.int32())]))))])
    table.alter.add_columns(list(DeltaTable.create("memory://t/x", nested).schema().fields))
    assert columns(client)[2] == ("tags", "map<string,array<struct<a:int>>>")
    before = described(client)["UpdateTime"]
    table.delete("id = 1")
    assert described(client)["UpdateTime"] == before


def test_a_commit_without_a_catalog_warns(client, options):
    write_deltalake(NAME, {"id": [1]}, storage_options=options)
    table = DeltaTable(NAME, storage_options=options)
    client.delete_table(DatabaseName="sales", Name="orders")
    with pytest.warns(
        DeltaWarning, match=r"the columns of sales\.orders in AWS Glue are the old ones: there is no table"
    ):
        write_deltalake(table, {"id": [2], "v": [1]}, mode="append", schema_mode="merge")
    assert table.count() == 2


def test_tables_of_others_are_opened(client, options, bucket):
    """Spark keeps the location among the parameters of the reader."""
    write_deltalake("s3://bucket/elsewhere", {"id": [1]}, storage_options=bucket.options())
    storage = {
        "Location": "s3://bucket/warehouse/spark-__PLACEHOLDER__",
        "SerdeInfo": {"Parameters": {"path": "s3://bucket/elsewhere"}},
    }
    registered(client, "spark", "", StorageDescriptor=storage, Parameters={"spark.sql.sources.provider": "delta"})
    registered(client, "crawled", "s3://bucket/elsewhere/", Parameters={"classification": "delta"})
    for name in ("spark", "crawled"):
        assert DeltaTable(f"glue://sales.{name}", storage_options=options).count() == 1


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("glue://sales.order", TableNotFoundError, "the table order does not exist; did you mean orders?"),
        ("glue://sale.orders", TableNotFoundError, "the database sale does not exist; did you mean sales?"),
        ("glue://orders", InvalidArgumentError, "is named glue://database.table or"),
        ("glue://sales.files", DeltaProtocolError, "is not a table of Delta Lake: AWS Glue has it as parquet"),
        ("glue://sales.nowhere", DeltaProtocolError, "AWS Glue has no location of sales.nowhere"),
    ],
)
def test_what_is_wrong_is_one_line(client, options, name, kind, message):
    registered(client, "orders", "s3://bucket/orders")
    registered(client, "files", "s3://bucket/files", Parameters={"classification": "parquet"})
    registered(client, "nowhere", "s3://bucket/nowhere-__PLACEHOLDER__")
    with pytest.raises(kind) as caught:
        DeltaTable(name, storage_options=options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_new_table_needs_a_database_with_a_location(client, options):
    client.create_database(DatabaseInput={"Name": "bare"})
    try:
        with pytest.raises(InvalidArgumentError, match="the database bare of AWS Glue has no location"):
            write_deltalake("glue://bare.orders", {"id": [1]}, storage_options=options)
    finally:
        client.delete_database(Name="bare")
    with pytest.raises(TableNotFoundError, match="the database sale does not exist; did you mean sales"):
        write_deltalake("glue://sale.orders", {"id": [1]}, storage_options=options)


def test_a_service_that_does_not_answer(options, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    closed = options | {"glue_endpoint_url": f"http://{servers.HOST}:{servers.closed_port()}"}
    with pytest.raises(CatalogError, match="AWS Glue does not answer get_table: Could not connect"):
        DeltaTable(NAME, storage_options=closed)
    with pytest.raises(CatalogError) as caught:
        DeltaTable(NAME, storage_options=closed | {"aws_secret_access_key": "SECRET"})
    assert "SECRET" not in str(caught.value)


def test_boto3_is_named_where_it_is_missing(options, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "boto3", None)
    with pytest.raises(MissingLibraryError, match=r"AWS Glue needs boto3, .*pip install 'deltafast\[glue\]'"):
        DeltaTable(NAME, storage_options=options)
