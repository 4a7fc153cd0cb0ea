"""The classes of scikit-learn that estimators here inherit from. It has no types: ``_sklearn.pyi`` says what is inherited."""

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, DensityMixin, TransformerMixin

__all__ = ["BaseEstimator", "ClassNamePrefixFeaturesOutMixin", "ClusterMixin", "DensityMixin", "TransformerMixin"]
