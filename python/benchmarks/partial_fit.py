"""Rows in 50 parts: error, time and memory of `partial_fit`, of a fit of all rows and of scikit-learn's MiniBatchKMeans.

    python python/benchmarks/partial_fit.py FOLDER/song.npy 1000

Each line is a process of its own, in which the rows are mapped from the file. The parts come in three orders: as in the file,
sorted by the first column, and at random.
"""

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

PARTS = 50
ORDERS = ("file", "sorted", "random")


def parts_of(X, order):
    if order == "file":
        return np.array_split(np.arange(len(X)), PARTS)
    if order == "sorted":
        return np.array_split(np.argsort(X[:, 0], kind="stable"), PARTS)
    return np.array_split(np.random.default_rng(0).permutation(len(X)), PARTS)


def one(path, clusters, which, order):
    import coremix

    X = np.load(path, mmap_mode="r")
    parts = parts_of(X, order)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    if which == "fit":
        model = coremix.KMeans(clusters, random_state=1, compute_labels=False).fit(X)
    elif which == "partial_fit":
        model = coremix.KMeans(clusters, random_state=1)
        for part in parts:
            model.partial_fit(X[part])
        model.finish()
    else:
        from sklearn.cluster import MiniBatchKMeans

        model = MiniBatchKMeans(clusters, random_state=1, n_init=1, batch_size=max(len(part) for part in parts))
        for part in parts:
            model.partial_fit(X[part])
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    error = error_of(X, model.cluster_centers_)
    print(f"{error!r} {seconds!r} {memory!r}")


def error_of(X, centres):
    """The sum of squared distances to the nearest of these centres, by scikit-learn, in float64."""
    from sklearn.metrics import pairwise_distances_argmin_min

    total = 0.0
    for first in range(0, len(X), 20_000):
        rows = np.asarray(X[first : first + 20_000], dtype=np.float64)
        total += float((pairwise_distances_argmin_min(rows, centres.astype(np.float64), metric="sqeuclidean")[1]).sum())
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("clusters", type=int)
    parser.add_argument("--one", nargs=2, metavar=("WHICH", "ORDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        return one(arguments.path, arguments.clusters, *arguments.one)
    base = None
    print("| | order | error, % | s | MiB |\n|---|---|---|---|---|")
    for which, orders in [("fit", ("file",)), ("partial_fit", ORDERS), ("MiniBatchKMeans", ORDERS)]:
        for order in orders:
            command = [sys.executable, __file__, arguments.path, str(arguments.clusters), "--one", which, order]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            error, seconds, memory = map(float, out.split()[-3:])
            base = error if base is None else base
            print(f"| {which} | {order} | {100 * (error / base - 1):+.2f} | {seconds:.2f} | {memory / 1024:.0f} |", flush=True)


if __name__ == "__main__":
    main()
