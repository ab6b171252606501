"""The program of the page on AWS Glue runs as it stands, with a service in the environment."""

import pathlib

import boto3

import servers

from .blocks import run_page

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "howto" / "glue.md"


def test_the_program_runs_as_it_stands(tmp_path, monkeypatch):
    with servers.s3() as bucket:
        more = {"aws_endpoint_url_glue": bucket.endpoint, "aws_allow_http": "true"}
        for name, value in (bucket.options() | more).items():
            monkeypatch.setenv(name.upper(), value)
        database = {"Name": "sales", "LocationUri": "s3://bucket/warehouse"}
        boto3.client("glue", region_name="eu-west-1").create_database(DatabaseInput=database)
        run_page(PAGE.read_text(encoding="utf-8"), tmp_path)
