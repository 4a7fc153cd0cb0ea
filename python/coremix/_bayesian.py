"""The Dirichlet process mixture."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import unmasked
from ._checks import array_of, check_order, finite
from ._mixture import CarefulMixture, CoremixMixture


class CoremixProcess(CoremixMixture):
    """Base of the Dirichlet process: what a fit sets."""

    degrees_of_freedom_: NDArray[np.float64]
    mean_precision_: NDArray[np.float64]
    weight_concentration_: NDArray[np.float64]

    _algorithm = "dp-gmm"
    _families: ClassVar[tuple[str, ...]] = ("dirichlet-process",)
    # Priors of the core.
    _priors: ClassVar[tuple[str, ...]] = ("concentration", "mean_precision", "degrees_of_freedom", "mean", "scale", "merges")

    def _settings(self) -> dict[str, Any]:
        own = {prior: self._names.get(prior, prior) for prior in self._priors}
        priors = {prior: getattr(self, name) for prior, name in own.items()}
        priors["mean"] = self._prior(own["mean"], (self.n_features_in_,))
        priors["scale"] = self._prior(own["scale"], (self.n_features_in_, self.n_features_in_))
        return super()._settings() | {"concentration": None, "process": priors}

    def _prior(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float64] | None:
        """A prior of this shape: a number is that in all columns, or on the diagonal."""
        given = getattr(self, name)
        if given is None:
            return None
        if isinstance(given, numbers.Real):
            if not np.isfinite(float(given)):
                raise ValueError(f"{name} = {given}: must be finite")
            return np.full(shape, float(given)) if len(shape) == 1 else np.eye(shape[0]) * float(given)
        check_order(given, name, self._column_names())
        array = finite(array_of(unmasked(given, name)), name)
        if array.shape != shape:
            raise ValueError(f"{name} has the shape {array.shape}, expected {shape}, or a number")
        return array

    def _set_parameters(self, parameters: dict[str, Any]) -> None:
        super()._set_parameters(parameters)
        self.degrees_of_freedom_ = parameters["degrees_of_freedom"]
        self.mean_precision_ = parameters["mean_precisions"]
        self.weight_concentration_ = parameters["sticks"]


@dataclass(kw_only=True, repr=False, eq=False)
class BayesianGaussianMixture(CarefulMixture, CoremixProcess):
    """A Dirichlet process mixture of Gaussians with full covariances, by variational inference.

    It is the algorithm dp-gmm. The data decide how many components have weight, up to ``n_components``. Components merge where that is
    sure to raise the lower bound of the evidence.

    Parameters
    ----------
    n_components : int, default=10
        The truncation: the largest number of components.
    weight_concentration_prior : float or None, default=None
        The concentration of the process: the larger, the more components. None: 1.
    max_iter : int or None, default=None
        Most iterations. None: 1,000.
    tol : float or None, default=None
        The fit ends when what the lower bound has still to gain is at most about this per row. None: 1e-4.
    mean_prior : array of shape (n_features,), float or None, default=None
        Where means are expected. None: the mean of the rows.
    mean_precision_prior : float or None, default=None
        The weight of that mean, in rows. None: 1.
    degrees_of_freedom_prior : float or None, default=None
        The weight of the prior covariance, in rows; more than the number of columns less 1. None: the number of columns.
    covariance_prior : array of shape (n_features, n_features), float or None, default=None
        The prior expects covariances of about this, divided by ``degrees_of_freedom_prior``. None: the covariance of the rows.
    merges : bool, default=True
        Whether components that are not needed merge with others.
    coreset_size, init_params, greedy, n_init, stop_rule, standardise, allow_missing, means_init, memory, merge_rows, warm_start, n_jobs, \
random_state, verbose, callback
        As in :class:`GaussianMixture`.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        The expected mixing proportions.
    means_ : ndarray of shape (n_components, n_features)
    covariances_ : ndarray of shape (n_components, n_features, n_features)
        The inverses of the expected precisions.
    precisions_, precisions_cholesky_ : ndarray of shape (n_components, n_features, n_features)
        As in :class:`GaussianMixture`.
    degrees_of_freedom_, mean_precision_ : ndarray of shape (n_components,)
    weight_concentration_ : ndarray of shape (n_components, 2)
        The parameters of the beta distributions of the sticks.
    lower_bound_ : float
        The evidence lower bound per row, in nats.
    converged_, n_iter_, report_, n_features_in_, feature_names_in_
        As in :class:`GaussianMixture`. ``score_samples`` is about the predictive density, a mixture of Student t.
        ``bic`` and ``aic`` are errors: there is no number of parameters.

    See Also
    --------
    GaussianMixture : A fixed number of components.

    Examples
    --------
    >>> import numpy as np
    >>> from coremix import BayesianGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (500, 2)), rng.normal(9, 1, (500, 2))])
    >>> mixture = BayesianGaussianMixture(n_components=10, random_state=0).fit(X)
    >>> int((mixture.weights_ > 0.01).sum())
    2

    The priors of the paper, for columns of mean 0 and variance 1:

    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> priors = {"weight_concentration_prior": 5.0, "mean_prior": 0.0, "mean_precision_prior": 0.8, "covariance_prior": 0.1}
    >>> int((BayesianGaussianMixture(20, **priors, random_state=0).fit(X).weights_ > 0.01).sum())
    2
    """

    _names = CoremixMixture._names | {
        "concentration": "weight_concentration_prior",
        "mean_precision": "mean_precision_prior",
        "degrees_of_freedom": "degrees_of_freedom_prior",
        "mean": "mean_prior",
        "scale": "covariance_prior",
    }
    _tolerance: ClassVar[float] = 1e-4

    n_components: int = field(default=10, kw_only=False)
    weight_concentration_prior: float | None = None
    mean_prior: ArrayLike | float | None = None
    mean_precision_prior: float | None = None
    degrees_of_freedom_prior: float | None = None
    covariance_prior: ArrayLike | float | None = None
    merges: bool = True

    def _prior(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float64] | None:
        given = super()._prior(name, shape)
        if given is None or name == "mean_prior":
            return given
        # Its inverse is the scale of the precisions.
        try:
            return np.asarray(np.linalg.inv(given), dtype=np.float64)
        except np.linalg.LinAlgError as error:
            raise ValueError(f"{name}: must be symmetric and positive definite") from error
