"""Runs a prefill and a decode pool in series: what the first has computed arrives at the second.

Both are plants of their own, each under the production decision. A request of the decode pool
arrives when its prompt is computed and moved; its prompt costs nothing there, and its page counts
it as found in a cache.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.partner import Partner, PoolReport, PoolRole
from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.generation.autoscalers.headroom import TokenHeadroom
from headroom.simulator.generation.compiled import kernel
from headroom.simulator.generation.compiled.layout import Plant, Request, Time
from headroom.simulator.generation.pool_pair import PairOutcome, PoolPair
from headroom.simulator.generation.requests import Requests
from headroom.simulator.generation.run import Run, Truth

MOVED_S = 0.02
"""Keys and values of 4000 tokens at 200 000 tokens per second."""
STEP_S = 0.5
NEVER_S = 1e12
"""Arrival time at the decode pool of a request whose prompt is not computed yet."""
_LAST_S = 600.0
"""Requests that are in the system at the end may finish."""


@dataclass(kw_only=True)
class _Pool(TokenHeadroom):
    """Headroom in one pool."""

    bounded: float = 0.0
    moved: bool = False
    blind: bool = False

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the decision on the pages of this pool."""
        samples = () if self.blind else view.samples
        if self.moved:
            samples = tuple(_with_moved_prompts(one) for one in samples)
        return super().evaluate(replace(view, samples=samples))


def _with_moved_prompts(sample: PodSample) -> PodSample:
    page = sample.generation
    assert page is not None
    computed = page.computed_prompt_tokens
    page = replace(page, computed_prompt_tokens=0.0, cached_prompt_tokens=computed)
    return replace(sample, generation=page)


def simulate_pair(pair: PoolPair, requests: Requests, seed: int) -> PairOutcome:
    """Return the outcome. Same pair, requests and seed: same outcome."""
    return _PairRun(pair, requests.bounded(pair.decode.engine.context_tokens), seed).outcome()


