"""Fits have the same bits in Python and in Rust."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import coremix
from conftest import blobs

# The program of examples/same_bits.rs, as `cargo build -p coremix-python --example same_bits` makes it.
PROGRAM = os.environ.get("COREMIX_SAME_BITS")
DATA = Path(__file__).parents[3] / "shared" / "data"


def rust(tmp_path, x, algorithm, clusters, seed, *last):
    rows, model = tmp_path / "rows.npy", tmp_path / "model.cmx"
    np.save(rows, x)
    number = {"float32": "f32", "float64": "f64"}[x.dtype.name]
    arguments = [rows, number, algorithm, clusters, seed, model, *last]
    subprocess.run([PROGRAM, *map(str, arguments)], check=True)
    return coremix.Model.load(model)


CASES = {
    "fast": (coremix.KMeans(30, random_state=5, merge_rows=False), "fast", []),
    "k-means": (coremix.KMeans(30, algorithm="lloyd", random_state=5, merge_rows=False), "k-means", []),
    "lazy": (coremix.KMeans(30, algorithm="lazy-k-means", random_state=5, merge_rows=False), "lazy-k-means", []),
    "lwcs": (coremix.KMeans(30, algorithm="lwcs-k-means", random_state=5, merge_rows=False), "lwcs-k-means", []),
    "k-means-c-prime": (
        coremix.GaussianMixture(30, c_prime=3, covariance_type="diag", init_params="k-means++", random_state=5, merge_rows=False),
        "k-means-c-prime",
        ["diag"],
    ),
    "gmm": (
        coremix.GaussianMixture(10, tol=1e-3, random_state=5, merge_rows=False),
        "gmm",
        ["diag"],
    ),
    "vc-gmm": (coremix.VcGmm(30, random_state=5, merge_rows=False), "vc-gmm", []),
    "var-gmm-s": (
        coremix.VcGmm(30, coreset_size="all", covariance_type="spherical", random_state=5, merge_rows=False),
        "var-gmm-s",
        ["spherical"],
    ),
    "d-gmm": (coremix.DGmm(30, random_state=5, merge_rows=False), "d-gmm", []),
    "sparsified": (
        coremix.SparsifiedGmm(10, n_coordinates=4, random_state=5, merge_rows=False),
        "sparsified-gmm",
        [4],
    ),
    "dp": (coremix.BayesianGaussianMixture(10, random_state=5, merge_rows=False), "dp-gmm", ["refined"]),
}


@pytest.mark.skipif(PROGRAM is None, reason="COREMIX_SAME_BITS names no program")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("data", ["blobs", "heavy tails", "birch1", "kdd04bio"])
@pytest.mark.parametrize("name", CASES)
def test_fits_are_those_of_rust(tmp_path, name, data):
    if data == "blobs":
        x = blobs(12_000, 8, clusters=30)
    elif data == "heavy tails":
        x = np.random.default_rng(0).standard_t(3, size=(11_000, 20)).astype(np.float32)
    elif not (DATA / f"{data}.npy").exists():
        pytest.skip(f"{DATA / data}.npy is absent")
    else:
        x = np.load(DATA / f"{data}.npy")[:20_000]
        if x.shape[1] > 20 and name == "dp":
            x = x[:2_000, :20].copy()
        if x.shape[1] < 4 and name == "sparsified":
            x = np.hstack([x, x**2])
    estimator, algorithm, last = CASES[name]
    clusters = getattr(estimator, estimator._clusters)
    expected = rust(tmp_path, x, algorithm, clusters, 5, *last)
    assert estimator.fit(x)._model == expected
    # A file read by other threads, and more or fewer of them, changes nothing.
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert estimator.set_params(n_jobs=1).fit(mapped)._model == expected
    estimator.set_params(n_jobs=None)


@pytest.mark.skipif(PROGRAM is None, reason="COREMIX_SAME_BITS names no program")
def test_merged_rows_are_those_of_a_sorted_array(tmp_path):
    x = blobs(9_000, 3, clusters=30)
    x = x[np.lexsort(x.T[::-1])]
    expected = rust(tmp_path, x, "fast", 30, 5)
    shuffled = np.random.default_rng(0).permutation(x)
    assert coremix.KMeans(30, random_state=5).fit(shuffled)._model == expected
