"""Priors of Gaussian mixtures, against scikit-learn and closed forms."""

import warnings

import numpy as np
import pytest
import sklearn.mixture
from conftest import blobs

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
