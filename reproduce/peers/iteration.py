"""One iteration of exact k-means on generated rows, side by side: `reproduce/peers/run --iteration`.

Each library starts at the same rows and is timed over 2 iterations, and over as many more as take about a third of a second.
The difference is the time of the further iterations that were run: libraries end when nothing changes. This crate is timed
three times: as it chooses, comparing all rows with all centres in each iteration, and with bounds from the first one on. All are exact.

`ITERATION=3/20 reproduce/peers/run --iteration` measures the third of twenty groups of the shapes."""

import os
import pathlib
import subprocess
import tempfile
import time

# Columns and numbers of clusters: few and many of each.
SHAPES = [(d, k) for d in (2, 8, 32, 64, 128, 784) for k in (2, 16, 100, 500)]
SHAPES += [(2, 2_000), (8, 2_000), (18, 2_000), (64, 2_000), (4, 16_384), (16, 16_384)]
SHAPES += [(4, 10), (16, 64), (74, 500), (90, 4_000), (128, 1_000), (256, 32), (256, 1_000)]
SHAPES += [(3_072, 2), (3_072, 16), (3_072, 100)]

# Products of a coordinate in one iteration, numbers in the rows, and rows, at most.
PRODUCTS, NUMBERS, ROWS = 2_500_000_000, 16_000_000, 1_000_000
REPEATS = 3
THREADS = os.cpu_count()
DIRECTIONS = 4


def rows_of(d, k):
    n = min(PRODUCTS // (d * k), NUMBERS // d, ROWS)
    return max(n, 2 * k)


def seconds(fit, more):
    """Seconds of one iteration; fit(i) runs at most i of them and returns how many it ran."""
    took, ran = [], []
    for iterations in (2, 2 + more):
        started = time.perf_counter()
        ran.append(fit(iterations))
        took.append(time.perf_counter() - started)
    return (took[1] - took[0]) / max(ran[1] - ran[0], 1)


def of_crate(path, k, more, *options):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "centres.npy")
        command = ["target/release/peer", "iteration", path, str(k), "0", out, "--max-iterations", str(2 + more), *options]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def enough(measure):
    """Iterations that take about a third of a second, by those of a first look."""
    return int(min(max(0.3 / max(measure(10), 1e-6), 10), 50))


def compare():
    import environment
    import faiss
    import numpy as np
    import threadpoolctl
    from sklearn.cluster._kmeans import _kmeans_single_lloyd as lloyd

    environment.check_kernels(threadpoolctl.threadpool_info())

    print("| rows, columns, clusters | chosen, ms | all rows | with bounds | scikit-learn | faiss | chosen / faster of both | all rows | with bounds |")
    print("|---|---|---|---|---|---|---|---|---|")
    random = np.random.default_rng(7)
    group, groups = map(int, os.environ.get("ITERATION", "1/1").split("/"))
    for d, k in SHAPES[group - 1 :: groups]:
        n = rows_of(d, k)
        # Without clusters, and with few directions that matter: so labels change for many iterations.
        x = random.normal(size=(n, d)).astype(np.float32)
        if d > DIRECTIONS:
            x *= 0.1
            x += random.normal(size=(n, DIRECTIONS)).astype(np.float32) @ random.normal(size=(DIRECTIONS, d)).astype(np.float32)
        start, weights = x[:k].copy(), np.ones(n, dtype=np.float32)

        def sklearn_fit(iterations):
            # Without the checks and the copy of the rows around it, which may take longer than all iterations.
            return lloyd(x, weights, start.copy(), max_iter=iterations, tol=0.0, n_threads=THREADS)[3]

        def faiss_fit(iterations):
            fitted = faiss.Kmeans(d, k, niter=iterations, max_points_per_centroid=n, min_points_per_centroid=1)
            fitted.train(x, init_centroids=start)
            return len(fitted.obj)

        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "x.npy")
            np.save(path, x)
            libraries = [
                lambda more: of_crate(path, k, more),
                lambda more: seconds(sklearn_fit, more),
                lambda more: seconds(faiss_fit, more),
            ]
            counts = [enough(one) for one in libraries]
            # Bounds settle the more rows the later an iteration is: all searches run as many.
            for place, search in enumerate(("products", "bounds"), 1):
                libraries.insert(place, lambda more, search=search: of_crate(path, k, more, "--search", search))
                counts.insert(place, counts[0])
            times = [[one(more) for one, more in zip(libraries, counts)] for _ in range(REPEATS)]
        *own, sklearn, theirs = np.median(times, axis=0) * 1e3
        shares = [ours / min(sklearn, theirs) for ours in own]
        cells = [f"{n} x {d}, {k}"] + [f"{ms:.1f}" for ms in (*own, sklearn, theirs)] + [f"{share:.2f}" for share in shares]
        print("| " + " | ".join(cells) + " |", flush=True)
