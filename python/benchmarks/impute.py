"""30 % of the values of scikit-learn's data sets are removed and filled in again: the error in deviations, and the processor time.

    python benchmarks/impute.py
"""

import time
import warnings

import numpy as np
from sklearn import datasets
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer

import coremix

SETS = ["iris", "wine", "diabetes", "breast_cancer", "digits"]


def ours(n_components, kind):
    settings = {"covariance_type": kind, "allow_missing": True, "prior_rows": 1, "random_state": 0, "n_jobs": 1}
    mixture = coremix.GaussianMixture(n_components, **settings)
    return lambda X: mixture.fit(X).impute(X)


WAYS = {
    "mean of the column": SimpleImputer().fit_transform,
    "IterativeImputer": IterativeImputer(random_state=0).fit_transform,
    "diag, 3 components": ours(3, "diag"),
    "full, 1 component": ours(1, "full"),
    "full, 3 components": ours(3, "full"),
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print("| set |", " | ".join(WAYS), "|")
    print("|---" * (1 + len(WAYS)), end="|\n")
    for name in SETS:
        whole = getattr(datasets, f"load_{name}")().data.astype(float)
        whole = whole[:, whole.std(axis=0) > 0]
        whole = (whole - whole.mean(axis=0)) / whole.std(axis=0)
        holes = np.random.default_rng(0).random(whole.shape) < 0.3
        X = np.where(holes, np.nan, whole)
        cells = []
        for fill in WAYS.values():
            began = time.process_time()
            off = (fill(X) - whole)[holes]
            cells.append(f"{np.sqrt(np.mean(off**2)):.3f} ({time.process_time() - began:.2f} s)")
        print(f"| {name}, {len(X)} x {X.shape[1]} |", " | ".join(cells), "|", flush=True)
