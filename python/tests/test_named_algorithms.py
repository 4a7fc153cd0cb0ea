"""Each algorithm of the core is an estimator, whose parameters are the settings that the core says it has."""

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import coremix
from conftest import blobs
from coremix import _coremix
from coremix._parameters import Parameters

# Estimators of each algorithm. A new name in the core needs one here, and a line in the guide.
NAMED = {
    "fast": [coremix.KMeans(6)],
    "k-means": [coremix.KMeans(6, algorithm="lloyd")],
    "k-means-c-prime": [coremix.KMeans(6, algorithm="k-means-c-prime"), coremix.GaussianMixture(6, c_prime=3)],
    "gmm": [coremix.GaussianMixture(6)],
    "lazy-k-means": [coremix.KMeans(6, algorithm="lazy-k-means")],
    "lwcs-k-means": [coremix.KMeans(6, algorithm="lwcs-k-means")],
    "var-gmm-s": [coremix.VcGmm(6, coreset_size="all")],
    "vc-gmm": [coremix.VcGmm(6)],
    "d-gmm": [coremix.DGmm(6)],
    "sparsified-gmm": [coremix.SparsifiedGmm(6)],
    "table": [coremix.TableMixture(6)],
    "dp-gmm": [coremix.BayesianGaussianMixture(6)],
}
ESTIMATORS = [pytest.param(name, one, id=f"{name}: {one}") for name, all in NAMED.items() for one in all]
# Parameters that are no settings of an algorithm.
OF_PYTHON = {"merge_rows", "warm_start", "n_jobs", "verbose", "callback", "compute_labels", "n_coordinates", "algorithm", "memory"}
OF_PYTHON |= {"allow_missing"}


def names_of(estimator, setting):
    """The parameters that a setting of the core is."""
    if setting == "clusters":
        return {estimator._clusters}
    if setting == "centres":
        return {estimator._initial()[0]}
    if setting == "refined" and hasattr(estimator, "init_params"):
        return {"init_params"}
    if setting == "covariance":
        return {"covariance_type"} | {"n_factors"} & set(estimator.get_params())
    if setting == "columns":
        return {"counts", "categories"}
    if setting == "prior":
        return set(estimator._names_of_prior) & set(estimator.get_params())
    if setting == "process":
        return {estimator._names.get(prior, prior) for prior in estimator._priors} & set(estimator.get_params())
    return {estimator._names.get(setting, setting)}


def test_each_name_has_an_estimator():
    assert list(NAMED) and set(NAMED) == set(_coremix.settings())


@pytest.mark.parametrize("algorithm, estimator", ESTIMATORS)
def test_parameters_are_the_settings_of_the_core(algorithm, estimator):
    settings = set(_coremix.settings(algorithm))
    if isinstance(estimator, coremix.KMeans):
        # Centres have one variance: covariances are for GaussianMixture, with c_prime=1 for hard labels. So are rows in advance.
        settings -= {"covariance", "prior"}
    expected = set().union(*(names_of(estimator, setting) for setting in settings))
    own = set(estimator.get_params())
    # A sketch has no directions.
    expected -= {"metric"} - own
    assert expected <= own
    more = own - expected - OF_PYTHON
    if isinstance(estimator, coremix.KMeans):
        # The parameters of its other algorithms are errors here.
        of_others = set().union(*(_coremix.settings(name) for name in coremix._kmeans.ALGORITHMS.values()))
        more -= of_others
    if algorithm == "gmm":
        # Its value other than None is another algorithm.
        more -= {"c_prime"}
    assert more == set()
    settings, _ = estimator.set_params(random_state=0)._core_settings(6) if algorithm not in ("dp-gmm", "table") else (None, None)
    if settings is not None:
        assert settings["algorithm"] == algorithm


# A value that no setting has: whatever reads the parameter refuses it.
WRONG = ["wrong", -1.0, None]


