"""Mixtures of tables: counts, categories and numbers."""

import pickle

import numpy as np
import pandas as pd
import polars
import pyarrow
import pyarrow.dataset
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
    filled, expected = mixture.impute(holes), mixture.impute(holes, expected=True)
    assert not np.isnan(filled).any()
    TableMixture(3, counts=[2], categories=[1]).fit(filled)
    # By the posteriors: the likeliest category, and the nearest count.
    shares, missing = mixture.predict_proba(holes), np.isnan(holes)
    likeliest = mixture.categories_[1][(shares @ mixture.probabilities_[1]).argmax(axis=1)]
    np.testing.assert_array_equal(filled[missing[:, 1], 1], likeliest[missing[:, 1]])
    np.testing.assert_array_equal(expected[missing[:, 1], 1], likeliest[missing[:, 1]])
    counts = (shares @ mixture.variances_[:, 2])[missing[:, 2]]
    np.testing.assert_allclose(expected[missing[:, 2], 2], counts, rtol=1e-9)
    np.testing.assert_array_equal(filled[missing[:, 2], 2], counts.round())
    np.testing.assert_array_equal(filled[:, [0, 3]], expected[:, [0, 3]])


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


def mixed(n=600, seed=4):
    """Two numbers that are correlated, a count and a category."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    both = rng.normal(size=n)
    tall = 170 + 8 * group + both + 0.5 * rng.normal(size=n)
    heavy = 60 - 6 * both + 3 * rng.normal(size=n)
    X = np.c_[tall, rng.poisson(np.array([1, 6])[group]), heavy, rng.random(n) < np.array([0.2, 0.8])[group]]
    return X, group


@pytest.mark.parametrize("kind, shape", [("full", (2, 2, 2)), ("tied", (2, 2)), ("diag", (2, 2)), ("spherical", (2,)), ("factors", (2, 2, 2))])
def test_numbers_have_a_covariance(kind, shape, tmp_path):
    from scipy.stats import multivariate_normal, poisson

    X, group = mixed()
    settings = {"counts": [1], "categories": [3], "covariance_type": kind, "random_state": 0}
    settings |= {"n_factors": 1} if kind == "factors" else {}
    mixture = TableMixture(2, **settings).fit(X)
    assert mixture.covariances_.shape == shape and mixture.probabilities_[3].shape == (2, 2)
    matrices = mixture.covariances_
    if kind == "tied":
        matrices = np.broadcast_to(matrices, (2, 2, 2))
    elif kind in ("diag", "spherical"):
        matrices = np.array([np.eye(2) * one for one in matrices])
    logs = np.log(mixture.weights_) + poisson.logpmf(X[:, [1]], mixture.variances_[:, 1])
    logs = logs + np.log(mixture.probabilities_[3][:, X[:, 3].astype(int)].T)
    numbers = X[:, [0, 2]]
    own = zip(mixture.means_[:, [0, 2]], matrices, strict=True)
    logs = logs + np.array([multivariate_normal.logpdf(numbers, mean, matrix) for mean, matrix in own]).T
    np.testing.assert_allclose(mixture.score_samples(X), np.logaddexp.reduce(logs, axis=1), rtol=1e-8)
    assert mixture.divergences().shape == (2, 4)
    mixture.save(tmp_path / "model.cmx")
    again = TableMixture.load(tmp_path / "model.cmx")
    assert (again.counts, again.categories, again.covariance_type) == ([1], [3], kind)
    np.testing.assert_array_equal(again.predict_proba(X), mixture.predict_proba(X))
    np.testing.assert_array_equal(again.covariances_, mixture.covariances_)
    np.testing.assert_array_equal(again.fit(X).means_, again.set_params(random_state=0).fit(X).means_)
    with pytest.raises(ValueError, match="TableMixture"):
        coremix.GaussianMixture.load(tmp_path / "model.cmx")
    # Fitted again without it, no covariances are left.
    again.set_params(covariance_type=None, n_factors=None).fit(X)
    with pytest.raises(AttributeError, match="variances_"):
        again.covariances_  # noqa: B018


@pytest.mark.parametrize("rows", [600, 12_000])
@pytest.mark.parametrize("column, value", [("visits", -1), ("visits", 0.5), ("kind", -1), ("kind", 0.5)])
def test_a_number_of_another_kind_is_named(column, value, rows):
    # Equal rows are merged where there are few.
    frame = pd.DataFrame(mixed(rows)[0], columns=["tall", "visits", "heavy", "kind"])
    frame.loc[123, column] = value
    with pytest.raises(ValueError, match=f'row 123, column "{column}" is {value}; it must be'):
        TableMixture(2, counts=["visits"], categories=["kind"], random_state=0).fit(frame)


def test_a_row_that_is_too_far_is_named():
    X = mixed()[0].astype(np.float32)
    X[77, 0] = 1e20
    with pytest.raises(ValueError, match=r"row 77 is 1\.0e20 from others"):
        coremix.KMeans(2).fit(X)


@pytest.mark.parametrize("kind", [None, "full"])
def test_parts_of_a_table(kind, tmp_path):
    X, _ = mixed()
    frame = pd.DataFrame(X, columns=["tall", "visits", "heavy", "kind"])
    mixture = TableMixture(2, counts=["visits"], categories=["kind"], covariance_type=kind, random_state=0).fit(frame)
    part = mixture.marginal(["heavy", "kind"])
    assert (part.counts, part.categories, list(part.feature_names_in_)) == ([], ["kind"], ["heavy", "kind"])
    given = mixture.condition(["kind", "visits"], [1, 4])
    known = mixture.marginal(["kind", "visits"])
    np.testing.assert_allclose(given.weights_, known.predict_proba(pd.DataFrame([[1, 4]], columns=["kind", "visits"]))[0], rtol=1e-9)
    # A joint density is that of the known values times that of the others.
    row = pd.DataFrame([[171.0, 4.0, 58.0, 1.0]], columns=frame.columns)
    whole = known.score_samples(row[["kind", "visits"]]) + given.score_samples(row[["tall", "heavy"]])
    np.testing.assert_allclose(mixture.score_samples(row), whole, rtol=1e-9)
    given.save(tmp_path / "part.cmx")
    assert TableMixture.load(tmp_path / "part.cmx").predict(row[["tall", "heavy"]])[0] == given.predict(row[["tall", "heavy"]])[0]


def test_correlated_numbers_tell_groups_apart():
    X, group = mixed()
    alone = TableMixture(2, counts=[1], categories=[3], random_state=0).fit(X)
    together = TableMixture(2, counts=[1], categories=[3], covariance_type="full", random_state=0).fit(X)
    assert together.bic(X) < alone.bic(X)
    labels = together.predict(X)
    assert max(np.mean(labels == group), np.mean(labels != group)) > 0.95
    holes = X.copy()
    holes[::3, 0] = np.nan
    errors = {}
    for kind in ("full", None):
        mixture = TableMixture(2, counts=[1], categories=[3], covariance_type=kind, allow_missing=True, random_state=0)
        errors[kind] = np.abs(mixture.fit(holes).impute(holes)[::3, 0] - X[::3, 0]).mean()
    assert errors["full"] < 0.9 * errors[None], errors


@pytest.mark.parametrize(
    "parameters, what",
    [
        ({"covariance_type": "tied-spherical"}, "covariance_type"),
        ({"covariance_type": "whole"}, "covariance_type"),
        ({"covariance_type": "factors"}, "n_factors"),
        ({"covariance_type": "factors", "n_factors": 2}, "factors"),
        ({"n_factors": 1}, "n_factors"),
        ({"prior_rows": -1.0}, "prior_rows"),
        ({"reg_covar": np.nan}, "reg_covar"),
    ],
)
def test_wrong_covariances_are_told(parameters, what):
    X, _ = mixed(60)
    with pytest.raises((TypeError, ValueError), match=what):
        TableMixture(2, counts=[1], categories=[3], **parameters).fit(X)


def test_priors_are_those_of_the_numbers():
    X, _ = mixed(40)
    settings = {"counts": [1], "categories": [3], "random_state": 0}
    with_rows = TableMixture(6, covariance_type="full", prior_rows=1, **settings).fit(X)
    assert with_rows.report_["at_floor"] == 0
    ridge = TableMixture(1, covariance_type="full", reg_covar=2.0, **settings).fit(X)
    np.testing.assert_allclose(ridge.covariances_[0], np.cov(X[:, [0, 2]].T, bias=True) + 2 * np.eye(2), rtol=1e-9)


@pytest.mark.parametrize("codes", [[1, 2, 3, 4], [1998, 2004, 2011, 2024], [501, 10001, 60601, 94110], [94110, 7, 60601, 501]])
@pytest.mark.parametrize("kind", [None, "full"])
def test_codes_are_labels(codes, kind):
    X, _ = table(600)
    Y = X.copy()
    Y[:, 1] = np.array(codes)[X[:, 1].astype(int)]
    settings = {"counts": [2], "categories": [1], "covariance_type": kind, "merge_rows": False, "random_state": 0}
    one, other = TableMixture(3, **settings).fit(X), TableMixture(3, **settings).fit(Y)
    assert one.bic(X) == pytest.approx(other.bic(Y), rel=1e-9)
    np.testing.assert_array_equal(one.predict(X), other.predict(Y))
    np.testing.assert_array_equal(other.categories_[1], sorted(codes))
    places = np.searchsorted(sorted(codes), codes)
    np.testing.assert_allclose(other.probabilities_[1][:, places], one.probabilities_[1], atol=1e-9)


def test_rows_of_an_identifier_are_few_categories(tmp_path):
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=500), rng.choice(10**15, 500, replace=False)]
    mixture = TableMixture(2, categories=[1], random_state=0).fit(X)
    assert mixture.probabilities_[1].shape == (2, 500)
    mixture.save(tmp_path / "model.cmx")
    again = TableMixture.load(tmp_path / "model.cmx")
    np.testing.assert_array_equal(again.categories_[1], np.sort(X[:, 1]))
    np.testing.assert_array_equal(again.score_samples(X), mixture.score_samples(X))


@pytest.mark.parametrize("kind", [None, "full"])
@pytest.mark.parametrize("column, value", [(2, -1.5), (2, 0.5), (1, 1.5), (1, -1)])
def test_models_take_what_fits_take(kind, column, value):
    X, _ = table(300)
    mixture = TableMixture(2, counts=[2], categories=[1], covariance_type=kind, allow_missing=True, random_state=0).fit(X)
    bad = X.copy()
    bad[7, column] = value
    say = f"row 7, column {column} is {value}; it must be"
    for ask in ("predict", "predict_proba", "predict_top", "score", "score_samples", "impute", "bic", "sizes"):
        with pytest.raises(ValueError, match=say):
            getattr(mixture, ask)(bad)
    for ask in (mixture.predictor(), mixture.predictor().log_density):
        with pytest.raises(ValueError, match="it must be"):
            ask(bad[7])
    # A category that was not seen is as unlikely in all components.
    unseen, without = X[:1].copy(), X[:1].copy()
    unseen[0, 1], without[0, 1] = 17, np.nan
    np.testing.assert_allclose(mixture.score_samples(unseen), mixture.score_samples(without) - 27.6)
    np.testing.assert_allclose(mixture.predict_proba(unseen), mixture.predict_proba(without))


def test_codes_have_no_distances():
    X, _ = table(300)
    mixture = TableMixture(2, counts=[2], categories=[1], random_state=0).fit(X)
    for ask in (lambda: mixture.medoids(X), lambda: mixture.predict_top(X, 2, return_distance=True)):
        with pytest.raises(ValueError, match="labels"):
            ask()
    with pytest.raises(ValueError, match="distances"):
        mixture.predictor().nearest(X[0])
    assert mixture.predictor()(X[0]) == mixture.predict(X[:1])[0]
    # Numbers and counts have.
    numbers = TableMixture(2, counts=[1], random_state=0).fit(X[:, [0, 2]])
    assert (numbers.medoids(X[:, [0, 2]]) >= 0).all()
    found = mixture.explain(top=2)
    apart = mixture.divergences()
    assert [e["column"] for e in found[:2]] == np.argsort(-apart[0])[:2].tolist()
    assert found[0]["divergence"] == apart[0].max()
    likeliest = {e["cluster"]: e for e in mixture.explain(["year", "kind", "visits", "noise"], top=4) if e["column"] == "kind"}
    for c, own in likeliest.items():
        assert own["mean"] == mixture.categories_[1][mixture.probabilities_[1][c].argmax()] == mixture.means_[c, 1]
        assert own["share"] == mixture.probabilities_[1][c].max()


def test_priors_are_asked_for():
    X = np.repeat([[0.0], [1.0], [2.0]], [719, 280, 1], axis=0)
    shares = np.array([0.719, 0.28, 0.001])
    for unit in (1, 1e-3, 1e-300 * 1e20, 1e100):
        weights = np.full(1000, unit)
        for rows in (0, 0.5, 40):
            mixture = TableMixture(1, categories=[0], prior_rows=rows, random_state=0).fit(X, sample_weight=weights)
            np.testing.assert_allclose(mixture.probabilities_[0][0], shares, rtol=1e-9)
    Z, _ = table(400)
    weights = np.random.default_rng(1).random(400) + 0.5
    for rows in (0, 2):
        settings = {"counts": [2], "categories": [1], "prior_rows": rows, "tol": 1e-9, "max_iter": 1000, "random_state": 0}
        one = TableMixture(3, **settings).fit(Z, sample_weight=weights)
        other = TableMixture(3, **settings).fit(Z, sample_weight=weights / weights.sum())
        # Restarts that end alike may change their order.
        same, turned = np.argsort(one.means_[:, 0]), np.argsort(other.means_[:, 0])
        np.testing.assert_allclose(one.probabilities_[1][same], other.probabilities_[1][turned], atol=1e-4)
        np.testing.assert_allclose(one.variances_[same], other.variances_[turned], rtol=1e-3)
    assert (one.probabilities_[1] > 1e-4).all()


@pytest.mark.parametrize("value", [3.25, 0.0, 1e6])
def test_a_constant_number_is_told(value):
    X = np.c_[np.random.default_rng(0).normal(size=600), np.full(600, value)]
    with pytest.warns(UserWarning, match="floor"):
        mixture = TableMixture(1, random_state=0).fit(X)
    assert mixture.report_["at_floor"] == 1


def test_categories_have_a_limit():
    rows = np.stack([np.arange(60_000) % 7, np.arange(60_000)], axis=1).astype(float)
    model = TableMixture(50, categories=[1], memory="64MiB")
    with pytest.raises(ValueError, match="memory = 64 MiB, where table needs"):
        model.fit(rows)


@pytest.mark.parametrize("kind", [lambda X: X, polars.from_pandas, pyarrow.Table.from_pandas, lambda X: pyarrow.dataset.dataset(pyarrow.Table.from_pandas(X))])
def test_models_and_fits_read_text_as_the_same_codes(kind):
    """Dates and words, also where the estimator is not asked itself, and where rows are read batch by batch."""
    x, group = table()
    days = np.array(["2024-01-31", "2024-05-31", "2023-12-31"])[group]
    X = pd.DataFrame({"x": x[:, 3], "day": days, "colour": np.array(["red", "blue", "green"])[group]})
    for categories in (["day"], ["day", "colour"]):
        rows = kind(X[["x", *categories]])
        mixture = TableMixture(3, categories=categories, random_state=0)
        labels = mixture.fit_predict(rows)
        assert mixture.categories_[1].tolist() == sorted(set(days))
        assert (coremix.assign(rows, mixture) == labels).all()
        assert (mixture._model.log_densities(rows) == mixture.score_samples(rows)).all()
    one = mixture.predictor()
    assert [one(X[n : n + 1]) for n in range(5)] == labels[:5].tolist()
    with pytest.raises(ValueError, match="text such as '2024-01-31' in rows without names"):
        mixture._model.predict(np.array([[0.0, "2024-01-31", "red"]], dtype=object))
