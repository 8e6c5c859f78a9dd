"""Token SLOs: whether they are met, and the capacity factor that keeps them. Pure.

While the servers do not show what an iteration costs, no model predicts the time to the first
token, so the measurement acts directly: an integral in logarithms over minutes, of the worst ratio
of measured time to target. The decision is made as if `capacity_factor` times as many requests
arrived, under a utilization ceiling lower by the same factor. The factor changes only while the
desired replicas have served for a whole window, and falls only while all token SLOs are met with a
fifth to spare. While one is missed or unknown, no replica is removed. Where percentile and target
are in one wide bucket of the servers' histogram, it is unknown, and the factor stays.

Worked: twice the target, 300 s, a full window: each minute adds 60/300 ln 2, so the factor grows by
15 %.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from headroom.api.service_spec.service_level import ServiceLevel
from headroom.controller.decide.measured_promise import FIELDS, Measured
from headroom.controller.decide.token_window import WINDOW_S, TokenWindow
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.tokens import Binding

CONSTANT_S = 300.0
"""Like the latency correction's: several cold starts, so that added replicas are ready."""
IDLE = 0.1
"""Utilization at which replicas are idle: more of them would not be faster."""
LARGEST_FACTOR = 0.95 / IDLE
EASY = 0.8
"""The capacity factor falls while the measured value is below this share of the target."""
FULL_WEIGHT_REQUESTS = 100.0
"""A window of fewer requests counts for less."""
LONGEST_STEP_S = 30.0
"""Longest time that one tick counts for, however long the gap before it."""
LEAST_MISS = 1.5
"""Smallest miss that the factor's growth is computed from, because smaller ones would take half an
hour to add a replica."""
_SHARPEST = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSLOController:
    """State of token SLOs from tick to tick."""

    windows: Mapping[str, TokenWindow] = field(default_factory=dict)
    measured: tuple[Measured, ...] = ()
    logarithm: float = 0.0
    last_s: float | None = None
    served_since_s: float = 0.0
    """Time since which exactly the desired replicas have served."""
    ready: int = 0

    @property
    def capacity_factor(self) -> float:
        """The factor by which capacity is increased."""
        return math.exp(self.logarithm)

    def by_name(self) -> dict[str, float | None]:
        """Return the measurements in seconds by their fields."""
        return {one.name: one.value_s for one in self.measured if not one.class_name}

    def observe(
        self,
        slo: ServiceLevel,
        pages: Mapping[str, Mapping[str, LatencyCounts | None]],
        now_s: float,
    ) -> TokenSLOController:
        """Process the newest page of each pod, by promise; without a promise nothing is kept."""
        promised = {
            "timeToFirstToken": slo.time_to_first_token,
            "timePerOutputToken": slo.time_per_output_token,
        }
        windows, measured = {}, []
        for name, objective in promised.items():
            if objective is None:
                continue
            window = self.windows.get(name, TokenWindow()).observe(pages[name], now_s)
            windows[name] = window
            measured.append(
                Measured(
                    name=name,
                    percentile=objective.percentile,
                    target_s=objective.target.seconds,
                    value_s=window.percentile_s(objective.percentile / 100),
                    between_s=window.undecided_s(
                        objective.percentile / 100, objective.target.seconds
                    ),
                )
            )
        if not measured:
            return NO_TOKEN_SLO
        return replace(self, windows=windows, measured=tuple(measured))

    def judged_by(self, measured: tuple[Measured, ...] | None) -> TokenSLOController:
        """Return the controller with the promises of all classes; None: these are not measured."""
        return self if measured is None else replace(self, measured=measured)

    def split_by(self, decision: Decision) -> TokenSLOController:
        """Return the controller with the decision's factor for the same requests, if it is less.

        A target between two bounds of the servers' histogram splits a bucket: where its requests
        are, the model of the decision knows better than an even spread.
        """
        generation = decision.generation
        if generation is None or not generation.identification.known:
            return self
        found = {
            "timeToFirstToken": generation.first_token,
            "timePerOutputToken": generation.output_token,
        }
        return replace(
            self, measured=tuple(one.at_most(found.get(one.name)) for one in self.measured)
        )

    def adjust_policy(self, policy: Policy) -> Policy:
        """Return the policy for decide(): the same one while no extra capacity is needed."""
        return replace(policy, capacity_factor=self.capacity_factor) if self.logarithm else policy

    def is_largest(self, policy: Policy) -> bool:
        """Return whether the factor has reached the point where replicas are idle."""
        return policy.utilization_ceiling <= IDLE * self.capacity_factor * (1 + 1e-9)

    def update(self, policy: Policy, decision: Decision) -> TokenSLOController:
        """Return the controller with the capacity factor from now on."""
        if not self.measured:
            return self
        if decision.generation is not None and decision.generation.identification.known:
            # the decision sizes for the tokens themselves; nothing is left for the integral
            return replace(self, logarithm=0.0, last_s=decision.time_s)
        now_s, counts = decision.time_s, decision.counts
        still = counts.ready == decision.current == decision.replicas and counts.ready == self.ready
        since_s = self.served_since_s if still else now_s
        kept = replace(self, last_s=now_s, served_since_s=since_s, ready=counts.ready)
        known = [one.ratio for one in self.measured if one.ratio]
        if self.last_s is None or not known or now_s - since_s < WINDOW_S:
            return kept
        ratio = min(_SHARPEST, max(1 / _SHARPEST, *known))
        most = math.log(max(1.0, policy.utilization_ceiling / IDLE))
        if EASY <= ratio <= 1.0 or (ratio > 1.0 and decision.replicas >= policy.max_replicas):
            return kept
        pull = math.log(max(LEAST_MISS, ratio) if ratio > 1.0 else ratio / EASY)
        counted = [window.requests for window in self.windows.values() if window.requests]
        requests = min(counted, default=0.0)  # a substitute counts tokens, not requests
        weight = min(1.0, requests / FULL_WEIGHT_REQUESTS)
        elapsed_s = min(LONGEST_STEP_S, max(0.0, now_s - self.last_s))
        step = elapsed_s / CONSTANT_S * weight * pull
        return replace(kept, logarithm=min(most, max(0.0, self.logarithm + step)))

    def to_checkpoint(self) -> dict[str, object]:
        """Return the checkpoint for a restart as JSON values; empty if nothing was learned."""
        return {"tokenRoom": float(f"{self.capacity_factor:.6g}")} if self.logarithm else {}

    @classmethod
    def from_checkpoint(cls, checkpoint: Mapping[str, object]) -> TokenSLOController:
        """Read a checkpoint of `to_checkpoint`; raise ValueError for anything else."""
        room = checkpoint.get("tokenRoom", 1.0)
        if not isinstance(room, int | float) or not 1.0 <= room <= LARGEST_FACTOR:
            rule = f"checkpoint tokenRoom must be a number in 1..{LARGEST_FACTOR:g}"
            raise ValueError(f"{rule}, not {room!r:.80}")
        return cls(logarithm=math.log(room))

    def removal_objection(
        self, decision: Decision, hopeless: Collection[tuple[str, Binding]] = ()
    ) -> str:
        """Return why no replica may be removed; empty if one may.

        A percentile without a counted request is unknown while other requests end. A promise that
        no replica can keep keeps none; `hopeless` are those of classes.
        """
        generation = decision.generation
        infeasible = generation.infeasible if generation else ()
        never = {("", FIELDS[one]) for one in infeasible}
        never |= {(name, FIELDS[binding]) for name, binding in hopeless}
        requests_end = decision.signals.latency_s.value is not None
        against = [
            one.message
            for one in self.measured
            if (one.class_name, one.name) not in never
            and (one.missed or (not one.decided and requests_end))
        ]
        return ", ".join(against)


NO_TOKEN_SLO = TokenSLOController()
