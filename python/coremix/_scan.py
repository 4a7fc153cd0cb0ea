"""Rows that are not in memory: files, and what gives batches of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any, Literal, TypeAlias

import numpy as np

from ._arrays import narrow, rows_in_memory, stacked, with_zeros
from ._coremix import Csr, Scan
from ._sklearn import issparse

Path: TypeAlias = str | PathLike[str]
Batches: TypeAlias = Iterable[Any] | Callable[[], Iterable[Any]]

# Rows of a batch of a stream.
ROWS = 1 << 16


def scan(
    rows: Path | Iterable[Path] | Batches | Any,
    columns: str | Iterable[str] | None = None,
    weights: str | None = None,
    key: str | Iterable[str] | None = None,
    *,
    categories: str | Iterable[str] | Mapping[str, list[str]] | None = None,
    memory: int | str = "2GiB",
    dtype: Literal["float32", "float64"] | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    comment: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    drop_missing: bool = False,
    missing: bool | str | Iterable[str] | None = False,
    spool: Path | None = None,
) -> Scan | Csr:
    """Opens rows that stay where they are, and are read block by block: it can be given wherever an array can.

    Files are read where they lie. Rows of anything else are written to a temporary file once, by this call: one batch at a time
    is in memory. The file is as large as the columns that are read, has no name, and goes when the scan is dropped.

    Parameters
    ----------
    rows : path, list of paths, or what gives batches
        A file, a folder, or a pattern such as ``"parts/*.parquet"``: ``.parquet``, ``.arrow``, ``.csv``, ``.csv.gz``, ``.tsv``,
        ``.npy``, ``.fvecs``, ``.bvecs``, ``.fbin`` or ``.u8bin``; of sparse rows ``.npz`` and ``.svmlight``. Folders called ``name=value`` are a column. Or a dataset of
        pyarrow, a relation of DuckDB, a LazyFrame of polars, anything else with an Arrow stream; a list of batches, an object
        that can be iterated again and again, or a function that returns an iterator. A batch is an array, a data frame, or an
        Arrow table or record batch. Sparse matrices of SciPy are batches, too, if all batches are.
    columns : str, iterable of str or None, default=None
        The columns of numbers, or one column of lists. None: all of numbers but ``weights`` and ``key``.
    weights : str or None, default=None
        The column of the weights. Fits and scores use it; ``sample_weight`` is then an error.
    key : str, iterable of str or None, default=None
        Columns that name the rows: ``assign`` writes them with the labels.
    categories : str, iterable of str, dict of str to list of str, or None, default=None
        Columns whose text is read as codes, as :class:`TableMixture` takes them: in the order of all texts, or of those of a dict.
    memory : int or str, default="2GiB"
        The memory that a fit may take in addition to Python itself, as bytes or text, unless the estimator says it. Rows that fit
        in it are loaded for the fit. Otherwise they are read in every pass, and a fit that needs more is refused before it begins.
    dtype : {"float32", "float64"} or None, default=None
        What numbers are read as. None: the smallest type that holds all exactly.
    format : str or None, default=None
        The usual ending of the format, such as ``"parquet"``, where the names of files do not say it.
    delimiter, decimal, thousands, comment : str or None, default=None
        Signs of CSV files: between fields, in numbers, and before lines that are left out. None: a comma (a semicolon where the
        comma is the decimal sign, a tab for ``.tsv``), a point, and nothing.
    encoding : str or None, default=None
        Of CSV files, such as ``"latin1"``. None: UTF-8, or UTF-16 with its mark.
    header : bool or None, default=None
        Whether the first line of CSV files names the columns. None: unless all of it are numbers like those below.
    drop_missing : bool, default=False
        Leave out rows with a missing value: they have no labels. Otherwise such a value is an error.
    missing : bool, str, iterable of str or None, default=False
        True: nulls, NaN, empty fields and words such as NA are missing values, and estimators take these rows by what is known of them.
        Texts: so are these in text files, such as ``"-"`` or ``"-999"``. Columns without any value are not used.
    spool : path or None, default=None
        The folder for temporary files: also those of compressed text and of pipes. None: that of the system.

    Returns
    -------
    Scan, or Csr for sparse rows
        Sparse rows are in memory, as those of a matrix: without names, weights and keys of columns.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import coremix
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> lines = "".join(f"{i},{i % 2 * 9},{i % 7}\\n" for i in range(1000))
    >>> _ = (folder / "points.csv").write_text("id,x,y\\n" + lines)
    >>> points = coremix.scan(folder / "points.csv", key="id")
    >>> len(points), points.names
    (1000, ['x', 'y'])
    >>> kmeans = coremix.KMeans(2, random_state=0).fit(points)
    >>> kmeans.assign(points, folder / "labels.csv")
    >>> (folder / "labels.csv").read_text().splitlines()[0]
    'id,label'
    """
    names = {"columns": columns, "key": key}
    texts = None
    if missing is not False and missing is not None:
        texts = [] if missing is True else [missing] if isinstance(missing, str) else list(missing)
        if drop_missing:
            raise ValueError("missing and drop_missing: rows are kept, or left out: give one of both")
    arguments: dict[str, Any] = {
        **{name: [value] if isinstance(value, str) else value and list(value) for name, value in names.items()},
        "categories": dict(categories)
        if isinstance(categories, Mapping)
        else [categories]
        if isinstance(categories, str)
        else categories and list(categories),
        "weights": weights,
        "dtype": None if dtype is None else np.dtype(dtype).name,
        "format": format,
        "delimiter": delimiter,
        "decimal": decimal,
        "thousands": thousands,
        "comment": comment,
        "encoding": encoding,
        "header": header,
        "drop_missing": drop_missing,
        "missing": texts,
        "spool": spool,
    }
    if isinstance(rows, (list, tuple)):
        # The list is kept for pickling, so it must not change.
        rows = list(rows)
    again = partial(scan, rows, memory=memory, **arguments)
    paths = _paths(rows)
    if paths is not None:
        return Scan.of_files(paths, arguments, memory, again)
    wanted = arguments["columns"]
    if wanted is not None:
        wanted = list(dict.fromkeys([*wanted, *(arguments["key"] or []), *([weights] if weights else [])]))
    stream = _stream(rows, wanted)
    if not isinstance(stream, Csr):
        return Scan.of_batches(stream, arguments, memory, again)
    # Names of columns, and missing values.
    for name in ("columns", "weights", "key", "categories", "missing", "drop_missing"):
        if arguments[name]:
            raise ValueError(f"{name}: sparse rows have neither names of columns nor missing values: leave it out; sample_weight has weights")
    return stream


def _paths(rows: Any) -> list[str] | None:
    """The paths, if these are paths."""
    if isinstance(rows, (str, PathLike)):
        return [os.fspath(rows)]
    if isinstance(rows, list) and rows and all(isinstance(path, (str, PathLike)) for path in rows):
        return [os.fspath(path) for path in rows]
    return None


def is_apart(X: Any) -> bool:
    """Whether X gives its rows only in batches, so that they are not in memory."""
    if isinstance(X, np.ndarray):
        return False
    if _is_dataset(X) or _is_relation(X) or _is_lazy(X):
        return True
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and _is_batch(X[0])
    if isinstance(X, (str, PathLike, dict)) or isinstance(X, type):
        return False
    others = ("__array__", "__arrow_c_stream__", "__arrow_c_array__", "__dataframe__", "__getitem__", "shape", "dtype")
    if any(hasattr(X, name) for name in others):
        return False
    return callable(X) or hasattr(X, "__iter__")


def _module(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


def _is_dataset(X: Any) -> bool:
    return _module(X) == "pyarrow" and hasattr(X, "scanner") and hasattr(X, "schema")


def _is_relation(X: Any) -> bool:
    return _module(X) in ("duckdb", "_duckdb") and type(X).__name__ == "DuckDBPyRelation"


def _is_lazy(X: Any) -> bool:
    return _module(X) == "polars" and type(X).__name__ == "LazyFrame"


def _is_batch(X: Any) -> bool:
    """Whether X are rows of columns, and not one row."""
    return getattr(X, "ndim", 0) == 2 or hasattr(X, "columns")


def _stream(rows: Any, columns: list[str] | None) -> Any:
    """An Arrow stream, or an iterator of batches, for the native part. ``columns``: those that are read, if they are known."""
    if _is_dataset(rows):
        # Other columns are not even decoded.
        return rows.scanner(columns=columns, batch_size=ROWS).to_reader()
    if _is_relation(rows):
        reader = getattr(rows, "to_arrow_reader", None) or getattr(rows, "fetch_arrow_reader", None) or rows.fetch_record_batch
        return reader(ROWS)
    if _is_lazy(rows):
        if not hasattr(rows, "collect_batches"):
            raise TypeError("this version of polars has no LazyFrame.collect_batches: take a newer one, or write a file by sink_parquet")
        return map(_batch, rows.collect_batches(chunk_size=ROWS, maintain_order=True))
    if hasattr(rows, "__arrow_c_stream__") and _module(rows) != "pandas":
        return narrow(rows)
    if isinstance(rows, np.ndarray):
        raise TypeError("an array is in memory: give it to the estimator as it is")
    if issparse(rows):
        return stacked([rows])
    if _is_batch(rows):
        return map(_batch, [rows])
    found = rows() if callable(rows) and not hasattr(rows, "__iter__") else rows
    if not hasattr(found, "__iter__") or isinstance(found, dict):
        kinds = "paths, a dataset of pyarrow, a relation of DuckDB, a LazyFrame of polars, or batches of rows"
        raise TypeError(f"a {type(found).__name__} has no batches of rows: give {kinds}")
    if hasattr(found, "__next__") and found is rows:
        raise TypeError(
            f"a {type(rows).__name__} can be read only once: give a function that returns one, such as `lambda: batches(...)`, or a "
            "list of the batches"
        )
    batches = iter(found)
    first = list(next(zip(batches), ()))
    if first and issparse(first[0]):
        return stacked(chain(first, batches))
    return map(_batch, chain(first, batches))


def _batch(batch: Any) -> Any:
    """A batch as the native part reads it: with the Arrow C interface, or an array and the names of its columns."""
    if _module(batch) == "pandas":
        try:
            import pyarrow
        except ImportError:
            return rows_in_memory(batch), [str(name) for name in batch.columns]
        return pyarrow.Table.from_pandas(with_zeros(batch), preserve_index=False)
    if issparse(batch):
        raise TypeError("a batch is a sparse matrix, and the first one is not: all must be, or give batch.toarray()")
    batch = narrow(batch)
    if hasattr(batch, "__arrow_c_stream__") or hasattr(batch, "__arrow_c_array__"):
        return batch
    if is_apart(batch):
        raise TypeError("a batch must be an array or a table")
    return rows_in_memory(batch), None

