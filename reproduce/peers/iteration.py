"""One iteration of exact k-means on generated rows, side by side: `reproduce/peers/run --iteration`.

Each library starts at the same rows and is timed over 12 iterations and over 2; the difference is ten iterations."""

import os
import pathlib
import subprocess
import tempfile
import time

# Rows, columns and clusters: few and many of each.
SHAPES = [
    (1_000_000, 2, 10),
    (1_000_000, 2, 200),
    (500_000, 8, 20),
    (500_000, 8, 500),
    (200_000, 18, 2_000),
    (200_000, 32, 100),
    (200_000, 64, 16),
    (100_000, 64, 256),
    (100_000, 74, 500),
    (50_000, 90, 4_000),
    (50_000, 128, 1_000),
    (20_000, 784, 100),
    (20_000, 784, 500),
]
REPEATS = 3


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
    for n, d, k in SHAPES:
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
