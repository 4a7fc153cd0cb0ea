"""What the libraries read when they are loaded: `prepare` is called before numpy is imported."""

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


def prepare(threads):
    """Threads, and the kernels of OpenBLAS.

    The OpenBLAS in the package of faiss is of 2021. On processors that it does not know it takes its oldest kernels, and
    faiss half of its speed. So the kernels are chosen here, unless they are chosen already."""
    os.environ.update((variable, str(threads)) for variable in THREADS)
    choose_kernels()


def choose_kernels():
    """Those of OpenBLAS; before NumPy is loaded."""
    if kernels := openblas_kernels():
        os.environ.setdefault("OPENBLAS_CORETYPE", kernels)


def openblas_kernels():
    """Named after the first processor that had the instructions; None where they are not known."""
    about = pathlib.Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    flags = set(next((line for line in lines if line.startswith("flags")), "").split())
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        return "SkylakeX"
    return "Haswell" if {"avx2", "fma"} <= flags else None


def settle():
    """Threads of OpenBLAS wait busily for a tenth of a second after their last work: not while the next fit is timed."""
    time.sleep(0.15)
