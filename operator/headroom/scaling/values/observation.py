"""Observation of one tick: pods, servers and gateways, as immutable values.

Names carry their unit (`_s` seconds, `_rps` requests per second); ratios are 0..1. *Waiting*
requests are queued, *running* ones are in a batch, *in flight* ones are both together. Counters are
cumulative since the start of the pod's process.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headroom.scaling.frozen import cached_property
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.partner import Partner
from headroom.scaling.values.tokens import GenerationSample


class PodState(StrEnum):
    """The state of a pod, as far as the decision distinguishes it."""

    READY = "Ready"
    """Warm and taking requests."""
    WARMING = "Warming"
    """Scheduled, and pulling, starting, loading or warming up. Counted as capacity while on
    schedule."""
    UNSCHEDULABLE = "Unschedulable"
    """No node has room for it. Never counted as capacity, and no replica is added to replace it."""
    BROKEN = "Broken"
    """Cannot become ready: image pull error, crash loop or warm-up timeout. Never counted as
    capacity."""
    TERMINATING = "Terminating"
    """Shutting down; it still occupies its GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """Batch cost t(b) = fixed_s + per_item_s * b for b up to max_batch (affine: Inoue 2021)."""

    fixed_s: float
    per_item_s: float
    max_batch: int
    cv: float = 0.0
    """Coefficient of variation of an execution around its mean."""
    slots: int = 1
    """Parallel executions in one replica."""

    def batch_s(self, size: float) -> float:
        """Return the seconds that a batch of this size takes."""
        return self.fixed_s + self.per_item_s * size

    @property
    def full_batch_rps(self) -> float:
        """Throughput of one replica with full batches: the denominator of utilization."""
        return self.slots * self.max_batch / self.batch_s(self.max_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSample:
    """One scrape of one pod: all counters and gauges at one instant."""

    pod: str
    """The pod's UID: names are reused, UIDs are not."""
    time_s: float
    arrivals: float
    """Counted before admission."""
    missed: float
    """Rejected, expired, failed or abandoned requests; each counts as +Inf in every percentile."""
    waiting: int
    running: int
    latency: LatencyCounts
    batches: float = 0.0
    batch_items: float = 0.0
    batch_seconds: float = 0.0
    cost: CostModel | None = None
    """The cost that the server measured at warm-up; None if it reports none."""
    max_batch: int | None = None
    """The largest batch that the server forms; None if `cost` has it, or it is unknown."""
    slots: int = 1
    """Parallel executions of the server."""
    retried: float = 0.0
    """Arrivals that said that they were retries."""
    generation: GenerationSample | None = None
    """None: the server does not generate tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod of the service, as the API server shows it."""

    uid: str
    state: PodState
    created_s: float
    scheduled_s: float | None = None
    """Time when it got its node. A cold start is measured from here, without the wait for it."""
    ready_s: float | None = None
    """Time when it last became ready, as reported by the kubelet; None if it is not ready."""
    detail: str = ""
    """Reason why it is unschedulable or broken, as the cluster reports it."""

    @property
    def started_s(self) -> float:
        """Begin of its cold start: with its node, or with its creation if that is unknown."""
        return self.created_s if self.scheduled_s is None else self.scheduled_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """The accelerators that a service may use of a pool that has too few for all."""

    replicas: int
    preempted_by: str
    """The service that gets the rest, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayRejections:
    """Requests that gateways rejected, so that no replica has counted them."""

    time_s: float
    requests: float
    """Counted since some moment; never falls."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """Everything that one tick knows; complete before the decision starts."""

    now_s: float
    current: int
    """Replicas that the workload requests now."""
    pods: tuple[Pod, ...] = ()
    samples: tuple[PodSample, ...] = ()
    unlisted_ready: int = 0
    """Ready replicas that the workload reports and the API server's pod list does not include."""
    rejected_at_gateway: GatewayRejections | None = None
    """None: no gateways, or not known yet."""
    rolling: bool = False
    allocation: Allocation | None = None
    """None: nothing is withheld for other services."""
    partner: Partner | None = None
    """The other pool, where this one is a prefill or a decode pool of a pair; None for others."""

    @cached_property
    def ready(self) -> tuple[Pod, ...]:
        """The pods that are ready; most parts of a decision ask for them."""
        return tuple([pod for pod in self.pods if pod.state is PodState.READY])

    @cached_property
    def ready_uids(self) -> tuple[str, ...]:
        """Their UIDs, in the same order."""
        return tuple([pod.uid for pod in self.ready])

    @cached_property
    def uids(self) -> frozenset[str]:
        """The UIDs of all pods."""
        return frozenset([pod.uid for pod in self.pods])

    def count(self, state: PodState) -> int:
        """Return the number of pods in this state."""
        return sum(1 for pod in self.pods if pod.state is state)
