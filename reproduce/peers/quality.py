"""Errors of `fast`, compared with scikit-learn's KMeans(n_init=1) on many files, the worst first.

    reproduce/peers/run --quality [--seeds 5] [--for SECONDS] SET.npy:K [SET.npy:K ...] [@LIST]

LIST has one SET.npy:K a line. The errors of scikit-learn are kept in target/peers/reference.json, by the rows and its
version, and are computed once. With --for no fit of scikit-learn starts after that many seconds: run it again to go on. --add OPTION
gives `fast` another setting, as in `--add=--tolerance --add=1e-4`. The table is written to
target/peers/quality.md."""

import argparse
import json
import os
import pathlib
import sys
import time
import warnings

import environment


def arguments():
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--for", dest="time", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--algorithm", default="fast", help="of this crate; default fast")
    parser.add_argument("--add", action="append", default=[], metavar="OPTION", help="for the program `peer`")
    parser.add_argument("--program", default=None, help="the program `peer`; default target/release/peer")
    parser.add_argument("--reference-only", action="store_true", help="nothing but the errors of scikit-learn")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/peers"))
    parser.add_argument("sets", nargs="+", metavar="SET.npy:K")
    return parser.parse_args()


ARGUMENTS = arguments()
environment.prepare(ARGUMENTS.threads)

import numpy as np  # noqa: E402
import program  # noqa: E402
import sklearn  # noqa: E402
import threadpoolctl  # noqa: E402
from rows import Rows, relative  # noqa: E402
from sklearn.cluster import KMeans  # noqa: E402

environment.check_kernels(threadpoolctl.threadpool_info())


class References:
    """Errors of scikit-learn by rows, clusters, version and seed, in a file that is whole after every fit."""

    def __init__(self, path):
        self.path = path
        self.known = json.loads(path.read_text()) if path.exists() else {}

    def of(self, rows, seeds, may_start):
        """The errors of these seeds; fewer where no fit may start any more."""
        key = f"{rows.digest}:{rows.k}:scikit-learn {sklearn.__version__}"
        known = self.known.setdefault(key, {"set": rows.label, "errors": {}, "seconds": {}})
        for seed in map(str, range(1, seeds + 1)):
            if seed not in known["errors"]:
                if not may_start():
                    break
                started = time.perf_counter()
                centres = KMeans(rows.k, n_init=1, random_state=int(seed)).fit(rows.x).cluster_centers_
                known["seconds"][seed] = time.perf_counter() - started
                known["errors"][seed] = rows.error(centres)
                known["mean"], known["standard_error"] = mean(list(known["errors"].values()))
                self.write()
        return [known["errors"][str(seed)] for seed in range(1, seeds + 1) if str(seed) in known["errors"]]

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(self.known, indent=1))
        os.replace(beside, self.path)


def mean(values):
    """Mean and its standard error."""
    spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return float(np.mean(values)), float(spread)


def fit(rows, seed):
    """Centres and seconds."""
    environment.settle()
    options = ARGUMENTS.add, ARGUMENTS.program or program.PROGRAM
    return program.fit(ARGUMENTS.algorithm, rows.path, rows.k, seed, *options)


def compare(rows, reference):
    """Errors on one set relative to the mean of the reference, in percent, with standard errors."""
    base, floor = np.mean(reference), rows.floor
    _, spread = mean([relative(error, base, floor) for error in reference])
    found = {"set": rows.label, "shape": rows.shape, "reference": base, "spread": spread, "seeds": len(reference)}
    try:
        runs = [fit(rows, seed) for seed in range(1, ARGUMENTS.seeds + 1)]
    except RuntimeError as failure:
        print(failure, file=sys.stderr)
        return found | {"error": float("inf"), "own_spread": 0.0, "worst": float("inf"), "seconds": float("nan")}
    errors = [relative(rows.error(centres), base, floor) for centres, _ in runs]
    error, own_spread = mean(errors)
    seconds = float(np.median([seconds for _, seconds in runs]))
    return found | {"error": error, "own_spread": own_spread, "worst": max(errors), "seconds": seconds}


def table(found):
    name = ARGUMENTS.algorithm
    lines = [
        f"| set | n x d | scikit-learn's error | its standard error | `{name}` | standard error | worst seed | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(found, key=lambda row: -row["error"]):
        short = "" if row["seeds"] == ARGUMENTS.seeds else f" ({row['seeds']} seeds)"
        lines.append(
            f"| {row['set']} | {row['shape'][0]} x {row['shape'][1]} "
            f"| {row['reference']:.4e}{short} | {row['spread']:.2f} % "
            f"| {row['error']:+.2f} % | {row['own_spread']:.2f} | {row['worst']:+.2f} % | {row['seconds']:.3f} |"
        )
    above = sum(row["error"] > 1.0 for row in found)
    return "\n".join(lines) + f"\n\n{above} of {len(found)} sets above +1 %."


def main():
    # Fewer distinct rows than clusters are among what is asked.
    warnings.simplefilter("ignore")
    started = time.perf_counter()
    references = References(ARGUMENTS.out / "reference.json")
    found, missing = [], []
    for name in ARGUMENTS.sets:
        rows = Rows(name)
        reference = references.of(rows, ARGUMENTS.seeds, lambda: time.perf_counter() - started < ARGUMENTS.time)
        if not reference:
            missing.append(name)
        elif not ARGUMENTS.reference_only:
            found.append(compare(rows, reference))
            row = found[-1]
            print(
                f"{name}: {row['error']:+.2f} % ({row['own_spread']:.2f}), {row['seconds']:.3f} s",
                file=sys.stderr,
                flush=True,
            )
    if found:
        print(table(found))
        (ARGUMENTS.out / "quality.md").write_text(table(found) + "\n")
    if missing:
        print("No reference yet, run again:", " ".join(missing))


main()
