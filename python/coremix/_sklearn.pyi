from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["BaseEstimator", "ClassNamePrefixFeaturesOutMixin", "ClusterMixin", "DensityMixin", "TransformerMixin", "issparse"]

class BaseEstimator:
    """Parameters by name, and how estimators are printed. The columns are set by a fit."""

    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def __getstate__(self) -> dict[str, Any]: ...
    def __setstate__(self, state: dict[str, Any]) -> None: ...
    def __repr__(self, N_CHAR_MAX: int = 700) -> str: ...
    def __sklearn_clone__(self) -> Self: ...
    def __sklearn_tags__(self) -> Any: ...
    @classmethod
    def _get_param_names(cls) -> list[str]: ...
    def get_metadata_routing(self) -> Any:
        """How scikit-learn passes weights on to this estimator."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""

    def set_params(self, **params: Any) -> Self:
        """Sets parameters by name."""

class ClassNamePrefixFeaturesOutMixin:
    """Names of the columns of what ``transform`` gives."""

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """The name of the class, and numbers."""

class ClusterMixin:
    """An estimator of clusters."""

    def __sklearn_tags__(self) -> Any: ...
    fit_predict: Callable[..., NDArray[np.int32]]

class DensityMixin:
    """An estimator of a density."""

    def __sklearn_tags__(self) -> Any: ...
    def score(self, X: Any, y: object = None) -> float:
        """The mean log-density."""

class TransformerMixin:
    """An estimator with a ``transform``."""

    def __sklearn_tags__(self) -> Any: ...
    def fit_transform(self, X: Any, y: ArrayLike | None = None, **fit_params: Any) -> NDArray[np.floating]:
        """Fits, and transforms the same rows."""

    def set_output(self, *, transform: Literal["default", "pandas", "polars"] | None = None) -> Self:
        """Whether ``transform`` gives arrays or data frames."""

def issparse(x: object) -> bool: ...
