"""The official client of Unity Catalog gets from the tests' server what `UnityCatalog` gets.

It does not have the Delta API, so this is about catalogs, schemas, tables and credentials.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

from deltafast import DeltaTable, write_deltalake
from deltafast.catalog import UnityCatalog
from unity import ROOT as API
from unity import UnityServer

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = """
import asyncio, json, sys
from unitycatalog import client as uc

async def main(url, token, name, location):
    configuration = uc.Configuration(host=url)
    async with uc.ApiClient(configuration, header_name="Authorization", header_value=f"Bearer {token}") as api:
        catalog, schema, _ = name.split(".")
        tables = uc.TablesApi(api)
        info = await tables.get_table(name)
        wanted = uc.GenerateTemporaryTableCredential(table_id=info.table_id, operation=uc.TableOperation.READ)
        path = uc.GenerateTemporaryPathCredential(url=location, operation=uc.PathOperation.PATH_READ)
        temporary = uc.TemporaryCredentialsApi(api)
        keys = await temporary.generate_temporary_table_credentials(wanted)
        path_keys = await temporary.generate_temporary_path_credentials(path)
        listed, page = [], None
        while True:
            found = await tables.list_tables(catalog, schema, page_token=page)
            listed += [table.name for table in found.tables]
            page = found.next_page_token
            if not page:
                break
        print(json.dumps({
            "catalogs": [found.name for found in (await uc.CatalogsApi(api).list_catalogs()).catalogs],
            "schemas": [found.name for found in (await uc.SchemasApi(api).list_schemas(catalog)).schemas],
            "tables": listed,
            "kind": info.table_type.value,
            "format": info.data_source_format.value,
            "location": info.storage_location,
            "id": info.table_id,
            "columns": [[column.name, column.type_text] for column in info.columns],
            "keys": keys.aws_temp_credentials.access_key_id,
            "expires": keys.expiration_time,
            "path_keys": path_keys.aws_temp_credentials.access_key_id,
        }))
        await tables.delete_table(name)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The Python of an environment with the official client."""
    folder = tmp_path_factory.mktemp("client")
    uv = pathlib.Path(sys.executable).with_name("uv")
    command = [uv, "sync", "--quiet", "--frozen", "--python", sys.executable]
    project = ROOT / "tests" / "environments" / "unity-client"
    subprocess.run(command, check=True, cwd=project, env=os.environ | {"UV_PROJECT_ENVIRONMENT": str(folder / "venv")})
    return folder / "venv" / "bin" / "python"


@pytest.mark.proof
@pytest.mark.timeout(300)
def test_the_official_client_reads_what_ours_reads(python, tmp_path):
    expires = time.time() + 60

    def credentials(location, operation):
        key = f"{operation} {location.rpartition('/')[2]}"
        return {"s3.access-key-id": key, "s3.secret-access-key": "s", "s3.session-token": "t"}, expires

    with UnityServer(credentials, has_delta_api=False).running() as server:
        catalog = UnityCatalog(server.url, server.token)
        for name in ("a", "b", "c"):
            write_deltalake(tmp_path / name, {"id": [1], "name": ["x"]})
            catalog.register(f"main.sales.{name}", DeltaTable(tmp_path / name))
        table = catalog.table("main.sales.a")
        command = [python, "-c", PROGRAM, server.url + API, server.token, "main.sales.a", table.location]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout) == {
            "catalogs": catalog.catalogs(),
            "schemas": catalog.schemas("main"),
            "tables": ["a", "b", "c"],
            "kind": table.kind,
            "format": "DELTA",
            "location": table.location,
            "id": table.id,
            "columns": [["id", "bigint"], ["name", "string"]],
            "keys": "READ a",
            "expires": round(expires * 1000),
            "path_keys": "PATH_READ a",
        }
        assert catalog.tables("main", "sales") == ["b", "c"]
        assert server.violations == []
