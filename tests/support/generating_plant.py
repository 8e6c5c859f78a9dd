"""A small token-level simulation of replicas that generate, with the pages that they report.

An iteration decodes all running sequences and computes chunks of prompts, first come, first served,
up to the tokens of an iteration; its time is that of the given cost, with noise. A prompt starts
only when a seat and the memory of its whole length are free. Nothing is preempted.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import Observation, Pod, PodSample, PodState
from headroom.scaling.values.tokens import (
    CostSums,
    EngineLimits,
    GenerationSample,
    IterationCost,
    TokenCounts,
)

TIME_BOUNDS_S = (*(float(f"{0.001 * 1.15**k:.6g}") for k in range(90)), math.inf)
TOKEN_BOUNDS = (*(float(f"{1.25**k:.6g}") for k in range(60)), math.inf)

Lengths = Callable[[random.Random], tuple[int, int]]


class Histogram:
    """Counts of observations by bound."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * len(self.bounds)
        self.total = 0.0
        self.values: list[float] = []

    def add(self, value: float) -> None:
        """Count one observation."""
        low, high = 0, len(self.bounds) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.bounds[middle] < value else (low, middle)
        self.counts[low] += 1
        self.total += value
        self.values.append(value)

    def cumulative(self) -> tuple[float, ...]:
        """Return the counts up to each bound."""
        found, total = [], 0
        for count in self.counts:
            total += count
            found.append(float(total))
        return tuple(found)

    def latency(self) -> LatencyCounts:
        """Return the counts of times."""
        return LatencyCounts(bounds_s=self.bounds, counts=self.cumulative())

    def tokens(self) -> TokenCounts:
        """Return the counts of lengths."""
        return TokenCounts(bounds=self.bounds, counts=self.cumulative(), total=self.total)


@dataclass(slots=True)
class Request:
    """One request on its way."""

    arrived_s: float
    prompt: int
    output: int
    computed: int = 0
    first_s: float = 0.0
    scheduled_s: float = 0.0
    began: float = 0.0
    """Tokens that each sequence of the engine had been given when this one began to decode."""


