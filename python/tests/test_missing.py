"""Missing values: what is known of a row counts, against sums by hand over what is known."""

import pickle

import numpy as np
import pytest
from conftest import blobs
from scipy.special import logsumexp
from scipy.stats import multivariate_t
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

import coremix

pandas = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

TAKE = [
    *(coremix.KMeans(6, algorithm=name) for name in ("fast", "lloyd", "k-means-c-prime", "lazy-k-means", "lwcs-k-means")),
    *(coremix.GaussianMixture(6, covariance_type=kind) for kind in ("full", "tied", "diag", "spherical", "tied-spherical")),
    coremix.GaussianMixture(6, covariance_type="factors", n_factors=2),
    coremix.VcGmm(6),
    coremix.VcGmm(6, coreset_size="all"),
    coremix.GaussianMixture(6, c_prime=3, covariance_type="tied-spherical", init_params="k-means++"),
    coremix.DGmm(6),
]
PROCESSES = [coremix.BayesianGaussianMixture(n_components=6), coremix.BayesianGaussianMixture(6, init_params="k-means++")]
REFUSE = [coremix.SparsifiedGmm(6)]


def of(estimator, **more):
    return clone(estimator).set_params(random_state=0, allow_missing=True, **more)


def holes(dtype=np.float64, share=0.2, n_samples=2_000):
    whole = blobs(n_samples, dtype=dtype)
    X = whole.copy()
    X[np.random.default_rng(1).random(X.shape) < share] = np.nan
    return X, whole


def means_of(estimator):
    return estimator.cluster_centers_ if hasattr(estimator, "cluster_centers_") else estimator.means_


def squared(X, means):
    """Squared distances over the known columns, which stand for all."""
    known = np.maximum((~np.isnan(X)).sum(axis=1, keepdims=True), 1)
    return np.nansum((X[:, None].astype(float) - means) ** 2, axis=2) * X.shape[1] / known


def matrices_of(mixture):
    """The covariances of all components (k, d, d)."""
    own, (k, d) = mixture.covariances_, mixture.means_.shape
    kind = mixture.get_params()["covariance_type"]
    if kind in ("full", "tied", "factors"):
        return np.broadcast_to(own, (k, d, d))
    return np.stack([np.diag(np.broadcast_to(one, d)) for one in own])


