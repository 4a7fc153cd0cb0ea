"""Twelve kinds of rows that no setting was chosen on, unlike those of `reproduce --bin families`.

    target/peers/venv/bin/python reproduce/peers/other_rows.py FOLDER

They are: points of a sphere, a tree of clusters, categories, counts, one column, tracks, smooth fields, columns of mixed kinds,
Cauchy factors, a small table of many clusters, rows of which half are repeated, and planks."""

import pathlib
import sys

import numpy as np

FOLDER = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(20261123)


def save(name, x):
    np.save(FOLDER / f"{name}.npy", np.ascontiguousarray(x, dtype=np.float32))
    print(name, x.shape)


# Embeddings: columns of falling variance, clusters of different sizes, rows of length 1.
scale = np.arange(1, 129) ** -0.5
centres = rng.normal(size=(400, 128)) * scale
sizes = rng.dirichlet(np.full(400, 0.5))
labels = rng.choice(400, 60_000, p=sizes)
x = centres[labels] + 0.7 * rng.normal(size=(60_000, 128)) * scale
save("sphere", x / np.linalg.norm(x, axis=1, keepdims=True))

# Six branches at each of four levels.
x = np.zeros((80_000, 20))
branches = [rng.integers(0, 6, 80_000) for _ in range(4)]
leaves = np.zeros(80_000, dtype=int)
for level in range(4):
    leaves = leaves * 6 + branches[level]
    centres = np.random.default_rng(level).normal(size=(6 ** (level + 1), 20)) * (8.0 * 0.35**level)
    x += centres[leaves]
x += 0.05 * rng.normal(size=x.shape)
save("tree", x)

# Five categories that depend on a group, as columns of 0 and 1.
columns = []
for values in [3, 5, 8, 12, 20]:
    drawn = rng.integers(0, 15, 60_000)
    if not columns:
        group = drawn
    shares = np.random.default_rng(values).dirichlet(np.full(values, 0.4), size=15)
    u = rng.random(60_000)
    category = (shares[group].cumsum(1) < u[:, None]).sum(1).clip(0, values - 1)
    columns.append(np.eye(values)[category])
save("onehot", np.hstack(columns))

# Words of texts on a few of 40 topics.
topics = rng.dirichlet(np.full(200, 0.05), size=40)
texts = rng.dirichlet(np.full(40, 0.1), size=40_000)
save("counts", rng.poisson(60 * (texts @ topics)))

# One column with heavy tails.
heavy = rng.standard_t(2, size=(100_000, 1))
save("one", np.concatenate([heavy, rng.exponential(size=(100_000, 1)) * 5 + 3]))

# Positions of 300 walkers.
steps = rng.normal(size=(300, 500, 2)) * 0.001
homes = rng.normal(size=(300, 1, 2)) * [20, 40]
save("gps", (homes + steps.cumsum(1)).reshape(-1, 2))

# Smooth pictures of 16 x 16.
fields = np.cumsum(np.cumsum(rng.normal(size=(12_000, 16, 16)), 1), 2)
save("fields", fields.reshape(12_000, -1))

# A table of ages, sums of money, flags and measurements.
n = 100_000
ages, money = rng.integers(18, 90, n), np.exp(rng.normal(10, 1.2, n))
flags = rng.random((n, 6)) < 0.2
save("mixed", np.c_[ages, money, flags, np.exp(rng.normal(3, 2, (n, 3))), rng.normal(size=(n, 4))])

# Five Cauchy factors in 40 columns.
loadings = rng.normal(size=(40, 5))
factors = rng.standard_cauchy(size=(60_000, 5))
save("cauchy5", factors @ loadings.T + 0.1 * rng.normal(size=(60_000, 40)))

# About four rows per cluster.
centres = rng.normal(size=(700, 30)) * 3
save("small", centres[rng.integers(0, 700, 3_000)] + rng.normal(size=(3_000, 30)))

# Half of the rows are 30 different ones, the others are noise.
few = rng.normal(size=(30, 300))
save("halfdup", np.vstack([few[rng.integers(0, 30, 20_000)], rng.normal(size=(20_000, 300)) * 2]))

# Long parallel planks.
plank = rng.integers(0, 50, 60_000)
across = plank * 1.0 + 0.05 * rng.normal(size=60_000)
save("planks", np.c_[across, rng.uniform(-100, 100, 60_000), 0.1 * rng.normal(size=(60_000, 6))])
