"""Read the metrics of a service's ready pods: their own pages, or those a Prometheus scraped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headroom.api import InferenceService
from headroom.controller.gather.page_room import PageRoom
from headroom.controller.gather.parsing_turns import ParsingTurns
from headroom.controller.gather.pods import ObservedPod
from headroom.controller.gather.scrape_failure import NOT_SCRAPED, ScrapeFailure, old_pages
from headroom.controller.ports import Clock, Prometheus, Scraper
from headroom.controller.warmup.gate import GatedPod
from headroom.errors import ScrapeFailed
from headroom.profiles.fillers import without_fillers
from headroom.resources.server_port import server_port
from headroom.scaling.values.observation import PodSample
from headroom.telemetry.accounts import Batch
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.pod_samples import PodSamples
from headroom.telemetry.prometheus_pages import ScrapedPage
from headroom.telemetry.stated_limits import stated_limits

_log = logging.getLogger(__name__)

_AHEAD_S = 5.0
"""A clock that is so far ahead is named; a second or two are usual, and change nothing."""
_FUTURE = (
    "Prometheus %s scrapes pods %.0f s in the future: its clock or the operator's is wrong; "
    "pages count from when they are first seen"
)
_SECOND_PAGE = "this server needs two scrapes before rates can be computed; waiting for the second"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Samples of the pods that could be read, and the others."""

    samples: tuple[PodSample, ...]
    unread: tuple[ScrapeFailure, ...]


class MetricsReader:
    """Reads pods where their service's spec says."""

    def __init__(
        self, scraper: Scraper, clock: Clock, prometheus: Mapping[str, Prometheus]
    ) -> None:
        """Take the sources of the settings by their names."""
        self._clock = clock
        self._prometheus = prometheus
        self._ahead: set[str] = set()
        """Sources whose clock is ahead, which was said."""
        self._turns = ParsingTurns()
        self._room = PageRoom(scraper)

    async def measure(
        self, service: InferenceService, pods: Sequence[ObservedPod], samples: PodSamples
    ) -> Measured:
        """Read all at once; the slowest pod costs its own deadline and no more."""
        samples.keep([one.pod.uid for one in pods])
        name = service.spec.telemetry.source_name
        if name is None:
            read = await asyncio.gather(*(self._scraped(service, one, samples) for one in pods))
        else:
            read = await self._asked(name, service, pods, samples)
        return Measured(
            samples=tuple(one for one in read if isinstance(one, PodSample)),
            unread=tuple(one for one in read if isinstance(one, ScrapeFailure)),
        )

    async def begin(self, service: InferenceService, pod: GatedPod, samples: PodSamples) -> None:
        """Take what a pod counted before it takes requests; else all of that counts.

        Raises ScrapeFailed or TelemetryError.
        """
        where = _page_of(service, pod.address, pod.port, samples)
        async with self._room.page(service.namespace, pod.uid, *where) as page:
            time_s = self._clock.now_s()
            await self._turns.parse(
                service.namespace,
                len(page),
                lambda: samples.begin(page, pod=pod.uid, time_s=time_s),
            )

    async def _scraped(
        self,
        service: InferenceService,
        pod: ObservedPod,
        samples: PodSamples,
    ) -> PodSample | ScrapeFailure:
        if pod.on_host_network:
            why = "it is on the host network, whose ports are the node's"
            return ScrapeFailure(pod=pod.name, why=why)
        if not pod.ip:
            return ScrapeFailure(pod=pod.name, why="it is ready, but its status has no podIP yet")
        try:
            where = _page_of(service, pod.ip, server_port(service, pod.port), samples)
            stated = stated_limits(samples.profile, pod.arguments)
            async with self._room.page(service.namespace, pod.pod.uid, *where) as page:
                time_s = self._clock.now_s()
                sample = await self._turns.parse(
                    service.namespace,
                    len(page),
                    lambda: samples.take(page, pod=pod.pod.uid, time_s=time_s, stated=stated),
                )
        except (ScrapeFailed, TelemetryError) as error:
            return ScrapeFailure(pod=pod.name, why=str(error))
        return sample or ScrapeFailure(pod=pod.name, why=_SECOND_PAGE)

    async def _asked(
        self,
        name: str,
        service: InferenceService,
        pods: Sequence[ObservedPod],
        samples: PodSamples,
    ) -> list[PodSample | ScrapeFailure]:
        """Ask once for all pods; each sample has the time at which Prometheus scraped it."""
        source = self._prometheus.get(name)
        if source is None:
            known = ", ".join(sorted(self._prometheus)) or "none"
            why = f"the operator's settings name no Prometheus {name!r} (--prometheus; {known})"
            return [ScrapeFailure(pod=one.name, why=why) for one in pods]
        if not pods:
            return []
        try:
            pages = await source.pages(
                samples.profile.metric_names,
                service.namespace,
                [one.name for one in pods],
                service.spec.telemetry.stale_after_s,
            )
        except ScrapeFailed as error:
            return [ScrapeFailure(pod=one.name, why=str(error)) for one in pods]
        ahead_s = max((one.time_s for one in pages.values()), default=0.0) - self._clock.now_s()
        if ahead_s > _AHEAD_S and name not in self._ahead:
            self._ahead.add(name)
            _log.warning(_FUTURE, name, ahead_s)
        oldest_s = self._clock.now_s() - service.spec.telemetry.stale_after_s
        return [
            *(self._answered(one, pages.get(one.name), samples) for one in pods),
            *old_pages(pods, pages, oldest_s),
        ]

    def _answered(
        self, pod: ObservedPod, page: ScrapedPage | None, samples: PodSamples
    ) -> PodSample | ScrapeFailure:
        if page is None or page.time_s < pod.pod.created_s:  # before: of an earlier pod of its name
            return ScrapeFailure(pod=pod.name, why=NOT_SCRAPED)
        time_s = samples.local_s(pod.pod.uid, page.time_s, self._clock.now_s())
        try:
            stated = stated_limits(samples.profile, pod.arguments)
            sample = samples.take(page.page, pod=pod.pod.uid, time_s=time_s, stated=stated)
        except TelemetryError as error:
            return ScrapeFailure(pod=pod.name, why=str(error))
        return sample or ScrapeFailure(pod=pod.name, why=_SECOND_PAGE)


def _page_of(
    service: InferenceService, address: str, port: int, samples: PodSamples
) -> tuple[str, str]:
    """Say where the page is of a pod that serves at `port`, and how the lines begin that are read.

    Metrics that have a port of their own are read at that of the present spec: no pod declares it.
    """
    host = f"[{address}]" if ":" in address else address
    profile, read_at = samples.profile, service.spec.runtime.scrape_port(port)
    return f"http://{host}:{read_at}{profile.metrics_path}", profile.prefix


def samples_of(service: InferenceService, known: PodSamples | None) -> PodSamples:
    """Return what remembers the service's pages: `known`, unless the spec reads them otherwise."""
    runtime = service.spec.runtime
    model, batch = service.spec.model.name, None
    if runtime.profile == "headroom" and service.spec.target_ref is None:
        model = service.model_name  # it is told so by the operator
    if runtime.max_batch_size is not None:
        batch = Batch(largest=runtime.max_batch_size, slots=runtime.instances)
    fillers = [one.name for one in service.spec.class_promises if one.best_effort]
    profile = without_fillers(runtime.server, fillers)
    if known is not None and (known.profile, known.model, known.batch) == (profile, model, batch):
        return known
    return PodSamples(profile, model, batch)
