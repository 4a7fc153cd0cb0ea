"""Twelve kinds of rows that nothing was tuned to, as .npy files (f32): kinds.py FOLDER [ROWS [COLUMNS]]."""

import pathlib
import sys

import numpy as np

folder, n, d = pathlib.Path(sys.argv[1]), *(int(x) for x in sys.argv[2:4] or (60_000, 24))
rng = np.random.default_rng(11)
label = rng.integers(0, 200, n)
noise = rng.normal(size=(n, d))
centres = 4 * rng.normal(size=(200, d))
t = rng.uniform(0, 2 * np.pi, n)
waves = lambda speed, phase: np.sin(speed[:, None] * np.arange(d) + phase[:, None])

KINDS = {
    "skewed": centres[label] + rng.exponential(size=(n, d)) ** 2,
    "covariances": centres[label] + np.einsum("nij,nj->ni", rng.normal(size=(20, d, d))[label % 20], noise) / 3,
    "sphere": noise / np.linalg.norm(noise, axis=1, keepdims=True),
    "rings": np.stack([np.cos(t), np.sin(t)], 1) @ rng.normal(size=(2, d)) * (1 + label % 5)[:, None] + 0.05 * noise,
    "spiral": np.stack([t * np.cos(3 * t), t * np.sin(3 * t), t], 1) @ rng.normal(size=(3, d)) + 0.1 * noise,
    "walks": np.cumsum(noise, axis=1),
    "binary": rng.uniform(size=(n, d)) < rng.beta(0.5, 0.5, (200, d))[label],
    "counts": rng.poisson(rng.gamma(1.0, 3.0, (200, d))[label]),
    "simplex": rng.dirichlet(np.full(d, 0.2), n),
    "waves": waves(rng.uniform(0.1, 1, 200)[label], t) + 0.2 * noise,
    "nested": centres[label // 20] + 0.3 * centres[label] + 0.03 * centres[(7 * label + rng.integers(0, 9, n)) % 200] + 0.01 * noise,
    "exponential-sizes": centres[np.minimum(rng.geometric(0.03, n), 199)] + noise,
}
for name, rows in KINDS.items():
    np.save(folder / f"{name}.npy", np.ascontiguousarray(rows, dtype=np.float32))
