"""Rows from files, and the error of centres: the same for every library."""

import copy
import functools
import hashlib
import pathlib

import numpy as np

# Squared, what sums of float32 lose of a coordinate: some units in the last place.
ROUNDING = 2.0**-40


class Rows:
    """The rows of a file as float32, with the number of clusters that is asked for."""

    def __init__(self, name):
        path, k = name.rsplit(":", 1)
        self.path, self.k = path, int(k)
        self.x = np.ascontiguousarray(np.load(path), dtype=np.float32)
        if self.x.ndim != 2 or not 1 <= self.k <= len(self.x):
            raise SystemExit(f"{name}: needs a matrix with at least as many rows as clusters, got {self.x.shape}")
        self.label = f"{pathlib.Path(path).stem}, k = {self.k}"
        self.shape = list(self.x.shape)
        self.digest = hashlib.sha256(self.x.data).hexdigest()[:16]
        self._shift = self.x.mean(axis=0, dtype=np.float64)

    def few(self):
        """A small part of the rows and of the clusters."""
        few = copy.copy(self)
        few.x, few.k = self.x[:2000], min(self.k, 20, len(self.x))
        return few

    def blocks(self, columns):
        """Rows as float64, in blocks whose products with `columns` columns stay in the caches."""
        for block in np.array_split(self.x, max(1, len(self.x) * max(columns, self.x.shape[1]) // 1_000_000)):
            yield block.astype(np.float64)

    @functools.cached_property
    def floor(self):
        """An error below it is that of rounding: as if all rows were as long as the median one, so that few long rows do not
        hide the errors of the others."""
        lengths = np.concatenate([(rows**2).sum(axis=1) for rows in self.blocks(1)])
        return ROUNDING * len(lengths) * float(np.median(lengths))

    def error(self, centres):
        """Sum of the squared distances to the nearest centre. Centres that rounding leaves open are compared directly."""
        centres = np.asarray(centres, dtype=np.float64)
        if centres.shape[1] != self.x.shape[1] or not np.isfinite(centres).all():
            return float("inf")
        # Products are exact enough near the origin only.
        shifted = centres - self._shift
        norms = (shifted**2).sum(axis=1)
        factors = np.vstack([-2.0 * shifted.T, norms])
        # Rounding error of a score, relative to the sum of both norms.
        unit = 4.0 * (self.x.shape[1] + 4) * 2.0**-53
        total = 0.0
        for rows in self.blocks(len(centres)):
            about = rows - self._shift
            scores = np.column_stack([about, np.ones(len(about))]) @ factors
            lengths = (about**2).sum(axis=1)[:, None]
            # As if all centres were as long as the longest: enough, unless some are very long.
            near = scores <= scores.min(axis=1, keepdims=True) + 2.0 * unit * (lengths + norms.max())
            if np.count_nonzero(near) > 2 * len(rows):
                bounds = unit * (lengths + norms)
                near = scores - bounds <= (scores + bounds).min(axis=1, keepdims=True)
            total += nearest(rows, centres, *divmod(np.flatnonzero(near), len(centres))).sum()
        return float(total)


def nearest(rows, centres, row, centre):
    """Squared distances of the rows to the nearest of their candidates, given as pairs in the order of the rows."""
    distances = np.empty(len(row))
    step = max(1, 4_000_000 // rows.shape[1])
    for start in range(0, len(row), step):
        part = slice(start, start + step)
        difference = rows[row[part]] - centres[centre[part]]
        np.einsum("ij,ij->i", difference, difference, out=distances[part])
    return np.minimum.reduceat(distances, np.searchsorted(row, np.arange(len(rows))))


def relative(error, reference, floor):
    """In percent. Errors that rounding makes are all the same."""
    return 100.0 * (max(error, floor) / max(reference, floor) - 1.0) if floor or reference else 0.0
