"""One row at a time: the answers of `predict`, without its cost."""

import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
import scipy.sparse

import coremix
from conftest import blobs
from test_estimators import ALL


def fitted(estimator, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pickle.loads(pickle.dumps(estimator)).fit(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_rows_one_by_one_have_the_labels_of_all(X, estimator, dtype):
    # Columns of few values, so that rows repeat.
    X = np.round(X[:400]).astype(dtype)
    model = fitted(estimator, X)
    one, labels = model.predictor(), model.predict(X)
    assert [one(row) for row in X] == labels.tolist()
    assert type(one(X[0])) is int
    distances = model._model.distances(X)
    for row, label, own in zip(X, labels, distances, strict=True):
        found, distance = one.nearest(row)
        assert found == label and distance == pytest.approx(own[label], rel=1e-4, abs=1e-6)
    densities = model._model.log_densities(X)
    np.testing.assert_allclose([one.log_density(row) for row in X[:50]], densities[:50], rtol=1e-6, atol=1e-6)


def test_rows_of_other_kinds(X):
    X = np.round(X)
    for dtype in [np.float32, np.float64]:
        model = fitted(coremix.KMeans(6, random_state=0), X.astype(dtype))
        one, row, expected = model.predictor(), X[7], model.predict(X[7:8].astype(dtype))[0]
        kinds = [np.float64, np.float32, np.float16, np.int64, np.int8, ">f8", object]
        rows = [row.astype(kind) for kind in kinds]
        strided = np.repeat(row, 3)[::3]
        rows += [row.tolist(), tuple(row), pd.Series(row), np.ma.array(row), strided, X.T[:, 7], model._model.predictor()]
        for given in rows[:-1]:
            assert one(given) == expected, type(given)
        again = pickle.loads(pickle.dumps(one))
        assert again(row) == expected and "KMeans" not in repr(again) and "components=6" in repr(again)


@pytest.mark.parametrize(
    "row, what",
    [
        ([1.0, 2.0, 3.0, 4.0], "4|expected"),
        (np.zeros(4), "4"),
        (np.zeros(0), "0"),
        (np.zeros((1, 5)), r"shape \[1, 5\]: give one row"),
        (np.float64(3.0), "1D|2D|dim"),
        (np.array([1.0, np.nan, 0.0, 0.0, 0.0]), "column 1 is NaN or infinite"),
        (np.array([1.0, 0.0, 0.0, 0.0, -np.inf], np.float32), "column 4 is NaN or infinite"),
        ([1.0, np.nan, 0.0, 0.0, 0.0], "column 1 is NaN or infinite"),
        (np.full(5, 1e300), "column 0"),
        (np.ma.array(np.zeros(5), mask=[0, 0, 1, 0, 0]), "column 2 is masked"),
        (["a", "b", "c", "d", "e"], "could not convert"),
    ],
)
def test_wrong_rows(X, row, what):
    one = fitted(coremix.KMeans(6, random_state=0), X).predictor()
    expected = one(X[0])
    for ask in [one, one.nearest, one.log_density]:
        with pytest.raises(ValueError, match=what):
            ask(row)
    assert one(X[0]) == expected


def test_a_row_is_one_row_of_the_columns_of_the_fit(X):
    """A table of several rows has no label, and neither has a series of other columns."""
    frame = pd.DataFrame(X, columns=list("abcde"))
    one = fitted(coremix.KMeans(6, random_state=0), frame).predictor()
    last = frame[-1:]
    kinds = [pd.DataFrame, polars.from_pandas, pyarrow.Table.from_pandas, lambda rows: scipy.sparse.csr_matrix(rows.to_numpy())]
    for kind in kinds:
        assert one(kind(last)) == one(X[-1])
        for rows in [frame[:3], frame[:0]]:
            with pytest.raises(ValueError, match=f"{len(rows)} rows: give one"):
                one(kind(rows))
    assert one(frame.iloc[-1]) == one(pd.Series(X[-1])) == one(X[-1])
    with pytest.raises(ValueError, match=r"columns \['e', .*must have \['a', "):
        one(frame.iloc[-1][::-1])
    with pytest.raises(ValueError, match="Complex"):
        one(X[-1] + 1j)


def test_before_a_fit():
    with pytest.raises(Exception, match="not fitted"):
        coremix.KMeans(2).predictor()


def test_names_of_columns_are_in_errors(X):
    model = fitted(coremix.KMeans(6, random_state=0), pd.DataFrame(X, columns=list("abcde")))
    with pytest.raises(ValueError, match='column "c" is NaN'):
        model.predictor()(np.where(np.arange(5) == 2, np.nan, 0.0))


def test_threads_share_a_predictor(X):
    model = fitted(coremix.GaussianMixture(6, random_state=0), X)
    one, expected, wrong = model.predictor(), model.predict(X).tolist(), []

    def work():
        for row, label in zip(X[:1_000], expected, strict=False):
            given = row if label % 2 else row.tolist()
            if one(given) != label:
                wrong.append(label)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == [] and not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_few_rows_have_the_answers_of_many(X, estimator):
    """Few rows take another way: on one thread, where no signal is looked for."""
    model = fitted(estimator, X)
    labels, shares = model.predict(X), model._model.predict_proba(X)
    tops, distances = model.predict_top(X, 2), model._model.distances(X)
    densities, own = model._model.log_densities(X), model._model
    for part in [slice(0, 1), slice(7, 8), slice(100, 132), slice(100, 133), slice(3, 3)]:
        rows = X[part]
        if len(rows):
            np.testing.assert_array_equal(model.predict(rows), labels[part])
        np.testing.assert_array_equal(own.predict(rows), labels[part])
        np.testing.assert_array_equal(own.predict_proba(rows), shares[part])
        np.testing.assert_array_equal(own.predict_top(rows, 2)[0], tops[0][part])
        np.testing.assert_array_equal(own.predict_top(rows, 2)[1], tops[1][part])
        np.testing.assert_array_equal(own.log_densities(rows), densities[part])
        np.testing.assert_array_equal(own.distances(rows), distances[part])
        nearest = np.take_along_axis(distances[part], labels[part, None].astype(np.int64), 1)[:, 0]
        assert own.medoids(rows).max(initial=-1) < max(len(rows), 1)
        if model._model.family == "tied-spherical":
            assert own.quantization_error(rows) == pytest.approx((nearest**2).sum())


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no fork")
def test_few_rows_after_a_fork(X):
    """A forked process has no threads of its parent: few rows need none."""
    import multiprocessing

    model = fitted(coremix.KMeans(6, random_state=0), X)
    model.predict(X[:3])
    with multiprocessing.get_context("fork").Pool(1) as pool:
        asked = [pool.apply_async(getattr(model, name), (X[:1],)) for name in ("predict", "transform", "medoids", "score")]
        found = [one.get(timeout=60) for one in asked]
    assert found[0][0] == model.predict(X[:1])[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X[:, ::-1],
        lambda X: np.asfortranarray(X),
        lambda X: X.astype(">f8"),
        lambda X: X.astype(np.float16),
        lambda X: X.astype(object),
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X),
        lambda X: np.ma.array(X),
        lambda X: np.matrix(X) if len(X) > 99 else X,
    ],
)
def test_what_passes_without_a_check_is_what_the_check_passes(X, change):
    X = np.round(X)
    model = fitted(coremix.KMeans(6, random_state=0), X)
    for rows in [X[:1], X[:40]]:
        given = change(rows)
        expected = model.predict(np.ascontiguousarray(np.asarray(given, dtype=np.float64)))
        np.testing.assert_array_equal(model.predict(given), expected)
    for wrong in [X[:1, :4], X[0], X[:0], X[None, :1]]:
        with pytest.raises(ValueError):
            model.predict(wrong)
    named = fitted(coremix.KMeans(6, random_state=0), pd.DataFrame(X, columns=list("abcde")))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.predict(X[:1])
