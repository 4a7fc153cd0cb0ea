"""Priors of Gaussian mixtures, against scikit-learn and closed forms."""

import warnings

import numpy as np
import pytest
import sklearn.mixture
from conftest import blobs
from sklearn.exceptions import ConvergenceWarning

import coremix

KINDS = ["full", "tied", "diag", "spherical"]


@pytest.mark.parametrize("kind", KINDS)
def test_reg_covar_is_that_of_scikit_learn(kind):
    X = blobs(600)
    ours = coremix.GaussianMixture(1, covariance_type=kind, reg_covar=0.5, random_state=0).fit(X)
    theirs = sklearn.mixture.GaussianMixture(1, covariance_type=kind, reg_covar=0.5).fit(X)
    np.testing.assert_allclose(ours.covariances_, theirs.covariances_, rtol=1e-9, atol=1e-9)
    for reg_covar in (1e-6, 1e-2):
        settings = {"covariance_type": kind, "reg_covar": reg_covar, "tol": 1e-9, "max_iter": 2_000, "random_state": 0}
        ours = coremix.GaussianMixture(6, **settings).fit(X)
        theirs = sklearn.mixture.GaussianMixture(6, **settings, means_init=ours.means_, weights_init=ours.weights_)
        theirs.precisions_init = ours.precisions_
        theirs.fit(X)
        np.testing.assert_allclose(ours.covariances_, theirs.covariances_, atol=2e-2 * np.abs(theirs.covariances_).max())
        assert ours.score(X) == pytest.approx(theirs.score(X), abs=1e-3)


@pytest.mark.parametrize("columns", [1, 4, 16, 64])
@pytest.mark.parametrize("rows", ["equal", "narrow", "zeros"])
@pytest.mark.parametrize("kind", [*KINDS, "factors"])
def test_equal_and_narrow_rows_keep_their_weight(kind, rows, columns):
    rng = np.random.default_rng(0)
    if kind == "factors" and columns == 1:
        pytest.skip("factors are fewer than columns")
    if rows == "zeros":
        X = np.exp(rng.normal(size=(560, columns)) + 3)
        X[:200] = 0
    else:
        X = rng.normal(size=(560, columns))
        X[500:] = 30 + (0.01 * X[500:] if rows == "narrow" else 0)
    tol = 1e-6 if kind == "factors" else 1e-10
    settings = {"covariance_type": kind, "reg_covar": 1e-3, "tol": tol, "max_iter": 2_000, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("error", message=".* floor", category=ConvergenceWarning)
        ours = coremix.GaussianMixture(2, **settings, n_factors=1 if kind == "factors" else None).fit(X)
    for phase in ours.report_["phases"]:
        energies = np.array(phase["free_energies"])
        assert (np.diff(energies) >= -1e-9 * np.maximum(np.abs(energies[:-1]), 560)).all()
    assert ours.lower_bound_ <= ours.score(X) + 1e-9
    if kind == "factors":
        least = (ours.noise_variance_ + (ours.loadings_**2).sum(axis=2)).min()
        assert least == pytest.approx(1e-3, rel=0.2) or rows == "zeros" and least > 0.99e-3
        return
    theirs = sklearn.mixture.GaussianMixture(2, **settings, means_init=ours.means_, weights_init=ours.weights_)
    theirs.precisions_init = ours.precisions_
    theirs.fit(X)
    np.testing.assert_allclose(ours.weights_, theirs.weights_, atol=1e-4)
    scale = np.abs(theirs.covariances_).max()
    np.testing.assert_allclose(ours.covariances_, theirs.covariances_, rtol=1e-3, atol=1e-5 * scale if rows == "zeros" else 1e-9)


def test_reg_covar_of_a_table_is_added_to_each_component():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(500, 3)), rng.normal(size=(60, 3)) + [40, 0, 0]]
    for kind in ["full", "tied", "diag", "spherical"]:
        without, ridge = (
            coremix.TableMixture(2, covariance_type=kind, random_state=0, tol=1e-10, reg_covar=more).fit(X) for more in (0, 0.1)
        )
        order = [np.argsort(one.weights_) for one in (without, ridge)]
        more = ridge.variances_[order[1]] - without.variances_[order[0]]
        np.testing.assert_allclose(more, 0.1, atol=1e-6)


