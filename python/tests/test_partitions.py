"""EM on partitions: the same bits however rows are split, and the steps of the core."""

import pickle

import numpy as np
import pytest

import coremix
from coremix import partitions
from conftest import blobs

MIXTURES = ["tied-spherical", "spherical", "diag"]


def step(parts, model, **settings):
    return coremix.merge([coremix.stats(part, model, **settings) for part in parts])


@pytest.mark.parametrize("width", [None, 1, 3])
@pytest.mark.parametrize("kind", MIXTURES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_split_and_order_gives_the_same_bytes(dtype, kind, width):
    X = blobs(2_000, dtype=dtype)
    model = coremix.GaussianMixture(7, covariance_type=kind, random_state=0, max_iter=2).fit(X)
    whole = coremix.stats(X, model, width=width)
    rng = np.random.default_rng(1)
    for _ in range(5):
        shuffled = X[rng.permutation(len(X))]
        parts = np.split(shuffled, np.sort(rng.integers(len(X), size=9)))
        assert step(parts, model, width=width) == whole
        first = step(parts[:4], model, width=width)
        assert coremix.merge([step(parts[4:], model, width=width), first]) == whole


def naive(x, weights, means, variances, proportions):
    """An iteration of EM, as it is written in books."""
    logs = np.log(proportions) - 0.5 * np.sum(
        np.log(2 * np.pi * variances) + (x[:, None] - means) ** 2 / variances, axis=2
    )
    best = logs.max(axis=1, keepdims=True)
    shares = np.exp(logs - best)
    density = best[:, 0] + np.log(shares.sum(axis=1))
    shares *= (weights / shares.sum(axis=1))[:, None]
    masses = shares.sum(axis=0)
    new = shares.T @ x / masses[:, None]
    squares = np.stack([share @ (x - mean) ** 2 for share, mean in zip(shares.T, new)]) / masses[:, None]
    return weights @ density, masses, new, squares


def same_as_naive(x, weights, model, digits=1e-11):
    kind, (k, d) = model.covariance_type, model.means_.shape
    variances = np.broadcast_to(np.reshape(model.covariances_, (k, -1)), (k, d))
    energy, masses, means, squares = naive(x, weights, model.means_, variances, model.weights_)
    parts = [coremix.stats(x[i::3], model, weights[i::3]) for i in range(3)]
    merged = coremix.merge(parts)
    said = partitions.describe(merged)
    # Each term of a sum is cut off at 2^-60 of its unit, which is 2^20 for the free energy, and up to twice the distance of
    # the means for coordinates.
    cut = len(x) * 2.0**-60
    unit = 2 * np.abs(model.means_ - model.means_[0]).max()
    assert said["rows"] == len(x)
    assert said["weight"] == pytest.approx(weights.sum(), rel=digits / 100, abs=cut)
    assert said["free_energy"] == pytest.approx(energy, rel=digits / 10, abs=cut * 2**20)
    np.testing.assert_allclose(said["masses"], masses, rtol=digits, atol=cut)
    lost = cut / masses.min()
    new = coremix.update(model, merged).parameters()
    np.testing.assert_allclose(new["means"], means, rtol=digits, atol=digits + lost * unit)
    shares = masses / masses.sum()
    expected = {
        "diag": squares,
        "spherical": squares.mean(axis=1),
        "tied-spherical": shares @ squares.mean(axis=1),
    }[kind]
    np.testing.assert_allclose(new["covariances"], expected, rtol=10 * digits, atol=lost * unit**2)
    expected = shares if kind != "tied-spherical" else np.full(k, 1 / k)
    np.testing.assert_allclose(new["weights"], expected, rtol=digits, atol=lost)


@pytest.mark.parametrize("kind", MIXTURES)
def test_an_iteration_is_the_naive_one(kind):
    x = blobs(1_500)
    weights = np.random.default_rng(0).uniform(0, 5, len(x))
    model = coremix.GaussianMixture(5, covariance_type=kind, random_state=0, max_iter=1).fit(x)
    same_as_naive(x, weights, model)


@pytest.mark.parametrize("kind", MIXTURES)
def test_rows_may_be_so_far_away(kind):
    """2^20 times as far as the means lie apart, and not much more."""
    x = blobs(600)
    model = coremix.GaussianMixture(5, covariance_type=kind, random_state=0, max_iter=1).fit(x)
    means = model.means_
    apart = np.abs(means - means[0]).max(axis=0)[0]

    def with_far_row(times):
        far = x.copy()
        far[7, 0] = means[:, 0].max() + times * 2**20 * apart
        return far

    # The new mean of that component is a millionth of the way there, and the others keep their digits.
    same_as_naive(with_far_row(0.99), np.ones(len(x)), model, digits=1e-9)
    # The unit is a power of two: up to twice as far.
    with pytest.raises(ValueError, match="row 7 is too far away"):
        coremix.stats(with_far_row(2.1), model)


@pytest.mark.parametrize("kind", MIXTURES)
def test_a_row_of_weight_0_may_be_anywhere(kind):
    x = blobs(600)
    model = coremix.GaussianMixture(5, covariance_type=kind, random_state=0, max_iter=1).fit(x)
    weights = np.where(np.arange(len(x)) == 7, 0.0, 1.0)
    far = x.copy()
    far[7] = 1e20
    assert coremix.stats(far, model, weights) == coremix.stats(x, model, weights)


@pytest.mark.parametrize("kind", MIXTURES)
def test_weights_of_any_size(kind):
    """From 1e-9 to 1e9, all of them or side by side."""
    x = blobs(1_500)
    model = coremix.GaussianMixture(5, covariance_type=kind, random_state=0, max_iter=1).fit(x)
    for exponents in [np.full(len(x), 9.0), np.full(len(x), -9.0), np.random.default_rng(0).uniform(-9, 9, len(x))]:
        same_as_naive(x, 10.0**exponents, model)


def test_iterations_raise_the_free_energy_to_that_of_a_fit():
    x = blobs(3_000, clusters=8)
    start = coremix.GaussianMixture(8, random_state=2, max_iter=1, merge_rows=False).fit(x)
    model, energies = partitions.model_of(start), []
    parts = np.array_split(x, 7)
    for _ in range(200):
        merged = step(parts, model)
        energies.append(partitions.describe(merged)["free_energy"])
        model = pickle.loads(pickle.dumps(coremix.update(model, merged)))
    assert all(b >= a - 1e-9 * abs(a) for a, b in zip(energies, energies[1:]))
    fit = coremix.GaussianMixture(8, random_state=2, max_iter=1000, tol=1e-12, merge_rows=False).fit(x)
    assert energies[-1] / len(x) == pytest.approx(fit.lower_bound_, rel=1e-6)


def test_k_means_is_width_one():
    x = blobs(3_000, clusters=8)
    k_means = coremix.KMeans(8, random_state=2).fit(x)
    masses = partitions.describe(coremix.stats(x, k_means))["masses"]
    np.testing.assert_array_equal(masses, np.bincount(k_means.labels_, minlength=8))
    means = coremix.update(k_means, coremix.stats(x, k_means)).parameters()["means"]
    expected = [x[k_means.labels_ == c].mean(axis=0) for c in range(8)]
    np.testing.assert_allclose(means, expected, rtol=1e-12)


def test_refusals():
    x = blobs(500)
    model = coremix.GaussianMixture(3, random_state=0).fit(x)
    other = coremix.GaussianMixture(3, random_state=0).fit(x * 2)
    own = coremix.stats(x, model)
    with pytest.raises(ValueError, match="different models"):
        coremix.merge([own, coremix.stats(x, other)])
    with pytest.raises(ValueError, match="of another model"):
        coremix.update(other, own)
    with pytest.raises(ValueError, match="no parts"):
        coremix.merge([])
    with pytest.raises(ValueError, match="no row has positive weight"):
        coremix.update(model, coremix.stats(x, model, np.zeros(len(x))))
    for damaged in [b"", own[:-1], own + b"0", b"x" + own[1:]]:
        with pytest.raises(ValueError, match="not the bytes"):
            coremix.merge([damaged])
    for place in range(len(own)):
        damaged = bytearray(own)
        damaged[place] = 0xFF
        try:
            coremix.update(model, bytes(damaged))
        except ValueError:
            pass
    with pytest.raises(ValueError, match="row 7 is too far away"):
        far = x.copy()
        far[7] = 1e20
        coremix.stats(far, model)
    with pytest.raises(ValueError, match="weight of row 3 is -1"):
        coremix.stats(x, model, np.where(np.arange(len(x)) == 3, -1.0, 1.0))
    with pytest.raises(ValueError, match="2 columns, but 5 expected"):
        coremix.stats(x[:, :2], model)
    with pytest.raises(ValueError, match="row 7, column 0 is NaN.*coremix.sample.*allow_missing=True"):
        hole = x.copy()
        hole[7, 0] = np.nan
        coremix.stats(hole, model)
    for kind in ["full", "tied"]:
        with pytest.raises(ValueError, match="sums of variances alone.*coremix.sample"):
            coremix.stats(x, coremix.GaussianMixture(3, covariance_type=kind).fit(x))
    with pytest.raises(ValueError, match="not for a Dirichlet process"):
        coremix.stats(x, coremix.BayesianGaussianMixture(3).fit(x))
    with pytest.raises(ValueError, match="on a sketch"):
        coremix.stats(x, coremix.SparsifiedGmm(3, n_coordinates=2).fit(x))


def test_coresets():
    x = blobs(5_000)
    rows, weights = coremix.sample(x, 500, seed=3)
    assert rows.shape == (len(weights), 5) and len(weights) <= 500
    again, _ = coremix.sample(x, 500, seed=3)
    np.testing.assert_array_equal(rows, again)
    assert not np.array_equal(coremix.sample(x, 500, seed=4)[0], rows)
    assert set(map(tuple, rows)) <= set(map(tuple, x))
    # Expected weights are the weights.
    totals = [coremix.sample(x, 500, seed)[1].sum() for seed in range(200)]
    assert np.mean(totals) == pytest.approx(5_000, rel=0.01)
    # Coresets of partitions are a coreset of all.
    parts = [coremix.sample(part, 300, seed) for seed, part in enumerate(np.array_split(x, 4))]
    rows, weights = (np.concatenate(each) for each in zip(*parts))
    smaller, fewer = coremix.sample(rows, 400, 9, weights)
    assert len(smaller) <= 400
    found = coremix.KMeans(6, random_state=0).fit(smaller, sample_weight=fewer)
    full = coremix.KMeans(6, random_state=0).fit(x)
    assert -found.score(x) < 1.1 * full.inertia_
    with pytest.raises(ValueError, match="size = 0"):
        coremix.sample(x, 0, 0)


def test_coresets_keep_missing_values():
    x = blobs(4_000)
    holes = np.where(np.random.default_rng(0).random(x.shape) < 0.1, np.nan, x)
    with pytest.raises(ValueError, match="NaN"):
        coremix.sample(holes, 500, 0)
    parts = [coremix.sample(part, 500, seed, allow_missing=True) for seed, part in enumerate(np.array_split(holes, 3))]
    rows, weights = (np.concatenate(each) for each in zip(*parts))
    assert np.isnan(rows).mean() == pytest.approx(0.1, abs=0.03) and weights.sum() == pytest.approx(4_000, rel=0.1)
    of_coreset, of_all = (
        coremix.GaussianMixture(6, covariance_type="full", allow_missing=True, random_state=0) for _ in range(2)
    )
    of_coreset.fit(rows, sample_weight=weights)
    assert of_coreset.score(holes) > of_all.fit(holes).score(holes) - 0.1
    whole, all_weights = coremix.sample(x, 500, 0, allow_missing=True)
    for found, expected in zip((whole, all_weights), coremix.sample(x, 500, 0)):
        np.testing.assert_array_equal(found, expected)
