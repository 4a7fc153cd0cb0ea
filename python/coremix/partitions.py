"""Fits on rows that lie in many places: functions for a partition each, for mapInArrow of Spark, Ray, Dask and others.

An iteration of EM is :func:`stats` on each partition, :func:`merge` of what comes back, in any order and grouping, and
:func:`update`. Sums are integers: the result has the same bits, however rows are split. Statistics are bytes, and models can
be pickled, so both travel as they are. :func:`sample` draws a coreset of a partition, :func:`assign` labels it.

Rows are NumPy arrays, frames of pandas, or whatever has the Arrow C data interface: tables, record batches, frames of polars.
Where the model was fitted to columns with names, a batch with names is read by them: it may have further columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _coremix
from ._base import CoremixEstimator, seed_of, threads_of
from ._checks import check_fitted
from ._coremix import Model
from ._input import Rows, rows_alone, weights_of
from ._kmeans import CoremixKMeans

__all__ = ["assign", "describe", "merge", "model_of", "sample", "stats", "update"]


def model_of(model: Model | CoremixEstimator) -> Model:
    """The model of a fitted estimator: what travels to partitions."""
    if isinstance(model, Model):
        return model
    check_fitted(model)
    return model._model


def stats(
    batch: Rows,
    model: Model | CoremixEstimator,
    weights: ArrayLike | None = None,
    *,
    width: int | None = None,
    n_jobs: int | None = None,
) -> bytes:
    """The sums of an E-step of ``model`` on the rows of ``batch``, which may have none, with these ``weights``.

    Each row is shared by its ``width`` best components; None means the nearest one for :class:`KMeans`, and all for
    mixtures. ``n_jobs`` is the number of threads.
    """
    if width is None and isinstance(model, CoremixKMeans):
        width = 1
    if width is not None and width < 1:
        raise ValueError(f"width = {width}: must be at least 1")
    model = model_of(model)
    rows = rows_alone(batch, model.names)
    return _coremix.stats(
        rows,
        model,
        weights=weights_of(weights, rows, of_batch=True),
        width=width,
        threads=threads_of(n_jobs),
    )


def merge(parts: Iterable[bytes]) -> bytes:
    """The sums of all rows, from ``parts``, those of their partitions."""
    return _coremix.merge(list(parts))


def update(model: Model | CoremixEstimator, statistics: bytes) -> Model:
    """The model after the M-step of ``model`` on these ``statistics``."""
    return _coremix.update(model_of(model), statistics)


def describe(statistics: bytes) -> dict[str, Any]:
    """Numbers of ``statistics``: ``rows``, ``weight`` (the sum of the weights), ``free_energy`` (in nats; the log-likelihood where
    all components share a row, and less with ``reg_covar``, as rows are then known with this variance) and ``masses`` (of the
    components: one of mass 0 has no rows, and keeps its mean)."""
    return _coremix.describe(statistics)


def sample(
    batch: Rows,
    size: int,
    seed: int,
    weights: ArrayLike | None = None,
    *,
    allow_missing: bool = False,
    n_jobs: int | None = None,
) -> tuple[NDArray[np.floating], NDArray[np.float64]]:
    """A lightweight coreset of the rows of ``batch``: at most ``size`` rows, and their weights.

    Coresets of several partitions, one below the other, are a coreset of all; ``sample`` with these weights makes it
    smaller. Give each partition a seed of its own. The rows are an array, so a model that is fitted to them has no names of
    columns: give it batches whose columns have this order. With ``allow_missing``, NaN and nulls are missing values, in the coreset as
    well: estimators with ``allow_missing=True`` take it. ``n_jobs`` is the number of threads.
    """
    rows = rows_alone(batch, None, bool(allow_missing))
    return _coremix.sample(_coremix.Missing(rows) if allow_missing else rows, size, seed_of(seed), weights=weights_of(weights, rows, of_batch=True), threads=threads_of(n_jobs))


def assign(batch: Rows, model: Model | CoremixEstimator, *, n_jobs: int | None = None) -> NDArray[np.int32]:
    """The likeliest component of ``model`` for each row of ``batch``, which may have none, on ``n_jobs`` threads."""
    return model_of(model).predict(batch, threads_of(n_jobs))
