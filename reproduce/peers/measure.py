"""Runs the fits whose results are not known yet. The next fit follows from the known results, so a run can stop anywhere and go on."""

import collections
import itertools
import sys
import time
import warnings

import environment
import numpy as np
from results import OWN, REFERENCE, TARGETS, base_of, step_of
from rows import Rows

# A run that takes this many times as long as the fastest other at the lower target does not matter.
SLACK = 2.0
# In percent: below the lower target, longer runs that gain less do not matter.
GAIN = 0.05

# A run is hopeless if this many gains like the larger of the last two would still miss the higher target.
HOPE = 4.0
# Short runs are repeated until they take `SHORT` seconds together, but at most `REPEATS` times.
SHORT, REPEATS = 0.5, 5


class Measured:
    """Known results on one set, from these versions of the peers."""

    def __init__(self, rows, peers, runs, options):
        self.rows, self.peers, self.options, self.floor = rows, peers, options, rows.floor
        self.known = collections.defaultdict(dict)
        versions = {peer.name: peer.version for peer in peers}
        for run in runs:
            same = run["digest"] == rows.digest and run["k"] == rows.k and run["threads"] == options.threads
            if same and versions.get(run["peer"]) == run["version"]:
                self.add(run)

    def add(self, run):
        self.known[run["peer"], run["step"]][run["seed"]] = run

    def step(self, peer, step, seeds):
        """Figures of a step over the first `seeds` seeds, of which some may be missing; None where nothing is known."""
        known = self.known[peer.name, step]
        runs = [known[seed] for seed in range(1, seeds + 1) if seed in known]
        base = base_of([run for runs in self.known.values() for run in runs.values()])
        return step_of(runs, base, self.floor) if runs and base is not None else None

    def limit(self, seeds):
        """Seconds after which longer runs of a peer do not matter."""
        reached = [
            found.seconds
            for peer in self.peers
            for step in peer.ladder
            if peer.family != OWN and (found := self.step(peer, step, seeds)) and found.reaches(min(TARGETS))
        ]
        return min([SLACK * seconds for seconds in reached] + [self.options.budget])

    def matters(self, peer, step, seed, seeds):
        """Whether this seed is run: long runs have one seed."""
        if peer.name == REFERENCE:
            return seed <= self.options.reference
        if seed == 1 or peer.family == OWN:
            return True
        found = self.step(peer, step, seeds)
        return found is None or found.seconds <= self.limit(seeds)

    def ends(self, peer, found, seeds):
        """Whether steps after these are left out."""
        now = found[-1]
        if len(found) < peer.always:
            return False
        if peer.family == OWN:
            return now.reaches(min(TARGETS))
        if not np.isfinite(now.error) or now.seconds > self.limit(seeds):
            return True
        gains = [before.error - after.error for before, after in itertools.pairwise(found)]
        if not gains:
            return False
        settled = now.reaches(min(TARGETS)) and gains[-1] < GAIN
        return settled or now.error - HOPE * max(gains[-2:]) > max(TARGETS)

    def next(self):
        """Peer, step and seed. All peers have one seed before any has two, so that they run in turn."""
        for seeds in range(1, self.options.seeds + 1):
            for peer in self.peers:
                found = []
                for step in peer.ladder:
                    for seed in range(1, seeds + 1):
                        if seed not in self.known[peer.name, step] and self.matters(peer, step, seed, seeds):
                            return peer, step, seed
                    found.append(self.step(peer, step, seeds))
                    if found[-1] is None or self.ends(peer, found, seeds):
                        break
        return None


def measure(names, peers, results, options):
    """Returns whether all is known."""
    # Fewer distinct rows than clusters are among what is asked.
    warnings.simplefilter("ignore")
    started, warm = time.perf_counter(), set()
    for name in names:
        rows = Rows(name)
        wanted = [peer for peer in peers if rows.shape[1] >= peer.columns]
        measured = Measured(rows, wanted, results.runs, options)
        while job := measured.next():
            if time.perf_counter() - started > options.time:
                return False
            run = run_one(rows, *job, options, warm)
            results.add(run)
            measured.add(run)
    return True


def repeated(fit):
    """The centres, and the median of several times where one is short."""
    times = []
    while len(times) < REPEATS and sum(times) < SHORT:
        environment.settle()
        centres, seconds = fit()
        times.append(seconds)
    return centres, float(np.median(times))


def run_one(rows, peer, step, seed, options, warm):
    run = {"set": rows.label, "digest": rows.digest, "k": rows.k, "shape": rows.shape, "floor": rows.floor}
    run |= {"peer": peer.name, "family": peer.family, "version": peer.version, "step": step, "seed": seed}
    run |= {"threads": options.threads, "budget": options.budget if np.isfinite(options.budget) else None}
    try:
        if peer.inside and peer.name not in warm:
            # The first fit in a process also loads code and starts threads.
            peer.run(rows.few(), step, seed)
            warm.add(peer.name)
        centres, run["seconds"] = repeated(lambda: peer.run(rows, step, seed))
        error = rows.error(centres)
        run["error"] = error if np.isfinite(error) else None
    except Exception as failure:
        run |= {"seconds": 0.0, "error": None, "failure": str(failure)[-500:]}
    # Some runs take long: what is known so far.
    shown = run.get("failure") or f"{run['seconds']:.3f} s, {error:.6e}"
    print(f"{rows.label}: {peer.name} {step}, seed {seed}: {shown}", file=sys.stderr, flush=True)
    return run
