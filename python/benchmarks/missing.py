"""Rows of which 30 % of all values are removed: a mixture of the known values, compared with mixtures of rows that were filled in.

    python benchmarks/missing.py [SET.npy...]

on data sets of scikit-learn (of digits 600 rows, and the columns in which 60 or more differ from the median), on a generated one
whose groups have two factors each, and on others with labels in SET.labels.npy. For each set, covariance and way, medians over three removals:
the adjusted Rand index of the labels of the rows with their holes; the mean log-density of the whole rows; the root of the mean
squared error of the values that were removed, in deviations of their columns; seconds of filling in and fitting.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score

from coremix import GaussianMixture

SETS = ["iris", "wine", "breast_cancer", "digits"]
KINDS = ["diag", "tied", "full", "factors"]
SEEDS = range(3)
FILLERS = {"known values": None, "means filled in": SimpleImputer(), "IterativeImputer": IterativeImputer(random_state=0)}


def sets():
    for name in SETS:
        x, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
        x, labels = (x[:600], labels[:600]) if name == "digits" else (x, labels)
        yield name, x[:, (x != np.median(x, axis=0)).sum(axis=0) >= 60], labels
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=600)
    means, loadings = 2 * rng.normal(size=(4, 12)), rng.normal(size=(4, 12, 2))
    along = np.einsum("njq,nq->nj", loadings[labels], rng.normal(size=(600, 2)))
    yield "two factors", means[labels] + along + 0.5 * rng.normal(size=(600, 12)), labels
    for path in map(Path, sys.argv[1:]):
        yield path.stem, np.load(path).astype(float), np.load(path.with_suffix(".labels.npy"))


def measured(x, labels, holes, gone, filler):
    """The numbers of each kind of covariances."""
    started = time.perf_counter()
    rows = holes if filler is None else filler.fit_transform(holes)
    filling = time.perf_counter() - started
    for kind in KINDS:
        settings = {"covariance_type": kind, "n_init": 3, "standardise": True, "prior_rows": 1, "allow_missing": filler is None}
        settings["n_factors"] = 2 if kind == "factors" else None
        started = time.perf_counter()
        mixture = GaussianMixture(len(np.unique(labels)), random_state=0, **settings).fit(rows)
        filled = mixture.impute(rows) if filler is None else rows
        seconds = filling + time.perf_counter() - started
        error = np.sqrt(np.mean(((filled - x) / x.std(axis=0))[gone] ** 2))
        yield adjusted_rand_score(labels, mixture.predict(rows)), mixture.score(x), error, seconds


def main():
    warnings.simplefilter("ignore")
    print("| set | covariances | fitted to | Rand index | log-density | error of values | seconds |\n|---|---|---|---|---|---|---|")
    for name, x, labels in sets():
        found = {way: [] for way in FILLERS}
        for seed in SEEDS:
            gone = np.random.default_rng(seed).random(x.shape) < 0.3
            gone[gone.all(axis=1), 0] = False
            for way, filler in FILLERS.items():
                found[way].append(list(measured(x, labels, np.where(gone, np.nan, x), gone, filler)))
        for place, kind in enumerate(KINDS):
            for way in FILLERS:
                rand, density, error, seconds = np.median(np.array(found[way])[:, place], axis=0)
                print(f"| {name} | {kind} | {way} | {rand:.3f} | {density:.2f} | {error:.3f} | {seconds:.3f} |", flush=True)


main()
