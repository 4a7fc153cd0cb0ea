"""Rows, in memory or not, and weights: checked as scikit-learn does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _coremix
from ._arrays import (
    PLAIN,
    check_stored,
    numbers_of,
    rows_in_memory,
    sound,
    sparse_columns,
    table_of,
    unmasked,
    with_all_zeros,
    with_zeros,
)
from ._checks import array_of, check_order, check_rows, check_width, note_names
from ._coremix import Scan
from ._scan import is_apart, scan
from ._sklearn import issparse

# A fit of a sparse matrix with so few numbers, zeros among them, is that of an array.
FEW_NUMBERS = 1 << 20


class ArrowStream(Protocol):
    """Tables, and frames of polars and pandas."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowArray(Protocol):
    """Record batches."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> Any: ...


# A dataset of pyarrow, a relation of DuckDB, a LazyFrame of polars and batches of rows are not more than objects here.
Rows: TypeAlias = (
    ArrayLike | ArrowStream | ArrowArray | _coremix.Table | _coremix.Missing | Scan | Iterable[Any] | Callable[[], Iterable[Any]]
)


def kept(X: Any, categories: Any = None, missing: bool = False) -> Any:
    """X, to be read more than once: rows that are not in memory as a scan, with these ``categories``, and ``missing`` values."""
    return X if isinstance(X, np.ndarray) or not is_apart(X) else scan(X, categories=categories, missing=missing)


def release() -> None:
    """Gives memory that was freed back to the system: glibc keeps some for each thread that there was."""
    import ctypes

    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        # Another C library.
        return
    trim(0)


def rows_of(estimator: Any, X: Rows, *, reset: bool) -> Any:
    """The rows of X for the native part. ``reset`` notes the number of columns and their names, else they are compared."""
    missing = estimator.allow_missing
    if not isinstance(missing, (bool, np.bool_)):
        raise TypeError(f"allow_missing = {missing!r}: must be True or False")
    if not reset and _is_known(estimator, X):
        return _coremix.Missing(X) if missing else X
    names: list[str] | None = None
    stored = sparse_columns(X)
    frame: Any = X
    zeros = bool(stored) and len(stored) == frame.shape[1] and all(kind.fill_value == 0 for kind in stored)
    if zeros and frame.size > FEW_NUMBERS and estimator._takes_sparse():
        own = list(frame.columns)
        names = own if all(isinstance(name, str) for name in own) else None
        X = frame.sparse.to_coo()
    X = with_zeros(X)
    if issparse(X):
        _check_sparse(estimator)
        X = sound(X)
        few: Any = X
        if reset and few.ndim == 2 and few.shape[0] * few.shape[1] <= FEW_NUMBERS:
            # Rows that repeat are merged, as those of arrays are.
            check_stored(few)
            X = few.toarray()
    categories = estimator._category_columns()
    if reset:
        _check_categories(X, categories)
    texts = {} if reset or "_model" not in estimator.__dict__ else estimator._model.texts
    X = kept(X, texts or [name for name in categories if isinstance(name, str)] or None, bool(missing))
    if isinstance(X, _coremix.Csr):
        _check_sparse(estimator)
        if reset and X.rows * X.columns <= FEW_NUMBERS:
            X = with_all_zeros(X)
    if isinstance(X, Scan) and texts and X.texts != texts:
        # The codes are those of the fit.
        _check_coded(X.texts, texts, categories, X.names)
        X = X.again(categories=texts)
    table = table_of(X, None, bool(missing), categories, texts)
    if table is not None:
        if not reset:
            _check_coded(getattr(table, "texts", {}), texts, categories, table.names)
        _check_texts(estimator, getattr(table, "texts", {}), categories, table.names)
        _check_table(estimator, table, reset, names or table.names)
        return table
    if texts:
        _check_array(X, texts)
    found = numbers_of(X, partial(check_rows, estimator, reset=reset), bool(missing))
    return _coremix.Missing(found) if missing else found


def _check_sparse(estimator: Any) -> None:
    """An error unless it takes sparse rows."""
    if not estimator._takes_sparse():
        rule = "k-means, and mixtures with covariance_type 'diag', 'spherical' or 'tied-spherical', take such rows: give X.toarray()"
        raise TypeError(f"X is sparse, which {type(estimator).__name__} does not take here; {rule}")


def _is_known(estimator: Any, X: Any) -> bool:
    """Whether X passes the checks as it is: they take longer than the prediction of a row."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in PLAIN
        and X.shape[0] > 0
        and X.shape[1] == estimator.__dict__.get("n_features_in_")
        and X.flags.c_contiguous
        and X.flags.aligned
        and "feature_names_in_" not in estimator.__dict__
    )


def rows_alone(X: Any, columns: list[str] | None = None, missing: bool = False, texts: dict[str, list[str]] | None = None) -> Any:
    """As :func:`rows_in_memory`; rows that are not in memory as a scan."""
    found = kept(X, texts or None, missing)
    if isinstance(found, Scan) and texts and found.texts != texts:
        found = found.again(categories=texts)
    if texts and isinstance(found, (np.ndarray, list, tuple)):
        _check_array(found, texts)
    return rows_in_memory(found, columns, missing, texts)


