"""Pictures of fitted models, by matplotlib, which is imported when one is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._axes import axes_of, whole_ticks
from ._base import CoremixEstimator
from ._input import Rows
from ._mixture import CoremixMixture
from ._sweep import Sweep

__all__ = ["ellipses", "sizes", "sweep"]

# Deviations at which ellipses are drawn: they hold 39 and 86 % of the rows of a Gaussian in two dimensions.
DEVIATIONS = (1, 2)


def sizes(estimator: CoremixEstimator, X: Rows, axes: Any = None) -> Any:
    """Draws how many rows of ``X`` each cluster of ``estimator`` has, the largest first, into ``axes``. Returns the axes."""
    axes = axes_of(axes)
    found = np.sort(estimator.sizes(X))[::-1]
    axes.stairs(found, np.arange(len(found) + 1) + 0.5)
    # Sizes that are alike are not on the frame.
    axes.set(xlabel="cluster, the largest first", ylabel="rows", ylim=(0, 1.05 * found[0]))
    whole_ticks(axes)
    return axes


def sweep(found: Sweep, axes: Any = None) -> Any:
    """Draws each criterion of the sweep ``found`` over the number of clusters into ``axes``, with a line at its choice. Returns
    the axes."""
    return found.plot(axes)


def ellipses(mixture: CoremixMixture, X: Rows | None = None, columns: tuple[int, int] = (0, 1), axes: Any = None) -> Any:
    """Draws the components of a mixture in two columns: ellipses at one and two deviations, whose strength follows the mixing
    proportions. With ``X`` the rows are drawn, too. Returns the axes."""
    axes = axes_of(axes)
    from matplotlib.patches import Ellipse

    if X is not None:
        points = np.asarray(X)[:, list(columns)]
        axes.scatter(*points.T, s=2, c=mixture.predict(X) % 10, cmap="tab10", alpha=0.5, rasterized=True)
    strongest = mixture.weights_.max()
    for mean, covariance, weight in zip(mixture.means_, _matrices(mixture), mixture.weights_, strict=True):
        if weight <= 0:
            continue
        values, vectors = np.linalg.eigh(covariance[np.ix_(columns, columns)])
        angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
        for deviations in DEVIATIONS:
            height, width = 2 * deviations * np.sqrt(values)
            alpha = min(0.2 + 0.8 * weight / strongest, 1.0)
            axes.add_patch(Ellipse(mean[list(columns)], width, height, angle=angle, fill=False, alpha=alpha))
    axes.autoscale_view()
    names = getattr(mixture, "feature_names_in_", [f"column {j}" for j in range(mixture.n_features_in_)])
    axes.set(xlabel=names[columns[0]], ylabel=names[columns[1]])
    return axes


def _matrices(mixture: CoremixMixture) -> Any:
    """The covariances as matrices (k, d, d)."""
    k, d = mixture.means_.shape
    own = np.asarray(mixture.covariances_)
    if own.ndim == 3:
        return own
    if mixture._kind() == "tied":
        return np.broadcast_to(own, (k, d, d))
    return np.broadcast_to(own.reshape(k, -1), (k, d))[:, :, None] * np.eye(d)
