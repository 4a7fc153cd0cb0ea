"""What all estimators share: the fit itself."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from . import _coremix
from ._input import rows_of, weights_of
from ._report import Report

# Up to so many rows, `merge_rows="auto"` merges equal rows: sorting them takes milliseconds.
FEW_ROWS = 10_000


def seed_of(random_state: Any) -> int:
    """The seed of the core: an integer as it is, else one that is drawn."""
    if isinstance(random_state, numbers.Integral):
        if random_state < 0:
            raise ValueError(f"random_state = {random_state}: must not be negative")
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

    # The parameter that holds the number of clusters.
    _clusters = "n_components"
    # The names of parameters whose names in the core differ.
    _names = {
        "coreset": "coreset_size",
        "size": "coreset_size",
        "tolerance": "tol",
        "max_iterations": "max_iter",
        "restarts": "n_init",
    }

    def _settings(self) -> dict[str, Any]:
        """The settings of the core, by name."""
        raise NotImplementedError

    def _sketch(self, n_features: int) -> int | None:
        """How many coordinates of each row the fit works on; None for all columns."""
        return None

    def _fit_model(self, X: Any, sample_weight: Any) -> None:
        """Fits, and stores the model and the report."""
        rows = rows_of(self, X, reset=True)
        n_samples = len(rows)
        weights = weights_of(sample_weight, n_samples)
        clusters = self._count(self._clusters)
        if clusters > n_samples:
            raise ValueError(f"n_samples={n_samples} should be >= {self._clusters}={clusters}.")
        seed = seed_of(self.random_state)
        settings = {
            "clusters": clusters,
            "coreset": self.coreset_size if self.coreset_size != "all" else None,
            "max_iterations": self.max_iter,
            "tolerance": self.tol,
            "restarts": self.n_init,
            "seed": seed,
        } | self._settings()
        coordinates = self._sketch(self.n_features_in_)
        model, found = _coremix.fit(
            rows,
            settings,
            weights=weights,
            names={**self._names, "clusters": self._clusters},
            merge=clusters if self._merges(n_samples) else None,
            sketch=None if coordinates is None else (coordinates, seed),
            threads=threads_of(self.n_jobs),
            callback=self.callback,
        )
        self._model = model
        self.report_ = Report(found["report"])
        # A fit whose seeds are already its means has no step.
        self.n_iter_ = max(1, self.report_["iterations"])
        self.converged_ = self.report_["stop"] == "converged"
        self._after_fit(rows, weights, found)

    def _after_fit(self, rows: Any, weights: NDArray[np.float64] | None, found: dict[str, Any]) -> None:
        """Sets the fitted attributes."""
        raise NotImplementedError

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

    def _ask(self, X: Any) -> Any:
        """The rows of X, to ask the model about."""
        check_is_fitted(self, "_model")
        return rows_of(self, X, reset=False)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The likeliest component of each row, over all components: shape (n_samples,)."""
        rows = self._ask(X)
        return self._model.predict(rows, threads_of(self.n_jobs))
