"""The Dirichlet process mixture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._mixture import CoremixMixture


class BayesianGaussianMixture(CoremixMixture):
    """A Dirichlet process mixture of Gaussians with full covariances, by variational inference.

    The data decide how many components have weight, up to ``n_components``. Components merge where that is sure to raise the
    lower bound of the evidence.

    Parameters
    ----------
    n_components : int, default=10
        The truncation: the largest number of components.
    weight_concentration_prior : float or None, default=None
        The concentration of the process: the larger, the more components. None: 1.
    max_iter : int or None, default=None
        Most iterations. None: 1,000.
    tol : float or None, default=None
        The fit ends when the lower bound gains less than half of this per row and column. None: 1e-5.
    coreset_size, init_params, greedy, n_init, merge_rows, n_jobs, random_state, callback
        As in :class:`GaussianMixture`.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        The expected mixing proportions.
    means_ : ndarray of shape (n_components, n_features)
    covariances_ : ndarray of shape (n_components, n_features, n_features)
        The inverses of the expected precisions.
    degrees_of_freedom_, mean_precision_ : ndarray of shape (n_components,)
    weight_concentration_ : ndarray of shape (n_components, 2)
        The parameters of the beta distributions of the sticks.
    lower_bound_ : float
        The evidence lower bound per row, in nats.
    converged_, n_iter_, report_, n_features_in_, feature_names_in_
        As in :class:`GaussianMixture`. ``score_samples`` is about the predictive density, a mixture of Student t.
    """

    _names = CoremixMixture._names | {"concentration": "weight_concentration_prior"}

    def __init__(
        self,
        n_components: int = 10,
        *,
        weight_concentration_prior: float | None = None,
        coreset_size: int | None = None,
        init_params: str = "kmeans",
        greedy: bool = False,
        n_init: int = 1,
        max_iter: int | None = None,
        tol: float | None = None,
        merge_rows: bool | str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.n_components = n_components
        self.weight_concentration_prior = weight_concentration_prior
        self.coreset_size = coreset_size
        self.init_params = init_params
        self.greedy = greedy
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.merge_rows = merge_rows
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    def _settings(self) -> dict[str, Any]:
        return {"algorithm": "dp-gmm", "concentration": self.weight_concentration_prior} | self._careful(1e-5)

    def _after_fit(self, rows: Any, weights: NDArray[np.float64] | None, found: dict[str, Any]) -> None:
        super()._after_fit(rows, weights, found)
        parameters = self._model.parameters()
        self.degrees_of_freedom_ = parameters["degrees_of_freedom"]
        self.mean_precision_ = parameters["mean_precisions"]
        self.weight_concentration_ = parameters["sticks"]
