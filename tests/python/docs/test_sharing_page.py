"""The programs of the page on Delta Sharing run as they stand, with the profile of a server in their folder."""

import pathlib

from deltafast import write_deltalake
from sharing import SharingServer

from .blocks import run_page

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "howto" / "sharing.md"


def test_the_programs_run_as_they_stand(tmp_path):
    table = tmp_path / "table"
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(table, {"id": [1, 2], "state": ["new", "paid"]}, configuration=feed)
    write_deltalake(table, {"id": [3], "state": ["paid"]}, mode="append")
    folder = tmp_path / "programs"
    folder.mkdir()
    with SharingServer().running() as server:
        server.share(table)
        server.profile(folder / "config.share")
        run_page(PAGE.read_text(encoding="utf-8"), folder)
        assert server.violations == []
