"""scikit-learn is loaded for what needs it alone, and need not be installed."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.exceptions
from conftest import blobs
from sklearn.base import clone
from sklearn.utils.validation import check_array, check_is_fitted

import coremix
from coremix._checks import NUMBERS, rows_of_array
from coremix.exceptions import ConvergenceWarning, NotFittedError

# With an argument, neither can be imported.
USE = """
import copy, pickle, sys, warnings

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("sklearn", "scipy"):
            raise ModuleNotFoundError(f"No module named {name!r}")

if absent := len(sys.argv) > 1:
    sys.meta_path.insert(0, Absent())

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import coremix
from coremix.exceptions import ConvergenceWarning, NotFittedError

X = np.random.default_rng(0).normal(size=(300, 4)) + 9 * (np.arange(300) % 3)[:, None]
table = pa.table({name: column for name, column in zip("abcd", X.T)})
pa.parquet.write_table(table, "rows.parquet")
estimators = [getattr(coremix, name) for name in coremix.__all__ if hasattr(getattr(coremix, name), "fit")]
assert len(estimators) > 5
for kind in estimators:
    own = kind(3, random_state=0)
    try:
        own.predict(X)
    except NotFittedError as error:
        assert isinstance(pickle.loads(pickle.dumps(error)), NotFittedError)
    else:
        raise AssertionError(kind)
    assert repr(own) == f"{kind.__name__}({own._clusters}=3, random_state=0)" == repr(kind(**own.get_params()))
    assert own.set_params(max_iter=500) is own and own.get_params()["max_iter"] == 500
    expected = own.fit(X)._model
    labels = own.predict(X)
    assert (own.fit_predict(X.tolist(), sample_weight=np.ones(300)) == labels).all()
    for rows in (table, coremix.scan("rows.parquet")):
        assert (own.fit(rows).predict(rows) == labels).all(), kind
    own.fit(X)
    for again in (pickle.loads(pickle.dumps(own)), copy.deepcopy(own)):
        assert again._model == expected
    own.save("model.cmx")
    assert kind.load("model.cmx")._model == expected
    assert len(own.__sklearn_clone__().partial_fit(X).partial_fit(X).finish().predict(X)) == 300
kmeans = coremix.KMeans(3, random_state=0)
assert kmeans.fit_transform(X).shape == (300, 3) and list(kmeans.get_feature_names_out()) == ["kmeans0", "kmeans1", "kmeans2"]
mixture = coremix.GaussianMixture(3, random_state=0).fit(X)
assert mixture.precisions_.shape == (3, 4) and np.isfinite(mixture.score_samples(X)).all()
assert coremix.sweep(X, [2, 3], mixture).best_["bic"] == 3
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    coremix.GaussianMixture(3, random_state=0, max_iter=1, tol=0.0).fit(np.random.default_rng(1).normal(size=(300, 4)))
assert [warning.category for warning in caught] == [ConvergenceWarning], caught
loaded = {"sklearn", "scipy"} & sys.modules.keys()
assert not loaded, loaded
asking = [
    lambda: mixture.to_sklearn(),
    lambda: kmeans.to_sklearn(),
    lambda: kmeans.set_output(transform="pandas"),
    lambda: coremix.sweep(X, [2, 3], mixture, silhouette=100),
]
for ask in asking if absent else []:
    try:
        ask()
    except ImportError as error:
        assert 'needs scikit-learn: pip install "coremix[sklearn]"' in str(error)
    else:
        raise AssertionError(ask)
