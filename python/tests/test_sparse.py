"""Sparse matrices of scipy: fits and answers are those of dense rows with the zeros."""

import pickle
import warnings

import coremix
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from coremix import (
    BayesianGaussianMixture,
    DGmm,
    GaussianMixture,
    KMeans,
    SparsifiedGmm,
    TableMixture,
    VcGmm,
    scan,
)
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score


@pytest.fixture
def rows():
    rng = np.random.default_rng(1)
    labels = rng.integers(4, size=800)
    own = rng.random((800, 60)) < np.where(np.arange(60) % 4 == labels[:, None], 0.5, 0.03)
    # Wider than what is fitted as an array.
    return np.pad(np.where(own, 0.5 + rng.random((800, 60)), 0), ((0, 0), (0, 2_000))), labels


FORMATS = [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_matrix, sp.dok_array, sp.bsr_array]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_all_formats_have_the_fits_of_dense_rows(rows, form, dtype):
    X, _ = rows
    X = np.round(3 * X).astype(dtype)
    init = X[:4].astype(np.float64)
    dense = KMeans(4, algorithm="lloyd", init=init, max_iter=5, tol=0, merge_rows=False).fit(X)
    sparse = KMeans(4, algorithm="lloyd", init=init, max_iter=5, tol=0).fit(form(X))
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    np.testing.assert_allclose(sparse.cluster_centers_, dense.cluster_centers_, atol=1e-5)
    assert sparse.inertia_ == pytest.approx(dense.inertia_, rel=1e-5)
    np.testing.assert_array_equal(dense.predict(form(X)), sparse.predict(X))
    np.testing.assert_allclose(dense.transform(form(X)), dense.transform(X), atol=1e-3)
    assert dense.score(form(X)) == pytest.approx(dense.score(X), rel=1e-5)


