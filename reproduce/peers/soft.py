"""Milliseconds of an iteration of scikit-learn's mixtures, on rows like those of `soft` (reproduce/src/bin/soft.rs).

python soft.py [f32 | f64] [spherical] [diag] [tied] [full] [dirichlet]

GaussianMixture, and BayesianGaussianMixture with full covariances. An iteration is the
difference of two fits of 12 and 2 iterations, divided by 10, from the same start: rows at random as means.
"""

import os
import sys
import time
import warnings

import environment

environment.prepare(os.cpu_count())

import numpy as np  # noqa: E402
import threadpoolctl  # noqa: E402
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture  # noqa: E402

environment.check_kernels(threadpoolctl.threadpool_info())

SHAPES = {
    "spherical": [(130_290, 90, 100), (130_290, 90, 10), (262_144, 8, 100)],
    "diag": [(130_290, 90, 100), (130_290, 90, 10), (262_144, 8, 100)],
    "tied": [(100_000, 8, 20), (50_000, 32, 20), (20_000, 90, 20), (10_000, 256, 20)],
}
SHAPES["full"] = SHAPES["dirichlet"] = SHAPES["tied"]


def points(n, d, k):
    """Rows around k centres that overlap."""
    rng = np.random.default_rng(7)
    centres = 0.7 * rng.normal(size=(k, d))
    rows = centres[np.arange(n) % k] + rng.normal(size=(n, d))
    return rows.astype(np.float64 if "f64" in sys.argv else np.float32)


def model(kind, k, iterations):
    settings = dict(n_components=k, tol=0.0, max_iter=iterations, init_params="random_from_data", random_state=0)
    if kind == "dirichlet":
        return BayesianGaussianMixture(covariance_type="full", weight_concentration_prior=1.0, **settings)
    return GaussianMixture(covariance_type=kind, **settings)


def seconds(kind, x, k, iterations):
    started = time.perf_counter()
    model(kind, k, iterations).fit(x)
    return time.perf_counter() - started


def main():
    warnings.filterwarnings("ignore")
    kinds = [kind for kind in sys.argv[1:] if kind in SHAPES] or list(SHAPES)
    for kind in kinds:
        for n, d, k in SHAPES[kind]:
            x = points(n, d, k)
            few, many = seconds(kind, x, k, 2), seconds(kind, x, k, 5 if kind == "dirichlet" else 7)
            ms = 1e3 * (many - few) / (3 if kind == "dirichlet" else 5)
            print(f"{n:8}{d:5}{k:6}  {kind:>10}{ms:14.1f}", flush=True)


if __name__ == "__main__":
    main()
