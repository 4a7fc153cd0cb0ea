"""Rows that come in batches: a coreset of all of them, and a fit when it is asked for."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import coremix
from coremix import _coremix
from conftest import blobs

ESTIMATORS = [
    coremix.KMeans(6, random_state=0),
    coremix.KMeans(6, algorithm="lloyd", n_init=10, random_state=0),
    coremix.GaussianMixture(6, random_state=0),
    coremix.GaussianMixture(6, covariance_type="full", random_state=0),
    coremix.BayesianGaussianMixture(6, random_state=0),
    coremix.VcGmm(6, random_state=0),
    coremix.DGmm(6, random_state=0),
    coremix.SparsifiedGmm(6, n_coordinates=3, random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_few_rows_give_the_fit_of_all(estimator):
    """No more rows than the coreset has draws: it is these rows."""
    X = blobs(300, 4, 6)
    whole = clone(estimator).fit(X)
    parts = clone(estimator)
    for part in np.array_split(X, 7):
        assert parts.partial_fit(part) is parts
    np.testing.assert_array_equal(parts.predict(X), whole.predict(X))
    np.testing.assert_array_equal(parts._model.parameters()["means"], whole._model.parameters()["means"])
    assert parts.n_iter_ == whole.n_iter_ and not hasattr(parts, "labels_")


@pytest.mark.parametrize("estimator", ESTIMATORS[:4], ids=repr)
def test_a_coreset_is_nearly_as_good(estimator):
    X = np.random.default_rng(0).permutation(blobs(60_000, 2, 6))
    whole = clone(estimator).fit(X)
    parts = clone(estimator).set_params(coreset_size=4_000)
    for part in np.array_split(X, 50):
        parts.partial_fit(part, sample_weight=np.ones(len(part)))
    assert parts._stream.rows == len(X)
    assert abs(parts.score(X)) < abs(whole.score(X)) * 1.05


def test_a_fit_is_made_when_it_is_asked_for():
    X = blobs(300, 2, 3)
    model = coremix.KMeans(3, random_state=0)
    with pytest.raises(ValueError, match="call partial_fit first"):
        model.finish()
    model.partial_fit(X[:2])
    with pytest.raises(ValueError, match="n_samples=2"):
        model.predict(X)
    model.partial_fit(X[:50])
    first = model.cluster_centers_
    assert model.__dict__["cluster_centers_"] is first
    model.partial_fit(X[50:])
    assert "cluster_centers_" not in model.__dict__
    assert not np.array_equal(model.cluster_centers_, first) and model.inertia_ > 0
    with pytest.raises(AttributeError, match="nothing"):
        model.nothing
    # `fit` begins anew.
    model.fit(X)
    np.testing.assert_array_equal(model.cluster_centers_, coremix.KMeans(3, random_state=0).fit(X).cluster_centers_)
    assert "_stream" not in model.__dict__
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_goes_on(copied):
    X = blobs(600, 2, 3)
    model = coremix.KMeans(3, random_state=0).partial_fit(X[:90])
    other = copied(model)
    assert other._stream.rows == 90
    for one in (model, other):
        one.partial_fit(X[90:])
    np.testing.assert_allclose(np.sort(other.cluster_centers_, axis=0), np.sort(model.cluster_centers_, axis=0))


def test_batches_must_fit_together():
    X = blobs(150, 2, 3)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = coremix.KMeans(3, random_state=0).partial_fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[["b", "a"]])
    with pytest.raises(ValueError, match="features"):
        coremix.KMeans(3).partial_fit(X).partial_fit(X[:, :1])
    # An error takes nothing in.
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="row 3"):
        coremix.KMeans(3).partial_fit(bad)
    # The row of this batch, as often as it comes, also of a table and of weights.
    more = coremix.KMeans(3).partial_fit(X).partial_fit(X[:70])
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^batch 2 .*: .*row 3, column 1"):
            more.partial_fit(bad)
    with pytest.raises(ValueError, match=r'^batch 2 .*: .*row 3, column "b"'):
        more.partial_fit(pa.table({"a": bad[:, 0], "b": bad[:, 1]}))
    with pytest.raises(ValueError, match=r"^batch 2 .*: .*row 5"):
        more.partial_fit(X, sample_weight=np.where(np.arange(len(X)) == 5, -1.0, 1.0))
    more = pickle.loads(pickle.dumps(more.partial_fit(X)))
    with pytest.raises(ValueError, match=r"^batch 3 .*: .*row 3, column 1"):
        more.partial_fit(bad)
    rows = model._stream.rows
    bad = frame.copy()
    bad.iloc[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinite"):
        model.partial_fit(bad)
    assert model._stream.rows == rows
    model.partial_fit(frame, sample_weight=np.zeros(len(frame)))
    np.testing.assert_array_equal(model.predict(frame), coremix.KMeans(3, random_state=0).fit(frame).predict(frame))


@pytest.mark.parametrize("weights", [[], np.zeros(3), np.zeros((4, 1)), np.ma.array(np.zeros(4), mask=[0, 0, 1, 0])], ids=str)
def test_weights_of_0_are_one_for_each_row(weights):
    """A batch may have no weight at all, but never other weights than rows."""
    X = blobs(300)
    model = coremix.KMeans(2, random_state=0).fit(X)
    for ask in [
        lambda own: coremix.KMeans(2).partial_fit(X[:4], sample_weight=own),
        lambda own: model.sizes(X[:4], sample_weight=own),
        lambda own: model.medoids(X[:4], sample_weight=own),
        lambda own: coremix.stats(X[:4], model, own),
    ]:
        ask(np.zeros(4))
        with pytest.raises(ValueError, match="expected \\(4,\\)|row 2 is masked"):
            ask(weights)


def test_tables_and_number_types():
    X = blobs(300, 2, 3).astype(np.float32)
    found = [
        coremix.KMeans(3, random_state=0).partial_fit(rows[:130]).partial_fit(rows[130:]).cluster_centers_
        for rows in [X, pa.table({"x": X[:, 0], "y": X[:, 1]})]
    ]
    assert found[0].dtype == np.float32
    np.testing.assert_array_equal(*found)


def test_a_pickle_between_batches_changes_no_bit():
    batches = np.split(np.random.default_rng(0).normal(size=(12_000, 5)), 12)

    def centres(at, X=batches):
        model = coremix.KMeans(8, coreset_size=1_500, random_state=0)
        for i, batch in enumerate(X):
            model.partial_fit(batch)
            if i == at:
                model = pickle.loads(pickle.dumps(model))
        return model.finish().cluster_centers_

    for X in (batches, [batch.astype(np.float32) for batch in batches]):
        expected = centres(None, X)
        for at in range(len(X)):
            assert np.array_equal(centres(at, X), expected), at


def test_a_damaged_state_is_an_error():
    stream = _coremix.Stream(50, 1)
    stream.push(np.ones((200, 3)))
    state = stream.state()
    for damaged in (b"", state[:-3], b"\xff" * 40):
        with pytest.raises(ValueError, match="rows of partial_fit"):
            _coremix.Stream.of_state(damaged)


def test_finish_says_what_it_needs():
    X = blobs(150, 2, 3)
    with pytest.raises(ValueError, match=r"KMeans has no rows of partial_fit: call partial_fit first"):
        coremix.KMeans(3).finish()
    with pytest.raises(ValueError, match=r"KMeans has no rows of partial_fit: fit\(X\) needs no finish\(\)"):
        coremix.KMeans(3).fit(X).finish()


@pytest.mark.parametrize("ask", [lambda m, X: m.predict(X), lambda m, X: m._model.components, lambda m, X: m.n_iter_, lambda m, X: m.finish()])
def test_several_threads_ask_at_once(ask):
    """The first one makes the fit, and the others wait for it."""
    X = blobs(20_000, 4, 6)
    fits = []
    model = coremix.KMeans(50, random_state=None, callback=lambda step: fits.append(step["phase"]) if step["iteration"] == 1 else None)
    model.partial_fit(X[:9_000]).partial_fit(X[9_000:])
    start = threading.Barrier(6)

    def work(_):
        start.wait()
        return ask(model, X[:5])

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(work, range(6)))
    if ask(model, X[:5]) is not model:
        assert len({str(one) for one in found}) == 1
        # There was one fit.
        seen = len(fits)
        assert ask(model, X[:5]) is not None and len(fits) == seen


def test_threads_take_batches_in_one_after_the_other():
    batches = np.split(blobs(4_000, 3, 4), 8)
    model = coremix.KMeans(4, random_state=0)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(model.partial_fit, batches))
    assert model._stream.rows == 4_000
    assert len(copy.deepcopy(model).cluster_centers_) == len(clone(model).fit(batches[0]).cluster_centers_) == 4


def test_a_callback_can_ask_its_own_estimator():
    """It does not wait for the fit that waits for it; other estimators make theirs."""
    X = blobs(150, 2, 3)
    other, found = coremix.KMeans(3, random_state=0).partial_fit(X), []

    def callback(step):
        found.append((hasattr(model, "labels_"), len(other.cluster_centers_)))

    model = coremix.KMeans(3, random_state=0, callback=callback).partial_fit(X)
    assert len(model.finish().cluster_centers_) == 3
    assert found and set(found) == {(False, 3)}


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float16, np.float32, np.int64, np.float64])
def test_the_type_of_the_first_batch_does_not_round_later_ones(dtype):
    """Unix times after small numbers: whatever comes first, as if all were float64."""
    rng = np.random.default_rng(0)
    first, later = rng.integers(0, 100, (700, 2)).astype(dtype), 1.7e9 + rng.integers(0, 100, (700, 2))
    settings = {"coreset_size": 500, "random_state": 0}
    parts = coremix.KMeans(4, **settings).partial_fit(first).partial_fit(later).partial_fit(first[:9])
    wide = coremix.KMeans(4, **settings).partial_fit(first.astype(float)).partial_fit(later).partial_fit(first[:9].astype(float))
    assert parts.cluster_centers_.dtype == np.float64
    np.testing.assert_array_equal(parts.cluster_centers_, wide.cluster_centers_)
    alone = coremix.KMeans(2, random_state=0).partial_fit(first)
    alone = pickle.loads(pickle.dumps(alone))
    assert alone.cluster_centers_.dtype == (np.float32 if first.itemsize <= 4 else np.float64)
    alone.partial_fit(np.array([[1.7e9 + 1, 0], [1.7e9 + 1, 0]]))
    assert alone.cluster_centers_.max() == 1.7e9 + 1