def densities_of(X, means, covariances):
    """Log-densities of what is known (n, k), and rows with the expectation of what is not (n, k, d)."""
    (n, d), k = X.shape, len(means)
    densities, completed = np.zeros((n, k)), np.repeat(X[:, None], k, 1)
    known = ~np.isnan(X)
    for pattern in np.unique(known, axis=0):
        rows, o, m = (known == pattern).all(axis=1), np.flatnonzero(pattern), np.flatnonzero(~pattern)
        for c in range(k):
            own, apart = covariances[c][np.ix_(o, o)], (X[rows][:, o] - means[c, o]).T
            solved = np.linalg.solve(own, apart)
            log_det = np.linalg.slogdet(2 * np.pi * own)[1] if len(o) else 0.0
            densities[rows, c] = -0.5 * ((apart * solved).sum(axis=0) + log_det)
            expected = means[c, m] + (covariances[c][np.ix_(m, o)] @ solved).T
            completed[np.ix_(rows, [c], m)] = expected[:, None]
    return densities, completed


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("estimator", TAKE, ids=repr)
def test_what_is_known_counts(estimator, dtype, merge):
    X, whole = holes(dtype)
    own = of(estimator, merge_rows=merge, n_init=5).fit(X)
    means = means_of(own).astype(float)
    assert np.isfinite(means).all()
    clusters = coremix.KMeans(6, random_state=0).fit(whole).labels_
    labels = own.predict(X)
    assert adjusted_rand_score(labels, clusters) > 0.8
    if hasattr(own, "inertia_"):
        far = squared(X, means)
        least = far.min(axis=1)
        np.testing.assert_allclose(far[np.arange(len(X)), labels], least, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(own.labels_, labels)
        assert own.inertia_ == pytest.approx(least.sum(), rel=1e-4)
        assert own.score(X) == pytest.approx(-own.inertia_, rel=1e-6)
        np.testing.assert_allclose(own.transform(X), np.sqrt(far), rtol=1e-3, atol=1e-3)
    else:
        densities, completed = densities_of(X.astype(float), means, matrices_of(own))
        joints = np.log(np.maximum(own.weights_, 1e-300)) + densities
        most = joints.max(axis=1, keepdims=True)
        densities = np.log(np.exp(joints - most).sum(axis=1)) + most[:, 0]
        tolerance = 1e-7 if dtype == np.float64 else 1e-3
        np.testing.assert_allclose(own.score_samples(X), densities, rtol=tolerance, atol=tolerance)
        shares = np.exp(joints - densities[:, None])
        np.testing.assert_allclose(own.predict_proba(X), shares, atol=1e-2 if dtype != np.float64 else 1e-7)
        assert own.score(X) == pytest.approx(densities.mean(), abs=1e-3)
        filled = own.impute(X)
        known = ~np.isnan(X)
        np.testing.assert_array_equal(filled[known], X[known].astype(filled.dtype))
        expected = np.einsum("nc,ncj->nj", shares, completed)[~known]
        np.testing.assert_allclose(filled[~known], expected, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("estimator", PROCESSES, ids=repr)
def test_processes_have_the_student_t_of_what_is_known(estimator):
    X, whole = holes(share=0.3)
    own = of(estimator, n_init=5).fit(X)
    clusters = coremix.KMeans(6, random_state=0).fit(whole).labels_
    assert adjusted_rand_score(own.predict(X), clusters) > 0.8
    (n, d), known = X.shape, ~np.isnan(X)
    free = own.degrees_of_freedom_ + 1 - d
    wider = own.degrees_of_freedom_ / free * (1 + 1 / own.mean_precision_)
    shapes = own.covariances_ * wider[:, None, None]
    logs = np.tile(np.log(own.weights_), (n, 1))
    for pattern in np.unique(known, axis=0):
        rows, o = (known == pattern).all(axis=1), np.flatnonzero(pattern)
        for c in range(6 if len(o) else 0):
            part = multivariate_t(own.means_[c, o], shapes[c][np.ix_(o, o)], df=free[c])
            logs[rows, c] += part.logpdf(X[rows][:, o])
    np.testing.assert_allclose(own.score_samples(X), logsumexp(logs, axis=1), rtol=1e-6, atol=1e-6)
    filled = own.impute(X)
    np.testing.assert_array_equal(filled[known], X[known])
    off = np.abs(filled - whole) / np.nanstd(X, axis=0)
    assert off[~known].mean() < 0.8


@pytest.mark.parametrize("estimator", TAKE + PROCESSES, ids=repr)
def test_rows_without_missing_values_have_the_same_bits(estimator):
    X = blobs(1_500)
    plain = clone(estimator).set_params(random_state=0).fit(X)
    own = of(estimator).fit(X)
    np.testing.assert_array_equal(means_of(own), means_of(plain))
    np.testing.assert_array_equal(own.predict(X), plain.predict(X))
    np.testing.assert_array_equal(own.impute(X), X)


@pytest.mark.parametrize("estimator", TAKE + PROCESSES + REFUSE, ids=repr)
def test_without_the_setting_it_is_an_error(estimator):
    X, whole = holes()
    row, column = np.argwhere(np.isnan(X))[0]
    place = f"row {row}, column {column} is NaN or infinite.*; rows count from 0; an estimator with allow_missing=True"
    with pytest.raises(ValueError, match=place):
        clone(estimator).fit(X)
    with pytest.raises(ValueError, match=place):
        clone(estimator).partial_fit(X)
    fitted = clone(estimator).set_params(random_state=0).fit(whole)
    asks = ["predict", "impute", "score", "predict_top", "medoids", "sizes"]
    for ask in [*asks, "transform" if hasattr(fitted, "transform") else "score_samples"]:
        with pytest.raises(ValueError, match=place):
            getattr(fitted, ask)(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("estimator", TAKE + PROCESSES + [coremix.TableMixture(6)], ids=repr)
def test_one_row_at_a_time_may_lack_values(estimator, dtype):
    X, whole = holes(dtype, n_samples=400)
    X[3] = np.nan
    fitted = of(estimator).fit(X)
    one, labels = pickle.loads(pickle.dumps(fitted.predictor())), fitted.predict(X)
    assert [one(row) for row in X] == labels.tolist()
    assert [one(row.tolist()) for row in X[:9]] == labels[:9].tolist()
    assert np.isfinite([one.nearest(row)[1] for row in X]).all()
    densities = fitted._model.log_densities(fitted._ask(X))
    np.testing.assert_allclose([one.log_density(row) for row in X], densities, rtol=1e-5, atol=1e-5)
    bad = X[5].copy()
    bad[2] = np.inf
    with pytest.raises(ValueError, match="column 2"):
        one(bad)
    with pytest.raises(ValueError, match="NaN"):
        of(estimator).set_params(allow_missing=False).fit(whole).predictor()(X[3])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["spherical", "diag", "full"])
def test_medoids_are_rows_that_know_something(kind, share):
    """A missing value is as far from the mean as the variance of its column says: near rows that know much come first."""
    X, _ = holes(share=share, n_samples=300)
    X[::7] = np.nan
    mixture = of(coremix.GaussianMixture(4, covariance_type=kind, prior_rows=1)).fit(X)
    variances = np.array([matrix.diagonal() for matrix in matrices_of(mixture)])
    missing = np.isnan(X)
    far = np.nansum((X[:, None] - mixture.means_) ** 2, axis=2) + missing @ variances.T
    far[missing.all(axis=1)] = np.inf
    labels, medoids = mixture.predict(X), mixture.medoids(X)
    for c, medoid in enumerate(medoids):
        own = np.where(labels == c, far[:, c], np.inf)
        least = own.min()
        assert medoid == -1 if np.isinf(least) else own[medoid] == pytest.approx(least)
    nothing = np.full((5, X.shape[1]), np.nan)
    assert (mixture.medoids(nothing) == -1).all()


@pytest.mark.parametrize("estimator", REFUSE, ids=repr)
def test_some_need_all_values(estimator):
    X, whole = holes()
    with pytest.raises(ValueError, match="NaN is one"):
        of(estimator).fit(X)
    fitted = of(estimator).fit(whole)
    for ask in ("predict", "predict_proba", "score_samples", "impute"):
        with pytest.raises(ValueError, match="NaN is one"):
            getattr(fitted, ask)(X)


def test_infinite_values_and_other_settings():
    X, _ = holes()
    X[7, 3] = np.inf
    with pytest.raises(ValueError, match="row 7, column 3 is NaN or infinite"):
        of(coremix.KMeans(3)).fit(X)
    with pytest.raises(TypeError, match="allow_missing = 'yes'"):
        coremix.KMeans(3, allow_missing="yes").fit(X)
    X[:, 3] = np.nan
    with pytest.raises(ValueError, match="has no value in any row"):
        of(coremix.KMeans(3)).fit(X)
    weights = np.ones(len(X))
    weights[4] = np.nan
    with pytest.raises(ValueError, match="weight"):
        of(coremix.KMeans(3)).fit(holes()[0], sample_weight=weights)


def forms(X):
    """X in other forms."""
    nan = np.isnan(X)
    names = [f"x{j}" for j in range(X.shape[1])]
    frame = pandas.DataFrame(X, columns=names)
    table = pa.table({name: pa.array(X[:, j], mask=nan[:, j]) for j, name in enumerate(names)})
    lists = pa.array([[None if np.isnan(x) else x for x in row] for row in X.tolist()])
    return {
        "frame": frame,
        "frame of objects": frame.astype(object).where(~nan, None),
        "frame of NA": frame.astype(object).where(~nan, pandas.NA),
        "nullable frame": frame.astype("Float64"),
        "list": [[None if np.isnan(x) else x for x in row] for row in X.tolist()],
        "masked array": np.ma.array(np.where(nan, 0.0, X), mask=nan),
        "Fortran order": np.asfortranarray(X),
        "columns of more": np.hstack([X, X])[:, : X.shape[1]],
        "table": table,
        "table of NaN": pa.table(dict(zip(names, X.T, strict=True))),
        "sliced table": pa.concat_tables([table.slice(0, 7), table.slice(7)]),
        "table of lists": pa.table({"v": lists}),
        "table of vectors": pa.table({"v": lists.cast(pa.list_(pa.float64(), X.shape[1]))}),
    }


@pytest.mark.parametrize("name", list(forms(np.zeros((1, 2)))))
@pytest.mark.parametrize("merge", [True, False])
def test_other_forms_of_rows(name, merge):
    X, _ = holes(n_samples=600)
    own = of(coremix.GaussianMixture(6), merge_rows=merge).fit(X)
    rows = forms(X)[name]
    other = of(coremix.GaussianMixture(6), merge_rows=merge).fit(rows)
    np.testing.assert_array_equal(other.means_, own.means_)
    np.testing.assert_array_equal(other.predict(rows), own.predict(X))
    np.testing.assert_array_equal(other.score_samples(rows), own.score_samples(X))
    np.testing.assert_array_equal(other.impute(rows), own.impute(X))


def test_tables_of_integers_and_of_nothing():
    values = [1, None, 3, 4, None, 6, 7, 8]
    kinds = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.float32()]
    for kind in kinds:
        table = pa.table({"a": pa.array(values, kind), "b": pa.array(range(8), kind)})
        with pytest.raises(ValueError, match='row 1, column "a" is null; rows count from 0; an estimator with allow_missing=True'):
            coremix.KMeans(2).fit(table)
        own = of(coremix.KMeans(2)).fit(table)
        assert own.predict(table).shape == (8,)
        filled = own.impute(table)
        np.testing.assert_array_equal(filled[[0, 2, 3, 5, 6, 7], 0], [1, 3, 4, 6, 7, 8])
        assert 1 <= filled[1, 0] <= 8
    table = pa.table({"a": pa.nulls(8), "b": pa.array(range(8), pa.float32())})
    with pytest.raises(ValueError, match='column "a" is null'):
        coremix.KMeans(2).fit(table)
    with pytest.raises(ValueError, match="has no value in any row"):
        of(coremix.KMeans(2)).fit(table)


def test_equal_rows_are_merged_where_the_same_values_are_missing():
    nan = np.nan
    X = np.array([[1.0, nan], [nan, 1.0], [1.0, nan], [0.0, 2.0], [-0.0, 2.0], [nan, 1.0], [1.0, 1.0], [9.0, nan], [9.0, 9.0]])
    own = of(coremix.KMeans(2), merge_rows=True)
    rows = np.random.default_rng(0).permutation(len(X))
    first, second = own.fit(X).cluster_centers_, clone(own).fit(X[rows]).cluster_centers_
    np.testing.assert_array_equal(first, second)
    counts = np.array([2, 2, 0, 2, 0, 0, 1, 1, 1.0])
    np.testing.assert_array_equal(clone(own).fit(X, sample_weight=counts).cluster_centers_, first)
    with pytest.warns(UserWarning, match="Number of distinct clusters"):
        of(coremix.KMeans(3), merge_rows=True).fit(np.array([[1.0, nan], [nan, 2.0], [1.0, nan], [nan, 2.0]]))



@pytest.mark.parametrize("estimator", TAKE[:1] + TAKE[7:8], ids=repr)
def test_scans(estimator, tmp_path):
    X, _ = holes(n_samples=900)
    lines = [",".join("" if np.isnan(x) else repr(float(x)) for x in row) for row in X]
    (tmp_path / "x.csv").write_text("a,b,c,d,e\n" + "\n".join(lines) + "\n")
    names = list("abcde")
    table = pa.table({name: pa.array(X[:, j], mask=np.isnan(X[:, j])) for j, name in enumerate(names)})
    import pyarrow.dataset
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    own = of(estimator, merge_rows=False).fit(X)
    batches = [pandas.DataFrame(part, columns=names) for part in np.array_split(X, 3)]
    arrays = list(np.array_split(X, 4))
    for rows in (tmp_path / "x.csv", tmp_path / "x.parquet", batches, arrays, pyarrow.dataset.dataset(tmp_path / "x.parquet")):
        with pytest.raises(ValueError, match="missing=True"):
            clone(estimator).fit(coremix.scan(rows))
        scan = coremix.scan(rows, missing=True)
        assert f"missing  {np.isnan(X).sum()} values" in repr(scan)
        # The scan says that values may be missing.
        other = clone(estimator).set_params(random_state=0, merge_rows=False).fit(scan)
        np.testing.assert_array_equal(means_of(other), means_of(own))
        np.testing.assert_array_equal(other.predict(scan), own.predict(X))
        np.testing.assert_array_equal(other.impute(scan), own.impute(X))
        merged = of(estimator, merge_rows=True)
        np.testing.assert_array_equal(means_of(merged.fit(scan)), means_of(clone(merged).fit(X)))
        small = clone(estimator).set_params(random_state=0, merge_rows=False, memory="70MiB").fit(scan)
        np.testing.assert_array_equal(means_of(small), means_of(own))
        again = pickle.loads(pickle.dumps(scan))
        np.testing.assert_array_equal(other.predict(again), own.predict(X))
    other.assign(scan, tmp_path / "l.csv")
    labels = np.loadtxt(tmp_path / "l.csv", skiprows=1)
    np.testing.assert_array_equal(labels, own.predict(X))


@pytest.mark.parametrize("size", [None, 300])
@pytest.mark.parametrize("estimator", TAKE[:1] + TAKE[7:8], ids=repr)
def test_batches(estimator, size):
    X, whole = holes()
    first = np.where(np.isnan(X[:700]), 0.5, X[:700])
    parts = [first, X[700:701], X[701:1_500], X[1_500:]]
    own = of(estimator, coreset_size=size)
    weights = np.random.default_rng(2).integers(0, 3, len(X)).astype(float)
    places = np.split(weights, [700, 701, 1_500])
    for part, weight in zip(parts, places, strict=True):
        own.partial_fit(part, sample_weight=weight)
    other = pickle.loads(pickle.dumps(own)).finish()
    np.testing.assert_array_equal(means_of(own.finish()), means_of(other))
    rows, drawn = own._stream.coreset()
    everything = np.concatenate(parts)
    if size is None:
        # Few rows are all there.
        np.testing.assert_array_equal(rows, everything[weights > 0])
        np.testing.assert_array_equal(drawn, weights[weights > 0])
        # Draws of `fast` count rows, so that rows of weight 0 would change them.
        counted = weights > 0
        together = of(estimator, merge_rows=False).fit(everything[counted], sample_weight=weights[counted])
        own.set_params(merge_rows=False).finish()
        np.testing.assert_array_equal(means_of(own), means_of(together))
    else:
        assert len(rows) <= size
        assert drawn.sum() == pytest.approx(weights.sum(), rel=0.2)
        known = {row.tobytes() for row in np.nan_to_num(everything, nan=1e9)}
        assert {row.tobytes() for row in np.nan_to_num(rows, nan=1e9)} <= known
        assert np.isnan(rows).any()
    labels = coremix.KMeans(6, random_state=0).fit(whole).labels_
    assert adjusted_rand_score(own.predict(X), labels) > 0.75
    # An infinite value is named by its batch and row.
    wrong = X[:50].copy()
    wrong[7, 3] = np.inf
    with pytest.raises(ValueError, match=r"batch 4 \(counted from 0\): data: row 7, column 3"):
        own.partial_fit(wrong)
    late = of(estimator).partial_fit(whole[:60])
    with pytest.raises(ValueError, match=r"batch 1 \(counted from 0\): data: row 7, column 3"):
        late.partial_fit(wrong)


def test_texts_of_scans(tmp_path):
    (tmp_path / "x.csv").write_text("x,y,z\n1,-999,\n-,2,\n3,4,\n5,6,\n")
    scan = coremix.scan(tmp_path / "x.csv", missing=["-", "-999"])
    assert scan.names == ["x", "y"] and scan.not_used == [("z", "no value")] and scan.dtype == "float64"
    own = coremix.GaussianMixture(1, random_state=0).fit(scan)
    np.testing.assert_allclose(own.means_, [[3.0, 4.0]])
    with pytest.raises(ValueError, match="drop_missing"):
        coremix.scan(tmp_path / "x.csv", missing=True, drop_missing=True)
    scan = coremix.scan(tmp_path / "x.csv", columns=["y"], missing="NA")
    assert "missing" not in repr(scan)
    whole = coremix.scan(tmp_path / "x.csv", columns="y", missing=False)
    assert len(whole) == 4


def test_files_pickles_and_warm_starts(tmp_path):
    X, _ = holes()
    for estimator in (coremix.KMeans(6), coremix.GaussianMixture(6)):
        own = of(estimator).fit(X)
        own.save(tmp_path / "m")
        for other in (type(own).load(tmp_path / "m"), pickle.loads(pickle.dumps(own))):
            assert other.allow_missing
            np.testing.assert_array_equal(other.predict(X), own.predict(X))
        again = clone(own).set_params(warm_start=True).fit(X)
        again.fit(X)
        np.testing.assert_allclose(means_of(again), means_of(own), atol=0.1)
        assert own.fit_predict(X).shape == (len(X),)
        assert len(own.explain()) == 6 * 5
        assert own.sizes(X).sum() == len(X)
        assert (own.medoids(X) >= 0).all()
        np.testing.assert_array_equal(own.predict_top(X, 1)[0][:, 0], own.predict(X))
        one = own.predictor()
        assert [one(row) for row in X[:50]] == own.predict(X[:50]).tolist()
    standardised = of(coremix.KMeans(6), standardise=True).fit(X * [1, 1e3, 1, 1, 1e-3])
    assert adjusted_rand_score(standardised.labels_, of(coremix.KMeans(6)).fit(X / np.nanstd(X, axis=0)).labels_) > 0.95
    table = coremix.sweep(X, [5, 6, 7], of(coremix.GaussianMixture()))
    assert table.best_["bic"] == 6
    with pytest.raises(ValueError, match="silhouette"):
        coremix.sweep(X, [2, 3], of(coremix.GaussianMixture()), silhouette=100)


def test_sums_over_partitions_need_all_values(tmp_path):
    X, whole = holes()
    own = coremix.KMeans(6, random_state=0).fit(whole)
    with pytest.raises(ValueError, match="NaN or infinite"):
        coremix.partitions.stats(X, own)
    (tmp_path / "x.csv").write_text("a,b,c,d,e\n1,2,,4,5\n")
    with pytest.raises(ValueError, match="take no missing values"):
        coremix.partitions.stats(coremix.scan(tmp_path / "x.csv", missing=True, columns=list("abcde")), own)


def test_the_tag():
    for estimator in TAKE + PROCESSES + REFUSE:
        for allowed in (False, True):
            tags = clone(estimator).set_params(allow_missing=allowed).__sklearn_tags__()
            # A fit of the others would refuse.
            assert tags.input_tags.allow_nan is (allowed and estimator not in REFUSE)


# Factors must be fewer than columns, and some of the checks have two of these.
CHECKED = [one for one in TAKE + PROCESSES + REFUSE if getattr(one, "n_factors", None) is None]


@pytest.mark.parametrize("estimator", CHECKED, ids=repr)
def test_the_checks_of_scikit_learn(estimator):
    results = check_estimator(clone(estimator).set_params(allow_missing=True), on_skip=None, on_fail=None)
    wrong = [(one["check_name"], one["exception"]) for one in results if one["status"] != "passed"]
    assert wrong == []
