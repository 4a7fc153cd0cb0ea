"""Arrays in every number type and memory order give the same fit, and are not copied."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import coremix
from conftest import blobs

ORDERS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "reversed": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "strided": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
}


def read_only(x):
    x = x.view()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.uint8, np.int8])
@pytest.mark.parametrize("algorithm", ["fast", "lloyd"])
def test_types_and_orders_give_the_same_bits(bytes_like, algorithm, dtype, order):
    model = coremix.KMeans(6, algorithm=algorithm, merge_rows=False, random_state=3)
    wide = np.float64 if dtype is np.float64 else np.float32
    expected = model.fit(bytes_like.astype(wide))
    means, labels, inertia = expected.cluster_centers_, expected.labels_, expected.inertia_
    x = read_only(ORDERS[order](bytes_like.astype(dtype)))
    found = model.fit(x)
    assert found.cluster_centers_.dtype == wide
    np.testing.assert_array_equal(found.cluster_centers_, means)
    np.testing.assert_array_equal(found.labels_, labels)
    np.testing.assert_array_equal(found.predict(x), labels)
    assert found.inertia_ == inertia


def test_unaligned_and_swapped_numbers(X):
    expected = coremix.KMeans(4, random_state=0).fit(X)
    raw = np.zeros(X.nbytes + 1, dtype=np.uint8)
    unaligned = raw[1:].view(np.float64).reshape(X.shape)
    unaligned[:] = X
    fields = np.zeros(X.shape, dtype=[("x", "f8"), ("tail", "u1")])
    fields["x"] = X
    for x in [unaligned, fields["x"], X.astype(">f8"), X.tolist()]:
        found = coremix.KMeans(4, random_state=0).fit(x)
        np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)


def test_a_model_reads_rows_of_other_types(X):
    model = coremix.GaussianMixture(4, random_state=0).fit(X)
    single = X.astype(np.float32)
    np.testing.assert_array_equal(model.predict(single), model.predict(single.astype(np.float64)))
    model = coremix.GaussianMixture(4, random_state=0).fit(single)
    assert model.predict_proba(X).dtype == np.float32
    np.testing.assert_array_equal(model.predict(X), model.predict(X.astype(np.float32)))


def anonymous():
    """Bytes of memory that belong to the process alone: pages of files do not count."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) * 1024


def growth_of(x, **settings):
    """How much larger the process is at any step of the fit than before."""
    sizes = []
    model = coremix.KMeans(
        4,
        algorithm="lwcs-k-means",
        coreset_size=1_000,
        compute_labels=False,
        n_jobs=1,
        random_state=0,
        max_iter=3,
        callback=lambda step: sizes.append(anonymous()),
        **settings,
    )
    before = anonymous()
    model.fit(x)
    assert len(sizes) > 2
    return max(sizes) - before


@pytest.mark.skipif(not hasattr(__import__("os"), "memfd_create"), reason="needs /proc of Linux")
def test_no_copy_is_made(tmp_path):
    shape = (400_000, 64)
    growth_of(blobs(20_000, 64, dtype=np.float32))  # threads and code are loaded
    for dtype in [np.float32, np.float64, np.uint8, np.int8, np.float16]:
        for order in "CF":
            path = tmp_path / "rows"
            x = np.memmap(path, dtype=dtype, mode="w+", shape=shape, order=order)
            x[:1_000] = np.clip(blobs(1_000, 64), 0, 100)
            x.flush()
            x = np.memmap(path, dtype=dtype, mode="r", shape=shape, order=order)
            assert growth_of(x) < 0.3 * x.nbytes + 4e6, (dtype, order)
            del x
    # The measure works: an array that must be converted is seen as a copy.
    x = np.zeros(shape, dtype=np.int16)
    x[:1_000] = np.clip(blobs(1_000, 64), 0, 100)
    assert growth_of(x) > 4 * x.nbytes * 0.9


def masked(X, *places):
    mask = np.zeros(X.shape, dtype=bool)
    for place in places:
        mask[place] = True
    return np.ma.array(X, mask=mask)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
def test_a_masked_value_is_an_error(dtype):
    """A value under the mask, such as 999, would be a cluster of its own."""
    x = np.array([[1, 1], [2, 1], [9, 8], [9, 9], [1, 200]], dtype=dtype)
    hidden = masked(x, (4, 1))
    fitted = coremix.KMeans(2, random_state=0).fit(x[:4])
    mixture = coremix.GaussianMixture(2, random_state=0).fit(x[:4])
    message = "row 4, column 1 is masked"
    for call in [
        lambda: coremix.KMeans(2).fit(hidden),
        lambda: coremix.KMeans(2).fit(list(hidden)),
        lambda: fitted.predict(hidden),
        lambda: fitted.transform(hidden),
        lambda: fitted._model.predict(hidden),
        lambda: mixture.score_samples(hidden),
        lambda: coremix.partitions.stats(hidden, fitted),
        lambda: coremix.partitions.sample(hidden, 3, 0),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match="sample_weight: row 2 is masked"):
        fitted.fit(x[:4], sample_weight=masked(np.ones(4), 2))
    with pytest.raises(ValueError, match="init: row 0, column 0 is masked"):
        coremix.KMeans(2, init=masked(x[:2].astype(float), (0, 0))).fit(x)


