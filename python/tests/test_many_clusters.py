"""Questions about many clusters, and about their number: held against NumPy and scikit-learn."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import silhouette_score

import coremix
from conftest import blobs

KINDS = ["full", "tied", "diag", "spherical", "tied-spherical"]
ESTIMATORS = [
    coremix.KMeans(5, random_state=0),
    *(coremix.GaussianMixture(5, covariance_type=kind, random_state=0) for kind in KINDS),
    coremix.BayesianGaussianMixture(5, random_state=0),
    coremix.VcGmm(5, random_state=0),
    coremix.DGmm(5, random_state=0),
    coremix.SparsifiedGmm(5, n_coordinates=2, random_state=0),
]


def fitted(estimator, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pickle.loads(pickle.dumps(estimator)).fit(X)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_likeliest_few(estimator, dtype):
    X = blobs(300, 3, 5).astype(dtype)
    model = fitted(estimator, X)
    table = pa.table({name: X[:, j] for j, name in enumerate("xyz")})
    shares = model._model.predict_proba(X)
    k = shares.shape[1]
    for m in [1, 2, k, k + 3]:
        ids, found = model.predict_top(X, m)
        assert ids.shape == found.shape == (len(X), min(m, k))
        np.testing.assert_array_equal(ids[:, 0], model.predict(X))
        expected = np.take_along_axis(shares, ids, axis=1)
        # No other component has a larger share.
        rest = shares.copy()
        np.put_along_axis(rest, ids, -1, axis=1)
        assert (expected.min(axis=1) >= rest.max(axis=1) - 1e-6).all()
        np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-6)
        for one, other in zip(model.predict_top(X, m), (ids, found), strict=True):
            np.testing.assert_array_equal(one, other)
    model._model.predict_top(table, 2)
    for m in [1, 3, k + 3]:
        ids, found, distances = model.predict_top(X, m, return_distance=True)
        for one, other in zip(model.predict_top(X, m), (ids, found), strict=True):
            np.testing.assert_array_equal(one, other)
        means = model._model.parameters()["means"].astype(np.float64)
        expected = np.linalg.norm(X.astype(np.float64)[:, None] - means[ids], axis=2)
        assert distances.dtype == found.dtype
        np.testing.assert_allclose(distances, expected, rtol=1e-4, atol=1e-4)
        for rows in (table, coremix.scan(table)):
            np.testing.assert_array_equal(model._model.predict_top(rows, m, return_distance=True)[2], distances)
    with pytest.raises(TypeError, match="return_distance = 'yes': must be True or False"):
        model.predict_top(X, 2, return_distance="yes")
    for m in [0, -1, 1.5, True, "2"]:
        with pytest.raises(ValueError, match="m = "):
            model.predict_top(X, m)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_medoids_and_sizes(estimator):
    X = blobs(2_500, 3, 5)
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    model = fitted(estimator, X)
    labels, means = model.predict(X), model._model.parameters()["means"]
    distances = ((X - means[labels]) ** 2).sum(axis=1)
    for w in [None, weights]:
        there = np.ones(len(X), bool) if w is None else w > 0
        for c, row in enumerate(model.medoids(X, w)):
            own = np.flatnonzero((labels == c) & there)
            if len(own) == 0:
                assert row == -1
            else:
                assert labels[row] == c and there[row]
                assert distances[row] <= distances[own].min() * (1 + 1e-9)
        np.testing.assert_array_equal(model.sizes(X, w), np.bincount(labels, w, len(means)))
    np.testing.assert_array_equal(model.medoids(pa.table(dict(zip("xyz", X.T, strict=True)))), model.medoids(X))
    np.testing.assert_array_equal(model.medoids(X, np.zeros(len(X))), np.full(len(means), -1))
    if hasattr(model, "sizes_"):
        np.testing.assert_array_equal(model.sizes_, model.sizes(X))


def test_what_sets_a_cluster_apart(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=["noise", "height", "same"])
    X["same"] = 7.0
    X.loc[:99, "height"] += 100
    model = coremix.KMeans(2, random_state=0).fit(X)
    high = model.predict(X[:1])[0]
    lines = [line for line in model.explain(top=1) if line["cluster"] == high]
    assert [line["column"] for line in lines] == ["height"]
    column = X["height"]
    expected = (column[:100].mean() - column.mean()) / column.std(ddof=0)
    assert lines[0]["difference"] == pytest.approx(expected, rel=1e-9)
    assert lines[0]["mean"] == pytest.approx(column[:100].mean()) and lines[0]["overall"] == pytest.approx(column.mean())
    table = pd.DataFrame(model.explain())
    assert len(table) == 6 and (table.loc[table.column == "same", "difference"] == 0).all()
    assert {line["column"] for line in model.explain(["a", "b", "c"])} == {"a", "b", "c"}
    with pytest.raises(ValueError, match="2 names for 3 columns"):
        model.explain(["a", "b"])
    # A file of the estimator knows it as well, one of the model alone does not.
    model.save(tmp_path / "own.cmx")
    assert coremix.KMeans.load(tmp_path / "own.cmx").explain() == model.explain()
    model._model.save(tmp_path / "plain.cmx")
    with pytest.raises(ValueError, match="explain needs a fit"):
        coremix.KMeans.load(tmp_path / "plain.cmx").explain()


def test_arrays_that_do_not_fit_warn(monkeypatch):
    X = blobs(250, 2, 5)
    model = coremix.GaussianMixture(5, random_state=0).fit(X)
    means = coremix.KMeans(5, random_state=0).fit(X)
    monkeypatch.setattr("os.sysconf", lambda name: 1)
    for ask in [model.predict_proba, means.transform]:
        with pytest.warns(ResourceWarning, match="predict_top"):
            ask(X)
    # 250 x 5 numbers of 8 bytes do not fit in 6,400 bytes; of 4 bytes they do.
    monkeypatch.setattr("os.sysconf", lambda name: 80)
    with pytest.warns(ResourceWarning, match="predict_top"):
        model.predict_proba(X)
    narrow = coremix.GaussianMixture(5, random_state=0).fit(X.astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        narrow.predict_proba(X.astype(np.float32))


def test_shapes_of_covariances_and_precisions():
    X = blobs(600, 2, 3)
    shapes = {"full": (3, 2, 2), "tied": (2, 2), "diag": (3, 2), "spherical": (3,), "tied-spherical": (3,)}
    for kind, shape in shapes.items():
        model = coremix.GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
        theirs = model.to_sklearn()
        assert model.covariances_.shape == shape
        for name in ["covariances_", "precisions_", "precisions_cholesky_"]:
            np.testing.assert_allclose(getattr(model, name), getattr(theirs, name), rtol=1e-12)
    assert not hasattr(coremix.GaussianMixture(3), "precisions_")


def test_factor_analysers(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2)) @ rng.normal(size=(2, 7)) + 0.3 * rng.normal(size=(900, 7))
    X[::2] += 9
    for estimator, more in [(coremix.GaussianMixture, {}), (coremix.VcGmm, {"coreset_size": "all"}), (coremix.GaussianMixture, {"c_prime": 3})]:
        model = estimator(n_components=2, covariance_type="factors", n_factors=2, random_state=0, **more).fit(X)
        assert model.loadings_.shape == (2, 7, 2) and model.noise_variance_.shape == (2, 7)
        covariances = model.covariances_
        assert covariances.shape == model.precisions_.shape == (2, 7, 7)
        np.testing.assert_allclose(np.diagonal(covariances[1]) - (model.loadings_[1] ** 2).sum(axis=1), model.noise_variance_[1])
        np.testing.assert_allclose(model.to_sklearn().score_samples(X), model.score_samples(X), rtol=1e-9)
        path = tmp_path / estimator.__name__
        model.save(path)
        again = estimator.load(path)
        assert (again.covariance_type, again.n_factors) == ("factors", 2)
        np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
        assert pickle.loads(pickle.dumps(model)).loadings_.shape == (2, 7, 2)
    for parameters, rule in [
        ({"covariance_type": "factors"}, "n_factors = None: must be"),
        ({"covariance_type": "factors", "n_factors": 0}, "n_factors = 0: must be"),
        ({"covariance_type": "factors", "n_factors": 7}, "fewer than columns"),
        ({"covariance_type": "full", "n_factors": 2}, "n_factors = 2: is for"),
    ]:
        with pytest.raises(ValueError, match=rule):
            coremix.GaussianMixture(2, **parameters).fit(X)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_a_sweep(estimator):
    X = blobs(400, 3, 4)
    weights = np.full(len(X), 2.0)
    found = coremix.sweep(X, [6, 2, 4], estimator, sample_weight=weights, silhouette=150)
    np.testing.assert_array_equal(found.table_["clusters"], [2, 4, 6])
    for name in ["bic", "icl", "held_out", "silhouette"]:
        process = isinstance(estimator, coremix.BayesianGaussianMixture)
        if process and name in ("bic", "icl"):
            assert name not in found.best_
            with pytest.raises(ValueError, match="number of parameters"):
                found.best(name)
            continue
        best = found.best(name)
        k = found.best_[name]
        assert type(best) is type(estimator) and len(best._model.parameters()["means"]) == k
        assert best.predict(X).shape == (len(X),) and best.n_iter_ >= 1
    assert "clusters" in repr(found) and "*" in repr(found) and found._repr_html_().count("<tr>") == 4
    assert estimator.get_params() == pickle.loads(pickle.dumps(estimator)).get_params()


def test_a_sweep_has_the_values_of_its_models():
    X = blobs(600, 2, 3)
    mixture = coremix.GaussianMixture(covariance_type="full", random_state=0, merge_rows=False)
    found = coremix.sweep(X, range(1, 6), mixture, held_out=0, silhouette=len(X))
    for k, one in zip(found.table_["clusters"], found.estimators_, strict=True):
        row = k - 1
        assert found.table_["bic"][row] == pytest.approx(one.bic(X), rel=1e-9)
        assert found.table_["aic"][row] == pytest.approx(one.aic(X), rel=1e-9)
        assert found.table_["log_likelihood"][row] == pytest.approx(one.score(X), rel=1e-9)
        if k > 1:
            assert found.table_["silhouette"][row] == pytest.approx(silhouette_score(X, one.predict(X)))
    assert found.best_ == {"bic": 3, "aic": found.best_["aic"], "icl": 3, "silhouette": 3}
    assert np.isnan(found.table_["held_out"]).all() and np.isnan(found.table_["silhouette"][0])
    for wrong, message in [("held_out", "no rows were held out"), ("gap", "must be one of")]:
        with pytest.raises(ValueError, match=message):
            found.best(wrong)
    frame = pd.DataFrame(X, columns=["a", "b"])
    named = coremix.sweep(pa.Table.from_pandas(frame), [2, 3], coremix.KMeans(random_state=0), silhouette=100)
    assert named.best("silhouette").predict(frame[["a", "b"]]).max() == 2


def test_a_sweep_says_what_is_wrong():
    X = blobs(150, 2, 3)
    mixture = coremix.GaussianMixture(random_state=0)
    for clusters, rule in [([], "at least one"), ([0, 2], "at least 1")]:
        with pytest.raises(ValueError, match=rule):
            coremix.sweep(X, clusters, mixture)
    for clusters in [5, np.int64(5), 5.0, None, "5"]:
        with pytest.raises(TypeError, match=r"clusters = .*: must be several numbers of clusters, such as range\(2, 13\), or \[5\] for one"):
            coremix.sweep(X, clusters, mixture)
    for wrong in [[2, "3"], [2, 2.5], [True], [None]]:
        with pytest.raises(TypeError, match="clusters: .* must be an integer"):
            coremix.sweep(X, wrong, mixture)
    assert coremix.sweep(X, iter([np.int32(2)]), mixture).table_["clusters"].tolist() == [2]
    with pytest.raises(TypeError, match="estimator of coremix"):
        coremix.sweep(X, [2], "gmm")
    with pytest.raises(ValueError, match="held_out"):
        coremix.sweep(X, [2], mixture, held_out=1.5)
    with pytest.raises(ValueError, match="means_init"):
        coremix.sweep(X, [2, 3], coremix.GaussianMixture(means_init=X[:2]))
    with pytest.raises(ValueError, match="only 2|fewer"):
        coremix.sweep(X[:2], [5], mixture, held_out=0)


def test_pictures(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X = blobs(300, 3, 3)
    found = coremix.sweep(X, [2, 3, 4], coremix.GaussianMixture(random_state=0))
    drawn = found.plot()
    assert len(drawn) == 4
    for axes in drawn:
        axes.figure.canvas.draw()
        assert all(tick == int(tick) for tick in axes.get_xticks())
    own = matplotlib.pyplot.subplots(2, 2)[1]
    assert len(found.plot(own).flat) == 4 and own[1, 1].get_title()
    for wrong in ["x.png", tmp_path / "x.png", 3, [1, 2, 3, 4]]:
        with pytest.raises(TypeError, match="must be axes of matplotlib, or None: .*savefig"):
            found.plot(wrong)
    with pytest.raises(ValueError, match="axes: 1 of them, where there are 4 pictures"):
        found.plot(own[0, 0])
    for kind in KINDS:
        model = coremix.GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
        axes = coremix.plots.ellipses(model, X, columns=(2, 0))
        assert len(axes.patches) == 6
        axes.figure.savefig(tmp_path / f"{kind}.png")
    # Sizes that are alike, and those of one cluster, are not on the frame.
    for rows, k in ((X, 3), (np.repeat([[0.0], [9.0]], 50, axis=0), 2), (X, 1)):
        axes = coremix.plots.sizes(coremix.KMeans(k, random_state=0).fit(rows), rows)
        sizes, edges, _ = axes.patches[0].get_data()
        assert sizes.sum() == len(rows) and len(edges) == k + 1
        assert axes.get_xlim()[0] < edges[0] and axes.get_ylim()[1] > sizes.max()
    matplotlib.pyplot.close("all")


def test_an_ellipse_is_where_the_density_has_its_value():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 2)) @ np.array([[3.0, 1.0], [0.0, 0.5]])
    model = coremix.GaussianMixture(1, covariance_type="full", random_state=0).fit(X)
    one, two = coremix.plots.ellipses(model).patches
    for ellipse, deviations in [(one, 1), (two, 2)]:
        on = ellipse.get_patch_transform().transform(ellipse.get_path().vertices[::3])
        away = on - model.means_[0]
        np.testing.assert_allclose(np.einsum("ni,ij,nj->n", away, model.precisions_[0], away), deviations**2, rtol=1e-3)
    matplotlib.pyplot.close("all")


def test_names_of_other_libraries():
    with pytest.raises(ImportError, match="partial_fit"):
        from coremix import MiniBatchKMeans  # noqa: F401
    with pytest.raises(TypeError, match="KMeans, .* have metric"):
        coremix.BayesianGaussianMixture(3, metric="cosine")
    assert not hasattr(coremix, "anything_else")
