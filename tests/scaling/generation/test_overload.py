"""Sequences that a gateway admits in overload, in the simulator and by the model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling.generation.fleet.admission import most_in_flight
from headroom.scaling.generation.fleet.generating_fleet import GeneratingFleet
from headroom.scaling.generation.fleet.learned_fleet import fleet_of
from headroom.scaling.generation.learning.model_inputs import Inputs
from headroom.scaling.generation.replica_model.overload import (
    most_in_memory,
    most_in_time,
    rate_and_share_in_time,
)
from headroom.scaling.generation.replica_model.replica import TailFactors
from headroom.scaling.generation.replica_model.work import work_of
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import Target, TokenTargets
from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.generation.autoscalers.bounds import Fixed
from headroom.simulator.generation.models import ENGINES, targets
from headroom.simulator.generation.outcome import TokenScore
from headroom.simulator.generation.plant import TokenService
from headroom.simulator.generation.requests import Requests
from headroom.simulator.generation.run import simulate_tokens
from headroom.simulator.generation.workloads import lognormal_lengths, poisson
from support.generating_plants import LLAMA_8B, QWEN_30B_A3B, requests

REPLICAS = 3
SECONDS = 600
MIXES = {"usual": (1500.0, 250.0, 0.6), "long": (4000.0, 400.0, 1.0)}
"""Mean prompt and answer, and the coefficient of variation of both."""
PROMISED = {
    "llama-8b-h100": targets(1.0, 0.05),
    "qwen3-32b-tp2-h100": targets(3.0, 0.075),
    "llama-70b-tp4-h100": targets(3.0, 0.075),
    "qwen3-30b-a3b-h100": targets(1.5, 0.075),
    "qwen3-8b-l40s": targets(3.0, 0.1),
}


@dataclass(kw_only=True)
class Bounded(Fixed):
    """Replicas whose number is fixed, behind a gateway with a bound."""

    kind: ClassVar[str] = "bounded"

    period_s: float = 2.0
    most_in_flight: int = 0

    def evaluate(self, view: View) -> ScaleRequest:
        """Return both numbers."""
        return ScaleRequest(replicas=self.replicas, most_in_flight=self.most_in_flight)


@cache
def fleet_and_lengths(engine: str, mix: str) -> tuple[GeneratingFleet, Requests]:
    """Return a fleet that knows cost and lengths of an engine, and the lengths."""
    prompt, answer, cv = MIXES[mix]
    random, count = np.random.default_rng(5), 60_000
    drawn = Requests(
        arrival_s=np.arange(float(count)),
        prompt_tokens=lognormal_lengths(np.full(count, prompt), cv, random),
        output_tokens=lognormal_lengths(np.full(count, answer), cv, random),
    ).bounded(ENGINES[engine].context_tokens)
    known = Inputs(
        cost=ENGINES[engine].cost,
        shape=drawn.shape(),
        limits=ENGINES[engine].limits,
        factors=TailFactors(),
    )
    return fleet_of(known, PROMISED[engine], Routing.LEAST_IN_FLIGHT, 1.0), drawn


def simulated(engine: str, mix: str, load: float, most_in_flight: int) -> TokenScore:
    """Run three replicas at this load, in shares of their capacity."""
    fleet, lengths = fleet_and_lengths(engine, mix)
    rate_rps = load * REPLICAS * fleet.capacity_rps(fleet.target_s, REPLICAS)
    arrival_s = poisson(np.full(SECONDS // 10, rate_rps), 10.0, 7)
    count = len(arrival_s)
    arrivals = Requests(
        arrival_s=arrival_s,
        prompt_tokens=lengths.prompt_tokens[:count],
        output_tokens=lengths.output_tokens[:count],
    )
    service = TokenService(
        engine=ENGINES[engine],
        targets=PROMISED[engine],
        min_replicas=REPLICAS,
        max_replicas=REPLICAS,
        initial_replicas=REPLICAS,
    )
    outcome = simulate_tokens(
        service,
        arrivals,
        lambda truth: Bounded(truth=truth, replicas=REPLICAS, most_in_flight=most_in_flight),
        1,
    )
    return outcome.score


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("engine", ENGINES)
def test_gateway_in_overload_answers_in_time_what_the_capacity_allows(
    engine: str, mix: str
) -> None:
    most = most_in_flight(fleet_and_lengths(engine, mix)[0], REPLICAS)
    overloaded = simulated(engine, mix, 1.5, most)
    assert 1.5 * overloaded.attainment >= 0.99
    assert overloaded.full_share <= 0.2
    assert simulated(engine, mix, 1.0, most).attainment >= 0.95
    free = simulated(engine, mix, 0.8, 0)
    assert simulated(engine, mix, 0.8, most).attainment >= free.attainment - 0.005


def test_without_a_bound_overload_makes_all_late() -> None:
    assert simulated("llama-8b-h100", "usual", 1.5, 0).attainment < 0.1


def test_without_promises_on_tokens_memory_alone_bounds_them() -> None:
    known = Inputs(
        cost=QWEN_30B_A3B,
        shape=requests(4000, 400, prompt_cv=1.0, output_cv=1.0),
        limits=ENGINES["qwen3-30b-a3b-h100"].limits,
        factors=TailFactors(),
    )
    first = TokenTargets(first_token=Target(percentile=0.95, seconds=20.0))
    most = most_in_flight(fleet_of(known, first, Routing.RANDOM, 1.0), 1)
    work = work_of(known.cost, known.shape)
    assert most == most_in_memory(work, 0.95 * 130_000, 0.95)


@given(
    tokens=st.floats(1e3, 1e6),
    prompt=st.floats(10, 20_000),
    variation=st.floats(0.0, 2.0),
    percentile=st.floats(0.5, 0.999),
)
def test_sequences_fit_into_memory_at_the_percentile_and_one_more_would_not(
    tokens: float, prompt: float, variation: float, percentile: float
) -> None:
    work = work_of(LLAMA_8B, requests(prompt, 200, prompt_cv=variation, output_cv=0.5))
    spread = NormalDist().inv_cdf(percentile) * math.sqrt(work.context_variance)

    def held(sequences: int) -> float:
        return sequences * work.context_tokens + spread * math.sqrt(sequences)

    most = most_in_memory(work, tokens, percentile)
    assert held(most) <= tokens * (1 + 1e-9)
    assert held(most + 1) > tokens * (1 - 1e-9)


@given(sequences=st.integers(1, 500), target_s=st.floats(0.006, 0.2), cv=st.floats(0.0, 1.5))
def test_sequences_answer_more_and_fewer_in_time_the_more_they_are(
    sequences: int, target_s: float, cv: float
) -> None:
    work = work_of(LLAMA_8B, requests(1500, 250, prompt_cv=cv, output_cv=cv))
    rate_rps, share = rate_and_share_in_time(work, sequences, target_s, cv)
    more_rps, more_share = rate_and_share_in_time(work, sequences + 1, target_s, cv)
    assert rate_rps < more_rps
    assert 0.0 <= more_share <= share <= 1.0
    assert rate_and_share_in_time(work, sequences, 1.1 * target_s, cv)[1] >= share


@given(target_s=st.floats(0.006, 0.2), prompt=st.floats(10.0, 12_000.0), cv=st.floats(0.0, 1.5))
def test_most_in_time_answers_nine_tenths_of_what_any_number_does(
    target_s: float, prompt: float, cv: float
) -> None:
    work = work_of(LLAMA_8B, requests(prompt, 250, prompt_cv=cv, output_cv=cv))
    in_time = [
        math.prod(rate_and_share_in_time(work, number, target_s, cv)) for number in range(1, 201)
    ]
    most = most_in_time(work, target_s, cv, 200)
    assert in_time[most - 1] >= 0.9 * max(in_time) * (1 - 1e-9)
    assert most == 200 or in_time[most] < 0.9 * max(in_time)


@pytest.mark.parametrize("latency_s", [0.40, 0.45, 0.53])
def test_answer_that_its_prompt_makes_late_is_no_bound(latency_s: float) -> None:
    """Prompts take longer than the promise for the answer, which a learned factor of 0.6 hides."""
    learned = Inputs(
        cost=LLAMA_8B,
        shape=requests(20_000, 5, prompt_cv=0.0, output_cv=0.5),
        limits=ENGINES["llama-8b-h100"].limits,
        factors=TailFactors(first_token=0.6),
    )
    promised = TokenTargets(
        first_token=Target(percentile=0.9, seconds=3.0),
        latency=Target(percentile=0.9, seconds=latency_s),
    )
    without = TokenTargets(first_token=promised.first_token)
    fleet, free = (
        fleet_of(learned, one, Routing.LEAST_IN_FLIGHT, latency_s, 2) for one in (promised, without)
    )
    assert 2 <= most_in_flight(fleet, 2) <= most_in_flight(free, 2)


@pytest.mark.parametrize("latency_s", [3.6, 4.5, 5.3, 12.0])
def test_promise_for_whole_answers_near_what_the_longest_take_alone_rejects_none_in_vain(
    latency_s: float,
) -> None:
    """Fewer sequences would save little: answers of the 95th percentile take 3.4 s alone."""
    learned = Inputs(
        cost=LLAMA_8B,
        shape=requests(1000, 300, prompt_cv=0.5, output_cv=0.5),
        limits=ENGINES["llama-8b-h100"].limits,
        factors=TailFactors(),
    )
    promised = TokenTargets(latency=Target(percentile=0.95, seconds=latency_s))
    fleet = fleet_of(learned, promised, Routing.LEAST_IN_FLIGHT, latency_s, 2)
    carried = fleet.capacity_rps(latency_s, 2) * 300 * LLAMA_8B.fixed_s
    assert not fleet.capacity.infeasible
    assert most_in_flight(fleet, 2) > carried
