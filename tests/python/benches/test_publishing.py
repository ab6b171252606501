"""The rules for benchmark results that are published, and the marks of those that do not meet them."""

import html
import json
import re
import statistics
import subprocess
from unittest.mock import Mock

import pytest

import chart
import publishing
import report
import run
from scenarios import SCENARIOS, SUBJECT
from tables import Table

DOCS = publishing.ROOT / "docs"
#: As it is where tests put a machine in its place.
AWAIT_QUIET = publishing.await_quiet


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A repository of one commit, taken for the one of the benchmarks."""
    root = tmp_path / "tree"
    (root / "docs" / "images").mkdir(parents=True)
    (root / "src.rs").write_text("fn main() {}\n")
    (root / "docs" / "benchmarks.json").write_text('{"scenarios": {}}')
    commit(root, "init", "--quiet")
    commit(root, "add", ".")
    commit(root, "commit", "--quiet", "--message", "First")
    for function in (publishing.changed_files, publishing.clean_commit, publishing.commit_of):
        monkeypatch.setattr(function, "__defaults__", (root,))
    monkeypatch.setattr(run, "ROOT", root)
    return root


def commit(root, *arguments):
    identity = ["-c", "user.name=someone", "-c", "user.email=someone@example.com", "-c", "commit.gpgsign=false"]
    return subprocess.run(
        ["git", "-C", root, *identity, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def head(root):
    return commit(root, "rev-parse", "HEAD")


class Machine:
    """A machine whose load average takes the given values one after the other, and whose clock is not waited for."""

    def __init__(self, *loads):
        self.loads = list(loads)
        self.waited = 0.0
        self.lines = []

    def load(self):
        return self.loads.pop(0) if len(self.loads) > 1 else self.loads[0]

    def sleep(self, seconds):
        self.waited += seconds

    def await_quiet(self, say=None, *, max_wait=60.0):
        return AWAIT_QUIET(say or self.lines.append, max_wait=max_wait, load=self.load, sleep=self.sleep)


def result(*loads, commit="0123456789", whole=0.1, **more):
    """The results of a scenario with a sample for each load, of which None is not recorded."""
    sample = {"phases": {"open": {"wall": 1.0, "cpu": 1.0, "peak_mb": 1.0}}, "facts": {}}
    samples = [sample if load is None else sample | {"load": load} for load in loads]
    return {
        "contenders": {SUBJECT: {"samples": samples}, "absent": {"samples": [], "absent": "no such peer"}},
        "commit": commit,
        "load": [whole, 2.0],
        "date": "2026-01-01 00:00 UTC",
        "wrong": [],
        **more,
    }


# --- the tree ------------------------------------------------------------------------------------


def test_a_clean_tree_gives_its_commit(tree):
    found = publishing.clean_commit()
    assert len(found) >= 10
    assert head(tree).startswith(found)
    assert publishing.commit_of() == found


@pytest.mark.parametrize("name", ["src.rs", "new.rs", "docs/other.md"])
def test_a_changed_or_untracked_file_is_refused_by_name(tree, name):
    (tree / name).write_text("changed\n")
    with pytest.raises(publishing.PublishingError, match=rf"changed tree: {name}; commit or stash"):
        publishing.clean_commit()
    assert publishing.commit_of() == f"{head(tree)[:10]}-dirty"


def test_a_staged_change_is_refused(tree):
    (tree / "src.rs").write_text("changed\n")
    commit(tree, "add", "src.rs")
    with pytest.raises(publishing.PublishingError, match=r"changed tree: src\.rs"):
        publishing.clean_commit()


def test_what_publishing_writes_does_not_count_as_a_change(tree):
    for name in publishing.PUBLISHED:
        (tree / name).write_text("written by the run\n")
    assert head(tree).startswith(publishing.clean_commit())


def test_without_a_repository_nothing_is_published(tmp_path):
    with pytest.raises(publishing.PublishingError, match="git status failed"):
        publishing.clean_commit(tmp_path)
    assert publishing.commit_of(tmp_path) is None


# --- the samples ---------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_samples_are_refused(count):
    with pytest.raises(publishing.PublishingError, match=rf"{count} samples? of each contender; at least 3 are needed"):
        publishing.check_samples(count)


def test_three_samples_are_enough():
    publishing.check_samples(3)


def test_a_limit_of_a_scenario_or_contender_holds_only_for_runs_that_do_not_publish():
    limited = [
        (scenario, contender)
        for scenario in SCENARIOS
        for contender in scenario.contenders
        if 1 in (scenario.samples, contender.samples)
    ]
    assert limited
    for scenario, contender in limited:
        assert run.samples_of(scenario, contender, 5, publish=False) == 1
        assert run.samples_of(scenario, contender, 5, publish=True) == 3


# --- the load ------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [0.0, 0.5])
def test_a_quiet_machine_is_not_waited_for(load):
    machine = Machine(load)
    assert machine.await_quiet() == load
    assert machine.waited == 0
    assert machine.lines == []


def test_a_sample_waits_until_the_load_has_fallen():
    machine = Machine(1.5, 0.9, 0.51, 0.5, 3.0)
    assert machine.await_quiet() == 0.5
    assert machine.waited == 15
    assert machine.lines == ["  load 1.5 is above 0.5: waiting for at most 60 s"]


def test_a_load_that_stays_is_refused_after_the_wait():
    machine = Machine(0.51)
    with pytest.raises(publishing.PublishingError, match=r"the load is 0\.51 after 12 s of waiting, above 0\.5"):
        machine.await_quiet(max_wait=12.0)
    assert machine.waited == 12
    assert len(machine.lines) == 1


# --- the run -------------------------------------------------------------------------------------


@pytest.fixture
def bench(tree, monkeypatch, tmp_path):
    """The benchmarks with samples that take no time; gives what `main` returns and what it says."""
    said = []
    table = Table("log-checkpoint", tmp_path, {"files": 1, "rows": 1, "size_bytes": 1}, {})
    monkeypatch.setattr(run, "_say", said.append)
    monkeypatch.setattr(run, "_generate", Mock())
    monkeypatch.setattr(run, "_table", Mock(return_value=table))
    monkeypatch.setattr(run, "_warm", Mock())
    monkeypatch.setattr(run, "versions", Mock(return_value={"main": {SUBJECT: "1"}}))
    monkeypatch.setattr(run, "_build_profile", lambda: "release")
    monkeypatch.setattr(run.Runner, "absent", Mock(return_value=None))
    sample = {"phases": {"open": {"wall": 1.0, "cpu": 1.0, "peak_mb": 1.0}}, "facts": {}}
    monkeypatch.setattr(run.Runner, "sample", Mock(return_value=sample))
    monkeypatch.setattr(publishing, "await_quiet", Mock(return_value=0.25))

    def main(*arguments):
        said.clear()
        return run.main(["--cache", str(tmp_path), "--only", "open", "--without-duckdb", *arguments]), said

    return main


def test_a_published_run_writes_the_results_and_the_page(bench, tree):
    assert bench("--publish")[0] == 0
    found = json.loads((tree / "docs" / "benchmarks.json").read_text())["scenarios"]["open"]
    assert head(tree).startswith(found["commit"])
    assert len(found["commit"]) >= 10
    for contender in found["contenders"].values():
        assert [sample["load"] for sample in contender["samples"]] == [0.25] * 5
    assert not [name for name in found["contenders"] if publishing.reservations(found, name)]
    assert found["commit"] in (tree / "docs" / "benchmarks.md").read_text()
    # The files that were just written do not stop the next run.
    assert bench("--publish", "--samples", "3")[0] == 0


def test_a_changed_tree_stops_a_published_run_before_it_measures(bench, tree, monkeypatch):
    (tree / "src.rs").write_text("changed\n")
    measured = Mock()
    monkeypatch.setattr(run, "run_scenario", measured)
    status, said = bench("--publish")
    assert status == 2
    measured.assert_not_called()
    assert said[-1].startswith("cannot publish from a changed tree: src.rs")
    assert not (tree / "docs" / "benchmarks.md").exists()


def test_two_samples_stop_a_published_run(bench, tree):
    status, said = bench("--publish", "--samples", "2")
    assert (status, said) == (2, ["cannot publish 2 samples of each contender; at least 3 are needed"])
    assert json.loads((tree / "docs" / "benchmarks.json").read_text()) == {"scenarios": {}}


def test_a_load_that_stays_stops_a_published_run(bench, tree, monkeypatch):
    monkeypatch.setattr(publishing, "await_quiet", Machine(0.2, 0.2, 0.2, 0.9).await_quiet)
    status, said = bench("--publish", "--wait", "7")
    assert status == 2
    assert said[-2:] == [
        "  load 0.9 is above 0.5: waiting for at most 7 s",
        "cannot publish: the load is 0.9 after 7 s of waiting, above 0.5",
    ]
    assert json.loads((tree / "docs" / "benchmarks.json").read_text()) == {"scenarios": {}}


def test_a_tree_that_changes_while_a_scenario_runs_stops_it(bench, tree, monkeypatch):
    def sample(self, scenario, contender, table):
        (tree / "src.rs").write_text("changed\n")
        return {"phases": {}, "facts": {}}

    monkeypatch.setattr(run.Runner, "sample", sample)
    status, said = bench("--publish")
    assert status == 2
    assert said[-1].startswith("cannot publish from a changed tree: src.rs")
    assert json.loads((tree / "docs" / "benchmarks.json").read_text()) == {"scenarios": {}}


def test_a_contender_that_fails_publishes_no_metrics(bench, tree, monkeypatch):
    samples = []

    def sample(self, scenario, contender, table):
        samples.append(contender.name)
        if contender.name == SUBJECT and samples.count(SUBJECT) > 1:
            return {"failed": "did not finish"}
        return {"phases": {"open": {"wall": 1.0, "cpu": 1.0, "peak_mb": 1.0}}, "facts": {}}

    monkeypatch.setattr(run.Runner, "sample", sample)
    assert bench("--publish")[0] == 0
    found = json.loads((tree / "docs" / "benchmarks.json").read_text())["scenarios"]["open"]["contenders"]
    assert found.pop(SUBJECT) == {"samples": [], "failed": "did not finish"}
    assert all(len(contender["samples"]) == 5 for contender in found.values())


def test_a_run_that_does_not_publish_says_so_and_is_free_of_the_rules(bench, tree, tmp_path, monkeypatch):
    (tree / "src.rs").write_text("changed\n")
    monkeypatch.setattr(publishing, "load_average", lambda: 7.0)
    status, said = bench("--samples", "1")
    assert status == 0
    out = tmp_path / "results.json"
    assert said[0] == f"this run does not publish: results go to {out} (see --publish)"
    assert json.loads((tree / "docs" / "benchmarks.json").read_text()) == {"scenarios": {}}
    found = json.loads(out.read_text())["scenarios"]["open"]
    assert publishing.reservations(found, SUBJECT) == ["changed tree", "load 7", "1 sample"]
    assert "changed tree, load 7, 1 sample" in out.with_suffix(".md").read_text()


@pytest.mark.parametrize(
    "arguments",
    [("--publish", "--out", "x.json"), ("--publish", "--scale", "0.5"), ("--out", "docs/benchmarks.json")],
    ids=" ".join,
)
def test_the_published_file_is_written_by_a_published_run_only(bench, tree, monkeypatch, arguments, capsys):
    monkeypatch.chdir(tree)
    with pytest.raises(SystemExit):
        bench(*arguments)
    assert "--publish" in capsys.readouterr().err


# --- the marks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (result(0.1, 0.5, 0.2), []),
        (result(0.1, 0.51, 0.2), ["load 0.51"]),
        (result(None, None, None, whole=0.5), []),
        (result(None, None, None, whole=1.2), ["load 1.2"]),
        (result(0.1, 0.1), ["2 samples"]),
        (result(0.1), ["1 sample"]),
        (result(0.1, 0.1, 0.1, commit="0123456-dirty"), ["changed tree"]),
        (result(0.1, 0.1, 0.1, commit=None), ["unknown commit"]),
        (result(None, commit="0123456-dirty", whole=17.03), ["changed tree", "load 17.03", "1 sample"]),
    ],
)
def test_a_result_that_does_not_meet_the_rules_says_why(found, expected):
    assert publishing.reservations(found, SUBJECT) == expected
    assert publishing.reservations(found, SUBJECT, "absent") == expected
    assert publishing.reservations(found, "absent") == []
    if expected:
        with pytest.raises(publishing.PublishingError, match=f"cannot publish open: .*{expected[0]}"):
            publishing.check_result("open", found)
    else:
        publishing.check_result("open", found)


def rows_of(text, heading):
    """The rows of the tables below a heading, as cells; the cells of the header first."""
    body = text.split(heading, 1)[1].split("\n#", 1)[0]
    cells = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in body.splitlines() if line.startswith("| ")]
    return cells[0], cells[1:]


def test_the_published_page_is_that_of_the_results():
    results = json.loads((DOCS / "benchmarks.json").read_text())
    assert report.page(results) == (DOCS / "benchmarks.md").read_text()
    assert chart.digest(results) in (DOCS / "images" / "benchmarks.svg").read_text()


def test_the_picture_has_each_peer_of_each_operation():
    results = json.loads((DOCS / "benchmarks.json").read_text())
    labels, points = chart.factors(results)
    assert "open" in labels
    walls = results["scenarios"]["open"]["contenders"]
    mine, theirs = (
        statistics.median(sample["phases"]["open"]["wall"] for sample in walls[name]["samples"])
        for name in ("deltafast", "deltalake")
    )
    (point,) = (point for point in points if (labels[point.row], point.peer) == ("open", "deltalake"))
    assert point.factor == theirs / mine
    picture = chart.draw(results)
    assert chart.digest(results) in picture
    assert [label for label in labels if html.escape(label, quote=False) not in picture] == []


def test_every_published_number_names_its_commit_and_what_it_lacks():
    results = json.loads((DOCS / "benchmarks.json").read_text())["scenarios"]
    text = (DOCS / "benchmarks.md").read_text()
    columns = ["commit", "provisional because"]
    assert "## Summary" in text
    header, summary = rows_of(text, "## Summary")
    assert header[-2:] == columns
    assert len(summary) == sum(len(s.phases) for s in SCENARIOS if s.name in results)
    for row in summary:
        name = re.search(r"\(#([\w-]+)\)", row[0])[1]
        assert results[name]["commit"] in row
    seen = 0
    for name, found in results.items():
        header, rows = rows_of(text, f'<a id="{name}">')
        assert header[-2:] == columns
        for row in rows:
            assert found["commit"] in row
            reasons = publishing.reservations(found, row[0])
            assert ", ".join(reasons) == (row[-1] if reasons else "")
            seen += 1
    marked = sum(1 for found in results.values() if found["commit"].endswith("-dirty"))
    assert text.count("changed tree") >= marked
    assert seen > 100
