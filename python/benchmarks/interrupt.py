"""How long it takes from Ctrl-C to KeyboardInterrupt, in every stage of every algorithm.

    python benchmarks/interrupt.py
"""

import signal
import threading
import time

import numpy as np

import coremix

ESTIMATORS = {
    "KMeans, fast": coremix.KMeans(2_000, n_init=1_000),
    "KMeans, lloyd": coremix.KMeans(2_000, algorithm="lloyd", max_iter=10_000, tol=0.0),
    "KMeans, lazy": coremix.KMeans(2_000, algorithm="lazy-k-means", max_iter=10_000, tol=0.0),
    "GaussianMixture": coremix.GaussianMixture(500, max_iter=10_000, tol=0.0),
    "BayesianGaussianMixture": coremix.BayesianGaussianMixture(50, max_iter=10_000, tol=0.0),
    "VcGmm": coremix.VcGmm(2_000, max_iter=10_000, tol=0.0, n_init=1_000),
    "DGmm": coremix.DGmm(2_000, max_iter=10_000, tol=0.0),
    "SparsifiedGmm": coremix.SparsifiedGmm(200, max_iter=10_000, tol=0.0),
}


def latency(estimator, x, after):
    pressed = []

    def press():
        pressed.append(time.perf_counter())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    timer = threading.Timer(after, press)
    timer.start()
    try:
        estimator.fit(x)
    except KeyboardInterrupt:
        return time.perf_counter() - pressed[0]
    timer.cancel()
    return float("nan")


def main():
    x = np.random.default_rng(0).normal(size=(150_000, 64)).astype(np.float32)
    for name, estimator in ESTIMATORS.items():
        found = [latency(estimator, x, after) for after in (0.05, 0.2, 0.6, 1.3)]
        print(f"{name:26}" + "".join(f"{1e3 * each:9.0f} ms" for each in found), flush=True)


if __name__ == "__main__":
    main()
