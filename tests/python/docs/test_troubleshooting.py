"""The page on errors has each class of `deltafast.exceptions`."""

import pathlib
import re

from deltafast import exceptions

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "troubleshooting.md"


def test_each_class_has_its_heading():
    headings = re.findall(r"^### (\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    public = {name for name, value in vars(exceptions).items() if isinstance(value, type) and name[0] != "_"}
    classes = {name for name in public if issubclass(getattr(exceptions, name), (Exception, Warning))}
    assert sorted(headings) == sorted(classes)
