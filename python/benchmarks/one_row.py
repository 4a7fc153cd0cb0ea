"""The prediction of one row at a time: microseconds of a call, p50 and p99.

    python benchmarks/one_row.py [CLUSTERS] [COLUMNS] [--calls 20000] [--number float32]

Every call gets another row of generated data. All have the same centres and give the same labels. Libraries run on one thread; what is
not installed is left out.
"""

import argparse
import importlib.util
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

sys.path.insert(0, str(Path(__file__).parent))
import kernels  # noqa: E402, F401, before NumPy

import numpy as np  # noqa: E402
import sklearn.cluster  # noqa: E402

import coremix  # noqa: E402


def numpy_argmin(centres):
    norms = (centres**2).sum(axis=1)
    return lambda row: (norms - 2 * (centres @ row)).argmin()


def scikit_learn(centres):
    model = sklearn.cluster.KMeans(len(centres), init=centres, n_init=1, max_iter=1).fit(centres)
    model.cluster_centers_ = centres.copy()
    return lambda row: model.predict(row[None])[0]


def faiss_flat(centres):
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(centres.shape[1])
    index.add(centres)
    return lambda row: index.search(row[None], 1)[1][0, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clusters", nargs="?", type=int, default=1_000)
    parser.add_argument("columns", nargs="?", type=int, default=128)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--number", choices=["float32", "float64"], default="float32")
    arguments = parser.parse_args()
    k, d = arguments.clusters, arguments.columns
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(k, d))
    rows = centres[rng.integers(k, size=4_096)] + 0.5 * rng.normal(size=(4_096, d))
    # A fit that stays at these centres.
    kmeans = coremix.KMeans(k, algorithm="lloyd", init=centres, max_iter=1, random_state=0, compute_labels=False)
    kmeans.fit(centres.astype(arguments.number))
    centres, rows = kmeans.cluster_centers_, rows.astype(arguments.number)
    predictor, model = kmeans.predictor(), kmeans._model
    calls = {
        "coremix, predictor(row)": predictor,
        "coremix, KMeans.predict(row[None])": lambda row: kmeans.predict(row[None])[0],
        "coremix, Model.predict(row[None])": lambda row: model.predict(row[None])[0],
        "NumPy, norms and argmin": numpy_argmin(centres),
        "scikit-learn, KMeans.predict(row[None])": scikit_learn(centres),
    }
    if arguments.number == "float32" and importlib.util.find_spec("faiss"):
        calls["faiss, IndexFlatL2.search(row[None], 1)"] = faiss_flat(centres)
    expected = [kmeans.predict(row[None])[0] for row in rows[:200]]
    print(f"{k} clusters, {d} columns, {arguments.number}; microseconds of a call, of {arguments.calls} calls\n")
    print(f"{'call':<42}{'p50':>8}{'p99':>8}{'other labels':>14}")
    for name, call in calls.items():
        others = sum(int(call(row)) != label for row, label in zip(rows, expected, strict=False))
        times = []
        for i in range(arguments.calls):
            row = rows[i * 31 % len(rows)]
            started = time.perf_counter_ns()
            call(row)
            times.append(time.perf_counter_ns() - started)
        p50, p99 = np.percentile(times, [50, 99]) / 1e3
        print(f"{name:<42}{p50:>8.1f}{p99:>8.1f}{others:>14}")


if __name__ == "__main__":
    main()