@pytest.mark.parametrize("algorithm, estimator", ESTIMATORS)
def test_each_parameter_is_read(algorithm, estimator):
    """A wrong value is an error that names it."""
    X = blobs(200, 3, clusters=6)
    used = set(_coremix.settings(algorithm))
    for name in estimator.get_params():
        core = next((core for core, own in estimator._names.items() if own == name and core in used), name)
        of_other_algorithms = isinstance(estimator, coremix.KMeans) and name not in OF_PYTHON and core not in used
        if name in ("warm_start", "random_state", "algorithm", "init", "verbose") or of_other_algorithms:
            continue
        wrong = clone(estimator).set_params(**{name: object()})
        with pytest.raises((TypeError, ValueError)) as raised:
            wrong.fit(X)
        if name not in ("means_init", "mean_prior", "covariance_prior"):
            assert re.match(rf"{name} = ", str(raised.value)), raised.value


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_settings_reach_the_core():
    """A value other than the default changes the model, or what the fit reports."""
    X = np.random.default_rng(0).normal(size=(1_000, 4))
    changes = {
        "c_prime": 1,
        "epsilon": 0.5,
        "greedy": True,
        "refined": True,
        "init_params": "k-means++",
        "chain": 1,
        "neighbors": 2,
        "random": 3,
        "drawn": 1,
        "coreset_size": 300,
        "covariance_type": "spherical",
        "max_iter": 1,
        "tol": 0.5,
        "stop_rule": "relative-to-free-energy",
        "n_coordinates": 2,
        "weight_concentration_prior": 1e-9,
        "mean_precision_prior": 50.0,
        "degrees_of_freedom_prior": 70.0,
        "mean_prior": 1.0,
        "covariance_prior": 3.0,
        "merges": False,
        "prior_rows": 300.0,
        "reg_covar": 0.5,
    }
    seen = set()
    for algorithm, estimators in NAMED.items():
        for estimator in estimators:
            estimator = clone(estimator).set_params(random_state=3, **{estimator._clusters: 12})
            settings = set(_coremix.settings(algorithm)) - ({"prior"} if isinstance(estimator, coremix.KMeans) else set())
            used = set().union(*(names_of(estimator, setting) for setting in settings))
            base = told(clone(estimator).fit(X))
            for name, value in changes.items():
                if name in used and name in estimator.get_params() and name != "stop_rule":
                    if (name, type(estimator)) == ("greedy", coremix.GaussianMixture) or (
                        name == "greedy" and hasattr(estimator, "init_params")
                    ):
                        base_of_greedy = told(clone(estimator).set_params(init_params="k-means++").fit(X))
                        found = told(clone(estimator).set_params(init_params="k-means++", greedy=True).fit(X))
                        assert found != base_of_greedy
                        continue
                    assert told(clone(estimator).set_params(**{name: value}).fit(X)) != base, (estimator, name)
                    seen.add(name)
    assert set(changes) - seen <= {"stop_rule", "n_coordinates"}


def told(estimator):
    report = estimator.report_
    return estimator._model.to_bytes(), report["iterations"], report["coreset_size"], report["free_energies"]


def test_stop_rules():
    X = blobs(3_000, 6, clusters=12) / 4
    fits = {
        rule: coremix.KMeans(12, algorithm="lloyd", stop_rule=rule, tol=1e-3, random_state=0).fit(X).n_iter_
        for rule in [None, "per-coordinate", "relative-to-free-energy", "remaining"]
    }
    assert fits[None] == fits["per-coordinate"] <= fits["remaining"]
    soft = [coremix.GaussianMixture(3, stop_rule=rule, random_state=0).fit(X).n_iter_ for rule in [None, "remaining-per-row"]]
    assert soft[0] == soft[1]
    with pytest.raises(ValueError, match="stop_rule = \"soon\": must be 'per-coordinate', 'relative-to-free-energy', 'remaining' or 'remaining-per-row'"):
        coremix.KMeans(2, stop_rule="soon").fit(X)


def test_centres_and_a_mixture_of_one_algorithm_have_the_same_bits():
    X = blobs(12_000, 4, clusters=8)
    mixture = coremix.GaussianMixture(8, c_prime=3, covariance_type="tied-spherical", init_params="k-means++", random_state=1)
    assert mixture.fit(X)._model == coremix.KMeans(8, algorithm="k-means-c-prime", random_state=1).fit(X)._model
    apart = coremix.BayesianGaussianMixture(30, merges=False, random_state=1).fit(X)
    merged = coremix.BayesianGaussianMixture(30, random_state=1).fit(X)
    assert (apart.weights_ > 0.001).sum() >= (merged.weights_ > 0.001).sum() and apart._model != merged._model
    # The default concentration is 1.
    assert coremix.BayesianGaussianMixture(30, weight_concentration_prior=1.0, random_state=1).fit(X)._model == merged._model
    assert coremix.BayesianGaussianMixture(30, weight_concentration_prior=2.0, random_state=1).fit(X)._model != merged._model


def test_the_priors_of_a_dirichlet_process_are_those_of_rust():
    """A strong prior decides: means and covariances are where it says."""
    X = blobs(50, 2, clusters=1)
    priors = {"mean_precision_prior": 1e9, "degrees_of_freedom_prior": 1e9}
    strong = coremix.BayesianGaussianMixture(
        1, **priors, mean_prior=[5.0, -5.0], covariance_prior=np.diag([2.5e8, 1e9]), init_params="k-means++", random_state=0
    ).fit(X)
    np.testing.assert_allclose(strong.means_, [[5.0, -5.0]], atol=1e-4)
    # The rows are far from this mean, which widens it.
    assert strong.covariances_[0, 1, 1] > 3 * strong.covariances_[0, 0, 0]
    theirs = coremix.BayesianGaussianMixture(1, **priors, covariance_prior=[[2e9, 1e9], [1e9, 3e9]])
    np.testing.assert_allclose(theirs.fit(X).covariances_[0], [[2, 1], [1, 3]], rtol=1e-3)


