"""Rows that are not in memory: files of all formats, batches, datasets, queries and plans."""

import gzip
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
from sklearn.base import clone

import coremix
from conftest import blobs

# The command, as `cargo build -p coremix-cli` makes it.
COMMAND = os.environ.get("COREMIX_COMMAND")


def needed(name):
    """A module, or None: then tests of it are skipped, and a warning says so."""
    try:
        return __import__(name)
    except ImportError:
        warnings.warn(f"{name} CANNOT BE IMPORTED: rows of {name} ARE NOT TESTED (pip install {name})", stacklevel=2)
        return None


duckdb, polars = needed("duckdb"), needed("polars")
with_duckdb = pytest.mark.skipif(duckdb is None, reason="duckdb CANNOT BE IMPORTED: pip install duckdb")
with_polars = pytest.mark.skipif(polars is None, reason="polars CANNOT BE IMPORTED: pip install polars")


def table_of(x, **more):
    return pa.table({f"x{j}": x[:, j] for j in range(x.shape[1])} | more)


def npy(path, x):
    np.save(path / "rows.npy", x)
    return path / "rows.npy"


def npy_columns(path, x):
    np.save(path / "rows.npy", np.asfortranarray(x))
    return path / "rows.npy"


def parquet(path, x):
    pa.parquet.write_table(table_of(x), path / "rows.parquet", row_group_size=700)
    return path / "rows.parquet"


def arrow(path, x):
    with pa.ipc.new_file(path / "rows.arrow", table_of(x).schema) as file:
        file.write_table(table_of(x), max_chunksize=300)
    return path / "rows.arrow"


def feather(path, x):
    pa.feather.write_feather(table_of(x), path / "rows.feather", compression="zstd")
    return path / "rows.feather"


def lists(path, x):
    values = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), x.shape[1])
    pa.parquet.write_table(pa.table({"vector": values}), path / "rows.parquet")
    return path / "rows.parquet"


def fbin(path, x):
    with open(path / "rows.fbin", "wb") as file:
        file.write(np.array(x.shape, "<u4").tobytes() + x.astype("<f4").tobytes())
    return path / "rows.fbin"


def text(x, delimiter=",", decimal="."):
    lines = [delimiter.join(f"x{j}" for j in range(x.shape[1]))]
    lines += [delimiter.join(repr(float(v)).replace(".", decimal) for v in row) for row in x]
    return "\n".join(lines) + "\n"


def csv(path, x):
    (path / "rows.csv").write_text(text(x))
    return path / "rows.csv"


def tsv(path, x):
    (path / "rows.tsv").write_text(text(x, "\t"))
    return path / "rows.tsv"


def csv_gz(path, x):
    (path / "rows.csv.gz").write_bytes(gzip.compress(text(x).encode()))
    return path / "rows.csv.gz"


def parts(path, x):
    """A pattern, whose files are read in the order of their names."""
    for i, part in enumerate(np.array_split(x, 3)):
        pa.parquet.write_table(table_of(part), path / f"part-{i}.parquet")
    return str(path / "part-*.parquet")


def folder(path, x):
    for i, part in enumerate(np.array_split(x, 3)):
        (path / "all" / f"day={i}").mkdir(parents=True)
        pa.parquet.write_table(table_of(part), path / "all" / f"day={i}" / "rows.parquet")
    return path / "all"


def several(path, x):
    whole = Path(parts(path, x)).parent
    return [whole / f"part-{i}.parquet" for i in range(3)]


FILES = [npy, npy_columns, parquet, arrow, feather, lists, fbin, csv, tsv, csv_gz, parts, folder, several]
TEXT = (csv, tsv, csv_gz)


def model_of(**settings):
    return coremix.KMeans(6, random_state=3, merge_rows=False, **settings)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
@pytest.mark.parametrize("make", FILES, ids=lambda make: make.__name__)
def test_files_are_the_rows_they_hold(tmp_path, make, dtype):
    x = np.clip(np.round(blobs(3_000) * 2), 0, 100).astype(dtype) if dtype is np.uint8 else blobs(3_000, dtype=dtype)
    if make is fbin and dtype is not np.float32:
        pytest.skip("single numbers only")
    found = coremix.scan(make(tmp_path, x))
    # Text does not say how many digits are meant.
    wide = np.float64 if make in TEXT else dtype
    assert (len(found), found.rows, found.columns, found.shape) == (3_000, 3_000, 5, (3_000, 5))
    assert found.dtype == np.dtype(wide).name and found.nbytes == x.astype(wide).nbytes
    unnamed = make in (npy, npy_columns, fbin, lists)
    assert found.names == (None if unnamed else [f"x{j}" for j in range(5)])
    expected = model_of().fit(x.astype(wide))
    model = model_of().fit(found)
    assert model._model == expected._model
    assert (model.inertia_, model.sizes_.tolist()) == (expected.inertia_, expected.sizes_.tolist())
    assert hasattr(model, "feature_names_in_") != unnamed
    np.testing.assert_array_equal(model.predict(found), expected.labels_)


