"""Counts of a generating model's requests by the SLO class that they name. Pure.

The ledgers of the model count all requests; these count those with a class again. A scrape shows
the rest without the label `class` and each class with it, so that a sum over the label is the total
that it was before there were classes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from headroom_server.telemetry.accounting import Ledger
from headroom_server.telemetry.generation_ledger import GenerationLedger
from headroom_server.telemetry.histograms import Histogram

MOST_CLASSES = 16
"""Values of the label: further classes are counted together, so that a page stays bounded."""
OTHER = "other"


class ClassLedger:
    """The counts of one class."""

    def __init__(self) -> None:
        self.requests = Ledger()
        self.tokens = GenerationLedger()


class InFlight(NamedTuple):
    """Requests of a class in flight."""

    name: str
    waiting: int
    running: int


class ClassLedgers:
    """The counts of all classes that were named. Used by one thread only."""

    def __init__(self, configured: Iterable[str] = (), batch_classes: Collection[str] = ()) -> None:
        """Count these classes; `batch_classes` take only what others leave, however many."""
        self._labels = dict.fromkeys([*configured][:MOST_CLASSES])
        self._batch_classes = frozenset(batch_classes)
        self._ledgers: dict[str, ClassLedger] = {}

    def of(self, name: str) -> ClassLedger | None:
        """Return the counts of a request's class; None if it names none."""
        if not name:
            return None
        label = name if name in self._labels else OTHER
        return self._ledgers.setdefault(label, ClassLedger())

    def prompt_tokens(self, total: GenerationLedger) -> Iterator[tuple[str, int, int]]:
        """Yield the computed and cached prompt tokens without a class, then those of each class."""
        parts = {name: one.tokens for name, one in self._ledgers.items()}
        computed = sum(one.computed_prompt_tokens for one in parts.values())
        cached = sum(one.cached_prompt_tokens for one in parts.values())
        yield "", total.computed_prompt_tokens - computed, total.cached_prompt_tokens - cached
        for name, one in parts.items():
            yield name, one.computed_prompt_tokens, one.cached_prompt_tokens

    def requests(self, model: str) -> dict[str, Ledger]:
        """Return the requests of each class that was named, by its labels."""
        return {self.labels(model, name): one.requests for name, one in self._ledgers.items()}

    def labels(self, model: str, name: str) -> str:
        """Return the labels of requests of this class; of those that name none, the model's.

        A batch class has the label `best_effort` too, so that readers can leave it out.
        """
        if not name:
            return model
        best_effort = f',best_effort="{name}"' if name in self._batch_classes else ""
        return f'{model},class="{name}"{best_effort}'

    def gauges(self, in_flight: int, waiting: int, waiting_batch_class: int) -> list[InFlight]:
        """Return the requests that wait and run: of all but batch classes, then of each of those.

        The engine counts waiting choices, of which a request may have several, so no more wait than
        there are in flight.
        """
        left, found, others = waiting_batch_class, [], in_flight
        for name in sorted(self._batch_classes & self._ledgers.keys()):
            inside = self._ledgers[name].requests.in_flight
            waits = min(inside, left)
            left, others = left - waits, others - inside
            found.append(InFlight(name, waits, inside - waits))
        waits = min(others, waiting - waiting_batch_class + left)
        return [InFlight("", waits, others - waits), *found]

    def histograms(
        self, total: Histogram, select: Callable[[ClassLedger], Histogram]
    ) -> Iterator[tuple[str, Histogram]]:
        """Yield the histogram of requests without a class, then that of each class."""
        parts = {name: select(one) for name, one in self._ledgers.items()}
        yield "", total.without(parts.values()) if parts else total
        yield from parts.items()
