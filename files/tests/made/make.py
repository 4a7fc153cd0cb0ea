"""Writes small files as other programs write them, and `expected.tsv`: what each holds, and what is to be read of it.

    python3 -m venv made && made/bin/pip install pandas pyarrow polars==1.20.0 duckdb
    made/bin/pip install --no-deps --target made/polars2 polars==2.1.0 polars-runtime-32==2.1.0
    made/bin/python files/tests/made/make.py && PYTHONPATH=made/polars2 made/bin/python files/tests/made/make.py polars

The first run writes all files but those of the new polars, the second one these. The tests read the files as they are here, and need
none of these programs.
"""

import datetime
import decimal
import pathlib
import sys

import numpy as np
import polars as pl

HERE = pathlib.Path(__file__).parent
LINES = []
X, Y = [1.5, -2.0, 0.25, 8.0], [3, 1, 4, 1]
NAMES = ["ann", "bob", "ann", "Zoë"]
XY = [[x, y] for x, y in zip(X, Y)]


def said(file, tool, holds, columns=None, rows=None, not_used="", keys="", error=""):
    """A line of the table: the columns that are read and their rows, or a part of the error."""
    rows = ";".join(" ".join(repr(float(x)) for x in row) for row in rows or [])
    LINES.append("\t".join([file, tool, holds, ",".join(columns or []), not_used, rows, keys, error]))
    return str(HERE / file)


def of_polars():
    """Files by whichever polars is there, the same from each."""
    tool = f"polars {pl.__version__}"
    name = "polars" + pl.__version__.split(".")[0]
    plain = pl.DataFrame({"x": X, "y": Y, "name": NAMES})
    for ending, holds, write in [
        (".arrow", "floats, integers, text as views", lambda f: plain.write_ipc(f)),
        ("-zstd.arrow", "the same, by zstd", lambda f: plain.write_ipc(f, compression="zstd")),
        ("-stream.arrows", "the same, as a stream", lambda f: plain.write_ipc_stream(f)),
        (".parquet", "the same", lambda f: plain.write_parquet(f)),
    ]:
        keys = "name=" + ",".join(NAMES)
        write(said(name + ending, tool, holds, ["x", "y"], XY, "name (text)", keys))
    types = pl.DataFrame(
        {
            "big": pl.Series([10**15, -7, 0, 2**53], dtype=pl.Int128),
            "price": pl.Series([decimal.Decimal(s) for s in ("9.99", "-0.10", "0", "12.5")], dtype=pl.Decimal(12, 2)),
            "took": pl.Series([datetime.timedelta(seconds=s) for s in range(4)]),
            "when": pl.Series([datetime.datetime(2026, 1, d + 1) for d in range(4)]),
            "kind": pl.Series(NAMES, dtype=pl.Categorical),
            "small": pl.Series([0, 255, 7, 1], dtype=pl.UInt8),
        }
    )
    # Times are days since 1970.
    rows = [[10**15, 9.99, 20454, 0], [-7, -0.10, 20455, 255], [0, 0.0, 20456, 7], [2**53, 12.5, 20457, 1]]
    others = "took (durations);kind (text)"
    holds = "128-bit integers, decimals, durations, times, categories, bytes"
    file = said(name + "-types.arrow", tool, holds, ["big", "price", "when", "small"], rows, others, "kind=" + ",".join(NAMES))
    types.write_ipc(file)
    file = said(
        name + "-types.parquet",
        tool,
        "the same",
        ["price", "when", "small"],
        [row[1:] for row in rows],
        "big (bytes);" + others,
        "kind=" + ",".join(NAMES),
    )
    try:
        types.write_parquet(file)
    except pl.exceptions.ComputeError:
        # Old versions have no such column in Parquet.
        types.drop("big").write_parquet(file)
        LINES[-1] = LINES[-1].replace("big (bytes);", "")
    vectors = pl.DataFrame({"v": pl.Series([[1.0, 2.0], [3.0, 4.0]], dtype=pl.Array(pl.Float32, 2))})
    vectors.write_ipc(said(name + "-vectors.arrow", tool, "vectors", ["v"], [[1, 2], [3, 4]]))
    lists = pl.DataFrame({"v": pl.Series([[1.0, 2.0], [3.0, 4.0]], dtype=pl.List(pl.Float32))})
    lists.write_ipc(said(name + "-lists.arrow", tool, "lists", ["v"], [[1, 2], [3, 4]]))