@pytest.mark.parametrize(
    "estimator, what",
    [
        (coremix.BayesianGaussianMixture(2, weight_concentration_prior=0.0), "weight_concentration_prior = 0: must be between"),
        (coremix.BayesianGaussianMixture(2, mean_precision_prior=-1.0), "mean_precision_prior = -1: must be between"),
        (coremix.BayesianGaussianMixture(2, degrees_of_freedom_prior=1.0), "degrees_of_freedom_prior = 1: must be greater than the number of columns"),
        (coremix.BayesianGaussianMixture(2, mean_prior=[1.0, 2.0]), r"mean_prior has the shape \(2,\), expected \(5,\), or a number"),
        (coremix.BayesianGaussianMixture(2, mean_prior=[1.0, 2.0, np.nan, 4.0, 5.0]), "mean_prior contains NaN"),
        (coremix.BayesianGaussianMixture(2, covariance_prior=np.ones((5, 4))), r"covariance_prior has the shape \(5, 4\), expected \(5, 5\)"),
        (coremix.BayesianGaussianMixture(2, covariance_prior=-np.eye(5)), "covariance_prior = a 5 x 5 matrix: must be symmetric and positive definite"),
        (coremix.BayesianGaussianMixture(2, covariance_prior=np.zeros((5, 5))), "covariance_prior: must be symmetric and positive"),
        (coremix.BayesianGaussianMixture(2, covariance_prior=-1.0), "covariance_prior = a 5 x 5 matrix: must be symmetric"),
        (coremix.BayesianGaussianMixture(2, mean_prior=np.inf), "mean_prior = inf: must be finite"),
        (coremix.BayesianGaussianMixture(2, mean_precision_prior=0.0), "mean_precision_prior = 0: must be between"),
        (coremix.KMeans(2, algorithm="lazy-k-means", epsilon=-1.0), "epsilon = -1: "),
        (coremix.VcGmm(2, coreset_size="all", random=-1), "random = -1: must be at least"),
        (coremix.DGmm(2, coreset_size="all"), "coreset_size = 'all': must be an integer"),
        (coremix.GaussianMixture(2, c_prime=0), "c_prime = 0: "),
        (coremix.KMeans(2, chain=5), "chain = 5: 'fast' does not use it, but 'lwcs-k-means'"),
    ],
    ids=repr,
)
def test_errors_name_the_parameter(X, estimator, what):
    with pytest.raises((ValueError, TypeError), match=what):
        estimator.fit(X)


def test_parameters_have_one_default_each():
    """A data class of parameters: signatures are real, in the order scikit-learn's clone and repr need."""
    common = {field.name for field in fields(Parameters)}
    for estimators in NAMED.values():
        for estimator in estimators:
            assert common <= set(estimator.get_params())
            own = type(estimator)()
            assert getattr(type(estimator)(3), estimator._clusters) == 3
            with pytest.raises(TypeError, match="positional argument"):
                type(estimator)(3, 4)
            assert clone(own).get_params() == own.get_params()
    assert not [name for name in vars(coremix.KMeans()) if name.endswith("_")]


def test_the_guide_names_all_of_them():
    page = (Path(__file__).parents[2] / "docs/guide/src/names.md").read_text()
    for name, estimators in NAMED.items():
        row = next(line for line in page.splitlines() if f"| `{name}` |" in line)
        assert f"`{name.replace('-', '_')}" in row
        for estimator in estimators:
            assert f"`{type(estimator).__name__}" in row
    for name in {setting for name in NAMED for setting in _coremix.settings(name)}:
        assert re.search(rf"^\| `{name}` \|", page, re.MULTILINE), name


def test_other_names_say_which_to_take():
    import subprocess
    import sys

    for name, what in coremix._ELSEWHERE.items():
        with pytest.raises(ImportError, match=re.escape(what)):
            getattr(coremix, name)
    done = subprocess.run([sys.executable, "-c", "from coremix import MiniBatchKMeans"], capture_output=True, text=True)
    assert "coremix has no MiniBatchKMeans: KMeans works on coresets first" in done.stderr
    for estimator, name in [
        (coremix.VcGmm, "n_neighbors"),
        (coremix.VcGmm, "chain_length"),
        (coremix.DGmm, "n_drawn"),
        (coremix.KMeans, "batch_size"),
        (coremix.SparsifiedGmm, "metric"),
        (coremix.KMeans, "copy_x"),
        (coremix.KMeans, "reg_covar"),
        (coremix.BayesianGaussianMixture, "weight_concentration_prior_type"),
        (coremix.BayesianGaussianMixture, "concentration"),
        (coremix.BayesianGaussianMixture, "scale"),
    ]:
        with pytest.raises(TypeError, match=f"{estimator.__name__} has no {name}: "):
            estimator(**{name: 1})
    for model, name, what in [
        (coremix.GaussianMixture(), "labels_", "predict"),
        (coremix.KMeans(), "means_", "cluster_centers_ is its name"),
        (coremix.KMeans(2, compute_labels=False).fit(blobs(50)), "labels_", "compute_labels=True"),
        (coremix.VcGmm(), "cluster_centers_", "means_ is its name"),
    ]:
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=what):
            getattr(model, name)
