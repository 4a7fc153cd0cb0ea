"""Several threads of Python at once: one model that all of them ask, and fits side by side. With and without the GIL."""

import pickle
import subprocess
import sys
import sysconfig
import threading

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone

import coremix
from conftest import blobs
from coremix import _coremix

ESTIMATORS = [
    coremix.KMeans(6, random_state=1),
    coremix.KMeans(6, random_state=1, algorithm="lloyd", merge_rows=False, n_jobs=2),
    coremix.GaussianMixture(4, covariance_type="full", random_state=1, max_iter=20, tol=1e-2),
    coremix.BayesianGaussianMixture(8, random_state=1),
    coremix.VcGmm(6, random_state=1, coreset_size=1_000),
    coremix.DGmm(6, random_state=1, n_jobs=1),
    coremix.SparsifiedGmm(4, n_coordinates=3, random_state=1, merge_rows=False),
]


def together(threads, work):
    """The results of the work in this number of threads that begin at the same moment, or the error that it raises there."""
    barrier, found = threading.Barrier(threads), [None] * threads

    def one(number):
        barrier.wait()
        try:
            found[number] = work(number)
        except Exception as error:
            found[number] = error

    running = [threading.Thread(target=one, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return found


def answers(estimator, X, table):
    """All that a model is asked."""
    found = [estimator.predict(X), estimator.predict(table), *estimator.predict_top(X, 2), estimator.medoids(X), estimator.sizes(X)]
    for name in ("transform", "score", "predict_proba", "score_samples", "bic"):
        if hasattr(estimator, name) and (name != "bic" or estimator._model.free_parameters is not None):
            found.append(getattr(estimator, name)(X))
    if hasattr(estimator, "sample"):
        found += estimator.sample(50)
    found.append(np.frombuffer(estimator._model.to_bytes(), np.uint8))
    found.append(pickle.loads(pickle.dumps(estimator)).predict(X))
    return found


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_eight_threads_ask_one_model(X, estimator):
    table = pa.table({f"x{j}": column for j, column in enumerate(X.T)})
    fitted = clone(estimator).fit(X)
    alone = answers(fitted, X, table)
    for found in together(8, lambda _: answers(fitted, X, table)):
        assert not isinstance(found, Exception), found
        for own, expected in zip(found, alone, strict=True):
            np.testing.assert_array_equal(own, expected)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_fits_in_four_threads_have_the_bits_of_fits_alone(X, estimator):
    """On the same rows, each with a seed of its own, and with a callback, which needs the interpreter meanwhile."""

    def fit(number, told):
        return clone(estimator).set_params(random_state=number, callback=told.append).fit(X)

    steps = [[] for _ in range(8)]
    alone = [fit(number, steps[number]) for number in range(4)]
    for number, found in enumerate(together(4, lambda number: fit(number, steps[4 + number]))):
        assert not isinstance(found, Exception), found
        assert found._model == alone[number]._model
        assert [s["free_energy"] for s in steps[4 + number]] == [s["free_energy"] for s in steps[number]]


def test_sweeps_and_partitions_in_four_threads(X):
    model = coremix.KMeans(5, random_state=0).fit(X)

    def work(_):
        sums = [coremix.stats(part, model) for part in np.array_split(X, 3)]
        rows, weights = coremix.sample(X, 200, 3)
        found = coremix.sweep(X, [2, 3], coremix.GaussianMixture(random_state=0))
        return coremix.update(model, coremix.merge(sums)).to_bytes(), rows.tobytes(), weights.tobytes(), found.table_["bic"].tobytes()

    alone = work(0)
    assert together(4, work) == [alone] * 4


def test_a_stream_takes_one_batch_at_a_time(X):
    """A batch that comes while another is taken in is an error, and not in: nothing is lost or half in."""
    stream = _coremix.Stream(500, 0)

    def push(_):
        taken = 0
        for _ in range(20):
            try:
                stream.push(X)
                taken += 1
            except RuntimeError as error:
                assert "borrowed" in str(error)
        return taken

    found = together(4, push)
    assert not any(isinstance(one, Exception) for one in found), found
    assert stream.rows == sum(found) * len(X) > 0


def test_streams_of_four_threads_are_those_of_threads_alone():
    parts = [blobs(4_000, seed=seed) for seed in range(4)]

    def fit(number):
        estimator = coremix.KMeans(5, random_state=number, coreset_size=600)
        for batch in np.array_split(parts[number], 7):
            estimator.partial_fit(batch)
        return estimator.finish()._model

    alone = [fit(number) for number in range(4)]
    assert together(4, fit) == alone


class Once:
    """Rows that give all who ask the same capsules, which can be emptied once."""

    def __init__(self, method, capsules):
        setattr(self, method, lambda requested_schema=None: capsules)


def capsules_of(X, method):
    table = pa.table({f"x{j}": column for j, column in enumerate(X[:50].T)})
    return getattr(table if method == "__arrow_c_stream__" else table.to_batches()[0], method)()


@pytest.mark.parametrize("method", ["__arrow_c_stream__", "__arrow_c_array__"])
def test_capsules_are_emptied_once(X, method):
    rows = Once(method, capsules_of(X, method))
    assert len(_coremix.Table(rows)) == 50
    for read in [_coremix.Table, coremix.KMeans(2).fit, coremix.KMeans(2).partial_fit, coremix.KMeans(2).fit(X).predict]:
        with pytest.raises(ValueError, match="these rows were read before"):
            read(rows)
    for _ in range(200):
        rows = Once(method, capsules_of(X, method))
        found = together(4, lambda _: len(_coremix.Table(rows)))
        errors = [one for one in found if isinstance(one, Exception)]
        assert all(isinstance(error, ValueError) and "read before" in str(error) for error in errors), errors
        # Two threads may have one each of a schema and an array: then nobody has the rows.
        assert len(errors) == 3 or len(errors) == 4 and method == "__arrow_c_array__"


def test_a_schema_without_its_array_is_an_error_and_so_is_the_reverse(X):
    method = "__arrow_c_array__"
    for used in (0, 1):
        old, new = capsules_of(X, method), capsules_of(X, method)
        _coremix.Table(Once(method, old))
        pair = (old[0], new[1]) if used == 0 else (new[0], old[1])
        with pytest.raises(ValueError, match="these rows were read before"):
            _coremix.Table(Once(method, pair))


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="an interpreter with the GIL")
def test_the_gil_stays_off():
    """A module that does not say that it can do without the GIL switches it on, with a warning."""
    check = "import sys, coremix; sys.exit(sys._is_gil_enabled())"
    done = subprocess.run([sys.executable, "-W", "error::RuntimeWarning", "-c", check], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("threads", [20_000, 1_000_000])
def test_threads_are_bounded(threads):
    with pytest.raises(ValueError, match=f"n_jobs = {threads}: this machine takes"):
        coremix.KMeans(2, n_jobs=threads).fit(np.eye(4))
