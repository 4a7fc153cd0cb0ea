"""Gaussian mixtures by EM, and by truncated EM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ._mixture import CarefulMixture, CoremixMixture
from ._parameters import Covariance, OfMetric, OfProportions, OfSeeds, OfTruncated


@dataclass(kw_only=True, repr=False, eq=False)
class GaussianMixture(OfMetric, OfProportions, CarefulMixture):
    """A Gaussian mixture by EM without approximation, or, with a ``c_prime``, by k-means-C'.

    Parameters
    ----------
    n_components : int, default=1
        The number of components.
    covariance_type : {"full", "tied", "diag", "spherical", "tied-spherical", "factors"}, default="diag"
        A matrix per component, one matrix for all, a variance per component and column, one per component, or one for
        all. The default of scikit-learn is ``"full"``. With ``"tied-spherical"`` the mixing proportions are equal, too.
        ``"factors"`` are factor analysers: ``n_factors`` directions per component, and a variance for each column.
    n_factors : int or None, default=None
        The number of factors, fewer than columns.
    c_prime : int or None, default=None
        The components that share a row, its best ones: k-means-C', between hard labels (1) and EM (None: all of them).
    prior_rows : float, default=0.0
        Rows that each covariance has in advance, with the variances of the columns divided by ``n_components ** (2 / n_features)``. 1 is
        advised with ``"full"`` and ``"tied"`` where components may have few rows: then none collapses. 0: maximum likelihood.
    prior_variance : float or None, default=None
        The variance of these rows in every column. None: as ``prior_rows`` says.
    prior_proportions : float, default=0.0
        Rows that each component has in advance in its mixing proportion. 0: a component without rows is discarded.
    reg_covar : float, default=0.0
        Covariances have this variance more in every column, as in scikit-learn, where the default is 1e-6. Rows count as known with
        this variance, so that the lower bound does not fall: ``predict`` and ``predict_proba`` follow from the expected costs of the
        fit, ``score`` and ``score_samples`` from the parameters.
    metric : {"euclidean", "cosine"}, default="euclidean"
        With ``"cosine"`` rows are brought to length 1, in ``fit`` and in every question, and components are directions: a von
        Mises-Fisher mixture, whose densities are those on the sphere. All have one concentration, or with ``covariance_type="spherical"``
        each has its own. There are no rows in advance.
    n_init : int or "auto", default=1
        Restarts; the best one is kept. "auto": 1.
    max_iter : int or None, default=None
        Most iterations. None: 200.
    tol : float or None, default=None
        The fit ends when what the lower bound has still to gain is at most about this per row. None: 1e-4. With a ``c_prime``: when it
        gains less than half of this per row and column. None: 1e-3.
    coreset_size : int or None, default=None
        Fits on a lightweight coreset of this number of draws. None: on all rows.
    init_params : {"kmeans", "k-means++"}, default="kmeans"
        Where components start: at the means of :class:`KMeans`, or at seeds of k-means++.
    greedy : bool, default=False
        Several candidates for each seed of ``init_params="k-means++"``.
    means_init : array of shape (n_components, n_features) or None, default=None
        Where the means start, in place of what ``init_params`` says.
    stop_rule, standardise, allow_missing, memory, merge_rows, warm_start, n_jobs, random_state, verbose, callback
        As in :class:`KMeans`. A warm start keeps proportions and covariances, too.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        The mixing proportions.
    means_ : ndarray of shape (n_components, n_features)
    covariances_ : ndarray
        Shape (n_components, n_features, n_features) for ``"full"``, (n_features, n_features) for ``"tied"``, (n_components,
        n_features) for ``"diag"``, (n_components,) for ``"spherical"`` and ``"tied-spherical"``, where all are equal. For
        ``"factors"`` they are made when they are asked for, in the shape of ``"full"``.
    loadings_, noise_variance_ : ndarray
        Of ``"factors"`` alone: shapes (n_components, n_features, n_factors) and (n_components, n_features). The covariance of a
        component is its loadings times themselves transposed, and the variances on the diagonal.
    concentrations_ : ndarray of shape (1,) or (n_components,)
        With ``metric="cosine"``, in place of covariances.
    precisions_, precisions_cholesky_ : ndarray
        The inverses of ``covariances_``, and their roots, in the same shape.
    lower_bound_ : float
        The free energy per row after the last search, in nats.
    converged_ : bool
    n_iter_ : int
    report_ : Report
        What the fit did, and what it cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    See Also
    --------
    VcGmm : The same for many rows and many components.
    BayesianGaussianMixture : The data decide how many components are used.

    Examples
    --------
    >>> import numpy as np
    >>> from coremix import GaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (500, 2)), rng.normal(9, 3, (500, 2))])
    >>> mixture = GaussianMixture(n_components=2, covariance_type="spherical", random_state=0).fit(X)
    >>> sorted(mixture.covariances_.round().tolist())
    [1.0, 9.0]
    >>> mixture.predict_proba(X).shape
    (1000, 2)
    >>> unusual = mixture.score_samples(X) < np.quantile(mixture.score_samples(X), 0.01)
    >>> int(unusual.sum())
    10
    """

    _algorithm = "gmm"
    _tolerance: ClassVar[float] = 1e-4

    n_components: int = field(default=1, kw_only=False)
    covariance_type: Covariance = "diag"
    n_factors: int | None = None
    c_prime: int | None = None

    def _settings(self) -> dict[str, Any]:
        found = super()._settings()
        if self.c_prime is None:
            return found
        return found | {"algorithm": "k-means-c-prime", "c_prime": self.c_prime, "tolerance": self.tol}


@dataclass(kw_only=True, repr=False, eq=False)
class VcGmm(OfTruncated, CoremixMixture):
    """vc-GMM: truncated EM on a lightweight coreset, for many rows and many components.

    Each row is shared by its ``c_prime`` best components, searched for among the neighbors of those it had before. An
    iteration costs at most ``c_prime * neighbors`` distances per row of the coreset, however many components there are.

    Parameters
    ----------
    n_components : int, default=8
        The number of components.
    coreset_size : int, "all" or None, default=None
        Draws of the coreset. None: 100 per component, and at least 8,192. "all": no coreset, which is var-GMM-S.
    c_prime : int, default=3
        Components that share a row.
    neighbors : int, default=5
        Neighbors of a component.
    random : int, default=0
        Random components that are added to each search.
    chain : int or None, default=None
        Length of the chains that draw the seeds (AFK-MC²). None: 20.
    covariance_type : {"tied-spherical", "spherical", "diag", "tied", "full", "factors"}, default="tied-spherical"
    n_factors : int or None, default=None
        As in :class:`GaussianMixture`.
    tol : float or None, default=None
        The fit ends when the lower bound gains less than half of this per row and column. None: 1e-3.
    metric, prior_rows, prior_variance, prior_proportions, reg_covar, n_init, max_iter, stop_rule, standardise, allow_missing, means_init, memory, merge_rows, warm_start, n_jobs, \
