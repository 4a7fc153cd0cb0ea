"""How many clusters: models with several numbers of them, fitted to the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from html import escape
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _coremix
from ._axes import axes_of, whole_ticks
from ._base import CoremixEstimator, seed_of, threads_of
from ._input import Rows, rows_of, weights_of
from ._report import Report
from ._sklearn import needed
from .exceptions import ConvergenceWarning, as_raised

Criterion: TypeAlias = Literal["bic", "aic", "icl", "held_out", "silhouette"]

# Criteria, as the core names them, and whether a larger value is better.
CRITERIA: dict[str, tuple[str, bool]] = {
    "bic": ("BIC", False),
    "aic": ("AIC", False),
    "icl": ("ICL", False),
    "held_out": ("held-out", True),
    "silhouette": ("silhouette", True),
}


class Sweep:
    """The result of :func:`sweep`. It prints as a table, where a star marks the best number of clusters by each criterion.

    Attributes
    ----------
    table_ : dict of ndarrays
        A column each: ``clusters``, ``in_use`` (clusters that have rows), ``log_likelihood`` (per unit of weight, in nats),
        ``bic``, ``aic``, ``icl``, ``held_out`` and ``held_out_error`` (per unit of weight, in nats), ``silhouette``. NaN where
        there is no value. ``pandas.DataFrame(sweep.table_)`` is a table.
    estimators_ : list
        A fitted estimator for each number of clusters.
    best_ : dict
        For each criterion that has values, its number of clusters. ``held_out`` takes the fewest clusters within one standard
        error of the best.
    """

    def __init__(self, table: dict[str, NDArray[Any]], estimators: list[Any], best: dict[str, int]) -> None:
        self.table_ = table
        self.estimators_ = estimators
        self.best_ = best

    def best(self, criterion: Criterion = "bic") -> Any:
        """The fitted estimator that this criterion chooses."""
        if criterion not in CRITERIA:
            raise ValueError(f"criterion = {criterion!r}: must be one of {', '.join(map(repr, CRITERIA))}")
        if criterion not in self.best_:
            rule = {
                "held_out": "no rows were held out",
                "silhouette": "it was not asked for: give silhouette=1000",
            }.get(criterion, "these models have no number of parameters")
            raise ValueError(f"criterion = {criterion!r}: {rule}")
        return self.estimators_[list(self.table_["clusters"]).index(self.best_[criterion])]

    def plot(self, axes: Any = None) -> Any:
        """Draws each criterion over the number of clusters into ``axes``, by matplotlib: see :func:`coremix.plots.sweep`."""
        names = [name for name in CRITERIA if name in self.best_]
        axes = np.atleast_1d(axes_of(axes, len(names)))
        for name, own in zip(names, axes.flat, strict=True):
            label, larger = CRITERIA[name]
            own.plot(self.table_["clusters"], self.table_[name], marker="o")
            own.axvline(self.best_[name], linestyle=":", color="grey")
            whole_ticks(own)
            own.set(xlabel="clusters", title=f"{label}: {'higher' if larger else 'lower'} is better")
        return axes

    def _lines(self) -> list[list[str]]:
        names = [name for name in CRITERIA if not np.isnan(self.table_[name]).all()]
        lines = [["clusters", "in use", "mean log-lik", *(CRITERIA[name][0] for name in names)]]
        for i, clusters in enumerate(self.table_["clusters"]):
            line = [str(clusters), str(self.table_["in_use"][i]), f"{self.table_['log_likelihood'][i]:.5f}"]
            for name in names:
                value = self.table_[name][i]
                star = "*" if self.best_.get(name) == clusters else " "
                line.append(("-" if np.isnan(value) else f"{value:.5f}" if CRITERIA[name][1] else f"{value:.1f}") + star)
            lines.append(line)
        return lines

    def __repr__(self) -> str:
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)

    def _repr_html_(self) -> str:
        head, *lines = self._lines()
        rows = ["".join(f"<th>{escape(cell)}</th>" for cell in head)]
        rows += ["".join(f"<td>{escape(cell)}</td>" for cell in line) for line in lines]
        return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


def sweep(
    X: Rows,
    clusters: Iterable[int],
    estimator: CoremixEstimator,
    *,
    sample_weight: ArrayLike | None = None,
    held_out: float = 0.1,
    coreset_size: int | None = None,
    warm_starts: bool = True,
    silhouette: int | None = None,
    random_state: int = 0,
) -> Sweep:
    """Fits a model with each of these numbers of clusters to the same rows, and compares them.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), an Arrow table, or rows that are not in memory
        Without a ``coreset_size``, rows of :func:`coremix.scan` must fit in its ``memory`` twice.
    clusters : iterable of int
        Such as ``range(2, 13)``.
    estimator : estimator of this package
        All settings but the number of clusters are its own. It is not changed.
    sample_weight : array-like of shape (n_samples,) or None
    held_out : float, default=0.1
        The part of the rows that no model is fitted to, for the criterion ``held_out``. 0: none, and no such criterion.
    coreset_size : int or None, default=None
        Draws of a lightweight coreset that all models are fitted to. None: all rows that are not held out.
    warm_starts : bool, default=True
        Whether each number of clusters is also tried from the model with fewer ones, which evens out local optima for twice
        the time.
    silhouette : int or None, default=None
        The number of rows, drawn at random from those of weight, for the mean silhouette of scikit-learn by the distances of the fit: of
        standardised columns, or of unit rows. Its time grows with the square of their number. None: not computed.
    random_state : int, default=0
        The seed of the held-out rows, of the coreset, and of the sample for the silhouette.

    Returns
    -------
    Sweep

    Examples
    --------
    >>> import numpy as np
    >>> import coremix
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1, (300, 2)) for m in ((0, 0), (9, 0), (0, 9))])
    >>> found = coremix.sweep(X, range(1, 6), coremix.GaussianMixture(random_state=0))
    >>> found.best_["bic"], found.best("bic").means_.shape
    (3, (3, 2))
    """
    if not isinstance(estimator, CoremixEstimator):
        raise TypeError(f"estimator = {estimator!r}: must be an estimator of coremix, as in sweep(X, range(2, 9), GaussianMixture())")
    if silhouette is not None:
        with needed("silhouette"):
            from sklearn.metrics import silhouette_score
    own = estimator.__sklearn_clone__()
    rows = rows_of(own, X, reset=True)
    weights = weights_of(sample_weight, rows)
    if not isinstance(clusters, Iterable) or isinstance(clusters, (str, bytes)):
        rule = "must be several numbers of clusters, such as range(2, 13), or [5] for one"
        raise TypeError(f"clusters = {clusters!r}: {rule}")
    numbers = list(clusters)
    for k in numbers:
        if isinstance(k, bool) or not isinstance(k, Integral):
            raise TypeError(f"clusters: {k!r} must be an integer")
    numbers = sorted({int(k) for k in numbers})
    if not numbers or numbers[0] < 1:
        raise ValueError(f"clusters = {numbers}: must be at least one number, and each at least 1")
    if own._initial()[1] is not None:
        raise ValueError(f"{own._initial()[0]}: each number of clusters needs other centres: leave it out")
    seed = seed_of(random_state)
    settings, names = own._core_settings(numbers[-1])
    coordinates = own._sketch(own.n_features_in_)
    found = _coremix.sweep(
        rows,
        settings,
        numbers,
        held_out=held_out,
        coreset=coreset_size,
        warm_starts=warm_starts,
        seed=seed,
        weights=weights,
        names=names,
        columns=own._column_names(),
        sketch=None if coordinates is None else (coordinates, seed),
        threads=threads_of(own.n_jobs),
    )
    estimators = []
    for k, (model, report, _) in zip(numbers, found, strict=True):
        one = estimator.__sklearn_clone__().set_params(**{own._clusters: k})
        one.n_features_in_ = own.n_features_in_
        if hasattr(own, "feature_names_in_"):
            one.feature_names_in_ = own.feature_names_in_
        one._take(model)
        one._note(Report(report))
        estimators.append(one)
    lines = [line for _, _, line in found]
    table: dict[str, NDArray[Any]] = {
        name: np.array([np.nan if line[name] is None else line[name] for line in lines]) for name in lines[0] if name != "best_by"
    }
    for name in ("clusters", "in_use"):
        table[name] = table[name].astype(np.int64)
    core = {label: name for name, (label, _) in CRITERIA.items()}
    best = {core[label]: k for k, line in zip(numbers, lines, strict=True) for label in line["best_by"]}
    table["silhouette"] = np.full(len(numbers), np.nan)
    if silhouette is not None:
        table["silhouette"] = _silhouettes(silhouette_score, rows, weights, estimators, int(silhouette), seed)
        if not np.isnan(table["silhouette"]).all():
            best["silhouette"] = numbers[int(np.nanargmax(table["silhouette"]))]
    models = {k: one._model for k, one in zip(numbers, estimators, strict=True)}
    collapsed = sorted({k for name, k in best.items() if name != "silhouette" and models[k].at_floor})
    if collapsed:
        warnings.warn(
            f"sweep: with {', '.join(map(str, collapsed))} clusters, which a criterion chooses, a component has variances at their floor: its "
            "rows are equal in a column, or too few. Its density has no bound, so that BIC, AIC, ICL and held_out say little. Give fewer "
            "clusters, an estimator with prior_rows=1, or covariance_type 'tied' or 'tied-spherical'.",
            as_raised(ConvergenceWarning),
            stacklevel=2,
        )
    return Sweep(table, estimators, best)


def _silhouettes(
    mean: Any, rows: Any, weights: NDArray[np.float64] | None, estimators: list[Any], size: int, seed: int
) -> NDArray[np.float64]:
    """The mean silhouette of the same sample under each model, by the distances of the fit; NaN where it has fewer than two clusters."""
    if size < 2:
        raise ValueError(f"silhouette = {size}: must be at least 2 rows")
    # A row of weight 0 counts as absent.
    there = np.arange(len(rows)) if weights is None else np.flatnonzero(weights)
    chosen = np.sort(np.random.default_rng(seed).choice(there, min(size, len(there)), replace=False))
    sample = rows[chosen] if isinstance(rows, np.ndarray) else _coremix.take(rows, chosen.tolist())
    if np.isnan(sample).any():
        raise ValueError("silhouette: scikit-learn has none of rows with missing values: leave it out")
    seen = sample / np.array(estimators[0]._model.units)
    if getattr(estimators[0], "metric", None) == "cosine":
        lengths = np.linalg.norm(sample, axis=1, keepdims=True)
        seen = np.divide(sample, lengths, out=np.zeros_like(sample), where=lengths > 0)
    scores = []
    for one in estimators:
        labels = one._model.predict(sample)
        some = 1 < len(np.unique(labels)) < len(labels)
        scores.append(mean(seen, labels) if some else np.nan)
    return np.array(scores)
