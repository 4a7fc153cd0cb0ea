"""The base of all estimators: the fit itself, and files."""

from __future__ import annotations

import contextlib
import json
import numbers
import os
import threading
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from inspect import signature
from os import PathLike
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _coremix
from ._arrays import unmasked
from ._checks import check_fitted, check_order, finite, rows_of_array
from ._coremix import Scan
from ._estimator import Estimator
from ._input import Rows, kept, rows_of, sound_weights, weights_of
from ._parameters import Callback, Parameters, RandomState
from ._progress import Line
from ._report import Report
from .exceptions import ConvergenceWarning, as_raised

# Up to this number of rows, `merge_rows="auto"` merges equal rows: sorting them takes milliseconds.
FEW_ROWS = 10_000

# Attributes that rows set before any fit.
OF_COLUMNS = ("n_features_in_", "feature_names_in_")

# Parameters of other libraries and of older versions, and what to do.
ABSENT = {
    "reg_covar": "variances have a floor that follows from the rows: leave it out; GaussianMixture, VcGmm, DGmm and others have it",
    "prior_rows": "GaussianMixture, VcGmm, DGmm, SparsifiedGmm and TableMixture have it; BayesianGaussianMixture has mean_prior and others",
    "prior_variance": "it is that of prior_rows, which GaussianMixture, VcGmm, DGmm, SparsifiedGmm and TableMixture have",
    "prior_proportions": "GaussianMixture, VcGmm, DGmm and SparsifiedGmm have it; BayesianGaussianMixture has weight_concentration_prior",
    "copy_x": "rows are never changed: leave it out",
    "weights_init": "give means_init, or fit with warm_start=True",
    "precisions_init": "give means_init, or fit with warm_start=True",
    "metric": "distances are Euclidean; KMeans, GaussianMixture, VcGmm and DGmm have metric='cosine'",
    "spherical": "metric='cosine' keeps rows and centres at length 1",
    "verbose_interval": "verbose=2 shows each step; callback can show fewer",
    "batch_size": "leave it out; coreset_size is the number of rows that a fit begins on",
    "covariance_type": "a Dirichlet process has full covariances alone, k-means none: leave it out",
    "scale": "covariance_prior is its inverse in BayesianGaussianMixture",
    "weight_concentration_prior_type": "it is a Dirichlet process: leave it out",
    "init_size": "leave it out; coreset_size is the number of rows that a fit begins on",
    "max_no_improvement": "tol says when a fit ends: leave it out",
    "reassignment_ratio": "empty clusters get rows: leave it out",
    "n_local_trials": "greedy=True takes several candidates for each seed",
    "bisecting_strategy": "leave it out",
    "method": "medoids(X) gives the row nearest to each centre: leave it out",
    "categories": "TableMixture takes categories, and columns of counts",
    "counts": "TableMixture takes counts, and categories",
    "gpu": "fits run on processors: leave it out; n_jobs is the number of threads",
}

# Parameters, and their names elsewhere. The number of clusters is either of the first two.
CLUSTERS = ("k", "K", "clusters", "components", "n_cluster", "num_clusters", "nclusters", "n_centers", "n_centroids", "ncentroids")
ELSEWHERE = {
    "n_clusters": ("n_components", *CLUSTERS),
    "n_components": ("n_clusters", *CLUSTERS),
    "max_iter": ("niter", "n_iter", "max_iters", "max_iterations", "maxiter", "num_iterations", "iterations"),
    "n_init": ("nredo", "restarts", "n_restarts", "num_init"),
    "tol": ("tolerance", "threshold"),
    "random_state": ("seed", "random_seed", "rng"),
    "n_jobs": ("threads", "n_threads", "num_threads", "n_workers"),
    "coreset_size": ("coreset", "coreset_draws", "draws"),
    "covariance_type": ("covariance", "covariances"),
    "init": ("means_init", "initial_centres", "init_params"),
    "means_init": ("init", "initial_means"),
    "neighbors": ("n_neighbors", "g"),
    "random": ("n_random",),
    "drawn": ("n_drawn",),
    "chain": ("chain_length",),
    "verbose": ("verbosity",),
    "callback": ("callbacks", "observer"),
    "weight_concentration_prior": ("concentration",),
    "mean_prior": ("mean",),
    "mean_precision_prior": ("mean_precision",),
    "degrees_of_freedom_prior": ("degrees_of_freedom",),
}


