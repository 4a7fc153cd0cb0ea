"""Held-out log-likelihood of mixtures: coremix and scikit-learn, on rows from .npy files and on sets of scikit-learn.

    python benchmarks/likelihood.py [--kinds spherical,diag,bayesian] [--seeds 3] SET:K [SET:K ...]
    python benchmarks/likelihood.py --kinds all --standardise iris wine breast_cancer digits SET.npy [SET.npy ...]

A fifth of the rows is held out, another one for each seed; at most ``--rows`` are used at all. Both libraries fit the others, as
float64, with the same number of components and their own defaults otherwise (``max_iter=200`` for both). Without a K it is the one
among 1, 2, 5, 10 and 20 with the best BIC of coremix's fits to the rows of the first seed, another one for each kind; the Dirichlet
process has at most 20 components. ``--standardise`` brings columns to deviation 1 by the rows that are fitted, and leaves out those
that are constant there. ``--prior`` is the number of rows that covariances of coremix have in advance; scikit-learn has its
``reg_covar``, and no factors.

The table has nats per held-out row, as means over the seeds; the difference has the standard error of its mean over the seeds. A
difference above zero is in favour of coremix. Seconds are medians of one fit.
"""

import argparse
import os
import statistics
import time
import warnings

import kernels  # noqa: F401, before NumPy

import numpy as np
import sklearn.datasets
import sklearn.mixture

import coremix

ALL = "spherical,diag,tied,full,factors:2,factors:5,factors:10,bayesian"
CLUSTERS = (1, 2, 5, 10, 20)


def ours(kind, k, seed, prior):
    if kind == "bayesian":
        return coremix.BayesianGaussianMixture(k, weight_concentration_prior=1.0, max_iter=200, random_state=seed)
    kind, _, factors = kind.partition(":")
    factors = int(factors) if factors else None
    return coremix.GaussianMixture(k, covariance_type=kind, n_factors=factors, max_iter=200, prior_rows=prior, random_state=seed)


def theirs(kind, k, seed):
    """``None`` for kinds that scikit-learn has not."""
    settings = dict(max_iter=200, init_params="k-means++", random_state=seed)
    if kind == "bayesian":
        return sklearn.mixture.BayesianGaussianMixture(
            n_components=k, covariance_type="full", weight_concentration_prior=1.0, **settings
        )
    if kind.startswith("factors"):
        return None
    return sklearn.mixture.GaussianMixture(k, covariance_type=kind, **settings)


def measured(model, fitted, held_out):
    """Nats per held-out row and seconds; None for a fit that ends in an error, with its message."""
    if model is None:
        return None, 0.0, ""
    started = time.perf_counter()
    try:
        model.fit(fitted)
    except ValueError as error:
        return None, 0.0, str(error).splitlines()[0][:80]
    seconds = time.perf_counter() - started
    return float(np.mean(model.score_samples(held_out))), seconds, ""


def rows_of(name):
    loaded = getattr(sklearn.datasets, f"load_{name}", None)
    return np.load(name).astype(np.float64) if loaded is None else loaded(return_X_y=True)[0].astype(np.float64)


def split(x, seed, given):
    """The rows to fit, and those that are held out."""
    order = np.random.default_rng(seed).permutation(len(x))[: given.rows]
    held_out, fitted = x[order[: len(order) // 5]], x[order[len(order) // 5 :]]
    if not given.standardise:
        return fitted, held_out
    deviations = fitted.std(axis=0)
    varying = deviations > 0
    return [(part[:, varying] - fitted[:, varying].mean(axis=0)) / deviations[varying] for part in (fitted, held_out)]


def best_of(kind, x, given):
    """The number of components with the best BIC."""
    if kind == "bayesian":
        return CLUSTERS[-1]
    fitted, _ = split(x, 1, given)
    found = []
    for k in CLUSTERS:
        try:
            found.append((ours(kind, k, 1, given.prior).fit(fitted).bic(fitted), k))
        except ValueError:
            continue
    return min(found)[1] if found else 1


def line(name, kind, k, x, given):
    nats, seconds, fault = ([], []), ([], []), ""
    for seed in range(1, given.seeds + 1):
        fitted, held_out = split(x, seed, given)
        models = ours(kind, k, seed, given.prior), theirs(kind, k, seed)
        pair = [measured(model, fitted, held_out) for model in models]
        fault = fault or pair[0][2] or pair[1][2]
        if pair[0][0] is None or pair[1][0] is None and models[1] is not None:
            continue
        for library, (found, took, _) in enumerate(pair):
            if found is not None:
                nats[library].append(found)
                seconds[library].append(took)
    if not nats[0]:
        return f"| {name} | {kind} | {k} | {fault} | | | | |"
    own = f"| {name} | {kind} | {k} | {np.mean(nats[0]):.3f} |"
    if not nats[1]:
        return f"{own} | | {statistics.median(seconds[0]):.2f} | |"
    off = np.subtract(*map(np.array, nats))
    error = off.std(ddof=1) / len(off) ** 0.5 if len(off) > 1 else float("nan")
    times = " | ".join(f"{statistics.median(each):.2f}" for each in seconds)
    return f"{own} {np.mean(nats[1]):.3f} | {off.mean():+.3f} ({error:.3f}) | {times} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], fromfile_prefix_chars="@")
    parser.add_argument("--kinds", default="spherical,diag,bayesian")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--standardise", action="store_true")
    parser.add_argument("--prior", type=float, default=0.0)
    parser.add_argument("sets", nargs="+", metavar="SET[:K]")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| set | kind | k | coremix | scikit-learn | difference | coremix, s | scikit-learn, s |")
    print("|---|---|---|---|---|---|---|---|")
    for wanted in given.sets:
        path, _, k = wanted.partition(":")
        x, name = rows_of(path), os.path.basename(path).removesuffix(".npy")
        for kind in (ALL if given.kinds == "all" else given.kinds).split(","):
            factors = int(kind.partition(":")[2] or 0)
            if factors >= split(x, 1, given)[0].shape[1]:
                continue
            print(line(name, kind, int(k) if k else best_of(kind, x, given), x, given), flush=True)


if __name__ == "__main__":
    main()
