"""Tables of the measurements: per set all runs, and over all sets the fastest peers at each target, with `fast`."""

import dataclasses
import math

import picture
from results import CONVERGED, OWN, REFERENCE, TARGETS, base_of, step_of

# Times as fast as the fastest peer: wanted, and the least that is accepted.
WANTED, FLOOR = 20.0, 8.0
FAST = "fast"


@dataclasses.dataclass
class Found:
    """One set: its peers by name, each with its family, its version and its steps in the order of time."""

    name: str
    shape: list
    threads: int
    compared: str
    families: dict
    versions: dict
    steps: dict

    def fastest(self, target, own):
        """Peer, step and figures of the fastest that reaches the target: a setting of `fast`, or another library."""
        reached = [
            (figures.seconds, name, step, figures)
            for name, steps in self.steps.items()
            for step, figures in steps.items()
            if (name == FAST if own else self.families[name] != OWN) and figures.reaches(target)
        ]
        return min(reached, default=None)

    def cut(self, target, seconds):
        """Seconds of the shortest ladder that ended at the budget before the target and before `seconds`."""
        last = [
            max(steps.values(), key=lambda figures: figures.seconds)
            for name, steps in self.steps.items()
            if self.families[name] != OWN and name != REFERENCE
        ]
        ended = [
            figures.seconds for figures in last if figures.seconds > figures.budget and not figures.reaches(target)
        ]
        return min((time for time in ended if time < seconds), default=None)


def collect(runs):
    """All sets, in the order in which they were first measured; of each peer only its newest version."""
    newest, names = {}, {}
    for run in runs:
        names.setdefault((run["set"]), None)
        newest[run["set"]] = (run["digest"], run["threads"])
    versions = {(run["set"], run["peer"]): run["version"] for run in runs}
    found = []
    for name in names:
        here = [run for run in runs if run["set"] == name and (run["digest"], run["threads"]) == newest[name]]
        here = [run for run in here if versions[name, run["peer"]] == run["version"]]
        found.append(of_set(name, here))
    return found


def of_set(name, runs):
    base, compared = base_of(runs), "scikit-learn's KMeans(n_init=1)"
    if base is None:
        base = min(run["error"] for run in runs if run["error"] is not None)
        compared = "the best run, since scikit-learn's has not run"
    groups, families, versions = {}, {}, {}
    for run in runs:
        groups.setdefault(run["peer"], {}).setdefault(run["step"], {})[run["seed"]] = run
        families[run["peer"]], versions[run["peer"]] = run["family"], run["version"]
    steps = {
        peer: {step: step_of(list(of_peer[step].values()), base, runs[0]["floor"]) for step in in_order(of_peer)}
        for peer, of_peer in groups.items()
    }
    return Found(name, runs[0]["shape"], runs[0]["threads"], compared, families, versions, steps)


def in_order(steps):
    """By iterations; then the steps that are no numbers, as they were measured."""
    return sorted(steps, key=lambda step: int(step) if step.isdigit() else math.inf)


def percent(error):
    if not math.isfinite(error):
        return "failed"
    # Without a sign of minus before 0.
    return f"{round(error, 2) + 0.0:+.2f} %" if abs(error) < 100 else f"{error:+.0f} %"


def called(name, step):
    """A run in words."""
    if not step:
        return name
    if step == CONVERGED:
        return f"{name}, {step}"
    return f"{name}, {step} iterations" if step.isdigit() else f"{name} {step}"


def every_run(found):
    fast = found.steps.get(FAST, {}).get("")
    lines = [
        f"**{found.name} ({found.shape[0]} x {found.shape[1]})**, errors relative to {found.compared}",
        "",
        "| | seconds | error | standard error | seeds | times as long as `fast` |",
        "|---|---|---|---|---|---|",
    ]
    for name, steps in found.steps.items():
        for step, figures in steps.items():
            ratio = f"{figures.seconds / fast.seconds:.1f}" if fast else ""
            spread = f"{figures.spread:.2f}" if math.isfinite(figures.spread) else ""
            error = f"{percent(figures.error)} | {spread} | {figures.seeds}"
            lines.append(f"| {called(name, step)} | {figures.seconds:.3f} | {error} | {ratio} |")
    return "\n".join(lines)


