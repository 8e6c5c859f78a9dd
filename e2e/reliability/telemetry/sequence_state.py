"""The state of one sequence of ticks: samples, decisions and memory."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from headroom.profiles.headroom import HEADROOM
from headroom.scaling import Decision, Observation, Pod, PodState, Policy, State, decide
from headroom.scaling.values.observation import PodSample
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.samples.pod_samples import PodSamples
from reliability.telemetry.figures import MODEL
from reliability.telemetry.sequences import Pages, Scraped
from reliability.telemetry.trials import Trial

START_S = 1_800_000_000.0

_Pages = tuple[int, int, tuple[Scraped, ...]]
"""The identity of the state before, the replicas, and the pages of a tick."""


class _Decided(NamedTuple):
    """Decision from the pages of a tick."""

    before: State
    """Kept, so that its identity is that of no other state."""
    read: tuple[PodSample | None, ...]
    decision: Decision
    state: State
    samples: PodSamples


@dataclass(slots=True, kw_only=True)
class SequenceState:
    """The state of a sequence."""

    pages: Pages
    samples: PodSamples
    state: State
    current: int
    heard_s: dict[str, float]
    now_s: float = START_S
    faulty_s: float = START_S
    """Time when the last page with a fault was read."""
    stepped: bool = False
    """Whether one replica alone caused more than one step up."""
    path: str = ""
    decided: dict[_Pages, _Decided] = field(default_factory=dict)
    """Decision on the same pages in the same state: of the whole tree."""

    @classmethod
    def of(cls, trial: Trial) -> Self:
        """Return the start: all replicas serve, and none has been scraped yet."""
        heard_s = {f"pod-{number}": START_S for number in range(trial.replicas)}
        return cls(
            pages=Pages(trial),
            samples=PodSamples(HEADROOM, MODEL),
            state=State.initial(),
            current=trial.replicas,
            heard_s=heard_s,
        )

    def branch(self, way: int) -> SequenceState:
        """Go on from here on one of several ways."""
        path = f"{self.path}{way}"
        return replace(
            self,
            path=path,
            pages=self.pages.branch(path),
            samples=self.samples.copy(),
            heard_s=dict(self.heard_s),
        )

    def restart(self) -> None:
        """Go on as another operator, from the checkpoint in the object's status."""
        kept = json.loads(json.dumps(self.state.to_checkpoint()))
        self.state = State.from_checkpoint(kept)
        self.samples = PodSamples(HEADROOM, MODEL)

    def decide(self, policy: Policy, pages: tuple[Scraped, ...]) -> _Decided:
        """Read these pages and decide, unless a sequence with the same past had the same ones."""
        key = id(self.state), self.current, pages
        known = self.decided.get(key)
        if known is None:
            read = tuple(_sample(scraped, self) for scraped in pages)
            observation = Observation(
                now_s=self.now_s,
                current=self.current,
                pods=_pods(len(pages)),
                samples=tuple(one for one in read if one is not None),
            )
            decision, state = decide(policy, self.state, observation)
            known = _Decided(self.state, read, decision, state, self.samples.copy())
            self.decided[key] = known
        else:
            self.samples = known.samples.copy()
        self.state = known.state
        return known


@functools.cache
def _pods(replicas: int) -> tuple[Pod, ...]:
    return tuple(
        Pod(
            uid=f"pod-{number}",
            state=PodState.READY,
            created_s=START_S - 100.0,
            ready_s=START_S - 50.0,
        )
        for number in range(replicas)
    )


def _sample(scraped: Scraped, sequence: SequenceState) -> PodSample | None:
    """Read a page as a tick does; what cannot be read is no sample."""
    if scraped.page is None:
        return None
    time_s = sequence.now_s - scraped.age_s
    try:
        return sequence.samples.take(scraped.page, pod=scraped.pod, time_s=time_s)
    except TelemetryError:
        return None
