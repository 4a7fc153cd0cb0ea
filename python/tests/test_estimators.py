"""Expectations of scikit-learn's users that no check of estimators has."""

import os
import pickle
import signal

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coremix
from conftest import blobs

ALL = [
    coremix.KMeans(6, random_state=0),
    coremix.GaussianMixture(6, random_state=0),
    coremix.BayesianGaussianMixture(8, random_state=0),
    coremix.VcGmm(6, random_state=0),
    coremix.DGmm(6, random_state=0),
    coremix.SparsifiedGmm(6, n_coordinates=3, random_state=0),
    coremix.VcGmm(6, coreset_size="all", random_state=0),
    coremix.GaussianMixture(6, c_prime=2, covariance_type="tied-spherical", init_params="k-means++", random_state=0),
    coremix.BayesianGaussianMixture(8, init_params="k-means++", random_state=0),
    coremix.KMeans(6, algorithm="lazy-k-means", random_state=0),
    coremix.KMeans(6, algorithm="lwcs-k-means", random_state=0),
]
MIXTURES = ALL[1:-2]


@pytest.mark.parametrize("estimator", MIXTURES, ids=repr)
def test_some_columns_alone_and_given_others(X, estimator):
    fitted = clone(estimator).fit(X)
    alone, given = fitted.marginal([2, 0]), fitted.condition([2, 0], X[5, [2, 0]])
    rest = [j for j in range(X.shape[1]) if j not in (2, 0)]
    np.testing.assert_allclose(alone.means_, fitted.means_[:, [2, 0]], rtol=1e-6)
    whole = alone.score_samples(X[5:6, [2, 0]]) + given.score_samples(X[5:6, rest])
    np.testing.assert_allclose(fitted.score_samples(X[5:6]), whole, rtol=1e-6)
    assert given.sample(3)[0].shape == (3, len(rest))
    for columns, values, what in [([], [], "columns"), ([0, 0], [1, 1], "twice"), ([99], [1], "column 99"), ([0], [1, 2], "values"),
                                  ([0], [np.nan], "values"), ("a", [1], "columns"), (["a"], [1], "names"), ([0], 1.0, "shape"),
                                  (range(X.shape[1]), X[0], "columns")]:
        with pytest.raises((TypeError, ValueError), match=what):
            fitted.condition(columns, values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_pickled_estimators_are_the_same(X, estimator, dtype, tmp_path):
    X = X.astype(dtype)
    fitted = clone(estimator).fit(X)
    again = pickle.loads(pickle.dumps(fitted))
    assert again._model == fitted._model
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert str(again.report_) == str(fitted.report_) and "evaluations" in str(again.report_)
    fitted._model.save(tmp_path / "model.cmx", [("made-by", "a test")])
    assert coremix.Model.load(tmp_path / "model.cmx") == fitted._model
    assert fitted._model != clone(estimator).fit(X[:-1])._model
    assert not hasattr(clone(fitted), "report_")


@pytest.mark.parametrize("estimator", MIXTURES, ids=repr)
def test_mixtures(X, estimator):
    model = clone(estimator).fit(X)
    weights = np.random.default_rng(0).uniform(size=len(X))
    k, d = model.means_.shape
    shares, densities = model.predict_proba(X), model.score_samples(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(shares.argmax(axis=1), model.predict(X))
    assert model.score(X) == pytest.approx(densities.mean())
    assert model.score(X, sample_weight=weights) == pytest.approx(np.average(densities, weights=weights))
    # Bounds of a Dirichlet process are about the evidence, those of a sketch about the coordinates that it kept.
    if not isinstance(model, (coremix.BayesianGaussianMixture, coremix.SparsifiedGmm)):
        assert model.lower_bound_ <= model.score(X) + 1e-9
    if not isinstance(model, coremix.BayesianGaussianMixture):
        free = (model.bic(X) + 2 * densities.sum()) / np.log(len(X))
        assert free == pytest.approx((model.aic(X) + 2 * densities.sum()) / 2)
        # A weight of 2 is a row that is there twice.
        twice = model.bic(np.vstack([X, X]))
        assert model.bic(X, sample_weight=np.full(len(X), 2.0)) == pytest.approx(twice)
    points, labels = model.sample(4_000)
    assert points.shape == (4_000, d) and set(labels) <= set(range(k))
    np.testing.assert_array_equal(points, model.sample(4_000)[0])
    np.testing.assert_allclose(points.mean(axis=0), model.weights_ @ model.means_, atol=1.5)
    assert model.converged_ and model.n_iter_ >= 1


@pytest.mark.parametrize("estimator", MIXTURES, ids=repr)
@pytest.mark.parametrize("kind", ["diag", "spherical", "tied-spherical"])
def test_mixtures_of_scikit_learn_say_the_same(X, estimator, kind):
    if "covariance_type" in estimator.get_params():
        estimator = clone(estimator).set_params(covariance_type=kind)
    elif kind != "diag":
        pytest.skip("one kind of covariances")
    X = np.abs(X) * [1, 5, 20, 1, 0.1]
    ours = estimator.fit(X)
    theirs = ours.to_sklearn()
    np.testing.assert_array_equal(theirs.predict(X), ours.predict(X))
    np.testing.assert_allclose(theirs.predict_proba(X), ours.predict_proba(X), atol=1e-8)
    if not isinstance(ours, coremix.BayesianGaussianMixture):
        np.testing.assert_allclose(theirs.score_samples(X), ours.score_samples(X), rtol=1e-8)
        if theirs.covariance_type == ours.get_params().get("covariance_type"):
            # They have the same free parameters, so the same criterion.
            assert theirs.bic(X) == pytest.approx(ours.bic(X))
    assert theirs.n_features_in_ == 5


def test_k_means_of_scikit_learn_says_the_same(X):
    ours = coremix.KMeans(6, random_state=0).fit(X)
    theirs = ours.to_sklearn()
    np.testing.assert_array_equal(theirs.predict(X), ours.predict(X))
    np.testing.assert_allclose(theirs.transform(X), ours.transform(X), rtol=1e-7, atol=1e-7)
    assert theirs.score(X) == pytest.approx(ours.score(X))
    assert theirs.inertia_ == ours.inertia_ == -ours.score(X)
    assert ours.inertia_ == pytest.approx((ours.transform(X).min(axis=1) ** 2).sum())
    weights = np.arange(len(X), dtype=float)
    weighted = coremix.KMeans(6, random_state=0).fit(X, sample_weight=weights)
    assert weighted.inertia_ == pytest.approx(weights @ weighted.transform(X).min(axis=1) ** 2)


def test_pipelines_output_and_search(X):
    pipeline = make_pipeline(StandardScaler(), coremix.KMeans(6, random_state=0)).set_output(transform="pandas")
    frame = pipeline.fit_transform(X)
    assert list(frame.columns) == [f"kmeans{c}" for c in range(6)]
    search = GridSearchCV(coremix.GaussianMixture(random_state=0), {"n_components": [1, 6]}, n_jobs=2)
    with joblib.parallel_config("threading"):
        search.fit(X)
    assert search.best_params_ == {"n_components": 6}
    names = search.best_estimator_.predict(X)
    assert names.shape == (len(X),)


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_what_transforms_has_frames(X, estimator):
    """Mixtures do not transform, so they have no output to set."""
    assert hasattr(estimator, "set_output") == hasattr(estimator, "transform") == isinstance(estimator, coremix.KMeans)
    if hasattr(estimator, "transform"):
        model = clone(estimator).fit(X)
        plain = model.transform(X)
        frame = model.set_output(transform="pandas").transform(X)
        assert list(frame.columns) == list(model.get_feature_names_out())
        np.testing.assert_array_equal(frame.to_numpy(), plain)


def test_weights_are_routed(X):
    weights = np.arange(len(X), dtype=float)
    with sklearn.config_context(enable_metadata_routing=True):
        step = coremix.KMeans(6, random_state=0).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, step).fit(X, sample_weight=weights)
    scaled = StandardScaler().fit_transform(X)
    expected = coremix.KMeans(6, random_state=0).fit(scaled, sample_weight=weights)
    assert pipeline[-1]._model == expected._model


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_threads_do_not_change_the_bits(estimator):
    X = blobs(12_000, 6)
    fits = [clone(estimator).set_params(n_jobs=n).fit(X)._model for n in (1, 2, 5, None, -1)]
    assert all(fit == fits[0] for fit in fits)


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_merged_rows_know_no_order_and_no_repetition(estimator):
    X = np.round(blobs(600, 3) * 2) / 2
    X[0, 0] = -0.0
    weights = np.random.default_rng(0).integers(0, 5, len(X)).astype(float) / 8
    model = clone(estimator).fit(X, sample_weight=weights)._model
    repeated = np.repeat(X, (weights * 8).astype(int), axis=0)
    order = np.random.default_rng(1).permutation(len(repeated))
    shuffled = np.where(repeated == 0, 0.0, repeated)[order]
    assert clone(estimator).fit(shuffled, sample_weight=np.full(len(order), 0.125))._model == model
    apart = clone(estimator).set_params(merge_rows=False)
    assert apart.fit(shuffled)._model != apart.fit(shuffled[::-1])._model


def test_merging_is_for_few_rows():
    X = blobs(10_001, 2)
    for merged in [True, False]:
        model = coremix.KMeans(5, random_state=0, merge_rows=merged, algorithm="lloyd").fit(X)
        auto = coremix.KMeans(5, random_state=0, algorithm="lloyd").fit(X)
        assert (auto._model == model._model) == (not merged)
        few = clone(model).fit(X[:-1])
        assert (clone(auto).fit(X[:-1])._model == few._model) == merged


def test_random_state(X):
    def fit(state):
        return coremix.KMeans(20, random_state=state).fit(X)._model

    assert fit(3) == fit(np.int64(3))
    assert fit(3) != fit(4)
    assert fit(np.random.RandomState(0)) == fit(np.random.RandomState(0))
    assert fit(None) != fit(None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_processes_fit(X):
    coremix.KMeans(4, random_state=0).fit(X)  # the parent has threads
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        coremix.KMeans(4, random_state=0).fit(X)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    "estimator, what",
    [
        (coremix.KMeans(0), "n_clusters = 0: must be at least 1"),
        (coremix.KMeans(31), "n_samples=30 should be >= n_clusters=31"),
        (coremix.GaussianMixture(0), "n_components = 0: must be at least 1"),
        (coremix.KMeans(2, algorithm="elkan"), "algorithm = 'elkan': must be one of 'fast', 'lloyd'"),
        (coremix.KMeans(2, tol=-1.0), "tol = -1: "),
        (coremix.KMeans(2, n_init=0), "n_init = 0: "),
        (coremix.KMeans(2, max_iter=-3), "max_iter = -3: must be at least 1"),
        (coremix.KMeans(2, algorithm="lwcs-k-means", coreset_size=0), "coreset_size = 0: "),
        (coremix.KMeans(2, algorithm="k-means-c-prime", c_prime=0), "c_prime = 0: "),
        (coremix.KMeans(2, algorithm="lazy-k-means", epsilon=-1.0), "epsilon = -1: "),
        (coremix.KMeans(2, epsilon=0.2), "epsilon = 0.2: 'fast' does not use it, but 'lazy-k-means'"),
        (coremix.KMeans(2, memory=1), "memory = 1 bytes, where fast needs 2 MiB: give more"),
        (coremix.KMeans(2, algorithm="lloyd", memory="1KiB"), "memory = 1 KiB, where k-means needs 2 MiB: give more"),
        (coremix.GaussianMixture(2, memory=1000), "memory = 1000 bytes, where gmm needs "),
        (coremix.VcGmm(2, memory=1), "memory = 1 bytes, where vc-gmm needs "),
        (coremix.KMeans(2, memory="much"), "memory = \"much\": an amount of memory is a number with a unit, such as 4GiB"),
        (coremix.KMeans(2, memory=0), "memory = 0: must be at least 1"),
        (coremix.KMeans(2, init=np.zeros), "must be 'k-means++', or an array"),
        (coremix.KMeans(2, merge_rows="yes"), "merge_rows = 'yes': must be 'auto', True or False"),
        (coremix.KMeans(2, n_jobs=0), "n_jobs = 0: must be None, -1, or at least 1"),
        (coremix.KMeans(2, random_state=-1), "random_state = -1: must not be negative"),
        (coremix.GaussianMixture(2, init_params="random"), "init_params = 'random': must be 'kmeans' or 'k-means++'"),
        (coremix.GaussianMixture(2, greedy=True), "greedy = True: init_params='kmeans' does not use it"),
        (coremix.GaussianMixture(2, covariance_type="fuller"), 'covariance_type = "fuller": must be \'full\''),
        (coremix.VcGmm(2, neighbors=0), "neighbors = 0: "),
        (coremix.VcGmm(2, chain=0), "chain = 0: "),
        (coremix.DGmm(2, c_prime=0), "c_prime = 0: "),
        (coremix.SparsifiedGmm(2, n_coordinates=9), "n_coordinates = 9: "),
        (coremix.SparsifiedGmm(2, n_coordinates=0), "n_coordinates = 0: must be at least 1"),
        (coremix.BayesianGaussianMixture(2, weight_concentration_prior=0.0), "weight_concentration_prior = 0: "),
    ],
    ids=repr,
)
def test_errors_name_the_parameter(estimator, what):
    with pytest.raises(ValueError) as raised:
        estimator.fit(blobs(30))
    assert what in str(raised.value)


def test_types_of_parameters():
    for estimator in [coremix.KMeans(2.5), coremix.KMeans(2, max_iter="many"), coremix.KMeans(2, tol="small")]:
        with pytest.raises(TypeError, match="must be a"):
            estimator.fit(blobs(30))


def test_errors_name_the_row(X):
    X[7, 3] = np.nan
    for merged in [True, False]:
        with pytest.raises(ValueError, match="row 7, column 3 is NaN or infinite"):
            coremix.KMeans(2, merge_rows=merged).fit(X)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = coremix.KMeans(2).fit(np.nan_to_num(X))
    named = coremix.KMeans(2).fit(frame.fillna(0))
    for rows in [frame, pa.Table.from_pandas(frame), pa.table(dict(zip("abcde", X.T)))]:
        for read in [coremix.KMeans(2).fit, named.predict, named._model.predict]:
            with pytest.raises(ValueError, match='row 7, column "d" is .*; rows count from 0'):
                read(rows)
    with pytest.raises(ValueError, match="row 7, column 3 is "):
        model.predict(X)
    X[7, 3] = 1e300
    with pytest.raises(ValueError, match="row 7, column 3"):
        coremix.KMeans(2).fit(X)
    X[7, 3] = 0
    with pytest.raises(ValueError, match="weight of row 5 is -1"):
        coremix.KMeans(2).fit(X, sample_weight=np.where(np.arange(len(X)) == 5, -1.0, 1.0))


def test_damaged_models_are_refused(X):
    data = coremix.KMeans(3).fit(X)._model.to_bytes()
    for damaged in [b"", data[:-1], data[:50] + b"\0" + data[51:]]:
        with pytest.raises(ValueError):
            coremix.Model.from_bytes(damaged)


def test_long_work_is_done_in_parts():
    """There are enough products that predictions are made part by part, which must not show."""
    X = blobs(10_000, 500, clusters=50, dtype=np.float32)
    model = coremix.VcGmm(2_000, coreset_size=4_000, max_iter=1, random_state=0)
    with pytest.warns(sklearn.exceptions.ConvergenceWarning):
        model.fit(X)
    means = coremix.KMeans(2_000, algorithm="lwcs-k-means", coreset_size=4_000, max_iter=1, random_state=0)
    weights = np.where(np.arange(len(X)) < 6_000, 0.0, 2.0)
    means.fit(X, sample_weight=weights)
    labels = model.predict(X)
    for rows in [slice(0, 777), slice(4_000, 4_900), slice(9_990, None)]:
        np.testing.assert_array_equal(model.predict(X[rows]), labels[rows])
        np.testing.assert_array_equal(model.predict_proba(X)[rows], model.predict_proba(X[rows]))
        np.testing.assert_array_equal(model.score_samples(X)[rows], model.score_samples(X[rows]))
        np.testing.assert_array_equal(means.transform(X)[rows], means.transform(X[rows]))
    assert -means.score(X[6_000:]) * 2 == pytest.approx(means.inertia_, rel=1e-6)
    X[9_876, 5] = np.inf
    with pytest.raises(ValueError, match="row 9876, column 5"):
        model.predict(X)
    table = coremix._coremix.Table(__import__("pyarrow").table({f"x{j}": X[:9_000, j] for j in range(500)}))
    np.testing.assert_array_equal(model.predict(table), labels[:9_000])


def test_merged_weights_know_no_order():
    """Sums of weights are rounded, the same way in any order."""
    X = np.round(blobs(2_000, 2) / 4)
    weights = np.random.default_rng(0).uniform(0, 1, len(X)) ** 8
    order = np.random.default_rng(1).permutation(len(X))
    model = coremix.GaussianMixture(4, random_state=0)
    expected = model.fit(X, sample_weight=weights)._model
    assert model.fit(X[order], sample_weight=weights[order])._model == expected


def test_zeros_have_no_sign():
    X = blobs(50, 2, clusters=3)
    X[:, 1] = 0.0
    expected = coremix.KMeans(3, random_state=0).fit(X)._model
    X[::2, 1] = -0.0
    assert coremix.KMeans(3, random_state=0).fit(X)._model == expected
    X[:, 1] = -0.0
    assert coremix.KMeans(3, random_state=0).fit(X)._model == expected
