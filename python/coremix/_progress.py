"""How far a fit is: one line that is rewritten where a person looks, a few lines elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any, Self

# Lines of a fit where the output is neither a terminal nor a notebook.
MOST_LINES = 10


class Line:
    """The line of a fit with ``verbose=1``, on the standard error. It is false where nothing is shown."""

    def __init__(self, name: str, verbose: int) -> None:
        self._name = name
        self._shown = verbose == 1
        self._started = time.monotonic()
        # The stage that the fit is at, and since when.
        self._what, self._since = "", self._started
        self._width = self._lines = 0
        self._display: Any = _display() if self._shown else None
        self._handle: Any = None
        self._rewritten = self._display is not None or self._shown and bool(getattr(sys.stderr, "isatty", bool)())

    def __bool__(self) -> bool:
        return self._shown

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # After an error nothing stays in the terminal.
        if self._width:
            self._write("\r" + " " * self._width + "\r")

    def see(self, at: dict[str, Any]) -> None:
        """Shows what the fit is at."""
        restart = f"restart {at['restart']}, " if at["restart"] else ""
        if "share" in at:
            what, rest = f"{restart}choosing {at['clusters']} of {at['rows']} rows to begin with", f", {at['share']:.0%}"
        else:
            what = f"{restart}fitting {at['rows']} rows"
            rest = f": iteration {at['iteration']} of {at['limit']}, F {at['free_energy']:.4e}"
        now = time.monotonic()
        if what != self._what:
            self._what, self._since = what, now
            if not self._rewritten and self._lines < MOST_LINES - 1:
                self._lines += 1
                self._write(f"{self._name}: {what}\n")
        if self._rewritten:
            self._show(f"{self._name}: {_time(now - self._started)}, {what}{rest}{self._left(at, now)}")

    def _left(self, at: dict[str, Any], now: float) -> str:
        if "share" in at:
            share = at["share"]
            return f", {_time((now - self._since) * (1 - share) / share)} left" if share > 0 else ""
        # A phase often converges before its last iteration.
        left = at["seconds"] / (at["iteration"] + 1) * (at["limit"] - at["iteration"])
        return f", at most {_time(left)} left"

    def end(self, report: dict[str, Any]) -> None:
        """Says how the fit ended."""
        if self._shown:
            took = _time(time.monotonic() - self._started)
            text = f"{self._name}: {report['iterations']} iterations in {took}, {report['stop']}"
            self._show(text)
            if self._display is None:
                self._write("\n")
            self._width = 0

    def _show(self, text: str) -> None:
        if self._display is not None:
            plain = {"text/plain": text}
            if self._handle is None:
                self._handle = self._display(plain, raw=True, display_id=True)
            else:
                self._handle.update(plain, raw=True)
        elif self._rewritten:
            text = text[: shutil.get_terminal_size().columns - 1]
            self._write("\r" + text.ljust(self._width))
            self._width = len(text)
        else:
            self._write(text)

    def _write(self, text: str) -> None:
        # A program without a console has none.
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()


def _time(seconds: float) -> str:
    """As a person says it."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s" if seconds < 10 else f"{rest} s"


def _display() -> Any:
    """The function that shows something in a notebook, or None where there is none."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

    return display
