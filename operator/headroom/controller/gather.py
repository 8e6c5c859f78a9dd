"""All reads of a tick, and nothing else.

The Deployment, its pods, one page of metrics from each ready pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from headroom.api import InferenceService
from headroom.controller.pods import ObservedPod, observe, owned_pods
from headroom.controller.ports import Clock, Cluster, Manifest, Scraper
from headroom.errors import NotFound, ScrapeFailed
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
    pods: tuple[ObservedPod, ...] = ()
    unread: tuple[Unread, ...] = ()


async def gather(
    cluster: Cluster,
    scraper: Scraper,
    clock: Clock,
    service: InferenceService,
    *,
    replicas_if_absent: int,
) -> Gathered:
    """Read everything that a tick of the service needs.

    Where the Deployment is not there, `replicas_if_absent` is what it is asked for: it will be
    created so.
    """
    deployment = await _deployment(cluster, service)
    current = replicas_if_absent if deployment is None else int(deployment["spec"]["replicas"])
    raw_pods = await cluster.list_all(
        "v1", "Pod", service.namespace, names.selector_text(service.name)
    )
    pods = observe(
        owned_pods(raw_pods, service.name),
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
    return Gathered(observation=observation, deployment=deployment, pods=pods, unread=unread)


def is_rolling(deployment: Manifest) -> bool:
    """Whether pods of an older template are there, or a new spec has not been looked at yet."""
    status = deployment.get("status", {})
    if status.get("observedGeneration", 0) < deployment["metadata"].get("generation", 0):
        return True
    return bool(status.get("replicas", 0) > status.get("updatedReplicas", 0))


async def _deployment(cluster: Cluster, service: InferenceService) -> Manifest | None:
    try:
        return await cluster.get("apps/v1", "Deployment", service.namespace, service.name)
    except NotFound:
        return None


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