class _Told(threading.local):
    """The estimators in whose callbacks this thread is: it must not wait until their fits end."""

    by: tuple[Any, ...] = ()


_told = _Told()


def _in_place_of(name: str, known: list[str]) -> str:
    """Says which of the known parameters to take in place of one that there is not."""
    here = [own for own, others in ELSEWHERE.items() if name in others and own in known]
    if here:
        return f"{here[0]} is its name here"
    if name in ABSENT:
        return ABSENT[name]
    near = get_close_matches(name, known, 1)
    return f"is {near[0]} meant?" if near else f"it has {', '.join(known)}"


def seed_of(random_state: RandomState) -> int:
    """The seed of the core: an integer as it is, else one that is drawn."""
    if isinstance(random_state, numbers.Integral):
        if not 0 <= random_state < 2**64:
            raise ValueError(f"random_state = {random_state}: must not be negative, and less than 2**64")
        return int(random_state)
    source: Any = np.random if random_state is None else random_state
    if source is not np.random and not isinstance(source, np.random.RandomState):
        raise ValueError(f"{random_state!r} cannot be used to seed a numpy.random.RandomState instance")
    return int(source.randint(np.iinfo(np.int32).max))


def _check_room(size: int, columns: int) -> None:
    """An error if there is no room for a coreset of ``size`` sparse rows, which is kept with its zeros."""
    try:
        room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return
    needed = 2 * size * columns * 8
    if needed > room:
        rule = "fit(X) takes all sparse rows at once, or give a smaller coreset_size"
        raise ValueError(f"partial_fit: a coreset of {size} rows of {columns} columns is kept with its zeros, {needed / 2**30:.0f} GiB: {rule}")


def threads_of(n_jobs: int | None) -> int:
    """The number of threads: 0 stands for one per processor."""
    if n_jobs is None or n_jobs == -1:
        return 0
    if not isinstance(n_jobs, numbers.Integral) or n_jobs < 1:
        raise ValueError(f"n_jobs = {n_jobs!r}: must be None, -1, or at least 1")
    return int(n_jobs)