@dataclass(slots=True)
class Engine:
    """One replica."""

    uid: str
    ready_s: float
    cost: IterationCost
    limits: EngineLimits
    noise: random.Random
    sums: bool = False
    per_step: Callable[[float], float] = lambda _: 1.0
    """Tokens of a sequence and step at a time: 1, and the drafted ones that are accepted."""
    clock_s: float = 0.0
    grown: float = 0.0
    drafted: float = 0.0
    accepted: float = 0.0
    waiting: deque[Request] = field(default_factory=deque)
    computing: deque[Request] = field(default_factory=deque)
    ends: list[tuple[float, int, Request]] = field(default_factory=list)
    context: float = 0.0
    reserved: int = 0
    arrivals: int = 0
    iterations: int = 0
    engine_s: float = 0.0
    computed: int = 0
    generated: float = 0.0
    steps: int = 0
    sequence_s: float = 0.0
    prompt_s: float = 0.0
    number: int = 0
    xx: list[float] = field(default_factory=lambda: [0.0] * 15)
    xy: list[float] = field(default_factory=lambda: [0.0] * 5)
    first: Histogram = field(default_factory=lambda: Histogram(TIME_BOUNDS_S))
    token: Histogram = field(default_factory=lambda: Histogram(TIME_BOUNDS_S))
    whole: Histogram = field(default_factory=lambda: Histogram(TIME_BOUNDS_S))
    prompts: Histogram = field(default_factory=lambda: Histogram(TOKEN_BOUNDS))
    outputs: Histogram = field(default_factory=lambda: Histogram(TOKEN_BOUNDS))

    @property
    def in_flight(self) -> int:
        """Requests that have not ended."""
        return len(self.waiting) + len(self.computing) + len(self.ends)

    def take(self, request: Request) -> None:
        """Receive a request."""
        self.arrivals += 1
        self.clock_s = max(self.clock_s, request.arrived_s) if not self.in_flight else self.clock_s
        self.waiting.append(request)

    def run_until(self, now_s: float) -> None:
        """Execute iterations that begin before this time."""
        while self.in_flight and self.clock_s < now_s:
            self._iterate()
        if not self.in_flight:
            self.clock_s = max(self.clock_s, now_s)

    def _iterate(self) -> None:
        running = len(self.ends)
        budget = (self.limits.iteration_tokens or 8192) - running
        self._admit()
        prompt_tokens, products, finished = 0, 0.0, []
        while self.computing and budget > 0:
            request = self.computing[0]
            if not request.computed:
                request.scheduled_s = self.clock_s
            chunk = min(budget, request.prompt - request.computed)
            products += chunk * (request.computed + chunk / 2.0)
            request.computed += chunk
            prompt_tokens, budget = prompt_tokens + chunk, budget - chunk
            if request.computed < request.prompt:
                break
            finished.append(self.computing.popleft())
            self._admit()
        seconds = self.cost.iteration_s(prompt_tokens, running, self.context, products)
        seconds *= self.noise.lognormvariate(-0.005, 0.1)
        self._count(seconds, prompt_tokens, running, products)
        self.clock_s += seconds
        self._decoded(running)
        for request in finished:
            self._first(request)

    def _admit(self) -> None:
        seats = self.limits.sequences or 10**9
        memory = self.limits.kv_tokens or math.inf
        while self.waiting and len(self.computing) + len(self.ends) < seats:
            request = self.waiting[0]
            if self.reserved + request.prompt + request.output > memory:
                return
            self.reserved += request.prompt + request.output
            self.computing.append(self.waiting.popleft())

    def _count(self, seconds: float, prompt_tokens: int, running: int, products: float) -> None:
        self.iterations += 1
        self.engine_s += seconds
        self.computed += prompt_tokens
        self.steps += running
        self.sequence_s += running * seconds
        if not self.sums:
            return
        row = (1.0, float(prompt_tokens), float(running), float(self.context), products)
        place = 0
        for left in range(5):
            self.xy[left] += row[left] * seconds
            for right in range(left, 5):
                self.xx[place] += row[left] * row[right]
                place += 1

    def _decoded(self, running: int) -> None:
        given = self.per_step(self.clock_s)
        self.grown += given
        self.context += given * running
        self.generated += given * running
        self.drafted += running if given > 1.0 else 0.0
        self.accepted += (given - 1.0) * running
        while self.ends and self.ends[0][0] <= self.grown:
            _, _, request = heapq.heappop(self.ends)
            self._end(request)

    def _first(self, request: Request) -> None:
        self.generated += 1
        request.first_s = self.clock_s
        self.first.add(self.clock_s - request.arrived_s)
        self.context += request.prompt + 1
        request.began = self.grown
        if request.output <= 1:
            self._end(request)
            return
        self.number += 1
        heapq.heappush(self.ends, (self.grown + request.output - 1, self.number, request))

    def _end(self, request: Request) -> None:
        self.context -= request.prompt + 1 + self.grown - request.began
        self.reserved -= request.prompt + request.output
        self.prompts.add(request.prompt)
        self.outputs.add(request.output)
        self.prompt_s += request.first_s - request.scheduled_s
        self.whole.add(self.clock_s - request.arrived_s)
        if request.output > 1:
            self.token.add((self.clock_s - request.first_s) / (request.output - 1))

    def page(self, now_s: float) -> PodSample:
        """Return what the replica reports."""
        waiting = sum(one.prompt for one in self.waiting)
        waiting += sum(one.prompt - one.computed for one in self.computing)
        return PodSample(
            pod=self.uid,
            time_s=now_s,
            arrivals=float(self.arrivals),
            missed=0.0,
            waiting=len(self.waiting),
            running=len(self.computing) + len(self.ends),
            latency=self.whole.latency(),
            generation=GenerationSample(
                iterations=float(self.iterations),
                engine_seconds=self.engine_s,
                computed_prompt_tokens=float(self.computed),
                generated_tokens=float(self.generated),
                sequence_steps=float(self.steps),
                sequence_seconds=self.sequence_s,
                drafts=self.drafted or None,
                accepted_tokens=self.accepted if self.drafted else None,
                prompt_seconds=self.prompt_s,
                timed_prompts=float(sum(self.outputs.counts)),
                cost_sums=CostSums(xx=tuple(self.xx), xy=tuple(self.xy)) if self.sums else None,
                waiting_tokens=float(waiting),
                limits=self.limits,
                prompt_lengths=self.prompts.tokens(),
                output_lengths=self.outputs.tokens(),
                first_token=self.first.latency(),
                output_token=self.token.latency(),
            ),
        )


