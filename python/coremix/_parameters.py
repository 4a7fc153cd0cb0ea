"""The parameters of the estimators, each with its default, written once: estimators are data classes of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

RandomState: TypeAlias = int | np.random.RandomState | None
Callback: TypeAlias = Callable[[dict[str, Any]], object]
Covariance: TypeAlias = Literal["full", "tied", "diag", "spherical", "tied-spherical", "factors"]
StopRule: TypeAlias = Literal["per-coordinate", "relative-to-free-energy", "remaining", "remaining-per-row"]


@dataclass(kw_only=True, repr=False, eq=False)
class Parameters:
    """Parameters of all estimators."""

    coreset_size: int | Literal["all"] | None = None
    n_init: int | Literal["auto"] = 1
    max_iter: int | None = None
    tol: float | None = None
    stop_rule: StopRule | None = None
    standardise: bool = False
    allow_missing: bool = False
    memory: int | str | None = None
    merge_rows: bool | Literal["auto"] = "auto"
    warm_start: bool = False
    n_jobs: int | None = None
    random_state: RandomState = None
    verbose: int = 0
    callback: Callback | None = None


@dataclass(kw_only=True, repr=False, eq=False)
class OfKMeans(Parameters):
    """Parameters of k-means."""

    n_clusters: int = field(default=8, kw_only=False)
    init: Literal["k-means++"] | ArrayLike = "k-means++"
    compute_labels: bool = True


@dataclass(kw_only=True, repr=False, eq=False)
class OfMixture(Parameters):
    """Parameters of mixtures."""

    n_components: int = field(default=8, kw_only=False)
    means_init: ArrayLike | None = None


@dataclass(kw_only=True, repr=False, eq=False)
class OfSeeds:
    """Parameters of algorithms that start at seeds of k-means++."""

    greedy: bool = False
    refined: bool = False


@dataclass(kw_only=True, repr=False, eq=False)
class OfStart:
    """Parameters of these algorithms, in the words of scikit-learn."""

    init_params: Literal["kmeans", "k-means++"] = "kmeans"
    greedy: bool = False


@dataclass(kw_only=True, repr=False, eq=False)
class OfChains:
    """Parameters of algorithms that draw their seeds by chains."""

    chain: int | None = None


@dataclass(kw_only=True, repr=False, eq=False)
class OfPrior:
    """Rows that components have in advance, and a ridge."""

    prior_rows: float = 0.0
    prior_variance: float | None = None
    reg_covar: float = 0.0


@dataclass(kw_only=True, repr=False, eq=False)
class OfProportions(OfPrior):
    """Rows in advance in mixing proportions, too."""

    prior_proportions: float = 0.0


@dataclass(kw_only=True, repr=False, eq=False)
class OfMetric:
    """How rows are compared."""

    metric: Literal["euclidean", "cosine"] = "euclidean"


@dataclass(kw_only=True, repr=False, eq=False)
class OfTruncated(OfMetric, OfProportions, OfChains):
    """Parameters of truncated mixtures."""

    covariance_type: Covariance = "tied-spherical"
    n_factors: int | None = None
    c_prime: int = 3
