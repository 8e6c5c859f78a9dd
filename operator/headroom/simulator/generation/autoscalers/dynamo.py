"""NVIDIA Dynamo's SLA planner: throughput scaling every 180 s, load scaling every 5 s.

Source: ai-dynamo/dynamo, components/src/dynamo/planner/core/{throughput_scaling,load_scaling}.py
and docs/design-docs/planner-design.md at 320e674. Throughput: the largest batch x with mean TTFT
(one chunk ahead) and mean ITL within the SLA, x at most KV / (isl + osl/2) and the seats;
rate = x / (osl t(x)); replicas = ceil(forecast / rate), with no queueing at all. Load: one more if
all engines are over the SLA, one less if all are at most at 80 % of it.

Choices: the regressions are granted without error (they read each iteration from an instrumented
scheduler); the forecast is the last window's rate (ARIMA of a few windows is close to it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from headroom.scaling.values.observation import PodSample
from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.peer import round_up
from headroom.simulator.generation.autoscalers.peer import (
    TokenPeer,
    existing,
    first_s,
    generation,
    output_s,
    ready,
)


@dataclass(kw_only=True)
class DynamoThroughput(TokenPeer):
    """Replicas for the forecast rate by mean latencies."""

    kind: ClassVar[str] = "dynamo-throughput"

    period_s: float = 180.0
    correction: float = 1.0
    """Factor on the rate of one replica."""

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the forecast over the rate of one replica."""
        self.history.add(view)
        rate_rps = self.history.rate(lambda page: page.arrivals, self.period_s)
        each_rps = self.correction * self._each_rps(view)
        wanted = round_up(rate_rps / each_rps) if each_rps > 0 else view.replicas
        return ScaleRequest(replicas=max(1, wanted), reason="Throughput")

    def _each_rps(self, view: View) -> float:
        prompt, output = self._lengths()
        engine = self.truth.service.engine
        most = min(engine.kv_tokens / (prompt + output / 2), engine.sequences)
        found = 0.0
        for batch in range(1, max(2, int(most) + 1)):
            rate = batch / max(output, 1.0)
            # Prompts per iteration that keep the batch full.
            prompts = prompt * rate
            contexts = batch * (prompt + output / 2)
            step_s = engine.cost.iteration_s(prompts, batch, contexts, prompts * prompt / 2)
            chunk = min(prompt, float(engine.iteration_tokens))
            wait_s = engine.cost.iteration_s(chunk, batch, contexts, chunk * chunk / 2)
            chunks = math.ceil(prompt / engine.iteration_tokens)
            if step_s <= output_s(self.targets) and wait_s * chunks <= first_s(self.targets):
                found = max(found, rate / step_s)
        return found

    def _lengths(self) -> tuple[float, float]:
        window_s = self.period_s
        ended = self.history.increase(_ended, window_s)
        if ended <= 0:
            shape = self.truth.requests.shape()
            return shape.prompt_tokens, shape.output_tokens
        prompt = self.history.increase(lambda page: _total(page, "prompt_lengths"), window_s)
        output = self.history.increase(lambda page: _total(page, "output_lengths"), window_s)
        return max(1.0, prompt / ended), max(1.0, output / ended)


def _total(page: PodSample, name: str) -> float:
    counts = getattr(generation(page), name)
    return float(counts.total)


def _ended(page: PodSample) -> float:
    counts = generation(page).output_lengths
    return float(counts.counts[-1]) if counts is not None else 0.0


@dataclass(kw_only=True)
class DynamoLoad(TokenPeer):
    """One more or one less by the engines' present latencies; waits while one starts."""

    kind: ClassVar[str] = "dynamo-load"

    period_s: float = 5.0
    sensitivity: float = 0.8
    window_s: float = 30.0
    _idle_since_s: float = field(default=math.inf, init=False, repr=False)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return one replica more or less, or the same."""
        self.history.add(view)
        if ready(view) < existing(view):
            return ScaleRequest(replicas=view.replicas, reason="Starting")
        loads = [self._load(page) for page in view.samples]
        current = view.replicas
        if loads and min(loads) > 1.0:
            return ScaleRequest(replicas=current + 1, reason="AllOver")
        fewer = current / max(current - 1, 1)
        if current > 1 and loads and max(loads) * fewer <= self.sensitivity:
            return ScaleRequest(replicas=current - 1, reason="AllUnder")
        return ScaleRequest(replicas=current, reason="WithinTarget")

    def _load(self, page: PodSample) -> float:
        """Return the worse of the estimated mean TTFT and ITL over its target."""
        sample, engine = generation(page), self.truth.service.engine
        running, waiting = page.running, sample.waiting_tokens or 0.0
        contexts = sample.context_tokens or 0.0
        step_s = engine.cost.iteration_s(0, running, contexts)
        chunks = max(1, math.ceil(waiting / engine.iteration_tokens))
        shape_tokens = self.truth.requests.shape().prompt_tokens
        prompt = waiting + shape_tokens
        wait_s = chunks * step_s + engine.cost.prompt_token_s * prompt
        return max(wait_s / first_s(self.targets), step_s / output_s(self.targets))
