"""Ask a Prometheus for the pages of a service's pods, for a few services at a time.

The pages of an answer stay in memory until all are parsed, which waits where a namespace has used
up its time for parsing (`event_loop_shares`).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from headroom.api import InferenceService
from headroom.controller.ports import Clock, Prometheus
from headroom.errors import ScrapeFailed
from headroom.fair_slots import FairSlots
from headroom.telemetry.prometheus_pages import ScrapedPage

_log = logging.getLogger(__name__)

ANSWERS = 8
"""Answers of a Prometheus that are asked for and parsed at once; namespaces wait in turns."""
_AHEAD_S = 5.0
"""A clock that is so far ahead is named; a second or two are usual, and change nothing."""
_FUTURE = (
    "Prometheus %s scrapes pods %.0f s in the future: its clock or the operator's is wrong; "
    "pages count from when they are first seen"
)


class PrometheusAnswers:
    """The sources of the settings by their names."""

    def __init__(self, prometheus: Mapping[str, Prometheus], clock: Clock) -> None:
        self._prometheus = prometheus
        self._clock = clock
        self._slots = {name: FairSlots(ANSWERS) for name in prometheus}
        self._ahead: set[str] = set()
        """Sources whose clock is ahead, which was said."""

    @asynccontextmanager
    async def of(
        self, service: InferenceService, metrics: frozenset[str], pods: Sequence[str]
    ) -> AsyncIterator[Mapping[str, ScrapedPage]]:
        """Yield the latest page of each pod, to be parsed inside; raise ScrapeFailed."""
        telemetry = service.spec.telemetry
        name = telemetry.source_name or ""
        source = self._prometheus.get(name)
        if source is None:
            known = ", ".join(sorted(self._prometheus)) or "none"
            why = f"the operator's settings name no Prometheus {name!r} (--prometheus; {known})"
            raise ScrapeFailed(why)
        async with self._slots[name].slot(service.namespace):
            pages = await source.pages(metrics, service.namespace, pods, telemetry.stale_after_s)
            self._warn_of_future(name, pages.values())
            yield pages

    def _warn_of_future(self, name: str, pages: Iterable[ScrapedPage]) -> None:
        ahead_s = max((one.time_s for one in pages), default=0.0) - self._clock.now_s()
        if ahead_s > _AHEAD_S and name not in self._ahead:
            self._ahead.add(name)
            _log.warning(_FUTURE, name, ahead_s)
