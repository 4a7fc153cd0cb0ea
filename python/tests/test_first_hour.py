"""The first hour of new users: parameters of scikit-learn, files, and mistakes."""

import datetime
import json
import os
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.mixture
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import coremix
from conftest import blobs
from test_estimators import ALL

@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_initial_means_take_the_place_of_seeds(X, estimator):
    name = estimator._initial()[0]
    clusters = estimator.get_params()[estimator._clusters]
    given = clone(estimator).set_params(**{name: X[:clusters].tolist()})
    fits = [clone(given).set_params(random_state=seed).fit(X) for seed in (1, 1)]
    assert fits[0].report_["evaluations"]["seeding"] == 0
    assert fits[0]._model == fits[1]._model != clone(estimator).set_params(random_state=1).fit(X)._model


def test_a_fit_starts_at_the_initial_means(X):
    """From the means of a converged fit there is nothing to do."""
    lloyd = coremix.KMeans(6, algorithm="lloyd", tol=0.0, random_state=0).fit(X)
    again = coremix.KMeans(6, algorithm="lloyd", init=lloyd.cluster_centers_, random_state=1, max_iter=1).fit(X)
    np.testing.assert_allclose(again.cluster_centers_, lloyd.cluster_centers_, rtol=1e-12)
    np.testing.assert_array_equal(again.labels_, lloyd.labels_)


def test_initial_means_are_checked(X):
    for wrong, what in [
        (X[:5], r"init has the shape \(5, 5\), expected \(6, 5\)"),
        (X[:6, :4], r"init has the shape \(6, 4\), expected \(6, 5\)"),
        (np.full((6, 5), np.nan), "init contains NaN"),
        ("random", "init = 'random': must be 'k-means\\+\\+', or an array"),
    ]:
        with pytest.raises(ValueError, match=what):
            coremix.KMeans(6, init=wrong).fit(X)
    with pytest.raises(ValueError, match="means_init has the shape"):
        coremix.VcGmm(6, means_init=X[:5]).fit(X)


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_a_warm_start_goes_on(X, estimator):
    estimator = clone(estimator).set_params(warm_start=True)
    fresh = estimator.fit(X)._model
    assert estimator.report_["evaluations"]["seeding"] > 0
    estimator.fit(X)
    assert estimator.report_["evaluations"]["seeding"] == 0
    assert clone(estimator).fit(X)._model == fresh


def test_auto_is_one_restart(X):
    one, auto = (coremix.KMeans(6, n_init=n, random_state=0).fit(X) for n in (1, "auto"))
    assert one._model == auto._model and len(auto.report_["restarts"]) == 1


def test_verbose_prints_each_step(X, capsys):
    steps = []
    coremix.KMeans(6, verbose=2, callback=steps.append).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(steps) > 2
    assert lines[-1].startswith("KMeans: iteration: restart 0, phase ")
    assert "None" not in "".join(lines)
    coremix.KMeans(6).fit(X)
    assert capsys.readouterr().out == ""


def test_absent_parameters_say_what_to_do():
    for name in ["weights_init", "precisions_init"]:
        with pytest.raises(TypeError, match=f"GaussianMixture has no {name}: "):
            coremix.GaussianMixture(2, **{name: 1})
    with pytest.raises(TypeError) as raised:
        coremix.GaussianMixture(**sklearn.mixture.GaussianMixture(3).get_params())
    for name in ["weights_init", "precisions_init", "verbose_interval"]:
        assert f"GaussianMixture has no {name}: " in str(raised.value)
    with pytest.raises(TypeError, match="full covariances alone"):
        coremix.BayesianGaussianMixture(covariance_type="full")
    with pytest.raises(TypeError, match="KMeans has no colour: it has algorithm, allow_missing, c_prime, .*n_clusters"):
        coremix.KMeans(2, colour=1)
    with pytest.raises(TypeError, match=r"KMeans has no n_cluster_s: is n_clusters meant\?"):
        coremix.KMeans(n_cluster_s=1)

    class Batched(coremix.KMeans):
        def __init__(self, batch_size=1):
            self.batch_size = batch_size

    assert Batched(batch_size=3).batch_size == 3

    class Open(coremix.KMeans):
        def __init__(self, **others):
            super().__init__(others.pop("groups"))

    assert Open(groups=4, colour=1).n_clusters == 4


