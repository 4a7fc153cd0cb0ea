"""Runs, one JSON object a line, and what follows from them: means over the seeds."""

import dataclasses
import json
import os

import numpy as np
from rows import relative

# All errors are relative to the mean of scikit-learn's KMeans(n_init=1) to convergence.
REFERENCE = "scikit-learn KMeans"
# A step: no limit to the iterations.
CONVERGED = "converged"
# The family of what is measured here; the others are peers.
OWN = "coremix"
# In percent above the reference.
TARGETS = (1.0, 0.3)


class Results:
    """The runs of a file; each is on disk before the next begins."""

    def __init__(self, path):
        self.path = path
        self.runs = []
        for line in path.read_text().splitlines() if path.exists() else []:
            # The last line of a program that was killed may be half.
            if line.endswith("}"):
                self.runs.append(json.loads(line))

    def add(self, run):
        self.runs.append(run)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a") as file:
            # Ends a half line, if there is one.
            file.write(("\n" if file.tell() and not ends_a_line(self.path) else "") + json.dumps(run) + "\n")
            file.flush()
            os.fsync(file.fileno())


def ends_a_line(path):
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


@dataclasses.dataclass
class Step:
    """The runs of one peer at one step, over seeds."""

    seconds: float
    # In percent, with its standard error.
    error: float
    spread: float
    seeds: int
    budget: float

    def reaches(self, target):
        return self.error <= target


def step_of(runs, base, floor):
    """Figures of a step from runs over seeds; a run that failed has an infinite error."""
    errors = [relative(run["error"], base, floor) if run["error"] is not None else np.inf for run in runs]
    spread = np.std(errors, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 and np.isfinite(errors).all() else np.nan
    seconds = np.median([run["seconds"] for run in runs])
    budget = min((run["budget"] for run in runs if run["budget"] is not None), default=np.inf)
    return Step(float(seconds), float(np.mean(errors)), float(spread), len(errors), budget)


def base_of(runs):
    """The mean error of the reference among these runs; None where it has not run."""
    errors = [run["error"] for run in runs if run["peer"] == REFERENCE and run["error"] is not None]
    return float(np.mean(errors)) if errors else None
