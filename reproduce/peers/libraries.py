"""One fit of each library: rows, steps and a seed to centres and seconds, from rows in memory to centres."""

import os
import pathlib
import subprocess
import tempfile
import time

import faiss
import numpy as np
import program
import pyarrow
from lance.util import KMeans as LanceKMeans
from results import CONVERGED
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans, kmeans_plusplus

RUST = pathlib.Path("target/peers/rust/release/peers")


def timed(fit):
    started = time.perf_counter()
    centres = fit()
    return centres, time.perf_counter() - started


def crate(algorithm):
    """A step is the options of the program; those in its name."""

    def run(rows, step, seed):
        return program.fit(algorithm, rows.path, rows.k, seed, step.split())

    return run


def sklearn_k_means(rows, _, seed):
    k_means = KMeans(rows.k, n_init=1, random_state=seed)
    return timed(lambda: k_means.fit(rows.x).cluster_centers_)


def sklearn_seeded(trials):
    """Seeds, each the best of `trials` rows. On rows of float64, where it finds seeds several times faster than on rows of
    float32; iterations are faster on float32."""

    def run(rows, step, seed):
        iterations = {} if step == CONVERGED else {"max_iter": int(step)}

        def fit():
            x = rows.x.astype(np.float64)
            seeds, _ = kmeans_plusplus(x, rows.k, random_state=seed, n_local_trials=trials)
            k_means = KMeans(rows.k, init=seeds.astype(np.float32), n_init=1, **iterations)
            return k_means.fit(rows.x).cluster_centers_

        return timed(fit)

    return run


def sklearn_mini_batch(rows, _, seed):
    k_means = MiniBatchKMeans(rows.k, n_init=1, random_state=seed, batch_size=4096)
    return timed(lambda: k_means.fit(rows.x).cluster_centers_)


def sklearn_bisecting(rows, _, seed):
    k_means = BisectingKMeans(rows.k, n_init=1, random_state=seed)
    return timed(lambda: k_means.fit(rows.x).cluster_centers_)


def faiss_k_means(start):
    """All rows, not the sample that is the default."""

    def run(rows, step, seed):
        n, d = rows.x.shape
        options = {"niter": int(step), "seed": seed, "min_points_per_centroid": 1, "max_points_per_centroid": n}
        k_means = faiss.Kmeans(d, rows.k, **options)
        k_means.cp.init_method = getattr(faiss, "ClusteringInitMethod_" + start)

        def fit():
            k_means.train(rows.x)
            return k_means.centroids

        return timed(fit)

    return run


def faiss_super_k_means(rows, step, seed):
    n, d = rows.x.shape
    k_means = faiss.SuperKmeans(d, rows.k, niter=int(step), seed=seed, max_points_per_centroid=n)

    def fit():
        k_means.train(rows.x)
        return k_means.centroids

    return timed(fit)


def lance_k_means(rows, step, _):
    """It takes no seed, and starts at other rows in every run."""
    n, d = rows.x.shape
    x = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.x.reshape(-1)), d)
    k_means = LanceKMeans(rows.k, max_iters=int(step))

    def fit():
        k_means.fit(x)
        return k_means.centroids.storage.flatten().to_numpy().reshape(-1, d)

    return timed(fit)


def super_k_means_rs(rows, step, seed):
    """A process per fit, with its own clock."""
    n, d = rows.x.shape
    with tempfile.TemporaryDirectory() as folder:
        points, centres = os.path.join(folder, "points"), os.path.join(folder, "centres")
        rows.x.tofile(points)
        command = [str(RUST), str(n), str(d), str(rows.k), step, str(seed), points, centres]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(ran.stderr.strip())
        return np.fromfile(centres, dtype=np.float32).reshape(-1, d), float(ran.stdout)
