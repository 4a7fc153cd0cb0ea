"""Tests of what is run next, and of what the tables make of it: `python -m unittest` in this folder."""

import pathlib
import tempfile
import types
import unittest

import report
from measure import Measured
from results import OWN, REFERENCE, Results

LADDER = ("2", "4", "8", "16")


def peer(name, seconds, errors, family="others", ladder=LADDER, always=1):
    """Seconds and errors by step, in the order of the ladder."""
    figures = dict(zip(ladder, zip(seconds, errors)))
    return types.SimpleNamespace(name=name, family=family, version="1", ladder=ladder, figures=figures, always=always)


def converged(seconds=50.0):
    return peer(REFERENCE, [seconds], [0.0], ladder=("",))


def plan(*peers, seeds=1, budget=float("inf"), known=()):
    """The runs that are made, in order."""
    rows = types.SimpleNamespace(digest="d", k=5, floor=0.0)
    measured = Measured(rows, peers, known, types.SimpleNamespace(threads=2, seeds=seeds, budget=budget))
    made = []
    while job := measured.next():
        of, step, seed = job
        seconds, error = of.figures[step]
        run = {"set": "s", "digest": "d", "k": 5, "shape": [9, 2], "floor": 0.0, "threads": 2, "budget": None}
        run |= {"peer": of.name, "family": of.family, "version": of.version, "step": step, "seed": seed}
        run |= {"budget": None if budget == float("inf") else budget}
        run |= {"seconds": seconds, "error": None if error is None else 1.0 + error / 100.0}
        measured.add(run)
        made.append(run)
    return made


def steps(runs, name, seed=1):
    return [run["step"] for run in runs if run["peer"] == name and run["seed"] == seed]


class WhatIsNext(unittest.TestCase):
    def test_a_ladder_goes_on_above_the_target(self):
        self.assertEqual(steps(plan(converged(), peer("a", [1, 2, 3, 4], [9, 5, 2, 1.2])), "a"), list(LADDER))

    def test_it_ends_where_nothing_is_gained_below_the_target(self):
        self.assertEqual(steps(plan(converged(), peer("a", [1, 1, 1, 1], [0.3, 0.26, 0.2, 0.1])), "a"), ["2", "4"])
        self.assertEqual(steps(plan(converged(), peer("a", [1, 1, 1, 1], [0.3, 0.2, 0.1, 0.0])), "a"), list(LADDER))

    def test_it_ends_where_it_is_hopeless(self):
        self.assertEqual(steps(plan(converged(), peer("a", [1, 2, 3, 4], [90, 88, 80, 9])), "a"), ["2", "4"])
        self.assertEqual(steps(plan(converged(), peer("a", [1, 2, 3, 4], [2.3, 2.2, 2.2, 2.2])), "a"), ["2", "4"])
        # One step without a gain may be chance.
        self.assertEqual(steps(plan(converged(), peer("a", [1, 2, 3, 4], [9, 4, 4.1, 0.9])), "a"), list(LADDER))

    def test_it_ends_where_it_takes_too_long(self):
        quick = peer("quick", [1, 2, 3, 4], [9, 0.2, 0.1, 0.0])
        slow = peer("slow", [3, 4.1, 5, 6], [9, 5, 4, 3])
        self.assertEqual(steps(plan(converged(), quick, slow), "slow"), ["2", "4"])
        self.assertEqual(steps(plan(converged(), slow, budget=2.0), "slow"), ["2"])

    def test_it_ends_at_a_failure(self):
        self.assertEqual(steps(plan(converged(), peer("a", [1, 2, 3, 4], [9, None, 1, 0])), "a"), ["2", "4"])
        self.assertEqual(steps(plan(converged(), peer("a", [1, 2, 3, 4], [None, None, 1, 0])), "a"), ["2"])

    def test_long_runs_have_one_seed(self):
        quick = peer("quick", [1, 2, 3, 4], [9, 0.2, 0.1, 0.0])
        slow = peer("slow", [3, 4.1, 5, 6], [9, 5, 4, 3])
        runs = plan(converged(), quick, slow, seeds=2)
        self.assertEqual(steps(runs, "slow", seed=2), ["2"])
        self.assertEqual(steps(runs, REFERENCE, seed=2), [""])

    def test_finer_settings_while_a_target_is_missed(self):
        fast = peer("fast", [1, 2, 3, 4], [0.9, 0.2, 0.1, 0.0], OWN)
        self.assertEqual(steps(plan(converged(), fast), "fast"), ["2", "4"])

    def test_some_settings_in_any_case(self):
        fast = peer("fast", [1, 2, 3, 4], [0.2, 0.1, 0.0, 0.0], OWN, always=3)
        self.assertEqual(steps(plan(converged(), fast), "fast"), ["2", "4", "8"])

    def test_all_peers_have_one_seed_before_any_has_two(self):
        runs = plan(converged(), peer("a", [1, 2, 3, 4], [9, 5, 2, 1.2]), seeds=2)
        self.assertEqual([run["seed"] for run in runs], [1] * 5 + [2] * 5)

    def test_an_interrupted_run_goes_on(self):
        peers = converged(), peer("a", [1, 2, 3, 4], [9, 5, 2, 1.2]), peer("b", [1, 2, 3, 4], [0.3, 0.28, 0.2, 0.1])
        whole = plan(*peers, seeds=3)
        for length in range(len(whole)):
            self.assertEqual(plan(*peers, seeds=3, known=whole[:length]), whole[length:])

    def test_other_versions_and_rows_do_not_count(self):
        runs = plan(converged(), seeds=1)
        for field, value in (("version", "2"), ("digest", "e"), ("k", 6), ("threads", 1)):
            self.assertEqual(len(plan(converged(), known=[run | {field: value} for run in runs])), 1)