def test_a_mask_without_masked_values_changes_nothing(X):
    expected = coremix.KMeans(3, random_state=0).fit(X)
    for x in [np.ma.array(X), masked(X), list(np.ma.array(X))]:
        found = coremix.KMeans(3, random_state=0).fit(x, sample_weight=np.ma.ones(len(X)))
        np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
        np.testing.assert_array_equal(found._model.predict(x), expected.predict(X))


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical", "tied-spherical"])
def test_a_row_of_weight_0_and_density_0_is_absent(kind):
    x = np.zeros((50, 2))
    weights = np.r_[np.ones(50), 0.0]
    with pytest.warns(ConvergenceWarning):
        model = coremix.GaussianMixture(2, covariance_type=kind, random_state=0).fit(x)
    far = np.r_[x, [[1e150, 1e150]]]
    assert model.score_samples(far)[-1] == model.score(far) == -np.inf
    for ask in [model.score, model.bic, model.aic]:
        assert ask(far, sample_weight=weights) == pytest.approx(ask(x, sample_weight=weights[:50]), rel=1e-12)


BIG = 2**60 + np.arange(6).reshape(3, 2)


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        (BIG, "row 0, column 0: 1152921504606846976 "),
        (np.where(np.arange(6).reshape(3, 2) == 3, BIG, 5).astype(np.uint64), "row 1, column 1: "),
        (-np.where(np.arange(6).reshape(3, 2) == 4, BIG, 5), "row 2, column 0: -"),
        (np.array([[2**53, 1], [2, 2**53 + 1]]), "row 1, column 1: 9007199254740993 "),
        (np.array([[-(2**63), 1], [2, 3]]), "row 0, column 0: -9223372036854775808 "),
        ([[1, 0.5], [2**60 + 1, 2]], "row 1, column 0: "),
        ([[1, 2**80], [2, 3]], "row 0, column 1: "),
        (BIG.astype(object), "row 0, column 0: "),
        (np.ma.array(BIG), "row 0, column 0: "),
        (pd.DataFrame({"x": [0.5, 1, 2], "id": BIG[:, 0]}), "row 0, column 'id': "),
        (pd.DataFrame({"id": [1, 2**60, None]}, dtype="Int64"), "row 1, column 'id': "),
        (pd.DataFrame({"id": pd.arrays.SparseArray([0, 0, 2**60 + 1])}), "row 2, column 'id': "),
        (sp.csr_matrix([[0, 0, 0], [0, 2, 2**60]]), "row 1, column 2: "),
        (np.array(["2020-01-01", "2021-01-01"], "M8[ns]")[:, None], "row 0, column 0: 2020-01-01"),
    ],
)
def test_integers_that_float64_does_not_hold(rows, place):
    """Arrow and files refuse them as well."""
    d = rows.shape[1] if hasattr(rows, "shape") else len(rows[0])
    told = f"^X: {place}.*is an integer beyond 2\\^53"
    for estimator in (coremix.KMeans(2, random_state=0), coremix.GaussianMixture(2, covariance_type="diag", random_state=0)):
        with pytest.raises(ValueError, match=told):
            estimator.fit(rows)
        known = estimator.fit(np.random.default_rng(0).normal(size=(50, d)))
        asks = [known.predict, known.score, known.medoids, known.predict_top, known._model.predict]
        for ask in asks if sp.issparse(rows) else [*asks, known.partial_fit]:
            with pytest.raises(ValueError, match=told):
                ask(rows)


def test_integers_of_weights_rows_and_parameters_that_float64_does_not_hold(X):
    weights = np.full(len(X), 2**53)
    weights[7] += 1
    for given in (weights, weights.tolist(), pd.Series(weights)):
        with pytest.raises(ValueError, match=r"^sample_weight: row 7: 9007199254740993 is an integer beyond 2\^53"):
            coremix.KMeans(2).fit(X, sample_weight=given)
    with pytest.raises(ValueError, match="^init: row 1, column 0: "):
        coremix.KMeans(2, init=[[0] * X.shape[1], [2**60] * X.shape[1]]).fit(X)
    model = coremix.GaussianMixture(2, covariance_type="full", random_state=0).fit(X)
    with pytest.raises(ValueError, match="^values: row 0: "):
        model.condition([0], [2**60 + 1])
    ask = coremix.KMeans(2, random_state=0).fit(X).predictor()
    for row in (np.full(X.shape[1], 2**60), [2**60 + 1] * X.shape[1], (2**60,) * X.shape[1]):
        with pytest.raises(ValueError, match="integer beyond"):
            ask(row)
    assert ask([2.0**60] * X.shape[1]) == ask(np.full(X.shape[1], 2.0**60))


def test_integers_that_float64_holds(X):
    rows = np.c_[np.arange(8) * 2**50, [2**53, -(2**53), 0, 1, 2, 3, 4, 5]]
    found = [coremix.KMeans(2, random_state=0).fit(x).cluster_centers_ for x in (rows, rows.astype(float), rows.tolist(), 2.0 * rows)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(2 * found[0], found[3])
    coremix.KMeans(2, random_state=0).fit([[2.0**70, 1], [1, 2], [3, 4]])


def test_integers_of_128_bits():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1.0, 2, 9], "b": [3, 4, 5]})
    expected = coremix.KMeans(2, random_state=0).fit(frame).cluster_centers_
    for kind in (pl.Int128, pl.UInt128):
        wide = frame.cast({"b": kind})
        for rows in (wide, wide.lazy(), coremix.scan([wide])):
            np.testing.assert_array_equal(coremix.KMeans(2, random_state=0).fit(rows).cluster_centers_, expected)
        with pytest.raises(ValueError, match=r"'b'.*1180591620717411303424"):
            coremix.KMeans(2).fit(wide.with_columns(pl.lit(2**70, dtype=kind).alias("b")))
        with pytest.raises(ValueError, match=r'column "b" is an integer beyond 2\^53'):
            coremix.KMeans(2).fit(wide.with_columns(pl.lit(2**60, dtype=kind).alias("b")))
    with pytest.raises(ValueError, match="X is a column"):
        coremix.KMeans(2).fit(frame["a"])
