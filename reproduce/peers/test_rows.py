"""Tests of the error that all libraries are compared by: `python -m unittest` in this folder."""

import pathlib
import tempfile
import unittest

import numpy as np
from rows import Rows, relative


def naive(x, centres):
    difference = x[:, None, :].astype(np.longdouble) - np.asarray(centres)[None].astype(np.longdouble)
    return float((difference**2).sum(axis=2).min(axis=1).sum())


class ErrorOfCentres(unittest.TestCase):
    def rows(self, x, k=1):
        with tempfile.TemporaryDirectory() as folder:
            np.save(pathlib.Path(folder) / "x.npy", x)
            return Rows(f"{folder}/x.npy:{k}")

    def check(self, x, centres):
        rows = self.rows(x)
        self.assertAlmostEqual(rows.error(centres) / naive(rows.x, centres), 1.0, delta=1e-12)

    def test_equals_the_naive_sum(self):
        random = np.random.default_rng(1)
        for n, d, k in ((1, 1, 1), (300, 2, 7), (200, 33, 50)):
            self.check(random.normal(size=(n, d)), random.normal(size=(k, d)))

    def test_rows_far_from_the_mean(self):
        random = np.random.default_rng(2)
        x = random.normal(size=(400, 5))
        x[:200] += 1e7
        x[7] = 1e8
        centres = np.concatenate([x[:20], x[200:220]]).astype(np.float32) + random.normal(size=(40, 5))
        self.check(x, centres)

    def test_scales_over_eight_orders(self):
        random = np.random.default_rng(3)
        x = random.normal(size=(500, 4)) * 10.0 ** random.uniform(-4, 4, size=(500, 1))
        self.check(x, x[:100] * (1 + 1e-3))

    def test_repeated_rows_and_centres(self):
        x = np.repeat(np.random.default_rng(4).normal(size=(10, 3)), 20, axis=0)
        rows = self.rows(x)
        self.assertEqual(rows.error(rows.x[::7]), 0.0)
        self.assertEqual(relative(0.0, 0.0, rows.floor), 0.0)

    def test_bytes_and_centres_that_are_not_finite(self):
        x = np.random.default_rng(5).integers(0, 256, size=(100, 6)).astype(np.uint8)
        self.check(x, x[:9])
        self.assertEqual(self.rows(x).error(np.full((3, 6), np.nan)), float("inf"))


if __name__ == "__main__":
    unittest.main()
