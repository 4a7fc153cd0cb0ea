"""Callbacks, Ctrl-C, and the interpreter while a fit runs."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

import coremix
from conftest import blobs
from test_estimators import ALL

# Enough restarts that a fit takes a minute or more, but ends if nothing stops it.
ENDLESS = {"algorithm": "lloyd", "max_iter": 10**9, "tol": 0.0, "n_init": 20_000, "random_state": 0}


@pytest.fixture
def interruptible():
    """Python's own answer to Ctrl-C. A process that was started with Ctrl-C ignored, as in the background, has none."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_callbacks_see_every_step(X, estimator):
    estimator = clone(estimator).set_params(merge_rows=False)
    steps = []
    model = clone(estimator).set_params(callback=steps.append).fit(X)
    stages = [step["stage"] for step in steps]
    assert "seeded" in stages and stages.count("iteration") > 1
    iteration = [step for step in steps if step["stage"] == "iteration"][-1]
    assert iteration["free_energy"] == model.report_["free_energies"][-1]
    assert {"phase", "iteration", "rows", "limit", "restart", "seconds", "evaluations"} <= set(iteration)
    assert model._model == clone(estimator).fit(X)._model


@pytest.mark.parametrize("estimator", [coremix.KMeans(6, **ENDLESS), *ALL], ids=repr)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_callback_can_stop_the_fit(X, estimator):
    seen = []

    def stop(step):
        seen.append(step)
        return step["stage"] != "iteration"

    model = clone(estimator).set_params(callback=stop).fit(X)
    assert [step["stage"] for step in seen].count("iteration") == 1
    assert model.report_["stop"] == "stopped by the observer" and not model.converged_
    assert model.predict(X).shape == (len(X),)


def test_a_callback_that_says_nothing_stops_nothing(X):
    """Nothing else than False does: None is what functions return that do not say."""
    steps = []
    coremix.KMeans(6, callback=steps.append, algorithm="lloyd").fit(X)
    assert len(steps) > 2


def test_exceptions_of_a_callback_come_out(X):
    def broken(step):
        raise RuntimeError(step["stage"])

    with pytest.raises(RuntimeError, match="coreset"):
        coremix.KMeans(6, callback=broken, **ENDLESS).fit(X)


def test_a_callback_can_fit(X):
    inner = []

    def nested(step):
        if not inner:
            inner.append(coremix.KMeans(2, n_jobs=1, random_state=0).fit(X))

    coremix.KMeans(6, n_jobs=1, random_state=0, callback=nested).fit(X)
    assert inner[0]._model == coremix.KMeans(2, random_state=0).fit(X)._model


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals of POSIX")
def test_control_c_ends_a_fit(X, interruptible):
    seen = []

    def press(step):
        if step["stage"] == "iteration" and not seen:
            seen.append(step)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        coremix.KMeans(6, callback=press, **ENDLESS).fit(X)
    assert coremix.KMeans(6).fit(X).converged_


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals of POSIX")
@pytest.mark.parametrize("ask", ["predict", "score_samples"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_control_c_ends_a_prediction(ask, interruptible):
    X = blobs(2_000, 50, dtype=np.float32)
    model = coremix.VcGmm(400, coreset_size=1_000, max_iter=1, random_state=0).fit(X)
    # Rows that overlap take little memory. All of them take much longer than the wait below, and the last number would be
    # the error of whoever comes to the end.
    numbers = np.resize(X, 10_000_000)
    numbers[-1] = np.nan
    rows = np.lib.stride_tricks.sliding_window_view(numbers, 50)
    main = threading.main_thread().ident
    press = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
    press.start()
    with pytest.raises(KeyboardInterrupt) as raised:
        getattr(model, ask)(rows)
    press.join()
    # From the native part, and not on the way to it.
    assert str(raised.traceback[-1].path).startswith(os.path.dirname(coremix.__file__))
    assert model.predict(X).shape == (len(X),)


def test_other_threads_run_during_a_fit():
    X = blobs(60_000, 20).astype(np.float32)
    done = threading.Event()

    def fit():
        coremix.KMeans(100, algorithm="lloyd", max_iter=30, tol=0.0, n_jobs=1).fit(X)
        done.set()

    thread = threading.Thread(target=fit)
    thread.start()
    ticks = 0
    while not done.is_set():
        time.sleep(0.001)
        ticks += 1
    thread.join()
    # Held by the fit, the interpreter would come back once or twice.
    assert ticks > 10
