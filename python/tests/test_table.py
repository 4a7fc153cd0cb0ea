"""Mixtures of tables: counts, categories and numbers."""

import pickle

import numpy as np
import pandas as pd
import pytest

import coremix
from coremix import TableMixture


def table(n=900, seed=0):
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 3
    shares = np.array([[0.8, 0.1, 0.1, 0.0], [0.1, 0.8, 0.1, 0.0], [0.1, 0.1, 0.7, 0.1]])
    category = np.array([rng.choice(4, p=shares[g]) for g in group])
    X = np.c_[rng.normal(1990.0 + 10 * group), category, rng.poisson(np.array([1, 5, 20])[group]), rng.normal(size=n)]
    return X, group


def test_groups_are_found_and_said():
    X, group = table()
    mixture = TableMixture(3, counts=[2], categories=[1], random_state=1).fit(X)
    labels = mixture.predict(X)
    order = [np.bincount(labels[group == g], minlength=3).argmax() for g in range(3)]
    assert sorted(order) == [0, 1, 2] and np.mean(np.array(order)[group] == labels) > 0.99
    np.testing.assert_allclose(mixture.means_[order, 0], [1990, 2000, 2010], atol=0.3)
    np.testing.assert_allclose(mixture.variances_[order, 2], [1, 5, 20], rtol=0.15)
    assert mixture.probabilities_[1].shape == (3, 4)
    np.testing.assert_allclose(mixture.probabilities_[1].sum(axis=1), 1)
    assert mixture.probabilities_[1][order[2], 2] > 0.6
    apart = mixture.divergences()
    assert apart.shape == (3, 4) and (apart >= 0).all()
    # The last column says nothing.
    assert (apart[:, 3] < 0.05).all() and (apart[:, 0] > 0.3).all()
    np.testing.assert_allclose(mixture.predict_proba(X).sum(axis=1), 1)
    assert mixture.bic(X) < TableMixture(1, counts=[2], categories=[1]).fit(X).bic(X)
    drawn, components = mixture.sample(200)
    assert drawn.shape == (200, 4) and np.isin(drawn[:, 1], range(4)).all() and (drawn[:, 2] % 1 == 0).all()
    assert components.max() < 3


def test_densities_are_those_of_the_parameters():
    X, _ = table(300, 3)
    mixture = TableMixture(2, counts=[2], categories=[1], random_state=0).fit(X)
    from scipy.stats import norm, poisson

    logs = np.log(mixture.weights_) + poisson.logpmf(X[:, [2]], mixture.variances_[:, 2])
    for j in (0, 3):
        logs = logs + norm.logpdf(X[:, [j]], mixture.means_[:, j], np.sqrt(mixture.variances_[:, j]))
    logs = logs + np.log(mixture.probabilities_[1][:, X[:, 1].astype(int)].T)
    np.testing.assert_allclose(mixture.score_samples(X), np.logaddexp.reduce(logs, axis=1), rtol=1e-9)


def test_names_of_columns_and_files(tmp_path):
    X, _ = table()
    frame = pd.DataFrame(X, columns=["year", "kind", "visits", "noise"])
    by_name = TableMixture(3, counts=["visits"], categories=["kind"], random_state=0).fit(frame)
    by_number = TableMixture(3, counts=[2], categories=(1,), random_state=0).fit(X)
    np.testing.assert_array_equal(by_name.means_, by_number.means_)
    by_name.save(tmp_path / "model.cmx")
    again = TableMixture.load(tmp_path / "model.cmx")
    assert (again.counts, again.categories) == (["visits"], ["kind"])
    np.testing.assert_array_equal(again.predict_proba(frame), by_name.predict_proba(frame))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(by_name)).divergences(), by_name.divergences())
    by_number.save(tmp_path / "model.cmx")
    assert TableMixture.load(tmp_path / "model.cmx").categories == [1]
    with pytest.raises(ValueError, match="TableMixture"):
        coremix.GaussianMixture.load(tmp_path / "model.cmx")


def test_missing_values():
    X, group = table()
    holes = X.copy()
    holes[np.random.default_rng(2).random(X.shape) < 0.2] = np.nan
    with pytest.raises(ValueError, match="allow_missing"):
        TableMixture(3, counts=[2], categories=[1]).fit(holes)
    mixture = TableMixture(3, counts=[2], categories=[1], allow_missing=True, random_state=0).fit(holes)
    labels = mixture.predict(holes)
    order = [np.bincount(labels[group == g], minlength=3).argmax() for g in range(3)]
    assert np.mean(np.array(order)[group] == labels) > 0.9
    filled = mixture.impute(holes)
    assert not np.isnan(filled).any()


@pytest.mark.parametrize(
    "parameters, what",
    [
        ({"counts": [9]}, "0 to 3"),
        ({"counts": [-1]}, "0 to 3"),
        ({"counts": ["a"]}, "no names"),
        ({"counts": "ab"}, "list of columns"),
        ({"counts": 1}, "list of columns"),
        ({"counts": [1.5]}, "number or the name"),
        ({"counts": [True]}, "number or the name"),
        ({"counts": [1], "categories": [1]}, "both"),
        ({"counts": [0]}, "count"),
        ({"categories": [3]}, "categories"),
        ({"standardise": True}, "standardise"),
    ],
)
def test_wrong_parameters_are_told(parameters, what):
    X, _ = table(60)
    X[0, 0] = 0.5
    with pytest.raises((TypeError, ValueError), match=what):
        TableMixture(2, **parameters).fit(X)
