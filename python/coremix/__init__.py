"""Clustering and mixture models at large scale, with scikit-learn's interface."""

from . import partitions
from ._bayesian import BayesianGaussianMixture
from ._coremix import Model, __version__
from ._gaussian import DGmm, GaussianMixture, SparsifiedGmm, VcGmm
from ._kmeans import KMeans
from ._report import Report
from .partitions import assign, merge, sample, stats, update

__all__ = [
    "BayesianGaussianMixture",
    "DGmm",
    "GaussianMixture",
    "KMeans",
    "Model",
    "Report",
    "SparsifiedGmm",
    "VcGmm",
    "__version__",
    "assign",
    "merge",
    "partitions",
    "sample",
    "stats",
    "update",
]
