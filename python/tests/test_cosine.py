"""KMeans(metric="cosine"): spherical k-means, against rows that are brought to length 1 by hand."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from coremix import DGmm, GaussianMixture, KMeans, Model, VcGmm
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

ALGORITHMS = ["fast", "lloyd", "k-means-c-prime", "lazy-k-means", "lwcs-k-means"]


@pytest.fixture
def rays():
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(6, 20))
    labels = rng.integers(6, size=3_000)
    rows = centres[labels] + 0.2 * rng.normal(size=(3_000, 20))
    return rows * 10.0 ** rng.integers(-3, 4, size=(3_000, 1)), labels


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_directions_are_clustered_whatever_the_lengths(rays, algorithm):
    X, labels = rays
    kmeans = KMeans(6, algorithm=algorithm, metric="cosine", n_init=3, random_state=1).fit(X)
    assert adjusted_rand_score(labels, kmeans.labels_) > 0.95
    np.testing.assert_allclose(np.linalg.norm(kmeans.cluster_centers_, axis=1), 1, rtol=1e-12)
    cosines = normalize(X) @ kmeans.cluster_centers_.T
    np.testing.assert_array_equal(kmeans.labels_, cosines.argmax(axis=1))
    assert kmeans.inertia_ == pytest.approx((2 - 2 * cosines.max(axis=1)).sum(), rel=1e-9)
    np.testing.assert_array_equal(kmeans.predict(1e5 * X), kmeans.labels_)
    np.testing.assert_allclose(kmeans.transform(X) ** 2, np.maximum(2 - 2 * cosines, 0), atol=1e-9)


def test_lengths_that_are_powers_of_two_change_no_bit(rays):
    X, _ = rays
    lengths = 2.0 ** (np.arange(len(X)) % 9)[:, None]
    fits = [KMeans(6, metric="cosine", merge_rows=False, random_state=4).fit(rows) for rows in (X, lengths * X)]
    np.testing.assert_array_equal(*(fit.cluster_centers_ for fit in fits))


def test_files_pickles_and_other_ways_in(rays, tmp_path):
    X, _ = rays
    kmeans = KMeans(6, metric="cosine", random_state=2).fit(X.astype(np.float32), sample_weight=np.ones(len(X)))
    kmeans.save(tmp_path / "m.cmx")
    loaded = KMeans.load(tmp_path / "m.cmx")
    for other in (loaded, pickle.loads(pickle.dumps(kmeans)), Model.load(tmp_path / "m.cmx")):
        np.testing.assert_array_equal(other.predict(X.astype(np.float32)), kmeans.labels_)
    model = Model.load(tmp_path / "m.cmx")
    assert model.family == "von-mises-fisher" and model.parameters()["concentrations"].shape == (1,)
    parts = KMeans(6, metric="cosine", random_state=2)
    for part in np.array_split(X, 5):
        parts.partial_fit(part)
    assert adjusted_rand_score(parts.finish().predict(X), kmeans.predict(X.astype(np.float32))) > 0.95
    warm = KMeans(6, metric="cosine", warm_start=True, random_state=2).fit(X).fit(X)
    np.testing.assert_allclose(np.linalg.norm(warm.cluster_centers_, axis=1), 1, rtol=1e-12)
    given = KMeans(6, metric="cosine", init=7 * X[:6], max_iter=0).fit(X)
    np.testing.assert_allclose(given.cluster_centers_, normalize(X[:6]), rtol=1e-12)


@pytest.mark.parametrize("algorithm", ["lazy-k-means", "lwcs-k-means"])
def test_the_other_algorithms_have_it(rays, algorithm):
    X, labels = rays
    fit = KMeans(6, algorithm=algorithm, metric="cosine", n_init=3, random_state=1).fit(X)
    assert adjusted_rand_score(labels, fit.labels_) > 0.95


def test_what_does_not_go_together_is_told(rays):
    X, _ = rays
    with pytest.raises(ValueError, match="metric = .* 'euclidean' or 'cosine'"):
        KMeans(6, metric="manhattan").fit(X)
    with pytest.raises(ValueError, match="standardise"):
        KMeans(6, metric="cosine", standardise=True).fit(X)
    with pytest.raises(ValueError, match="cosine"):
        KMeans(6, metric="cosine").fit(X).to_sklearn()
    with pytest.raises(ValueError, match="columns"):
        KMeans(2, metric="cosine").fit(X[:, :1])


@pytest.mark.parametrize("of", ["dense", "sparse", "weighted", "float32", "batches", "lloyd"])
def test_explain_is_about_rows_of_length_1(rays, of):
    X, _ = rays
    rows, weights = (X.astype(np.float32) if of == "float32" else X), np.ones(len(X))
    if of == "sparse":
        rows = sp.csr_matrix(np.where(np.random.default_rng(0).random(X.shape) < 0.3, X, 0))
    if of == "weighted":
        weights = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    kmeans = KMeans(6, metric="cosine", algorithm="lloyd" if of == "lloyd" else "fast", random_state=1, merge_rows=of == "float32")
    if of == "batches":
        kmeans.partial_fit(X[:999]).partial_fit(X[999:]).finish()
    else:
        kmeans.fit(rows, sample_weight=weights)
    own = normalize(rows.toarray() if of == "sparse" else rows).astype(np.float64)
    mean = np.average(own, axis=0, weights=weights)
    deviation = np.sqrt(np.average((own - mean) ** 2, axis=0, weights=weights))
    expected = (kmeans.cluster_centers_ - mean) / deviation
    found = np.zeros_like(expected)
    for line in kmeans.explain(top=20):
        found[line["cluster"], line["column"]] = line["difference"]
        assert line["overall"] == pytest.approx(mean[line["column"]], rel=1e-5, abs=1e-6)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


MIXTURES = [GaussianMixture(6, metric="cosine", random_state=1), VcGmm(6, metric="cosine", n_init=3, random_state=1)]
MIXTURES += [DGmm(6, metric="cosine", n_init=3, random_state=1), GaussianMixture(6, metric="cosine", c_prime=2, random_state=1)]


@pytest.mark.parametrize("mixture", MIXTURES)
def test_mixtures_of_directions_have_densities_samples_and_criteria(rays, mixture, tmp_path):
    X, labels = rays
    fit = mixture.fit(X)
    assert adjusted_rand_score(labels, fit.predict(X)) > 0.95
    np.testing.assert_allclose(np.linalg.norm(fit.means_, axis=1), 1, rtol=1e-12)
    assert fit.concentrations_.shape == (1,) and fit.weights_.sum() == pytest.approx(1)
    densities = fit.score_samples(X)
    np.testing.assert_allclose(fit.score_samples(1e4 * X), densities, rtol=1e-9)
    assert fit.score(X) == pytest.approx(densities.mean())
    # 19 numbers of each direction, and one concentration.
    free = 6 * 19 + 1
    assert fit.aic(X) == pytest.approx(2 * free - 2 * densities.sum())
    assert fit.bic(X) == pytest.approx(free * np.log(len(X)) - 2 * densities.sum())
    shares = fit.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(shares.argmax(axis=1), fit.predict(X))
    drawn, of = fit.sample(20_000)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1, rtol=1e-9)
    # Rows that are drawn have the mean density of the rows of the fit, and its components.
    assert fit.score(drawn) == pytest.approx(fit.score(X), abs=0.3)
    assert adjusted_rand_score(of, fit.predict(drawn)) > 0.95
    fit.save(tmp_path / "m.cmx")
    for other in (type(fit).load(tmp_path / "m.cmx"), pickle.loads(pickle.dumps(fit))):
        np.testing.assert_array_equal(other.score_samples(X), densities)
        assert other.metric == "cosine"
    of_sparse = fit.score_samples(sp.csr_array(X))
    np.testing.assert_allclose(of_sparse, densities, rtol=1e-6)


def test_densities_on_the_sphere_are_those_of_the_book():
    """In three columns the constant is kappa / (4 pi sinh kappa)."""
    rng = np.random.default_rng(0)
    X = normalize(np.repeat(np.eye(3), 300, axis=0) + 0.3 * rng.normal(size=(900, 3)))
    fit = GaussianMixture(3, metric="cosine", random_state=0, tol=1e-9).fit(X)
    kappa = fit.concentrations_[0]
    constant = np.log(kappa) - np.log(2 * np.pi) - kappa - np.log1p(-np.exp(-2 * kappa))
    logs = np.log(fit.weights_) + constant + kappa * X @ fit.means_.T
    np.testing.assert_allclose(fit.score_samples(X), np.log(np.exp(logs).sum(axis=1)), rtol=1e-9)
    # Concentrations that EM does not change any more: A(kappa) = coth kappa - 1 / kappa is the mean cosine.
    shares = fit.predict_proba(X)
    cosines = (shares * (X @ fit.means_.T)).sum() / len(X)
    assert 1 / np.tanh(kappa) - 1 / kappa == pytest.approx(cosines, rel=1e-4)


def test_what_mixtures_of_directions_have_not_is_told(rays):
    X, _ = rays
    fit = GaussianMixture(6, metric="cosine", random_state=1).fit(X)
    for name in ("covariances_", "precisions_"):
        with pytest.raises(AttributeError, match=f"{name}.*concentrations_"):
            getattr(fit, name)
    with pytest.raises(ValueError, match="covariance_type = 'full': must be left out with metric='cosine', or 'spherical'"):
        GaussianMixture(6, metric="cosine", covariance_type="full").fit(X)
    with pytest.raises(ValueError, match="prior_rows = 1: must be left out with metric='cosine'"):
        VcGmm(6, metric="cosine", prior_rows=1).fit(X)
    with pytest.raises(ValueError, match="GaussianMixture without metric='cosine' has"):
        fit.marginal([0])
    with pytest.raises(ValueError, match="mixture of directions"):
        fit.to_sklearn()
    with pytest.raises(ValueError, match="directions"):
        GaussianMixture(6, metric="cosine", allow_missing=True).fit(np.where(X > X.max() / 2, np.nan, X))
    euclidean = fit.set_params(metric="euclidean").fit(X)
    assert euclidean.covariances_.shape == (6, 20) and not hasattr(euclidean, "concentrations_")


@pytest.mark.parametrize("kind", [GaussianMixture, VcGmm, DGmm])
def test_each_direction_may_have_a_concentration(kind, tmp_path):
    """In three columns each constant is kappa / (4 pi sinh kappa), and each mean cosine is coth kappa - 1 / kappa."""
    rng = np.random.default_rng(0)
    widths = np.repeat([0.1, 0.3, 0.5], [200, 300, 400])[:, None]
    X = normalize(np.repeat(np.eye(3), [200, 300, 400], axis=0) + widths * rng.normal(size=(900, 3)))
    own = {"coreset_size": "all"} if kind is VcGmm else {}
    fit = kind(3, metric="cosine", covariance_type="spherical", means_init=np.eye(3), random_state=0, tol=1e-9, max_iter=2_000, **own).fit(X)
    kappa = fit.concentrations_
    assert kappa.shape == (3,) and (np.diff(kappa) < 0).all()
    constants = np.log(kappa) - np.log(2 * np.pi) - kappa - np.log1p(-np.exp(-2 * kappa))
    logs = np.log(fit.weights_) + constants + kappa * (X @ fit.means_.T)
    np.testing.assert_allclose(fit.score_samples(X), np.log(np.exp(logs).sum(axis=1)), rtol=1e-9, atol=1e-9)
    shares = fit.predict_proba(X)
    np.testing.assert_allclose(fit.weights_, shares.mean(axis=0), rtol=1e-3)
    cosines = (shares * (X @ fit.means_.T)).sum(axis=0) / shares.sum(axis=0)
    np.testing.assert_allclose(1 / np.tanh(kappa) - 1 / kappa, cosines, rtol=1e-3)
    # Two numbers of each direction, a concentration, and two free proportions.
    assert fit.aic(X) == pytest.approx(2 * (3 * 3 + 2) - 2 * fit.score_samples(X).sum())
    drawn, of = fit.sample(30_000)
    for c in range(3):
        assert (drawn[of == c] @ fit.means_[c]).mean() == pytest.approx(cosines[c], abs=0.01)
    fit.save(tmp_path / "m.cmx")
    loaded = kind.load(tmp_path / "m.cmx")
    assert (loaded.metric, loaded.covariance_type) == ("cosine", "spherical")
    np.testing.assert_array_equal(loaded.score_samples(X), fit.score_samples(X))
