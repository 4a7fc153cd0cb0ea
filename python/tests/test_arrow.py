"""Tables, batches and streams of the Arrow C data interface."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import coremix
from coremix import partitions


class OnlyArray:
    """A batch that knows nothing but the C data interface."""

    def __init__(self, batch):
        self.batch = batch

    def __arrow_c_array__(self, requested_schema=None):
        return self.batch.__arrow_c_array__(requested_schema)


def table_of(x, cuts=(0, 700, 701, 2_000, 3_000)):
    names = [f"x{j}" for j in range(x.shape[1])]
    parts = [pa.table(dict(zip(names, x[a:b].T))) for a, b in zip(cuts, cuts[1:])]
    return pa.concat_tables(parts)


def lists_of(x, kind):
    flat = pa.array(x.ravel())
    if kind == "fixed":
        lists = pa.FixedSizeListArray.from_arrays(flat, x.shape[1])
    else:
        offsets = np.arange(0, x.size + 1, x.shape[1])
        maker, dtype = {"list": (pa.ListArray, np.int32), "large": (pa.LargeListArray, np.int64)}[kind]
        lists = maker.from_arrays(pa.array(offsets.astype(dtype)), flat)
    return pa.table({"vector": lists})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "estimator",
    [
        coremix.KMeans(5, random_state=1),
        coremix.KMeans(5, random_state=1, merge_rows=False, algorithm="lloyd"),
        coremix.VcGmm(5, random_state=1),
        coremix.SparsifiedGmm(5, random_state=1, n_coordinates=3, merge_rows=False),
    ],
    ids=repr,
)
def test_tables_are_the_rows_they_hold(X, estimator, dtype):
    X = X.astype(dtype)
    labels = estimator.fit(X, sample_weight=np.arange(len(X))).predict(X)
    model = estimator._model
    for table in [table_of(X), lists_of(X, "fixed"), lists_of(X, "list"), lists_of(X, "large")]:
        found = estimator.fit(table, sample_weight=np.arange(len(X)))
        assert found._model == model
        assert found.n_features_in_ == X.shape[1]
        np.testing.assert_array_equal(found.predict(table), labels)
        np.testing.assert_array_equal(coremix.assign(table, found), labels)
    reader = pa.RecordBatchReader.from_batches(table_of(X).schema, table_of(X).to_batches())
    assert estimator.fit(reader, sample_weight=np.arange(len(X)))._model == model
    batch = OnlyArray(table_of(X).combine_chunks().to_batches()[0])
    assert estimator.fit(batch, sample_weight=np.arange(len(X)))._model == model


def test_parts_of_batches(X):
    """Slices share the memory of the whole: their first row is not the first one there."""
    model = coremix.KMeans(5, random_state=1).fit(X)
    for whole in [table_of(X, (0, 3_000)), lists_of(X, "fixed"), lists_of(X, "list")]:
        part = whole.slice(123, 456).to_batches()[0]
        for batch in [part, OnlyArray(part)]:
            np.testing.assert_array_equal(coremix.assign(batch, model), model.labels_[123 : 123 + 456])


def test_number_types():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 100, size=(500, 8))
    kinds = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]
    table = pa.table({f"x{j}": pa.array(x[:, j]).cast(kind) for j, kind in enumerate(kinds)})
    expected = coremix.KMeans(4, random_state=0).fit(x)
    found = coremix.KMeans(4, random_state=0).fit(table)
    assert found.cluster_centers_.dtype == np.float64
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    halves = pa.table({f"x{j}": pa.array(x[:, j].astype(np.float16)) for j in range(8)})
    found = coremix.KMeans(4, random_state=0).fit(halves)
    assert found.cluster_centers_.dtype == np.float32
    np.testing.assert_array_equal(found.labels_, expected.labels_)


def test_names_are_those_of_the_columns(X):
    table = table_of(X)
    model = coremix.KMeans(4, random_state=0).fit(table)
    assert list(model.feature_names_in_) == table.column_names
    with pytest.raises(ValueError, match="in this order"):
        model.predict(table.select(table.column_names[::-1]))
    with pytest.raises(ValueError, match="'x4'\\], in this order: select these"):
        model.predict(table.append_column("key", table["x0"]))
    with pytest.raises(ValueError, match="expecting 5 features"):
        model.predict(lists_of(X[:, :1], "fixed"))
    frame = table.to_pandas()
    assert list(coremix.KMeans(4).fit(frame).feature_names_in_) == table.column_names
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    assert not hasattr(model.fit(lists_of(X, "fixed")), "feature_names_in_")


@pytest.mark.parametrize(
    "table, what",
    [
        (pa.table({"a": [1.0, None]}), "row 1, column \"a\" is null"),
        (pa.table({"a": [1.0], "b": ["x"]}), "column \"b\" does not hold numbers, but text such as \"x\""),
        (pa.table({"a": pa.array([1, 2**60])}), "row 1, column \"a\" is an integer beyond 2\\^53"),
        (pa.table({"v": pa.array([[1.0], [1.0, 2.0]])}), "row 1 is a list of 2 numbers, where others have 1"),
        (pa.table({"v": pa.array([[1.0], None])}), "row 1 is null"),
        (pa.table({"v": pa.array([[1.0, None]])}), "row 0, column \"v\" is null"),
        (pa.table({"a": [1.0, float("nan")]}), "row 1, column \"a\" is NaN or infinite"),
        (pa.table({"a": pa.array([], pa.float64())}), "0 sample"),
        (pa.table({}), "0 sample"),
    ],
)
def test_unusable_tables(table, what):
    with pytest.raises(ValueError, match=what):
        coremix.KMeans(1).fit(table)


def test_arrays_without_columns_are_refused():
    with pytest.raises(TypeError, match="no columns"):
        coremix.assign(pa.array([1.0]), coremix.KMeans(1).fit([[1.0]]))
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        coremix._coremix.Table(3)


def test_batches_without_rows(X):
    model = coremix.KMeans(4, random_state=0).fit(X)
    for empty in [table_of(X).slice(0, 0), np.zeros((0, 5)), lists_of(X, "fixed").slice(0, 0), lists_of(X, "list").slice(0, 0)]:
        assert coremix.assign(empty, model).shape == (0,)
        assert partitions.describe(coremix.stats(empty, model))["rows"] == 0


def test_frames_of_pandas_with_any_memory_order(X):
    frame = pd.DataFrame(X)
    expected = coremix.KMeans(4, random_state=0).fit(X)
    found = coremix.KMeans(4, random_state=0).fit(frame)
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)


def test_as_many_weights_as_rows(X):
    model = coremix.KMeans(4, random_state=0).fit(X)._model
    for n in [len(X) - 1, len(X) + 1]:
        with pytest.raises(ValueError, match=f"{n} weights for {len(X)} rows"):
            model.quantization_error(X, weights=np.ones(n))
