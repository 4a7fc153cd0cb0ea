"""Many clusters: `fast` at several tolerances compared with faiss, from random rows and in two levels, at equal time.

    reproduce/peers/run --many [--tolerances 1e-1,1e-2,1e-3] [--times 1,2] [--threads 2] SET.npy:K [SET.npy:K ...]

One run each, in turn. faiss from random rows makes as many iterations as end before the last run of `fast` does, and twice as many,
or as many as other multiples of its time allow (`--times`); in two levels, with about sqrt(k) clusters in the first, it makes its
default, 25, on its samples. Seconds are the time from rows in memory to centres. Errors are those of every tenth row, relative to
`fast` with the last tolerance."""

import argparse

import environment


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tolerances", default="1e-1,1e-2,1e-3")
    parser.add_argument("--times", default="1,2")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("sets", nargs="+", metavar="SET.npy:K")
    return parser.parse_args()


ARGUMENTS = arguments()
environment.prepare(ARGUMENTS.threads)

import copy  # noqa: E402
import math  # noqa: E402
import sys  # noqa: E402

import libraries  # noqa: E402
import threadpoolctl  # noqa: E402
from faiss.contrib.clustering import two_level_clustering  # noqa: E402
from rows import Rows  # noqa: E402

environment.check_kernels(threadpoolctl.threadpool_info())


def in_two_levels(rows, seed):
    (centres, _), seconds = libraries.timed(lambda: two_level_clustering(rows.x, math.isqrt(rows.k), rows.k, seed=seed))
    return centres, seconds


def runs(rows):
    """The name, seconds and centres of each run."""
    for tolerance in ARGUMENTS.tolerances.split(","):
        environment.settle()
        centres, seconds = libraries.crate("fast")(rows, f"--tolerance {tolerance}", 1)
        yield f"`fast`, {tolerance}", seconds, centres
    random = libraries.faiss_k_means("RANDOM")
    environment.settle()
    _, two = random(rows, 2, 1)
    for times in ARGUMENTS.times.split(","):
        iterations = max(1, int(2 * float(times) * seconds / two))
        environment.settle()
        centres, taken = random(rows, iterations, 1)
        yield f"faiss, random rows, {iterations}", taken, centres
    environment.settle()
    try:
        centres, taken = in_two_levels(rows, 1)
    except RuntimeError as error:
        # faiss refuses a coarse cluster that is to have no clusters of its own.
        print(f"faiss, two levels: {error}", file=sys.stderr)
        return
    yield "faiss, two levels", taken, centres


def main():
    print("| set | k | run | s | error |\n|---|---|---|---|---|", flush=True)
    for name in ARGUMENTS.sets:
        rows = Rows(name)
        tenth = copy.copy(rows)
        tenth.x = rows.x[::10]
        found = [(run, seconds, tenth.error(centres)) for run, seconds, centres in runs(rows)]
        last = [error for run, _, error in found if run.startswith("`fast`")][-1]
        n, d = rows.x.shape
        for run, seconds, error in found:
            print(f"| {n:,} x {d} | {rows.k:,} | {run} | {seconds:.2f} | {100 * (error / last - 1):+.2f} % |", flush=True)


main()
