"""The examples of the docstrings of `deltafast.spark` print what they show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import docstrings

if TYPE_CHECKING:
    import pathlib

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
#: Modules whose examples need a session without Delta's own jar.
WITHOUT_THE_JAR = {"deltafast.spark._enable.enable"}


@pytest.mark.parametrize("module", docstrings.modules(spark=True))
def test_examples_print_what_they_show(module: str, spark: Any, tmp_path: pathlib.Path) -> None:
    ran, skipped = docstrings.run(module, tmp_path, spark=spark)
    assert (skipped > 0) == (module in WITHOUT_THE_JAR)
    assert ran + skipped > 0
