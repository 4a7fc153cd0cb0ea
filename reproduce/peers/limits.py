"""Threads of the libraries."""

import os
import time

VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "MATMUL_NUM_THREADS",
    "LANCE_CPU_THREADS",
)


def limit_threads(threads):
    """The libraries read these variables when they are loaded: to be called before numpy is imported."""
    os.environ.update((variable, str(threads)) for variable in VARIABLES)


def settle():
    """Threads of OpenBLAS wait busily for a tenth of a second after their last work: not while the next fit is timed."""
    time.sleep(0.15)
