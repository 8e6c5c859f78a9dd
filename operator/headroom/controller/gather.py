"""All reads of a tick, and nothing else.

The workload, its pods, one page of metrics from each ready pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from headroom.api import InferenceService
from headroom.controller.lineage import Lineage
from headroom.controller.pods import ObservedPod, observe
from headroom.controller.ports import Clock, Cluster, Manifest, Scraper
from headroom.controller.workload import is_rolling, read_workload
from headroom.errors import ScrapeFailed
from headroom.resources import names
from headroom.scaling.values import Observation, PodSample, PodState
from headroom.telemetry import headroom_profile
from headroom.telemetry.errors import TelemetryError


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A ready pod without a sample, and why."""

    pod: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What the cluster and the pods said.

    The decision sees the observation, the writes need the rest.
    """

    observation: Observation
    deployment: Manifest | None
    """The workload: our own, or what targetRef names."""
    selector: str = ""
    """Selects its pods."""
    pods: tuple[ObservedPod, ...] = ()
    unread: tuple[Unread, ...] = ()


async def gather(
    cluster: Cluster,
    scraper: Scraper,
    clock: Clock,
    service: InferenceService,
    *,
    lineage: Lineage,
    replicas_if_absent: int,
) -> Gathered:
    """Read everything that a tick of the service needs.

    Where our own Deployment is not there, `replicas_if_absent` is what it is asked for: it will be
    created so. Raises TargetUnusable, or ClusterError.
    """
    workload = await read_workload(cluster, service)
    deployment = None if workload is None else workload.manifest
    current = replicas_if_absent if workload is None else workload.replicas
    selector = names.selector_text(service.name) if workload is None else workload.selector
    selected = await cluster.list_all("v1", "Pod", service.namespace, selector)
    uid = "" if workload is None else workload.uid
    ours, strangers = await lineage.of(cluster, selected, uid)
    pods = observe(
        ours,
        now_s=clock.now_s(),
        warmup_timeout_s=service.spec.warmup.timeout.seconds,
        replicas=current,
    )
    samples, unread = await _samples(scraper, clock, service, pods)
    observation = Observation(
        now_s=clock.now_s(),
        current=current,
        pods=tuple(one.pod for one in pods),
        samples=samples,
        rolling=deployment is not None and is_rolling(deployment),
    )
    return Gathered(
        observation=observation,
        deployment=deployment,
        selector=selector,
        pods=pods,
        unread=(*(Unread(pod=one.name, why=one.why) for one in strangers), *unread),
    )


async def _samples(
    scraper: Scraper, clock: Clock, service: InferenceService, pods: Sequence[ObservedPod]
) -> tuple[tuple[PodSample, ...], tuple[Unread, ...]]:
    """Scrape all at once; the slowest pod costs its own deadline and no more."""
    ready = [one for one in pods if one.pod.state is PodState.READY]
    read = await asyncio.gather(*(_sample(scraper, clock, service, one) for one in ready))
    samples = tuple(one for one in read if isinstance(one, PodSample))
    return samples, tuple(one for one in read if isinstance(one, Unread))


async def _sample(
    scraper: Scraper, clock: Clock, service: InferenceService, pod: ObservedPod
) -> PodSample | Unread:
    if pod.on_host_network:
        return Unread(pod=pod.name, why="it is on the host network, whose ports are the node's")
    if not pod.ip:
        return Unread(pod=pod.name, why="it is ready, but its status has no podIP yet")
    host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
    url = f"http://{host}:{service.spec.runtime.port}{headroom_profile.METRICS_PATH}"
    try:
        page = await scraper.scrape(url)
        return headroom_profile.read_sample(
            page, pod=pod.pod.uid, model=service.model_name, time_s=clock.now_s()
        )
    except (ScrapeFailed, TelemetryError) as error:
        return Unread(pod=pod.name, why=str(error))
