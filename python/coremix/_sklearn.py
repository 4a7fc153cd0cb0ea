"""Tags, containers and routing of scikit-learn, by its own classes.

Estimators here do not inherit from these: scikit-learn takes seconds to load, and need not be installed. It is loaded when one of these
is asked for, which scikit-learn does itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# The classes that scikit-learn gets for those of estimators here.
_DOUBLES: dict[type, Any] = {}


@contextmanager
def needed(what: str) -> Iterator[None]:
    """Says what to install where an import in this block fails."""
    try:
        yield
    except ImportError as error:
        raise ImportError(f'{what} needs scikit-learn: pip install "coremix[sklearn]"') from error


def issparse(x: object) -> bool:
    """Whether ``x`` is a sparse matrix or array of scipy, which is loaded then."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(x))


def double(estimator: Any) -> Any:
    """An estimator of scikit-learn's own classes with the name, the methods, the requests and the output of this one.

    It is never fitted: ``transform`` gives what ``_found`` is.
    """
    kind = type(estimator)
    if kind not in _DOUBLES:
        _DOUBLES[kind] = _double(kind)
    own = _DOUBLES[kind]()
    own._estimator = estimator
    if estimator._requests:
        from sklearn import config_context

        with config_context(enable_metadata_routing=True):
            for method, asked in estimator._requests.items():
                getattr(own, f"set_{method}_request")(sample_weight=asked)
    if estimator._container is not None:
        own.set_output(transform=estimator._container)
    return own


def _double(kind: type) -> type:
    with needed("this method"):
        from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin, TransformerMixin
    # scikit-learn reads the signatures: which methods take weights.
    members: dict[str, Any] = {name: getattr(kind, name) for name in ("fit", "partial_fit", "score")}
    if not hasattr(kind, "set_output"):
        return type(kind.__name__, (DensityMixin, BaseEstimator), members)
    members["transform"] = lambda self, X: self._found
    members["get_feature_names_out"] = lambda self, names=None: self._estimator.get_feature_names_out(names)
    return type(kind.__name__, (TransformerMixin, ClusterMixin, BaseEstimator), members)


def contained(estimator: Any, found: Any, X: Any) -> Any:
    """The array ``found`` for the rows ``X``, in the container that the estimator or scikit-learn is set to."""
    if estimator._container is None and "sklearn" not in sys.modules:
        return found
    own = double(estimator)
    own._found = found
    return own.transform(X)