@dataclass
class _PairRun:
    pair: PoolPair
    requests: Requests
    seed: int
    moved_s: float = 0.0
    sent: int = 0
    looks: list[tuple[int, ...]] = field(default_factory=list)
    last_s: float = 0.0
    """Time when the last request arrived at the decode pool."""

    def __post_init__(self) -> None:
        requests, pair = self.requests, self.pair
        self.direct = requests.prompt_tokens <= pair.bypass_tokens
        self.rows_of = np.flatnonzero(~self.direct)
        first = replace(
            requests.taken(~self.direct), output_tokens=np.ones(len(self.rows_of), dtype=np.int64)
        )
        second = replace(requests, arrival_s=np.full(len(requests), NEVER_S))
        self.order = np.zeros(len(requests), dtype=np.int64)
        """Number of the request that is the n-th of the decode pool."""
        self.waiting: list[tuple[float, int]] = [
            (float(requests.arrival_s[row]), int(row)) for row in np.flatnonzero(self.direct)
        ]
        self.pools: dict[PoolRole, _Pool] = {}
        self.runs: dict[PoolRole, Run] = {}
        for role, service, part in (
            (PoolRole.PREFILL, pair.prefill, first),
            (PoolRole.DECODE, pair.decode, second),
        ):
            truth = Truth(service=service, requests=part)
            pool = _Pool(truth=truth, moved=role is PoolRole.DECODE)
            self.pools[role] = pool
            self.runs[role] = Run(service, part, pool, self.seed)

    def outcome(self) -> PairOutcome:
        """Run to the end of the load, and return the figures."""
        end_s = self.requests.duration_s
        prefill, decode = self.runs[PoolRole.PREFILL], self.runs[PoolRole.DECODE]
        step_s, look_s = STEP_S, 0.0
        while True:
            now_s = min(prefill.next_s, decode.next_s, step_s, end_s)
            self._advance(now_s)
            if now_s >= end_s:
                break
            step_s = step_s + STEP_S if now_s >= step_s else step_s
            if look_s <= now_s:
                self._look(now_s)
                look_s += 1.0
            for role, run in self.runs.items():
                self._see(role, now_s)
                run.act(now_s)
        gpu_s = [run.fleet.gpu_seconds(end_s) for run in (prefill, decode)]
        while now_s < end_s + _LAST_S:
            now_s += STEP_S
            self._advance(now_s)
        return self._figures(gpu_s)

    def _advance(self, now_s: float) -> None:
        """Run both plants until then, the first one first."""
        prefill, decode = self.runs[PoolRole.PREFILL], self.runs[PoolRole.DECODE]
        if self.pair.queue:
            prefill.plant.whole[Plant.MOST_IN_FLIGHT] = self.pair.queue
        kernel.advance(prefill.plant, now_s)
        ended_s = prefill.plant.end_s
        done = np.flatnonzero((ended_s > self.moved_s) & (ended_s <= now_s))
        self.moved_s = now_s
        found = [(float(ended_s[one]) + MOVED_S, int(self.rows_of[one])) for one in done]
        while self.waiting and self.waiting[0][0] <= now_s:
            found.append(self.waiting.pop(0))
        for arrived_s, row in sorted(found):
            self._send(row, max(arrived_s, self.last_s))
        kernel.advance(decode.plant, now_s)
        for run in (prefill, decode):
            run.fleet.update(now_s)

    def _send(self, row: int, arrived_s: float) -> None:
        """Let a request arrive at the decode pool."""
        plant, place = self.runs[PoolRole.DECODE].plant, self.sent
        plant.requests[place, Request.PROMPT] = self.requests.prompt_tokens[row]
        plant.requests[place, Request.OUTPUT] = self.requests.output_tokens[row]
        plant.times[place, Time.ARRIVED] = self.last_s = arrived_s
        self.order[place] = row
        self.sent += 1

    def _see(self, role: PoolRole, now_s: float) -> None:
        """Show a pool what the other one last said."""
        pair, pool = self.pair, self.pools[role]
        pool.blind = role is PoolRole.PREFILL and pair.blind_from_s <= now_s < pair.blind_until_s
        if not pair.coupled:
            return
        other = PoolRole.DECODE if role is PoolRole.PREFILL else PoolRole.PREFILL
        decided = self.pools[other].pair
        report: PoolReport | None = None if decided is None else decided.report
        pool.partner = Partner(
            name="partner", role=other, report=report, absence="not evaluated yet"
        )

    def _look(self, now_s: float) -> None:
        counts = [
            number
            for run in self.runs.values()
            for number in (run.fleet.desired, len(run.fleet.ready()))
        ]
        self.looks.append((int(now_s), *counts))

    def _figures(self, gpu_s: list[float]) -> PairOutcome:
        requests = self.requests
        first = np.full(len(requests), math.inf)
        token = np.full(len(requests), math.inf)
        plant = self.runs[PoolRole.PREFILL].plant
        taken_s = plant.end_s - plant.arrival_s
        first[self.rows_of] = np.where(np.isnan(taken_s), math.inf, taken_s)
        plant, order = self.runs[PoolRole.DECODE].plant, self.order[: self.sent]
        ended_s, arrived_s = plant.end_s[: self.sent], plant.arrival_s[: self.sent]
        each = (ended_s - arrived_s) / requests.output_tokens[order]
        token[order] = np.where(np.isnan(ended_s), math.inf, each)
        first[self.direct] = 0.0
        moves = [
            (move.time_s, role.value, move.before, move.after, move.message)
            for role, run in self.runs.items()
            for move in run.moves
        ]
        return PairOutcome(
            first_token_s=first,
            output_token_s=token,
            arrival_s=requests.arrival_s,
            gpu_hours=(gpu_s[0] / 3600.0, gpu_s[1] / 3600.0),
            replicas=np.array(self.looks),
            reasons=tuple(sorted(moves)),
        )
