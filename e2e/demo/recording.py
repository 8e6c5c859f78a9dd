"""The record of a run: snapshots of the cluster, and the log of the load.

Times are wall-clock seconds, as Kubernetes writes them; `since_start_s` gives the replay's.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from demo.views import DecisionView, PodView, ServiceView, WorkloadView
from load.messages import Message, Progress, Started, Summary, Window, read_all
from load.statistics import Tally, merged

RECENT_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that was read from the cluster at one instant."""

    time_s: float
    service: ServiceView
    workload: WorkloadView
    pods: tuple[PodView, ...]
    waiting: int | None
    """Requests queued in all ready pods; None where a pod's metrics could not be read."""

    @property
    def gpus_held(self) -> int:
        """GPUs of pods that have a node and have not ended."""
        return sum(pod.gpus for pod in self.pods if pod.holds_gpus and pod.scheduled)


@dataclass(slots=True)
class Run(ABC):
    """One run of any load, as it grows."""

    snapshots: list[Snapshot] = field(default_factory=list)
    operator_restarts: int = 0

    @abstractmethod
    def add_log(self, text: str) -> None:
        """Add what the load's log says; the same text again changes nothing."""

    @property
    @abstractmethod
    def start_s(self) -> float:
        """Time at which the first request was due; +Inf before the load began."""

    @property
    @abstractmethod
    def duration_s(self) -> float:
        """Seconds in which requests are due; 0 before the load began."""

    @property
    def has_begun(self) -> bool:
        """Return whether the load has begun."""
        return self.start_s < math.inf

    @property
    def end_s(self) -> float:
        """Return when the last request was due."""
        return self.start_s + self.duration_s

    def since_start_s(self, time_s: float) -> float:
        """Seconds of the load."""
        return time_s - self.start_s

    def share_done(self, snapshot: Snapshot) -> float:
        """Return the share of the load that has passed."""
        if not self.has_begun:
            return 0.0
        return min(1.0, max(0.0, self.since_start_s(snapshot.time_s) / self.duration_s))

    def during(self) -> list[Snapshot]:
        """The snapshots from the load's start to its end."""
        return [
            snapshot for snapshot in self.snapshots if self.start_s <= snapshot.time_s <= self.end_s
        ]


@dataclass(slots=True)
class Recording(Run):
    """One replay of a recorded workload."""

    started: Started | None = None
    seconds: list[Progress] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    summary: Summary | None = None

    def add_log(self, text: str) -> None:
        """Add the generator's messages."""
        self.add_messages(read_all(text))

    def add_messages(self, messages: Sequence[Message]) -> None:
        """Add the generator's messages; a message that was added before changes nothing."""
        for message in messages:
            match message:
                case Started():
                    self.started = message
                case Progress():
                    if not self.seconds or message.at_s > self.seconds[-1].at_s:
                        self.seconds.append(message)
                case Window():
                    if not self.windows or message.start_s > self.windows[-1].start_s:
                        self.windows.append(message)
                case Summary():
                    self.summary = message

    @property
    def start_s(self) -> float:
        """Return when the first request of the replay was due; +Inf before it started."""
        return self.started.unix_s if self.started else math.inf

    @property
    def duration_s(self) -> float:
        """Return the replay's length."""
        return self.started.duration_s if self.started else 0.0


def recent(seconds: Sequence[Progress], of_s: int = RECENT_S) -> Tally:
    """Return the requests that ended in the last seconds."""
    return merged(second.tally for second in seconds[-of_s:])


def arrivals_rps(seconds: Sequence[Progress]) -> float | None:
    """Return the recent rate of due requests; None before two seconds are known."""
    if len(seconds) < 2:
        return None
    first, last = seconds[max(0, len(seconds) - 1 - RECENT_S)], seconds[-1]
    return (last.due - first.due) / (last.at_s - first.at_s)


def utilization(arrival_rps: float | None, service: ServiceView) -> float | None:
    """Arrivals over what the ready replicas carry in full batches; None where either is unknown."""
    if arrival_rps is None or service.cost is None or service.ready == 0:
        return None
    return arrival_rps / (service.ready * service.cost.full_batch_rps)


def longest_unanswered_s(recording: Recording) -> float:
    """Longest time above the ceiling in which no replica was on its way, though one was allowed."""
    longest_s, since_s = 0.0, None
    for snapshot in recording.during():
        at_s = recording.since_start_s(snapshot.time_s)
        heard = [second for second in recording.seconds if second.at_s <= at_s]
        used = utilization(arrivals_rps(heard), snapshot.service)
        service, replicas = snapshot.service, snapshot.workload.replicas
        answered = replicas > service.ready or replicas >= service.max_replicas
        if used is None or used <= service.utilization_ceiling or answered:
            since_s = None
            continue
        since_s = at_s if since_s is None else since_s
        longest_s = max(longest_s, at_s - since_s)
    return longest_s


def decisions(snapshots: Sequence[Snapshot]) -> list[DecisionView]:
    """Each decision to move that was seen, once, in order."""
    seen: dict[tuple[float, int], DecisionView] = {}
    for snapshot in snapshots:
        decision = snapshot.service.decision
        if decision is not None and decision.moves:
            seen.setdefault((decision.time_s, decision.replicas), decision)
    return list(seen.values())
