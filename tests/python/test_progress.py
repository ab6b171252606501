"""Progress is reported from beside the work."""

import time
from pathlib import Path

import pytest

from deltafast.progress import watch


class Counted:
    def __init__(self):
        self.state = (0, 4)

    def progress(self):
        return self.state


def run(counted, progress):
    watching = watch(counted, progress)
    for done in (1, 2, 4):
        counted.state = (done, 4)
        time.sleep(0.01)
    watching.stop()


def test_no_progress_starts_no_thread():
    assert watch(Counted(), False) is None


def test_a_function_sees_the_last_state():
    seen = []
    run(Counted(), lambda *state: seen.append(state))
    assert seen[-1] == (4, 4)


def test_a_bar_is_drawn_on_standard_error(capsys):
    run(Counted(), True)
    drawn = capsys.readouterr().err
    assert "4/4 files" in drawn
    assert drawn.endswith("\n")


def test_a_tqdm_bar_is_advanced_and_closed():
    tqdm = pytest.importorskip("tqdm")
    with Path("/dev/null").open("w") as nowhere:
        bar = tqdm.tqdm(file=nowhere)
        run(Counted(), bar)
    assert (bar.n, bar.total) == (4, 4)
    assert bar.disable


def test_watching_ends_when_the_work_is_done_or_gone():
    counted = Counted()
    watching = watch(counted, lambda *_: None)
    counted.state = (4, 4)
    watching._thread.join(5)
    assert not watching._thread.is_alive()
    counted = Counted()
    watching = watch(counted, lambda *_: None)
    del counted
    watching._thread.join(5)
    assert not watching._thread.is_alive()


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match="progress must be"):
        watch(Counted(), "yes")