"""


@pytest.mark.parametrize("arguments", [[], ["absent"]], ids=["not asked for", "absent"])
def test_estimators_need_numpy_alone(tmp_path, arguments):
    done = subprocess.run([sys.executable, "-c", USE, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_errors_and_warnings_are_those_of_scikit_learn_too(X):
    for kind in (NotFittedError, sklearn.exceptions.NotFittedError, ValueError, AttributeError):
        with pytest.raises(kind, match="KMeans instance is not fitted yet. Call 'fit'") as caught:
            coremix.KMeans(3).predict(X)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), sklearn.exceptions.NotFittedError)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        check_is_fitted(coremix.KMeans(3))
    check_is_fitted(coremix.KMeans(3).fit(X))
    for kind in (ConvergenceWarning, sklearn.exceptions.ConvergenceWarning):
        with pytest.warns(kind):
            coremix.GaussianMixture(6, max_iter=1, tol=0.0, init_params="k-means++", random_state=0).fit(X)


def test_containers_and_requests_stay(X):
    own = coremix.KMeans(6, random_state=0).set_output(transform="pandas")
    with sklearn.config_context(enable_metadata_routing=True):
        own.set_fit_request(sample_weight=True).set_score_request(sample_weight="weights")
        for other in (own, clone(own), pickle.loads(pickle.dumps(own))):
            request = other.get_metadata_routing()
            assert request.fit.requests == {"sample_weight": True} and request.score.requests == {"sample_weight": "weights"}
            assert request.partial_fit.requests == {"sample_weight": None}
            assert isinstance(other.fit(X).transform(X), pd.DataFrame)
    with pytest.raises(RuntimeError, match="metadata routing is enabled"):
        own.set_fit_request(sample_weight=True)
    plain = own.set_output(transform="default").transform(X)
    assert isinstance(plain, np.ndarray)
    with sklearn.config_context(transform_output="pandas"):
        frame = coremix.KMeans(6, random_state=0).fit_transform(pd.DataFrame(X, index=range(7, 7 + len(X))))
    assert list(frame.columns) == [f"kmeans{c}" for c in range(6)] and frame.index[0] == 7
    np.testing.assert_allclose(frame.to_numpy(), plain)
    assert isinstance(own.fit_transform(X), np.ndarray)


def test_parameters_are_printed_where_they_differ():
    assert repr(coremix.KMeans()) == "KMeans()"
    long = repr(coremix.KMeans(3, init=np.ones((40, 40)), tol=0.5))
    assert long.startswith("KMeans(init=array([[1., 1.,") and long.endswith("n_clusters=3, tol=0.5)") and len(long) < 200
    with pytest.raises(ValueError, match=r"Invalid parameter 'k' for estimator KMeans\(\). Valid parameters are: \['algorithm', "):
        coremix.KMeans().set_params(n_init=3, k=3)


FRAME = pd.DataFrame
ROWS = {
    "lists": [[1, 2.5], [3, 4]],
    "lists of float32": [np.ones(2, np.float32)],
    "no rows": np.ones((0, 2)),
    "no columns": np.ones((2, 0)),
    "a row": np.ones(2),
    "a number": 3.0,
    "a cube": np.ones((2, 2, 2)),
    "a series": pd.Series([1, 2]),
    "complex": np.ones((2, 2), complex),
    "text": [["a", "b"]],
    "numbers as text": [["1.5", "2"]],
    "float16": np.ones((2, 2), np.float16),
    "int64": np.ones((2, 2), np.int64),
    "other bytes": np.ones((2, 2), ">f4"),
    "columns first": np.asfortranarray(np.ones((3, 2), np.float32)),
    "objects": np.array([[1, None]], dtype=object),
    "frame": FRAME({"a": [1, 2], "b": [1.5, 2]}),
    "frame of float32": FRAME({"a": np.float32([1, 2])}),
    "frame of two types": FRAME({"a": np.uint8([1, 2]), "b": np.int8([1, 2])}),
    "frame with bool": FRAME({"a": np.uint8([1, 2]), "b": [True, False]}),
    "frame of NA": FRAME({"a": pd.array([1, None], dtype="Int64"), "b": [1.5, 2]}),
    "frame of categories": FRAME({"a": pd.Categorical([1, 2])}),
    "frame of words": FRAME({"a": pd.Categorical(["x", "y"])}),
    "frame of times": FRAME({"a": pd.to_datetime(["2020-01-01"]), "b": [1]}),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_rows_become_the_arrays_of_scikit_learn(rows):
    def outcome(convert):
        try:
            found = convert()
        except (TypeError, ValueError) as error:
            return str(error)
        return found.dtype, found.flags.c_contiguous, found.tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theirs = outcome(lambda: check_array(rows, dtype=list(NUMBERS), ensure_all_finite=False))
        assert repr(outcome(lambda: rows_of_array(rows, NUMBERS))).split(" instead. ")[0] == repr(theirs).split(" instead. ")[0]


def test_names_of_columns_are_compared(X):
    frame = pd.DataFrame(X, columns=list("abcde"))
    own = coremix.KMeans(6, random_state=0).fit(frame)
    for other in (frame[list("edcba")], frame.rename(columns={"a": "z"}), frame.rename(columns=str.upper)):
        with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
            own.predict(other)
    with pytest.raises(ValueError, match="unseen at fit time:\n- z\nFeature names seen at fit time, yet now missing:\n- a\n"):
        own.predict(frame.rename(columns={"a": "z"}))
    with pytest.warns(UserWarning, match="does not have valid feature names, but KMeans was fitted with") as caught:
        own.predict(X)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="X has feature names, but KMeans was fitted without"):
        coremix.KMeans(6).fit(X).predict(frame)
    with pytest.raises(TypeError, match="only supported if all input features have string names"):
        own.fit(frame.rename(columns={"a": 3}))
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        own.get_feature_names_out(list("vwxyz"))
    with pytest.raises(ValueError, match="expecting 5 features"):
        coremix.KMeans(6).fit(X).predict(blobs(20, 4))