def of_pandas():
    import pandas as pd

    tool = f"pandas {pd.__version__}"
    plain = pd.DataFrame({"x": X, "y": Y, "name": NAMES})
    keys = "name=" + ",".join(NAMES)
    plain.to_parquet(said("pandas.parquet", tool, "floats, integers, text", ["x", "y"], XY, "name (text)", keys))
    plain.to_feather(said("pandas.feather", tool, "the same, by lz4", ["x", "y"], XY, "name (text)", keys))
    some = plain[plain.x > 0]
    rows = [row for row in XY if row[0] > 0]
    others = "name (text);__index_level_0__ (numbers of the rows)"
    file = said("pandas-index.parquet", tool, "rows that were chosen, with their index", ["x", "y"], rows, others)
    some.to_parquet(file)
    again = pd.DataFrame({"Unnamed: 0": range(4), "x": X, "y": Y})
    file = said("pandas-unnamed.parquet", tool, "an index that came from CSV", ["x", "y"], XY, "Unnamed: 0 (numbers of the rows)")
    again.to_parquet(file)
    coded = pd.DataFrame({"x": X, "grade": pd.Categorical(Y), "name": pd.Categorical(NAMES)})
    for ending in ["parquet", "feather"]:
        file = said(f"pandas-category.{ending}", tool, "numbers and text as categories", ["x", "grade"], XY, "name (text)", keys)
        getattr(coded, f"to_{ending}")(file)
    times = pd.DataFrame({"x": X, "took": pd.to_timedelta(Y, unit="s"), "when": pd.to_datetime(["2026-01-01"] * 4)})
    for ending in ["parquet", "feather"]:
        rows = [[x, 20454] for x in X]
        file = said(f"pandas-times.{ending}", tool, "durations and times", ["x", "when"], rows, "took (durations)")
        getattr(times, f"to_{ending}")(file)
    nullable = pd.DataFrame({"x": pd.array(X, dtype="Float64"), "y": pd.array([3, None, 4, 1], dtype="Int64")})
    error = 'column "y", row 1: a null'
    nullable.to_parquet(said("pandas-missing.parquet", tool, "a missing value", error=error))
    plain[:0].to_parquet(said("pandas-none.parquet", tool, "columns, no rows", error="no rows"))


def of_pyarrow():
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    tool = f"pyarrow {pa.__version__}"
    code = pa.dictionary(pa.int8(), pa.string())
    schema = pa.schema([("x", pa.int64()), ("name", code)])

    def batch(xs, keys, names):
        names = pa.DictionaryArray.from_arrays(pa.array(keys, pa.int8()), pa.array(names))
        return pa.record_batch([pa.array(xs), names], schema=schema)

    other = "text (text)"
    file = said(
        "pyarrow-replaced.arrows", tool, "a stream that replaces its dictionary", ["x"],
        [[0], [1], [10], [11]], "name (text)", "name=ann,bob,cat,dan",
    )  # fmt: skip
    with pa.ipc.new_stream(file, schema) as out:
        out.write_batch(batch([0, 1], [0, 1], ["ann", "bob"]))
        out.write_batch(batch([10, 11], [0, 1], ["cat", "dan"]))
    for file, new in [("pyarrow-grown.arrow", pa.ipc.new_file), ("pyarrow-grown.arrows", pa.ipc.new_stream)]:
        path = said(file, tool, "a dictionary that grows", ["x"], [[0], [1], [2], [3]], "name (text)", "name=ann,bob,cat,ann")
        with new(path, schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)) as out:
            out.write_batch(batch([0, 1], [0, 1], ["ann", "bob"]))
            out.write_batch(batch([2, 3], [2, 0], ["ann", "bob", "cat"]))
    prices = [decimal.Decimal(s) for s in ("1.25", "-3.50", "100.00")]
    table = {
        f"d{bits}": pa.array(prices, kind(digits, 2))
        for bits, digits, kind in [(32, 9, pa.decimal32), (64, 18, pa.decimal64), (128, 38, pa.decimal128), (256, 76, pa.decimal256)]
    }
    rows = [[float(price)] * 4 for price in prices]
    pq.write_table(pa.table(table), said("pyarrow-decimals.parquet", tool, "decimals of four widths", list(table), rows))
    feather.write_feather(pa.table(table), said("pyarrow-decimals.feather", tool, "the same, by lz4", list(table), rows))
    half = pa.array(np.array([[1, 2, 3], [4, 5, 6]], np.float16).ravel())
    half = pa.FixedSizeListArray.from_arrays(half, 3)
    file = said("pyarrow-vectors.feather", tool, "vectors of half precision", ["v"], [[1, 2, 3], [4, 5, 6]])
    feather.write_feather(pa.table({"v": half}), file, compression="uncompressed")
    lists = pa.table({"id": [1, 2], "tags": [[1], [2, 3]], "more": [[1.0], [2.0]]})
    pq.write_table(lists, said("pyarrow-lists.parquet", tool, "numbers and lists", error='columns of lists ("tags", "more")'))
    ragged = pa.table({"v": [[1.0, 2.0], [3.0]]})
    error = 'column "v", row 1: a list of 1 numbers, where others have 2'
    pq.write_table(ragged, said("pyarrow-ragged.parquet", tool, "lists of several lengths", error=error))
    # R writes factors as dictionaries of 32-bit codes, whole numbers as int32, and words of its own.
    factor = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 2], pa.int32()), pa.array(["ann", "bob", "Zoë"]))
    frame = pa.table({"x": X, "y": pa.array(Y, pa.int32()), "name": factor, "ok": [True, False, True, True]})
    frame = frame.replace_schema_metadata({"r": "A\n3\n262658\n197888\n5\nUTF-8\n531\n1"})
    keys, others = "name=" + ",".join(NAMES), "name (text)"
    rows = [[*row, ok] for row, ok in zip(XY, [1, 0, 1, 1])]
    args = ["like R's arrow", "a factor, integers of 32 bits, logicals", ["x", "y", "ok"], rows, others, keys]
    pq.write_table(frame, said("r-like.parquet", *args))
    feather.write_feather(frame, said("r-like.feather", *args))
    assert other


