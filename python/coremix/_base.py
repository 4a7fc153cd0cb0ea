"""What all estimators share: the fit itself, and files."""

from __future__ import annotations

import json
import numbers
import warnings
from collections.abc import Callable
from os import PathLike
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from . import _coremix
from ._input import Rows, rows_of, unmasked, weights_of
from ._report import Report

RandomState: TypeAlias = int | np.random.RandomState | None
Callback: TypeAlias = Callable[[dict[str, Any]], object]

# Up to so many rows, `merge_rows="auto"` merges equal rows: sorting them takes milliseconds.
FEW_ROWS = 10_000

# Parameters of scikit-learn that have no counterpart, and what to do.
_PRIORS = "the prior follows from the rows; weight_concentration_prior can be set"
ABSENT = {
    "reg_covar": "variances have a floor that follows from the rows: leave it out",
    "copy_x": "rows are never changed: leave it out",
    "weights_init": "give means_init, or fit with warm_start=True",
    "precisions_init": "give means_init, or fit with warm_start=True",
    "verbose_interval": "verbose shows each step; callback can show fewer",
    "batch_size": "leave it out; coreset_size is the number of rows that a fit begins on",
    "covariance_type": "BayesianGaussianMixture has full covariances alone, KMeans none: leave it out",
    "mean_prior": _PRIORS,
    "mean_precision_prior": _PRIORS,
    "degrees_of_freedom_prior": _PRIORS,
    "covariance_prior": _PRIORS,
    "weight_concentration_prior_type": "it is a Dirichlet process: leave it out",
}


def seed_of(random_state: RandomState) -> int:
    """The seed of the core: an integer as it is, else one that is drawn."""
    if isinstance(random_state, numbers.Integral):
        if not 0 <= random_state < 2**64:
            raise ValueError(f"random_state = {random_state}: must not be negative, and less than 2**64")
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def threads_of(n_jobs: int | None) -> int:
    """The number of threads: 0 stands for one per processor."""
    if n_jobs is None or n_jobs == -1:
        return 0
    if not isinstance(n_jobs, numbers.Integral) or n_jobs < 1:
        raise ValueError(f"n_jobs = {n_jobs!r}: must be None, -1, or at least 1")
    return int(n_jobs)


