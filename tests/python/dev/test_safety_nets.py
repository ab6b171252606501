"""What runs outside the tests is complete: fuzz targets, workflows, lock files."""

from __future__ import annotations

import pathlib
import re
import tomllib

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[3]
FUZZ = ROOT / "fuzz"
LOCKS = (ROOT / "uv.lock", *sorted((ROOT / "tests" / "environments").glob("*/uv.lock")))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
#: A corpus of whole tables, in which a Rust test flips bits.
TABLES = "checkpoint_flips"


def manifest(folder):
    return tomllib.loads((folder / "Cargo.toml").read_text(encoding="utf-8"))


def targets():
    return {target["name"] for target in manifest(FUZZ)["bin"]}


def test_the_targets_of_libfuzzer_are_the_fuzz_targets_of_the_rust_tests():
    tests = (ROOT / "tests" / "rust" / "fuzz.rs").read_text(encoding="utf-8")
    assert set(re.findall(r'\bfuzz(?:_for)?\("(\w+)"', tests)) == targets()
    assert {file.stem for file in (FUZZ / "fuzz_targets").glob("*.rs")} == targets()


@pytest.mark.parametrize("target", sorted(targets()))
def test_a_target_of_libfuzzer_calls_its_reader_and_has_seeds(target):
    program = (FUZZ / "fuzz_targets" / f"{target}.rs").read_text(encoding="utf-8")
    assert f"deltafast_fuzz::target!({target});" in program
    assert any(file.is_file() for file in (FUZZ / "corpus" / target).iterdir())


def test_each_corpus_has_a_target():
    assert {folder.name for folder in (FUZZ / "corpus").iterdir()} - {TABLES} == targets()


def test_the_fuzz_crate_requires_what_the_core_requires():
    own = {"deltafast", "libfuzzer-sys"}
    core = manifest(ROOT)["dependencies"]
    for name, version in manifest(FUZZ)["dependencies"].items():
        if name not in own:
            required = core[name]
            assert version == (required if isinstance(required, str) else required["version"]), name


def test_miri_runs_tests_of_modules_that_exist():
    script = (ROOT / "dev" / "miri").read_text(encoding="utf-8")
    modules = set(re.findall(r"\b\w+::[\w:]+", script))
    assert len(modules) >= 5
    for module in modules:
        source = (ROOT / "src" / module.replace("::", "/")).with_suffix(".rs")
        assert "mod tests {" in source.read_text(encoding="utf-8"), module


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.parent.name)
def test_a_lock_file_names_the_public_index_only(lock):
    text = lock.read_text(encoding="utf-8")
    addresses = set(re.findall(r'"(\w+://[^/"]+)', text))
    assert addresses == {"https://pypi.org", "https://files.pythonhosted.org"}
    assert not re.findall(r'"(?:/|file:)[^"]*"', text)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.stem)
def test_a_workflow_runs_targets_and_scripts_that_exist(workflow):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    commands = "\n".join(step["run"] for job in jobs.values() for step in job["steps"] if "run" in step)
    for target in re.findall(r"^make ([\w-]+)", commands, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for script in re.findall(r"(?:dev|\.ci)/[\w.]+", commands):
        assert (ROOT / script).is_file(), script
