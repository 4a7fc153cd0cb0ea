"""`python3 -m unittest discover -s reproduce/peers`: needs nothing but Python."""

import os
import unittest
from unittest import mock

import environment

AVX512 = ("SkylakeX", {"skylakex", "cooperlake", "sapphirerapids"})


def pool(kernels, api="openblas"):
    return {"internal_api": api, "architecture": kernels, "version": "0.3.15", "filepath": "faiss/libopenblas.so"}


class Kernels(unittest.TestCase):
    def check(self, *pools, best=AVX512):
        with mock.patch("environment.best_kernels", return_value=best):
            environment.check_kernels(pools)

    def test_slow_kernels_end_the_program(self):
        # The kernels of an old copy, the kernels that a foreign environment may ask for, and unknown ones.
        for found in ("Barcelona", "Prescott", "Nehalem", "Haswell", None):
            with self.assertRaises(SystemExit) as ended:
                self.check(pool("SkylakeX"), pool(found))
            for word in (str(found), "SkylakeX", "libopenblas.so"):
                self.assertIn(word, str(ended.exception))
        with self.assertRaises(SystemExit):
            self.check(pool("Nehalem"), best=("Haswell", {"haswell", "zen"}))

    def test_the_best_kernels_pass(self):
        self.check(pool("SkylakeX"), pool("Cooperlake"), pool("SAPPHIRERAPIDS"), pool(None, api="openmp"))
        self.check(pool("Zen"), best=("Haswell", {"haswell", "zen"}))
        # A processor whose flags are not known.
        self.check(pool("Prescott"), best=None)

    def test_the_environment_does_not_choose_kernels(self):
        foreign = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_L2_SIZE": "512", "OPENBLAS_NUM_THREADS": "7"}
        for best in (AVX512, None):
            with mock.patch.dict(os.environ, foreign), mock.patch("environment.best_kernels", return_value=best):
                environment.prepare(3)
                left = {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
                expected = {"OPENBLAS_NUM_THREADS": "3"} | ({"OPENBLAS_CORETYPE": "SkylakeX"} if best else {})
                self.assertEqual(left, expected)


if __name__ == "__main__":
    unittest.main()
