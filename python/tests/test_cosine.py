"""KMeans(metric="cosine"): spherical k-means, against rows that are brought to length 1 by hand."""

import pickle

import numpy as np
import pytest
from coremix import KMeans, LazyKMeans, LwcsKMeans, Model
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


@pytest.mark.parametrize("estimator", [LazyKMeans, LwcsKMeans])
def test_the_other_estimators_have_it(rays, estimator):
    X, labels = rays
    fit = estimator(6, metric="cosine", n_init=3, random_state=1).fit(X)
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
