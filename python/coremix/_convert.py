"""Fitted models as estimators of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._precisions import precision_roots, precisions_of
from ._sklearn import needed

with needed("to_sklearn"):
    from sklearn import cluster
    from sklearn import mixture as sklearn_mixture


def _common(ours: Any, theirs: Any) -> Any:
    theirs.n_features_in_ = ours.n_features_in_
    if hasattr(ours, "feature_names_in_"):
        theirs.feature_names_in_ = ours.feature_names_in_
    # A file of the command or of Rust does not say.
    theirs.n_iter_ = getattr(ours, "n_iter_", 1)
    return theirs


def k_means(ours: Any) -> cluster.KMeans:
    """k-means with the same centres."""
    if ours._model.family == "von-mises-fisher":
        raise ValueError("scikit-learn's KMeans has no cosine: put a Normalizer before a KMeans without metric='cosine'")
    if ours._model.standardised:
        raise ValueError("scikit-learn's KMeans has no units of columns: put a StandardScaler before a KMeans without standardise")
    theirs = _common(ours, cluster.KMeans(n_clusters=len(ours.cluster_centers_), n_init=1))
    theirs.cluster_centers_ = ours.cluster_centers_
    theirs._n_features_out = len(ours.cluster_centers_)
    theirs._n_threads = 1
    for name in ("labels_", "inertia_"):
        if hasattr(ours, name):
            setattr(theirs, name, getattr(ours, name))
    return theirs


def mixture(ours: Any) -> Any:
    """A mixture with the same densities; of a Dirichlet process, with the same posteriors."""
    parameters = ours._model.parameters()
    if parameters["family"] == "dirichlet-process":
        return _bayesian(ours, parameters)
    if parameters["family"] == "von-mises-fisher":
        raise ValueError("scikit-learn has no mixture of directions")
    covariances, kind = ours.covariances_, ours._kind()
    if parameters.get("full") is not None:
        covariances, kind = parameters["full"], "full"
    theirs = sklearn_mixture.GaussianMixture(n_components=len(ours.means_), covariance_type=kind)
    return _parameters(ours, theirs, covariances)


def _bayesian(ours: Any, parameters: dict[str, Any]) -> sklearn_mixture.BayesianGaussianMixture:
    theirs = sklearn_mixture.BayesianGaussianMixture(n_components=len(ours.means_), covariance_type="full")
    theirs.mean_precision_ = parameters["mean_precisions"]
    theirs.degrees_of_freedom_ = parameters["degrees_of_freedom"]
    theirs.weight_concentration_ = (parameters["sticks"][:, 0], parameters["sticks"][:, 1])
    return _parameters(ours, theirs, parameters["covariances"])


def _parameters(ours: Any, theirs: Any, covariances: Any) -> Any:
    theirs.weights_ = ours.weights_
    theirs.means_ = np.asarray(ours.means_, dtype=np.float64)
    theirs.covariances_ = covariances
    kind = theirs.covariance_type
    theirs.precisions_cholesky_ = precision_roots(covariances, kind)
    theirs.precisions_ = precisions_of(theirs.precisions_cholesky_, kind)
    theirs.converged_ = getattr(ours, "converged_", True)
    theirs.lower_bound_ = getattr(ours, "lower_bound_", np.nan)
    theirs.lower_bounds_ = [theirs.lower_bound_]
    return _common(ours, theirs)