def one_row(row: Any, columns: list[str] | None, texts: dict[str, list[str]]) -> Any:
    """A single row (n_features,), or a table that has no other, as :func:`rows_alone`."""
    check_order(row, "the row", columns)
    rows = rows_alone([row], columns, texts=texts)
    if len(rows) != 1:
        raise ValueError(f"{len(rows)} rows: give one; predict takes several")
    return rows


def weights_of(sample_weight: ArrayLike | None, rows: Any, *, of_batch: bool = False) -> NDArray[np.float64] | None:
    """The weights of these rows (n_samples,), or None: those of a scan, if it has some. A batch may have no weight at all."""
    n_samples = len(rows)
    own = rows.weights if isinstance(rows, Scan) else None
    if sample_weight is None:
        return own
    if own is not None:
        raise ValueError("sample_weight: the scan has weights of its own: leave one of both out")
    if isinstance(sample_weight, str):
        rule = f"must be numbers, one for each row; coremix.scan(X, weights={sample_weight!r}) takes a column"
        raise TypeError(f"sample_weight = {sample_weight!r}: {rule}")
    if np.isscalar(sample_weight):
        sample_weight = np.full(n_samples, sample_weight)
    weights = array_of(unmasked(sample_weight, "sample_weight"))
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_samples,)}")
    if n_samples and not of_batch and not weights.any():
        raise ValueError("sample_weight: every weight is zero; at least one must be larger")
    return weights


def _check_categories(X: Any, categories: list[int | str]) -> None:
    """An error if a frame has no column of one of these names."""
    # The columns of an Arrow table are its arrays.
    names: Any = getattr(X, "column_names", getattr(X, "columns", None))
    if not hasattr(names, "__iter__"):
        return
    absent = [name for name in categories if isinstance(name, str) and name not in list(names)]
    if absent:
        raise ValueError(f"categories: no column {absent[0]!r}; they are {[str(name) for name in names]}")


def sound_weights(weights: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """These weights, all of which are finite and not negative."""
    if weights is not None and not (found := np.isfinite(weights) & (weights >= 0)).all():
        row = int(np.argmin(found))
        weight = "NaN" if np.isnan(weights[row]) else f"{weights[row]:g}"
        raise ValueError(f"weight of row {row} is {weight}; weights must be finite and not negative")
    return weights


def _known(categories: list[int | str], names: list[str] | None) -> list[str]:
    """The names of the columns that are categories, where columns have names."""
    own = names or []
    return [own[name] if isinstance(name, int) else name for name in categories if isinstance(name, str) or name < len(own)]


def _check_coded(found: dict[str, list[str]], texts: dict[str, list[str]], categories: list[int | str], names: list[str] | None) -> None:
    """An error if a category is text here, and was numbers in the fit, whose codes are these numbers and no places of texts."""
    for name in _known(categories, names):
        if found.get(name) and name not in texts:
            rule = "give numbers, or fit to text"
            raise ValueError(f"X: the column {name!r} holds text such as {found[name][0]!r}, where the fit had numbers: {rule}")


def _check_array(X: Any, texts: dict[str, list[str]]) -> None:
    """An error if an array or a list of rows holds text: its numbers are codes, and text would become a number, not its code."""
    if isinstance(X, np.ndarray) and X.dtype.kind not in "OUS":
        return
    try:
        values = np.asarray(X, dtype=object)
    except (TypeError, ValueError):
        # The checks that follow say why it is no array.
        return
    said = next((value for value in values.flat if isinstance(value, (str, bytes))), None)
    if said is not None:
        rule = f"give a frame with the names of the columns, or codes, the places of texts in categories_ of {list(texts)}"
        raise ValueError(f"X: text such as {said!r} in rows without names of columns: {rule}")


def _check_texts(estimator: Any, texts: dict[str, list[str]], categories: list[int | str], names: list[str] | None) -> None:
    """An error if a scan has categories that the estimator does not take as such."""
    known = _known(categories, names)
    others = [name for name in texts if name not in known]
    if others:
        way = f"name it in its categories={[*categories, *others]}"
        if not hasattr(estimator, "categories"):
            way = f"TableMixture(categories={others}) does, or scan the rows without it"
        raise ValueError(f"the column {others[0]!r} is a category of the scan, which {type(estimator).__name__} does not take: {way}")


def _check_table(estimator: Any, table: _coremix.Table | _coremix.Csr | Scan, reset: bool, own_names: list[str] | None) -> None:
    names = None if own_names is None else np.asarray(own_names, dtype=object)
    if reset:
        estimator.n_features_in_ = table.columns
        note_names(estimator, names)
        if table.rows == 0:
            raise ValueError("Found array with 0 sample(s): a minimum of 1 is required.")
        return
    own = getattr(estimator, "feature_names_in_", None)
    if own is not None and names is not None and list(own) != list(names):
        raise ValueError(
            f"The columns of X are {list(names)}, but the estimator was fitted to {list(own)}, in this order: "
            "select these columns."
        )
    check_width(estimator, table.columns)
