"""Axes of matplotlib, which is imported when something is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np


def axes_of(axes: Any, number: int = 1) -> Any:
    """These axes, or new ones for this number of pictures."""
    if axes is not None:
        own = np.ravel(axes)
        if not all(hasattr(one, "plot") and hasattr(one, "figure") for one in own):
            way = "np.ravel(axes)[0].figure.savefig(path) writes the figure of the axes that come back"
            raise TypeError(f"axes = {axes!r}: must be axes of matplotlib, or None: {way}")
        if len(own) != number:
            raise ValueError(f"axes: {len(own)} of them, where there are {number} pictures, as plt.subplots(1, {number})[1]")
        return axes
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install matplotlib") from error
    _, found = pyplot.subplots(1, number, figsize=(4 * number, 3.5), layout="constrained")
    return found


def whole_ticks(axes: Any) -> None:
    """Puts ticks at whole numbers of clusters."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