def per_target(found):
    """The fastest peer at each target on one set, and `fast`."""
    lines = [
        "| reaches | fastest peer | seconds | error | `fast` | seconds | error | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(lines + [line(found, target, f"+{target:g} %") for target in TARGETS])


def summary(all_found, target):
    lines = [
        f"| +{target:g} % | fastest peer | seconds | error | `fast` | seconds | error | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(lines + [line(found, target, found.name) for found in all_found])


def line(found, target, first):
    peer, fast = found.fastest(target, own=False), found.fastest(target, own=True)
    cells = [first]
    for reached, own in ((peer, False), (fast, True)):
        if reached:
            _, name, step, figures = reached
            shown = (f"`{step}`" if step else "its own settings") if own else called(name, step)
            cells += [shown, f"{figures.seconds:.3f}", percent(figures.error)]
        else:
            best = (
                min((figures.error for figures in found.steps.get(FAST, {}).values()), default=math.inf)
                if own
                else math.inf
            )
            cells += ["none", "", f"best {percent(best)}" if math.isfinite(best) else ""]
    return "| " + " | ".join([*cells, ratio_in_words(found, target)]) + " |"


def ratio(found, target):
    """How many times as fast `fast` is, and whether that is only known from below; None where one of both misses."""
    peer, fast = found.fastest(target, own=False), found.fastest(target, own=True)
    if not peer or not fast:
        return None
    cut = found.cut(target, peer[0])
    return (cut or peer[0]) / fast[0], cut is not None


def ratio_in_words(found, target):
    known = ratio(found, target)
    if known is None:
        return "" if found.fastest(target, own=True) else "**missed**"
    times, below = known
    mark = "" if times >= WANTED else " (below 20)" if times >= FLOOR else " (**below 8**)"
    return ("at least " if below else "") + f"{times:.1f}" + mark


def as_good(all_found):
    """The fastest peers that end at most at the error of `fast` with its own settings."""
    lines = [
        "| as good as `fast` | fastest peer | seconds | error | `fast` | error | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for found in all_found:
        fast = found.steps.get(FAST, {}).get("")
        if fast is None:
            continue
        peer = found.fastest(fast.error, own=False)
        if peer:
            seconds, name, step, figures = peer
            cut = found.cut(fast.error, seconds)
            times = ("at least " if cut else "") + f"{(cut or seconds) / fast.seconds:.1f}"
            cells = [called(name, step), f"{seconds:.3f}", percent(figures.error)]
        else:
            others = [
                figures.error
                for name, steps in found.steps.items()
                if found.families[name] != OWN
                for figures in steps.values()
            ]
            times, cells = "", ["none", "", f"best {percent(min(others, default=math.inf))}"]
        lines.append("| " + " | ".join([found.name, *cells, f"{fast.seconds:.3f}", percent(fast.error), times]) + " |")
    return "\n".join(lines)


def verdict(all_found, target):
    """In a sentence: where the ratio is missed."""
    ratios = {found.name: ratio(found, target) for found in all_found}
    no_peer = [found.name for found in all_found if ratios[found.name] is None and found.fastest(target, own=True)]
    measured = [name for name in ratios if name not in no_peer]
    times = {name: ratios[name][0] if ratios[name] else 0.0 for name in measured}
    missed = [name for name in measured if times[name] < WANTED]
    text = f"At +{target:g} %: {WANTED:g} times on {len(measured) - len(missed)} of {len(measured)} sets"
    text += f", {FLOOR:g} times on {sum(time >= FLOOR for time in times.values())}."
    if missed:
        order = sorted(missed, key=times.get)
        text += (
            " Missed on "
            + "; ".join(f"{name} ({f'{times[name]:.1f}' if times[name] else 'not reached'})" for name in order)
            + "."
        )
    if no_peer:
        text += " No peer reaches it on " + "; ".join(no_peer) + "."
    return text


def overview(all_found):
    # A build of this crate says nothing to others.
    versions = {
        version for found in all_found for name, version in found.versions.items() if found.families[name] != OWN
    }
    parts = [f"Measured: {', '.join(sorted(versions))}; {max(found.threads for found in all_found)} threads."]
    for target in TARGETS:
        parts += [summary(all_found, target), verdict(all_found, target)]
    parts.append(as_good(all_found))
    return "\n\n".join(parts)


def write(runs, out, docs):
    """Writes tables and pictures to `out`, and the picture of the README to `docs`."""
    if not runs:
        raise SystemExit("nothing has been measured")
    all_found = collect(runs)
    every = "\n\n".join(f"{every_run(found)}\n\n{per_target(found)}" for found in all_found)
    (out / "peers.md").write_text(f"{every}\n\n{overview(all_found)}\n")
    picture.draw(all_found, out / "peers.svg")
    print(overview(all_found))
    if docs:
        picture.draw(shown(all_found), docs / "frontier.svg")


def shown(all_found, count=3):
    """The sets on which the reference takes longest, and the one where `fast` does worst, in the order of all."""
    seconds = {
        found.name: max((figures.seconds for figures in found.steps.get(REFERENCE, {}).values()), default=0.0)
        for found in all_found
    }
    names = sorted(seconds, key=seconds.get)[-count:]
    others = [found for found in all_found if found.name not in names]
    ratios = {found.name: (ratio(found, TARGETS[0]) or (math.inf,))[0] for found in others}
    names += sorted(ratios, key=ratios.get)[:1]
    return [found for found in all_found if found.name in names]