@dataclass(slots=True)
class GeneratingPlant:
    """Replicas that start after a while, behind a gateway that sees requests in flight."""

    cost: IterationCost
    limits: EngineLimits
    lengths: Lengths
    rate_rps: Callable[[float], float]
    seed: int = 1
    start_s: float = 60.0
    sums: bool = False
    per_step: Callable[[float], float] = lambda _: 1.0
    now_s: float = 0.0
    engines: list[Engine] = field(default_factory=list)
    draining: list[Engine] = field(default_factory=list)
    made: int = 0
    replica_seconds: float = 0.0
    next_s: float = 0.0
    random: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        """Seed the arrivals."""
        self.random = random.Random(self.seed)

    def scale(self, replicas: int, *, at_once: bool = False) -> None:
        """Start or drain replicas."""
        while len(self.engines) < replicas:
            self.made += 1
            ready_s = self.now_s if at_once else self.now_s + self.start_s
            self.engines.append(
                Engine(
                    uid=f"pod-{self.made}",
                    ready_s=ready_s,
                    cost=self.cost,
                    limits=self.limits,
                    noise=random.Random(self.seed + self.made),
                    sums=self.sums,
                    per_step=self.per_step,
                    clock_s=ready_s,
                )
            )
        while len(self.engines) > replicas:
            self.draining.append(self.engines.pop())

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end_s = self.now_s + seconds
        while self.next_s < end_s:
            rate = max(1e-9, self.rate_rps(self.next_s))
            ready = [one for one in self.engines if one.ready_s <= self.next_s]
            for engine in ready:
                engine.run_until(self.next_s)
            prompt, output = self.lengths(self.random)
            if ready and self.next_s > 0.0:
                target = min(ready, key=lambda one: (one.in_flight, self.random.random()))
                target.take(Request(self.next_s, prompt, output))
            self.next_s += self.random.expovariate(rate)
        for engine in (*self.engines, *self.draining):
            engine.run_until(end_s)
        self.draining = [one for one in self.draining if one.in_flight]
        self.replica_seconds += seconds * (len(self.engines) + len(self.draining))
        self.now_s = end_s

    def observe(self) -> Observation:
        """Return what the decision sees."""
        return Observation(
            now_s=self.now_s,
            current=len(self.engines),
            pods=tuple(
                Pod(
                    uid=one.uid,
                    state=PodState.READY if one.ready_s <= self.now_s else PodState.WARMING,
                    created_s=one.ready_s - self.start_s,
                    scheduled_s=one.ready_s - self.start_s,
                    ready_s=one.ready_s if one.ready_s <= self.now_s else None,
                )
                for one in self.engines
            ),
            samples=tuple(
                one.page(self.now_s) for one in self.engines if one.ready_s <= self.now_s
            ),
        )


def fixed_lengths(prompt: int, output: int) -> Lengths:
    """Return requests that are all alike."""
    return lambda _: (prompt, output)


def varied_lengths(prompt: float, output: float, sigma: float = 0.8) -> Lengths:
    """Return lognormal lengths with these means."""
    shift = sigma * sigma / 2.0

    def draw(source: random.Random) -> tuple[int, int]:
        return (
            max(1, round(prompt * source.lognormvariate(-shift, sigma))),
            max(1, round(output * source.lognormvariate(-shift, sigma))),
        )

    return draw