random_state, verbose, callback
        As in :class:`GaussianMixture`.

    Attributes
    ----------
    See :class:`GaussianMixture`. ``lower_bound_`` is about the rows of the coreset.

    See Also
    --------
    KMeans : One label per row, without overlap.
    DGmm : Fewer distances per iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from coremix import VcGmm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1_000, (50, 2)).repeat(200, axis=0) + rng.normal(size=(10_000, 2))
    >>> mixture = VcGmm(n_components=50, coreset_size=2_000, random_state=0).fit(X)
    >>> mixture.means_.shape, mixture.report_["coreset_size"] <= 2_000
    ((50, 2), True)
    """


    _algorithm = "vc-gmm"

    neighbors: int = 5
    random: int = 0

    def _settings(self) -> dict[str, Any]:
        found = super()._settings()
        return found | {"algorithm": "var-gmm-s", "coreset": None} if self.coreset_size == "all" else found


@dataclass(kw_only=True, repr=False, eq=False)
class DGmm(OfTruncated, CoremixMixture):
    """D-GMM: truncated EM whose searches draw components that are similar to those a row had before.

    An iteration costs at most ``c_prime + drawn`` distances per row, however many components there are.

    Parameters
    ----------
    n_components : int, default=8
        The number of components.
    coreset_size : int or None, default=None
        Fits on a lightweight coreset of this number of draws. None: on all rows.
    c_prime : int, default=3
        Components that share a row.
    drawn : int, default=5
        Components drawn per row and search.
    chain : int or None, default=None
        Length of the chains that draw the seeds (AFK-MC²). None: 20.
    covariance_type, n_factors, metric, prior_rows, prior_variance, prior_proportions, reg_covar, n_init, max_iter, tol, stop_rule, \
standardise, allow_missing, means_init, memory, merge_rows, warm_start, n_jobs, random_state, verbose, callback
        As in :class:`VcGmm`.

    Attributes
    ----------
    See :class:`GaussianMixture`.

    See Also
    --------
    VcGmm : Truncated EM that searches neighbors.

    Examples
    --------
    >>> import numpy as np
    >>> from coremix import DGmm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1_000, (50, 2)).repeat(200, axis=0) + rng.normal(size=(10_000, 2))
    >>> DGmm(n_components=50, random_state=0).fit(X).predict_proba(X).shape
    (10000, 50)
    """


    _algorithm = "d-gmm"

    drawn: int = 5


@dataclass(kw_only=True, repr=False, eq=False)
class SparsifiedGmm(OfSeeds, OfProportions, CoremixMixture):
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
    greedy, refined : bool, default=False
        Several candidates for each seed of k-means++; a start at the means of ``fast``.
    prior_rows, prior_variance, prior_proportions, reg_covar, coreset_size, n_init, max_iter, stop_rule, standardise, allow_missing, \
means_init, memory, merge_rows, warm_start, n_jobs, random_state, verbose, callback
        As in :class:`GaussianMixture`.

    Attributes
    ----------
    See :class:`GaussianMixture`. ``covariances_`` of ``"diag"`` are the variances of the columns, the diagonals of the
    full covariances of the model.

    See Also
    --------
    GaussianMixture : All coordinates of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from coremix import SparsifiedGmm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(0, 5, (3, 100)).repeat(200, axis=0) + rng.normal(size=(600, 100))
    >>> mixture = SparsifiedGmm(n_components=3, n_coordinates=20, random_state=0).fit(X)
    >>> mixture.means_.shape
    (3, 100)
    """

    _names = CoremixMixture._names | {"q": "n_coordinates"}

    _algorithm = "sparsified-gmm"
    _families: ClassVar[tuple[str, ...]] = CoremixMixture._families[:-1]

    n_coordinates: int | None = None
    covariance_type: Covariance = "diag"

    def _takes_missing(self) -> bool:
        return False

    def _takes_sparse(self) -> bool:
        return False

    def _sketch(self, n_features: int) -> int:
        if self.n_coordinates is None:
            return max(-(-n_features // 4), min(n_features, 16))
        return self._count("n_coordinates")
