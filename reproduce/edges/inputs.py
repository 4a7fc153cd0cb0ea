"""Inputs at the edges of what people bring, and what this version of coremix answers: JSON of {input: [right, answer]}.

Run by `run`; the argument is the command. Right answers are those of plain EM in f64, of scikit-learn, or of counting by hand.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pyarrow as pa
from coremix import BayesianGaussianMixture, GaussianMixture, KMeans, VcGmm
from sklearn.metrics import adjusted_rand_score

COMMAND = sys.argv[1]
ANSWERS: dict[str, tuple[str, str]] = {}


def short(text: str, length: int = 150) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"


def case(name: str, right: object):
    """Runs the function at once, and keeps its answer, its error or its first warning."""

    def run(function):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)
            try:
                answer = str(function())
            except BaseException as error:  # noqa: BLE001 A panic is an answer, too.
                answer = f"{type(error).__name__}: {error}"
        told = [str(warning.message) for warning in caught]
        ANSWERS[name] = (str(right), short(answer + (f" (warning: {told[0]})" if told else "")))
        return function

    return run


def command(*arguments: str, stdin: bytes | None = None) -> str:
    """The standard output and the last lines of standard error."""
    done = subprocess.run([COMMAND, "--quiet", *arguments], input=stdin, capture_output=True, timeout=300)
    text = done.stdout.decode(errors="replace") + " " + done.stderr.decode(errors="replace")
    return f"exit {done.returncode}: {short(text)}"


def blobs(n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    return np.array([[0.0, 0], [6, 0], [0, 6]])[truth] + rng.normal(size=(n, 2)), truth


# Floors of variances.
X, TRUTH = blobs(600)
WITH_OUTLIER = np.vstack([X, [[999_999.0, 999_999.0]]])
ALONE = {kind: GaussianMixture(3, covariance_type=kind, random_state=0, n_init=5).fit(X) for kind in ("full", "diag")}
for KIND in ("full", "diag"):
    for PLACE in (1e4, 999_999.0, 1e9):
        ROWS = np.vstack([X, [[PLACE, PLACE]]])

        @case(f"three blobs and a row at {PLACE:g}, {KIND}, k = 4: Rand index, mean log-density of the others", f"1.0, {ALONE[KIND].score(X):.3f}")
        def _():
            mixture = GaussianMixture(4, covariance_type=KIND, random_state=0, n_init=5).fit(ROWS)
            return f"{adjusted_rand_score(TRUTH, mixture.predict(X)):.3f}, {mixture.score(X):.3f}"


for DISTANCE, WIDTH in ((1e3, 0.01), (1e5, 1.0), (1e7, 1.0), (1e9, 1.0)):
    for KIND in ("full", "diag"):
        EXACT = -np.log(2) - np.log(2 * np.pi * WIDTH**2) - 1

        @case(f"two clusters of deviation {WIDTH:g}, {DISTANCE:g} apart, {KIND}: mean log-density", f"{EXACT:.2f}")
        def _():
            noise = np.random.default_rng(0).normal(scale=WIDTH, size=(2_000, 2))
            rows = noise + (np.arange(2_000) % 2)[:, None] * DISTANCE
            return f"{GaussianMixture(2, covariance_type=KIND, random_state=0).fit(rows).score(rows):.2f}"


for PLACE in (1e3, 1e4, 1e6):

    @case(f"Dirichlet process, three blobs and a row at {PLACE:g}: Rand index of the others", "1.0")
    def _():
        rows = np.vstack([X, [[PLACE, PLACE]]])
        return f"{adjusted_rand_score(TRUTH, BayesianGaussianMixture(10, random_state=0).fit(rows).predict(X)):.3f}"


@case("8,000 values of 25 steps, k = 25, full, diag, spherical: mean log-density", "three equal numbers, or a warning")
def _():
    rows = np.random.default_rng(0).integers(0, 25, size=(8_000, 1)).astype(float)
    kinds = ("full", "diag", "spherical")
    return ", ".join(f"{GaussianMixture(25, covariance_type=kind, random_state=0).fit(rows).score(rows):.2f}" for kind in kinds)


# Eigenvalues.
for D, N in ((23, 60), (100, 150), (200, 250)):

    @case(f"{N} x {D} rows of rank 1, k = 1, full: trace of the covariance; F falls", "")
    def _():
        rng = np.random.default_rng(D)
        rows = np.outer(rng.integers(-20, 20, N), rng.integers(-9, 9, D)).astype(float)
        mixture = GaussianMixture(1, covariance_type="full", random_state=0).fit(rows)
        energies = mixture.report_["free_energies"]
        falls = any(b < a - 1e-9 * abs(a) for a, b in zip(energies, energies[1:]))
        right = np.trace(np.cov(rows.T, bias=True))
        return f"{np.trace(np.asarray(mixture.covariances_)[0]):.6g}, right {right:.6g}; {falls}"


# Empty clusters, few rows.
SIX = np.array([[0.0, 0], [0, 1], [10, 0], [10, 1], [0, 10], [0, 11]])


@case("three pairs of rows, a third initial centre at (500, 500), exact k-means: error", "1.5")
def _():
    return KMeans(3, algorithm="lloyd", init=np.array([[0.0, 0], [10, 0], [500, 500]]), merge_rows=False).fit(SIX).inertia_


@case("five distinct rows of six, six centres: error", "0.0 and a warning")
def _():
    rows = np.array([[0.0], [1], [2], [3], [4], [4]])
    return KMeans(6, algorithm="lloyd", init=np.array([[0.0], [1], [2], [3], [4], [90]]), merge_rows=False).fit(rows).inertia_


@case("500 x 3, one blob and 2 % far specks, k = 3, 40 seeds: error of `fast` over that of the best of 10 seeds of exact k-means", "1.00")
def _():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 3))
    rows[:10] *= 50
    best = min(KMeans(3, algorithm="lloyd", random_state=seed, n_init=10).fit(rows).inertia_ for seed in range(4))
    return f"{np.mean([KMeans(3, random_state=seed, merge_rows=False).fit(rows).inertia_ for seed in range(40)]) / best:.3f}"


@case("truncated searches with tied covariances, continued 20 times: fits whose lower bound is not finite", "0 of 20")
def _():
    bad = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(60, 2))
        # The parameter had another name before.
        neighbors = {"neighbors" if "neighbors" in VcGmm().get_params() else "n_neighbors": 2}
        mixture = VcGmm(8, coreset_size="all", c_prime=2, covariance_type="tied", random_state=seed, warm_start=True, **neighbors)
        try:
            bad += not np.isfinite(mixture.fit(rows).fit(rows).lower_bound_)
        except ValueError:
            bad += 1
    return f"{bad} of 20"


# Rows in memory.
@case("a masked array, masked values 999", "an error")
def _():
    rows = np.ma.masked_equal(np.array([[0.0], [1], [999], [2]]), 999)
    return KMeans(2, random_state=0).fit(rows).cluster_centers_.ravel().tolist()


@case("a row of weight 0 whose density is 0: score", "a number")
def _():
    mixture = GaussianMixture(1, random_state=0).fit(np.random.default_rng(0).normal(size=(100, 1)))
    return f"{mixture.score(np.array([[0.0], [1e149]]), sample_weight=[1, 0]):.3f}"


# Files. Each is a folder of its own.
def in_folder(function):
    def run():
        folder, back = tempfile.mkdtemp(), os.getcwd()
        os.chdir(folder)
        try:
            return function()
        finally:
            os.chdir(back)
            shutil.rmtree(folder)

    return run


def write(path: str, content: str | bytes) -> None:
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def labelled(*arguments: str) -> str:
    told = command("fit", *arguments, "-k", "2", "-m", "m.cmx", "-l", "labels.csv")
    if not told.startswith("exit 0"):
        return told
    return told + short(" ".join(open("labels.csv", encoding="utf-8", errors="replace").read().split()))


@case("an Arrow stream whose dictionary is replaced: keys", "ann bob cat dan")
@in_folder
def _():
    batches = []
    for values, names in (([0.0, 1.0], ["ann", "bob"]), ([10.0, 11.0], ["cat", "dan"])):
        keys = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(names))
        batches.append(pa.record_batch([pa.array(values), keys], ["x", "name"]))
    with pa.ipc.new_stream("rows.arrows", batches[0].schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return labelled("rows.arrows", "--key", "name")


@case("a header of numbers, as pandas writes it: rows", "3, or a word of what was taken")
@in_folder
def _():
    write("rows.csv", "0,1,2\n10.5,20.25,30.125\n11.5,21.25,31.125\n90.5,91.25,92.125\n")
    done = subprocess.run([COMMAND, "fit", "rows.csv", "-k", "2", "-m", "m.cmx", "-l", "l.csv"], capture_output=True, text=True)
    return f"{len(open('l.csv').readlines()) - 1} rows; {short(done.stderr)}"


for ENCODING in ("latin-1", "utf-16"):

    @case(f"keys in {ENCODING}", "an error that names it")
    @in_folder
    def _():
        write("rows.csv", "name,x\nMüller,1\nMöller,9\nMaler,2\n".encode(ENCODING))
        return labelled("rows.csv", "--key", "name")


@case("gzip with the ending .csv", "an error that names it")
@in_folder
def _():
    write("rows.csv", gzip.compress(b"x\n1\n2\n9\n"))
    return labelled("rows.csv")


@case("a blank line in a file of one column", "an error, or a row that is left out with a word")
@in_folder
def _():
    write("rows.csv", "x\n1\n\n2\n9\n")
    return labelled("rows.csv")


@case("labels over a file of rows", "an error")
@in_folder
def _():
    write("rows.csv", "x\n1\n2\n9\n")
    write("data.csv", "x\n7\n8\n")
    told = command("fit", "rows.csv", "-k", "2", "-m", "m.cmx", "-l", "data.csv")
    return told + "; data.csv begins " + open("data.csv").readline().strip()


@case("clusters -a gmm --covariance full --to 6, three blobs and (999999, 999999): chosen", "4")
@in_folder
def _():
    np.savetxt("rows.csv", WITH_OUTLIER, delimiter=",", header="x,y", comments="")
    told = subprocess.run(
        [COMMAND, "--quiet", "clusters", "rows.csv", "-a", "gmm", "--covariance", "full", "--to", "6"], capture_output=True, text=True
    ).stdout
    return [line.split()[0] for line in told.splitlines() if "*" in line]


for NAME, CONTENT, OPTIONS in (
    ("comment lines", "# by hand\nx,y\n1,2\n2,3\n9,9\n", ("--comment", "#")),
    ("decimal commas", "x;y\n1,5;2\n2;3,5\n9;9\n", ("--decimal", ",", "--delimiter", ";")),
    ("R's write.table, a header one field short", '"x" "y"\n"1" 1 2\n"2" 2 3\n"3" 9 9\n', ("--delimiter", " ")),
    ("a trailing delimiter on each line", "x,y,\n1,2,\n2,3,\n9,9,\n", ()),
    ("--delimiter '\\t'", "x\ty\n1\t2\n2\t3\n9\t9\n", ("--delimiter", "\\t")),
    ("runs of blanks", "x   y\n1   2\n2  3\n9    9\n", ("--delimiter", " ")),
    ("lines that end with CR", "x,y\r1,2\r2,3\r9,9\r", ()),
    ("a missing value, --drop-missing", "x,y\n1,2\n,3\n9,9\n2,2\n", ("--drop-missing",)),
    ("an empty file", "", ()),
    ("an error of 7e-46 (two rows in two clusters)", "x\n1\n2\n", ()),
):

    @case(NAME, "")
    @in_folder
    def _():
        write("rows.csv", CONTENT)
        return labelled("rows.csv", *OPTIONS)


@case("fast with --covariance full", "an error that names an algorithm")
@in_folder
def _():
    write("rows.csv", "x,y\n1,2\n2,3\n9,9\n")
    return labelled("rows.csv", "--covariance", "full")


json.dump(ANSWERS, sys.stdout, indent=1)
