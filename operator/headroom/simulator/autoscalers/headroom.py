"""Headroom itself: the production decision, fed as production feeds it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from headroom.scaling import Observation, State, decide
from headroom.simulator.autoscaler import Truth, View, Wish


class Headroom:
    """`decide()` at its production tick, with direct scrapes of the pods."""

    kind = "headroom"
    scrape_s = math.inf

    def __init__(self, truth: Truth) -> None:
        self._policy = truth.spec.policy
        self._state = State.initial()

    @classmethod
    def knobs(cls) -> Mapping[str, float]:
        """Return the settings that a sweep may walk, with their defaults."""
        return {}

    @property
    def name(self) -> str:
        """Name and settings."""
        return self.kind

    @property
    def period_s(self) -> float:
        """The production tick."""
        return self._policy.tick_s

    def evaluate(self, view: View) -> Wish:
        """Return what `decide` decides."""
        observation = Observation(
            now_s=view.now_s, current=view.replicas, pods=view.pods, samples=view.samples
        )
        decision, self._state = decide(self._policy, self._state, observation)
        return Wish(
            replicas=decision.replicas, reason=decision.reason.value, message=decision.message
        )

    def restart(self) -> None:
        """Begin anew from the checkpoint, as the operator does."""
        self._state = State.from_checkpoint(self._state.to_checkpoint())