class Tables(unittest.TestCase):
    def found(self, *peers, **options):
        return report.collect(plan(*peers, **options))[0]

    def test_the_fastest_that_is_as_good(self):
        fast = peer("fast", [0.1], [0.5], OWN, ladder=("",))
        found = self.found(converged(), fast, peer("a", [1, 2, 3, 4], [9, 0.8, 0.2, 0.1]))
        self.assertIn("| a, 8 iterations | 3.000 | +0.20 % | 0.100 | +0.50 % | 30.0 |", report.as_good([found]))
        better = peer("fast", [0.1], [-2.0], OWN, ladder=("",))
        found = self.found(converged(), better, peer("a", [1, 2, 3, 4], [9, 0.8, 0.2, 0.1]))
        self.assertIn("| none |  | best +0.00 % | 0.100 | -2.00 % |  |", report.as_good([found]))

    def test_the_fastest_that_reaches_a_target(self):
        fast = peer("fast", [0.1, 0.5], [0.9, 0.2], OWN, ladder=("", "finer"))
        found = self.found(converged(), fast, peer("a", [1, 2, 3, 4], [9, 0.8, 0.2, 0.1]))
        self.assertEqual(found.fastest(1.0, own=False)[1:3], ("a", "4"))
        self.assertEqual(found.fastest(0.3, own=False)[1:3], ("a", "8"))
        self.assertEqual(report.ratio(found, 1.0), (20.0, False))
        self.assertEqual(report.ratio(found, 0.3), (6.0, False))
        self.assertIn("8 times on 0. Missed on s (6.0).", report.verdict([found], 0.3))

    def test_a_ladder_that_ended_at_the_budget_is_said(self):
        fast = peer("fast", [0.1], [0.0], OWN, ladder=("",))
        found = self.found(converged(), fast, peer("a", [1, 2, 3, 4], [9, 5, 0.8, 0.1]), budget=1.5)
        self.assertEqual(report.ratio(found, 1.0), (20.0, True))

    def test_what_is_not_reached(self):
        fast = peer("fast", [0.1], [1.5], OWN, ladder=("",))
        found = self.found(converged(), fast)
        self.assertEqual(report.ratio_in_words(found, 1.0), "**missed**")
        self.assertIn("Missed on s (not reached)", report.verdict([found], 1.0))


class Lines(unittest.TestCase):
    def test_half_a_line_is_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "runs.jsonl"
            Results(path).add({"a": 1})
            with open(path, "a") as file:
                file.write('{"a": 2, "b"')
            self.assertEqual(Results(path).runs, [{"a": 1}])
            Results(path).add({"a": 3})
            self.assertEqual(Results(path).runs, [{"a": 1}, {"a": 3}])


if __name__ == "__main__":
    unittest.main()