class CoremixEstimator(BaseEstimator):
    """Base of all estimators. Parameters are stored by ``__init__``, and checked by ``fit``."""

    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    n_iter_: int
    converged_: bool
    report_: Report

    # The parameter that holds the number of clusters.
    _clusters: ClassVar[str] = "n_components"
    # The names of parameters whose names in the core differ.
    _names: ClassVar[dict[str, str]] = {
        "coreset": "coreset_size",
        "size": "coreset_size",
        "tolerance": "tol",
        "max_iterations": "max_iter",
        "restarts": "n_init",
    }
    # The families of models that it can have.
    _families: ClassVar[tuple[str, ...]]
    # What a file keeps of a fit beside the model.
    _kept: ClassVar[tuple[str, ...]] = ("n_iter_", "converged_", "lower_bound_", "inertia_")

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        absent = [name for name in parameters if name in ABSENT and name not in cls._get_param_names()]
        if absent:
            raise TypeError("; ".join(f"{cls.__name__} has no {name}: {ABSENT[name]}" for name in absent))
        return super().__new__(cls)

    @property
    def partial_fit(self) -> None:
        """Not here: an AttributeError that says what is."""
        raise AttributeError(f"{type(self).__name__} has no partial_fit: coremix.partitions has fits on rows in parts")

    def _store(self, parameters: dict[str, Any]) -> None:
        """Stores the parameters of ``__init__``, as its ``locals()``."""
        self.__dict__.update((name, value) for name, value in parameters.items() if name != "self")

    def _settings(self) -> dict[str, Any]:
        """The settings of the core, by name."""
        raise NotImplementedError

    def _initial(self) -> tuple[str, ArrayLike | None]:
        """The name of the parameter with initial means, and its value."""
        return "means_init", self.means_init

    def _sketch(self, n_features: int) -> int | None:
        """How many coordinates of each row the fit works on; None for all columns."""
        return None

    def _fit_model(self, X: Rows, sample_weight: ArrayLike | None) -> None:
        """Fits, and stores the model and the report."""
        rows = rows_of(self, X, reset=True)
        n_samples = len(rows)
        weights = weights_of(sample_weight, n_samples)
        clusters = self._count(self._clusters)
        if isinstance(self.n_init, str) and self.n_init != "auto":
            raise TypeError(f"n_init = {self.n_init!r}: must be an integer, or 'auto'")
        if clusters > n_samples:
            raise ValueError(f"n_samples={n_samples} should be >= {self._clusters}={clusters}.")
        seed = seed_of(self.random_state)
        settings = {
            "clusters": clusters,
            "coreset": self.coreset_size if self.coreset_size != "all" else None,
            "max_iterations": self.max_iter,
            "tolerance": self.tol,
            "restarts": None if self.n_init == "auto" else self.n_init,
            "seed": seed,
            "centres": self._centres(clusters),
            "start_from": getattr(self, "_model", None) if self.warm_start else None,
        } | self._settings()
        coordinates = self._sketch(self.n_features_in_)
        model, found = _coremix.fit(
            rows,
            settings,
            weights=weights,
            names={**self._names, "clusters": self._clusters},
            columns=list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None,
            merge=clusters if self._merges(n_samples) else None,
            sketch=None if coordinates is None else (coordinates, seed),
            threads=threads_of(self.n_jobs),
            callback=self._observer(),
        )
        self._take(model)
        self.report_ = Report(found["report"])
        # A fit whose seeds are already its means has no step.
        self.n_iter_ = max(1, self.report_["iterations"])
        self.converged_ = self.report_["stop"] == "converged"
        distinct = self._distinct(found)
        if distinct < clusters:
            warnings.warn(
                f"Number of distinct clusters ({distinct}) found smaller than {self._clusters} ({clusters}). "
                "Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._after_fit(rows, weights, found)

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
        centres = check_array(unmasked(given, name), dtype=np.float64, input_name=name)
        if centres.shape != (clusters, self.n_features_in_):
            shape = (clusters, self.n_features_in_)
            raise ValueError(f"{name} has the shape {centres.shape}, expected {shape}: a row per cluster")
        return centres

    def _observer(self) -> Callback | None:
        """What is told of each step."""
        callback = self.callback
        if not (callback is None or callable(callback)):
            raise TypeError(f"callback = {callback!r}: must be callable, or None")
        if not self.verbose:
            return callback

        def tell(step: dict[str, Any]) -> object:
            told = {name: value for name, value in step.items() if value is not None and name != "stage"}
            print(f"{type(self).__name__}: {step['stage']}:", ", ".join(f"{n} {v:.7g}" for n, v in told.items()))
            return None if callback is None else callback(step)

        return tell

    def _count(self, name: str) -> int:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise TypeError(f"{name} = {value!r}: must be an integer")
        if value < 1:
            raise ValueError(f"{name} = {value}: must be at least 1")
        return int(value)

    def _merges(self, n_samples: int) -> bool:
        if self.merge_rows == "auto":
            return n_samples <= FEW_ROWS
        if isinstance(self.merge_rows, (bool, np.bool_)):
            return bool(self.merge_rows)
        raise ValueError(f"merge_rows = {self.merge_rows!r}: must be 'auto', True or False")

    def _ask(self, X: Rows) -> Any:
        """The rows of X, to ask the model about."""
        check_is_fitted(self, "_model")
        return rows_of(self, X, reset=False)

    def predict(self, X: Rows) -> NDArray[np.int32]:
        """The likeliest component of each row, over all components: shape (n_samples,)."""
        rows = self._ask(X)
        return self._model.predict(rows, threads_of(self.n_jobs))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the fitted model to a file that :meth:`load`, Rust and the command ``coremix`` read.

        Beside the model it has the names of the columns, and the parameters that are numbers or text; neither ``labels_``
        nor ``report_``.
        """
        check_is_fitted(self, "_model")
        default = type(self)().get_params(deep=False)
        parameters = {n: v.item() if isinstance(v, np.generic) else v for n, v in self.get_params(deep=False).items()}
        plain = {n: v for n, v in parameters.items() if isinstance(v, (int, float, str)) and v != default[n]}
        fitted = {name: getattr(self, name) for name in self._kept if hasattr(self, name)}
        notes = [
            ("estimator", type(self).__name__),
            ("parameters", json.dumps(plain)),
            ("fitted", json.dumps(fitted)),
        ]
        self._model.save(path, notes)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The estimator of a file: one that :meth:`save` wrote, or Rust, or the command ``coremix``."""
        model, notes = _coremix.Model.load(path), _coremix.Model.notes(path)
        if model.family not in cls._families:
            what, loader = _FAMILIES[model.family]
            raise ValueError(f"{path}: this model has {what}: load it with {loader}.load, not with {cls.__name__}.load")
        estimator = cls()
        parameters = {cls._clusters: model.components, "covariance_type": model.family}
        if notes.get("estimator") == cls.__name__:
            parameters = _noted(notes, "parameters", dict)
            fitted = _noted(notes, "fitted", dict)
            estimator.__dict__.update((name, fitted[name]) for name in cls._kept if name in fitted)
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


# What models of a family have, and which estimator loads them.
_FAMILIES = {
    "tied-spherical": ("one variance", "KMeans"),
    "spherical": ("a variance for each component", "GaussianMixture"),
    "diag": ("a variance for each column", "GaussianMixture"),
    "tied": ("one covariance matrix", "GaussianMixture"),
    "full": ("a covariance matrix for each component", "GaussianMixture"),
    "dirichlet-process": ("a Dirichlet process", "BayesianGaussianMixture"),
}
