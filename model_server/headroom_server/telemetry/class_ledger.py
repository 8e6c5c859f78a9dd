"""PURE. Counts of a generating model's requests by the SLO class that they name.

The ledgers of the model count all requests; these count those with a class again. A scrape shows
the rest without the label `class` and each class with it, so that a sum over the label is the total
that it was before there were classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from headroom_server.telemetry.accounting import Ledger
from headroom_server.telemetry.generation import GenerationLedger
from headroom_server.telemetry.histograms import Histogram

MOST_CLASSES = 16
"""Values of the label: further classes are counted together, so that a page stays bounded."""
OTHER = "other"


class ClassLedger:
    """The counts of one class."""

    def __init__(self) -> None:
        self.requests = Ledger()
        self.tokens = GenerationLedger()


class ClassLedgers:
    """The counts of all classes that were named. Used by one thread only."""

    def __init__(self, configured: Iterable[str] = ()) -> None:
        self._labels = dict.fromkeys([*configured][:MOST_CLASSES])
        self._ledgers: dict[str, ClassLedger] = {}

    def of(self, name: str) -> ClassLedger | None:
        """Return the counts of a request's class; None if it names none."""
        if not name:
            return None
        label = name if name in self._labels else OTHER
        return self._ledgers.setdefault(label, ClassLedger())

    @property
    def requests(self) -> dict[str, Ledger]:
        """The requests of each class that was named."""
        return {name: one.requests for name, one in self._ledgers.items()}

    def histograms(
        self, total: Histogram, select: Callable[[ClassLedger], Histogram]
    ) -> Iterator[tuple[str, Histogram]]:
        """Yield the histogram of requests without a class, then that of each class."""
        parts = {name: select(one) for name, one in self._ledgers.items()}
        yield "", total.without(parts.values()) if parts else total
        yield from parts.items()
