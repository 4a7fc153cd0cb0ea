"""Threads of the libraries, which read these variables when they are loaded; so before numpy is imported."""

import os

VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "MATMUL_NUM_THREADS",
    "LANCE_CPU_THREADS",
)


def limit_threads(threads):
    os.environ.update((variable, str(threads)) for variable in VARIABLES)
