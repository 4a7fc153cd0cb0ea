"""Mixtures of tables, whose columns are of different kinds."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar, Literal, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from . import _coremix
from ._base import threads_of
from ._checks import check_fitted
from ._gaussian import GaussianMixture
from ._input import Rows
from ._mixture import CoremixMixture
from ._parameters import Covariance, OfPrior


class CoremixTable(CoremixMixture):
    """Base of the mixtures of tables."""

    variances_: NDArray[np.float64]
    probabilities_: dict[int, NDArray[np.float64]]
    categories_: dict[int, NDArray[Any]]

    def _set_parameters(self, parameters: dict[str, Any]) -> None:
        self.__dict__.pop("covariances_", None)
        super()._set_parameters(parameters)
        self.variances_ = parameters["variances"]
        self.probabilities_ = parameters["probabilities"]
        texts, names = self._model.texts, self._model.names or []
        self.categories_ = {
            j: np.asarray([texts[names[j]][int(code)] for code in codes], dtype=object) if names and names[j] in texts else codes
            for j, codes in parameters["codes"].items()
        }


@dataclass(kw_only=True, repr=False, eq=False)
class TableMixture(OfPrior, CoremixTable):
    """A mixture for tables of mixed columns: numbers, counts and categories.

    Within a component the columns are independent: numbers are normal, counts are Poisson, and categories have a probability each. With
    categories alone it is latent class analysis. With a ``covariance_type``, numbers have a covariance together.
    ``allow_missing=True`` leaves missing values out of the likelihood.

    Parameters
    ----------
    n_components : int, default=8
        The number of components.
    counts : sequence of int or str, default=()
        The columns that are counts, 0, 1, 2 and so on: by their numbers, or by their names.
    categories : sequence of int or str, default=()
        The columns that are categories: text, true and false, dates, or whole numbers from 0 on as codes. Text is kept in the order of
        its letters, with the code 0 for the first, and blanks around it do not count. Rows that are asked about later must have text where
        the fit had text, and numbers where it had numbers. A category that no row of the fit had is as unlikely in all components, one in
        10^12. All other columns are numbers.
    covariance_type : {"full", "tied", "diag", "spherical", "factors"} or None, default=None
        The covariance of the numbers, as in :class:`GaussianMixture`. None: each number has a variance of its own.
    n_factors : int or None, default=None
        The number of factors, fewer than numbers.
    prior_rows : float, default=0.0
        Rows of the whole data that each component has in advance, in each column, in rows of mean weight: 0.5 keeps probabilities from
        0, and variances of few rows from their floor. With a ``covariance_type``, numbers have it as in :class:`GaussianMixture`. 0:
        maximum likelihood.
    prior_variance : float or None, default=None
        With a ``covariance_type``, the variance of these rows in every number.
    reg_covar : float, default=0.0
        As in :class:`GaussianMixture`, for the covariance of the numbers.
    n_init : int or "auto", default="auto"
        Restarts; the best one is kept. "auto": 8.
    tol : float or None, default=None
        As in :class:`GaussianMixture`. None: 1e-3.
    greedy : bool, default=False
        Several candidates for each seed.
    coreset_size, max_iter, stop_rule, allow_missing, means_init, memory, merge_rows, warm_start, n_jobs, random_state, verbose, callback
        As in :class:`GaussianMixture`.
    standardise : bool, default=False
        Must be False: kinds of columns have units of their own.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        The mixing proportions.
    means_ : ndarray of shape (n_components, n_features)
        The means of numbers, the rates of counts, and the likeliest category.
    variances_ : ndarray of shape (n_components, n_features)
        The variances of numbers, the rates of counts, and the probability that two categories differ.
    precisions_, precisions_cholesky_ : ndarray of shape (n_components, n_features)
        The inverses of ``variances_``, and their roots.
    covariances_, loadings_, noise_variance_ : ndarray
        With a ``covariance_type``: of the numbers, in the order of their columns, as in :class:`GaussianMixture`.
    probabilities_ : dict of int to ndarray of shape (n_components, n_categories)
        The probabilities of the categories, by the number of their column.
    categories_ : dict of int to ndarray of shape (n_categories,)
        Their texts or codes, in the same order: those that occurred in the fit.
    lower_bound_, converged_, n_iter_, report_, n_features_in_, feature_names_in_
        As in :class:`GaussianMixture`.

    See Also
    --------
    GaussianMixture : All columns are numbers.

    Notes
    -----
    With ``covariance_type`` "full" or "tied", ``prior_rows=1`` keeps components of few rows from collapsing.

    Examples
    --------
    >>> import numpy as np
    >>> from coremix import TableMixture
    >>> rng = np.random.default_rng(0)
    >>> group = np.arange(600) % 2
    >>> X = np.c_[rng.normal(20 + 30 * group), rng.poisson(1 + 8 * group), np.where(rng.random(600) < 0.8, group, 2)]
    >>> mixture = TableMixture(2, counts=[1], categories=[2], random_state=0).fit(X)
    >>> sorted(mixture.variances_[:, 1].round().tolist())
    [1.0, 9.0]
    >>> mixture.probabilities_[2].shape
    (2, 3)
    >>> mixture.divergences().mean(axis=0).argmax().item()  # the first column tells the groups apart most
    0
    """

    _algorithm = "table"
    _families: ClassVar[tuple[str, ...]] = ("product",)
    _others: ClassVar[type[CoremixMixture]] = GaussianMixture
    _elsewhere: ClassVar[dict[str, str]] = CoremixMixture._elsewhere | {
        "covariances_": "variances_ is its name, unless a covariance_type is given"
    }

    n_init: int | Literal["auto"] = "auto"
    counts: Sequence[int | str] = ()
    categories: Sequence[int | str] = ()
    covariance_type: Covariance | None = None
    n_factors: int | None = None
    greedy: bool = False

    def _settings(self) -> dict[str, Any]:
        kinds = ["number"] * self.n_features_in_
        for parameter, kind in (("counts", "count"), ("categories", "category")):
            for column in self._places(parameter, getattr(self, parameter)):
                if kinds[column] not in ("number", kind):
                    raise ValueError(f"column {column} is both in counts and in categories")
                kinds[column] = kind
        if self.prior_variance is not None and self.covariance_type is None:
            rule = "is that of covariances: give a covariance_type; without one each column has rows of its own variance"
            raise ValueError(f"prior_variance = {self.prior_variance!r}: {rule}")
        return super()._settings() | {"columns": kinds}

    def _category_columns(self) -> list[int | str]:
        # A generator gives its columns once.
        for name in ("counts", "categories"):
            if isinstance(given := getattr(self, name), Iterator):
                setattr(self, name, list(given))
        if isinstance(self.categories, (str, numbers.Number)) or not hasattr(self.categories, "__iter__"):
            raise TypeError(f"categories = {self.categories!r}: must be a list of columns")
        known = (c for c in self.categories if isinstance(c, str) or isinstance(c, numbers.Integral) and c >= 0)
        return [c if isinstance(c, str) else int(c) for c in known]

    @property
    def precisions_cholesky_(self) -> NDArray[np.float64]:
        """The roots of ``precisions_``."""
        return 1 / np.sqrt(self.variances_)

    @property
    def precisions_(self) -> NDArray[np.float64]:
        """The inverses of ``variances_``."""
        return 1 / self.variances_

    def _merges(self, rows: Any) -> bool:
        # A prior is in rows of mean weight, and merged rows have the weight of several.
        return super()._merges(rows) and not self.prior_rows

    def impute(self, X: Rows, *, expected: bool = False) -> NDArray[np.floating]:
        """The rows of ``X`` with every missing value filled in: shape (n_samples, n_features).

        Numbers are as expected, given what is known of the row. Counts are the whole numbers nearest to that, or with ``expected`` what is
        expected itself, and categories are the likeliest. So a fit takes the result. NaN stands for missing values only with
        ``allow_missing``.
        """
        rows = self._ask(X)
        return self._model.impute(rows, threads_of(self.n_jobs), expected=bool(expected))

    def explain(self, columns: Iterable[Any] | None = None, top: int = 5) -> list[dict[str, Any]]:
        """The columns that set each cluster apart: those of the largest :meth:`divergences`.

        Parameters
        ----------
        columns : names of the columns or None
            None: the names that the rows of the fit had, else column numbers.
        top : int, default=5
            The number of columns of each cluster, the largest divergence first.

        Returns
        -------
        list of dict
            ``cluster``, ``column``, ``divergence`` (in nats), ``mean`` (as in ``means_``: of a category the likeliest, as its text if it has
            one) and ``share`` (the probability of that category; None in other columns).
        """
        apart = self.divergences()
        names = list((self._column_names() or range(apart.shape[1])) if columns is None else columns)
        if len(names) != apart.shape[1]:
            raise ValueError(f"columns: {len(names)} names for {apart.shape[1]} columns")
        order = np.argsort(-apart, axis=1, kind="stable")[:, : max(int(top), 0)]
        shares = {j: own.max(axis=1) for j, own in self.probabilities_.items()}
        return [
            {
                "cluster": c,
                "column": names[j],
                "divergence": float(apart[c, j]),
                "mean": self._said(int(j), float(self.means_[c, j])),
                "share": float(shares[j][c]) if j in shares else None,
            }
            for c, own in enumerate(order)
            for j in own
        ]

    def _said(self, column: int, value: float) -> Any:
        """A value of a column: of one that was text, the text."""
        names = self._model.names or []
        texts = self._model.texts.get(names[column]) if names else None
        return texts[int(value)] if texts and 0 <= value < len(texts) else value

    def divergences(self) -> NDArray[np.float64]:
        """How much each column sets each component apart from all rows, in nats: shape (n_components, n_features).

        It is the divergence of Kullback and Leibler of the component from one distribution of the same kind for all rows: for numbers the
        normal one with the mean and the variance of the whole mixture, for counts the Poisson one with its mean, and for categories its
        probabilities. 0 for a column that says nothing.
        """
        check_fitted(self)
        return self._model.parameters()["explain"]

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The estimator in the file ``path``, which :meth:`save` wrote, or Rust, or the command ``coremix``."""
        estimator = super().load(path)
        if (blocks := estimator._model.parameters().get("blocks", 1)) > 1:
            raise ValueError(f"{path}: this model has {blocks} blocks of numbers: TableMixture has one")
        return estimator

    @classmethod
    def _of_model(cls, model: _coremix.Model, parameters: dict[str, Any] | None = None) -> Self:
        estimator, found = super()._of_model(model, parameters), model.parameters()
        estimator.covariance_type = found.get("covariance_type")
        estimator.n_factors = found["loadings"].shape[2] if "loadings" in found else None
        kinds = found["kinds"]
        names: list[Any] = estimator._column_names() or list(range(len(kinds)))
        for parameter, kind in (("counts", "count"), ("categories", "category")):
            setattr(estimator, parameter, [name for name, own in zip(names, kinds, strict=True) if own == kind])
        return estimator

    def to_sklearn(self) -> NoReturn:
        """There is none in scikit-learn."""
        raise ValueError("scikit-learn has no mixture of tables")
