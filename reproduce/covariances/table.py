"""The table of `reproduce/covariances/run`: one iteration of EM by the kind of covariances, compared with scikit-learn's.

An iteration is the difference of two fits of few and more iterations from the same start, divided by the iterations between. Each is
the least of several times: one time of each left differences below 0 where an iteration takes 1 ms."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

# Modules shared with the measurements of other libraries.
sys.path.append("reproduce/peers")
import environment  # noqa: E402

environment.prepare(os.cpu_count())

import numpy as np  # noqa: E402
import threadpoolctl  # noqa: E402
from sklearn.mixture import GaussianMixture  # noqa: E402

environment.check_kernels(threadpoolctl.threadpool_info())

# Columns, rows, components: the shapes of the program `covariances`, and one with fewer rows.
SHAPES = [(8, 100_000, 10), (8, 100_000, 100), (32, 50_000, 10), (32, 50_000, 100)]
SHAPES += [(90, 20_000, 10), (90, 20_000, 100), (256, 10_000, 10), (256, 20_000, 100)]
REPEATS = int(os.environ.get("REPEATS", "3"))
FEW_ITERATIONS, MORE_ITERATIONS = 1, 5


def points(n, d, k):
    """Rows around k centres that overlap as much in any number of columns: fits do not end early."""
    rng = np.random.default_rng(7)
    centres = 2.0 / np.sqrt(d) * rng.normal(size=(k, d))
    return centres[np.arange(n) % k] + rng.normal(size=(n, d))


def theirs(x, k, kind):
    def seconds(iterations):
        start = x[:k]
        theirs = {"diagonal": "diag"}.get(kind, kind)
        model = GaussianMixture(k, covariance_type=theirs, tol=0.0, max_iter=iterations, means_init=start, init_params="random_from_data", random_state=0)
        started = time.perf_counter()
        model.fit(x)
        return time.perf_counter() - started

    few, more = (min(seconds(iterations) for _ in range(REPEATS)) for iterations in (FEW_ITERATIONS, MORE_ITERATIONS))
    return 1e3 * (more - few) / (MORE_ITERATIONS - FEW_ITERATIONS)


def ours(path, k, kind):
    command = ["target/release/covariances", path, str(k), kind]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    warnings.filterwarnings("ignore")
    wanted = sys.argv[1:]
    chosen = lambda all_of_them: [one for one in all_of_them if str(one) in wanted] or all_of_them
    columns = chosen([8, 32, 90, 256])
    print("| kind | type | rows, columns, components | ms | scikit-learn | times as fast |")
    print("|---|---|---|---|---|---|", flush=True)
    for kind in chosen(["spherical", "diagonal", "tied", "full"]):
        for dtype in chosen(["f64", "f32"]):
            for d, n, k in SHAPES:
                if d not in columns:
                    continue
                x = points(n, d, k).astype(np.float32 if dtype == "f32" else np.float64)
                with tempfile.TemporaryDirectory() as folder:
                    path = str(pathlib.Path(folder) / "x.npy")
                    np.save(path, x)
                    try:
                        own, peer = ours(path, k, kind), theirs(x, k, kind)
                    except ValueError as error:
                        print(f"| {kind} | {dtype} | {n} x {d}, {k} | scikit-learn: {str(error).partition('.')[0]} |", flush=True)
                        continue
                print(f"| {kind} | {dtype} | {n} x {d}, {k} | {own:.1f} | {peer:.1f} | {peer / own:.1f} |", flush=True)


if __name__ == "__main__":
    main()
