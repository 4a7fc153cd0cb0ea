"""Rows of which 30 % of all values are removed: a mixture of the known values, compared with mixtures of rows that were filled in.

python python/benchmarks/missing.py FOLDER [COVARIANCE...]

FOLDER has NAME.npy and NAME.labels.npy of the sets below. For each set, covariance and way, medians over five removals:
the adjusted Rand index of the labels of the rows with their holes; the mean log-density of the whole rows; the root of the mean
squared error of the values that were removed, in deviations of their columns; seconds of filling in and fitting.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score

from coremix import GaussianMixture

SETS = ["iris", "wine", "statlog", "s3", "digits"]
SEEDS = range(5)


def mixture(k, kind, **settings):
    return GaussianMixture(k, covariance_type=kind, n_init=3, random_state=0, standardise=True, prior_rows=1, **settings)


def known(holes, k, kind):
    """The mixture of what is known, labels, and the rows filled in by it."""
    fitted = mixture(k, kind, allow_missing=True).fit(holes)
    return fitted, fitted.predict(holes), fitted.impute(holes)


def filled_by(imputer):
    def way(holes, k, kind):
        filled = imputer().fit_transform(holes)
        fitted = mixture(k, kind).fit(filled)
        return fitted, fitted.predict(filled), filled

    return way


WAYS = {
    "what is known": known,
    "means filled in": filled_by(SimpleImputer),
    "IterativeImputer": filled_by(lambda: IterativeImputer(random_state=0)),
}


def main():
    folder, kinds = Path(sys.argv[1]), sys.argv[2:] or ["diag", "tied", "full"]
    warnings.simplefilter("ignore")
    print("| set | covariances | way | Rand index | log-density | error of values | seconds |\n|---|---|---|---|---|---|---|")
    for name in SETS:
        x, labels = np.load(folder / f"{name}.npy").astype(np.float64), np.load(folder / f"{name}.labels.npy")
        x = x[:, x.std(axis=0) > 0.3 * x.std(axis=0).mean()]
        k, deviations = len(np.unique(labels)), x.std(axis=0)
        for kind in kinds:
            for way, fit in WAYS.items():
                found = []
                for seed in SEEDS:
                    gone = np.random.default_rng(seed).random(x.shape) < 0.3
                    gone[gone.all(axis=1), 0] = False
                    holes = np.where(gone, np.nan, x)
                    started = time.perf_counter()
                    fitted, own, filled = fit(holes, k, kind)
                    seconds = time.perf_counter() - started
                    error = np.sqrt(np.mean(((filled - x) / deviations)[gone] ** 2))
                    found.append((adjusted_rand_score(labels, own), fitted.score(x), error, seconds))
                rand, density, error, seconds = np.median(found, axis=0)
                print(f"| {name} | {kind} | {way} | {rand:.3f} | {density:.2f} | {error:.3f} | {seconds:.3f} |", flush=True)


main()