class Batches:
    """Batches that can be read again and again."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


def of_arrays(x):
    return list(np.array_split(x, 7))


SOURCES = {
    "arrays": of_arrays,
    "tuple": lambda x: tuple(of_arrays(x)),
    "object": lambda x: Batches(of_arrays(x)),
    "function": lambda x: lambda: iter(of_arrays(x)),
    "function of a generator": lambda x: lambda: (part for part in of_arrays(x)),
    "strided": lambda x: Batches([np.asfortranarray(part) for part in of_arrays(x)]),
    "frames": lambda x: [table_of(part).to_pandas() for part in of_arrays(x)],
    "tables": lambda x: Batches([table_of(part) for part in of_arrays(x)]),
    "record batches": lambda x: table_of(x).to_batches(max_chunksize=400),
    "dataset": lambda x: pa.dataset.dataset(table_of(x)),
    "duckdb": lambda x: duckdb.from_arrow(table_of(x)),
    "duckdb query": lambda x: duckdb.from_arrow(table_of(x)).filter("x0 = x0").project("*"),
    "polars": lambda x: polars.from_arrow(table_of(x)).lazy(),
    "polars plan": lambda x: polars.from_arrow(table_of(x)).lazy().filter(polars.col("x0").is_not_nan()),
}
OPTIONAL = {"duckdb": with_duckdb, "duckdb query": with_duckdb, "polars": with_polars, "polars plan": with_polars}
KINDS = [pytest.param(name, marks=OPTIONAL.get(name, [])) for name in SOURCES]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_the_rows_they_hold(kind, dtype):
    x = np.clip(np.round(blobs(3_000) * 2), 0, 100).astype(dtype) if dtype is np.uint8 else blobs(3_000, dtype=dtype)
    rows = SOURCES[kind](x)
    expected = model_of().fit(x)
    # As it is, and by a scan of it: twice, for it can be read again.
    for _ in range(2):
        model = model_of().fit(rows)
        assert model._model == expected._model
        np.testing.assert_array_equal(model.predict(rows), expected.labels_)
        np.testing.assert_array_equal(model_of().fit_predict(rows), expected.labels_)
    found = coremix.scan(rows)
    assert found.shape == x.shape and found.dtype == x.dtype.name
    assert model_of().fit(found)._model == expected._model
    assert x.nbytes <= found.spooled < 2 * x.nbytes + 10_000
    assert "to a temporary file in " in repr(found)
    named = kind in ("frames", "tables", "record batches", "dataset") or kind in OPTIONAL
    assert found.names == ([f"x{j}" for j in range(5)] if named else None)


def test_a_generator_is_read_once(X):
    batches = (part for part in of_arrays(X))
    for read in [coremix.scan, coremix.KMeans(2).fit, lambda rows: coremix.sample(rows, 3, 0)]:
        with pytest.raises(TypeError, match="a generator can be read only once: give a function that returns one, such as"):
            read(batches)
    with pytest.raises(TypeError, match="a map can be read only once"):
        coremix.scan(map(np.asarray, of_arrays(X)))
    # Nothing was taken from it.
    assert len(list(batches)) == 7
    # A stream of Arrow is read once by what is made of it.
    table = table_of(X)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert model_of().fit(coremix.scan(reader))._model == model_of().fit(X)._model


@pytest.mark.parametrize(
    "rows, error, what",
    [
        (3, TypeError, "a int has no batches of rows: give paths, a dataset"),
        ({"x": [1.0]}, TypeError, "a dict has no batches of rows"),
        (np.zeros((3, 2)), TypeError, "an array is in memory: give it to the estimator as it is"),
        ([], ValueError, "there is no batch"),
        ([np.zeros((3, 2)), np.zeros((3, 3))], ValueError, "batch 1 has the columns array .*, where the first one has array"),
        ([np.zeros((3, 2)), np.zeros((3, 2), np.float32)], ValueError, "batch 1 has the columns"),
        ([np.zeros((3, 2)), [[1.0, np.nan]]], ValueError, "row 3, column 1 is NaN or infinite; rows count from 0"),
        ([pa.table({"a": [1.0]}), pa.table({"b": [1.0]})], ValueError, r"columns b \(Float64\), where the first one has a \(Float64\)"),
        ([pa.table({"a": [1.0]}), pa.table({"a": [2.0, None]})], ValueError, 'record batches: column "a", row 2: a null'),
        ([pa.table({"a": ["x"]})], ValueError, r"has no column of numbers, but a \(text\)"),
    ],
)
def test_wrong_batches(rows, error, what):
    with pytest.raises(error, match=what):
        coremix.KMeans(1).fit(coremix.scan(rows))


def test_what_a_batch_raises_comes_out(X):
    def batches():
        yield X[:10]
        raise RuntimeError("the database is gone")

    for read in [coremix.scan, coremix.KMeans(2).fit]:
        with pytest.raises(RuntimeError, match="the database is gone"):
            read(batches)


ALL = [
    model_of(),
    model_of(algorithm="lloyd"),
    coremix.GaussianMixture(4, random_state=0, merge_rows=False),
    coremix.BayesianGaussianMixture(4, random_state=0, merge_rows=False),
    coremix.VcGmm(4, random_state=0),
    coremix.DGmm(4, random_state=0),
    coremix.SparsifiedGmm(4, random_state=0, n_coordinates=3),
    coremix.SparsifiedGmm(4, random_state=0, n_coordinates=3, merge_rows=False),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_every_question(tmp_path, estimator, weighted):
    """Every estimator, and everything that it is asked, has the bits of the array."""
    x = blobs(2_500, 4)
    weights = np.random.default_rng(1).integers(0, 4, len(x)).astype(float) if weighted else None
    pa.parquet.write_table(table_of(x, w=np.ones(len(x)) if weights is None else weights), tmp_path / "rows.parquet")
    columns = [f"x{j}" for j in range(4)]
    rows = coremix.scan(tmp_path / "rows.parquet", columns, weights="w" if weighted else None)
    if weighted:
        np.testing.assert_array_equal(rows.weights, weights)
    one, other = clone(estimator).fit(x, sample_weight=weights), clone(estimator).fit(rows)
    assert one._model == other._model
    if not isinstance(estimator, coremix.SparsifiedGmm):
        assert one.explain(columns) == other.explain()
    np.testing.assert_array_equal(one.predict(x), other.predict(rows))
    for a, b in zip(one.predict_top(x, 2), other.predict_top(rows, 2)):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.medoids(x, weights), other.medoids(rows))
    np.testing.assert_array_equal(one.sizes(x, weights), other.sizes(rows))
    assert one.sizes(x, weights).sum() == (len(x) if weights is None else weights.sum())
    assert one.score(x, sample_weight=weights) == other.score(rows)
    ids = [7, 3, 2_499, 3]
    np.testing.assert_array_equal(coremix._coremix.take(rows, ids), x[ids])
    if isinstance(estimator, coremix.KMeans):
        np.testing.assert_array_equal(one.transform(x), other.transform(rows))
        assert (one.inertia_, one.sizes_.tolist()) == (other.inertia_, other.sizes_.tolist())
    else:
        np.testing.assert_array_equal(one.predict_proba(x), other.predict_proba(rows))
        np.testing.assert_array_equal(one.score_samples(x), other.score_samples(rows))
        assert one.lower_bound_ == other.lower_bound_
    if isinstance(estimator, coremix.GaussianMixture):
        assert one.bic(x, weights) == other.bic(rows) and one.aic(x, weights) == other.aic(rows)
    one, other = clone(estimator).partial_fit(x, sample_weight=weights), clone(estimator).partial_fit(rows)
    np.testing.assert_array_equal(one._model.parameters()["means"], other._model.parameters()["means"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sweeps_and_partitions(tmp_path):
    x = blobs(3_000, 3)
    rows = coremix.scan(parquet(tmp_path, x))
    estimator = coremix.GaussianMixture(random_state=0, merge_rows=False)
    one = coremix.sweep(x, range(2, 5), estimator, silhouette=200)
    other = coremix.sweep(rows, range(2, 5), estimator, silhouette=200)
    assert repr(one) == repr(other)
    one = coremix.sweep(x, [2, 4], estimator, coreset_size=500)
    assert repr(one) == repr(coremix.sweep(rows, [2, 4], estimator, coreset_size=500))
    assert repr(one) == repr(coremix.sweep(of_arrays(x), [2, 4], estimator, coreset_size=500))
    for a, b in zip(coremix.sample(x, 100, 1), coremix.sample(rows, 100, 1)):
        np.testing.assert_array_equal(a, b)
    model = coremix.KMeans(5, random_state=0).fit(rows)
    assert coremix.stats(x, model) == coremix.stats(rows, model)
    np.testing.assert_array_equal(coremix.assign(x, model), coremix.assign(rows, model))


def test_labels_are_not_kept(tmp_path, X):
    rows = coremix.scan(npy(tmp_path, X))
    model = coremix.KMeans(4, random_state=0).fit(rows)
    assert not hasattr(model, "labels_") and model.sizes_.sum() == len(X) and model.inertia_ > 0
    with pytest.raises(AttributeError, match=r"not in memory: call predict\(X\), or assign\(X, path\)"):
        model.labels_
    assert not hasattr(coremix.KMeans(4, compute_labels=False).fit(rows), "inertia_")
    # A fit of an array has them again.
    assert len(model.fit(X).labels_) == len(X)
    labels = model.fit_predict(rows)
    np.testing.assert_array_equal(labels, model.predict(X))
    model.fit(X[:50]).save(tmp_path / "model.cmx")
    np.testing.assert_array_equal(coremix.KMeans.load(tmp_path / "model.cmx").predict(rows), model.predict(X))


# Labels in files.


def keyed(path, n=2_000, missing=()):
    x = blobs(n, 3)
    key = np.array([f"row {i}" for i in range(n)])
    columns = {f"x{j}": pa.array(x[:, j], mask=np.isin(np.arange(n), missing)) for j in range(3)}
    pa.parquet.write_table(pa.table(columns | {"name": key, "code": np.arange(n)[::-1]}), path / "keyed.parquet", row_group_size=300)
    return x, key


def read(path):
    kind = path.suffix
    if kind == ".npy":
        return pd.DataFrame({"label": np.load(path)})
    if kind == ".csv":
        return pd.read_csv(path)
    return (pa.parquet.read_table(path) if kind == ".parquet" else pa.ipc.open_file(path).read_all()).to_pandas()


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".arrow", ".npy"])
def test_labels_go_to_files(tmp_path, ending):
    x, key = keyed(tmp_path)
    path = tmp_path / f"labels{ending}"
    rows = coremix.scan(tmp_path / "keyed.parquet", key=["name", "code"])
    assert rows.names == ["x0", "x1", "x2"]
    model = coremix.GaussianMixture(4, random_state=0).fit(rows)
    # Twice: keys are read again, and older labels are replaced.
    for _ in range(2):
        model.assign(rows, path)
        found = read(path)
        np.testing.assert_array_equal(found["label"], model.predict(x))
        if ending != ".npy":
            assert list(found.columns) == ["name", "code", "label"] and list(found["name"]) == list(key)
            np.testing.assert_array_equal(found["code"], np.arange(2_000)[::-1])
    if ending == ".npy":
        with pytest.raises(ValueError, match="holds labels alone"):
            model.assign(rows, path, log_density=True)
    else:
        model.assign(rows, path, log_density=True)
        np.testing.assert_allclose(read(path)["log_density"], model.score_samples(x), rtol=1e-12)
    # Arrays, and batches without keys.
    for other in [x, of_arrays(x)]:
        model.assign(other, path, force=True)
        assert list(read(path).columns) == ["label"]
    # A file that is there and holds no labels stays.
    path.write_bytes(b"important")
    with pytest.raises(FileExistsError, match="nothing in it says that it is a file of labels of coremix: choose another name, or replace it with force=True"):
        model.assign(rows, path)
    assert path.read_bytes() == b"important"
    model.assign(rows, path, force=True)
    np.testing.assert_array_equal(read(path)["label"], model.predict(x))


def test_where_labels_cannot_go(tmp_path):
    x, _ = keyed(tmp_path)
    rows = coremix.scan(tmp_path / "keyed.parquet", key="name")
    model = coremix.KMeans(4, random_state=0).fit(rows)
    for name, error, what in [
        ("labels.txt", ValueError, "choose one of these endings"),
        ("none/labels.csv", FileNotFoundError, "labels.csv: there is no folder .*none"),
        ("no/such/labels.parquet", FileNotFoundError, "labels.parquet: there is no folder .*no/such"),
        ("no/such/labels.npy", FileNotFoundError, "labels.npy: there is no folder .*no/such"),
        ("keyed.parquet", ValueError, "is read as an input"),
        ("../" + tmp_path.name + "/keyed.parquet", ValueError, "is read as an input"),
    ]:
        with pytest.raises(error, match=what):
            model.assign(rows, tmp_path / name, force=True)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="is a directory"):
        model.assign(rows, tmp_path / "folder.csv", force=True)
    with pytest.raises(ValueError, match="would have two columns"):
        pa.parquet.write_table(table_of(x, label=np.arange(len(x))), tmp_path / "label.parquet")
        labelled = coremix.scan(tmp_path / "label.parquet", ["x0", "x1", "x2"], key="label")
        coremix.KMeans(4).fit(labelled).assign(labelled, tmp_path / "labels.csv")


@pytest.mark.parametrize("kind", ["dataset", pytest.param("duckdb", marks=with_duckdb), pytest.param("polars", marks=with_polars), "frames"])
def test_keys_and_weights_of_batches(tmp_path, kind):
    x, key = keyed(tmp_path)
    table = pa.parquet.read_table(tmp_path / "keyed.parquet")
    # Text that is coded by dictionaries, of which each batch has its own.
    table = table.append_column("group", pa.array([f"g{i // 100}" for i in range(len(x))]).dictionary_encode())
    table = table.append_column("w", pa.array(np.arange(len(x)) % 3))
    rows = {
        "dataset": lambda: pa.dataset.dataset(table),
        "duckdb": lambda: duckdb.from_arrow(table),
        "polars": lambda: polars.from_arrow(table).lazy(),
        "frames": lambda: [part.to_pandas() for part in (table[:700], table[700:])],
    }[kind]()
    found = coremix.scan(rows, ["x2", "x0"], "w", ["name", "group"], spool=tmp_path)
    assert found.names == ["x2", "x0"] and str(tmp_path) in repr(found)
    # A dataset does not even decode others.
    assert dict(found.not_used).keys() == (set() if kind == "dataset" else {"x1", "code"})
    np.testing.assert_array_equal(found.weights, np.arange(len(x)) % 3)
    weights = np.arange(len(x)) % 3.0
    model = model_of().fit(found)
    assert model._model == model_of().fit(x[:, [2, 0]], sample_weight=weights)._model
    model.assign(found, tmp_path / "labels.parquet")
    labels = read(tmp_path / "labels.parquet")
    assert list(labels.columns) == ["name", "group", "label"]
    assert list(labels["name"]) == list(key) and list(labels["group"]) == [f"g{i // 100}" for i in range(len(x))]
    np.testing.assert_array_equal(labels["label"], model.predict(np.ascontiguousarray(x[:, [2, 0]])))
    # The file has no name.
    assert {path.name for path in tmp_path.iterdir()} == {"keyed.parquet", "labels.parquet"}


def test_weights_of_one_side(tmp_path, X):
    pa.parquet.write_table(table_of(X, w=np.ones(len(X))), tmp_path / "rows.parquet")
    rows = coremix.scan(tmp_path / "rows.parquet", weights="w")
    model = coremix.KMeans(2).fit(rows)
    for read in [model.fit, model.score, model.sizes, model.medoids, model.partial_fit]:
        with pytest.raises(ValueError, match="the scan has weights of its own: leave one of both out"):
            read(rows, sample_weight=np.ones(len(X)))
    plain = coremix.scan(tmp_path / "rows.parquet", [f"x{j}" for j in range(5)])
    weights = np.arange(len(X)) + 1.0
    assert model_of().fit(plain, sample_weight=weights)._model == model_of().fit(X, sample_weight=weights)._model
    with pytest.raises(ValueError, match="expected"):
        model.fit(plain, sample_weight=np.ones(3))
    pa.parquet.write_table(table_of(X, w=np.zeros(len(X))), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="sum to 0"):
        model.fit(coremix.scan(tmp_path / "rows.parquet", weights="w"))
    pa.parquet.write_table(table_of(X, w=np.r_[np.ones(len(X) - 1), -1.0]), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="weight of row 2999 is -1"):
        model.fit(coremix.scan(tmp_path / "rows.parquet", weights="w"))


# Options, and what is wrong with files.


def test_options_of_text(tmp_path):
    x = np.round(blobs(500, 3), 4)
    expected = model_of().fit(x)
    body = text(x, ";", ",").replace("x0", "größe")
    path = tmp_path / "rows.txt"
    path.write_bytes(("# made by hand\n" + body).encode("latin1"))
    found = coremix.scan(path, format="csv", delimiter=";", decimal=",", comment="#", encoding="latin1")
    assert found.names == ["größe", "x1", "x2"]
    assert model_of().fit(found)._model == expected._model
    path = tmp_path / "rows.csv"
    path.write_text(text(x).split("\n", 1)[1])
    assert model_of().fit(coremix.scan(path, header=False))._model == expected._model
    assert len(coremix.scan(path, header=True)) == 499
    path.write_text('a;b\n1.000;2\n3.000;"4"\n')
    found = coremix.scan(path, decimal=",", thousands=".")
    np.testing.assert_array_equal(coremix._coremix.take(found, [0, 1]), [[1_000, 2], [3_000, 4]])
    single = coremix.scan(csv(tmp_path, x), dtype=np.float32)
    assert single.dtype == "float32"
    assert model_of().fit(single)._model == model_of().fit(x.astype(np.float32))._model
    assert coremix.scan(npy(tmp_path, x.astype(np.float32)), dtype="float64").dtype == "float64"
    path = tmp_path / "tabs"
    path.write_text("a\tb\n1\t2\n")
    assert coremix.scan(path, format="tsv").names == ["a", "b"]
    for options, what in [
        ({"delimiter": "é"}, "delimiter = é: must be one ASCII character"),
        ({"delimiter": ";;"}, "delimiter = ;;: must be one sign"),
        ({"format": "xlsx"}, "format = \"xlsx\": must be parquet, arrow"),
        ({"encoding": "klingon"}, 'an encoding of the name "klingon" is not known'),
        ({"dtype": "int8"}, "dtype = \"int8\": must be float32, float64 or None"),
        ({"memory": "lots"}, "memory = \"lots\": an amount of memory"),
        ({"memory": 0}, "memory = 0: must be at least 1"),
    ]:
        with pytest.raises(ValueError) as raised:
            coremix.scan(tmp_path / "rows.csv", **options)
        assert what in str(raised.value)
    with pytest.raises(TypeError, match="memory = None: must be a number of bytes, or text"):
        coremix.scan(tmp_path / "rows.csv", memory=None)


@pytest.mark.parametrize("make", [csv, parquet, lambda path, x: [table_of(x)]], ids=["csv", "parquet", "batches"])
def test_missing_values(tmp_path, make):
    x = blobs(1_000, 3)
    x[[5, 700, 999], [1, 0, 2]] = np.nan
    whole = make(tmp_path, x)
    if make is csv:
        whole.write_text(whole.read_text().replace("nan", ""))
    with pytest.raises(ValueError, match='column "x[01]", (row 5|row 700|line 7)'):
        coremix.KMeans(2).fit(coremix.scan(whole))
    rows = coremix.scan(whole, drop_missing=True)
    there = np.delete(x, [5, 700, 999], axis=0)
    assert len(rows) == 997 and "3 rows with a missing value" in repr(rows)
    assert model_of().fit(rows)._model == model_of().fit(there)._model
    rows = coremix.scan(of_arrays(x), drop_missing=True)
    assert model_of().fit(rows)._model == model_of().fit(there)._model


def test_labels_of_a_fit_of_batches_with_missing_values():
    x = blobs(500, 3)
    x[[5, 70], [1, 0]] = np.nan
    rows = pyarrow.dataset.dataset(table_of(x))
    for estimator in [coremix.KMeans(3, allow_missing=True, random_state=0), coremix.GaussianMixture(3, allow_missing=True, random_state=0)]:
        assert (estimator.fit_predict(rows) == clone(estimator).fit(x).predict(x)).all()
    assert coremix.KMeans(3, allow_missing=True).fit_transform(rows).shape == (500, 3)
    assert np.isnan(coremix.sample(rows, 1_000, 0, allow_missing=True)[0]).sum() == 2


def test_keys_without_rows_that_are_left_out(tmp_path):
    _, key = keyed(tmp_path, missing=[3, 4, 1_500])
    rows = coremix.scan(tmp_path / "keyed.parquet", key="name", drop_missing=True)
    coremix.KMeans(3).fit(rows).assign(rows, tmp_path / "labels.csv")
    assert list(read(tmp_path / "labels.csv")["name"]) == list(np.delete(key, [3, 4, 1_500]))


def test_folders_are_columns(tmp_path):
    x = blobs(900, 3)
    path = folder(tmp_path, x)
    rows = coremix.scan(path, ["x0", "day"], key="day")
    assert rows.names == ["x0", "day"]
    np.testing.assert_array_equal(coremix._coremix.take(rows, [0, 899])[:, 1], [0, 2])
    coremix.KMeans(3).fit(rows).assign(rows, tmp_path / "labels.csv")
    assert list(read(tmp_path / "labels.csv")["day"].unique()) == [0, 1, 2]


@pytest.mark.parametrize(
    "name, content, options, error, what",
    [
        ("none.csv", None, {}, FileNotFoundError, "none.csv"),
        ("none-*.csv", None, {}, ValueError, "no file matches this pattern"),
        ("a.xlsx", "PK", {}, ValueError, "its name does not say its format"),
        ("a.csv", "x,y\n1,2\n", {"columns": "z"}, ValueError, 'a.csv: has no column "z"; it has x, y'),
        ("a.csv", "x,y\n1,2\n", {"weights": "w"}, ValueError, 'has no column "w"; it has x, y'),
        ("a.csv", "x,y\n1,2\n", {"key": "id"}, ValueError, 'has no column "id"; it has x, y'),
        ("a.csv", "x,y\na,b\n", {}, ValueError, r"has no column of numbers, but x \(text\), y \(text\)"),
        ("a.csv", "", {}, ValueError, "a.csv: "),
        ("a.npy", "no array", {}, ValueError, "a.npy: "),
        ("a.parquet", "no table", {}, ValueError, "a.parquet: "),
    ],
)
def test_files_that_cannot_be_opened(tmp_path, name, content, options, error, what):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(error, match=what):
        coremix.scan(tmp_path / name, **options)


@pytest.mark.parametrize("memory", ["2GiB", "66MiB"])
def test_errors_name_the_file_the_row_and_the_column(tmp_path, memory):
    """In a fit that loads rows, in one that reads them block by block, and in predictions."""
    x = blobs(200_000, 4).astype(np.float32)
    good = coremix.KMeans(3, algorithm="lwcs-k-means", coreset_size=1_000, random_state=0).fit(x)
    x[150_001, 2] = np.inf
    path = parquet(tmp_path, x)
    rows = coremix.scan(path, memory=memory)
    expected = 'rows.parquet: column "x2", row 150001: a value is infinite'
    calls = [
        clone(good).fit,
        clone(good).partial_fit,
        good.predict,
        good.score,
        good.sizes,
        good.medoids,
        good.transform,
        lambda rows: good.assign(rows, tmp_path / "labels.csv"),
        lambda rows: coremix.sample(rows, 10, 0),
        lambda rows: coremix.stats(rows, good),
        lambda rows: coremix.sweep(rows, [2], clone(good), coreset_size=100),
    ]
    for call in calls:
        with pytest.raises(ValueError) as raised:
            call(rows)
        assert str(raised.value).startswith(f"{path.parent}/{expected}"), raised.value
    assert not (tmp_path / "labels.csv").exists()


def test_numbers_that_a_model_cannot_hold(tmp_path):
    model = coremix.KMeans(2, random_state=0).fit(blobs(100, 2).astype(np.float32))
    x = blobs(100, 2)
    x[7, 1] = 1e300
    rows = coremix.scan(parquet(tmp_path, x))
    with pytest.raises(ValueError, match='row 7, column "x1" is .*use a larger unit; rows count from 0'):
        model.predict(rows)


@pytest.mark.parametrize("n", [1, 2])
def test_one_row(tmp_path, n):
    x = np.arange(2.0 * n).reshape(n, 2)
    for path in [npy(tmp_path, x), csv(tmp_path, x), [x]]:
        rows = coremix.scan(path)
        assert coremix.KMeans(n).fit(rows).predict(rows).tolist() in ([0], [0, 1], [1, 0])
        with pytest.raises(ValueError, match=f"n_samples={n} should be >= n_clusters=3"):
            coremix.KMeans(3).fit(rows)


def test_no_rows(tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n")
    pa.parquet.write_table(table_of(np.zeros((0, 2))), tmp_path / "rows.parquet")
    model = coremix.KMeans(1).fit(np.zeros((1, 2)))
    for rows in [tmp_path / "rows.csv", tmp_path / "rows.parquet", [np.zeros((0, 2))], pa.dataset.dataset(table_of(np.zeros((0, 2))))]:
        try:
            rows = coremix.scan(rows)
        except ValueError as error:
            # Without a row, text has no numbers.
            assert "no column of numbers" in str(error)
            continue
        assert len(rows) == 0
        with pytest.raises(ValueError, match="0 sample"):
            coremix.KMeans(1).fit(rows)
        assert model._model.predict(rows).shape == (0,)
        model._model.assign(rows, tmp_path / "labels.csv", force=True)
        assert (tmp_path / "labels.csv").read_text() == "label\n"


def test_columns_of_the_fit(tmp_path, X):
    rows = coremix.scan(parquet(tmp_path, X))
    model = coremix.KMeans(3, random_state=0).fit(rows)
    turned = coremix.scan(tmp_path / "rows.parquet", ["x4", "x3", "x2", "x1", "x0"])
    with pytest.raises(ValueError, match="in this order: select these columns"):
        model.predict(turned)
    with pytest.raises(ValueError, match=r"name these, as coremix.scan\(\.\.\., columns="):
        model._model.predict(turned)
    with pytest.raises(ValueError, match="expecting 5 features"):
        model.predict(coremix.scan(npy(tmp_path, X[:, :4])))
    np.testing.assert_array_equal(model.predict(coremix.scan(npy(tmp_path, X))), model.predict(rows))


def test_a_file_that_changes_is_an_error(tmp_path, X):
    path = npy(tmp_path, X)
    rows = coremix.scan(path)
    model = coremix.KMeans(3, random_state=0).fit(rows)
    os.utime(path, (1, 1))
    for read in [model.fit, model.predict, model.score, lambda rows: model.assign(rows, tmp_path / "labels.npy")]:
        with pytest.raises(OSError, match="rows.npy: has changed since coremix.scan opened it: scan it again"):
            read(rows)
    assert model.fit(coremix.scan(path))
    # While it is read.
    rows = coremix.scan(path)

    def change(step):
        with open(path, "r+b") as file:
            file.truncate(1_000)

    with pytest.raises(OSError, match="rows.npy"):
        coremix.KMeans(3, algorithm="lloyd", callback=change).fit(rows)
    rows = coremix.scan(npy(tmp_path, X))
    path.unlink()
    for read in [model.fit, model.predict, lambda rows: model.assign(rows, tmp_path / "labels.npy")]:
        with pytest.raises(FileNotFoundError, match="rows.npy: is gone since coremix.scan opened it"):
            read(rows)
    # Between the passes, where the open file can still be read.
    path = npy(tmp_path, X)
    rows = coremix.scan(path)
    with pytest.raises(FileNotFoundError, match="rows.npy: is gone"):
        coremix.KMeans(3, algorithm="lloyd", callback=lambda step: path.unlink(missing_ok=True)).fit(rows)
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in range(3):
        pyarrow.parquet.write_table(pa.table({"x": X[part::3, 0]}), folder / f"{part}.parquet")
    rows = coremix.scan(folder)
    (folder / "1.parquet").unlink()
    with pytest.raises(FileNotFoundError, match="1.parquet: is gone"):
        coremix.KMeans(3).fit(rows)


def test_a_scan_is_no_array(tmp_path, X):
    rows = coremix.scan(npy(tmp_path, X))
    for make in [np.asarray, np.array, lambda rows: np.asarray(rows, dtype=np.float32), lambda rows: np.concatenate([X, rows])]:
        with pytest.raises(TypeError, match="not in memory: give the scan itself to an estimator"):
            make(rows)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("id", "numbers the rows"), ("place", "numbers the rows"), ("customer_id", "seems to name the rows"), ("userId", "seems to name the rows")],
)
def test_a_forgotten_key_is_named(tmp_path, X, name, reason):
    numbers = np.random.default_rng(0).permutation(len(X)) * (1 if reason.startswith("numbers") else 17) + 5
    table = pa.table({name: numbers, "x": X[:, 0], "y": X[:, 1]})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "rows.csv")
    for file in ("rows.parquet", "rows.csv"):
        rows, way = coremix.scan(tmp_path / file), rf"coremix.scan\(..., key='{name}'\) leaves it out"
        with pytest.warns(UserWarning, match=f"^the column '{name}' {reason}, and clusters follow it: {way}"):
            coremix.KMeans(3, random_state=0).fit(rows)
    with pytest.warns(UserWarning, match=f"^the column '{name}' {reason}, and clusters follow it: leave it out"):
        coremix.GaussianMixture(3, random_state=0).fit(table.to_pandas())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coremix.KMeans(3, random_state=0).fit(coremix.scan(tmp_path / "rows.parquet", key=name))
        # Groups of rows are no ids, and other numbers have other names.
        for others in [{"shop_id": numbers % 40}, {"spent": numbers * 3}, {"index": numbers + 0.5}, {name: X[:, 2]}]:
            pyarrow.parquet.write_table(pa.table(others | {"x": X[:, 0]}), tmp_path / "others.parquet")
            coremix.KMeans(3, random_state=0).fit(coremix.scan(tmp_path / "others.parquet"))
        coremix.KMeans(3, random_state=0).fit(np.column_stack([numbers, X]))


def test_scans_are_pickled_as_their_arguments(tmp_path):
    x, _ = keyed(tmp_path)
    rows = coremix.scan(tmp_path / "keyed.parquet", ["x0", "x2"], key="name", memory="80MiB")
    again = pickle.loads(pickle.dumps(rows))
    assert repr(again) == repr(rows) and again.names == ["x0", "x2"]
    assert model_of().fit(again)._model == model_of().fit(rows)._model
    model = coremix.KMeans(2).fit(again)
    model.assign(again, tmp_path / "labels.csv")
    assert list(read(tmp_path / "labels.csv").columns) == ["name", "label"]
    dataset = coremix.scan(pa.dataset.dataset(tmp_path / "keyed.parquet"), "x0")
    assert pickle.loads(pickle.dumps(dataset)).shape == (2_000, 1)
    batches = of_arrays(x)
    rows = coremix.scan(batches)
    batches.clear()
    assert pickle.loads(pickle.dumps(rows)).shape == x.shape
    # A fitted estimator does not hold the rows.
    assert len(pickle.dumps(model)) < 20_000


def test_what_is_printed(tmp_path):
    keyed(tmp_path)
    rows = coremix.scan(tmp_path / "keyed.parquet", ["x0", "x1"], "code", "name", memory="1GiB")
    lines = repr(rows).splitlines()
    assert lines[0] == "Scan of 2000 rows, 2 columns of float64: 31.2 KiB as an array"
    assert lines[1:5] == ["  columns  x0, x1", "  not used x2 (numbers)", "  weights  code", "  key      name"]
    assert lines[5].startswith("  file     ") and "keyed.parquet, " in lines[5]
    assert lines[6] == "  memory   1 GiB for a fit"
    assert rows.files == [tmp_path / "keyed.parquet"] and rows.spooled is None
    wide = repr(coremix.scan(parquet(tmp_path, np.zeros((2, 40)))))
    assert "x0, x1, x2, x3, x4, x5, ... (40 in all)" in wide
    assert " and 2 more files, " in repr(coremix.scan(several(tmp_path, np.zeros((6, 2)))))


# Limits of memory.


def test_memory_that_is_not_enough_is_refused(tmp_path):
    """Before the rows are read: the last row is none, and nobody notices."""
    x = blobs(300_000, 4, dtype=np.float32)
    x[-1] = np.nan
    path = npy(tmp_path, x)
    rows = coremix.scan(path, memory="65MiB")
    for estimator in [*ALL, coremix.KMeans(6, merge_rows=True), coremix.KMeans(6, algorithm="lazy-k-means")]:
        with pytest.raises(ValueError, match=r"memory = 65 MiB, where .* needs \d+ MiB: give more"):
            clone(estimator).fit(rows)
    with pytest.raises(ValueError, match="memory = 70 MiB, where fast needs"):
        coremix.KMeans(6, memory="70MiB").fit(coremix.scan(path, memory=1))
    with pytest.raises(ValueError, match="var-gmm-s needs .*fast and vc-gmm need less"):
        coremix.VcGmm(6, coreset_size="all", memory="69MiB").fit(rows)
    with pytest.raises(ValueError, match="a coreset_size: without one, the rows are in memory twice"):
        coremix.sweep(rows, [2, 3], coremix.GaussianMixture())
    # With more, the rows are read.
    with pytest.raises(ValueError, match="row 299999"):
        coremix.KMeans(6, memory="1GiB").fit(rows)


def test_decoders_count(tmp_path):
    """A decoder has a page and a dictionary of each column: those of large groups of rows take more than this limit."""
    table = table_of(blobs(300_000, 16, dtype=np.float32))
    pyarrow.parquet.write_table(table, tmp_path / "large.parquet")
    pyarrow.parquet.write_table(table, tmp_path / "small.parquet", row_group_size=20_000)
    pyarrow.feather.write_feather(table, str(tmp_path / "large.arrow"), compression="lz4", chunksize=300_000)
    pyarrow.feather.write_feather(table, str(tmp_path / "plain.arrow"), compression="uncompressed", chunksize=300_000)
    estimator = coremix.KMeans(6, random_state=0, memory="85MiB", compute_labels=False)
    for name in ("large.parquet", "large.arrow"):
        with pytest.raises(ValueError, match=r"memory = 85 MiB, where fast needs \d{3} MiB: give more"):
            clone(estimator).fit(coremix.scan(tmp_path / name))
    models = [clone(estimator).fit(coremix.scan(tmp_path / name))._model for name in ("small.parquet", "plain.arrow")]
    assert models[0] == models[1]


@pytest.mark.parametrize(
    "estimator",
    [
        coremix.KMeans(6, random_state=0, algorithm="lwcs-k-means"),
        coremix.KMeans(6, random_state=0, algorithm="lloyd", max_iter=3),
        coremix.VcGmm(6, random_state=0, max_iter=5),
        coremix.GaussianMixture(6, random_state=0, init_params="k-means++", max_iter=2),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_that_do_not_fit_give_the_same_bits(tmp_path, estimator):
    x = blobs(300_000, 16, dtype=np.float32)
    rows = coremix.scan(npy(tmp_path, x), memory="80MiB")
    one, other = clone(estimator).fit(x), clone(estimator).fit(rows)
    assert one._model == other._model
    np.testing.assert_array_equal(one.predict(x), other.predict(rows))


MEASURED = """
import sys
import numpy as np
import coremix

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) * 1024

