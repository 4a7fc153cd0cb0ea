"""Errors and warnings of estimators. Where scikit-learn is loaded, they are its own of the same names, too."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

__all__ = ["ConvergenceWarning", "NotFittedError"]

_Kind = TypeVar("_Kind", bound=Exception)


class NotFittedError(ValueError, AttributeError):
    """An estimator was asked before it was fitted."""


class ConvergenceWarning(UserWarning):
    """A fit has not converged, or says little for another reason."""


# Classes that are also those of scikit-learn.
_JOINED: dict[Any, Any] = {}


def as_raised(kind: type[_Kind]) -> type[_Kind]:
    """``kind``; where scikit-learn is loaded, a class that is also its own: whoever catches that one has loaded it."""
    ours: Any = kind
    theirs = getattr(sys.modules.get("sklearn.exceptions"), kind.__name__, None)
    if theirs is None:
        return kind
    if kind not in _JOINED:

        def reduced(self: Exception) -> tuple[Any, ...]:
            return _again, (kind, self.args)

        members = {"__doc__": kind.__doc__, "__module__": __name__, "__reduce__": reduced}
        _JOINED[kind] = type(kind.__name__, (ours, theirs), members)
    return _JOINED[kind]


def _again(kind: type[_Kind], parts: tuple[Any, ...]) -> _Kind:
    """One that was pickled, perhaps where scikit-learn was not loaded."""
    return as_raised(kind)(*parts)
