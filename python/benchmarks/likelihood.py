"""Held-out log-likelihood of mixtures: coremix and scikit-learn, on rows from .npy files.

    python benchmarks/likelihood.py [--kinds spherical,diag,bayesian] [--seeds 3] SET.npy:K [SET.npy:K ...]

A fifth of the rows is held out, another one for each seed; at most ``--rows`` are used at all. Both libraries fit the others, as
float64, with the same number of components and their own defaults otherwise (``max_iter=200`` for both). The table has nats per
held-out row, as means over the seeds; the difference has the standard error of its mean over the seeds. A difference above zero
is in favour of coremix. Seconds are medians.
"""

import argparse
import os
import statistics
import time
import warnings

import kernels  # noqa: F401, before NumPy

import numpy as np
import sklearn.mixture

import coremix


def ours(kind, k, seed):
    if kind == "bayesian":
        return coremix.BayesianGaussianMixture(k, weight_concentration_prior=1.0, max_iter=200, random_state=seed)
    return coremix.GaussianMixture(k, covariance_type=kind, max_iter=200, random_state=seed)


def theirs(kind, k, seed):
    settings = dict(max_iter=200, init_params="k-means++", random_state=seed)
    if kind == "bayesian":
        return sklearn.mixture.BayesianGaussianMixture(
            n_components=k, covariance_type="full", weight_concentration_prior=1.0, **settings
        )
    return sklearn.mixture.GaussianMixture(k, covariance_type=kind, **settings)


def measured(model, fitted, held_out):
    """Nats per held-out row and seconds; None for a fit that ends in an error, with its message."""
    started = time.perf_counter()
    try:
        model.fit(fitted)
    except ValueError as error:
        return None, 0.0, str(error).splitlines()[0][:80]
    seconds = time.perf_counter() - started
    return float(np.mean(model.score_samples(held_out))), seconds, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], fromfile_prefix_chars="@")
    parser.add_argument("--kinds", default="spherical,diag,bayesian")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("sets", nargs="+", metavar="SET.npy:K")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| set | kind | coremix | scikit-learn | difference | coremix, s | scikit-learn, s |")
    print("|---|---|---|---|---|---|---|")
    for wanted in given.sets:
        path, k = wanted.rsplit(":", 1)
        k, x = int(k), np.load(path).astype(np.float64)
        name = os.path.basename(path).removesuffix(".npy")
        for kind in given.kinds.split(","):
            nats, seconds, fault = ([], []), ([], []), ""
            for seed in range(1, given.seeds + 1):
                order = np.random.default_rng(seed).permutation(len(x))[: given.rows]
                held_out, fitted = x[order[: len(order) // 5]], x[order[len(order) // 5 :]]
                pair = [measured(model(kind, k, seed), fitted, held_out) for model in (ours, theirs)]
                fault = fault or pair[0][2] or pair[1][2]
                if pair[0][0] is None or pair[1][0] is None:
                    continue
                for library in (0, 1):
                    nats[library].append(pair[library][0])
                    seconds[library].append(pair[library][1])
            if not nats[0]:
                print(f"| {name}, k = {k} | {kind} | {fault} | | | | |", flush=True)
                continue
            off = np.subtract(*map(np.array, nats))
            error = off.std(ddof=1) / len(off) ** 0.5 if len(off) > 1 else float("nan")
            print(
                f"| {name}, k = {k} | {kind} | {np.mean(nats[0]):.3f} | {np.mean(nats[1]):.3f} | {off.mean():+.3f} ({error:.3f}) "
                f"| {statistics.median(seconds[0]):.2f} | {statistics.median(seconds[1]):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
