"""The programs of the page on Unity Catalog run as they stand, with a server in the environment."""

import pathlib

from unity import UnityServer

from .blocks import run_page

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "howto" / "unity_catalog.md"


def test_the_programs_run_as_they_stand(tmp_path, monkeypatch):
    with UnityServer().running() as server:
        server.warehouse = tmp_path.as_uri()
        monkeypatch.setenv("DATABRICKS_HOST", server.url)
        monkeypatch.setenv("DATABRICKS_TOKEN", server.token)
        run_page(PAGE.read_text(encoding="utf-8"), tmp_path)
        assert server.violations == []