class CoremixEstimator(Parameters, Estimator):
    """Base of all estimators, which are data classes of their parameters. These are checked by ``fit``."""

    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    n_iter_: int
    converged_: bool
    report_: Report
    _model: _coremix.Model
    _columns: list[list[float]] | None
    _stream: _coremix.Stream
    # One thread takes batches in or makes their fit, while others wait.
    _turns: threading.RLock

    # The parameter that holds the number of clusters.
    _clusters: ClassVar[str] = "n_components"
    # The algorithm of the core.
    _algorithm: ClassVar[str]
    # The names of parameters whose names in the core differ.
    _names: ClassVar[dict[str, str]] = {
        "coreset": "coreset_size",
        "size": "coreset_size",
        "tolerance": "tol",
        "max_iterations": "max_iter",
        "restarts": "n_init",
        "seed": "random_state",
    }
    # Attributes that others have, or that it has at times, and what to do.
    _elsewhere: ClassVar[dict[str, str]] = {}
    # The families of models that it can have.
    _families: ClassVar[tuple[str, ...]]
    # A file keeps these attributes of a fit, and the model.
    _kept: ClassVar[tuple[str, ...]] = ("n_iter_", "converged_", "lower_bound_", "inertia_", "_columns")

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        known = cls._get_param_names()
        absent = [name for name in parameters if name not in known]
        # A class of somebody else can take what it likes.
        if any(kind.kind is kind.VAR_KEYWORD for kind in signature(cls.__init__).parameters.values()):
            absent = [name for name in absent if name in ABSENT]
        if absent:
            raise TypeError("; ".join(f"{cls.__name__} has no {name}: {_in_place_of(name, known)}" for name in absent))
        if cls.__module__.partition(".")[0] == __package__ and len(args) > 1:
            raise TypeError(f"{cls.__name__} takes one positional argument, {cls._clusters}: write the name of the one with {args[1]!r}")
        return super().__new__(cls)

    def __getattr__(self, name: str) -> Any:
        # A fitted attribute after partial_fit: the fit is made when it is asked for.
        of_fit = name == "_model" or name.endswith("_") and not name.startswith("_") and name not in OF_COLUMNS
        if of_fit and "_turns" in self.__dict__ and not any(one is self for one in _told.by):
            # Another thread may be at it.
            with self._turns:
                if name not in self.__dict__ and "_stream" in self.__dict__:
                    self.finish()
            if name in self.__dict__:
                return self.__dict__[name]
        if name == "labels_" and "_scanned" in self.__dict__:
            raise AttributeError("labels_ are not kept of rows that are not in memory: call predict(X), or assign(X, path) for a file")
        way = f": {self._elsewhere[name]}" if name in self._elsewhere else ""
        if of_fit and not way and "_model" not in self.__dict__ and any(name in getattr(one, "__annotations__", ()) for one in type(self).__mro__):
            way = ": it is not fitted yet, call fit(X) first"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{way}")

    def _settings(self) -> dict[str, Any]:
        """The algorithm of the core, and its settings that are parameters, by name."""
        known = self._get_param_names()
        names = {name: self._names.get(name, name) for name in _coremix.settings(self._algorithm) if name != "memory"}
        return {"algorithm": self._algorithm} | {name: getattr(self, own) for name, own in names.items() if own in known}

    def _initial(self) -> tuple[str, ArrayLike | None]:
        """The name of the parameter with initial means, and its value."""
        return "means_init", self.means_init

    def _sketch(self, n_features: int) -> int | None:
        """How many coordinates of each row the fit works on; None for all columns."""
        return None

    def partial_fit(self, X: Rows, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Takes a batch of rows in: a weighted coreset of all batches so far is kept, of bounded size, and no other row.

        The fit itself is made on this coreset by :meth:`finish`, or when a fitted attribute or a prediction is asked for. It is
        the one of ``fit`` up to the error of the coreset. ``fit`` begins anew.

        The coreset has ``coreset_size`` draws if that is a number, else 64 for each cluster, and at least 32,768. Where no more
        rows came than twice that number, it is drawn from all of them at once. Give batches in any order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), sparse matrix or Arrow table
            The coreset has the zeros of sparse rows, and the bits of the same rows as arrays.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or None
            As in ``fit``. A batch may have no weight at all.
        """
        with self.__dict__.setdefault("_turns", threading.RLock()):
            return self._take_in(X, sample_weight)

    def _take_in(self, X: Rows, sample_weight: ArrayLike | None) -> Self:
        """Takes a batch of rows in, while no other thread does."""
        first = "_stream" not in self.__dict__
        rows = rows_of(self, X, reset=first)
        weights = weights_of(sample_weight, rows, of_batch=True)
        if first:
            clusters = self._count(self._clusters)
            own = self.coreset_size
            if getattr(rows, "texts", None):
                rule = "later batches may have other texts: give codes, or all rows to fit(X)"
                raise ValueError(f"partial_fit: the columns {list(rows.texts)} hold text; {rule}")
            size = max(64 * clusters, 32_768) if own is None or own == "all" else own
            if isinstance(rows, _coremix.Csr):
                _check_room(size, rows.columns)
            stream = _coremix.Stream(size, seed_of(self.random_state))
        else:
            stream = self._stream
        stream.push(rows, weights=weights, threads=threads_of(self.n_jobs))
        self._forget()
        self._stream = stream
        return self

    def finish(self) -> Self:
        """Fits the model to the coreset of the rows that :meth:`partial_fit` took in. More batches may follow."""
        with self.__dict__.get("_turns", contextlib.nullcontext()):
            stream = self.__dict__.pop("_stream", None)
            if stream is None:
                rule = "fit(X) needs no finish()" if "_model" in self.__dict__ else "call partial_fit first"
                raise ValueError(f"{type(self).__name__} has no rows of partial_fit: {rule}")
            try:
                rows, weights = stream.coreset()
                self._fit_rows(_coremix.Missing(rows), weights, of_stream=True)
            finally:
                self._stream = stream
        return self

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("_turns", None)
        if "_stream" in state:
            state["_stream"] = state["_stream"].state()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        stream = state.pop("_stream", None)
        self.__dict__.update(state)
        if stream is not None:
            self._turns = threading.RLock()
            self._stream = _coremix.Stream.of_state(stream)

    def _forget(self) -> None:
        """Forgets what was fitted, and keeps the columns of the rows."""
        for name in [n for n in self.__dict__ if n in ("_model", "_columns") or n.endswith("_") and n not in OF_COLUMNS]:
            del self.__dict__[name]

    def _fit_model(self, X: Rows, sample_weight: ArrayLike | None) -> None:
        """Fits, and stores the model and the report."""
        for name in ("_stream", "_turns"):
            self.__dict__.pop(name, None)
        rows = rows_of(self, X, reset=True)
        self._fit_rows(rows, weights_of(sample_weight, rows))

    def _fit_rows(self, rows: Any, weights: NDArray[np.float64] | None, of_stream: bool = False) -> None:
        """Fits rows that were checked. ``of_stream``: they are a coreset, so that there are no labels of all rows."""
        n_samples = len(rows)
        self.__dict__.pop("_scanned", None)
        clusters = self._count(self._clusters)
        if clusters > n_samples:
            raise ValueError(f"n_samples={n_samples} should be >= {self._clusters}={clusters}.")
        settings, names = self._core_settings(clusters)
        coordinates = self._sketch(self.n_features_in_)
        with Line(type(self).__name__, self.verbose) as line:
            model, found = _coremix.fit(
                rows,
                settings,
                weights=weights,
                names=names,
                columns=self._column_names(),
                merge=clusters if self._merges(rows) else None,
                sketch=None if coordinates is None else (coordinates, settings["seed"]),
                threads=threads_of(self.n_jobs),
                callback=self._observer(),
                progress=line.see if line else None,
            )
            line.end(found["report"])
        self._take(model)
        self._note(Report(found["report"]))
        # A fit whose seeds are already its means has no step.
        self._columns = None if found["columns"] is None else [list(values) for values in found["columns"]]
        self.n_iter_ = max(1, self.report_["iterations"])
        self.converged_ = self.report_["stop"] == "converged"
        distinct = self._distinct(found)
        if distinct < clusters:
            warnings.warn(
                f"Number of distinct clusters ({distinct}) found smaller than {self._clusters} ({clusters}). "
                "Possibly due to duplicate points in X.",
                as_raised(ConvergenceWarning),
                stacklevel=4,
            )
        for column, reason in found["row_names"]:
            name = str(self.feature_names_in_[column])
            way = f"coremix.scan(..., key={name!r}) leaves it out" if isinstance(rows, Scan) else "leave it out"
            warnings.warn(f"the column {name!r} {reason}, and clusters follow it: {way}", UserWarning, stacklevel=4)
        if isinstance(rows, Scan):
            self._scanned = True
        self._after_fit(rows, weights, found)
        if of_stream:
            for name in ("labels_", "sizes_"):
                self.__dict__.pop(name, None)

    def _core_settings(self, clusters: int) -> tuple[dict[str, Any], dict[str, str]]:
        """The settings of the core for this number of clusters, and the names of those that are called differently here."""
        if isinstance(self.n_init, str) and self.n_init != "auto":
            raise TypeError(f"n_init = {self.n_init!r}: must be an integer, or 'auto'")
        settings = self._settings() | {
            "clusters": clusters,
            "restarts": None if self.n_init == "auto" else self.n_init,
            "seed": seed_of(self.random_state),
            "centres": self._centres(clusters),
            "start_from": self.__dict__.get("_model") if self.warm_start else None,
            "memory": self.memory,
        }
        return settings, {**self._names, "clusters": self._clusters}

    def _column_names(self) -> list[str] | None:
        """The names of the columns that the estimator was fitted to."""
        return list(self.feature_names_in_) if "feature_names_in_" in self.__dict__ else None

    def _note(self, report: Report) -> None:
        """Takes the report of a fit as its own."""
        self.report_ = report
        # A fit whose seeds are already its means has no step.
        self.n_iter_ = max(1, report["iterations"])
        self.converged_ = report["stop"] == "converged"

    def _take(self, model: _coremix.Model) -> None:
        """Takes a model as its own."""
        self._model = model
        self._set_parameters(model.parameters())

    def _set_parameters(self, parameters: dict[str, Any]) -> None:
        """Sets the fitted attributes that are parameters of the model."""
        raise NotImplementedError

    def _after_fit(self, rows: Any, weights: NDArray[np.float64] | None, found: dict[str, Any]) -> None:
        """Sets the other fitted attributes."""
        raise NotImplementedError

    def _distinct(self, found: dict[str, Any]) -> float:
        """Number of distinct rows, if it is known to be small."""
        return np.inf if found["distinct"] is None else found["distinct"]

    def _centres(self, clusters: int) -> NDArray[np.float64] | None:
        """Initial means (clusters, n_features), if they were given."""
        name, given = self._initial()
        if given is None:
            return None
        check_order(given, name, self._column_names())
        centres = finite(rows_of_array(unmasked(given, name), (np.float64,)), name)
        if centres.shape != (clusters, self.n_features_in_):
            shape = (clusters, self.n_features_in_)
            raise ValueError(f"{name} has the shape {centres.shape}, expected {shape}: a row per cluster")
        return centres

    def _observer(self) -> Callback | None:
        """The function that is told of each step."""
        callback = self.callback
        if not (callback is None or callable(callback)):
            raise TypeError(f"callback = {callback!r}: must be callable, or None")
        prints = bool(self.verbose) and self.verbose != 1
        if callback is None and not prints:
            return None
        asking = (*_told.by, self)

        def tell(step: dict[str, Any]) -> object:
            if prints:
                told = {name: value for name, value in step.items() if value is not None and name != "stage"}
                print(f"{type(self).__name__}: {step['stage']}:", ", ".join(f"{n} {v:.7g}" for n, v in told.items()))
            if callback is None:
                return None
            before, _told.by = _told.by, asking
            try:
                return callback(step)
            finally:
                _told.by = before

        return tell

    def _count(self, name: str) -> int:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise TypeError(f"{name} = {value!r}: must be an integer")
        if value < 1:
            raise ValueError(f"{name} = {value}: must be at least 1")
        return int(value)

    def _merges(self, rows: Any) -> bool:
        sparse = isinstance(rows, _coremix.Csr)
        if self.merge_rows == "auto":
            return len(rows) <= FEW_ROWS and not sparse
        if isinstance(self.merge_rows, (bool, np.bool_)):
            if self.merge_rows and sparse:
                raise ValueError("merge_rows=True: sparse rows are not merged: leave it out")
            return bool(self.merge_rows)
        raise ValueError(f"merge_rows = {self.merge_rows!r}: must be 'auto', True or False")

    def _ask(self, X: Rows) -> Any:
        """The rows of X, to ask the model about."""
        if "_model" not in self.__dict__:
            check_fitted(self)
        return rows_of(self, X, reset=False)

    def impute(self, X: Rows) -> NDArray[np.floating]:
        """The rows of ``X`` with every missing value filled in: shape (n_samples, n_features).

        It is what the mixture expects there, given what is known of the row: the means of its components, weighted by their
        posteriors. Known values stay as they are. NaN stands for missing values only with ``allow_missing``.
        """
        rows = self._ask(X)
        return self._model.impute(rows, threads_of(self.n_jobs))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = bool(self.allow_missing) and self._takes_missing()
        tags.input_tags.sparse = self._takes_sparse()
        return tags

    def _takes_missing(self) -> bool:
        """Whether there is a fit of rows with missing values."""
        return True

    def _rereadable(self, X: Rows) -> Any:
        """X as its fits read it, to be read more than once."""
        return kept(X, [name for name in self._category_columns() if isinstance(name, str)] or None, bool(self.allow_missing))

    def _category_columns(self) -> list[int | str]:
        """The columns that are categories, by their numbers or names."""
        return []

    def _takes_sparse(self) -> bool:
        """Whether it takes sparse rows."""
        return False

    def predict(self, X: Rows) -> NDArray[np.int32]:
        """The likeliest component of each row of ``X``, over all components: shape (n_samples,)."""
        rows = self._ask(X)
        return self._model.predict(rows, threads_of(self.n_jobs))

    @overload
    def predict_top(
        self, X: Rows, m: int = ..., *, return_distance: Literal[False] = ...
    ) -> tuple[NDArray[np.int32], NDArray[np.floating]]: ...
    @overload
    def predict_top(
        self, X: Rows, m: int = ..., *, return_distance: Literal[True]
    ) -> tuple[NDArray[np.int32], NDArray[np.floating], NDArray[np.floating]]: ...

    def predict_top(self, X: Rows, m: int = 5, *, return_distance: bool = False) -> tuple[NDArray[Any], ...]:
        """The ``m`` likeliest components of each row of ``X``, best first, and how they share it.

        Nothing of the size n_samples x n_components is made. The shares of a row are its posteriors, divided by their sum
        over these components. For :class:`KMeans` the components are the nearest centres, and shares follow from the
        mixture that it fits: its centres with one variance.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Arrow table, or Scan
        m : int, default=5
        return_distance : bool, default=False
            Whether the distances of the row to the means of these components come, too, in the unit of ``X``; with ``standardise``, in
            standardised columns. The likeliest component of a mixture need not be the nearest.

        Returns
        -------
        components, shares : ndarrays of shape (n_samples, m)
            With fewer than ``m`` components, all of them.
        distances : ndarray of shape (n_samples, m)
            With ``return_distance``.
        """
        rows = self._ask(X)
        if isinstance(m, bool) or not isinstance(m, numbers.Integral) or m < 1:
            raise ValueError(f"m = {m!r}: must be an integer, and at least 1")
        if not isinstance(return_distance, (bool, np.bool_)):
            raise TypeError(f"return_distance = {return_distance!r}: must be True or False")
        return self._model.predict_top(rows, int(m), threads_of(self.n_jobs), return_distance=bool(return_distance))

    def medoids(self, X: Rows, sample_weight: ArrayLike | None = None) -> NDArray[np.int64]:
        """The row of ``X`` that is nearest to the mean of each cluster: row numbers (n_clusters,), -1 for a cluster without rows.

        The rows of a cluster are those that :meth:`predict` gives its number. Rows whose ``sample_weight`` is 0, and rows without any value, are
        left out. A missing value is taken to be as far from the mean as the variance of the cluster says.
        """
        rows = self._ask(X)
        weights = weights_of(sample_weight, rows, of_batch=True)
        return self._model.medoids(rows, weights, threads_of(self.n_jobs))

    def sizes(self, X: Rows, sample_weight: ArrayLike | None = None) -> NDArray[np.float64]:
        """The sum of ``sample_weight`` over the rows of ``X`` in each cluster, or their number: shape (n_clusters,)."""
        rows = self._ask(X)
        weights = sound_weights(weights_of(sample_weight, rows, of_batch=True))
        return self._model.sizes(rows, weights, threads_of(self.n_jobs))

    def assign(self, X: Rows, path: str | PathLike[str], *, log_density: bool = False, force: bool = False) -> None:
        """Writes the likeliest component of each row to a file: a block of rows is in memory at a time.

        The columns are those that ``key`` named for :func:`coremix.scan`, then ``label``. The file gets its name when it is
        whole.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Arrow table, or Scan
        path : path
            ``.parquet``, ``.arrow``, ``.csv``, ``.csv.gz``, or ``.npy`` for labels alone.
        log_density : bool, default=False
            Whether there is a column ``log_density``, too, in nats.
        force : bool, default=False
            Whether a file that is there is replaced even if it holds no such labels.
        """
        rows = self._ask(X)
        self._model.assign(rows, path, densities=log_density, force=force, threads=threads_of(self.n_jobs))

    def explain(self, columns: Iterable[Any] | None = None, top: int = 5) -> list[dict[str, Any]]:
        """The columns that set each cluster apart: those in which its mean is farthest from the mean of all rows.

        A difference is counted in standard deviations of the column over all rows of the fit, which are brought to length 1 first
        where the fit was by cosine. ``pandas.DataFrame(...)`` of the result is a table.

        Parameters
        ----------
        columns : names of the columns or None
            None: the names that the rows of the fit had, else column numbers.
        top : int, default=5
            The number of columns of each cluster, the largest differences first.

        Returns
        -------
        list of dict
            ``cluster``, ``column``, ``difference`` (in standard deviations), ``mean`` (of the cluster) and ``overall`` (of all
            rows).
        """
        check_fitted(self)
        if self.__dict__.get("_columns") is None:
            rule = "explain needs a fit of all columns in Python: a model of a file or of a sketch does not know the columns' spread"
            raise ValueError(f"{type(self).__name__}: {rule}")
        overall, variance = np.asarray(self._columns)
        names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)) if columns is None else columns)
        if len(names) != len(overall):
            raise ValueError(f"columns: {len(names)} names for {len(overall)} columns")
        means = np.asarray(self._model.parameters()["means"], dtype=np.float64)
        deviation = np.sqrt(variance)
        # A column of one value sets nothing apart.
        differences = np.divide(means - overall, deviation, out=np.zeros_like(means), where=deviation > 0)
        order = np.argsort(-np.abs(differences), axis=1, kind="stable")[:, : max(int(top), 0)]
        return [
            {
                "cluster": c,
                "column": names[j],
                "difference": float(differences[c, j]),
                "mean": float(means[c, j]),
                "overall": float(overall[j]),
            }
            for c, own in enumerate(order)
            for j in own
        ]

    def predictor(self) -> _coremix.Predictor:
        """A predictor of one row at a time, in microseconds: ``predictor(row)`` is the label of a row (n_features,).

        ``predictor.nearest(row)`` also has the distance to the mean of that component, and ``predictor.log_density(row)`` the
        log-density. An array of float64 or float32 is read as it is. With ``allow_missing`` the row may lack values.
        """
        check_fitted(self)
        return self._model.predictor(bool(getattr(self, "allow_missing", False)))

    def to_arrow(self, what: Literal["centres", "labels"]) -> _coremix.Arrow:
        """A result of the fit for ``pyarrow.array``, ``polars.from_arrow`` and all else that reads the Arrow C data interface.

        ``what`` is ``"centres"``: the means, a column for each feature, with its name; or ``"labels"``: the ``labels_`` of a fit, not copied.
        Labels of other rows are arrays of NumPy, which these libraries take, too: ``pyarrow.array(estimator.predict(X))``.
        """
        check_fitted(self)
        if what == "centres":
            names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
            columns = np.asfortranarray(self._model.parameters()["means"])
            return _coremix.Arrow(list(columns.T), list(names))
        if what == "labels" and hasattr(self, "labels_"):
            return _coremix.Arrow([self.labels_])
        rule = f"{type(self).__name__} has no labels_ here: give pyarrow.array(estimator.predict(X))"
        raise ValueError(rule if what == "labels" else f"what = {what!r}: must be 'centres' or 'labels'")

    def _warn_if_large(self, n_rows: int, what: str) -> None:
        """Warns before an array (n_rows, n_clusters) that does not fit in memory is made."""
        try:
            free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, OSError, ValueError):
            return
        needed = n_rows * self._model.components * (8 if self._model.dtype == "float64" else 4)
        if needed > free:
            warnings.warn(
                f"{what} makes {n_rows} x {self._model.components} numbers, {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB of "
                "memory are free: predict_top(X, m) has the likeliest few components of each row.",
                ResourceWarning,
                stacklevel=3,
            )

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the fitted model to the file ``path``, which :meth:`load`, Rust and the command ``coremix`` read.

        The file also has the names of the columns, and the parameters that are numbers or text; neither ``labels_``
        nor ``report_``.
        """
        check_fitted(self)
        default = type(self)().get_params(deep=False)
        parameters = {n: v.item() if isinstance(v, np.generic) else v for n, v in self.get_params(deep=False).items()}
        plain = {n: v for n, v in parameters.items() if isinstance(v, (int, float, str)) and v != default[n]}
        fitted = {name: getattr(self, name) for name in self._kept if hasattr(self, name)}
        notes = [
            ("estimator", type(self).__name__),
            ("parameters", json.dumps(plain)),
            ("fitted", json.dumps(fitted)),
        ]
        if getattr(self, "allow_missing", False):
            # The command reads its rows so, without further texts that stand for missing values.
            notes.append(("missing", "[]"))
        self._model.save(path, notes)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The estimator in the file ``path``, which :meth:`save` wrote, or Rust, or the command ``coremix``."""
        model, notes = _coremix.Model.load(path), _coremix.Model.notes(path)
        if model.family not in cls._families:
            what, loader = _FAMILIES[model.family]
            raise ValueError(f"{path}: this model has {what}: load it with {loader}.load, not with {cls.__name__}.load")
        is_own = notes.get("estimator") == cls.__name__
        estimator = cls._of_model(model, _noted(notes, "parameters", dict) if is_own else None)
        if is_own:
            fitted = _noted(notes, "fitted", dict)
            estimator.__dict__.update((name, fitted[name]) for name in cls._kept if name in fitted)
        elif "missing" in notes and hasattr(estimator, "allow_missing"):
            estimator.allow_missing = True
        return estimator

    @classmethod
    def _of_model(cls, model: _coremix.Model, parameters: dict[str, Any] | None = None) -> Self:
        """An estimator with a fitted model, and those of the parameters that it knows; without any, those of the model."""
        if parameters is None:
            kind = {"covariance_type": model.family}
            if model.family == "von-mises-fisher":
                each = model.parameters()["concentrations"].size > 1
                kind = {"metric": "cosine"} | ({"covariance_type": "spherical"} if each else {})
            parameters = {cls._clusters: model.components} | kind
            if model.family == "factors":
                parameters["n_factors"] = model.parameters()["loadings"].shape[2]
        estimator = cls()
        known = estimator.get_params(deep=False).keys()
        estimator.set_params(**{name: value for name, value in parameters.items() if name in known})
        estimator.n_features_in_ = model.columns
        if model.names is not None:
            estimator.feature_names_in_ = np.asarray(model.names, dtype=object)
        estimator._take(model)
        return estimator


def _noted(notes: dict[str, str], name: str, kind: type) -> Any:
    """The value of a note, empty if it is not there or of another kind."""
    try:
        value = json.loads(notes[name])
    except (KeyError, ValueError):
        return kind()
    return value if isinstance(value, kind) else kind()


# The covariances of each family of models, and the estimator that loads them.
_FAMILIES = {
    "tied-spherical": ("one variance", "KMeans"),
    "spherical": ("a variance for each component", "GaussianMixture"),
    "diag": ("a variance for each column", "GaussianMixture"),
    "tied": ("one covariance matrix", "GaussianMixture"),
    "full": ("a covariance matrix for each component", "GaussianMixture"),
    "factors": ("factors", "GaussianMixture"),
    "dirichlet-process": ("a Dirichlet process", "BayesianGaussianMixture"),
    "von-mises-fisher": ("directions", "GaussianMixture"),
    "product": ("columns of different kinds", "TableMixture"),
}
