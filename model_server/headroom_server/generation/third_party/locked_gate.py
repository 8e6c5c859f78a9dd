"""The gate behind a lock, with the counts of the engine's iterations."""

from __future__ import annotations

import threading
from collections.abc import Callable

from headroom_server.generation.ports import EngineStatistics
from headroom_server.generation.third_party.gate import Gate
from headroom_server.generation.third_party.ports import Step


class LockedGate:
    """A gate that two threads use; hold `lock` for each call of `gate`."""

    def __init__(self, gate: Gate, clock: Callable[[], float]) -> None:
        self.gate = gate
        self.clock = clock
        self.lock = threading.Lock()
        self.progress_s: float | None = None
        """Time when the engine last did something; None: it has nothing to do."""
        self._busy_s = 0.0
        self._last = Step()

    def learn(self, step: Step) -> None:
        """Learn from an iteration of warm-up."""
        with self.lock:
            self.gate.learn(step)

    def observe(self, step: Step) -> None:
        """Follow an iteration of the engine."""
        with self.lock:
            self.gate.step(step)
            self._last = step
            self._busy_s += step.seconds or 0.0
            if self.progress_s is not None:
                self.progress_s = self.clock()

    def statistics(self) -> EngineStatistics:
        """Return the counts of one instant."""
        with self.lock:
            gate, state, blocks = self.gate, self.gate.state, self.gate.limits.blocks
            lines = state.lines
            used = round((self._last.used_share or 0.0) * blocks)
            computing = sum(one.remaining for one in state.prefilling)
            return EngineStatistics(
                iterations=state.totals.get("iterations", 0),
                busy_s=self._busy_s,
                computed_prompt_tokens=state.totals.get("computed_prompt_tokens", 0),
                cached_prompt_tokens=gate.cached_tokens,
                generated_tokens=gate.generated_tokens,
                preemptions=state.totals.get("preemptions", 0),
                cost_xx=tuple(state.sums.xx),
                cost_xy=tuple(state.sums.xy),
                used_blocks=used,
                free_blocks=blocks - used,
                waiting_requests=sum(line.count for line in lines) + self._last.waiting,
                waiting_tokens=sum(line.tokens for line in lines) + computing,
                context_tokens=state.context_tokens,
            )
