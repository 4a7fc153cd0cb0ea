"""Data that several tests use."""

import os

# Before SciPy is imported: otherwise scikit-learn leaves out a check.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest


def blobs(n_samples=3_000, n_features=5, clusters=6, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    means = rng.normal(scale=10, size=(clusters, n_features))
    labels = rng.integers(clusters, size=n_samples)
    return (means[labels] + rng.normal(size=(n_samples, n_features))).astype(dtype)


@pytest.fixture
def X():
    return blobs()


@pytest.fixture
def bytes_like():
    """Integers that every number type holds."""
    return np.clip(np.round(blobs(2_000) * 2), 0, 100)