def test_prior_rows_keep_covariances_proper():
    X = np.random.default_rng(0).normal(size=(24, 9)) + 20 * (np.arange(24) % 3)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixture = coremix.GaussianMixture(3, covariance_type="full", prior_rows=1, random_state=0).fit(X)
    assert mixture.report_["at_floor"] == 0
    least = X.var(axis=0).min() * 3 ** (-2 / 9) / 9
    assert min(np.linalg.eigvalsh(one).min() for one in mixture.covariances_) > 0.99 * least
    one = coremix.GaussianMixture(1, covariance_type="diag", prior_rows=6, random_state=0).fit(X)
    np.testing.assert_allclose(one.covariances_[0], X.var(axis=0), rtol=1e-9)


@pytest.mark.parametrize("name, value", [("prior_rows", -1.0), ("reg_covar", -1e-6), ("reg_covar", np.nan), ("prior_rows", "1")])
def test_wrong_values_are_named(name, value):
    with pytest.raises((TypeError, ValueError), match=f"{name} = "):
        coremix.GaussianMixture(2, **{name: value}).fit(blobs(50))


MIXTURES = [coremix.GaussianMixture, coremix.VcGmm, coremix.DGmm, coremix.SparsifiedGmm]


@pytest.mark.parametrize("kind", MIXTURES)
def test_all_mixtures_have_rows_in_advance(kind):
    """One component, whose variances are known: sums of squares, and those of the rows in advance."""
    X = blobs(200, 4, 1)
    own = {"covariance_type": "diag", "merge_rows": False, "random_state": 0}
    if kind is coremix.VcGmm:
        own["coreset_size"] = "all"
    if kind is coremix.SparsifiedGmm:
        own["n_coordinates"] = 4
    variance, n = X.var(axis=0), len(X)
    found = kind(1, prior_rows=50, prior_variance=3.0, **own).fit(X)
    if kind is coremix.SparsifiedGmm:
        assert found.covariances_.sum() == pytest.approx(((n * variance + 50 * 3.0) / (n + 50)).sum(), rel=1e-6)
    else:
        np.testing.assert_allclose(found.covariances_[0], (n * variance + 50 * 3.0) / (n + 50), rtol=1e-6)
        ridge = kind(1, reg_covar=0.7, **own).fit(X)
        np.testing.assert_allclose(ridge.covariances_[0], variance + 0.7, rtol=1e-6)
    two = kind(2, prior_proportions=1e6, **own).fit(X)
    np.testing.assert_allclose(two.weights_, 0.5, atol=1e-3)


@pytest.mark.parametrize("kind", [coremix.GaussianMixture, coremix.VcGmm, coremix.DGmm, coremix.TableMixture])
def test_a_variance_needs_its_rows(kind):
    with pytest.raises(ValueError, match="prior_variance = 2.0.*prior_rows"):
        kind(2, prior_variance=2.0, covariance_type="full").fit(blobs(50))
    with pytest.raises(ValueError, match="prior_variance = -2"):
        kind(2, prior_variance=-2.0, prior_rows=1, covariance_type="full").fit(blobs(50))


def test_few_rows_for_factors_warn():
    X = np.random.default_rng(0).normal(size=(12, 9)) + 40 * np.repeat(np.arange(4), 3)[:, None]
    own = {"covariance_type": "factors", "n_factors": 3, "random_state": 0, "max_iter": 2_000}
    for kind in (coremix.GaussianMixture, coremix.DGmm):
        with pytest.warns(ConvergenceWarning, match="so few rows that its factors go through all of them"):
            kind(4, **own).fit(X)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*floor", category=ConvergenceWarning)
            kind(4, prior_rows=1, **own).fit(X)
            kind(2, **own).fit(blobs(400, 9, 2))