def of_duckdb():
    import duckdb
    import pyarrow as pa

    tool = f"DuckDB {duckdb.__version__}"
    query = """select x::float x, y::tinyint y, (x * 100)::decimal(9, 2) price, (y + 1)::hugeint big, interval 1 day as took, date '2026-01-01' as begun,
        name from (values (1.5, 3, 'ann'), (-2.0, 1, 'bob'), (0.25, 4, 'ann'), (8.0, 1, 'Zoë')) rows(x, y, name)"""
    rows = [[x, y, 100 * x, y + 1, 20454] for x, y in XY]
    keys = "name=" + ",".join(NAMES)
    holds = "floats, bytes, decimals, huge integers, intervals, dates, text"
    others = "took (intervals);name (text)"
    file = said("duckdb.parquet", tool, holds, ["x", "y", "price", "big", "begun"], rows, others, keys)
    duckdb.sql(f"copy ({query}) to '{file}' (format parquet)")
    file = said("duckdb-v2.parquet", tool, "the same, version 2, by zstd", ["x", "y", "price", "big", "begun"], rows, others, keys)
    duckdb.sql(f"copy ({query}) to '{file}' (format parquet, parquet_version v2, compression zstd)")
    others = "took (intervals);name (text)"
    file = said("duckdb.arrows", tool, "the same, as a stream", ["x", "y", "price", "big", "begun"], rows, others, keys)
    result = duckdb.sql(query).to_arrow_table()
    with pa.ipc.new_stream(file, result.schema) as out:
        out.write_table(result)
    file = said("duckdb-vectors.parquet", tool, "vectors", ["v"], [[1, 2], [3, 4]])
    duckdb.sql(f"copy (select unnest([[1, 2], [3, 4]])::float[2] v) to '{file}' (format parquet)")


def of_numpy():
    tool = f"NumPy {np.__version__}"
    a = np.array(XY)
    save = lambda array, *about, **more: np.save(said(*about, **more), array)
    rows = dict(rows=XY)
    save(a, "numpy.npy", tool, "a matrix", **rows)
    save(np.asfortranarray(a), "numpy-columns.npy", tool, "column after column", **rows)
    save(a.astype(">f8"), "numpy-big.npy", tool, "big-endian numbers", error="'>f8'".replace("'", '"'))
    save(a[:, 0], "numpy-vector.npy", tool, "one axis", error="1 axes; it must have 2")
    save(np.array([(1.0, 2), (3.0, 4)], [("x", "f8"), ("y", "i4")]), "numpy-fields.npy", tool, "rows of fields", error="structured_to_unstructured")
    save(np.array([(1.0, 2.0)], [("größe", "f8"), ("λ", "f8")]), "numpy-names.npy", tool, "fields with other letters, version 3", error="structured_to_unstructured")
    save(np.array([(1.0, 2.0)], [("größe", "f8"), ("y", "f8")]), "numpy-latin.npy", tool, "fields with letters of Latin-1", error="structured_to_unstructured")
    np.save(said("numpy-objects.npy", tool, "Python objects", error="Python objects"), np.array([[1, "a"]], object), allow_pickle=True)
    save(a > 1, "numpy-truth.npy", tool, "truth values", error="true and false")


if sys.argv[1:] == ["polars"]:
    of_polars()
else:
    of_pandas(), of_polars(), of_pyarrow(), of_duckdb(), of_numpy()
    for file in ["empty.parquet", "empty.arrow", "empty.npy"]:
        open(said(file, "any", "no bytes", error="empty file"), "w").close()
path = HERE / "expected.tsv"
own = {line.split("\t")[0] for line in LINES}
old = path.read_text().splitlines() if path.exists() else []
path.write_text("\n".join([line for line in old if line.split("\t")[0] not in own] + LINES) + "\n")
