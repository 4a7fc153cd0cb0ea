"""Variables that the libraries read when they are loaded: `prepare` is called before numpy is imported."""

import os
import pathlib
import time

THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "MATMUL_NUM_THREADS",
    "LANCE_CPU_THREADS",
)


# Kernels of OpenBLAS, the fastest first, by the flags of the processor that they need; and what it may take in their place, which
# has the same instructions and more.
KERNELS = (
    ({"avx512f", "avx512bw", "avx512dq", "avx512vl"}, "SkylakeX", {"skylakex", "cooperlake", "sapphirerapids"}),
    ({"avx2", "fma"}, "Haswell", {"haswell", "zen"}),
)


def prepare(threads):
    """Threads, and the kernels of OpenBLAS.

    The OpenBLAS in the package of faiss is of 2021. On processors that it does not know it takes its oldest kernels, and
    faiss two to three times as long. So the kernels are chosen here. Variables of OpenBLAS in the environment are deleted: other kernels, or
    a size of a cache that is not that of this machine, make peers slow."""
    for variable in [name for name in os.environ if name.startswith("OPENBLAS_")]:
        del os.environ[variable]
    os.environ.update((variable, str(threads)) for variable in THREADS)
    if best := best_kernels():
        os.environ["OPENBLAS_CORETYPE"] = best[0]


def best_kernels():
    """The name of the kernels for this processor, and all names that are as good; None where its flags are not known."""
    about = pathlib.Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    flags = set(next((line for line in lines if line.startswith("flags")), "").split())
    return next(((name, allowed) for needed, name, allowed in KERNELS if needed <= flags), None)


def check_kernels(pools):
    """Ends the program where a loaded OpenBLAS does not run the kernels for this processor: `pools` are those of threadpoolctl,
    after all libraries have been loaded."""
    best = best_kernels()
    if best is None:
        return
    for pool in pools:
        found = str(pool.get("architecture")).lower()
        if pool["internal_api"] == "openblas" and found not in best[1]:
            raise SystemExit(
                f"{pool['filepath']}: OpenBLAS {pool['version']} runs its kernels for {pool.get('architecture')}, not those for"
                f" {best[0]}, which this processor has the instructions of. Nothing is measured with slow kernels."
            )


def settle():
    """Threads of OpenBLAS wait busily for a tenth of a second after their last work: not while the next fit is timed."""
    time.sleep(0.15)
