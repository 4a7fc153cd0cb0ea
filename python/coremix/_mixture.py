"""The base of all mixture models: posteriors, densities, information criteria, samples."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _coremix
from ._arrays import unmasked
from ._base import CoremixEstimator, seed_of, threads_of
from ._checks import check_fitted, check_order
from ._input import Rows, sound_weights, weights_of
from ._parameters import OfMixture, OfStart
from ._precisions import precision_roots, precisions_of
from ._sklearn import issparse
from .exceptions import ConvergenceWarning, as_raised


class CoremixMixture(OfMixture, CoremixEstimator):
    """Base of the mixture models."""

    weights_: NDArray[np.float64]
    means_: NDArray[np.floating]
    covariances_: NDArray[np.float64]
    concentrations_: NDArray[np.float64]
    loadings_: NDArray[np.float64]
    noise_variance_: NDArray[np.float64]
    lower_bound_: float

    _names = CoremixEstimator._names | {
        "covariance": "covariance_type",
        "factors": "n_factors",
        "prior rows": "prior_rows",
        "prior variance": "prior_variance",
        "prior rows of proportions": "prior_proportions",
        "ridge": "reg_covar",
    }
    _elsewhere: ClassVar[dict[str, str]] = {
        "labels_": "predict(X) has labels",
        "cluster_centers_": "means_ is its name",
        "inertia_": "score(X) is the mean log-density",
        "lower_bounds_": "report_['free_energies'] has them, for all rows together",
        "transform": "predict_proba(X) has shares; KMeans has transform",
    }
    _families: ClassVar[tuple[str, ...]] = ("full", "tied", "diag", "spherical", "tied-spherical", "factors", "von-mises-fisher")
    # The class of parts that are of another family.
    _others: ClassVar[type[CoremixMixture]]

    def __getattr__(self, name: str) -> Any:
        # All pairs of columns are made when they are asked for.
        if name == "covariances_" and "loadings_" in self.__dict__:
            return self.loadings_ @ self.loadings_.swapaxes(1, 2) + np.eye(self.noise_variance_.shape[1]) * self.noise_variance_[:, None]
        if "concentrations_" in self.__dict__ and name in ("covariances_", "precisions_", "precisions_cholesky_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}: directions have concentrations_")
        return super().__getattr__(name)

    def _of_directions(self) -> bool:
        """Whether rows are compared by cosine."""
        return getattr(self, "metric", None) == "cosine"

    def _takes_missing(self) -> bool:
        return not self._of_directions()

    def _takes_sparse(self) -> bool:
        if self._of_directions():
            return True
        # Columns that depend on one another have no zeros that are left out.
        return getattr(self, "covariance_type", None) in ("diag", "spherical", "tied-spherical")

    def _settings(self) -> dict[str, Any]:
        found = super()._settings()
        factors = getattr(self, "n_factors", None)
        if found.get("covariance") == "factors":
            if not isinstance(factors, numbers.Integral) or factors < 1:
                raise ValueError(f"n_factors = {factors!r}: must be a number of factors, fewer than columns")
            found["covariance"] = f"factors:{factors}"
        elif factors is not None:
            raise ValueError(f"n_factors = {factors!r}: is for covariance_type='factors' alone")
        prior = self._rows_in_advance()
        if self._of_directions():
            default = type(self)()
            kinds = (default.covariance_type, "tied-spherical", "spherical")
            if self.covariance_type not in kinds:
                rule = "must be left out with metric='cosine', or 'spherical' for a concentration of each component"
                raise ValueError(f"covariance_type = {self.covariance_type!r}: {rule}")
            for name in self._names_of_prior:
                if getattr(self, name) != getattr(default, name):
                    raise ValueError(f"{name} = {getattr(self, name)!r}: must be left out with metric='cosine'")
            return found | {"covariance": "spherical" if self.covariance_type == "spherical" else None}
        return found | {"prior": prior} if prior else found

    # Parameters of rows in advance.
    _names_of_prior: ClassVar[tuple[str, ...]] = ("prior_rows", "prior_variance", "prior_proportions", "reg_covar")

    def _rows_in_advance(self) -> dict[str, Any]:
        """The prior of the core, if there is one."""
        rows, variance, proportions, ridge = (getattr(self, name, None) for name in self._names_of_prior)
        if variance is not None and rows == 0:
            raise ValueError(f"prior_variance = {variance!r}: is the variance of prior_rows: give prior_rows, too")
        given = {"rows": rows, "variance": variance, "proportions": proportions, "ridge": ridge}
        has_some = any(value not in (None, 0) for value in given.values())
        return {name: value for name, value in given.items() if value is not None} if has_some else {}

    def fit(self, X: Rows, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fits the mixture.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), an Arrow table, or rows that are not in memory
            Read without a copy if it is an array of float32, float64, float16, uint8 or int8. :func:`coremix.scan` says which
            rows need not be in memory.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or None
            A row of weight w counts as w copies of it, a row of weight 0 as absent.
        """
        self._fit_model(X, sample_weight)
        return self

    def _set_parameters(self, parameters: dict[str, Any]) -> None:
        self.means_ = parameters["means"]
        self.weights_ = parameters["weights"]
        self.__dict__.pop("concentrations_", None)
        if "concentrations" in parameters:
            for name in ("covariances_", "loadings_", "noise_variance_"):
                self.__dict__.pop(name, None)
            self.concentrations_ = parameters["concentrations"]
            return
        if "loadings" in parameters:
            self.__dict__.pop("covariances_", None)
            self.loadings_, self.noise_variance_ = parameters["loadings"], parameters["noise"]
            return
        for name in ("loadings_", "noise_variance_"):
            self.__dict__.pop(name, None)
        # One variance for all is that of each component; tables have none.
        covariances = parameters.get("covariances")
        if covariances is not None:
            self.covariances_ = np.full(len(self.means_), covariances) if np.isscalar(covariances) else covariances

    def _after_fit(self, rows: Any, weights: NDArray[np.float64] | None, found: dict[str, Any]) -> None:
        self.lower_bound_ = self.report_["free_energies"][-1] / found["weight"]
        # The rows of the last phase: distinct ones, or draws of a coreset. A matrix of fewer rows than columns is singular.
        n_rows, n_features = self.report_["phases"][-1]["rows"], self.n_features_in_
        has_prior = any(getattr(self, name, 0) > 0 for name in ("prior_rows", "reg_covar"))
        held = self._model.at_floor if self._model.family == "factors" and not has_prior else []
        shares = self.weights_[held]
        if (n_rows * shares[shares > 0] < n_features + 0.5).any():
            warnings.warn(
                f"{type(self).__name__}: a component has so few rows that its factors go through all of them, so variances stand at their "
                "floor, and densities are huge: take fewer components or factors, prior_rows=1, or covariance_type 'tied' or 'diag'.",
                as_raised(ConvergenceWarning),
                stacklevel=5,
            )
        if self._model.family == "full" and not has_prior and n_rows * self.weights_[self.weights_ > 0].min() <= n_features:
            warnings.warn(
                f"{type(self).__name__}: a component has no more rows than columns, so variances stand at their floor, "
                "and densities are huge: take fewer components, prior_rows=1, or covariance_type 'tied' or 'diag'.",
                as_raised(ConvergenceWarning),
                stacklevel=5,
            )
        if self.report_["at_floor"] > 0:
            warnings.warn(
                f"{type(self).__name__}: {self.report_['at_floor']} components with more rows than columns have variances at their "
                "floor: their rows are equal in a column, or columns determine one another, so densities and criteria say little. "
                "Leave out constant columns, or take fewer components, or covariance_type 'tied' or 'spherical'.",
                as_raised(ConvergenceWarning),
                stacklevel=4,
            )
        if self.report_["stop"] == "iterations used up":
            warnings.warn(
                f"{type(self).__name__} has not converged in {self.n_iter_} iterations: raise max_iter or tol.",
                as_raised(ConvergenceWarning),
                stacklevel=5,
            )

    def fit_predict(self, X: Rows, y: object = None, sample_weight: ArrayLike | None = None) -> NDArray[np.int32]:
        """:meth:`fit` on ``X``, ``y`` and ``sample_weight``, then the likeliest component of each row: shape (n_samples,)."""
        X = self._rereadable(X)
        return self.fit(X, y, sample_weight).predict(X)

    def predict_proba(self, X: Rows) -> NDArray[np.floating]:
        """The posteriors of all components for the rows of ``X``: shape (n_samples, n_components), each row sums to 1.

        Sparse rows have :meth:`predict_top`.
        """
        if issparse(X):
            rule = "predict_top(X, m) has the m largest of each row, predict_proba(X.toarray()) all"
            raise TypeError(f"X is sparse, and predict_proba would make a full row of shares for each of its rows: {rule}")
        rows = self._ask(X)
        self._warn_if_large(len(rows), "predict_proba")
        return self._model.predict_proba(rows, threads_of(self.n_jobs))

    def score_samples(self, X: Rows) -> NDArray[np.float64]:
        """The log-density of each row of ``X``, in nats: shape (n_samples,)."""
        rows = self._ask(X)
        return self._model.log_densities(rows, threads_of(self.n_jobs))

    def density_threshold(self, X: Rows, share: float = 0.01, sample_weight: ArrayLike | None = None) -> float:
        """The log-density below which rows of ``X`` with at most this share of all ``sample_weight`` lie.

        Rows whose ``score_samples`` are below it are outliers.
        """
        if not 0 < share < 1:
            raise ValueError(f"share = {share!r}: must be more than 0 and less than 1")
        rows = self._ask(X)
        weights = sound_weights(weights_of(sample_weight, rows))
        densities = self._model.log_densities(rows, threads_of(self.n_jobs))
        order = np.argsort(densities, kind="stable")
        reached = np.cumsum(np.ones(len(order)) if weights is None else weights[order])
        return float(densities[order[np.searchsorted(reached, share * reached[-1], side="right")]])

    def score(self, X: Rows, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """The mean of the log-densities of the rows of ``X``, weighted by ``sample_weight``. ``y`` is ignored."""
        likelihood, total = self._likelihood(X, sample_weight)
        return likelihood / total

    def bic(self, X: Rows, sample_weight: ArrayLike | None = None) -> float:
        """The Bayesian information criterion on the rows of ``X``; the lower the better. The number of rows is the sum of
        ``sample_weight``, if there are weights."""
        free = self._free_parameters()
        likelihood, total = self._likelihood(X, sample_weight)
        return free * float(np.log(total)) - 2 * likelihood

    def aic(self, X: Rows, sample_weight: ArrayLike | None = None) -> float:
        """The Akaike information criterion on the rows of ``X``, weighted by ``sample_weight``; the lower the better."""
        free = self._free_parameters()
        likelihood, _ = self._likelihood(X, sample_weight)
        return 2 * free - 2 * likelihood

    @property
    def precisions_cholesky_(self) -> NDArray[np.float64]:
        """Roots of the precisions, in scikit-learn's shape for the covariance type: the precision of a matrix is its root times
        the root transposed, that of a variance the square."""
        check_fitted(self)
        return precision_roots(self.covariances_, self._kind())

    @property
    def precisions_(self) -> NDArray[np.float64]:
        """The inverses of ``covariances_``, in their shape."""
        return precisions_of(self.precisions_cholesky_, self._kind())

    def _kind(self) -> str:
        """The covariance type of scikit-learn whose shape ``covariances_`` has."""
        kinds = {"dirichlet-process": "full", "factors": "full", "tied-spherical": "spherical"}
        kind = kinds.get(self._model.family, self._model.family)
        # One variance of standardised columns is one for each column in its unit.
        return "diag" if kind == "spherical" and self.covariances_.ndim == 2 else kind

    def sample(self, n_samples: int = 1) -> tuple[NDArray[np.floating], NDArray[np.int32]]:
        """Draws rows from the fitted mixture: rows (n_samples, n_features), and the components that they came from."""
        check_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples = {n_samples}: must be at least 1")
        return self._model.sample(n_samples, seed_of(self.random_state))

    def marginal(self, columns: Sequence[int | str]) -> CoremixMixture:
        """The fitted mixture of these columns alone, by their numbers or names, in this order.

        The density of the others is integrated out. The result can be asked, saved and drawn from like any fitted mixture. The
        part of a Dirichlet process is that of its predictive density, a mixture of Student t.
        """
        check_fitted(self)
        return self._part(self._model.part(self._places("columns", columns)))

    def condition(self, columns: Sequence[int | str], values: ArrayLike) -> CoremixMixture:
        """The fitted mixture of all other columns, where these columns, by their numbers or names, have these values.

        It is what the model says of what is not known, given what is: its ``weights_`` are the probabilities of the components under
        the known values, and the mean of the others is ``weights_ @ means_``.
        """
        check_fitted(self)
        places = self._places("columns", columns)
        names = self._column_names()
        check_order(values, "values", None if names is None else [names[j] for j in places])
        if isinstance(values, (list, tuple)) and len(values) == len(places):
            values = [self._code(j, value) for j, value in zip(places, values, strict=True)]
        known = np.asarray(unmasked(values, "values"), dtype=np.float64)
        if known.ndim != 1:
            raise ValueError(f"values have the shape {known.shape}, expected (n_columns,): one for each column")
        return self._part(self._model.part(places, known.tolist()))

    def _code(self, column: int, value: Any) -> Any:
        """The code of a category that is given as text."""
        name = (self._model.names or {column: None})[column]
        texts = self._model.texts.get(name) if isinstance(name, str) else None
        if texts is None:
            return value
        if not isinstance(value, str):
            # A code, unless it may be meant as the text of another category.
            said = f"{value:g}" if isinstance(value, numbers.Real) else str(value)
            if said in texts and texts.index(said) != value:
                raise ValueError(f"values: {value!r} is a code of the column {name!r}, which has the text {said!r}, too: give text")
            return value
        if value not in texts:
            raise ValueError(f"values: no category {value!r} of the column {name!r}; they are {texts}")
        return texts.index(value)

    def _places(self, parameter: str, given: Any) -> list[int]:
        """The numbers of the columns that a parameter names."""
        if isinstance(given, (str, numbers.Number)) or not hasattr(given, "__iter__"):
            raise TypeError(f"{parameter} = {given!r}: must be a list of columns")
        names = self._column_names()
        found = []
        for column in given:
            if isinstance(column, str):
                if names is None:
                    raise ValueError(f"{parameter}: column {column!r}: X has no names of columns: give numbers from 0 on")
                if column not in names:
                    raise ValueError(f"{parameter}: no column {column!r}; they are {names}")
                found.append(names.index(column))
                continue
            if isinstance(column, bool) or not isinstance(column, numbers.Integral):
                raise TypeError(f"{parameter}: {column!r}: must be the number or the name of a column")
            if not 0 <= int(column) < self.n_features_in_:
                raise ValueError(f"{parameter}: no column {column}; they are 0 to {self.n_features_in_ - 1}")
            found.append(int(column))
        return found

    def _part(self, model: _coremix.Model) -> CoremixMixture:
        """A fitted mixture with this model, of this class, or of one that has such models."""
        part = (type(self) if model.family in self._families else self._others)._of_model(model)
        kept = {name: getattr(self, name) for name in ("random_state", "n_jobs", "allow_missing") if hasattr(self, name)}
        return part.set_params(**kept)

    def to_sklearn(self) -> Any:
        """A fitted mixture of scikit-learn with the same predictions: what other tools know, such as exporters to ONNX.

        With ``reg_covar`` the densities are the same, and shares of components that overlap are nearly so.
        """
        check_fitted(self)
        from ._convert import mixture

        return mixture(self)

    def _likelihood(self, X: Rows, sample_weight: ArrayLike | None) -> tuple[float, float]:
        rows = self._ask(X)
        weights = weights_of(sample_weight, rows)
        likelihood = self._model.log_likelihood(rows, weights, threads_of(self.n_jobs))
        return likelihood, float(len(rows)) if weights is None else float(weights.sum())

    def _free_parameters(self) -> int:
        check_fitted(self)
        free = self._model.free_parameters
        if free is None:
            rule = "a Dirichlet process has no number of parameters, so no criterion: compare score() of rows held out"
            raise ValueError(f"{type(self).__name__}: {rule}")
        return free


class CarefulMixture(OfStart, CoremixMixture):
    """Base of the mixtures in scikit-learn's words, whose densities are asked for: they end late."""

    _tolerance: ClassVar[float]

    def _settings(self) -> dict[str, Any]:
        found = super()._settings()
        if self.tol is None:
            found["tolerance"] = self._tolerance
        if self.init_params not in ("kmeans", "k-means++"):
            raise ValueError(f"init_params = {self.init_params!r}: must be 'kmeans' or 'k-means++'")
        found["refined"] = self.init_params == "kmeans"
        if found["refined"] and self.greedy:
            raise ValueError("greedy = True: init_params='kmeans' does not use it, but 'k-means++': leave it out")
        return found
