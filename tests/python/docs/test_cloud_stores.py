"""The programs of the page on cloud stores run as they stand, with credentials in the environment."""

import contextlib
import pathlib

import pytest

import servers

from .blocks import run_page

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "howto" / "cloud_stores.md"


@pytest.mark.slow
def test_the_programs_run_as_they_stand(tmp_path, monkeypatch):
    with contextlib.ExitStack() as running:
        for kind, prefix in (("s3", "AWS"), ("azure", "AZURE"), ("gcs", "GOOGLE")):
            for name, value in running.enter_context(servers.cloud(kind)).options().items():
                monkeypatch.setenv(
                    name.upper() if name.startswith(prefix.lower()) else f"{prefix}_{name.upper()}", value
                )
        run_page(PAGE.read_text(encoding="utf-8"), tmp_path)
