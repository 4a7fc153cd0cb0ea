"""Runs this crate, scikit-learn and faiss in turn; see ./run."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="names of configurations, separated by semicolons")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/peers"))
    parser.add_argument("--iteration", action="store_true", help="one iteration of exact k-means on generated rows, no sets")
    parser.add_argument("sets", nargs="*", metavar="SET.npy:K")
    return parser.parse_args()


ARGUMENTS = arguments()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(ARGUMENTS.threads)

# The libraries read the number of threads when they are loaded.
import faiss  # noqa: E402
import iteration  # noqa: E402
import matplotlib  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.cluster import KMeans, MiniBatchKMeans  # noqa: E402

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

faiss.omp_set_num_threads(ARGUMENTS.threads)


def crate(algorithm):
    """The crate, with its own clock: reading the file does not count, checking the rows does."""

    def run(x, path, k, seed):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "centres.npy")
            command = ["target/release/peer", algorithm, path, str(k), str(seed), out]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            return np.load(out), float(printed)

    return run


def timed(fit):
    def run(x, path, k, seed):
        started = time.perf_counter()
        centres = fit(x, k, seed)
        return centres, time.perf_counter() - started

    return run


def sklearn_k_means(x, k, seed):
    return KMeans(k, n_init=1, random_state=seed).fit(x).cluster_centers_


def sklearn_mini_batch(x, k, seed):
    return MiniBatchKMeans(k, n_init=1, random_state=seed, batch_size=4096).fit(x).cluster_centers_


def faiss_k_means(init, iterations, all_rows=True):
    def fit(x, k, seed):
        options = {"niter": iterations, "seed": seed, "min_points_per_centroid": 1}
        if all_rows:
            options["max_points_per_centroid"] = len(x)
        kmeans = faiss.Kmeans(x.shape[1], k, **options)
        if init:
            kmeans.cp.init_method = getattr(faiss, "ClusteringInitMethod_" + init)
        kmeans.train(x)
        return kmeans.centroids

    return fit


def faiss_super_k_means(iterations):
    def fit(x, k, seed):
        options = {"niter": iterations, "seed": seed, "max_points_per_centroid": len(x)}
        kmeans = faiss.SuperKmeans(x.shape[1], k, **options)
        kmeans.train(x)
        return kmeans.centroids

    return fit


# Name, family (its colour), how it runs, and the columns it needs.
CONFIGURATIONS = [
    ("fast", "coremix", crate("fast"), 1),
    ("vc-gmm", "coremix", crate("vc-gmm"), 1),
    ("var-gmm-s", "coremix", crate("var-gmm-s"), 1),
    ("scikit-learn k-means++", "scikit-learn", timed(sklearn_k_means), 1),
    ("scikit-learn mini-batch", "scikit-learn", timed(sklearn_mini_batch), 1),
    ("faiss default", "faiss", timed(faiss_k_means("", 25, all_rows=False)), 1),
    ("faiss random, all rows", "faiss", timed(faiss_k_means("", 25)), 1),
    ("faiss AFK-MC2, all rows", "faiss", timed(faiss_k_means("AFK_MC2", 16)), 1),
    ("faiss k-means++, all rows", "faiss", timed(faiss_k_means("KMEANS_PLUS_PLUS", 25)), 1),
    ("faiss k-means++, 40 iterations", "faiss", timed(faiss_k_means("KMEANS_PLUS_PLUS", 40)), 1),
    ("faiss SuperKMeans", "faiss", timed(faiss_super_k_means(12)), 16),
]
COLOURS = {"coremix": "tab:red", "scikit-learn": "tab:blue", "faiss": "tab:green"}
REFERENCE = "scikit-learn k-means++"


def quantization_error(x, centres):
    """Exact but for rounding in float64, in blocks."""
    shift = x.mean(axis=0, dtype=np.float64)
    centres = centres.astype(np.float64) - shift
    norms = (centres**2).sum(axis=1)
    total = 0.0
    for block in np.array_split(x, max(1, len(x) * len(centres) // 20_000_000)):
        rows = block.astype(np.float64) - shift
        nearest = (norms - 2.0 * rows @ centres.T).argmin(axis=1)
        total += ((rows - centres[nearest]) ** 2).sum()
    return total


def measure(path, k, seeds, wanted):
    x = np.ascontiguousarray(np.load(path), dtype=np.float32)
    chosen = [c for c in CONFIGURATIONS if (not wanted or c[0] in wanted) and x.shape[1] >= c[3]]
    errors = {c[0]: [] for c in chosen}
    times = {c[0]: [] for c in chosen}
    for seed in range(1, seeds + 1):
        for name, _, run, _ in chosen:
            centres, seconds = run(x, path, k, seed)
            errors[name].append(quantization_error(x, np.asarray(centres)))
            times[name].append(seconds)
            # Some runs take long: what is known so far.
            print(f"{name}, seed {seed}: {seconds:.3f} s, {errors[name][-1]:.6e}", file=sys.stderr, flush=True)
    reference = np.mean(errors.get(REFERENCE) or min(errors.values(), key=np.mean))
    rows = []
    for name, family, _, _ in chosen:
        relative = 100.0 * (np.array(errors[name]) / reference - 1.0)
        deviation = relative.std(ddof=1) / np.sqrt(seeds) if seeds > 1 else float("nan")
        row = {"name": name, "family": family, "error": relative.mean(), "standard_error": deviation}
        rows.append(row | {"seconds": float(np.median(times[name]))})
    return {"set": f"{pathlib.Path(path).stem}, k = {k}", "shape": x.shape, "rows": rows}


def table(found):
    lines = [f"{found['set']} ({found['shape'][0]} x {found['shape'][1]})", ""]
    lines += ["| | seconds | error | standard error | times as long as `fast` |", "|---|---|---|---|---|"]
    fast = next((row["seconds"] for row in found["rows"] if row["name"] == "fast"), float("nan"))
    for row in found["rows"]:
        ratio = row["seconds"] / fast
        lines.append(
            f"| {row['name']} | {row['seconds']:.3f} | {row['error']:+.2f} % "
            f"| {row['standard_error']:.2f} | {ratio:.1f} |"
        )
    return "\n".join(lines)


def picture(all_found, path):
    columns = min(2, len(all_found))
    lines = -(-len(all_found) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(5.2 * columns, 3.8 * lines), squeeze=False)
    for axis, found in zip(axes.flat, all_found):
        for row in found["rows"]:
            # Errors below the reference are drawn where 0.1 % above it would be.
            height = max(row["error"], 0.1)
            axis.scatter(row["seconds"], height, color=COLOURS[row["family"]], s=28)
            axis.annotate(row["name"], (row["seconds"], height), fontsize=6, xytext=(4, 3), textcoords="offset points")
        axis.set(xscale="log", yscale="log", title=found["set"])
        axis.set(xlabel="seconds", ylabel="error over converged k-means++ / %")
        axis.axhline(1.0, color="grey", linewidth=0.6)
        axis.margins(x=0.25)
    for axis in axes.flat[len(all_found):]:
        axis.axis("off")
    figure.tight_layout()
    figure.savefig(path)


def main():
    if ARGUMENTS.iteration:
        iteration.compare(np, faiss, KMeans)
        return
    ARGUMENTS.out.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in ARGUMENTS.only.split(";") if name]
    all_found = []
    for chosen in ARGUMENTS.sets:
        path, k = chosen.rsplit(":", 1)
        all_found.append(measure(path, int(k), ARGUMENTS.seeds, wanted))
        print(table(all_found[-1]), end="\n\n", flush=True)
    (ARGUMENTS.out / "peers.md").write_text("\n\n".join(map(table, all_found)) + "\n")
    (ARGUMENTS.out / "peers.json").write_text(json.dumps(all_found, indent=1))
    picture(all_found, ARGUMENTS.out / "peers.svg")


main()
