"""The line that a person sees of a fit that takes its time."""

import io
import re
import sys
import types

import numpy as np
import pytest

import coremix
from coremix import _progress
from coremix._progress import Line

SEEDING = {"restart": 0, "rows": 8192, "clusters": 100, "share": 0.25}
FITTING = {"restart": 0, "rows": 8192, "iteration": 3, "limit": 100, "free_energy": -12345.678, "seconds": 2.0}
REPORT = {"iterations": 12, "stop": "converged"}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    return now


def shown(screen):
    """The text that a terminal shows after these signs: lines are rewritten from their start."""
    lines = []
    for line in screen.getvalue().split("\n"):
        place = ""
        for part in line.split("\r"):
            place = part + place[len(part) :]
        lines.append(place.rstrip())
    return lines


def test_one_line_is_rewritten_in_a_terminal(monkeypatch, clock):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "120")
    with Line("KMeans", 1) as line:
        clock[0] = 1.0
        line.see(SEEDING)
        assert shown(screen) == ["KMeans: 1.0 s, choosing 100 of 8192 rows to begin with, 25%, 0.0 s left"]
        clock[0] = 3.0
        line.see(SEEDING)
        assert shown(screen) == ["KMeans: 3.0 s, choosing 100 of 8192 rows to begin with, 25%, 6.0 s left"]
        clock[0] = 75.0
        line.see(FITTING)
        assert shown(screen) == ["KMeans: 1 min 15 s, fitting 8192 rows: iteration 3 of 100, F -1.2346e+04, at most 48 s left"]
        line.see(FITTING | {"restart": 2, "iteration": 100})
        assert "restart 2, fitting 8192 rows: iteration 100 of 100" in shown(screen)[0]
        line.end(REPORT)
    assert shown(screen) == ["KMeans: 12 iterations in 1 min 15 s, converged", ""]


def test_a_narrow_terminal_has_one_line(monkeypatch, clock):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "40")
    with Line("KMeans", 1) as line:
        line.see(FITTING)
    assert all(len(part) <= 39 for part in screen.getvalue().split("\r"))


def test_nothing_stays_after_an_error(monkeypatch, clock):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with pytest.raises(KeyError), Line("KMeans", 1) as line:
        line.see(FITTING)
        raise KeyError
    assert shown(screen) == [""]


def test_few_lines_where_there_is_no_terminal(monkeypatch, clock):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with Line("VcGmm", 1) as line:
        for restart in range(30):
            for at in [SEEDING, FITTING, FITTING]:
                line.see(at | {"restart": restart})
        line.end(REPORT)
    lines = screen.getvalue().splitlines()
    assert len(lines) == _progress.MOST_LINES == 10
    assert lines[0] == "VcGmm: choosing 100 of 8192 rows to begin with"
    assert lines[3] == "VcGmm: restart 1, fitting 8192 rows"
    assert lines[-1] == "VcGmm: 12 iterations in 0.0 s, converged"


@pytest.mark.parametrize("verbose", [0, 2, False, 10])
def test_nothing_without_being_asked(monkeypatch, verbose):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with Line("KMeans", verbose) as line:
        assert not line
        line.end(REPORT)
    assert screen.getvalue() == ""


def test_no_console(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    coremix.KMeans(3, verbose=1, random_state=0).fit(np.random.default_rng(0).normal(size=(50, 2)))


def test_a_display_in_a_notebook(monkeypatch, clock):
    told = []

    class Handle:
        def update(self, data, raw):
            told.append((data["text/plain"], raw))

    def display(data, raw, display_id):
        told.append((data["text/plain"], raw))
        return Handle()

    shell = types.SimpleNamespace(kernel=object())
    fake = types.SimpleNamespace(get_ipython=lambda: shell, display=types.SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", fake.display)
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with Line("KMeans", 1) as line:
        line.see(SEEDING)
        line.see(FITTING)
        line.end(REPORT)
    assert screen.getvalue() == "" and len(told) == 3 and all(raw for _, raw in told)
    assert told[-1][0] == "KMeans: 12 iterations in 0.0 s, converged"


@pytest.mark.parametrize("estimator", [coremix.KMeans(400, algorithm="lloyd", tol=0.0, max_iter=30), coremix.GaussianMixture(40, tol=0.0, max_iter=15)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_says_how_far_it_is(monkeypatch, capsys, estimator):
    """A fit of a second or so: with a line, and with the same bits as without one."""
    X = np.random.default_rng(0).normal(size=(30_000, 40))
    estimator.set_params(random_state=0, n_jobs=1)
    expected = estimator.set_params(verbose=0).fit(X)._model
    assert capsys.readouterr() == ("", "")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "150")
    steps = []
    estimator.set_params(verbose=1, callback=steps.append).fit(X)
    assert estimator._model == expected
    parts = screen.getvalue().split("\r")
    fitting = [part for part in parts if re.search(r"fitting \d+ rows: iteration \d+ of \d+, F -.*, at most .* left", part)]
    assert len(fitting) >= 1 and len(steps) > 10
    assert re.fullmatch(rf"{type(estimator).__name__}: \d+ iterations in .*, .*", shown(screen)[0])


def test_an_error_of_the_screen_ends_the_fit(monkeypatch):
    class Broken(Terminal):
        def write(self, text):
            raise BrokenPipeError("gone")

    monkeypatch.setattr(sys, "stderr", Broken())
    with pytest.raises(BrokenPipeError):
        coremix.KMeans(500, algorithm="lloyd", tol=0.0, verbose=1, n_jobs=1).fit(np.random.default_rng(0).normal(size=(40_000, 40)))
