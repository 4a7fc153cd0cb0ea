"""Time and error of k-means from NumPy arrays: coremix, scikit-learn and faiss.

    python benchmarks/fit.py FOLDER/kdd04bio.npy 500 --rounds 3

All libraries run in turn on the same rows, as float32 where they do not take others. Seconds are medians over the rounds,
from an array in memory to centres; "with labels" is to the label of each row as well. The error is the mean sum of squared
distances, computed by the same code for all. Slow libraries can be measured in calls of their own with --only.
"""

import argparse
import statistics
import time
import warnings

import kernels  # noqa: F401, before NumPy

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin_min

import coremix


def ours(x, k, seed):
    return coremix.KMeans(k, random_state=seed, compute_labels=False).fit(x).cluster_centers_


def ours_with_labels(x, k, seed):
    return coremix.KMeans(k, random_state=seed).fit(x).cluster_centers_


def scikit_learn(x, k, seed):
    return KMeans(k, n_init=1, random_state=seed).fit(single(x)).cluster_centers_


def scikit_learn_short(x, k, seed):
    return KMeans(k, n_init=1, random_state=seed, max_iter=10).fit(single(x)).cluster_centers_


def scikit_learn_mini_batch(x, k, seed):
    return MiniBatchKMeans(k, n_init=1, random_state=seed, compute_labels=False).fit(single(x)).cluster_centers_


def faiss_default(x, k, seed):
    return faiss_for(x, k, seed, niter=25)


def faiss_all_rows(x, k, seed):
    return faiss_for(x, k, seed, niter=25, max_points_per_centroid=len(x))


def faiss_for(x, k, seed, **settings):
    import faiss

    found = faiss.Kmeans(x.shape[1], k, seed=seed, **settings)
    found.train(single(x))
    return found.centroids


def single(x):
    return np.ascontiguousarray(x, dtype=np.float32)


WHAT = {
    "coremix": ours,
    "coremix with labels": ours_with_labels,
    "scikit-learn KMeans, n_init=1, with labels": scikit_learn,
    "scikit-learn, 10 iterations, with labels": scikit_learn_short,
    "scikit-learn MiniBatchKMeans": scikit_learn_mini_batch,
    "faiss, default (256 rows per centre)": faiss_default,
    "faiss, all rows, 25 iterations": faiss_all_rows,
}


def error(x, centres):
    _, distances = pairwise_distances_argmin_min(single(x), centres.astype(np.float32))
    return float((distances.astype(np.float64) ** 2).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("clusters", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only what begins so")
    parser.add_argument("--reference", type=float, help="the error that others are compared with")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    x = np.load(given.path)
    chosen = {name: fit for name, fit in WHAT.items() if name.startswith(given.only)}
    for fit in chosen.values():
        fit(x[: 4 * given.clusters], given.clusters // 2, 0)  # threads and code are loaded
    seconds, errors = {name: [] for name in chosen}, {name: [] for name in chosen}
    for seed in range(given.rounds):
        for name, fit in chosen.items():
            started = time.perf_counter()
            centres = fit(x, given.clusters, seed)
            seconds[name].append(time.perf_counter() - started)
            errors[name].append(error(x, centres))
    print(f"{given.path}: {x.shape[0]} x {x.shape[1]} {x.dtype}, {given.clusters} clusters, {given.rounds} rounds")
    for name in chosen:
        mean = np.mean(errors[name])
        off = "" if given.reference is None else f"{100 * (mean / given.reference - 1):+9.2f} %"
        print(f"  {name:44}{statistics.median(seconds[name]):9.3f} s  {mean:.6e}{off}", flush=True)


if __name__ == "__main__":
    main()
