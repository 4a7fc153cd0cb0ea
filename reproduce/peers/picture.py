"""Time against error: a curve per peer over its iterations, one panel per set."""

import re

import matplotlib

matplotlib.use("svg")
# Equal figures make equal files.
matplotlib.rcParams["svg.hashsalt"] = "peers"
# Texts as text, not as outlines: a third of the file.
matplotlib.rcParams["svg.fonttype"] = "none"
matplotlib.rcParams["font.sans-serif"] = ["DejaVu Sans"]
import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

# Colour, marker and line of each peer; where lines are grey on paper, the markers tell them apart.
STYLES = {
    "fast": ("#d62728", "*", "-"),
    "vc-gmm": ("#d62728", "<", ""),
    "var-gmm-s": ("#d62728", ">", ""),
    "faiss AFK-MC2": ("#1b7837", "o", "-"),
    "faiss k-means++": ("#1b7837", "s", "-"),
    "faiss random": ("#1b7837", "x", "--"),
    "faiss SuperKMeans": ("#7fbf3f", "D", "-"),
    "superkmeans-rs": ("#762a83", "v", "-"),
    "Lance": ("#b8860b", "^", "-"),
    "scikit-learn KMeans": ("#1f4e9c", "P", "-"),
    "scikit-learn greedy k-means++": ("#1f4e9c", "p", "-"),
    "scikit-learn plain k-means++": ("#5a9bd4", "X", "-"),
    "scikit-learn mini-batch": ("#5a9bd4", "d", "-"),
    "scikit-learn bisecting": ("#5a9bd4", "h", "-"),
}
# Algorithms of this crate.
OWN = ("fast", "vc-gmm", "var-gmm-s")
# In percent; the axis is linear between -1 and 1, and logarithmic outside.
TICKS = (-100, -30, -10, -3, -1, -0.3, 0, 0.3, 1, 3, 10, 30, 100, 300, 1000)
TOP = 1000.0
WIDTH, HEIGHT = 9.4, 3.3


def curves(found):
    """Seconds and errors of each peer, in the order of its steps."""
    points = {
        name: [(figures.seconds, figures.error) for figures in steps.values() if figures.error <= TOP]
        for name, steps in found.steps.items()
    }
    # Settings of `fast` have no order of their own.
    points["fast"] = sorted(points.get("fast", []))
    return {name: of for name, of in points.items() if of}


def panel(axis, found):
    axis.set_xscale("log")
    axis.set_yscale("symlog", linthresh=1.0, linscale=0.9)
    for height, style in ((0.0, "-"), (0.3, (0, (1, 2))), (1.0, (0, (4, 2)))):
        axis.axhline(height, color="#888888", linewidth=0.7, linestyle=style, zorder=0)
    of_all = curves(found)
    for name, points in of_all.items():
        colour, marker, line = STYLES.get(name, ("black", ".", "-"))
        fast = name == "fast"
        axis.plot(
            *zip(*points),
            color=colour,
            linestyle=line,
            linewidth=1.0,
            marker=marker,
            markersize=11 if fast else 5,
            markeredgecolor="black" if fast else colour,
            markeredgewidth=0.7,
            zorder=4 if fast else 3,
            label=f"coremix {name}" if name in OWN else name,
        )
    errors = [error for points in of_all.values() for _, error in points]
    axis.set_ylim(min(-0.6, 1.7 * min(errors)), min(TOP, max(3.0, 1.5 * max(errors))))
    axis.yaxis.set_major_locator(FixedLocator(TICKS))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+g} %" if value else "0"))
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.margins(x=0.06)
    axis.tick_params(labelsize=8)
    # Names of generated sets have their shape, too.
    name = re.sub(r"-\d+x\d+-\d+", "", found.name)
    axis.set_title(f"{name} ({found.shape[0]:,} x {found.shape[1]})", fontsize=9.5)


def draw(all_found, path):
    """Two panels a line, and one legend above them for all."""
    columns = min(2, len(all_found))
    lines = -(-len(all_found) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(WIDTH, lines * HEIGHT + 0.8), squeeze=False, layout="constrained"
    )
    for axis, found in zip(axes.flat, all_found):
        panel(axis, found)
    for axis in axes.flat[len(all_found) :]:
        axis.axis("off")
    handles = {}
    for axis in axes.flat:
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels())))
    styled = [f"coremix {name}" if name in OWN else name for name in STYLES]
    order = [name for name in styled if name in handles] + [name for name in handles if name not in styled]
    figure.legend(
        [handles[name] for name in order],
        order,
        loc="outside upper center",
        ncols=4,
        fontsize=8.5,
        frameon=False,
        handlelength=2.6,
    )
    figure.supxlabel("seconds", fontsize=9)
    figure.supylabel("error relative to converged k-means++ (axis linear between -1 % and +1 %)", fontsize=9)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
