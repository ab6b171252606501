"""The address of the repository in what is published: `[project.urls]` and the links of README.md."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
ADDRESS = "https://example.org/owner/deltafast"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the files that the script changes, and of the script."""
    (tmp_path / "dev").mkdir()
    for name in ("pyproject.toml", "README.md", "dev/published_links.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def _run(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(tree / "dev/published_links.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_urls_name_the_repository(tree: Path) -> None:
    before = tomllib.loads((tree / "pyproject.toml").read_text())
    assert _run(tree, f"{ADDRESS}/", "v1.2.3").returncode == 0
    after = tomllib.loads((tree / "pyproject.toml").read_text())
    assert after["project"].pop("urls") == {
        "Repository": ADDRESS,
        "Documentation": f"{ADDRESS}/blob/v1.2.3/docs/README.md",
        "Changelog": f"{ADDRESS}/blob/v1.2.3/CHANGELOG.md",
        "Issues": f"{ADDRESS}/issues",
    }
    assert after == before


def test_links_of_the_readme_lead_to_files_of_the_revision(tree: Path) -> None:
    before = (tree / "README.md").read_text()
    assert _run(tree, ADDRESS, "v1.2.3").returncode == 0
    after = (tree / "README.md").read_text()
    targets = re.findall(r"\]\(([^)\s]+)\)", after)
    relative = [target for target in targets if not re.match(r"[a-z]+:|#", target)]
    absolute = [target for target in targets if target.startswith(f"{ADDRESS}/blob/v1.2.3/")]
    assert (relative, len(absolute) > 10) == ([], True)
    for target in absolute:
        assert (ROOT / target.removeprefix(f"{ADDRESS}/blob/v1.2.3/").partition("#")[0]).is_file(), target
    # Links within the page, and those to other places, stay.
    assert after.replace(f"{ADDRESS}/blob/v1.2.3/", "") == before
    assert targets.count("#spark") == before.count("](#spark)") > 0


@pytest.mark.parametrize("address", ["", "owner/deltafast", "http://example.org/owner/deltafast", 'https://h/a"b'])
def test_other_addresses_are_refused_and_nothing_changes(tree: Path, address: str) -> None:
    result = _run(tree, address, "v1.2.3")
    expected = f"the address of the repository must be https://HOST/OWNER/NAME, not {address!r}\n"
    assert (result.returncode, result.stderr) == (1, expected)
    assert (tree / "pyproject.toml").read_text() == (ROOT / "pyproject.toml").read_text()


def test_a_second_run_is_refused(tree: Path) -> None:
    assert _run(tree, ADDRESS, "v1.2.3").returncode == 0
    again = _run(tree, ADDRESS, "v1.2.3")
    assert (again.returncode, again.stderr) == (1, "pyproject.toml has [project.urls] already\n")


@pytest.mark.parametrize("job", ["wheel", "sdist"])
def test_the_workflow_writes_the_address_before_it_builds(job: str) -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text())
    steps = [step.get("run") or step["uses"] for step in workflow["jobs"][job]["steps"]]
    written = [index for index, step in enumerate(steps) if "dev/published_links.py" in step]
    built = [index for index, step in enumerate(steps) if step.startswith("PyO3/maturin-action")]
    assert len(written) == len(built) == 1
    assert written < built
