"""The phases of a server's life as a table, and the seconds spent in each. Pure.

    init -> load (-> compile) -> warm -> selftest -> ready -> draining -> stopped

A server that is stopped before it is ready drains at once; one that never becomes warm stops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class Phase(StrEnum):
    """A phase between the server's start and its end."""

    INIT = "init"
    LOAD = "load"
    COMPILE = "compile"
    """Only if the model requests it."""
    WARM = "warm"
    SELFTEST = "selftest"
    READY = "ready"
    DRAINING = "draining"
    STOPPED = "stopped"


STARTUP = (Phase.INIT, Phase.LOAD, Phase.COMPILE, Phase.WARM, Phase.SELFTEST)

NEXT: Mapping[Phase, frozenset[Phase]] = MappingProxyType(
    {
        Phase.INIT: frozenset({Phase.LOAD, Phase.DRAINING, Phase.STOPPED}),
        Phase.LOAD: frozenset({Phase.COMPILE, Phase.WARM, Phase.DRAINING, Phase.STOPPED}),
        Phase.COMPILE: frozenset({Phase.WARM, Phase.DRAINING, Phase.STOPPED}),
        Phase.WARM: frozenset({Phase.SELFTEST, Phase.DRAINING, Phase.STOPPED}),
        Phase.SELFTEST: frozenset({Phase.READY, Phase.DRAINING, Phase.STOPPED}),
        Phase.READY: frozenset({Phase.DRAINING, Phase.STOPPED}),
        Phase.DRAINING: frozenset({Phase.STOPPED}),
        Phase.STOPPED: frozenset(),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """The current phase, when it began, and the duration of earlier ones."""

    phase: Phase = Phase.INIT
    since_s: float
    spent_s: Mapping[Phase, float] = field(default_factory=lambda: MappingProxyType({}))

    def advance(self, phase: Phase, now_s: float) -> Lifecycle:
        """Return the lifecycle in another phase.

        Raises:
            ValueError: the table has no such transition.
        """
        if phase not in NEXT[self.phase]:
            allowed = ", ".join(sorted(NEXT[self.phase])) or "nothing"
            raise ValueError(f"the phase after {self.phase} must be {allowed}; got {phase}")
        return Lifecycle(phase=phase, since_s=now_s, spent_s=MappingProxyType(self.seconds(now_s)))

    def seconds(self, now_s: float) -> dict[Phase, float]:
        """Return the seconds per phase, including the current one. A clock set back counts 0."""
        return {**self.spent_s, self.phase: max(0.0, now_s - self.since_s)}

    @property
    def ready(self) -> bool:
        """Whether the server is warm and not draining."""
        return self.phase is Phase.READY

    @property
    def starting(self) -> bool:
        """Whether the server is not yet warm."""
        return self.phase in STARTUP
