"""Standardised columns: every estimator, against a StandardScaler and a fit by hand."""

import pickle

import numpy as np
import pytest
from conftest import blobs
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

import coremix

UNITS = np.array([1e-3, 1.0, 50.0, 1e4, 7.0])
FAR = np.array([3.0, -20.0, 0.0, 1e5, 1.0])

K_MEANS = [
    *(coremix.KMeans(6, algorithm=name) for name in ("fast", "lloyd", "k-means-c-prime", "lazy-k-means", "lwcs-k-means")),
]
MIXTURES = [
    *(coremix.GaussianMixture(6, covariance_type=kind) for kind in ("full", "tied", "diag", "spherical", "tied-spherical")),
    coremix.BayesianGaussianMixture(n_components=10),
    coremix.BayesianGaussianMixture(10, init_params="k-means++"),
    coremix.VcGmm(6),
    coremix.VcGmm(6, coreset_size="all"),
    coremix.GaussianMixture(6, c_prime=3, covariance_type="tied-spherical", init_params="k-means++"),
    coremix.DGmm(6),
]
ALL = K_MEANS + MIXTURES


def of(estimator, **more):
    return clone(estimator).set_params(random_state=0, **more)


def means_of(estimator):
    return estimator.cluster_centers_ if hasattr(estimator, "cluster_centers_") else estimator.means_


def scaled():
    X = blobs(2_000) * UNITS + FAR
    scaler = StandardScaler().fit(X)
    return X, scaler, scaler.transform(X)


def ordered(means):
    """Means in an order that their numbering does not decide."""
    return means[np.lexsort(np.round(means, 6).T)]


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_it_is_the_fit_of_rows_that_were_scaled_by_hand(estimator):
    X, scaler, Z = scaled()
    own, by_hand = of(estimator, standardise=True).fit(X), of(estimator).fit(Z)
    assert adjusted_rand_score(own.predict(X), by_hand.predict(Z)) == 1
    used = slice(None) if len(means_of(own)) == 6 else own.weights_ > 0.01
    theirs = slice(None) if len(means_of(own)) == 6 else by_hand.weights_ > 0.01
    found = ordered(scaler.transform(means_of(own)[used]))
    np.testing.assert_allclose(found, ordered(means_of(by_hand)[theirs]), atol=2e-3)
    if estimator in MIXTURES:
        # Densities are those of rows as they are.
        volume = np.log(scaler.scale_).sum()
        assert own.score(X) == pytest.approx(by_hand.score(Z) - volume, abs=2e-2)
        np.testing.assert_allclose(own.score_samples(X).mean(), own.score(X), rtol=1e-9)
        np.testing.assert_allclose(own.predict_proba(X).sum(axis=1), 1, atol=1e-6)
    else:
        # Errors and distances are those of standardised columns.
        centres = scaler.transform(own.cluster_centers_)
        far = np.sqrt(((Z[:, None] - centres) ** 2).sum(axis=2))
        np.testing.assert_allclose(own.transform(X), far, rtol=1e-6, atol=1e-6)
        assert own.inertia_ == pytest.approx((far.min(axis=1) ** 2).sum(), rel=1e-8)
        assert own.score(X) == pytest.approx(-own.inertia_, rel=1e-12)
        np.testing.assert_array_equal(own.labels_, far.argmin(axis=1))
        assert by_hand.inertia_ == pytest.approx(own.inertia_, rel=1e-2)


def test_a_sketch_is_of_standardised_columns_or_an_error():
    X, _, _ = scaled()
    try:
        mixture = coremix.SparsifiedGmm(6, n_coordinates=5, standardise=True, random_state=0).fit(X)
    except ValueError as error:
        assert "standardise" in str(error)
    else:
        assert adjusted_rand_score(mixture.predict(X), coremix.KMeans(6, standardise=True, random_state=0).fit(X).labels_) > 0.9


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_files_pickles_and_numbers_of_four_bytes(estimator, tmp_path):
    X, _, _ = scaled()
    own = of(estimator, standardise=True).fit(X)
    own.save(tmp_path / "m")
    for other in (type(own).load(tmp_path / "m"), pickle.loads(pickle.dumps(own))):
        assert other.standardise and other._model.standardised
        np.testing.assert_array_equal(other.predict(X), own.predict(X))
        np.testing.assert_array_equal(means_of(other), means_of(own))
        if estimator in MIXTURES:
            np.testing.assert_array_equal(other.score_samples(X), own.score_samples(X))
    rough = of(estimator, standardise=True).fit(X.astype(np.float32))
    assert adjusted_rand_score(rough.predict(X.astype(np.float32)), own.predict(X)) > 0.99


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_partial_fit_and_warm_starts(estimator):
    X, _, _ = scaled()
    own = of(estimator, standardise=True, n_init=3).fit(X)
    streamed = of(estimator, standardise=True, n_init=3)
    for batch in np.array_split(X, 3):
        streamed.partial_fit(batch)
    assert adjusted_rand_score(streamed.finish().predict(X), own.predict(X)) > 0.99
    assert streamed._model.standardised
    again = own.set_params(warm_start=True)
    before = means_of(again).copy()
    again.fit(X)
    spread = X.std(axis=0)
    used = slice(None) if len(before) == 6 else again.weights_ > 0.01
    np.testing.assert_allclose(means_of(again)[used] / spread, before[used] / spread, atol=0.05)


@pytest.mark.parametrize("estimator", MIXTURES, ids=repr)
def test_to_sklearn(estimator):
    X, _, _ = scaled()
    own = of(estimator, standardise=True).fit(X)
    theirs = own.to_sklearn()
    np.testing.assert_allclose(theirs.predict_proba(X), own.predict_proba(X), atol=1e-6)
    if not isinstance(estimator, coremix.BayesianGaussianMixture):
        np.testing.assert_allclose(theirs.score_samples(X), own.score_samples(X), rtol=1e-6, atol=1e-6)


def test_a_kmeans_of_standardised_columns_is_none_of_scikit_learn():
    X, _, _ = scaled()
    with pytest.raises(ValueError, match="StandardScaler"):
        coremix.KMeans(6, standardise=True, random_state=0).fit(X).to_sklearn()


def test_weights_and_settings():
    X, scaler, _ = scaled()
    weights = np.tile([1.0, 3.0], len(X) // 2)
    repeated = np.concatenate([X, X[1::2], X[1::2]])
    own = coremix.KMeans(6, standardise=True, random_state=0).fit(X, sample_weight=weights)
    other = coremix.KMeans(6, standardise=True, random_state=0).fit(repeated)
    np.testing.assert_allclose(own.cluster_centers_, other.cluster_centers_, rtol=1e-9)
    with pytest.raises(TypeError, match="standardise"):
        coremix.KMeans(6, standardise="yes").fit(X)
    scan = coremix.sweep(X, [5, 6, 7], coremix.GaussianMixture(standardise=True, random_state=0))
    assert scan.best_["bic"] == 6 and scan.best()._model.standardised
