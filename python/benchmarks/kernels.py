"""Import it before NumPy: it chooses the kernels of OpenBLAS, as the comparison with other libraries does.

The OpenBLAS of some packages does not know new processors, and takes its oldest kernels: unfair to faiss and scikit-learn.
"""

import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "reproduce" / "peers"))

import environment  # noqa: E402

# One thread where RAYON_NUM_THREADS or OMP_NUM_THREADS say so.
environment.prepare(os.environ.get("OMP_NUM_THREADS") or os.cpu_count())