@pytest.mark.parametrize("kind", sorted({type(one) for one in ALL}, key=repr), ids=lambda kind: kind.__name__)
def test_names_of_other_libraries_say_the_name_here(kind):
    clusters = kind._clusters
    other = {"n_clusters": "n_components", "n_components": "n_clusters"}[clusters]
    names = {name: clusters for name in ("k", "clusters", "n_centroids", other)}
    names |= {"max_iterations": "max_iter", "seed": "random_state", "random_seed": "random_state", "n_threads": "n_jobs", "nredo": "n_init"}
    for name, own in names.items():
        with pytest.raises(TypeError, match=f"{kind.__name__} has no {name}: {own} is its name here"):
            kind(**{name: 3})
    with pytest.raises(TypeError, match=f"has no k: {clusters} .*; {kind.__name__} has no seed: random_state"):
        kind(k=3, seed=1)


def test_callbacks_always_have_the_same_keys(X):
    steps = []
    coremix.KMeans(6, callback=steps.append).fit(X)
    assert {step["stage"] for step in steps} == {"coreset", "seeded", "iteration"}
    assert {tuple(step) for step in steps} == {tuple(steps[0])}
    assert steps[0]["phase"] is None and steps[-1]["phase"] >= 0


def test_a_dirichlet_process_has_no_criterion(X):
    model = coremix.BayesianGaussianMixture(8, random_state=0).fit(X)
    for criterion in [model.bic, model.aic]:
        with pytest.raises(ValueError, match="no number of parameters"):
            criterion(X)


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_fewer_distinct_rows_than_clusters_warn(estimator):
    X = np.repeat([[0.0, 0.0, 0.0], [1.0, 3.0, 2.0]], 10, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\) found smaller than n_\w+ \([68]\)") as found:
        model = clone(estimator).fit(X)
    assert os.path.samefile(found[0].filename, __file__)
    assert len(set(model.predict(X))) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(estimator).fit(blobs())


def test_unmerged_rows_warn_as_well():
    X = np.repeat([[0.0, 0.0], [1.0, 3.0]], 20_000, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\)"):
        coremix.KMeans(5, random_state=0).fit(X)


