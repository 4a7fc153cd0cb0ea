"""The Dirichlet process mixture."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import Callback, RandomState
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
    coreset_size, init_params, greedy, n_init, means_init, memory, merge_rows, warm_start, n_jobs, random_state, verbose, callback
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
    """

    degrees_of_freedom_: NDArray[np.float64]
    mean_precision_: NDArray[np.float64]
    weight_concentration_: NDArray[np.float64]

    _families: ClassVar[tuple[str, ...]] = ("dirichlet-process",)
    _names = CoremixMixture._names | {"concentration": "weight_concentration_prior"}

    def __init__(
        self,
        n_components: int = 10,
        *,
        weight_concentration_prior: float | None = None,
        coreset_size: int | None = None,
        init_params: Literal["kmeans", "k-means++"] = "kmeans",
        greedy: bool = False,
        n_init: int | Literal["auto"] = 1,
        max_iter: int | None = None,
        tol: float | None = None,
        means_init: ArrayLike | None = None,
        memory: int | str | None = None,
        merge_rows: bool | Literal["auto"] = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self._store(locals())

    def _settings(self) -> dict[str, Any]:
        return {"algorithm": "dp-gmm", "concentration": self.weight_concentration_prior} | self._careful(1e-5)

    def _set_parameters(self, parameters: dict[str, Any]) -> None:
        super()._set_parameters(parameters)
        self.degrees_of_freedom_ = parameters["degrees_of_freedom"]
        self.mean_precision_ = parameters["mean_precisions"]
        self.weight_concentration_ = parameters["sticks"]
