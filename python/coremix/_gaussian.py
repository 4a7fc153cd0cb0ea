"""Gaussian mixtures by EM, and by truncated EM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._mixture import CoremixMixture


class GaussianMixture(CoremixMixture):
    """A Gaussian mixture by EM without approximation.

    Parameters
    ----------
    n_components : int, default=1
        The number of components.
    covariance_type : {"full", "tied", "diag", "spherical", "tied-spherical"}, default="diag"
        A matrix per component, one matrix for all, a variance per component and column, one per component, or one for all. With ``"tied-spherical"`` the mixing
        proportions are equal, too.
    n_init : int, default=1
        Restarts; the best one is kept.
    max_iter : int or None, default=None
        Most iterations. None: 200.
    tol : float or None, default=None
        The fit ends when the lower bound gains less than half of this per row and column. None: 1e-4.
    coreset_size : int or None, default=None
        Fits on a lightweight coreset of so many draws. None: on all rows.
    init_params : {"kmeans", "k-means++"}, default="kmeans"
        Where components start: at the means of :class:`KMeans`, or at seeds of k-means++.
    greedy : bool, default=False
        Several candidates for each seed of k-means++.
    merge_rows, n_jobs, random_state, callback
        As in :class:`KMeans`.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        The mixing proportions.
    means_ : ndarray of shape (n_components, n_features)
    covariances_ : ndarray or float
        Shape (n_components, n_features, n_features) for ``"full"``, (n_features, n_features) for ``"tied"``, (n_components,
        n_features) for ``"diag"``, (n_components,) for ``"spherical"``, a float for ``"tied-spherical"``.
    lower_bound_ : float
        The free energy per row after the last search, in nats.
    converged_ : bool
    n_iter_ : int
    report_ : Report
        What the fit did, and what it cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
    """

    _names = CoremixMixture._names | {"covariance": "covariance_type"}

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "diag",
        n_init: int = 1,
        max_iter: int | None = None,
        tol: float | None = None,
        coreset_size: int | None = None,
        init_params: str = "kmeans",
        greedy: bool = False,
        merge_rows: bool | str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.coreset_size = coreset_size
        self.init_params = init_params
        self.greedy = greedy
        self.merge_rows = merge_rows
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    def _settings(self) -> dict[str, Any]:
        return {"algorithm": "gmm", "covariance": self.covariance_type} | self._careful(1e-4)


class VcGmm(CoremixMixture):
    """vc-GMM: truncated EM on a lightweight coreset, for many rows and many components.

    Each row is shared by its ``c_prime`` best components, searched for among the neighbors of those it had before. An
    iteration costs at most ``c_prime * n_neighbors`` distances per row of the coreset, however many components there are.

    Parameters
    ----------
    n_components : int, default=8
        The number of components.
    coreset_size : int, "all" or None, default=None
        Draws of the coreset. None: 16 per component, and at least 8,192. "all": no coreset, which is var-GMM-S.
    c_prime : int, default=3
        Components that share a row.
    n_neighbors : int, default=5
        Neighbors of a component.
    n_random : int, default=0
        Random components that are added to each search.
    chain_length : int or None, default=None
        Length of the chains that draw the seeds (AFK-MC²).
    covariance_type : {"tied-spherical", "spherical", "diag", "tied", "full"}, default="tied-spherical"
        As in :class:`GaussianMixture`.
    tol : float or None, default=None
        As in :class:`GaussianMixture`. None: 1e-3.
    n_init, max_iter, merge_rows, n_jobs, random_state, callback
        As in :class:`GaussianMixture`.

    Attributes
    ----------
    See :class:`GaussianMixture`. ``lower_bound_`` is about the rows of the coreset.
    """

    _names = CoremixMixture._names | {
        "covariance": "covariance_type",
        "neighbors": "n_neighbors",
        "g": "n_neighbors",
        "random": "n_random",
        "chain": "chain_length",
    }

    def __init__(
        self,
        n_components: int = 8,
        *,
        coreset_size: int | str | None = None,
        c_prime: int = 3,
        n_neighbors: int = 5,
        n_random: int = 0,
        chain_length: int | None = None,
        covariance_type: str = "tied-spherical",
        n_init: int = 1,
        max_iter: int | None = None,
        tol: float | None = None,
        merge_rows: bool | str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.n_components = n_components
        self.coreset_size = coreset_size
        self.c_prime = c_prime
        self.n_neighbors = n_neighbors
        self.n_random = n_random
        self.chain_length = chain_length
        self.covariance_type = covariance_type
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.merge_rows = merge_rows
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    def _settings(self) -> dict[str, Any]:
        return {
            "algorithm": "var-gmm-s" if self.coreset_size == "all" else "vc-gmm",
            "c_prime": self.c_prime,
            "neighbors": self.n_neighbors,
            "random": self.n_random,
            "chain": self.chain_length,
            "covariance": self.covariance_type,
        }


class DGmm(CoremixMixture):
    """D-GMM: truncated EM whose searches draw components that are similar to those a row had before.

    An iteration costs at most ``c_prime + n_drawn`` distances per row, however many components there are.

    Parameters
    ----------
    n_components : int, default=8
        The number of components.
    coreset_size : int or None, default=None
        Fits on a lightweight coreset of so many draws. None: on all rows.
    c_prime : int, default=3
        Components that share a row.
    n_drawn : int, default=5
        Components drawn per row and search.
    chain_length : int or None, default=None
        Length of the chains that draw the seeds (AFK-MC²).
    covariance_type, n_init, max_iter, tol, merge_rows, n_jobs, random_state, callback
        As in :class:`VcGmm`.

    Attributes
    ----------
    See :class:`GaussianMixture`.
    """

    _names = CoremixMixture._names | {
        "covariance": "covariance_type",
        "drawn": "n_drawn",
        "r": "n_drawn",
        "h": "c_prime",
        "chain": "chain_length",
    }

    def __init__(
        self,
        n_components: int = 8,
        *,
        coreset_size: int | None = None,
        c_prime: int = 3,
        n_drawn: int = 5,
        chain_length: int | None = None,
        covariance_type: str = "tied-spherical",
        n_init: int = 1,
        max_iter: int | None = None,
        tol: float | None = None,
        merge_rows: bool | str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.n_components = n_components
        self.coreset_size = coreset_size
        self.c_prime = c_prime
        self.n_drawn = n_drawn
        self.chain_length = chain_length
        self.covariance_type = covariance_type
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.merge_rows = merge_rows
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    def _settings(self) -> dict[str, Any]:
        return {
            "algorithm": "d-gmm",
            "c_prime": self.c_prime,
            "drawn": self.n_drawn,
            "chain": self.chain_length,
            "covariance": self.covariance_type,
        }


class SparsifiedGmm(CoremixMixture):
    """A Gaussian mixture of sparsified rows, for many columns: of each row only a few preconditioned coordinates are kept.

    The sketch is made in one pass; time and memory of the fit depend on the coordinates that are kept.

    Parameters
    ----------
    n_components : int, default=8
        The number of components.
    n_coordinates : int or None, default=None
        Coordinates that are kept of each row. None: a quarter of the columns, but at least 16 where there are as many.
    covariance_type : {"diag", "spherical", "tied-spherical"}, default="diag"
        As in :class:`GaussianMixture`; variances of ``"diag"`` are those of the coordinates.
    tol : float or None, default=None
        As in :class:`GaussianMixture`. None: 1e-3.
    coreset_size, greedy, n_init, max_iter, merge_rows, n_jobs, random_state, callback
        As in :class:`GaussianMixture`.

    Attributes
    ----------
    See :class:`GaussianMixture`. ``covariances_`` of ``"diag"`` are the variances of the columns, the diagonals of the
    full covariances of the model.
    """

    _names = CoremixMixture._names | {"covariance": "covariance_type", "q": "n_coordinates"}

    def __init__(
        self,
        n_components: int = 8,
        *,
        n_coordinates: int | None = None,
        covariance_type: str = "diag",
        coreset_size: int | None = None,
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
        self.n_coordinates = n_coordinates
        self.covariance_type = covariance_type
        self.coreset_size = coreset_size
        self.greedy = greedy
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.merge_rows = merge_rows
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    def _settings(self) -> dict[str, Any]:
        return {"algorithm": "sparsified-gmm", "covariance": self.covariance_type, "greedy": self.greedy}

    def _sketch(self, n_features: int) -> int:
        if self.n_coordinates is None:
            return max(-(-n_features // 4), min(n_features, 16))
        return self._count("n_coordinates")
