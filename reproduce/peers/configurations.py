"""The configurations to measure: each library with a ladder of steps, from short runs to long ones."""

import dataclasses
import hashlib
import importlib.metadata
import pathlib
import re

import environment
import libraries
import program
import threadpoolctl
from results import CONVERGED, OWN, REFERENCE

ITERATIONS = ("2", "4", "6", "8", "12", "16", "20", "25", "40", "64", "100")
# Where the seeding takes longer than many iterations.
SHORT_LADDER = ("4", "8", "16", "32", CONVERGED)

# `fast` with larger tolerances and with its own settings; then with a smaller tolerance and more iterations, while it misses a
# target.
FAST = (
    "--tolerance 1e-2",
    "--tolerance 3e-3",
    "",
    "--tolerance 3e-4 --max-iterations 30",
    "--tolerance 1e-4 --max-iterations 60",
    "--tolerance 3e-5 --max-iterations 100",
    "--tolerance 1e-5 --max-iterations 200",
)


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str
    family: str
    version: str
    # One run: from rows, step and seed to centres and seconds.
    run: object
    # The step "" is a run with the library's own settings.
    ladder: tuple = ("",)
    # Columns that the library asks for, at least.
    columns: int = 1
    # The number of steps that run in any case.
    always: int = 1
    # A process per fit starts anew each time.
    inside: bool = True


def peers():
    """In the order of measuring: the reference of all errors first, then what is fast, since it says which runs matter. Ends
    the program where one of them would run with slow kernels."""
    environment.check_kernels(threadpoolctl.threadpool_info())
    sklearn, lance = of_package("scikit-learn"), of_package("pylance")
    faiss = f"{of_package('faiss-cpu')} (OpenBLAS for {openblas_of('faiss')})"
    rust, own = of_crate("superkmeans-rs"), of_program()
    return [
        Peer(REFERENCE, "scikit-learn", sklearn, libraries.sklearn_k_means, (CONVERGED,)),
        Peer("fast", OWN, own, libraries.crate("fast"), FAST, always=1 + FAST.index(""), inside=False),
        Peer("vc-gmm", OWN, own, libraries.crate("vc-gmm"), inside=False),
        Peer("var-gmm-s", OWN, own, libraries.crate("var-gmm-s"), inside=False),
        Peer("faiss AFK-MC2", "faiss", faiss, libraries.faiss_k_means("AFK_MC2"), ITERATIONS),
        Peer("faiss SuperKMeans", "faiss", faiss, libraries.faiss_super_k_means, ITERATIONS, columns=16),
        Peer("faiss k-means++", "faiss", faiss, libraries.faiss_k_means("KMEANS_PLUS_PLUS"), ITERATIONS),
        Peer("faiss random", "faiss", faiss, libraries.faiss_k_means("RANDOM"), ITERATIONS),
        Peer("superkmeans-rs", "Rust", rust, libraries.super_k_means_rs, ITERATIONS, inside=False),
        Peer("Lance", "Rust", lance, libraries.lance_k_means, ITERATIONS),
        Peer("scikit-learn mini-batch", "scikit-learn", sklearn, libraries.sklearn_mini_batch),
        Peer("scikit-learn bisecting", "scikit-learn", sklearn, libraries.sklearn_bisecting),
        Peer("scikit-learn greedy k-means++", "scikit-learn", sklearn, libraries.sklearn_seeded(None), SHORT_LADDER),
        Peer("scikit-learn plain k-means++", "scikit-learn", sklearn, libraries.sklearn_seeded(1), SHORT_LADDER),
    ]


def of_package(name):
    return f"{name} {importlib.metadata.version(name)}"


def openblas_of(package):
    """The processor that its copy of OpenBLAS has kernels for."""
    pools = threadpoolctl.threadpool_info()
    return next((pool["architecture"] for pool in pools if package in pool["filepath"] and "architecture" in pool), "?")


def of_crate(name):
    """By the lock file of the program of other crates."""
    lock = pathlib.Path(__file__).with_name("rust") / "Cargo.lock"
    return f"{name} " + re.search(rf'name = "{name}"\nversion = "(.*)"', lock.read_text())[1]


def of_program():
    """This crate by the bytes of its program: another build is measured again."""
    return "coremix, build " + hashlib.sha256(program.PROGRAM.read_bytes()).hexdigest()[:8]