def part(i):
    rng = np.random.default_rng(i)
    return (10 * rng.integers(6, size=(50_000, 1)) + rng.random((50_000, 32))).astype(np.float32)

# Code and threads are loaded.
few = coremix.KMeans(6, algorithm="lwcs-k-means", random_state=0).fit(part(0)[:20_000])
kind, path, labels, memory = sys.argv[1:]
before = peak()
rows = coremix.scan((lambda: map(part, range(40))) if kind == "batches" else path, memory=memory)
assert rows.nbytes == 40 * 50_000 * 32 * 4
for model in [few, coremix.VcGmm(6, max_iter=3, random_state=0), coremix.KMeans(6, max_iter=3, random_state=0)]:
    model.fit(rows)
    model.assign(rows, labels)
    model.score(rows)
    model.sizes(rows)
    model.medoids(rows)
print(peak() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc of Linux")
@pytest.mark.parametrize(("kind", "memory"), [("file", 100), ("batches", 100), ("parquet", 200), ("arrow", 220)])
def test_memory_is_kept(tmp_path, kind, memory):
    """On rows of 244 MiB: a fit, labels in a file, and questions take less than the limit more than there was.

    A decoder of one of the 40 files has a page and a dictionary of each column, or all of a batch.
    """
    path = tmp_path / "rows.npy"
    if kind in ("parquet", "arrow"):
        path = tmp_path / "parts"
        path.mkdir()
        for part in range(40):
            rng = np.random.default_rng(part)
            x = (10 * rng.integers(6, size=(50_000, 1)) + rng.random((50_000, 32))).astype(np.float32)
            table = pa.table({f"x{j}": x[:, j] for j in range(32)})
            if kind == "parquet":
                pyarrow.parquet.write_table(table, path / f"{part:02}.parquet", compression="zstd")
            else:
                pyarrow.feather.write_feather(table, str(path / f"{part:02}.arrow"), compression="lz4")
    if kind == "file":
        x = np.lib.format.open_memmap(path, "w+", np.float32, (2_000_000, 32))
        for first in range(0, 2_000_000, 50_000):
            rng = np.random.default_rng(first)
            x[first : first + 50_000] = 10 * rng.integers(6, size=(50_000, 1)) + rng.random((50_000, 32))
        del x
    arguments = [sys.executable, "-W", "ignore", "-c", MEASURED, kind, str(path), str(tmp_path / "labels.parquet"), f"{memory}MiB"]
    found = subprocess.run(arguments, check=True, capture_output=True, text=True)
    assert int(found.stdout) < memory << 20, found.stdout


# Ctrl-C.


@pytest.fixture
def interruptible():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pressed(call, seconds=0.1):
    """Whether Ctrl-C ends the call: what comes after it ends nothing else."""
    main = threading.main_thread().ident
    timer = threading.Timer(seconds, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    try:
        call()
        timer.join()
        return False
    except KeyboardInterrupt:
        return timer.join() is None
    except Exception:
        timer.cancel()
        raise


@pytest.fixture(scope="module")
def long_text(tmp_path_factory):
    """A file of text that takes much longer to read than the waits below. The last row would be an error."""
    path = tmp_path_factory.mktemp("long") / "rows.csv"
    block = "".join(f"{i % 97}.5,{i % 89}.25,{i % 83}.125\n" for i in range(100_000))
    with open(path, "w") as file:
        file.write("x,y,z\n")
        for _ in range(60):
            file.write(block)
        file.write("1,2,wrong\n")
    return path


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals of POSIX")
def test_control_c_while_files_are_opened(long_text, interruptible):
    assert pressed(lambda: coremix.scan(long_text, drop_missing=True))


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals of POSIX")
@pytest.mark.parametrize("call", ["fit", "partial_fit", "predict", "score", "assign", "sample", "stats"])
def test_control_c_while_rows_are_read(tmp_path, long_text, interruptible, call):
    rows = coremix.scan(long_text, memory="120MiB")
    model = coremix.KMeans(3, algorithm="lwcs-k-means", coreset_size=1_000, random_state=0).fit(blobs(100, 3))
    calls = {
        "fit": lambda: clone(model).fit(rows),
        "partial_fit": lambda: clone(model).partial_fit(rows),
        "predict": lambda: model._model.predict(rows),
        "score": lambda: model._model.quantization_error(rows),
        "assign": lambda: model._model.assign(rows, tmp_path / "labels.csv"),
        "sample": lambda: coremix.sample(rows, 100, 0),
        "stats": lambda: coremix.stats(rows, model._model),
    }
    assert pressed(calls[call])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals of POSIX")
def test_control_c_between_batches(interruptible):
    def batches():
        for i in range(1_000_000):
            if i == 3:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            yield blobs(100, 3)

    with pytest.raises(KeyboardInterrupt):
        coremix.KMeans(3).fit(batches)


# The command.


def command(*arguments):
    found = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.skipif(COMMAND is None, reason="COREMIX_COMMAND names no program")
@pytest.mark.parametrize("memory", ["2GiB", "90MiB"])
@pytest.mark.parametrize(
    "estimator, options",
    [
        (coremix.KMeans(9), ["-a", "fast"]),
        (coremix.KMeans(9, algorithm="lloyd", max_iter=5), ["-a", "k-means", "--max-iterations", 5]),
        (coremix.KMeans(9, algorithm="lwcs-k-means", coreset_size=3_000), ["-a", "lwcs-k-means", "--coreset", 3_000]),
        (coremix.VcGmm(9), ["-a", "vc-gmm"]),
        (coremix.GaussianMixture(9, tol=1e-3, max_iter=4), ["-a", "gmm", "--max-iterations", 4]),
    ],
    ids=lambda value: value[1] if isinstance(value, list) else "",
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_are_those_of_the_command(tmp_path, estimator, options, memory):
    """In memory and beyond it, with the labels that it writes."""
    x = blobs(400_000, 16, 9, dtype=np.float32)
    # Small groups of rows: decoders of large ones do not fit in the smaller limit.
    pa.parquet.write_table(table_of(x, id=np.arange(len(x))), tmp_path / "rows.parquet", row_group_size=20_000)
    arguments = [*options, "-k", 9, "--seed", 4, "--memory", memory, "--checkpoint-every", 0, "--key", "id"]
    outputs = ["--model", tmp_path / "model.cmx", "--labels", tmp_path / "theirs.parquet"]
    command("fit", tmp_path / "rows.parquet", *arguments, *outputs)
    rows = coremix.scan(tmp_path / "rows.parquet", key="id", memory=memory)
    model = clone(estimator).set_params(random_state=4, merge_rows=False).fit(rows)
    assert model._model == coremix.Model.load(tmp_path / "model.cmx")
    assert coremix.Model.load(tmp_path / "model.cmx").names == rows.names
    model.assign(rows, tmp_path / "ours.parquet")
    assert pa.parquet.read_table(tmp_path / "ours.parquet") == pa.parquet.read_table(tmp_path / "theirs.parquet")
    # Each takes the files of the other for labels, and replaces them.
    model.assign(rows, tmp_path / "theirs.parquet")
    model.save(tmp_path / "ours.cmx")
    command("assign", tmp_path / "ours.cmx", tmp_path / "rows.parquet", "--key", "id", "--labels", tmp_path / "ours.parquet")


@pytest.mark.skipif(COMMAND is None, reason="COREMIX_COMMAND names no program")
def test_refusals_are_those_of_the_command(tmp_path):
    x = blobs(300_000, 8, dtype=np.float32)
    path = npy(tmp_path, x)
    options = ["-a", "d-gmm", "-k", "5", "--memory", "70MiB", "--checkpoint-every", "0", "--report", tmp_path / "r.json"]
    found = subprocess.run([COMMAND, "fit", path, *options], capture_output=True, text=True)
    with pytest.raises(ValueError) as raised:
        coremix.DGmm(5, memory="70MiB").fit(coremix.scan(path))
    assert found.returncode == 2
    assert found.stderr.strip() == "coremix: --memory " + str(raised.value).removeprefix("memory = ")


def test_files_stay_what_they_are(tmp_path):
    x = np.random.default_rng(1).normal(size=(60, 2))
    model = coremix.KMeans(2).fit(x)
    path = tmp_path / "m"
    for mode in [0o600, 0o644]:
        path.touch()
        path.chmod(mode)
        model.save(path)
        assert path.stat().st_mode & 0o777 == mode
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    model.save(tmp_path / "pipe")
    reader.join()
    assert read == [path.read_bytes()] and (tmp_path / "pipe").is_fifo()
    model.save("/dev/null")
    assert Path("/dev/null").is_char_device()
    # The truth of others is no older file of labels.
    np.save(tmp_path / "truth.npy", np.zeros(60, np.uint32))
    (tmp_path / "truth.csv").write_text("label\n" + "1\n" * 60)
    for name in ["truth.npy", "truth.csv"]:
        with pytest.raises(FileExistsError):
            model.assign(x, tmp_path / name)
    for _ in range(2):
        model.assign(x, tmp_path / "own.npy")
