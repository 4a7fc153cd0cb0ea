"""Clustering and mixture models at large scale, with scikit-learn's interface."""

from difflib import get_close_matches
from typing import Any

from . import exceptions, partitions, plots
from ._bayesian import BayesianGaussianMixture
from ._coremix import Arrow, Model, Predictor, Scan, __version__
from ._gaussian import DGmm, GaussianMixture, SparsifiedGmm, VcGmm
from ._kmeans import KMeans
from ._report import Report
from ._scan import scan
from ._sweep import Sweep, sweep
from ._table import TableMixture
from .partitions import assign, merge, sample, stats, update

__all__ = [
    "Arrow",
    "BayesianGaussianMixture",
    "DGmm",
    "GaussianMixture",
    "KMeans",
    "Model",
    "Predictor",
    "Report",
    "Scan",
    "SparsifiedGmm",
    "Sweep",
    "TableMixture",
    "VcGmm",
    "__version__",
    "assign",
    "exceptions",
    "merge",
    "partitions",
    "plots",
    "sample",
    "scan",
    "stats",
    "sweep",
    "update",
]

# Names of other libraries and of Rust, and what to take here.
_ELSEWHERE = {
    "MiniBatchKMeans": "KMeans works on coresets first, and has partial_fit for rows that come in batches",
    "BisectingKMeans": "KMeans is fast with many clusters",
    "Kmeans": "KMeans is its name here",
    "KMedoids": "KMeans(...).fit(X).medoids(X) gives the row nearest to each centre",
    "DBSCAN": "clusters are Gaussian here: take scikit-learn's",
    "HDBSCAN": "clusters are Gaussian here: take scikit-learn's",
    "Gmm": "GaussianMixture is its name here",
    "DpGmm": "BayesianGaussianMixture is its name here",
    "DirichletProcess": "BayesianGaussianMixture is its name here",
    "LazyKMeans": "KMeans(algorithm='lazy-k-means') is it",
    "LwcsKMeans": "KMeans(algorithm='lwcs-k-means') is it",
    "KMeansCPrime": "KMeans(algorithm='k-means-c-prime') is it, or GaussianMixture(c_prime=3)",
    "VarGmmS": "VcGmm(coreset_size='all') is it",
    "Fast": "KMeans is fast",
    "StepMix": "TableMixture has counts and categories",
    "LCA": "TableMixture with categories is it",
    "SpectralClustering": "clusters are Gaussian here: take scikit-learn's",
    "AgglomerativeClustering": "clusters are Gaussian here: take scikit-learn's",
    "k_means": "KMeans(...).fit(X) has labels_, cluster_centers_ and inertia_",
}


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        raise ImportError(f"coremix has no {name}: {_ELSEWHERE[name]}")
    near = get_close_matches(name, __all__, 1)
    raise AttributeError(f"module 'coremix' has no attribute {name!r}{f': is {near[0]} meant?' if near else ''}")