@pytest.mark.parametrize("algorithm", ["fast", "lloyd"])
def test_far_initial_centres_get_rows(algorithm):
    X = np.array([[0.0, 0.0], [0.0, 1.0], [10.0, 0.0], [10.0, 1.0], [0.0, 10.0], [0.0, 11.0]])
    init = np.array([[0.0, 0.0], [10.0, 0.0], [500.0, 500.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = coremix.KMeans(3, init=init, algorithm=algorithm, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(1.5)
    assert len(set(model.labels_)) == 3


# Files.


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_estimators_are_saved_and_loaded(X, estimator, tmp_path):
    frame = pd.DataFrame(X, columns=[f"column {j}, \u00e4\"\n" for j in range(5)])
    fitted = clone(estimator).set_params(callback=print, tol=np.float64(1e-3)).set_params(callback=None).fit(frame)
    fitted.save(tmp_path / "model.cmx")
    again = type(estimator).load(tmp_path / "model.cmx")
    assert again.get_params() == fitted.get_params()
    assert again._model == fitted._model and again.n_iter_ == fitted.n_iter_
    assert list(again.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(again.predict(frame), fitted.predict(frame))
    np.testing.assert_array_equal(again.to_sklearn().predict(frame), fitted.predict(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frame.rename(columns={frame.columns[0]: "other"}))
    notes = coremix.Model.notes(tmp_path / "model.cmx")
    assert json.loads(notes["columns"]) == list(frame.columns)
    names = again.get_feature_names_out() if hasattr(again, "transform") else []
    assert len(names) in (0, 6)


def test_rows_with_names_are_read_by_them(X, tmp_path):
    """By a model, and by partitions; estimators have the rule of scikit-learn."""
    import pyarrow as pa

    frame = pd.DataFrame(X, columns=list("abcde"))
    fitted = coremix.GaussianMixture(6, random_state=0).fit(frame)
    fitted.save(tmp_path / "model.cmx")
    models = [fitted._model, coremix.Model.load(tmp_path / "model.cmx"), pickle.loads(pickle.dumps(fitted._model))]
    swapped = frame[list("edcba")].assign(key="text")
    statistics = coremix.stats(frame, fitted)
    for rows in [swapped, pa.Table.from_pandas(swapped), pa.Table.from_pandas(swapped).to_batches()[0]]:
        np.testing.assert_array_equal(coremix.assign(rows, fitted), fitted.predict(frame))
        assert coremix.stats(rows, fitted) == statistics
        for model in [*models, coremix.update(fitted, statistics)]:
            assert model.names == list("abcde")
            np.testing.assert_array_equal(model.predict(rows), model.predict(X))
            np.testing.assert_array_equal(model.predict_proba(rows), model.predict_proba(X))
            np.testing.assert_array_equal(model.log_densities(rows), model.log_densities(X))
            np.testing.assert_array_equal(model.distances(rows), model.distances(X))
            assert model.quantization_error(rows) == model.quantization_error(X)
    for rows in [frame.drop(columns="c"), frame.rename(columns={"c": "z"})]:
        for rows in [rows, pa.Table.from_pandas(rows)]:
            for read in [fitted._model.predict, lambda rows: coremix.assign(rows, fitted)]:
                with pytest.raises(ValueError, match="X has no column .c.: the model was fitted to"):
                    read(rows)
    twice = pd.concat([frame, frame[["c"]]], axis=1)
    for rows in [twice, pa.Table.from_arrays([pa.array(twice.iloc[:, j]) for j in range(6)], list(twice.columns))]:
        with pytest.raises(ValueError, match="X has several columns .c."):
            fitted._model.predict(rows)
    np.testing.assert_array_equal(fitted._model.predict(frame.set_axis(range(5), axis=1)), fitted.predict(frame))


def test_few_rows_for_full_covariances_warn():
    X = np.random.default_rng(0).normal(size=(100, 50))
    with pytest.warns(ConvergenceWarning, match="no more rows than columns"):
        coremix.GaussianMixture(3, covariance_type="full", random_state=0).fit(X)


def test_components_at_the_floor_warn():
    rng = np.random.default_rng(0)
    whole = np.column_stack([rng.integers(18, 65, 1000), rng.poisson(0.7, 1000), rng.random(1000) < 0.2]).astype(float)
    with pytest.warns(ConvergenceWarning, match="at their floor"):
        found = coremix.GaussianMixture(6, covariance_type="diag", random_state=0).fit(whole)
    assert found.report_["at_floor"] > 0
    for covariance_type in ["full", "tied", "diag", "spherical", "tied-spherical"]:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", ".*at their floor")
            found = coremix.GaussianMixture(3, covariance_type=covariance_type, random_state=0).fit(rng.normal(size=(500, 2)))
        assert found.report_["at_floor"] == 0


def test_models_of_others_are_loaded(X, tmp_path):
    """As Rust and the command write them: without what an estimator notes."""
    path = tmp_path / "model.cmx"
    fitted = coremix.GaussianMixture(4, covariance_type="full", random_state=0).fit(X)
    fitted._model.save(path)
    again = coremix.GaussianMixture.load(path)
    assert (again.n_components, again.covariance_type, again.n_features_in_) == (4, "full", 5)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_allclose(again.to_sklearn().score_samples(X), fitted.score_samples(X))
    for other in [coremix.KMeans, coremix.BayesianGaussianMixture]:
        with pytest.raises(ValueError, match="a covariance matrix for each component: load it with GaussianMixture.load"):
            other.load(path)
    coremix.KMeans(4, random_state=0).fit(X).save(path)
    assert coremix.VcGmm.load(path).n_components == 4


def test_notes_of_others_do_no_harm(X, tmp_path):
    path = tmp_path / "model.cmx"
    model = coremix.KMeans(6, random_state=0).fit(X)._model
    for wrong in ["[]", "3", "no JSON", '{"predict": 1, "colour": 2}', '["a", "b"]']:
        model.save(path, [("estimator", "KMeans"), *((n, wrong) for n in ("parameters", "fitted", "columns"))])
        np.testing.assert_array_equal(coremix.KMeans.load(path).predict(X), model.predict(X))


def test_files_that_are_not_there(X, tmp_path):
    model = coremix.KMeans(2, random_state=0).fit(X)
    for load in [coremix.Model.load, coremix.Model.notes, coremix.KMeans.load]:
        with pytest.raises(FileNotFoundError, match="absent.cmx"):
            load(tmp_path / "absent.cmx")
    for save in [model.save, model._model.save]:
        with pytest.raises(FileNotFoundError, match="folder"):
            save(tmp_path / "folder" / "model.cmx")
    with pytest.raises(IsADirectoryError):
        coremix.Model.load(tmp_path)
    (tmp_path / "text").write_text("not a model, but a text that is long enough to be read")
    with pytest.raises(ValueError, match="not a file of coremix"):
        coremix.Model.load(tmp_path / "text")


def test_models_say_what_they_are(X):
    model = coremix.GaussianMixture(4, random_state=0).fit(X)._model
    assert repr(model) == "Model(family='diag', components=4, columns=5, dtype='float64')"
    assert model.free_parameters == 4 * 10 + 3


def test_models_read_lists_integers_and_tables(X):
    import pyarrow as pa

    X = np.round(X).astype(np.int64)
    model = coremix.KMeans(6, random_state=0).fit(X)._model
    expected = model.predict(X.astype(np.float64))
    frame = pd.DataFrame(X, columns=list("abcde"))
    for rows in [X, X.tolist(), frame, pa.Table.from_pandas(frame), X.astype(np.int32)]:
        np.testing.assert_array_equal(model.predict(rows), expected)
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.predict([1.0, 2.0])


# Mistakes.


class Lazy:
    """As a LazyFrame of polars: a plan without rows."""

    def collect(self):
        return None


class Column:
    """As a Series of polars: one column with the Arrow C interface."""

    def __init__(self, values):
        import pyarrow as pa

        self.values = pa.chunked_array([values])

    def __arrow_c_stream__(self, requested_schema=None):
        return self.values.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "X, error, what",
    [
        (Lazy(), TypeError, r"a Lazy has no rows before they are collected: give X.collect\(\)"),
        (Column([1.0, 2.0]), ValueError, "^X is a column: give a frame or a table"),
        ("points.npy", TypeError, r"X = 'points.npy' is no rows: give what it holds, such as np.load\(X\)"),
        (pd.Series([1.0, 2.0]), ValueError, "2D array|2-dimensional"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), ValueError, 'column "b" does not hold numbers, but text such as "x"'),
        (pd.DataFrame({"a": [1.0], "b": [datetime.time(8, 30)]}), ValueError, 'column "b" does not hold numbers, but Time64'),
        (pd.DataFrame({"a": [1.0], "b": [np.zeros(2)]}), ValueError, 'column "b" is of type List.*, not of numbers: select'),
        ([1.0, 2.0], ValueError, "Expected 2D array"),
    ],
)
def test_wrong_rows(X, error, what):
    model = coremix.KMeans(1).fit([[1.0, 2.0]])._model
    for read in [coremix.KMeans(1).fit, model.predict, lambda X: coremix.sample(X, 1, 0)]:
        with pytest.raises(error, match=what):
            read(X)


@pytest.mark.parametrize(
    "parameters, error, what",
    [
        ({"callback": 3}, TypeError, "callback = 3: must be callable, or None"),
        ({"random_state": 2**64}, ValueError, r"random_state = 18446744073709551616: .* less than 2\*\*64"),
        ({"n_init": "many"}, TypeError, "n_init = 'many': must be an integer, or 'auto'"),
        ({"compute_labels": "no"}, TypeError, "compute_labels = 'no': must be True or False"),
    ],
)
def test_wrong_parameters(X, parameters, error, what):
    with pytest.raises(error, match=what):
        coremix.KMeans(2, **parameters).fit(X)
