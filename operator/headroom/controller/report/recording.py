"""Records the inputs that a simulation needs to replay production, tick by tick.

The format is `headroom.telemetry.recording`. Any failure ends the recording, with one line in the
log; scaling does not depend on it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from headroom.api import InferenceService
from headroom.controller.ports import RecordingSink
from headroom.controller.report.arrival_counter import ArrivalCounter
from headroom.scaling import CostModel, Decision, Observation, Policy
from headroom.telemetry.recording import MOST_ARRIVALS, service_line, tick_line

_log = logging.getLogger(__name__)

MATERIAL = 0.05
"""Relative change of seconds that is written again: learned values move at every tick."""
MATERIAL_CV = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Described:
    """Contents of a service's line."""

    policy: Policy
    cost: CostModel | None
    cold_start_s: float | None

    def differs(self, before: _Described) -> bool:
        """Return whether a simulation would differ."""
        return (
            self.policy != before.policy
            or _costs_differ(self.cost, before.cost)
            or _seconds_differ(self.cold_start_s, before.cold_start_s)
        )


@dataclass(slots=True)
class _Service:
    """State of one service from tick to tick."""

    counter: ArrivalCounter = field(default_factory=ArrivalCounter)
    described: _Described | None = None
    """Description as last written."""
    last_s: float | None = None


class Recording:
    """Appends the observations of each service's ticks to a recording."""

    def __init__(self, sink: RecordingSink) -> None:
        self._sink: RecordingSink | None = sink
        self._services: dict[str, _Service] = {}

    def on_tick(
        self,
        service: InferenceService,
        policy: Policy,
        observation: Observation,
        decision: Decision,
        replicas: int,
    ) -> None:
        """Record one tick, with the replicas requested by it. Never raises."""
        if self._sink is None:
            return
        try:
            described = _Described(
                policy=policy, cost=decision.cost, cold_start_s=decision.cold_start_s
            )
            text = self._lines(service, described, observation, decision.time_s, replicas)
            if text:
                self._sink.append(text)
        except Exception as error:  # noqa: BLE001  (whatever it is, the tick goes on)
            self._sink = None
            self._services.clear()
            _log.error("recording has ended, scaling goes on: %s: %s", type(error).__name__, error)

    def forget(self, uid: str) -> None:
        """Discard the state of a deleted service; written lines stay."""
        self._services.pop(uid, None)

    def _lines(
        self,
        service: InferenceService,
        described: _Described,
        observation: Observation,
        now_s: float,
        replicas: int,
    ) -> str:
        """Return the lines of a tick; none while the clock has not advanced.

        The counter then stays as it was, so the next tick counts from the last one written.
        """
        one = self._services.setdefault(service.uid, _Service())
        if one.last_s is not None and now_s <= one.last_s:
            return ""
        name = f"{service.namespace}/{service.name}"
        arrivals, one.counter = one.counter.counted(observation)
        if arrivals is not None and arrivals > MOST_ARRIVALS:
            arrivals = None
        text = tick_line(name, now_s, arrivals, replicas)
        if one.described is None or described.differs(one.described):
            text = (
                service_line(name, described.policy, described.cost, described.cold_start_s) + text
            )
            one.described = described
        one.last_s = now_s
        return text


def _costs_differ(one: CostModel | None, other: CostModel | None) -> bool:
    if one is None or other is None:
        return one is not other
    return (
        (one.max_batch, one.slots) != (other.max_batch, other.slots)
        or _seconds_differ(one.batch_s(1), other.batch_s(1))
        or _seconds_differ(one.batch_s(one.max_batch), other.batch_s(other.max_batch))
        or abs(one.cv - other.cv) > MATERIAL_CV
    )


def _seconds_differ(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is not other
    return abs(one - other) > MATERIAL * other
