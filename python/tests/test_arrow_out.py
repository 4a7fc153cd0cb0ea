"""Results for whatever reads the Arrow C data interface."""

import ctypes
import gc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import coremix
from coremix import Arrow


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 1_000])
def test_a_column_is_not_copied(dtype, n):
    values = np.arange(n).astype(dtype)
    column = Arrow([values])
    array = pa.array(column)
    assert array.type == pa.from_numpy_dtype(dtype) and array.null_count == 0
    np.testing.assert_array_equal(array.to_numpy(), values)
    assert len(column) == n and "rows" in repr(column)
    if n:
        assert array.buffers()[1].address == values.ctypes.data
    # As often as it is asked for.
    assert pa.array(column).equals(array)


def test_memory_lives_as_long_as_it_is_used():
    array = pa.array(Arrow([np.arange(100_000, dtype=np.int32)]))
    gc.collect()
    others = [np.full(100_000, 7, np.int32) for _ in range(5)]
    np.testing.assert_array_equal(array.to_numpy(), np.arange(100_000))
    assert len(others) == 5


def test_capsules_that_nobody_reads_are_released():
    values = np.arange(10.0)
    count = ctypes.c_ssize_t.from_address(id(values)).value
    for _ in range(100):
        Arrow([values]).__arrow_c_array__()
        Arrow([values]).__arrow_c_schema__()
    gc.collect()
    assert ctypes.c_ssize_t.from_address(id(values)).value == count


@pytest.mark.parametrize("named", [True, False])
def test_centres_are_a_batch_and_labels_a_column(X, named):
    rows = pd.DataFrame(X, columns=list("abcde")) if named else X
    names = list("abcde") if named else [f"x{j}" for j in range(5)]
    for dtype in [np.float32, np.float64]:
        model = coremix.KMeans(6, random_state=0).fit(rows.astype(dtype))
        batch = pa.record_batch(model.to_arrow("centres"))
        assert batch.schema.names == names
        np.testing.assert_array_equal(np.column_stack([batch[name] for name in names]), model.cluster_centers_)
        assert batch[0].type == pa.from_numpy_dtype(dtype)
        labels = pa.array(model.to_arrow("labels"))
        np.testing.assert_array_equal(labels, model.labels_)
        assert labels.buffers()[1].address == model.labels_.ctypes.data
        # There and back.
        np.testing.assert_array_equal(model.predict(model.to_arrow("centres")), np.arange(6))
    mixture = coremix.GaussianMixture(6, random_state=0).fit(rows)
    table = pa.table(mixture.to_arrow("centres"))
    np.testing.assert_array_equal(table.to_pandas().to_numpy(), mixture.means_)


def test_schema_and_array_agree(X):
    for arrow in [Arrow([np.arange(3)]), Arrow([np.arange(3), np.ones(3)], ["a", "b \u00e4"])]:
        assert pa.DataType._import_from_c_capsule(arrow.__arrow_c_schema__()) == pa.array(arrow).type
        # A request that cannot be met is not an error.
        _, array = arrow.__arrow_c_array__(pa.string().__arrow_c_schema__())
        assert "arrow_array" in repr(array)


def test_polars(X):
    polars = pytest.importorskip("polars")
    model = coremix.KMeans(6, random_state=0).fit(X)
    assert polars.from_arrow(model.to_arrow("labels")).to_numpy().tolist() == model.labels_.tolist()
    frame = polars.DataFrame(model.to_arrow("centres"))
    np.testing.assert_array_equal(frame.to_numpy(), model.cluster_centers_)


def test_what_is_no_result(X):
    mixture = coremix.GaussianMixture(6, random_state=0)
    with pytest.raises(Exception, match="not fitted"):
        mixture.to_arrow("centres")
    mixture.fit(X)
    with pytest.raises(ValueError, match="GaussianMixture has no labels_ here: give pyarrow.array"):
        mixture.to_arrow("labels")
    with pytest.raises(ValueError, match="what = 'means': must be 'centres' or 'labels'"):
        mixture.to_arrow("means")
    for wrong, names, error, what in [
        ([np.zeros((2, 2))], None, TypeError, "an array of one dimension"),
        ([np.zeros(2, bool)], None, TypeError, "of int32, int64, float32 or float64"),
        ([[1.0]], None, TypeError, "an array of one dimension"),
        ([np.zeros(4)[::2]], None, Exception, "contiguous"),
        ([np.zeros(2), np.zeros(2)], None, ValueError, "names: several columns need them"),
        ([np.zeros(2), np.zeros(2)], ["a"], ValueError, "names: 1 for 2 columns"),
        ([np.zeros(2), np.zeros(3)], ["a", "b"], ValueError, "Arrow: "),
        ([], ["a"], ValueError, "names: 1 for 0 columns"),
    ]:
        with pytest.raises(error, match=what):
            Arrow(wrong, names)
