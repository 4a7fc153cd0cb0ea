"""Rows in memory, as the native part reads them without a copy: arrays, frames, tables and sparse matrices."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _coremix
from ._checks import NUMBERS, rows_of_array
from ._coremix import Scan
from ._sklearn import issparse

# An array of these numbers passes as it is, in the byte order of the machine.
PLAIN = frozenset({np.dtype(np.float64), np.dtype(np.float32)})
# The largest integer up to which all are float64.
EXACT = 1 << 53


def sound(X: Any) -> Any:
    """A sparse matrix of scipy, of which scipy computes only with the lists that it has: it does not look where they end."""
    if not hasattr(X, "indptr"):
        return X
    if any(part.ndim != 1 or part.dtype.kind not in "iu" for part in (X.indptr, X.indices)):
        raise ValueError("X is no sparse matrix: indptr and indices must be lists of integers")
    # A matrix of its own: the check cuts lists that are too long.
    own = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
    try:
        own.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"X is no sparse matrix: {error}") from error
    return own


def _csr_of(X: Any) -> _coremix.Csr:
    """The rows of a sparse matrix of scipy: columns ascend, and none comes twice."""
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D sparse array instead. Reshape your data: X.reshape(1, -1) is one row.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X is a sparse matrix of {X.dtype}: it must be one of numbers. Complex data not supported.")
    rows = sound(sound(X).tocsr())
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    place = _inexact(rows.data)
    if place is not None:
        raise _rounded(np.searchsorted(rows.indptr, place, "right") - 1, rows.indices[place], rows.data[place])
    check_stored(rows)
    values = rows.data if rows.data.dtype in PLAIN else rows.data.astype(np.float64)
    return _coremix.Csr(rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), np.ascontiguousarray(values), rows.shape[1])


def stacked(batches: Iterable[Any]) -> _coremix.Csr:
    """The rows of sparse matrices of scipy, one below the other."""
    from scipy.sparse import vstack

    found: list[Any] = []
    for number, batch in enumerate(batches):
        if not issparse(batch):
            raise TypeError(f"batch {number} is no sparse matrix, and the first one is: all must be, or none")
        if batch.ndim != 2 or found and batch.shape[1] != found[0].shape[1]:
            raise ValueError(f"batch {number} has the shape {batch.shape}: all must have the columns of the first one")
        found.append(sound(batch).tocsr())
    return _csr_of(vstack(found, format="csr") if len(found) > 1 else found[0])


def with_all_zeros(X: _coremix.Csr) -> NDArray[np.floating]:
    """Sparse rows as an array, without a missing value: what is not stored is 0."""
    found = X.toarray()
    if np.isnan(found).any():
        row, column = np.argwhere(np.isnan(found))[0]
        raise ValueError(f"X: row {row}, column {column} is NaN; sparse rows have no missing values, as what is not stored is 0")
    return found


def check_stored(X: Any) -> None:
    """An error where a sparse matrix stores NaN: missing values are for dense rows, whatever the size of the matrix."""
    if X.dtype.kind != "f" or not np.isnan(np.sum(X.tocsr().data)):
        return
    rows = X.tocoo()
    place = np.flatnonzero(np.isnan(rows.data))[:1]
    if len(place):
        row, column = (int(at[place[0]]) for at in (rows.row, rows.col))
        rule = "sparse rows have no missing values, as what is not stored is 0: give X.toarray(), with allow_missing=True"
        raise ValueError(f"X: row {row}, column {column} is NaN; {rule}")


def table_of(
    X: Any,
    columns: list[str] | None = None,
    missing: bool = False,
    categories: Iterable[int | str] = (),
    texts: dict[str, list[str]] | None = None,
) -> _coremix.Table | _coremix.Csr | Scan | None:
    """X as a table, if it is one of the Arrow C data interface, or as sparse rows; a scan as it is. Frames of pandas go through NumPy,
    where all of it are numbers.

    Only these columns of a table, in this order, if X has names. ``missing``: nulls and NaN are missing values. ``categories``: columns
    whose text is read as codes, in the order of ``texts`` where these are known.
    """
    if isinstance(X, (_coremix.Table, _coremix.Csr, Scan)):
        return X
    if isinstance(X, np.ndarray):
        return None
    if issparse(X):
        return _csr_of(X)
    if isinstance(X, (str, PathLike)):
        raise TypeError(f"X = {X!r} is no rows: give what it holds, such as np.load(X) or pandas.read_csv(X), or coremix.scan(X)")
    if hasattr(X, "collect") and not hasattr(X, "__len__"):
        raise TypeError(f"a {type(X).__name__} has no rows before they are collected: give X.collect()")
    if type(X).__module__.partition(".")[0] == "pandas":
        X = _arrow_of(X, categories, texts or {})
    X = narrow(X)
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return _coremix.Table(X, columns, missing, list(categories), texts or {})
    return None


def _arrow_of(X: Any, categories: Iterable[int | str], texts: Iterable[str] = ()) -> Any:
    """A frame of pandas as a table of Arrow, if it has text, times or lists, or categories that are no numbers, or columns ``texts``
    that were text in the fit; else None."""
    if getattr(X, "ndim", 0) != 2 or not X.shape[1]:
        return None
    named, coded = set(categories), set(texts)

    def is_number(place: int, name: Any, kind: Any) -> bool:
        if name in coded:
            return False
        if getattr(kind, "kind", "O") in ("iuf" if named & {place, name} else "biufc") or type(kind).__name__ == "SparseDtype":
            return True
        if named & {place, name} or getattr(kind, "kind", "O") == "M":
            return False
        try:
            np.asarray(X.iloc[:, place], dtype=np.float64)
        except (TypeError, ValueError):
            # Numbers, some of which are missing.
            known = X.iloc[:, place].dropna()
            return kind == object and len(known) > 0 and all(isinstance(x, (numbers.Number, np.generic)) for x in known)
        return True

    numeric = [is_number(place, name, kind) for place, (name, kind) in enumerate(X.dtypes.items())]
    if all(numeric):
        return None
    if not X.columns.is_unique:
        if not any(getattr(kind, "kind", "O") == "M" for kind in X.dtypes):
            return None
        raise ValueError(f"X has several columns {X.columns[X.columns.duplicated()][0]!r}: rename one, or leave it out")
    plain = {name for name, own in zip(X.columns, numeric, strict=True) if own and X[name].dtype == object}
    try:
        import pyarrow
    except ImportError:
        if coded.intersection(X.columns):
            raise ImportError("a frame of pandas with text needs pyarrow: pip install pyarrow, or give a frame of polars") from None
        return None
    try:
        # Objects that are numbers may be of several kinds.
        X = X.copy(deep=False)
        for name in plain:
            X[name] = X[name].mask(X[name].isna(), np.nan).astype(np.float64)
        return pyarrow.Table.from_pandas(with_zeros(X), preserve_index=False)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError, OverflowError) as error:
        raise ValueError(f"X: a column has values of several kinds: {'; '.join(map(str, error.args))}") from error


def sparse_columns(X: Any) -> list[Any]:
    """The types of the sparse columns of a frame of pandas."""
    kinds = getattr(X, "dtypes", ()) if type(X).__module__.partition(".")[0] == "pandas" and hasattr(X, "columns") else ()
    return [kind for kind in kinds if type(kind).__name__ == "SparseDtype"]


def with_zeros(X: Any) -> Any:
    """X, with all values of sparse columns if it is a frame of pandas that has some. Spans of time are an error: Arrow has none."""
    if type(X).__module__.partition(".")[0] == "pandas" and hasattr(X, "dtypes") and hasattr(X, "columns"):
        spans = [name for name, kind in X.dtypes.items() if type(kind).__name__ == "PeriodDtype"]
        if spans:
            raise ValueError(f"X: the column {spans[0]!r} holds periods of pandas: give X[{spans[0]!r}].dt.to_timestamp()")
    if not sparse_columns(X):
        return X
    return X.apply(lambda column: column.sparse.to_dense() if sparse_columns(column.to_frame()) else column)


def narrow(X: Any) -> Any:
    """X as Arrow has it, if it is a frame of polars: integers of 128 bits as those of 64 bits, columns of the type of nulls as truths."""
    kinds = getattr(X, "schema", None) if type(X).__module__.partition(".")[0] == "polars" else None
    wide = {name: str(kind).replace("128", "64") for name, kind in (kinds or {}).items() if str(kind) in ("Int128", "UInt128")}
    # Arrow has no buffer for nulls alone, and polars gives one.
    wide |= {name: "Boolean" for name, kind in (kinds or {}).items() if str(kind) == "Null"}
    if not wide:
        return X
    import polars

    try:
        return X.cast({name: getattr(polars, kind) for name, kind in wide.items()})
    except polars.exceptions.InvalidOperationError as error:
        raise ValueError(f"X: {str(error).partition(chr(10))[0]}") from error


def rows_in_memory(X: Any, columns: list[str] | None = None, missing: bool = False, texts: dict[str, list[str]] | None = None) -> Any:
    """The rows of X, of which there may be none, for the native part.

    With the names of a model's columns: these columns in this order, if X has names. ``missing``: nulls and NaN are missing values.
    ``texts``: the columns whose text is codes, in their order.
    """
    table = table_of(X, columns, missing, texts or (), texts)
    if table is not None:
        return table
    X = with_zeros(X)
    own = list(getattr(X, "columns", []))
    if columns is not None and own and own != columns and all(isinstance(name, str) for name in own):
        for name in columns:
            if own.count(name) != 1:
                number = "several columns" if name in own else "no column"
                raise ValueError(f"X has {number} {name!r}: the model was fitted to {columns}")
        X = X[columns]
    return numbers_of(X, lambda X: rows_of_array(X, NUMBERS, least=0), missing)


def unmasked(X: Any, name: str, missing: bool = False) -> Any:
    """X as an array without a mask, if it is a masked array or a list of such rows. A masked value is an error, or ``missing``: NaN.

    NumPy's own conversion would take the numbers that lie under the mask, and round integers that float64 does not hold: these are
    an error.
    """
    rows = isinstance(X, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in X)
    if not rows and not isinstance(X, np.ma.MaskedArray):
        _exact(X, name)
        return X
    X = np.ma.array(X)
    _exact(X.filled(0), name)
    if np.ma.is_masked(X) and missing:
        return X.astype(X.dtype if X.dtype.kind == "f" else np.float64).filled(np.nan)
    if np.ma.is_masked(X):
        first = np.argwhere(np.ma.getmaskarray(X))[0]
        place = ", ".join(f"{kind} {at}" for kind, at in zip(("row", "column"), first, strict=False))
        raise ValueError(f"{name}: {place} is masked; every value must be there: leave such rows out, or fill them")
    return X.data


def _exact(X: Any, name: str) -> None:
    """An error if X, an array, a frame or lists, has an integer that float64 does not hold."""
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        for j, kind in enumerate(X.dtypes):
            kind = getattr(kind, "kind", "O")
            column = X.iloc[:, j].fillna(0) if kind in "iu" else X.iloc[:, j]
            place = _inexact(column.to_numpy()) if kind in "iuOmM" else None
            if place is not None:
                raise _rounded(place, repr(X.columns[j]), X.iloc[place, j], name)
        return
    try:
        values = np.asarray(X)
        if not isinstance(X, np.ndarray) and values.dtype.kind == "f" and (np.abs(values) >= EXACT).any():
            # Integers among other numbers.
            values = np.array(X, dtype=object)
    except (TypeError, ValueError):
        # The checks that follow say why it is none.
        return
    if values.dtype.kind == "c":
        # NumPy's own conversion leaves out a part.
        raise ValueError(f"{name}: Complex data not supported\n{X}\n")
    place = _inexact(values)
    if place is not None:
        row, *column = np.unravel_index(place, values.shape) if values.ndim else (0,)
        raise _rounded(row, column[0] if column else None, values.flat[place], name)


def _inexact(values: NDArray[Any]) -> int | None:
    """The place of the first integer, or time, that float64 does not hold."""
    if values.dtype.kind == "O":
        found: Any = (i for i, x in enumerate(values.flat) if isinstance(x, numbers.Integral) and abs(int(x)) > EXACT)
        return next(found, None)
    if values.dtype.kind not in "iumM" or values.dtype.itemsize < 8 or not values.size:
        return None
    values = values.view(np.int64) if values.dtype.kind in "mM" else values
    if -EXACT <= values.min() and values.max() <= EXACT:
        return None
    return int(np.argmax(((values > EXACT) | (values < -EXACT)).ravel()))


def _rounded(row: Any, column: Any, value: Any, name: str = "X") -> ValueError:
    """The error of an integer that float64 does not hold."""
    place = f"row {row}" if column is None else f"row {row}, column {column}"
    cure = "subtract an offset first, or round it, as astype(float) does"
    return ValueError(f"{name}: {place}: {value} is an integer beyond 2^53, which float64 does not hold; rows count from 0: {cure}")


def numbers_of(X: Any, check: Callable[[Any], NDArray[Any]], missing: bool) -> NDArray[Any]:
    """The array of X that the native part reads, after this check. ``missing``: what is no value is NaN."""
    X = unmasked(X, "X", missing)
    if missing and hasattr(X, "isna") and hasattr(X, "columns") and any(kind == object for kind in X.dtypes):
        # None and pandas.NA, which are objects.
        X = X.mask(X.isna(), np.nan)
    try:
        # The native part says which number is not finite.
        found = check(X)
    except (TypeError, ValueError) as error:
        kinds: Any = X.dtypes.items() if hasattr(X, "columns") and hasattr(X, "dtypes") else ()
        others = [name for name, kind in kinds if getattr(kind, "kind", "O") not in "biuf"]
        if "feature" in str(error):
            raise
        if others:
            raise ValueError(f"the columns {others} are not of numbers: select the columns of numbers") from error
        where = _no_number(X)
        if where is None:
            raise
        raise type(error)(f"{error}: {where}") from error
    # A copy of one whose numbers do not lie at multiples of their size.
    if not found.flags.aligned or any(stride % found.itemsize for stride in found.strides):
        return found.copy()
    return found


def _no_number(X: Any) -> str | None:
    """Why X cannot become numbers: what it is, or its first value that is none."""
    if isinstance(X, dict):
        return "X is a dict: give pandas.DataFrame(X)"
    if not isinstance(X, (np.ndarray, list, tuple)) or isinstance(X, np.ndarray) and X.dtype.kind not in "OUS":
        return None
    rows = [row if isinstance(row, (np.ndarray, list, tuple)) else [row] for row in X]
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            return f"X: row {i} has {len(row)} values, and row 0 has {len(rows[0])}: all must be as long"
        for j, value in enumerate(row):
            try:
                float(value)
            except (TypeError, ValueError):
                rule = "leave the column out, or give a data frame to TableMixture with the column in its categories"
                return f"X: row {i}, column {j} is {value!r}, which is no number; rows count from 0: {rule}"
    return None
