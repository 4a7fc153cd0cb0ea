"""Abilities of all estimators: each works, or its error says what does."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs

import coremix
from coremix import BayesianGaussianMixture, DGmm, GaussianMixture, KMeans, SparsifiedGmm, TableMixture, VcGmm

K, N, D = 3, 300, 4
X = np.abs(blobs(N, D, K, seed=5)) + 0.5
HOLES = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
SPARSE = sp.csr_matrix(np.where(X > np.median(X), X, 0))
WEIGHTS = 0.5 + np.arange(N) % 3

ESTIMATORS = {
    "KMeans": (KMeans, {}),
    "lloyd": (KMeans, {"algorithm": "lloyd"}),
    "cosine": (KMeans, {"metric": "cosine"}),
    "GaussianMixture": (GaussianMixture, {}),
    "full": (GaussianMixture, {"covariance_type": "full"}),
    "factors": (GaussianMixture, {"covariance_type": "factors", "n_factors": 1}),
    "directions": (GaussianMixture, {"metric": "cosine"}),
    "VcGmm": (VcGmm, {}),
    "DGmm": (DGmm, {}),
    "SparsifiedGmm": (SparsifiedGmm, {"n_coordinates": 3}),
    "TableMixture": (TableMixture, {}),
    "BayesianGaussianMixture": (BayesianGaussianMixture, {}),
}
HARD = ("KMeans", "lloyd", "cosine")
MIXTURES = tuple(name for name in ESTIMATORS if name not in HARD)


def finite(found, shape=None):
    found = np.asarray(found, dtype=float)
    assert np.isfinite(found).all()
    assert shape is None or found.shape == shape


def fitted(make, rows=X, **settings):
    return make(**settings).fit(rows)


def missing(make, _):
    model = fitted(make, HOLES, allow_missing=True)
    finite(model.predict(HOLES), (N,))


def sparse(make, _):
    finite(make().fit(SPARSE).predict(SPARSE), (N,))


def weights(make, _):
    model = make(merge_rows=False).fit(X, sample_weight=WEIGHTS)
    finite(model.sizes(X, WEIGHTS).sum() - WEIGHTS.sum())
    finite(model.score(X, sample_weight=WEIGHTS))


def cosine(make, _):
    model = fitted(make, metric="cosine")
    np.testing.assert_array_equal(model.predict(7 * X), model.predict(X))


def priors(make, _):
    finite(fitted(make, prior_rows=1.0).score(X))
    finite(fitted(make, reg_covar=0.1).score(X))


def prior_variance(make, _):
    finite(fitted(make, prior_rows=2.0, prior_variance=3.0).score(X))


def prior_proportions(make, _):
    finite(fitted(make, prior_proportions=2.0).score(X))


def partial_fit(make, _):
    finite(make().partial_fit(X[:100]).partial_fit(X[100:]).finish().predict(X), (N,))


def partial_fit_of_sparse(make, _):
    finite(make().partial_fit(SPARSE[:100]).partial_fit(SPARSE[100:]).predict(SPARSE), (N,))


def scan(make, folder):
    np.save(folder / "rows.npy", X)
    model = make(merge_rows=False).fit(coremix.scan(folder / "rows.npy"))
    np.testing.assert_array_equal(model.predict(X), make(merge_rows=False).fit(X).predict(X))


def scan_of_sparse(make, folder):
    sp.save_npz(folder / "rows.npz", SPARSE)
    finite(make().fit(coremix.scan(folder / "rows.npz")).predict(SPARSE), (N,))


def sample(make, _):
    rows, labels = fitted(make).sample(5)
    finite(rows, (5, D))
    finite(labels, (5,))


def score_samples(make, _):
    finite(fitted(make).score_samples(X), (N,))


def predict_proba(make, _):
    finite(fitted(make).predict_proba(X).sum(axis=1) - 1, (N,))


def criteria(make, _):
    model = fitted(make)
    assert model.bic(X) > model.aic(X) > -2 * model.score(X) * N


def marginal(make, _):
    finite(fitted(make).marginal([2, 0]).score_samples(X[:, [2, 0]]), (N,))


def condition(make, _):
    finite(fitted(make).condition([1], [X[0, 1]]).score_samples(X[:, [0, 2, 3]]), (N,))


def impute(make, _):
    filled = fitted(make, HOLES, allow_missing=True).impute(HOLES)
    finite(filled, (N, D))
    np.testing.assert_array_equal(filled[~np.isnan(HOLES)], HOLES[~np.isnan(HOLES)])


def explain(make, _):
    assert len(fitted(make).explain(top=2)) == 2 * K


def medoids(make, _):
    finite(fitted(make).medoids(X), (K,))


def sizes(make, _):
    assert fitted(make).sizes(X).sum() == N


def predict_top(make, _):
    labels, shares, far = fitted(make).predict_top(X, 2, return_distance=True)
    finite(labels, (N, 2))
    finite(shares.sum(axis=1) - 1, (N,))
    finite(far, (N, 2))


def predictor(make, _):
    model = fitted(make)
    assert model.predictor()(X[0]) == model.predict(X[:1])[0]


def warm_start(make, _):
    model = fitted(make, warm_start=True)
    finite(model.fit(X).predict(X), (N,))


def means_init(make, _):
    name = "init" if make is not None and "n_clusters" in make().get_params() else "means_init"
    finite(fitted(make, **{name: X[:K]}).predict(X), (N,))


def save_and_load(make, folder):
    model = fitted(make)
    model.save(folder / "model.cmx")
    for other in (type(model).load(folder / "model.cmx"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))


def n_init(make, _):
    assert len(fitted(make, n_init=3).report_["restarts"]) == 3


def callback(make, _):
    steps = []
    fitted(make, callback=steps.append)
    assert steps


def standardise(make, _):
    finite(fitted(make, standardise=True).predict(X), (N,))


def coreset(make, _):
    finite(fitted(make, coreset_size=100).predict(X), (N,))


def assign(make, folder):
    model = fitted(make)
    model.assign(X, folder / "labels.npy")
    np.testing.assert_array_equal(np.load(folder / "labels.npy"), model.predict(X))


def threshold(make, _):
    finite(fitted(make).density_threshold(X, 0.1))


def to_sklearn(make, _):
    finite(fitted(make).to_sklearn().predict(X), (N,))


def partitions(make, _):
    model = fitted(make)
    merged = coremix.merge([coremix.stats(part, model) for part in np.array_split(X, 3)])
    finite(coremix.update(model, merged).parameters()["means"], (K, D))


# Each ability, and what the error of those says that lack it.
ABILITIES = [
    (missing, {("cosine", "directions"): "no missing values", ("SparsifiedGmm",): "other estimators take them"}),
    (sparse, {("full", "factors", "SparsifiedGmm", "TableMixture", "BayesianGaussianMixture"): "X.toarray()"}),
    (weights, {}),
    (cosine, {("SparsifiedGmm", "TableMixture", "BayesianGaussianMixture"): "GaussianMixture, VcGmm and DGmm have metric='cosine'", ("full", "factors"): "left out with metric='cosine'"}),
    (priors, {HARD: "GaussianMixture, VcGmm, DGmm", ("BayesianGaussianMixture",): "mean_prior", ("directions",): "left out with metric='cosine'"}),
    (prior_variance, {HARD: "GaussianMixture, VcGmm, DGmm", ("BayesianGaussianMixture",): "mean_prior", ("directions",): "left out with metric='cosine'", ("TableMixture",): "give a covariance_type"}),
    (prior_proportions, {(*HARD, "TableMixture", "BayesianGaussianMixture"): "GaussianMixture, VcGmm, DGmm", ("directions",): "left out with metric='cosine'"}),
    (partial_fit, {}),
    (partial_fit_of_sparse, {("full", "factors", "SparsifiedGmm", "TableMixture", "BayesianGaussianMixture"): "X.toarray()"}),
    (scan, {}),
    (scan_of_sparse, {("full", "factors", "SparsifiedGmm", "TableMixture", "BayesianGaussianMixture"): "X.toarray()"}),
    (sample, {HARD: "GaussianMixture has"}),
    (score_samples, {HARD: "GaussianMixture has"}),
    (predict_proba, {HARD: "predict_top(X, m)"}),
    (criteria, {HARD: "GaussianMixture has", ("BayesianGaussianMixture",): "score() of rows held out"}),
    (marginal, {HARD: "GaussianMixture has", ("directions",): "GaussianMixture without metric='cosine' has"}),
    (condition, {HARD: "GaussianMixture has", ("directions",): "GaussianMixture without metric='cosine' has"}),
    (impute, {("cosine", "directions"): "no missing values", ("SparsifiedGmm",): "other estimators take them"}),
    (explain, {("SparsifiedGmm",): "needs a fit of all columns"}),
    (medoids, {}),
    (sizes, {}),
    (predict_top, {}),
    (predictor, {}),
    (warm_start, {}),
    (means_init, {}),
    (save_and_load, {}),
    (n_init, {}),
    (callback, {}),
    (standardise, {("cosine", "directions"): "directions", ("TableMixture",): "coordinates of its own", ("SparsifiedGmm",): "for a sketch"}),
    (coreset, {}),
    (assign, {}),
    (threshold, {HARD: "GaussianMixture has"}),
    (to_sklearn, {("cosine", "directions"): "scikit-learn", ("TableMixture",): "scikit-learn has no"}),
    (partitions, {("cosine", "full", "factors", "directions", "SparsifiedGmm", "TableMixture", "BayesianGaussianMixture"): "coremix.sample"}),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("ability, lacking", ABILITIES, ids=[ability.__name__ for ability, _ in ABILITIES])
def test_an_ability_works_or_says_what_does(ability, lacking, estimator, tmp_path):
    kind, own = ESTIMATORS[estimator]

    def make(**settings):
        return kind(K, random_state=0, **{**own, **settings})

    words = next((words for names, words in lacking.items() if estimator in names), None)
    if words is None:
        return ability(make, tmp_path)
    with pytest.raises((ValueError, TypeError, AttributeError)) as caught:
        ability(make, tmp_path)
    assert words in str(caught.value), str(caught.value)
