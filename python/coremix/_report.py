"""The report of a fit: what it did, and what it cost."""

from __future__ import annotations

from html import escape
from typing import Any


class Report(dict[str, Any]):
    """The report of a fit: a dictionary that prints as a table.

    Keys: ``stop`` (why the fit ended), ``iterations``, ``free_energies`` (after each search of the last phase, in nats),
    ``phases`` (a dictionary each), ``evaluations`` (of distances, by stage), ``seconds`` (by stage), ``coreset_size``,
    ``coreset_entropy`` (from 0 to 1; near 1 a uniform coreset is as good), ``zero_mass`` (components without mass),
    ``at_floor`` (components that a floor of variances holds, though they have more rows than columns), ``restart`` (the one
    that was kept) and ``restarts`` (their free energies).
    """

    def __repr__(self) -> str:
        return str(self.get("text", super().__repr__()))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"
