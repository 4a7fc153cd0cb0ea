"""The classes of scikit-learn that estimators here inherit from, and scipy's test of sparse matrices. They have no types:
``_sklearn.pyi`` says what is used."""

from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, DensityMixin, TransformerMixin

__all__ = ["BaseEstimator", "ClassNamePrefixFeaturesOutMixin", "ClusterMixin", "DensityMixin", "TransformerMixin", "issparse"]
