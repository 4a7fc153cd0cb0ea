"""Parameters by name, and the protocol of scikit-learn's estimators."""

from __future__ import annotations

import inspect
from copy import deepcopy
from html import escape
from typing import Any, Literal, Self

from . import _sklearn

# A request that stays as it is, in scikit-learn's word.
UNCHANGED = "$UNCHANGED$"
# The text of a value is cut beyond this.
LONGEST = 120


class Estimator:
    """An estimator, whose parameters are those of ``__init__``. None of them is an estimator."""

    # Whether scikit-learn is to give weights to methods, by their names, and the container of what ``transform`` gives.
    _requests: dict[str, Any] = {}
    _container: str | None = None

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """The names of the parameters, sorted."""
        parameters = inspect.signature(cls.__init__).parameters.values()
        named = [own.name for own in parameters if own.kind not in (own.VAR_POSITIONAL, own.VAR_KEYWORD)]
        return sorted(named[1:])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name. ``deep`` is for scikit-learn: no parameter has parameters of its own."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **params: Any) -> Self:
        """Sets parameters by name: all of ``params``, or none if one of them is unknown."""
        known = self._get_param_names()
        for name in params:
            if name not in known:
                raise ValueError(f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {known!r}.")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        default = inspect.signature(type(self).__init__).parameters
        texts = {name: _text(value) for name, value in self.get_params(deep=False).items()}
        changed = [f"{name}={text}" for name, text in texts.items() if text != _text(default[name].default)]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    def __sklearn_clone__(self) -> Self:
        """An estimator that is not fitted, with copies of the parameters."""
        own = type(self)(**{name: deepcopy(value) for name, value in self.get_params(deep=False).items()})
        for name in ("_requests", "_container"):
            if name in self.__dict__:
                setattr(own, name, deepcopy(self.__dict__[name]))
        return own

    def __sklearn_tags__(self) -> Any:
        return _sklearn.double(self).__sklearn_tags__()

    def get_metadata_routing(self) -> Any:
        """How scikit-learn passes weights on to this estimator."""
        return _sklearn.double(self).get_metadata_routing()

    def set_fit_request(self, *, sample_weight: bool | str | None = UNCHANGED) -> Self:
        """Whether scikit-learn is to pass ``sample_weight`` on to ``fit``."""
        return self._request("fit", sample_weight)

    def set_partial_fit_request(self, *, sample_weight: bool | str | None = UNCHANGED) -> Self:
        """Whether scikit-learn is to pass ``sample_weight`` on to ``partial_fit``."""
        return self._request("partial_fit", sample_weight)

    def set_score_request(self, *, sample_weight: bool | str | None = UNCHANGED) -> Self:
        """Whether scikit-learn is to pass ``sample_weight`` on to ``score``."""
        return self._request("score", sample_weight)

    def _request(self, method: str, asked: bool | str | None) -> Self:
        # scikit-learn checks it.
        getattr(_sklearn.double(self), f"set_{method}_request")(sample_weight=asked)
        if asked != UNCHANGED:
            self._requests = {**self._requests, method: asked}
        return self


class Transformer(Estimator):
    """An estimator with a ``transform``."""

    def set_output(self, *, transform: Literal["default", "pandas", "polars"] | None = None) -> Self:
        """Whether ``transform`` gives arrays or data frames, by scikit-learn."""
        if transform is not None:
            _sklearn.double(self).set_output(transform=transform)
            self._container = transform
        return self


def _text(value: object) -> str:
    """A value in one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"
