"""The inverses of covariances, in the shapes of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np


def precision_roots(covariances: Any, kind: str) -> Any:
    """Roots of the inverses of covariances of a kind of scikit-learn: variances, or matrices (..., d, d)."""
    if kind not in ("full", "tied"):
        return 1 / np.sqrt(covariances)
    # The inverse of the lower factor of a covariance, transposed: scikit-learn multiplies rows with it.
    factors = np.linalg.cholesky(covariances)
    eye = np.broadcast_to(np.eye(factors.shape[-1]), factors.shape)
    return np.swapaxes(np.linalg.solve(factors, eye), -1, -2)


def precisions_of(roots: Any, kind: str) -> Any:
    """The precisions that have these roots."""
    return roots @ np.swapaxes(roots, -1, -2) if kind in ("full", "tied") else roots**2
