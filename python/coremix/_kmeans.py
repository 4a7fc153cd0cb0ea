"""k-means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _coremix
from ._base import CoremixEstimator, threads_of
from ._checks import check_fitted
from ._coremix import Scan
from ._estimator import Transformer
from ._input import Rows, weights_of
from ._parameters import OfChains, OfKMeans, OfMetric, OfSeeds
from ._sklearn import contained

# Names of algorithms in the core.
ALGORITHMS = {
    "fast": "fast",
    "lloyd": "k-means",
    "k-means-c-prime": "k-means-c-prime",
    "lazy-k-means": "lazy-k-means",
    "lwcs-k-means": "lwcs-k-means",
}


class CoremixKMeans(OfMetric, OfKMeans, CoremixEstimator, Transformer):
    """Base of k-means: what all its algorithms share."""

    cluster_centers_: NDArray[np.floating]
    labels_: NDArray[np.int32]
    inertia_: float
    sizes_: NDArray[np.float64]

    _clusters = "n_clusters"
    _elsewhere: ClassVar[dict[str, str]] = {
        "labels_": "fit(X) with compute_labels=True sets it, and predict(X) has labels",
        "inertia_": "fit(X) with compute_labels=True sets it, and score(X) has minus the same",
        "means_": "cluster_centers_ is its name",
        "centroids": "cluster_centers_ is its name",
        "obj": "inertia_ is the error, report_['free_energies'] its course",
        "score_samples": "KMeans has no densities, GaussianMixture has",
        "density_threshold": "KMeans has no densities, GaussianMixture has",
        "sample": "KMeans has no densities to draw from, GaussianMixture has",
        "bic": "KMeans has no densities, GaussianMixture has; coremix.sweep has criteria for the number of clusters",
        "aic": "KMeans has no densities, GaussianMixture has; coremix.sweep has criteria for the number of clusters",
        "marginal": "KMeans has no densities, GaussianMixture has",
        "condition": "KMeans has no densities, GaussianMixture has",
        "weights_": "KMeans has no proportions, GaussianMixture has; sizes_ has the weight of each cluster",
        "covariances_": "KMeans has no covariances, GaussianMixture has",
        "predict_proba": "KMeans has no shares, GaussianMixture has; predict_top(X, m) has those of its mixture",
    }
    _families: ClassVar[tuple[str, ...]] = ("tied-spherical", "von-mises-fisher")

    def _takes_sparse(self) -> bool:
        return True

    def _takes_missing(self) -> bool:
        return self.metric != "cosine"

    def _initial(self) -> tuple[str, ArrayLike | None]:
        if isinstance(self.init, str) and self.init == "k-means++":
            return "init", None
        if isinstance(self.init, str) or callable(self.init):
            rule = "must be 'k-means++', or an array of initial centres, such as rows of X"
            raise ValueError(f"init = {self.init!r}: {rule}")
        return "init", self.init

    def _distinct(self, found: dict[str, Any]) -> float:
        with_rows = self.n_clusters - found["report"]["zero_mass"]
        return with_rows if found["distinct"] is None else min(with_rows, found["distinct"])

    def fit(self, X: Rows, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Finds the centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), an Arrow table, or rows that are not in memory
            Read without a copy if it is an array of float32, float64, float16, uint8 or int8. :func:`coremix.scan` says which
            rows need not be in memory.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or None
            A row of weight w counts as w copies of it, a row of weight 0 as absent.
        """
        for stale in ("labels_", "inertia_", "sizes_"):
            self.__dict__.pop(stale, None)
        self._fit_model(X, sample_weight)
        return self

    def _set_parameters(self, parameters: dict[str, Any]) -> None:
        self.cluster_centers_ = parameters["means"]

    def _after_fit(self, rows: Any, weights: NDArray[np.float64] | None, found: dict[str, Any]) -> None:
        if self.compute_labels:
            threads = threads_of(self.n_jobs)
            labels, sizes = found["labels"], found["sizes"]
            if not isinstance(rows, Scan):
                self.labels_ = self._model.predict(rows, threads) if labels is None else labels
                sizes = np.bincount(self.labels_, weights, len(self.cluster_centers_)).astype(np.float64)
            self.inertia_ = self._model.quantization_error(rows, weights, threads)
            self.sizes_ = self._model.sizes(rows, weights, threads) if sizes is None else sizes

    def fit_predict(self, X: Rows, y: object = None, sample_weight: ArrayLike | None = None) -> NDArray[np.int32]:
        """:meth:`fit` on ``X``, ``y`` and ``sample_weight``, then the nearest centre of each row: shape (n_samples,)."""
        X = self._rereadable(X)
        self.fit(X, y, sample_weight)
        return self.labels_ if "labels_" in self.__dict__ else self.predict(X)

    def transform(self, X: Rows) -> NDArray[np.floating]:
        """The distances of the rows of ``X`` to all centres: shape (n_samples, n_clusters)."""
        rows = self._ask(X)
        self._warn_if_large(len(rows), "transform")
        return contained(self, self._model.distances(rows, threads_of(self.n_jobs)), X)

    def fit_transform(self, X: Rows, y: object = None, sample_weight: ArrayLike | None = None) -> NDArray[np.floating]:
        """:meth:`fit` on ``X``, ``y`` and ``sample_weight``, then :meth:`transform` of the same rows."""
        X = self._rereadable(X)
        return self.fit(X, y, sample_weight).transform(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the columns of :meth:`transform`: that of the class, and numbers. ``input_features`` must be those of the fit."""
        check_fitted(self)
        given, known = input_features, getattr(self, "feature_names_in_", None)
        if given is not None and known is not None and list(np.asarray(given)) != list(known):
            raise ValueError("input_features is not equal to feature_names_in_")
        if given is not None and len(np.asarray(given)) != self.n_features_in_:
            raise ValueError(f"input_features should have length equal to number of features ({self.n_features_in_}), got {given}")
        name = type(self).__name__.lower()
        return np.asarray([f"{name}{c}" for c in range(len(self.cluster_centers_))], dtype=object)

    def score(self, X: Rows, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the sum of squared distances of the rows of ``X`` to their nearest centres, times ``sample_weight``.

        ``y`` is ignored.
        """
        rows = self._ask(X)
        weights = weights_of(sample_weight, rows)
        return -self._model.quantization_error(rows, weights, threads_of(self.n_jobs))

    def to_sklearn(self) -> Any:
        """A fitted ``sklearn.cluster.KMeans`` with the same centres."""
        from ._convert import k_means

        return k_means(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _core_settings(self, clusters: int) -> tuple[dict[str, Any], dict[str, str]]:
        if not isinstance(self.compute_labels, (bool, np.bool_)):
            raise TypeError(f"compute_labels = {self.compute_labels!r}: must be True or False")
        return super()._core_settings(clusters)


@dataclass(kw_only=True, repr=False, eq=False)
class KMeans(OfChains, OfSeeds, CoremixKMeans):
    """k-means, by default the algorithm ``fast``: about the error of converged k-means++, in a fraction of its time.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    algorithm : str, default="fast"
        ``"fast"`` (on coresets, then on all rows, with split and merge), ``"lloyd"``, ``"k-means-c-prime"`` (each row is
        shared by its ``c_prime`` nearest clusters), ``"lazy-k-means"`` (a row changes its cluster only for one that is
        nearer by a factor 1 + ``epsilon``) or ``"lwcs-k-means"`` (on a lightweight coreset).
    metric : {"euclidean", "cosine"}, default="euclidean"
        With ``"cosine"`` it is spherical k-means: rows are brought to length 1, in ``fit`` and in every question, and centres have
        length 1. Squared distances, and ``inertia_``, are then 2 - 2 cos.
    init : "k-means++" or array of shape (n_clusters, n_features), default="k-means++"
        Where the clusters start: at seeds that the algorithm draws in the manner of k-means++, or at these means.
    n_init : int or "auto", default=1
        Restarts; the best one is kept. "auto": 1.
    max_iter : int or None, default=None
        Most iterations of a phase. None: 100 for ``fast``, 200 for the others.
    tol : float or None, default=None
        The fit ends when an iteration gains less than about this share of the quantization error. None: 1e-3, or less
        where iterations take little time.
    stop_rule : {"per-coordinate", "relative-to-free-energy", "remaining", "remaining-per-row"} or None, default=None
        What a gain is compared to ([E19] of the equations), in words of Rust. None: "remaining" for ``fast``, "remaining-per-row"
        where all components share each row, "per-coordinate" for the others.
    standardise : bool, default=False
        Fits columns of deviation 1, for columns in different units. Centres are in the units of the columns all the same, and the
        model takes rows as they are; distances and ``inertia_`` are those of the standardised columns.
    allow_missing : bool, default=False
        NaN, and nulls of tables, are missing values. A row counts by what is known of it: labels and densities are by its known columns,
        a mean is that of the rows that know the column. Squared distances and ``inertia_`` are those over known columns, times all columns
        by known ones. Otherwise such a value is an error. Cosine and :class:`SparsifiedGmm` need all values.
    coreset_size : int or None, default=None
        Draws of the coreset. None: the default of the algorithm; only ``fast`` and ``lwcs-k-means`` have one.
    c_prime : int, default=3
        Clusters that share a row, of ``k-means-c-prime``; all, where there are fewer.
    epsilon : float, default=0.1
        How much nearer a cluster must be, of ``lazy-k-means``.
    greedy : bool, default=False
        Several candidates for each seed of k-means++; ``fast`` has seeds of its own.
    refined : bool, default=False
        Start at the means of ``fast``, not at seeds of k-means++.
    chain : int or None, default=None
        Length of the chains that draw the seeds, of ``lwcs-k-means`` (AFK-MC²). None: 20.
    memory : int, str or None, default=None
        What the fit may take, as bytes or text such as ``"1GiB"``: ``fast`` works on smaller coresets, and less than a fit needs in
        any case is an error that says how much that is. Rows in memory, and memory maps, do not count, nor the copies that
        ``merge_rows`` makes of them; rows of :func:`coremix.scan` do. None: no limit, and that of the scan.
    compute_labels : bool, default=True
        Whether ``fit`` computes ``labels_`` and ``inertia_``: up to two passes over all rows and clusters.
    merge_rows : {"auto", True, False}, default="auto"
        Whether equal rows become one, with the sum of their weights, in ascending order. Then the fit depends neither on
        the order of the rows, nor on whether rows are repeated or weighted. "auto": up to 10,000 rows.
    warm_start : bool, default=False
        Whether a further fit starts at the centres of the one before.
    n_jobs : int or None, default=None
        Threads. None and -1: one per processor, or as many as ``RAYON_NUM_THREADS`` says. The result has the same bits.
    random_state : int, RandomState instance or None, default=None
        An integer is the seed of the fit, in Rust and of the command as well.
    verbose : int, default=0
        1: a line says how far the fit is, and how much time is left. 2: each step of the fit prints a line.
    callback : callable or None, default=None
        Called with a dictionary after each step of the fit. Return False to stop.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,)
        The nearest centre of each row, exactly. A fit of rows that are not in memory, such as a :func:`coremix.scan`, has none:
        call ``predict`` or ``assign``.
    inertia_ : float
        Sum of weighted squared distances of the rows to their nearest centres. After ``partial_fit`` it is about the rows of
        the coreset.
    sizes_ : ndarray of shape (n_clusters,)
        The sum of the weights of the rows of each cluster.
    n_iter_ : int
        Iterations of all phases.
    converged_ : bool
    report_ : Report
        What the fit did, and what it cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    See Also
    --------
    GaussianMixture : Clusters that overlap, with widths and probabilities.
    VcGmm : Many overlapping clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from coremix import KMeans
    >>> X = np.array([[1.0, 0.0], [1.0, 2.0], [1.0, 4.0], [9.0, 0.0], [9.0, 2.0], [9.0, 4.0]])
    >>> kmeans = KMeans(n_clusters=2, init=X[[0, 3]], random_state=0).fit(X)
    >>> kmeans.cluster_centers_
    array([[1., 2.],
           [9., 2.]])
    >>> kmeans.predict([[0.0, 0.0], [12.0, 3.0]])
    array([0, 1], dtype=int32)
    >>> kmeans.inertia_
    16.0
    """

    algorithm: Literal["fast", "lloyd", "k-means-c-prime", "lazy-k-means", "lwcs-k-means"] = "fast"
    c_prime: int = 3
    epsilon: float = 0.1

    def _settings(self) -> dict[str, Any]:
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm = {self.algorithm!r}: must be one of {', '.join(map(repr, ALGORITHMS))}")
        settings = {name: _coremix.settings(core) for name, core in ALGORITHMS.items()}
        own, default = settings[self.algorithm], type(self)()
        found = {"algorithm": ALGORITHMS[self.algorithm]}
        for core in sorted({setting for names in settings.values() for setting in names}):
            name = self._names.get(core, core)
            if name == "memory" or name not in self._get_param_names():
                continue
            value = getattr(self, name)
            if core in own:
                found[core] = value
            elif value != getattr(default, name):
                have = " and ".join(repr(other) for other, its in settings.items() if core in its)
                raise ValueError(f"{name} = {value!r}: {self.algorithm!r} does not use it, but {have}: leave it out")
        return found
