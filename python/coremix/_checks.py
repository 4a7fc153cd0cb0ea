"""Checks of arrays, of their columns and of estimators, in the words of scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .exceptions import NotFittedError, as_raised

# The native part reads these as they are; everything else becomes the first of them.
NUMBERS: tuple[type[np.generic], ...] = (np.float64, np.float32, np.float16, np.uint8, np.int8)
# Names that an error lists.
LISTED = 5


def array_of(X: Any, kinds: tuple[type[np.generic], ...] = (np.float64,)) -> NDArray[Any]:
    """X as an array of one of these types, else of the first: not copied, if it is one."""
    if isinstance(X, np.matrix):
        raise TypeError("np.matrix is not supported. Please convert to a numpy array with np.asarray.")
    kind = getattr(X, "dtype", None)
    if hasattr(X, "iloc") and np.ndim(X) == 1 and kind == object and len(X) and isinstance(X.iloc[0], (np.ndarray, list, tuple)):
        # A column of embeddings.
        X = np.stack(list(X))
        kind = X.dtype
    elif not hasattr(X, "__array__") and hasattr(X, "__dlpack__"):
        X = np.from_dlpack(X)
        kind = X.dtype
    elif hasattr(X, "iloc"):
        columns = list(X.dtypes) if hasattr(X.dtypes, "__iter__") else [X.dtypes]
        plain = [isinstance(own, np.dtype) for own in columns]
        # pandas' own types of numbers, which may lack values.
        if any(getattr(own, "kind", "O") in "biuf" and not known for own, known in zip(columns, plain, strict=True)):
            return np.asarray(X.astype(kinds[0]))
        kind = np.result_type(*columns) if columns and all(plain) else None
    elif hasattr(X, "__array__"):
        X = np.asarray(X)
    if "c" in (getattr(kind, "kind", None), getattr(getattr(X, "dtype", None), "kind", None)):
        raise ValueError(f"Complex data not supported\n{X}\n")
    return np.asarray(X, dtype=kind if kind in kinds else kinds[0])


def rows_of_array(X: Any, kinds: tuple[type[np.generic], ...], *, least: int = 1, by: str = "") -> NDArray[Any]:
    """X as an array of rows, with at least this number of them. ``by`` says in errors who asks."""
    found = array_of(X, kinds)
    context = f" by {by}" if by else ""
    if found.ndim > 2:
        raise ValueError(f"Found array with dim {found.ndim}, while dim <= 2 is required{context}.")
    if found.ndim < 2 and hasattr(X, "iloc"):
        raise ValueError(f"Expected a 2-dimensional container but got {type(X)} instead. Pass a DataFrame containing a single row or a single column instead.")
    if found.ndim < 2:
        raise ValueError(
            f"Expected 2D array, got {'1D' if found.ndim else 'scalar'} array instead:\narray={found}.\n"
            "Reshape your data either using array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) "
            "if it contains a single sample."
        )
    for what, number, minimum in (("sample", found.shape[0], least), ("feature", found.shape[1], 1)):
        if number < minimum:
            raise ValueError(f"Found array with {number} {what}(s) (shape={found.shape}) while a minimum of {minimum} is required{context}.")
    return found


def finite(X: NDArray[Any], name: str) -> NDArray[Any]:
    """X, all of whose numbers must be finite."""
    if not np.isfinite(X).all():
        rule = "NaN" if np.isnan(X).any() else f"infinity or a value too large for {X.dtype!r}"
        raise ValueError(f"Input {name} contains {rule}.")
    return X


def check_rows(estimator: Any, X: Any, *, reset: bool) -> NDArray[Any]:
    """The rows of X as an array. ``reset`` notes the number of columns and their names, else they are compared."""
    _check_names(estimator, X, reset)
    found = rows_of_array(X, NUMBERS, by=type(estimator).__name__)
    if reset:
        estimator.n_features_in_ = found.shape[1]
    check_width(estimator, found.shape[1])
    return found


def check_order(given: Any, name: str, columns: list[str] | None) -> None:
    """An error where a frame or a series has other names than these columns, or another order of them: it would be read by places."""
    names: Any = getattr(given, "column_names", getattr(given, "columns", getattr(given, "index", None)))
    names = list(names) if hasattr(names, "__iter__") else []
    if columns is not None and names and names != columns and all(isinstance(own, str) for own in names):
        raise ValueError(f"{name} has the columns {names}, and must have {columns}, in this order")


def check_width(estimator: Any, columns: int) -> None:
    """An error where rows have another number of columns than those of the fit."""
    known = estimator.n_features_in_
    if columns != known:
        raise ValueError(f"X has {columns} features, but {type(estimator).__name__} is expecting {known} features as input.")


def note_names(estimator: Any, names: NDArray[np.object_] | None) -> None:
    """Notes the names of the columns of a fit, or that there are none."""
    if names is not None:
        estimator.feature_names_in_ = names
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def _names_of(X: Any) -> NDArray[np.object_] | None:
    """The names of the columns of a frame, if they are text."""
    if not (hasattr(X, "columns") and hasattr(X, "iloc")):
        return None
    names = np.asarray(X.columns, dtype=object)
    texts = sum(isinstance(name, str) for name in names)
    if 0 < texts < len(names):
        kinds = sorted({type(name).__qualname__ for name in names})
        raise TypeError(
            f"Feature names are only supported if all input features have string names, but your input has {kinds} as feature name / "
            "column name types. X.columns = X.columns.astype(str) makes all of them text."
        )
    return names if texts else None


def _check_names(estimator: Any, X: Any, reset: bool) -> None:
    names = _names_of(X)
    if reset:
        note_names(estimator, names)
        return
    known, name = getattr(estimator, "feature_names_in_", None), type(estimator).__name__
    if known is None and names is not None:
        warnings.warn(f"X has feature names, but {name} was fitted without feature names", UserWarning, stacklevel=7)
    elif known is not None and names is None:
        warnings.warn(f"X does not have valid feature names, but {name} was fitted with feature names", UserWarning, stacklevel=7)
    elif known is not None and names is not None and list(known) != list(names):
        text = "The feature names should match those that were passed during fit.\n"
        unseen, absent = sorted(set(names) - set(known)), sorted(set(known) - set(names))
        text += _listed("Feature names unseen at fit time:", unseen)
        text += _listed("Feature names seen at fit time, yet now missing:", absent)
        if not unseen and not absent:
            text += "Feature names must be in the same order as they were in fit.\n"
        raise ValueError(text)


def _listed(title: str, names: list[str]) -> str:
    lines = [title, *(f"- {name}" for name in names[:LISTED]), *(["- ..."] if len(names) > LISTED else [])]
    return "\n".join(lines) + "\n" if names else ""


def check_fitted(estimator: Any) -> None:
    """An error unless there is a model, which is made of batches if they came."""
    if not hasattr(estimator, "_model"):
        text = f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
        raise as_raised(NotFittedError)(text)