@pytest.mark.parametrize("algorithm", ["fast", "lazy-k-means", "lwcs-k-means"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_groups_are_found(rows, algorithm, metric):
    X, labels = rows
    fit = KMeans(4, algorithm=algorithm, metric=metric, n_init=5, random_state=1).fit(sp.csr_array(X), sample_weight=np.ones(800))
    assert adjusted_rand_score(labels, fit.labels_) > 0.8


MIXTURES = [
    # Some columns of a component are all zeros.
    GaussianMixture(4, covariance_type="diag", prior_rows=1.0),
    *(GaussianMixture(4, covariance_type=kind) for kind in ("spherical", "tied-spherical")),
    GaussianMixture(4, c_prime=3, covariance_type="tied-spherical", init_params="k-means++"),
]


@pytest.mark.parametrize("mixture", MIXTURES, ids=repr)
def test_mixtures_have_the_fits_of_dense_rows(rows, mixture):
    X, labels = rows
    X = X[:, :1_500].copy()
    noise = np.random.default_rng(3).random(X.shape)
    X[noise < 0.02] = 1.0
    means = np.stack([X[labels == c].mean(axis=0) for c in range(4)])
    options = {"means_init": means, "max_iter": 3, "tol": 0, "random_state": 1, "merge_rows": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        dense = clone(mixture).set_params(**options).fit(X)
        own = clone(mixture).set_params(**options).fit(sp.csr_array(X))
    np.testing.assert_allclose(own.means_, dense.means_, atol=1e-6)
    np.testing.assert_allclose(own.weights_, dense.weights_, atol=1e-6)
    assert own.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-6)
    sparse = sp.csr_array(X)
    np.testing.assert_array_equal(own.predict(sparse), dense.predict(X))
    np.testing.assert_allclose(own.score_samples(sparse), own.score_samples(X), rtol=1e-6)
    top, shares = own.predict_top(sparse, 4)
    np.testing.assert_allclose(np.take_along_axis(own.predict_proba(X), top, axis=1), shares, atol=1e-6)
    assert own.__sklearn_tags__().input_tags.sparse


@pytest.mark.parametrize("mixture", [GaussianMixture(4, n_init=5), VcGmm(4, n_init=5), DGmm(4, n_init=5)], ids=repr)
def test_mixtures_find_groups(rows, mixture):
    X, labels = rows
    fit = clone(mixture).set_params(covariance_type="spherical", random_state=1).fit(sp.csr_array(X))
    assert adjusted_rand_score(labels, fit.predict(sp.csr_array(X))) > 0.8


def test_text_is_clustered_by_cosine():
    topics = ["the cat sat with a dog", "stocks and bonds fell in trade", "rain and wind over the sea"]
    texts = [f"{topics[i % 3]} {i}" for i in range(300)]
    X = TfidfVectorizer().fit_transform(texts)
    fit = KMeans(3, metric="cosine", n_init=3, random_state=0).fit(X)
    assert adjusted_rand_score(np.arange(300) % 3, fit.labels_) == 1


def test_columns_that_repeat_or_do_not_ascend_are_summed_and_sorted(rows):
    X, _ = rows
    good = sp.csr_array(X)
    turned = sp.csr_array((good.data[::-1].copy(), good.indices[::-1].copy(), np.append(0, np.cumsum(np.diff(good.indptr)[::-1]))))
    turned = sp.csr_array((turned.data, turned.indices, turned.indptr), shape=X.shape)
    twice = sp.coo_array((np.repeat(good.tocoo().data / 2, 2), tuple(np.repeat(at, 2) for at in good.tocoo().coords)), shape=X.shape)
    before = turned.indices.copy()
    fit = KMeans(4, random_state=0).fit(good)
    np.testing.assert_array_equal(fit.predict(twice), fit.labels_)
    np.testing.assert_array_equal(fit.predict(turned), fit.predict(X[::-1]))
    np.testing.assert_array_equal(turned.indices, before)


def test_few_numbers_are_fitted_as_an_array():
    X = np.repeat(np.eye(4, 6), 3, axis=0)
    fits = [KMeans(3, random_state=0).fit(rows).cluster_centers_ for rows in (X, sp.csr_array(X))]
    np.testing.assert_array_equal(*fits)


def test_what_cannot_be_fitted_is_told(rows):
    X, _ = rows
    sparse = sp.csr_array(X)
    pairs = [GaussianMixture(3, covariance_type=kind) for kind in ("full", "tied")] + [VcGmm(3, covariance_type="full")]
    factors = GaussianMixture(3, covariance_type="factors", n_factors=2)
    for estimator in (*pairs, factors, BayesianGaussianMixture(3), SparsifiedGmm(3), TableMixture(3)):
        with pytest.raises(TypeError, match="sparse.*toarray"):
            estimator.fit(sparse)
        assert not estimator.__sklearn_tags__().input_tags.sparse
    with pytest.raises(TypeError, match=r"sparse.*predict_top\(X, m\)"):
        GaussianMixture(3, random_state=0).fit(sparse).predict_proba(sparse)
    with pytest.raises(ValueError, match="merge_rows"):
        KMeans(3, merge_rows=True).fit(sparse)
    with pytest.raises(TypeError, match="sparse.*toarray"):
        BayesianGaussianMixture(3).partial_fit(sparse)
    with pytest.raises(ValueError, match=r"partial_fit.*with its zeros.*fit\(X\) takes all sparse rows"):
        KMeans(3).partial_fit(sp.csr_array((9, 2**31 - 2)))
    bad = sparse.copy()
    bad.data[0] = np.nan
    with pytest.raises(ValueError, match="row 0"):
        KMeans(3).fit(bad)
    fit = KMeans(3, random_state=0).fit(sparse)
    with pytest.raises(ValueError, match="2059 features"):
        fit.predict(sparse[:, :2059])
    assert len(fit.predict(sparse[:0])) == 0
    with pytest.raises(ValueError, match="sample"):
        KMeans(3).fit(sparse[:0])
    with pytest.raises(ValueError):
        KMeans(3).fit(sparse.astype(complex))


def test_frames_of_pandas_with_sparse_columns():
    """Few numbers are fitted as those of a frame, many as those of a sparse matrix; names of columns stay."""
    few = pd.get_dummies(pd.Series(list("abcabcaab")), sparse=True, dtype=float)
    mixed = few.assign(x=np.arange(9.0), y=pd.arrays.SparseArray([7.0] * 8 + [1], fill_value=7.0))
    for frame in (few, mixed, mixed[["y"]], few.astype(pd.SparseDtype(bool))):
        for estimator in (KMeans(2, random_state=0), GaussianMixture(2, covariance_type="full", random_state=0)):
            found, dense = clone(estimator).fit(frame), clone(estimator).fit(frame.astype(float))
            np.testing.assert_array_equal(found.predict(frame), dense.predict(frame.astype(float)))
            assert found.feature_names_in_.tolist() == list(frame.columns)
            np.testing.assert_array_equal(found._model.predict(frame), found.predict(frame))
    rows = sp.random(20_000, 60, 0.03, random_state=0, format="csr")
    many = pd.DataFrame.sparse.from_spmatrix(rows, columns=[f"c{j}" for j in range(60)])
    found, expected = KMeans(4, random_state=0).fit(many), KMeans(4, random_state=0).fit(rows)
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(found.predict(many), expected.labels_)
    assert found.explain(top=1)[0]["column"].startswith("c")
    with pytest.raises(ValueError, match="in this order"):
        found.predict(many[many.columns[::-1]])
    # A value that is not stored is missing in this frame.
    holes = pd.DataFrame({"a": pd.arrays.SparseArray([np.nan, 1, 2, 9]), "b": pd.arrays.SparseArray([1.0, 1, 0, 7], fill_value=0)})
    with pytest.raises(ValueError, match='row 0, column "a" is NaN'):
        KMeans(2).fit(holes)
    assert KMeans(2, allow_missing=True, random_state=0).fit(holes).impute(holes)[0, 0] > 0
    assert KMeans(2, random_state=0).fit(scan([few])).feature_names_in_.tolist() == list("abc")


def _cut(X):
    X.data = X.data[:-5]


def _cut_indices(X):
    X.indices = X.indices[:-5]


def _negative(X):
    X.indices[3] = -1


def _beyond(X):
    X.indices[3] = 10**6


def _falling(X):
    X.indptr[5] = X.indptr[9] + 3


def _too_long(X):
    X.indptr[-1] += 100


def _late(X):
    X.indptr[0] = 2


def _of_floats(X):
    X.indices = X.indices.astype(float)


def _of_objects(X):
    X.data = X.data.astype(object)


def _of_two_axes(X):
    X.data = X.data.reshape(-1, 1)


def _of_fewer_columns(X):
    X._shape = (X.shape[0], 10)


WRONG = [_cut, _cut_indices, _negative, _beyond, _falling, _too_long, _late, _of_floats, _of_objects, _of_two_axes, _of_fewer_columns]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("columns", [100, 50_000])
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_lists_that_are_no_matrix_are_errors(wrong, columns, form):
    def made():
        return sp.random(60, columns, density=20 / columns, format="csr", random_state=1).asformat(form)

    model = KMeans(3, random_state=1).fit(made())
    for ask in [KMeans(3).fit, GaussianMixture(2, covariance_type="diag").fit, model.predict, model.score, model.transform]:
        X = made()
        wrong(X)
        if form == "csc" and wrong is _of_fewer_columns:
            continue
        # Never a panic, which is no Exception, and never a crash of scipy.
        with pytest.raises((ValueError, TypeError)):
            ask(X)


def test_native_lists_are_checked():
    from coremix import _coremix

    for starts, ids, values in [([0, 2, 5], 3, 3), ([0, 2, 3], 3, 2), ([], 0, 0), ([1, 3], 3, 3), ([0, 3, 2, 3], 3, 3), ([0, -1, 3], 3, 3)]:
        lists = np.array(starts, np.int64), np.arange(ids, dtype=np.uint32), np.ones(values)
        with pytest.raises(ValueError, match="no matrix in compressed rows"):
            _coremix.Csr(*lists, 10)


def test_sparse_fits_have_a_limit():
    X = sp.csr_array((np.ones(99), np.arange(99) * 40_000, np.arange(100)), shape=(99, 3_960_001))
    for model in [KMeans(2, memory="64MiB"), KMeans(2, algorithm="lloyd", memory="64MiB"), GaussianMixture(2, covariance_type="diag", memory="64MiB")]:
        with pytest.raises(ValueError, match="memory = 64 MiB, where .* needs"):
            model.fit(X)


FAR = [
    KMeans(4, algorithm="lloyd"),
    KMeans(4, algorithm="lloyd", metric="cosine"),
    *(GaussianMixture(4, covariance_type=kind) for kind in ("tied-spherical", "spherical", "diag")),
    GaussianMixture(4, c_prime=3, covariance_type="tied-spherical", init_params="k-means++"),
]


@pytest.mark.parametrize("far", [0, 1, 1e3, 1e6, 1.7e9])
@pytest.mark.parametrize("estimator", FAR, ids=repr)
def test_columns_far_from_0_have_the_fits_of_dense_rows(rows, estimator, far):
    X, labels = rows
    X = X[:, :1_500].copy()
    noise = np.random.default_rng(3).normal(size=(800, 3))
    # A constant, a column of all rows, one below 0 and one of a group; explicit zeros.
    X[:, 100] = far
    X[:, 101] = far + 3 * labels + noise[:, 0]
    X[:, 102] = -far - 20 * labels - np.abs(noise[:, 1])
    X[:, 103] = np.where(labels == 2, far + noise[:, 2], 0)
    sparse = sp.csr_array(X + (np.arange(1_500) == 500)).tocsr()
    sparse.data[sparse.indices == 500] -= 1
    name = "init" if isinstance(estimator, KMeans) else "means_init"
    means = np.stack([X[labels == c][:20].mean(axis=0) for c in range(4)])
    options = {name: means, "max_iter": 6, "tol": 0, "random_state": 1, "merge_rows": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dense = clone(estimator).set_params(**options).fit(X)
        own = clone(estimator).set_params(**options).fit(sparse)
    np.testing.assert_array_equal(own.predict(sparse), dense.predict(X))
    energies = np.array(own.report_["free_energies"])
    # One of them may not see that nothing changes any more.
    pairs = list(zip(energies, dense.report_["free_energies"], strict=False))
    np.testing.assert_allclose(*zip(*pairs, (energies[-1], dense.report_["free_energies"][-1]), strict=True), rtol=1e-9)
    assert (np.diff(energies) >= -1e-9 * np.maximum(np.abs(energies[1:]), 800)).all()


@pytest.mark.parametrize("rows", [100, 3_000])
def test_stored_nan_is_an_error_at_every_size(rows):
    X = sp.random(rows, 400, density=0.02, random_state=1, format="csr")
    good = KMeans(3, allow_missing=True, random_state=0).fit(X)
    X.data[3] = np.nan
    place = rf"row {X.tocoo().row[3]}, column {X.indices[3]} is NaN.*toarray"
    for missing in (False, True):
        with pytest.raises(ValueError, match=place):
            KMeans(3, allow_missing=missing).fit(X)
    with pytest.raises(ValueError, match=place):
        good.predict(X)


@pytest.mark.parametrize("estimator", [KMeans(4, random_state=0), KMeans(4, metric="cosine", random_state=0), VcGmm(4, random_state=0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batches_of_partial_fit_have_the_bits_of_dense_ones(rows, estimator, dtype):
    X = rows[0][:, :300].astype(dtype)
    weights = 0.5 + np.arange(len(X)) % 3
    dense, sparse = clone(estimator), clone(estimator)
    for part in np.array_split(np.arange(len(X)), 3):
        dense.partial_fit(X[part], sample_weight=weights[part])
        sparse.partial_fit(sp.csr_array(X[part]), sample_weight=weights[part])
    assert dense.finish()._model == sparse.finish()._model
    mixed = clone(estimator).partial_fit(X[:400]).partial_fit(sp.coo_array(X[400:]))
    assert mixed.finish()._model == clone(estimator).partial_fit(X[:400]).partial_fit(X[400:]).finish()._model


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scans_of_sparse_rows_have_the_bits_of_the_matrix(rows, tmp_path, dtype, wide):
    X = sp.csr_matrix(rows[0] if wide else rows[0][:, :60]).astype(dtype)
    sp.save_npz(tmp_path / "rows.npz", X)
    dump_svmlight_file(X, np.zeros(len(rows[0])), str(tmp_path / "rows.svmlight"))
    weights = 0.5 + np.arange(X.shape[0]) % 3
    ways = {
        "npz": scan(tmp_path / "rows.npz"),
        "parts": scan([X[:300], X[300:]]),
        "batches": scan(lambda: iter([X[:300].tocoo(), X[300:].tocsc()])),
    }
    for estimator in (KMeans(4, random_state=0), VcGmm(4, random_state=0)):
        whole = clone(estimator).fit(X, sample_weight=weights)
        for name, own in ways.items():
            assert (len(own), own.columns, own.nnz) == (*X.shape, X.nnz), name
            fit = clone(estimator).fit(own, sample_weight=weights)
            assert fit._model == whole._model, name
            np.testing.assert_array_equal(fit.predict(own), whole.predict(X))
            again = pickle.loads(pickle.dumps(own))
            np.testing.assert_array_equal(again.toarray(), X.toarray())
        batches = clone(estimator).fit([X[:300], X[300:]], sample_weight=weights)
        assert batches._model == whole._model
    text = scan(tmp_path / "rows.svmlight")
    width = text.columns
    np.testing.assert_allclose(text.toarray(), X.toarray()[:, :width], rtol=1e-6)
    assert clone(KMeans(4, random_state=0)).partial_fit(scan(tmp_path / "rows.npz")).finish()._model == KMeans(
        4, random_state=0
    ).partial_fit(X).finish()._model
    assert "Sparse rows" in repr(text)
    with pytest.raises(TypeError, match="toarray"):
        np.asarray(text)


def test_scans_of_sparse_rows_say_what_they_have_not(rows, tmp_path):
    X = sp.csr_matrix(rows[0])
    sp.save_npz(tmp_path / "rows.npz", X)
    with pytest.raises(TypeError, match="sparse.*toarray"):
        GaussianMixture(3, covariance_type="full").fit(scan(tmp_path / "rows.npz"))
    with pytest.raises(ValueError, match="weights: sparse rows have neither names"):
        scan([X, X], weights="w")
    with pytest.raises(TypeError, match="batch 1 is no sparse matrix"):
        scan([X, X.toarray()])
    with pytest.raises(TypeError, match="a batch is a sparse matrix, and the first one is not"):
        scan([X.toarray(), X])
    with pytest.raises(ValueError, match="batch 1 has the shape"):
        scan([X, X[:, :9]])
    few = X[:50, :20].copy()
    few.data[0] = np.nan
    sp.save_npz(tmp_path / "nan.npz", few)
    with pytest.raises(ValueError, match="NaN"):
        KMeans(2, allow_missing=True).fit(scan(tmp_path / "nan.npz"))


def test_partitions_read_sparse_rows_with_their_zeros(rows):
    X = rows[0][:, :60]
    model = GaussianMixture(3, random_state=0, max_iter=2).fit(X)
    assert coremix.stats(sp.csr_array(X), model) == coremix.stats(X, model)
    for found, expected in zip(coremix.sample(sp.csr_array(X), 100, 1), coremix.sample(X, 100, 1)):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(coremix.assign(sp.csr_array(X), model), model.predict(X))
