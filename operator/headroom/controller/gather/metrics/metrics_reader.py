"""Read the metrics of a service's ready pods: their own pages, or those a Prometheus scraped."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headroom.api import InferenceService
from headroom.controller.gather.metrics.page_room import PageRoom
from headroom.controller.gather.metrics.prometheus_answers import PrometheusAnswers
from headroom.controller.gather.metrics.scrape_failure import NOT_SCRAPED, ScrapeFailure, old_pages
from headroom.controller.gather.pods.pods import ObservedPod
from headroom.controller.ports import Clock, Prometheus, Scraper
from headroom.controller.warmup.gate import GatedPod
from headroom.errors import ScrapeFailed
from headroom.event_loop_shares import EventLoopShares
from headroom.profiles.best_effort import without_best_effort
from headroom.resources.server_port import server_port
from headroom.scaling.values.observation import PodSample
from headroom.telemetry.bounds.stated_limits import stated_limits
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.prometheus_pages import ScrapedPage
from headroom.telemetry.samples.accounts import Batch
from headroom.telemetry.samples.pod_samples import PodSamples

BYTES_PER_SERIES = 40
"""Size of a series of an answer for `EventLoopShares`: a new one takes 15 us, as 40 bytes of a page
do."""
_SECOND_PAGE = "this server needs two scrapes before rates can be computed; waiting for the second"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Samples of the pods that could be read, and the others."""

    samples: tuple[PodSample, ...]
    unread: tuple[ScrapeFailure, ...]


class MetricsReader:
    """Reads pods where their service's spec says."""

    def __init__(
        self,
        scraper: Scraper,
        clock: Clock,
        prometheus: Mapping[str, Prometheus],
        loop_shares: EventLoopShares | None = None,
    ) -> None:
        """Take the sources of the settings by their names."""
        self._clock = clock
        self._answers = PrometheusAnswers(prometheus, clock)
        self._loop = loop_shares or EventLoopShares()
        self._room = PageRoom(scraper)

    async def measure(
        self, service: InferenceService, pods: Sequence[ObservedPod], samples: PodSamples
    ) -> Measured:
        """Read all at once; the slowest pod costs its own deadline and no more."""
        samples.keep([one.pod.uid for one in pods])
        if service.spec.telemetry.source_name is None:
            read = await asyncio.gather(*(self._scraped(service, one, samples) for one in pods))
        else:
            read = await self._asked(service, pods, samples)
        return Measured(
            samples=tuple(one for one in read if isinstance(one, PodSample)),
            unread=tuple(one for one in read if isinstance(one, ScrapeFailure)),
        )

    async def begin(self, service: InferenceService, pod: GatedPod, samples: PodSamples) -> None:
        """Record a pod's counters before it takes requests; else their whole values count.

        Raises ScrapeFailed or TelemetryError.
        """
        where = _page_of(service, pod.address, pod.port, samples)
        async with self._room.page(service.namespace, pod.uid, *where) as page:
            time_s = self._clock.now_s()
            await self._loop.run(
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
                sample = await self._loop.run(
                    service.namespace,
                    len(page),
                    lambda: samples.take(page, pod=pod.pod.uid, time_s=time_s, stated=stated),
                )
        except (ScrapeFailed, TelemetryError) as error:
            return ScrapeFailure(pod=pod.name, why=str(error))
        return sample or ScrapeFailure(pod=pod.name, why=_SECOND_PAGE)

    async def _asked(
        self, service: InferenceService, pods: Sequence[ObservedPod], samples: PodSamples
    ) -> list[PodSample | ScrapeFailure]:
        """Ask once for all pods; each sample has the time at which Prometheus scraped it."""
        if not pods:
            return []
        names = [one.name for one in pods]
        try:
            async with self._answers.of(service, samples.profile.metric_names, names) as pages:
                oldest_s = self._clock.now_s() - service.spec.telemetry.stale_after_s
                found = [
                    await self._answered(service.namespace, one, pages.get(one.name), samples)
                    for one in pods
                ]
                return [*found, *old_pages(pods, pages, oldest_s)]
        except ScrapeFailed as error:
            return [ScrapeFailure(pod=one.name, why=str(error)) for one in pods]

    async def _answered(
        self, namespace: str, pod: ObservedPod, page: ScrapedPage | None, samples: PodSamples
    ) -> PodSample | ScrapeFailure:
        if page is None or page.time_s < pod.pod.created_s:  # before: of an earlier pod of its name
            return ScrapeFailure(pod=pod.name, why=NOT_SCRAPED)
        await asyncio.sleep(0)  # others go on between two pages: all have arrived at once
        time_s = samples.local_s(pod.pod.uid, page.time_s, self._clock.now_s())
        try:
            stated = stated_limits(samples.profile, pod.arguments)
            sample = await self._loop.run(
                namespace,
                BYTES_PER_SERIES * len(page.page.values),
                lambda: samples.take(page.page, pod=pod.pod.uid, time_s=time_s, stated=stated),
            )
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
    """Return the memory of the service's pages: `known`, unless the spec reads them otherwise."""
    runtime = service.spec.runtime
    model, batch = service.spec.model.name, None
    if runtime.profile == "headroom" and service.spec.target_ref is None:
        model = service.model_name  # the operator sets it
    if runtime.max_batch_size is not None:
        batch = Batch(largest=runtime.max_batch_size, slots=runtime.instances)
    best_effort = [one.name for one in service.spec.class_promises if one.best_effort]
    profile = without_best_effort(runtime.server, best_effort)
    if known is not None and (known.profile, known.model, known.batch) == (profile, model, batch):
        return known
    return PodSamples(profile, model, batch)
