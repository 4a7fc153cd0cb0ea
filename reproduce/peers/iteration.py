"""One iteration of exact k-means on generated rows, side by side: `reproduce/peers/run --iteration`.

Each library starts at the same rows and is timed over 12 iterations and over 2; the difference is ten iterations.

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


def rows_of(d, k):
    n = min(PRODUCTS // (d * k), NUMBERS // d, ROWS)
    return max(n, 2 * k)


def seconds(fit):
    """Of one iteration, where fit(i) runs i of them."""
    took = []
    for iterations in (2, 12):
        started = time.perf_counter()
        fit(iterations)
        took.append(time.perf_counter() - started)
    return (took[1] - took[0]) / 10.0


def of_crate(path, k):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "centres.npy")
        command = ["target/release/peer", "iteration", path, str(k), "0", out]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compare(np, faiss, k_means):
    print("| rows, columns, clusters | this crate, ms | scikit-learn | faiss | share of the faster of both |")
    print("|---|---|---|---|---|")
    random = np.random.default_rng(7)
    group, groups = map(int, os.environ.get("ITERATION", "1/1").split("/"))
    for d, k in SHAPES[group - 1 :: groups]:
        n = rows_of(d, k)
        # Without clusters nothing converges within the iterations that are timed.
        x = random.normal(size=(n, d)).astype(np.float32)
        start = x[:k].copy()

        def sklearn_fit(iterations):
            k_means(k, init=start, n_init=1, max_iter=iterations, tol=0.0, algorithm="lloyd").fit(x)

        def faiss_fit(iterations):
            faiss.Kmeans(d, k, niter=iterations, max_points_per_centroid=n, min_points_per_centroid=1).train(
                x, init_centroids=start
            )

        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "x.npy")
            np.save(path, x)
            times = [(of_crate(path, k), seconds(sklearn_fit), seconds(faiss_fit)) for _ in range(REPEATS)]
        own, sklearn, theirs = np.median(times, axis=0) * 1e3
        share = own / min(sklearn, theirs)
        print(f"| {n} x {d}, {k} | {own:.1f} | {sklearn:.1f} | {theirs:.1f} | {share:.2f} |", flush=True)


if __name__ == "__main__":
    import warnings

    import faiss
    import numpy
    from sklearn.cluster import KMeans

    warnings.simplefilter("ignore")
    compare(numpy, faiss, KMeans)
