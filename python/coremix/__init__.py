"""Clustering and mixture models at large scale, with scikit-learn's interface."""

from typing import Any

from . import partitions, plots
from ._bayesian import BayesianGaussianMixture
from ._coremix import Model, Scan, __version__
from ._gaussian import DGmm, GaussianMixture, SparsifiedGmm, VcGmm
from ._kmeans import KMeans
from ._report import Report
from ._scan import scan
from ._sweep import Sweep, sweep
from .partitions import assign, merge, sample, stats, update

__all__ = [
    "BayesianGaussianMixture",
    "DGmm",
    "GaussianMixture",
    "KMeans",
    "Model",
    "Report",
    "Scan",
    "SparsifiedGmm",
    "Sweep",
    "VcGmm",
    "__version__",
    "assign",
    "merge",
    "partitions",
    "plots",
    "sample",
    "scan",
    "stats",
    "sweep",
    "update",
]

# Names of other libraries, and what to take here.
_ELSEWHERE = {
    "MiniBatchKMeans": "KMeans works on coresets first, and has partial_fit for rows that come in batches",
    "BisectingKMeans": "KMeans is fast with many clusters",
    "Kmeans": "KMeans is its name here",
    "KMedoids": "KMeans(...).fit(X).medoids(X) gives the row nearest to each centre",
    "DBSCAN": "clusters are Gaussian here: take scikit-learn's",
    "HDBSCAN": "clusters are Gaussian here: take scikit-learn's",
    "DirichletProcess": "BayesianGaussianMixture is one",
    "LazyKMeans": "KMeans(algorithm='lazy-k-means') is it",
    "VarGmmS": "VcGmm(coreset_size='all') is it",
}


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        raise ImportError(f"coremix has no {name}: {_ELSEWHERE[name]}")
    raise AttributeError(f"module 'coremix' has no attribute {name!r}")
