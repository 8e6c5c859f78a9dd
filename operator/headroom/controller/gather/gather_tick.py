"""All reads of a tick: the workload, its pods and one page of metrics from each ready pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headroom.api import InferenceService
from headroom.controller.gather.metrics.metrics_reader import MetricsReader
from headroom.controller.gather.metrics.scrape_failure import ScrapeFailure
from headroom.controller.gather.pods.pod_ownership import MOST_READS, Owned
from headroom.controller.gather.pods.pods import ObservedPod, observe, preempted
from headroom.controller.gather.revisions import Revisions
from headroom.controller.gather.state import GatherState
from headroom.controller.gather.workloads.shared_reads import SharedReads, Sharing
from headroom.controller.gather.workloads.workload import is_rolling
from headroom.controller.ports import Clock, Cluster, Manifest
from headroom.resources import names
from headroom.resources.object_conditions import is_true
from headroom.scaling.values.observation import Observation, PodState
from headroom.telemetry.samples.pod_samples import PodSamples


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Reports of the cluster and the pods.

    The decision uses the observation, the writes need the rest.
    """

    observation: Observation
    deployment: Manifest | None
    """The workload: Headroom's own, or what targetRef names."""
    selector: str = ""
    """Selects its pods."""
    pods: tuple[ObservedPod, ...] = ()
    raw_pods: tuple[Mapping[str, Any], ...] = ()
    """The same pods as raw objects, including those that have ended."""
    unread: tuple[ScrapeFailure, ...] = ()
    preempted: str = ""
    """Pod that the scheduler preempted, while one has no node in its place; empty if none."""
    revisions: Revisions | None = None
    """Pods that have the latest template; read only where a rollout finds no room."""
    own: bool = True
    """Whether all of it was read for this tick; if not, it is a moment old and no reason to
    scale."""


async def gather(
    cluster: Cluster,
    measuring: MetricsReader,
    clock: Clock,
    service: InferenceService,
    *,
    samples: PodSamples,
    state: GatherState,
    initial_replicas: Callable[[], int],
    shared: SharedReads,
    sharing: Sharing,
) -> Gathered:
    """Read everything that a tick of the service needs.

    If Headroom's own Deployment does not exist, it will be created with `initial_replicas`.

    Raises TargetUnusable, or ClusterError.
    """
    seen = await shared.of(service, sharing)
    workload = seen.workload
    deployment = None if workload is None else workload.manifest
    current = initial_replicas() if workload is None else workload.replicas
    selector = names.selector_text(service.name) if workload is None else workload.selector
    uid = "" if workload is None else workload.uid
    owned = await state.ownership.of(cluster, seen.pods, uid)
    pods = observe(
        owned.ours,
        now_s=clock.now_s(),
        warmup_timeout_s=service.spec.warmup.timeout.seconds,
        replicas=current,
    )
    state.preempted = preempted(owned.ours, pods, state.preempted)
    samples.exist(one.pod.uid for one in pods)
    ready = [one for one in pods if one.pod.state is PodState.READY]
    unlisted = 0 if workload is None else _unlisted(workload.manifest, seen.pods, owned)
    measured = await measuring.measure(service, ready, samples)
    observation = Observation(
        now_s=clock.now_s(),
        current=current,
        pods=tuple(one.pod for one in pods),
        samples=measured.samples,
        unlisted_ready=unlisted,
        rolling=deployment is not None and is_rolling(deployment),
    )
    return Gathered(
        observation=observation,
        deployment=deployment,
        selector=selector,
        pods=pods,
        raw_pods=owned.ours,
        preempted=state.preempted,
        unread=(
            *_missing(unlisted, len(owned.unresolved)),
            *(ScrapeFailure(pod=one.name, why=one.why) for one in owned.unverified),
            *measured.unread,
        ),
        own=seen.own,
    )


def _unlisted(workload: Manifest, pods: Iterable[Mapping[str, Any]], owned: Owned) -> int:
    """Return the number of ready replicas that the workload reports and the pod list lacks.

    An API server that lags behind leaves them out, and the load that they carry with them. A pod
    whose owner has not been read yet may be one, whatever the workload says that it counts.
    """
    known = (workload.get("status") or {}).get("readyReplicas")
    listed = sum(is_true(pod, "Ready") for pod in pods)
    listed -= sum(is_true(pod, "Ready") for pod in owned.unresolved)
    return max(known - listed if isinstance(known, int) else 0, 1 if owned.unresolved else 0)


def _missing(unlisted: int, unresolved: int) -> Iterator[ScrapeFailure]:
    if unresolved:
        why = (
            f"their owners are read in the next ticks, {MOST_READS} in each; remove the workload's "
            "labels from pods that are not its own"
        )
        yield ScrapeFailure(pod=f"{unresolved} pods", why=why)
    elif unlisted:
        why = (
            "the workload reports these replicas as ready, but the API server's pod list does not "
            "include them"
        )
        yield ScrapeFailure(pod=f"{unlisted} replicas", why=why)
